//! Findings of a review: their codes, the severity of each, and the rating of a change.

use mainspring_kernel::{document::Path, value::Value};

/// A risk of a change, by increasing severity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Risk {
    /// The change does what the present definition could do already.
    Low,
    /// The change does more or repeats more, and needs a reader.
    Medium,
    /// The change gains a capability or loses a safeguard.
    High,
}

impl Risk {
    /// All values.
    pub const ALL: [Self; 3] = [Self::Low, Self::Medium, Self::High];

    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Low => "low",
            Self::Medium => "medium",
            Self::High => "high",
        }
    }

    /// Returns the risk of this name in a report.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|risk| risk.name() == name)
    }
}

/// A code of findings. Codes are part of the interface: one may be added, none changes its meaning.
#[derive(Debug, PartialEq, Eq)]
pub struct FindingCode {
    /// Word in reports, unique among all codes.
    pub code: &'static str,
    /// The severity of every finding with this code.
    pub severity: Risk,
    /// One sentence: what changed.
    pub meaning: &'static str,
    /// One sentence: what the reviewer checks.
    pub check: &'static str,
}

/// A risk at one place of a definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The code, with its severity.
    pub code: &'static FindingCode,
    /// The place in the new definition, or in the old one for a part that is gone.
    pub path: Path,
    /// One sentence: what changed here.
    pub reason: String,
}

impl Finding {
    /// Returns `{code, severity, path, reason}`.
    pub fn to_value(&self) -> Value {
        Value::map([
            ("code", Value::from(self.code.code)),
            ("severity", self.code.severity.name().into()),
            ("path", self.path.to_string().into()),
            ("reason", self.reason.as_str().into()),
        ])
    }
}

macro_rules! codes {
    ($($name:ident = $code:literal, $severity:ident, $meaning:literal, $check:literal;)*) => {
        $(
            #[doc = $meaning]
            pub static $name: FindingCode = FindingCode {
                code: $code,
                severity: Risk::$severity,
                meaning: $meaning,
                check: $check,
            };
        )*

        /// All codes, by topic.
        pub static CODES: &[&FindingCode] = &[$(&$name),*];
    };
}

codes! {
    TOOL_ADDED = "tool_added", High,
        "A tool is called that the old version did not call.", "Check what the tool can do, and its arguments.";
    HOST_ADDED = "host_added", High,
        "A request goes to a host that the old version did not call.", "Check who operates the host, and what is sent.";
    SECRET_ADDED = "secret_added", High,
        "A secret is used that the old version did not use.", "Check which step receives it, and where that step sends data.";
    MODEL_ADDED = "model_added", Medium,
        "A model is used that the old version did not use.", "Check its provider and its price.";
    AGENT_ADDED = "agent_added", Medium,
        "An agent is used that the old version did not use.", "Check its goal and its tools.";
    WORKFLOW_ADDED = "workflow_added", Medium,
        "A workflow is started that the old version did not start.", "Review that workflow as well.";
    CLASS_RAISED = "class_raised", High,
        "A step belongs to a higher class of side effects: none, read, model, message, write, execute.",
        "Check that the step needs it.";
    EFFECT_ADDED = "effect_added", Low,
        "A step calls a tool, a host, an agent or a workflow that the old version called too.", "Check its input.";
    EFFECT_CHANGED = "effect_changed", Low,
        "A call has another input.", "Compare both inputs in the difference.";
    EFFECT_REMOVED = "effect_removed", Medium,
        "A call of the old version is gone.", "Check that no later step and no person relies on it.";
    EFFECT_UNGATED = "effect_ungated", High,
        "A new call runs without an approval, although each call of the old version had one before it.",
        "Move the call behind a gate.";
    GATE_REMOVED = "gate_removed", High,
        "An approval is gone.", "Check which calls ran only after it.";
    GATE_MOVED = "gate_moved", High,
        "A call no longer waits for an approval that it waited for.", "Move the gate before the call.";
    GATE_BYPASSED = "gate_bypassed", High,
        "An approval can be skipped, so a call behind it may run without it.", "Check the condition.";
    POLICY_WEAKENED = "policy_weakened", High,
        "A rule of the definition that asks before calls, or denies them, is gone or milder.", "Check which calls now run.";
    APPROVERS_WEAKENED = "approvers_weakened", High,
        "Fewer or other people can approve, or the gate approves by itself when its time is over.",
        "Check each new approver.";
    APPROVAL_TIME_CHANGED = "approval_time_changed", Medium,
        "A gate is open for another time.", "Check that the approvers can answer within it.";
    APPROVAL_CONTENT_CHANGED = "approval_content_changed", Medium,
        "Approvers see another question or other items.", "Check that they see everything that they approve.";
    LIMIT_RAISED = "limit_raised", Medium,
        "A limit of steps, calls, rounds, concurrency or size is higher or gone.", "Check the new limit.";
    BUDGET_RAISED = "budget_raised", Medium,
        "A budget of money, tokens, turns or tool calls is higher or gone.", "Check the new budget.";
    SCRIPT_CHANGED = "script_changed", Medium,
        "The text of a shell script is new or another.", "Read the script.";
    CODE_CHANGED = "code_changed", Low,
        "The source of a function is new or another.", "Read the function: its result decides what later steps do.";
    VALUE_TO_SHELL = "value_to_shell", High,
        "A value reaches a shell script that did not reach it before.", "Check who can set the value, and how the script uses it.";
    CONDITION_CHANGED = "condition_changed", Medium,
        "A condition is new, gone or another, or a loop runs over another list.", "Check the cases that now run or no longer run.";
    ORDER_CHANGED = "order_changed", Low,
        "A step runs at another place, or waits for other steps.", "Check what the step relies on.";
    WAIT_CHANGED = "wait_changed", Low,
        "A wait for a time or a signal is gone or another.", "Check what the wait was for.";
    RETRY_LOOSENED = "retry_loosened", Low,
        "A step is repeated more often, sooner, after more kinds of failures, or with another idempotency key.",
        "Check that repeating the call does no harm.";
    TIMEOUT_LOOSENED = "timeout_loosened", Low,
        "A timeout is longer or gone.", "Check the new timeout.";
    CLEANUP_REMOVED = "cleanup_removed", Medium,
        "A step no longer runs after a failure.", "Check what stays behind when the execution fails.";
    FAILURE_TOLERATED = "failure_tolerated", Medium,
        "A failure no longer fails the execution.", "Check the steps that run after it.";
    TRUST_CLEARED = "trust_cleared", High,
        "Data from outside is no longer checked against a schema or a declaration, or data counts as trusted or public that did not.",
        "Restore the check, or read the step that vouches for the data.";
    SCHEMA_CHANGED = "schema_changed", Low,
        "A schema or the declaration of a variable is another.", "Compare both in the difference.";
    DEFAULT_CHANGED = "default_changed", Low,
        "A default value of a variable is another.", "Check which steps use the variable.";
    OUTPUT_CHANGED = "output_changed", Low,
        "The output of the execution is another.", "Check the callers of the workflow.";
    SELF_MODIFICATION_ENABLED = "self_modification_enabled", High,
        "Changes to the workflow may be proposed by agents and executions.", "Check that this is intended.";
    HIDDEN_TEXT = "hidden_text", High,
        "A text contains characters that hide or reorder the text around them.", "Reject the change, or remove the characters.";
    LOOK_ALIKE = "look_alike", High,
        "A name or a word looks like another one, but has other characters.", "Compare the characters that the reason names.";
    NOT_COMPARED = "not_compared", High,
        "The gates of a version are too many to compare.", "Split the workflow, or compare its gates by hand.";
}
