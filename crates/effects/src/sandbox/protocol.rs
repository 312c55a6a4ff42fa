//! The messages between a node and a sandbox, as JSON objects. Unknown fields are refused on both sides.

use mainspring_kernel::{
    effect::{Attempt, AttemptFlags, Outcome},
    hash::Hash,
    json::compact,
    key::ExecutionKey,
    secret::SecretUses,
    value::Value,
};

use super::{
    fields::Fields,
    limits::PROTOCOL,
    result::{outcome_of, value_of},
};
use crate::live_progress::OutputSoFar;

/// A message of the node.
pub(super) enum Request {
    /// The first message.
    Hello {
        /// True if scripts get the trace context.
        traces: bool,
    },
    /// Perform an attempt.
    Execute {
        /// The number of the call on this channel.
        id: u64,
        /// The attempt, with the values of its secrets.
        attempt: Box<Attempt>,
    },
    /// End an attempt.
    Cancel {
        /// The number of the call.
        id: u64,
        /// True without a grace period.
        is_forced: bool,
    },
    /// Asks if the sandbox is there.
    Ping,
}

/// A message of the sandbox.
pub(super) enum Reply {
    /// The first message.
    Hello(Hello),
    /// The output so far.
    Progress {
        /// The number of the call.
        id: u64,
        /// The bytes that the script has written.
        output: OutputSoFar,
    },
    /// The end of an attempt.
    Result {
        /// The number of the call.
        id: u64,
        /// The end as a script can have it.
        outcome: Outcome,
    },
    /// The answer to a ping.
    Pong,
}

/// The properties of a sandbox, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hello {
    /// The version of its messages.
    pub(super) protocol: u64,
    /// The release of its executable.
    pub(super) release: String,
    /// `contained`, `uncontained` or `off`.
    pub(super) scripts: String,
    /// An explanation of the mode.
    pub(super) why: String,
}

/// A message as text with its end.
fn line(kind: &str, fields: impl IntoIterator<Item = (&'static str, Value)>) -> Vec<u8> {
    let fields = [("type", Value::from(kind))].into_iter().chain(fields);
    let mut text = compact(&Value::map(fields));
    text.push('\n');
    text.into_bytes()
}

impl Request {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello { traces } => line("hello", [("protocol", PROTOCOL.into()), ("traces", (*traces).into())]),
            Self::Execute { id, attempt } => line("workflow.execute", execute_fields(*id, attempt)),
            Self::Cancel { id, is_forced } => {
                line("workflow.cancel", [("id", (*id).into()), ("force", (*is_forced).into())])
            }
            Self::Ping => line("ping", []),
        }
    }

    pub(super) fn decode(line: &[u8]) -> Result<Self, String> {
        let (kind, mut fields) = Fields::of(line)?;
        let request = match kind.as_str() {
            "hello" => {
                let protocol = fields.number("protocol")?;
                if protocol != PROTOCOL {
                    return Err(format!(
                        "the server speaks version {protocol}, and this executable version {PROTOCOL}"
                    ));
                }
                Self::Hello { traces: fields.boolean("traces")? }
            }
            "workflow.execute" => {
                Self::Execute { id: fields.number("id")?, attempt: Box::new(attempt_of(&mut fields)?) }
            }
            "workflow.cancel" => Self::Cancel { id: fields.number("id")?, is_forced: fields.boolean("force")? },
            "ping" => Self::Ping,
            _ => return Err("a message has an unknown type".into()),
        };
        fields.end()?;
        Ok(request)
    }
}

/// The parts of an attempt that a script needs.
fn execute_fields(id: u64, attempt: &Attempt) -> [(&'static str, Value); 12] {
    [
        ("id", id.into()),
        ("execution", attempt.execution.to_string().into()),
        ("root", attempt.root.to_string().into()),
        ("executionId", attempt.execution_id.as_str().into()),
        ("organization", attempt.organization.as_deref().into()),
        ("workflowId", attempt.workflow_id.as_deref().into()),
        ("stepId", attempt.step.as_str().into()),
        ("attempt", u64::from(attempt.number).into()),
        ("effect", attempt.effect.as_str().into()),
        ("params", attempt.params.clone()),
        ("intent", attempt.intent.hex().into()),
        ("workspace", attempt.workspace.as_deref().into()),
    ]
}

fn attempt_of(fields: &mut Fields) -> Result<Attempt, String> {
    let key = |text: String| ExecutionKey::parse(&text).ok_or("a key of an execution is malformed");
    Ok(Attempt {
        execution: key(fields.text("execution")?)?,
        root: key(fields.text("root")?)?,
        execution_id: fields.text("executionId")?,
        organization: fields.text_or_null("organization")?,
        workflow_id: fields.text_or_null("workflowId")?,
        step: fields.text("stepId")?,
        number: u32::try_from(fields.number("attempt")?).map_err(|_| "`attempt` is too large")?,
        effect: fields.text("effect")?,
        params: fields.take("params")?,
        intent: Hash::parse(&fields.text("intent")?).ok_or("`intent` is no hash")?,
        flags: AttemptFlags::default(),
        handed_out_at: 0,
        workspace: fields.text_or_null("workspace")?,
        secrets: SecretUses::default(),
        progress: None,
    })
}

impl Reply {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Self::Hello(Hello { protocol, release, scripts, why }) => {
                let [release, scripts, why] = [release, scripts, why].map(|text| Value::from(text.as_str()));
                line(
                    "hello",
                    [("protocol", (*protocol).into()), ("release", release), ("scripts", scripts), ("why", why)],
                )
            }
            Self::Progress { id, output: OutputSoFar { stdout_bytes, stderr_bytes, line: last } } => line(
                "workflow.progress",
                [
                    ("id", (*id).into()),
                    ("stdoutBytes", (*stdout_bytes).into()),
                    ("stderrBytes", (*stderr_bytes).into()),
                    ("line", last.as_str().into()),
                ],
            ),
            Self::Result { id, outcome } => {
                line("workflow.result", [("id", (*id).into()), ("outcome", value_of(outcome))])
            }
            Self::Pong => line("pong", []),
        }
    }

    /// Reads a message. A sandbox may be hostile, so the error has none of its text.
    pub(super) fn decode(line: &[u8]) -> Result<Self, String> {
        let (kind, mut fields) = Fields::of(line)?;
        let reply = match kind.as_str() {
            "hello" => Self::Hello(Hello {
                protocol: fields.number("protocol")?,
                release: fields.text("release")?,
                scripts: fields.text("scripts")?,
                why: fields.text("why")?,
            }),
            "workflow.progress" => Self::Progress {
                id: fields.number("id")?,
                output: OutputSoFar {
                    stdout_bytes: fields.number("stdoutBytes")?,
                    stderr_bytes: fields.number("stderrBytes")?,
                    line: fields.text("line")?,
                },
            },
            "workflow.result" => {
                Self::Result { id: fields.number("id")?, outcome: outcome_of(fields.take("outcome")?)? }
            }
            "pong" => Self::Pong,
            _ => return Err("a message has an unknown type".into()),
        };
        fields.end()?;
        Ok(reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt() -> Attempt {
        Attempt {
            execution: ExecutionKey([7; 16]),
            root: ExecutionKey([8; 16]),
            execution_id: "run-1".into(),
            organization: Some("acme".into()),
            workflow_id: None,
            step: "a[0].b".into(),
            number: 3,
            effect: "bash".into(),
            params: Value::map([("command", Value::from("echo 'two\nlines'"))]),
            intent: Hash([9; 32]),
            flags: AttemptFlags::default(),
            handed_out_at: 0,
            workspace: Some("/w".into()),
            secrets: SecretUses::default(),
            progress: None,
        }
    }

    #[test]
    fn requests_are_one_line_and_are_read_back() {
        let line = Request::Execute { id: 4, attempt: Box::new(attempt()) }.encode();
        assert_eq!(line.iter().filter(|byte| **byte == b'\n').count(), 1);
        match Request::decode(line.trim_ascii_end()) {
            Ok(Request::Execute { id: 4, attempt: read }) => assert_eq!(*read, attempt()),
            other => panic!("{:?}", other.err()),
        }
        for request in [Request::Hello { traces: true }, Request::Cancel { id: 1, is_forced: true }, Request::Ping] {
            assert_eq!(
                Request::decode(request.encode().trim_ascii_end()).map(|read| read.encode()),
                Ok(request.encode())
            );
        }
    }

    #[test]
    fn replies_are_read_back() {
        let hello =
            Hello { protocol: 1, release: "1.0.0".into(), scripts: "contained".into(), why: "bubblewrap".into() };
        let output = OutputSoFar { stdout_bytes: 3, stderr_bytes: 0, line: "ok".into() };
        let stopped = Outcome::Stopped(Value::Null);
        let replies = [
            Reply::Hello(hello),
            Reply::Progress { id: 1, output },
            Reply::Result { id: 2, outcome: stopped },
            Reply::Pong,
        ];
        for reply in replies {
            assert_eq!(Reply::decode(reply.encode().trim_ascii_end()).map(|read| read.encode()), Ok(reply.encode()));
        }
    }

    #[test]
    fn anything_else_is_refused() {
        for line in [
            "",
            "Welcome to Ubuntu",
            "[]",
            "{}",
            r#"{"type":"pong","more":1}"#,
            r#"{"type":"workflow.execute"}"#,
            r#"{"type":"workflow.result","id":1}"#,
            r#"{"type":"workflow.result","id":"1","outcome":{"status":"stopped","result":null}}"#,
            r#"{"type":"workflow.result","id":-1,"outcome":{"status":"stopped","result":null}}"#,
            r#"{"type":"workflow.result","id":1,"outcome":{"status":"approved","result":null}}"#,
            r#"{"type":"workflow.progress","id":1,"stdoutBytes":0,"stderrBytes":0,"line":null}"#,
            r#"{"type":"hello","protocol":1,"release":"1","scripts":"off"}"#,
        ] {
            assert!(Reply::decode(line.as_bytes()).is_err(), "{line}");
        }
        let next = r#"{"type":"hello","protocol":2,"traces":false}"#;
        assert!(Request::decode(next.as_bytes()).is_err_and(|why| why.contains("version 2")));
    }
}
