//! Diagnostics of definitions.

use super::{ErrorCode, Origin};
use crate::diagnostic::Severity;

/// Codes of diagnostics.
pub(super) static CODES: [ErrorCode; 58] = [
    error(
        "unreadable",
        "The text is not JSON or YAML that the language accepts.",
        "Correct the place that the message names.",
    ),
    error(
        "too_large",
        "More steps, deeper blocks, deeper values or longer names than the limits allow.",
        "Split the workflow.",
    ),
    error("not_in_build", "A part of the language that this build does not run yet.", "Leave it out."),
    error(
        "unknown_key",
        "A key without meaning at this place.",
        "Write the key that the help text names, or remove it.",
    )
    .with_example("{type: bash, comand: ls}"),
    error(
        "misplaced_key",
        "A key that belongs to another kind of step, or into another object.",
        "Move it where the help text says.",
    ),
    error("missing_key", "A required key is missing.", "Add it.").with_example("{type: bash}"),
    error("exclusive_keys", "Keys that exclude each other.", "Keep one of them."),
    error("unknown_type", "An unknown step type.", "Write one of the types that the help text lists.")
        .with_example("{type: shell}"),
    error(
        "wrong_kind",
        "A value of another kind than required, such as text for a number.",
        "Write the kind that the message names.",
    )
    .with_example("{type: sleep, durationMs: \"60000\"}"),
    error(
        "wrong_value",
        "A value of the right kind that is out of range, or not among the allowed words.",
        "Write a value that the message names.",
    ),
    error("empty", "A blank text or an empty list where a value is required.", "Fill it, or remove the key."),
    error(
        "bad_name",
        "A name that references cannot use.",
        "Begin it with A to Z, a to z or `_`; after that, digits and `-` are allowed as well.",
    ),
    error("duplicate_id", "Two steps with one id.", "Give each step an id of its own."),
    error(
        "duplicate_output_variable",
        "Two branches that run at the same time and write one output variable.",
        "Give each its own variable.",
    ),
    error("bad_condition", "Not a condition.", "Write a condition as data.")
        .with_example("when: {equals: [\"@check.status\", \"ready\"]}"),
    error(
        "unknown_reference",
        "A reference to an unknown name or property.",
        "Write the name that the help text suggests.",
    ),
    error(
        "reference_to_itself",
        "A step that refers to itself or to its container.",
        "Refer to a step that ends before it.",
    ),
    error("reference_to_later", "A reference to a step that has not ended at that point.", "Move one of the steps."),
    error(
        "reference_into_parallel",
        "A reference to a step that runs at the same time, in another branch.",
        "Move the step that refers behind the `parallel` step.",
    ),
    error(
        "reference_into_loop",
        "A reference to one round of a loop from outside of it.",
        "Refer to the loop: its output contains the outputs of its rounds.",
    ),
    error(
        "cycle",
        "Steps that wait for each other in a cycle.",
        "Remove one of the references or edges that the message lists.",
    ),
    error("bad_code", "A function whose source cannot be parsed.", "Correct the place that the message names."),
    error("bad_schema", "Not a JSON Schema.", "Correct the place that the message names."),
    error(
        "path_not_in_schema",
        "A path that leaves the schema; a warning if the schema allows more.",
        "Correct the path, or extend the schema.",
    ),
    error(
        "reference_in_script",
        "A reference at a place in a script where it is not certainly safe.",
        "Pass the value in `env`, as the help text shows.",
    )
    .with_fixed("env: {NAME: \"@vars.name\"}"),
    error("misplaced_reference", "A reference where the value has to be literal.", "Write the value."),
    error(
        "bad_secret",
        "A reference to a secret is malformed, or stands where a secret may not be used.",
        "Write `{secret: NAME}` as a value of `env`, `headers` or `query`.",
    )
    .with_fixed("headers: {Authorization: {secret: API_TOKEN, prefix: \"Bearer \"}}"),
    warning(
        "reference_to_output_variable",
        "`@vars` does not hold output variables.",
        "Refer to the step that writes the variable.",
    ),
    warning(
        "foreign_reference",
        "A text with the reference syntax of another language, which is plain text here.",
        "Write a reference with `@`.",
    )
    .with_example("\"@{fetch.body}\""),
    error(
        "policy_denied",
        "A step makes a call that the policy denies.",
        "Remove the step, or change the rule that the policy has for its class or its name.",
    ),
    warning(
        "untrusted_flow",
        "A value from outside reaches a call that can do harm.",
        "Let the call ask, or write `trust: trusted` at a step that checks the value.",
    )
    .with_fixed("trust: trusted"),
    warning(
        "private_flow",
        "A private value reaches people or a foreign host.",
        "Let the call ask, or write `trust: public` at a step that removes what is private.",
    )
    .with_fixed("trust: public"),
    warning("inexact_number", "A whole number that the hash of the definition sees rounded.", "Write it as text."),
    warning(
        "approver_cannot_decide",
        "A named approver is no member, or has no permission to decide. Reported by a server.",
        "Correct `approvers`, or the role of the member.",
    ),
    warning(
        "too_few_approvers",
        "Fewer members can decide than `count` requires. Reported by a server.",
        "Add members in a role that may decide, or lower `count`.",
    ),
    warning(
        "retry_does_not_apply",
        "A retry policy that does not list the class in which the step fails, or that waits longer than the execution may take.",
        "List the class, or remove the policy.",
    )
    .with_example("{type: bash, command: make, retry: {maxAttempts: 3}}")
    .with_fixed("{type: bash, command: make, retry: {maxAttempts: 3, retryOn: [failed]}}"),
    warning(
        "interruption_repeats",
        "A step that creates or sends something, and is repeated if its process dies, because `onInterrupted` is not set.",
        "Write `onInterrupted: ask`, or `onInterrupted: retry` if repeating it does no harm.",
    )
    .with_example("{type: bash, command: npm publish}"),
    warning(
        "gate_never_opens",
        "An approval that no person can decide: its time is shorter than a second, or an approver is written as a reference or as a role.",
        "Correct `ttlMs` or `approvers`.",
    )
    .with_example("approvers: [\"@input.owner\"]"),
    warning(
        "step_never_runs",
        "Steps that no execution reaches: a condition is constant, a `while` does not hold before the first round, or the execution always ends before them.",
        "Remove the steps, or write a condition that refers.",
    )
    .with_example("when: false"),
    warning(
        "edge_condition_ignored",
        "A condition of an edge that never keeps a node from running, because another edge into the node is always taken. One taken edge suffices.",
        "Write the edges without conditions, and the condition as `when` of the node.",
    )
    .with_example("edges: [{from: b, to: d, condition: {exists: true, ref: \"@b.ok\"}}, {from: c, to: d}]")
    .with_fixed("{id: d, type: bash, command: make, when: {exists: true, ref: \"@b.ok\"}}"),
    warning(
        "timeout_above_execution",
        "A time of a step that is longer than the whole execution may take.",
        "Lower it, or raise `constraints.timeoutMs`.",
    ),
    warning(
        "comparison_never_holds",
        "A comparison that no value passes.",
        "Correct the operator or its operand, as the help text says.",
    )
    .with_example("{ref: \"@build.exitCode\", neq: 0}"),
    warning(
        "value_may_be_null",
        "A path below a value that may be null: the step that reads it then fails.",
        "Refer to the inner step, or ask for the value first, as the help text shows.",
    )
    .with_example("{type: code, code: …, input: \"@maybe.total\"}")
    .with_fixed("{type: code, code: …, input: \"@maybe.total\", when: {ref: \"@maybe\"}}"),
    warning(
        "value_may_be_missing",
        "A comparison with a property of the input, or with a variable, that is neither required nor has a default.",
        "Give it a default, require it, or ask for it first with `exists`.",
    )
    .with_example("when: {ref: \"@input.region\", eq: north}")
    .with_fixed("when: {all: [{ref: \"@input.region\", exists: true}, {ref: \"@input.region\", eq: north}]}"),
    warning(
        "reference_is_text",
        "A text that looks like a reference with a typing error, and is given as it stands.",
        "Correct the name, or write `@@` if it is meant as text.",
    )
    .with_example("command: echo \"@biuld.stdout\""),
    warning(
        "denial_not_caught",
        "A step, a branch or a setting for the case that a gate is denied. A denied gate ends the execution as `cancelled`, so it has no effect.",
        "Put the step in `finally`, with a condition on `@ctx.outcome`.",
    )
    .with_example("{id: gate, type: approval, onError: continue}")
    .with_fixed("finally: [{id: notify, type: bash, command: ./notify.sh, when: {ref: \"@ctx.outcome\", eq: denied}}]"),
    warning(
        "rule_matches_nothing",
        "A rule of `policy.effects` that no call of the definition has: neither a class of calls nor the name of one.",
        "Correct the name, or remove the rule.",
    )
    .with_example("policy: {effects: {issues.coment: ask}}"),
    warning(
        "whole_result_in_text",
        "The whole output of a step inside of a text, which becomes JSON there.",
        "Write the field that is meant.",
    )
    .with_example("prompt: \"Deploy @count files?\"")
    .with_fixed("prompt: \"Deploy @count.stdout files?\""),
    warning(
        "unknown_schema_keyword",
        "A word of a JSON Schema that is ignored: a misspelled keyword, a property outside of `properties`, or a required property that is not listed.",
        "Write the keyword that the help text names, or move the property into `properties`.",
    )
    .with_example("inputSchema: {who: string}")
    .with_fixed("inputSchema: {type: object, properties: {who: {type: string}}}"),
    warning(
        "value_not_in_schema",
        "A value that its JSON Schema refuses in every execution: a default, the output of a step by its type, or the input of a workflow that is started.",
        "Correct the value or the schema, as the help text says.",
    )
    .with_example("inputSchema: {properties: {n: {type: integer, default: \"5\"}}}")
    .with_fixed("inputSchema: {properties: {n: {type: integer, default: 5}}}"),
    warning(
        "loop_over_no_list",
        "A `forEach` over a value that is no list. The loop then fails with `not_a_list`.",
        "Make a list of the value in a `code` step, and refer to that step.",
    )
    .with_example("forEach: {ref: \"@ls.stdout\"}")
    .with_fixed("{id: lines, type: code, input: \"@ls.stdout\", code: 'export default (text) => text.trim().split(\"\\n\")'}"),
    warning(
        "unknown_workflow",
        "A step or an agent starts a workflow that is unknown where the definition is: in the folder of its file, or in the organization of a server.",
        "Correct the name, or save the workflow before an execution starts it.",
    ),
    warning(
        "unknown_secret",
        "A secret that is unknown where the definition is.",
        "Correct the name, or set the secret before an execution needs it: `mainspring secret set NAME`, or `secrets` in the settings.",
    ),
    warning(
        "unknown_model",
        "An agent names a model that is not among the configured ones.",
        "Correct the name, or add the model to `models` in the settings.",
    ),
    warning(
        "unknown_tool_server",
        "A tool of a server that is not among the configured ones.",
        "Correct the name, or add the server to `mcpServers` in the settings.",
    ),
    warning(
        "unknown_runner",
        "A `runner` that is not among the configured agents.",
        "Correct the name, or add the agent to `agents` in the settings.",
    ),
    warning(
        "missing_price",
        "A budget limits the cost, and the settings have no price for the model, so its calls fail.",
        "Add the model to `prices` in the settings, or limit tokens.",
    ),
    warning("unused_allow", "An entry of `allow` for a warning that nothing causes.", "Remove the entry."),
];

const fn error(code: &'static str, meaning: &'static str, help: &'static str) -> ErrorCode {
    ErrorCode::new(code, Origin::Diagnostic { severity: Severity::Error }, meaning, help)
}

const fn warning(code: &'static str, meaning: &'static str, help: &'static str) -> ErrorCode {
    ErrorCode::new(code, Origin::Diagnostic { severity: Severity::Warning }, meaning, help)
}
