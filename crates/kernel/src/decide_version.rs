//! Versions of the rules in [`decide`](crate::decide), and the version since which each rule applies.

/// Version of the rules in [`decide`](crate::decide). An execution pins the version at its start. A change that makes an input
/// produce other records is made under a higher version only, or replays of older journals would fail.
pub const DECIDE_VERSION: u32 = 13;

/// Decide version that introduced these rules:
///
/// - steps that need no concurrency slot start even if all slots are taken;
/// - a retry policy applies to interruptions as to any other failure;
/// - a child notifies its parent when it waits for approvals, and reports a denial to it;
/// - a failure that cancels waits in inner blocks is followed along its edges in the same turn.
pub(crate) const SECOND_RULES: u32 = 2;

/// Version since which an execution can be queued before it runs.
pub const QUEUES_SINCE: u32 = 3;

/// Version since which kept signals have a limit in bytes, and a signal that a step waits for is accepted despite the
/// limits.
pub const SIGNAL_BYTES_SINCE: u32 = 4;

/// Decide version that introduced these rules:
///
/// - there are limits on child executions, on rounds and skipped steps, on the evaluations of a turn, and on the size
///   of the values that blocks, returns and gates hold;
/// - a completing execution waits for its running attempts.
pub const BOUNDS_SINCE: u32 = 5;

/// Decide version that introduced these rules:
///
/// - the memory of an execution and the size of its journal are limited;
/// - a loop ends as soon as its outputs are too large;
/// - blocks that a turn opens count towards the size of the turn;
/// - a completing execution stops children that wait for approvals, and its deadline is not suspended;
/// - a quarantined child keeps its share of the execution budget.
pub const MEMORY_SINCE: u32 = 6;

/// Version since which an agent is a loop of turns, with a step instance for each call.
pub(crate) const AGENTS_SINCE: u32 = 7;

/// Version since which calls of agents and children reserve and settle what they use, and budgets limit it.
pub const BUDGETS_SINCE: u32 = 8;

/// Version since which these rules apply inside an agent:
///
/// - a failed model call fails the agent, also in a workflow with `failOpen`;
/// - a final answer that cannot be checked fails the agent, and is not sent back to the model.
pub(crate) const AGENT_FAILURES_SINCE: u32 = 8;

/// Version since which the gate before a call of an unclassified tool says how to classify it.
pub(crate) const CLASSIFY_HINT_SINCE: u32 = 9;

/// Version since which a model call that failed before its request uses nothing: a tool server or a secret was not
/// available.
pub(crate) const UNSENT_CALLS_SINCE: u32 = 9;

/// Version since which these rules apply to the budgets of children:
///
/// - a workflow that a model calls reserves its own tool call beside the share of the child;
/// - a child asks people to raise its budget only if its parent would ask.
pub(crate) const CHILD_BUDGETS_SINCE: u32 = 9;

/// Version since which nothing exists below a skipped step, for conditions with `exists`.
pub(crate) const EXISTENCE_SINCE: u32 = 9;

/// Version since which `agent_message` steps and people send messages to conversations, which several agents may continue.
pub const MESSAGES_SINCE: u32 = 10;

/// Version since which every receipt of an execution is signed by the node that records it. No rule follows from
/// it: a verification knows by the pinned version that a receipt without a signature has lost it.
pub const SIGNED_RECEIPTS_SINCE: u32 = 10;

/// Version since which these rules apply to conversations:
///
/// - a message stays unread until the attempt starts that carries it, also if the budget refuses the call at first;
/// - the number of steps that wait for an answer of a conversation is limited;
/// - the size of a conversation is checked before each turn, also the first, and not after the final answer.
pub(crate) const SENT_MESSAGES_SINCE: u32 = 11;

/// Version since which the nesting of inputs and outputs is limited. Deeper ones were written and could not be read again.
pub const DEPTH_SINCE: u32 = 11;

/// Version since which the calls of agents need leases of the budgets for a day or a month, if there are such budgets.
pub const LEASES_SINCE: u32 = 12;

/// Version since which a model call that claims impossibly many tokens counts as its reservation.
pub(crate) const PLAUSIBLE_TOKENS_SINCE: u32 = 12;

/// Version since which an attempt can report before its end: the tools that it found, a call that continues in a tool server,
/// and a form that a tool server asks people to fill in.
pub const REPORTS_SINCE: u32 = 12;

/// Version since which an execution can continue with another plan.
pub const MIGRATIONS_SINCE: u32 = 13;
