//! Drains of workflows: begun by the application of a proposal, ended by the last older execution, by a member, or by a
//! return to an earlier definition. The node that counts the executions of the organization holds the starts back.

use mainspring_store::Filter;

use crate::{
    app::App,
    auth::caller::Caller,
    http::problem::{Code, Problem, Result},
    resources::{
        Drain, Workflow,
        repository::{Repository, Stored},
    },
};

/// Workflows of an organization that may drain at a time. Each is read with the limits of the organization.
const DRAINS_MAX: usize = 50;

/// Executions that are read to count the older ones.
const COUNTED_MAX: usize = 10_000;
const PAGE: usize = 1_000;

/// Statuses of executions that have not ended.
pub(super) const UNFINISHED: [&str; 4] = ["pending", "running", "waiting_approval", "cancel_requested"];

/// Definitions that a workflow gets while it drains.
const DEFINITIONS_MAX: usize = 64;

/// The drain that begins with a definition.
pub(super) fn begin(before: &Workflow, hash: &str, proposal: &str, caller: &Caller, now: u64) -> Drain {
    let (by, from) = (caller.user.clone(), before.hash.clone());
    Drain { since: now, by, proposal: proposal.into(), from, new: vec![hash.into()] }
}

/// The drain of a workflow after a change of its definition. Executions of a new definition wait as well. A return to a
/// definition of the history ends the drain, since executions of that one may be those that the drain waits for.
pub(super) fn after(drain: Option<&Drain>, hash: &str, is_return: bool) -> Result<Option<Drain>> {
    match drain {
        Some(drain) if !drain.holds(hash) && is_return => Ok(None),
        Some(drain) if !drain.holds(hash) && drain.new.len() >= DEFINITIONS_MAX => {
            let message = format!(
                "The workflow has had {DEFINITIONS_MAX} definitions since it drains: wait for the executions before, or end \
                 the drain."
            );
            Err(Problem::new(Code::Conflict, message))
        }
        Some(drain) if !drain.holds(hash) => {
            let mut drain = drain.clone();
            drain.new.push(hash.into());
            Ok(Some(drain))
        }
        drain => Ok(drain.cloned()),
    }
}

/// Checks that a workflow can begin to drain.
pub(super) fn check_can_drain(app: &App, caller: &Caller, workflow: &Stored<Workflow>) -> Result<()> {
    if let Some(drain) = &workflow.body.drain
        && older(app, caller, &workflow.id, drain, 1)? > 0
    {
        let message = format!(
            "The workflow `{}` drains already: wait for the older executions, end the drain, or apply with `pin`.",
            workflow.id
        );
        return Err(Problem::new(Code::Conflict, message));
    }
    let repository = Repository::of(app.catalogue(), &caller.organization);
    let mut draining = 0;
    for stored in repository.all::<Workflow>(Some(Workflow::draining())) {
        draining += usize::from(stored?.id != workflow.id);
    }
    if draining < DRAINS_MAX {
        return Ok(());
    }
    let message = format!("{draining} workflows of the organization drain: wait for one of them, or end its drain.");
    Err(Problem::new(Code::Conflict, message))
}

/// Counts the unfinished executions of older definitions, up to `most`.
fn older(app: &App, caller: &Caller, workflow: &str, drain: &Drain, most: usize) -> Result<usize> {
    let filter = Filter {
        statuses: UNFINISHED.map(String::from).into(),
        organization: Some(caller.organization.clone()),
        workflow_id: Some(workflow.into()),
        // A quarantined execution does not run, and the drain does not wait for it.
        excludes_quarantined: true,
        ..Filter::default()
    };
    let (mut count, mut read, mut last) = (0, 0, None);
    while count < most && read < COUNTED_MAX {
        let rows = app.engine.store().executions(&filter, last, PAGE)?;
        count += rows.iter().filter(|row| !drain.holds(&row.workflow_hash)).count();
        read += rows.len();
        last = rows.last().map(|row| row.key);
        if rows.len() < PAGE {
            break;
        }
    }
    Ok(count.min(most))
}

/// The older executions that a workflow waits for; `None` if it does not drain, or no longer.
pub(crate) fn waits_for(app: &App, caller: &Caller, workflow: &Stored<Workflow>) -> Result<Option<usize>> {
    let Some(drain) = &workflow.body.drain else { return Ok(None) };
    let count = older(app, caller, &workflow.id, drain, COUNTED_MAX)?;
    Ok(Some(count).filter(|count| *count > 0))
}

/// True if an execution that has not begun waits for older ones of its workflow.
pub(crate) fn holds(app: &App, caller: &Caller, workflow: &str, hash: &str) -> Result<bool> {
    let stored = Repository::of(app.catalogue(), &caller.organization).get::<Workflow>(workflow)?;
    let Some(drain) = stored.and_then(|stored| stored.body.drain) else { return Ok(false) };
    Ok(drain.holds(hash) && older(app, caller, workflow, &drain, 1)? > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_definitions_join_a_drain_and_a_return_ends_it() {
        let drain =
            Drain { since: 1, by: "ada".into(), proposal: "pr".into(), from: "one".into(), new: vec!["two".into()] };
        let with = |new: &[&str]| Drain { new: new.iter().map(ToString::to_string).collect(), ..drain.clone() };
        let check = |hash: &str, is_return: bool, expected: Option<Drain>| {
            assert_eq!(after(Some(&drain), hash, is_return), Ok(expected), "{hash} {is_return}");
        };
        check("two", false, Some(with(&["two"])));
        check("two", true, Some(with(&["two"])));
        check("three", false, Some(with(&["two", "three"])));
        check("one", true, None);
        assert_eq!(after(None, "two", true), Ok(None));
        let full = Drain { new: (0..DEFINITIONS_MAX).map(|number| number.to_string()).collect(), ..drain.clone() };
        assert_eq!(after(Some(&full), "7", false), Ok(Some(full.clone())));
        assert!(after(Some(&full), "x", false).is_err());
        assert_eq!(after(Some(&full), "x", true), Ok(None));
    }
}
