//! Prompts that members ask for: a run of a trigger, and a redelivery.

use mainspring_store::Change;

use super::queue::{Added, NewPrompt, add, full, message_id};
use crate::{
    app::App,
    auth::{caller::Caller, token::random},
    http::problem::{Code, Problem, Result},
    resources::{
        Prompt, Run, Trigger, TriggerState,
        repository::{Repository, Stored, with_retries},
    },
    services::fire_trigger::owner_of,
};

/// Attempts of a write that conflicts with one of the run log.
const TRIES: usize = 20;

/// An accepted prompt, and true if an earlier request was the same.
pub(crate) struct Accepted {
    pub prompt: String,
    pub existed: bool,
}

/// Accepts the prompt of a trigger for a member. The prompt is durable when this returns.
pub(crate) fn accept(app: &App, caller: &Caller, trigger: &Stored<Trigger>, request: &str) -> Result<Accepted> {
    check_rights(app, caller, trigger)?;
    let organization = caller.organization.as_str();
    let new = NewPrompt {
        id: message_id(&["manual", organization, &trigger.id, &caller.user, request]),
        source: "manual",
        scheduled_at: None,
        requested_by: Some(caller.user.clone()),
        request: Some(request.into()),
        redelivery_of: None,
    };
    enqueue(app, caller, trigger, &new)
}

/// Accepts the present prompt of a trigger once more, for a run that is delivered, failed or refused. It is a new message
/// that names the earlier one.
pub(crate) fn redeliver(app: &App, caller: &Caller, trigger: &Stored<Trigger>, run: &Run) -> Result<Accepted> {
    check_rights(app, caller, trigger)?;
    let of = run.prompt.as_ref().ok_or_else(|| {
        Problem::new(Code::Conflict, "This run has no prompt: it is of a time at which the trigger started a workflow.")
    })?;
    if Repository::of(app.catalogue(), &caller.organization).get::<Prompt>(of)?.is_some() {
        let message = "This prompt still waits for its delivery, and is sent again by itself.";
        return Err(Problem::new(Code::Conflict, message));
    }
    let is_tick = run.source == "schedule";
    let new = NewPrompt {
        id: message_id(&["redelivery", &random(16)?]),
        source: if is_tick { "schedule" } else { "manual" },
        scheduled_at: run.delivery.clone().filter(|_| is_tick),
        requested_by: Some(caller.user.clone()),
        request: run.delivery.clone().filter(|_| !is_tick),
        redelivery_of: Some(of.clone()),
    };
    enqueue(app, caller, trigger, &new)
}

/// A prompt acts for the owner of its trigger, who must be a member.
fn check_rights(app: &App, caller: &Caller, trigger: &Stored<Trigger>) -> Result<()> {
    if !caller.may_act_for(&trigger.body.user) {
        let message = format!(
            "The prompts of this trigger act for `{}`; only this member or an admin may send them.",
            trigger.body.user
        );
        return Err(Problem::new(Code::Forbidden, message));
    }
    owner_of(app, &caller.organization, trigger).map(drop)
}

fn enqueue(app: &App, caller: &Caller, trigger: &Stored<Trigger>, new: &NewPrompt) -> Result<Accepted> {
    let own = Repository::of(app.catalogue(), &caller.organization);
    let added = with_retries(app.engine.store().catalogue(), TRIES, || {
        let state = own.require::<TriggerState>(&trigger.id)?;
        let (mut after, mut change) = (state.body.clone(), Change::default());
        let prompts = std::slice::from_ref(new);
        let added = add(app, &caller.organization, trigger, prompts, (&mut after, &mut change))?;
        if added != [Added::Queued] {
            // The refusal of a request is its response, and is not logged.
            return Ok((Change::default(), added));
        }
        change.puts.push(own.put(&trigger.id, &after, state.version)?);
        Ok((change, added))
    })?;
    match added[..] {
        [Added::Queued] => Ok(Accepted { prompt: new.id.clone(), existed: false }),
        [Added::Existed] => Ok(Accepted { prompt: new.id.clone(), existed: true }),
        _ => Err(full()),
    }
}
