//! Encodes spans as an `ExportTraceServiceRequest` of OTLP 1 in protobuf.
//!
//! The encoder is written by hand, for six messages with stable field numbers
//! (<https://opentelemetry.io/docs/specs/otlp/>): the library's types would first copy every span into a tree of
//! strings. A test decodes the result with that library.

use std::sync::Arc;

use mainspring_engine::trace_spans::{Span, Spanned};
use mainspring_kernel::state::ExecutionStatus;

/// Nanoseconds in a millisecond.
const NANOS: u64 = 1_000_000;

/// Values of `SpanKind`.
const INTERNAL: u64 = 1;
const CLIENT: u64 = 3;

/// A value of `StatusCode`.
const ERROR: u64 = 2;

/// `Span.flags`: sampled, and the parent is known not to be remote.
const FLAGS: u32 = 0x101;

/// Encodes the `Resource`, which is equal in all requests.
pub(super) fn resource(attributes: &[(String, String)]) -> Vec<u8> {
    let mut out = Vec::new();
    attributes.iter().for_each(|(key, value)| attribute(&mut out, 1, key, Any::Text(value)));
    out
}

/// Encodes a request.
pub(super) fn request(resource: &[u8], batch: &[Arc<Span>]) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + 512 * batch.len());
    message(&mut out, 1, |out| {
        bytes(out, 1, resource);
        message(out, 2, |out| {
            message(out, 1, |out| {
                bytes(out, 1, b"mainspring");
                bytes(out, 2, env!("CARGO_PKG_VERSION").as_bytes());
            });
            batch.iter().for_each(|one| message(out, 2, |out| span(out, one)));
        });
    });
    out
}

fn span(out: &mut Vec<u8>, span: &Span) {
    let plan = &span.plan;
    let workflow = plan.name.as_deref();
    bytes(out, 1, &span.trace.0);
    bytes(out, 2, &span.id.0);
    if let Some(parent) = &span.parent {
        bytes(out, 4, &parent.0);
    }
    let (name, kind) = match &span.what {
        Spanned::Execution(_) => (workflow.unwrap_or("workflow"), INTERNAL),
        Spanned::Attempt { instance, .. } => {
            let is_call = plan.step(instance.step).work.kind() == "http";
            (plan.id(instance.step), if is_call { CLIENT } else { INTERNAL })
        }
    };
    bytes(out, 5, name.as_bytes());
    number(out, 6, kind);
    fixed(out, 7, span.began_at.saturating_mul(NANOS));
    fixed(out, 8, span.ended_at.saturating_mul(NANOS));
    attribute(out, 9, "mainspring.execution.id", Any::Text(&span.execution_id));
    attribute(out, 9, "mainspring.execution.key", Any::Text(&span.execution.to_string()));
    if let Some(workflow) = workflow {
        attribute(out, 9, "mainspring.workflow", Any::Text(workflow));
    }
    match &span.what {
        Spanned::Execution(status) => attribute(out, 9, "mainspring.status", Any::Text(status.name())),
        Spanned::Attempt { instance, number, outcome } => {
            attribute(out, 9, "mainspring.step", Any::Text(&instance.name(plan)));
            attribute(out, 9, "mainspring.effect", Any::Text(plan.step(instance.step).work.kind()));
            attribute(out, 9, "mainspring.attempt", Any::Number(u64::from(*number)));
            attribute(out, 9, "mainspring.outcome", Any::Text(outcome));
        }
    }
    if let Some((code, class)) = &span.fault {
        attribute(out, 9, "error.type", Any::Text(code));
        attribute(out, 9, "mainspring.error.class", Any::Text(class.name()));
    }
    if span.fault.is_some() || span.what == Spanned::Execution(ExecutionStatus::Failed) {
        let code = span.fault.as_ref().map_or("", |(code, _)| code);
        message(out, 15, |out| {
            bytes(out, 2, code.as_bytes());
            number(out, 3, ERROR);
        });
    }
    tag(out, 16, 5);
    out.extend_from_slice(&FLAGS.to_le_bytes());
}

enum Any<'a> {
    Text(&'a str),
    Number(u64),
}

fn attribute(out: &mut Vec<u8>, field: u32, key: &str, value: Any<'_>) {
    message(out, field, |out| {
        bytes(out, 1, key.as_bytes());
        message(out, 2, |out| match value {
            Any::Text(text) => bytes(out, 1, text.as_bytes()),
            Any::Number(value) => number(out, 3, value),
        });
    });
}

/// Encodes a nested message. Its length precedes it but is known afterwards, so the bytes are rotated.
fn message(out: &mut Vec<u8>, field: u32, body: impl FnOnce(&mut Vec<u8>)) {
    tag(out, field, 2);
    let begin = out.len();
    body(out);
    let length = (out.len() - begin) as u64;
    let end = out.len();
    varint(out, length);
    let length_bytes = out.len() - end;
    out[begin..].rotate_right(length_bytes);
}

fn bytes(out: &mut Vec<u8>, field: u32, bytes: &[u8]) {
    tag(out, field, 2);
    varint(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

fn number(out: &mut Vec<u8>, field: u32, value: u64) {
    tag(out, field, 0);
    varint(out, value);
}

fn fixed(out: &mut Vec<u8>, field: u32, value: u64) {
    tag(out, field, 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn tag(out: &mut Vec<u8>, field: u32, wire: u64) {
    varint(out, (u64::from(field) << 3) | wire);
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}
