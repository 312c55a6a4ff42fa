//! Steps with `forEach`, which are two steps of a plan and one of a drawing.

use mainspring_kernel::plan::{Loop, Over, Plan, Work};

use super::phrases::condition_text;

/// The step that does the work: the inner step of a `forEach`, or the step itself.
pub(super) fn worker(plan: &Plan, number: u32) -> u32 {
    match &plan.step(number).work {
        Work::Loop(Loop { is_each: true, block, .. }) => plan.block(*block).steps.first().copied().unwrap_or(number),
        _ => number,
    }
}

/// The rounds of a loop, as text.
pub(super) fn rounds(of: &Loop) -> String {
    match &of.over {
        Over::Items(list) if of.concurrency > 1 => format!("for each of {list}, {} at a time", of.concurrency),
        Over::Items(list) => format!("for each of {list}, one after another"),
        Over::Turns(agent) => format!("at most {} turns", agent.max_turns),
        Over::Calls => "for each tool call".into(),
        Over::While { condition, max_rounds } => {
            format!("while {}, at most {max_rounds} rounds", condition_text(condition))
        }
        Over::Until { condition, max_rounds } => {
            format!("until {}, at most {max_rounds} rounds", condition_text(condition))
        }
    }
}
