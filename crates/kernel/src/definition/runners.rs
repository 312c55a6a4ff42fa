//! Reads `agent` steps with `runner`: external agents, which a command of the settings runs.

use alloc::{format, string::String};

use super::{
    agents::is_runner,
    fields::Fields,
    inspector::Outside,
    outline::Outline,
    references::Reader,
    report::Report,
    step_work::{effect, literal},
};
use crate::{
    diagnostic,
    plan::{ANSWER_SCHEMA, RUNNER_EFFECT, Work},
};

/// The keys that such a step cannot honor, each with the remedy.
const FOREIGN_KEYS: [(&str, &str); 11] = [
    ("model", "set the model in `args` or `env` of the agent in the settings"),
    ("tools", "give the agent its tools in its own configuration; its permission requests go through `policy`"),
    ("maxTurns", "bound the time with `timeoutMs`: the agent counts its turns by itself"),
    ("maxToolCalls", "bound the time with `timeoutMs`, and the tools with `policy`"),
    ("maxTokens", "set the limit in the configuration of the agent"),
    ("temperature", "set it in the configuration of the agent"),
    ("seed", "set it in the configuration of the agent"),
    ("budget", "bound the time with `timeoutMs`, and the cost with the limits of the key that the agent uses"),
    ("conversation", "give the next step the answer of this one in its `context`"),
    ("transform", "take it out, and use a `code` step after the agent"),
    ("keyPer", "take it out: the protocol has no idempotency keys"),
];

impl Reader<'_, '_> {
    /// Reads the work of such a step.
    pub(super) fn runner(&mut self, fields: &Fields<'_>) -> Option<Work> {
        let name = self.report.filled_text(fields, "runner").map(String::from);
        if let Some(name) = &name {
            self.plain_name(name, "runner", &fields.path, "write the name of an agent in `agents` of the settings");
            self.check_outside(Outside::Runner, name, &fields.path.key("runner"));
        }
        let purpose = "say what the agent is to do, as in: write `goal: Summarize the changes`";
        let goal = self.one_text(fields, ["goal", "content", "message"], purpose);
        let context = self.field(fields, "context");
        let has_instructions = fields.has("instructions") && self.report.filled_text(fields, "instructions").is_some();
        let instructions = if has_instructions { self.field(fields, "instructions") } else { None };
        for (key, help) in FOREIGN_KEYS.into_iter().filter(|(key, _)| fields.has(key)) {
            let message = format!("`{key}` does not apply to an agent with `runner`");
            self.report.error_at_key(diagnostic::MISPLACED_KEY, &fields.path.key(key), message, help);
        }
        let schema = fields.get("outputSchema").cloned().map(literal);
        let params = [
            ("runner", Some(literal(name?))),
            ("goal", Some(goal?)),
            ("context", context),
            ("instructions", instructions),
            (ANSWER_SCHEMA, schema),
        ];
        Some(effect(RUNNER_EFFECT, params))
    }
}

/// Reports external agents below a budget, which would not hold for them.
pub(super) fn check_budget(has_budget: bool, outline: &Outline<'_>, report: &mut Report<'_>) {
    let entries = outline.entries.iter().filter(|entry| entry.is_first() && is_runner(entry.kind, &entry.fields));
    for entry in entries.filter(|_| has_budget) {
        let message =
            "`constraints.budget` does not limit an agent with `runner`, whose usage is not known before it ends";
        let help =
            "remove the budget and bound the step with `timeoutMs`, or run the agent in a workflow without a budget";
        report.error_at_key(diagnostic::MISPLACED_KEY, &entry.fields.path.key("runner"), message, help);
    }
}
