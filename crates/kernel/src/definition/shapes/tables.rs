//! The fields of outputs by the type of the step.

/// The fields of an output, each with its JSON type; empty for any type.
pub(super) type Fixed = &'static [(&'static str, &'static str)];

/// The field of an output that a text usually means, by the kind of its step.
pub(super) const IN_TEXT: [(&str, &str); 4] =
    [("bash", "stdout"), ("http", "body"), ("agent", "text"), ("approval", "decision")];

/// The output of a script. The lengths are there only if a stream was cut.
pub(super) const SCRIPT: Fixed = &[
    ("exitCode", "integer"),
    ("stdout", "string"),
    ("stderr", "string"),
    ("durationMs", "integer"),
    ("truncated", "boolean"),
    ("stdoutBytes", "integer"),
    ("stderrBytes", "integer"),
    ("stillRunning", "boolean"),
];

/// The fields of a script's output that are there only in some cases, each with the case.
pub(super) const RARE: [(&str, &str); 3] = [
    ("stdoutBytes", "the output was cut"),
    ("stderrBytes", "the error output was cut"),
    ("stillRunning", "processes of the script were left running"),
];

/// The output of a request.
pub(super) const RESPONSE: Fixed = &[
    ("status", "integer"),
    ("headers", "object"),
    ("body", ""),
    ("url", "string"),
    ("durationMs", "integer"),
    ("redirects", "integer"),
    ("truncated", "boolean"),
];

/// The output of an agent with turns.
pub(super) const ANSWER: Fixed =
    &[("text", "string"), ("value", ""), ("usage", "object"), ("turns", ""), ("stopReason", "string")];

/// The output of an external agent.
pub(super) const RUN: Fixed = &[
    ("text", "string"),
    ("value", ""),
    ("usage", "object"),
    ("turns", ""),
    ("stopReason", "string"),
    ("toolCalls", "array"),
];

/// The output of a message to a conversation. The response is a text, or null.
pub(super) const SENT: Fixed = &[("conversation", "string"), ("response", "")];

/// The output of an approval.
pub(super) const DECISION: Fixed = &[("decision", "string"), ("by", "array"), ("at", "string")];

/// The output of a subworkflow that is not waited for.
pub(super) const DETACHED: Fixed = &[("executionId", "string")];

/// `@ctx`.
pub(super) const CONTEXT: Fixed =
    &[("executionId", "string"), ("attempt", "integer"), ("now", "string"), ("outcome", "string")];

/// Fields of outputs in other languages, with the field that means the same.
pub(super) const FIELDS: [(&str, &str); 14] = [
    ("output", "stdout"),
    ("result", "stdout"),
    ("out", "stdout"),
    ("code", "exitCode"),
    ("returncode", "exitCode"),
    ("rc", "exitCode"),
    ("statusCode", "status"),
    ("json", "body"),
    ("data", "body"),
    ("response", "body"),
    ("content", "text"),
    ("message", "text"),
    ("approved", "decision"),
    ("approver", "by"),
];
