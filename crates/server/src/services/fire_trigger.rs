//! Starts executions for events of triggers, as the owner of the workflow and with the owner's present rights.

use std::sync::Arc;

use mainspring_kernel::{
    key::ExecutionKey,
    plan::Constraints,
    value::{Map, Value},
};
use mainspring_store::ExecutionRow;

use crate::{
    app::App,
    auth::caller::{Caller, Kind},
    http::{
        problem::{Code, Problem, Result},
        request_slots::{current, on_account},
    },
    resources::{
        Member, Trigger, Workflow,
        repository::{Repository, Stored},
    },
    services::{
        compile::is_light,
        repository_context::{StartRepository, pin},
        run_log::RunEntry,
        start_execution::{Starting, earlier, prepare, submit},
    },
};

/// An event that starts an execution.
pub(crate) struct Firing {
    /// `webhook` or `schedule`.
    pub(crate) source: &'static str,
    /// One execution starts for each key.
    pub(crate) idempotency_key: String,
    pub(crate) metadata: Map,
    pub(crate) variables: Map,
}

/// The execution of an event.
#[derive(Debug)]
pub(crate) struct Fired {
    pub(crate) execution: ExecutionKey,
    /// Id in the API.
    pub(crate) execution_id: String,
    /// True if an earlier event with the same key had started it.
    pub(crate) existed: bool,
    /// The owner of the workflow, as whom it runs.
    pub(crate) owner: Caller,
}

/// The owner of a trigger's workflow as a caller, with the present role and the restrictions of the credential that saved the
/// trigger.
pub(crate) fn owner_of(app: &App, organization: &str, trigger: &Stored<Trigger>) -> Result<Caller> {
    let user = &trigger.body.user;
    let member = Repository::of(app.catalogue(), organization).get::<Member>(user)?;
    let removed = || {
        let message = format!(
            "The owner `{user}` of this trigger is no longer a member. The trigger has stopped; save its workflow as a \
             current member, and create the trigger again."
        );
        Problem::new(Code::TriggerOwnerRemoved, message)
    };
    Ok(Caller {
        organization: organization.into(),
        user: user.clone(),
        role: member.ok_or_else(removed)?.body.role,
        kind: Kind::Person,
        token: format!("trigger/{}", trigger.id),
        sign_in: None,
        scopes: trigger.body.scopes.clone(),
        is_operator: false,
        made_by: None,
        known_to: trigger.body.known_to.clone(),
        expires_at: None,
    })
}

/// Starts the execution of an event, or finds the one that an earlier event with the same key has started. The start is
/// durable when this returns.
pub(crate) async fn fire(app: &App, organization: &str, trigger: &Stored<Trigger>, firing: Firing) -> Result<Fired> {
    let (organization, trigger) = (organization.to_string(), Arc::new(trigger.clone()));
    let key = firing.idempotency_key.clone();
    let found = trigger.clone();
    let look = move |app: &App| look_up(app, &organization, &found, &key);
    let (owner, workflow) = match app.run_short(look).await? {
        (owner, Found::Earlier(row)) => {
            return Ok(Fired { execution: row.key, execution_id: row.id.clone(), existed: true, owner });
        }
        (owner, Found::Workflow(workflow)) => (owner, workflow),
    };
    let named = StartRepository { trigger: trigger.body.repository.clone(), ..StartRepository::default() };
    let repository = pin(app, &owner, &workflow, named, &firing.metadata).await?;
    let starting = Starting {
        trigger: firing.source,
        trigger_id: Some(trigger.id.clone()),
        metadata: firing.metadata,
        idempotency_key: firing.idempotency_key,
        variables: firing.variables,
        input: Value::Null,
        bounds: Constraints::default(),
        repository,
    };
    let is_light = is_light(app, &owner.organization, &workflow.body);
    let (id, starter) = (workflow.id.clone(), owner.clone());
    let work = move |app: &App| Ok(prepare(app, &starter, &workflow, starting)?.0);
    let request = if is_light { app.run_short(work).await? } else { app.run(work).await? };
    let submitted = submit(app, &owner, request, &id).await?;
    let (execution, execution_id) = (submitted.execution, submitted.execution.to_string());
    Ok(Fired { execution, execution_id, existed: submitted.existed, owner })
}

enum Found {
    Earlier(Box<ExecutionRow>),
    Workflow(Box<Stored<Workflow>>),
}

fn look_up(app: &App, organization: &str, trigger: &Stored<Trigger>, key: &str) -> Result<(Caller, Found)> {
    let owner = owner_of(app, organization, trigger)?;
    let id = trigger.body.workflow.as_deref().ok_or_else(|| Problem::not_found("workflow"))?;
    if let Some(row) = earlier(app, &owner, id, key)? {
        return Ok((owner, Found::Earlier(Box::new(row))));
    }
    let workflow = Repository::of(app.catalogue(), organization).require::<Workflow>(id)?;
    // A trigger that was created while its workflow was deleted may find a later workflow of that id. Its definition must
    // not run with the rights of another member.
    if workflow.body.user != owner.user {
        let message = format!(
            "The workflow `{}` now belongs to `{}`, and this trigger starts executions as `{}`. Create the trigger again.",
            workflow.id, workflow.body.user, owner.user
        );
        return Err(Problem::new(Code::TriggerOwnerRemoved, message));
    }
    Ok((owner, Found::Workflow(Box::new(workflow))))
}

/// Adds an entry to the run log of a trigger. It is written in the background.
pub(crate) fn log_run(app: &App, organization: &str, trigger: &str, entry: RunEntry) {
    if app.pending_runs.add((organization.into(), trigger.into()), entry) {
        let (app, account) = (app.clone(), current());
        tokio::spawn(on_account(account, async move {
            // A failure of the store is logged by the writer, and the entries of a full server wait for the next one.
            let written = app.run(|app| {
                write_runs(app);
                Ok(())
            });
            let _ = written.await;
        }));
    }
}

/// Writes the pending entries of the run logs. The write bypasses the catalogue watch, because it changes nothing that
/// authentication depends on.
pub(crate) fn write_runs(app: &App) {
    app.pending_runs.write(app.engine.store().catalogue());
}
