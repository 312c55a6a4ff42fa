//! Drains of workflows: begun by the application of a proposal, ended by the last older execution, by a member, or by a
//! return to an earlier definition. The node that counts the executions of the organization holds the starts back.

use mainspring_store::OtherDefinitions;

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

/// Older executions that are counted. A larger count is shown as a lower bound.
const COUNTED_MAX: usize = 10_000;

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

/// Starts the executions that waited for a drain, after a change that ended it.
pub(super) fn announce_end(app: &App, caller: &Caller, has_ended: bool) {
    if has_ended {
        app.engine.limits_changed(&caller.organization);
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

/// Counts the unfinished executions of older definitions, up to `most`. Quarantined ones do not run, and the drain does
/// not wait for them.
fn older(app: &App, caller: &Caller, workflow: &str, drain: &Drain, most: usize) -> Result<usize> {
    let of = OtherDefinitions { organization: &caller.organization, workflow_id: workflow, hashes: &drain.new };
    Ok(app.engine.store().count_other_definitions(&of, most)?)
}

/// The number of older executions that a workflow waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WaitsFor {
    pub count: usize,
    /// True if the count was cut, and there are more.
    pub is_cut: bool,
}

impl WaitsFor {
    /// The result of a count up to one more than `most`; `None` if there are none.
    fn of(count: usize, most: usize) -> Option<Self> {
        (count > 0).then_some(Self { count: count.min(most), is_cut: count > most })
    }
}

/// The older executions that a workflow waits for; `None` if it does not drain, or no longer.
pub(crate) fn waits_for(app: &App, caller: &Caller, workflow: &Stored<Workflow>) -> Result<Option<WaitsFor>> {
    let Some(drain) = &workflow.body.drain else { return Ok(None) };
    let count = older(app, caller, &workflow.id, drain, COUNTED_MAX + 1)?;
    Ok(WaitsFor::of(count, COUNTED_MAX))
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
    fn a_count_up_to_the_bound_is_exact_and_a_larger_one_is_a_lower_bound() {
        let waits = |count, is_cut| Some(WaitsFor { count, is_cut });
        assert_eq!(
            [0, 1, 5, 6].map(|count| WaitsFor::of(count, 5)),
            [None, waits(1, false), waits(5, false), waits(5, true)]
        );
    }

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
