//! Signed statements: in-toto statements in DSSE envelopes (in-toto Attestation Framework 1.0, DSSE 1.0.2).

use base64::{Engine, engine::general_purpose::STANDARD};
use mainspring_kernel::{json, value::Value};

use crate::{
    limits::STATEMENT_BYTES_MAX,
    signing::{PublicKey, SigningKey},
};

/// The payload type of in-toto statements.
pub const PAYLOAD_TYPE: &str = "application/vnd.in-toto+json";

/// The `_type` of a statement.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";

/// A subject: a name and the SHA-256 of its content, in hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// Name of the subject.
    pub name: String,
    /// SHA-256, 64 hexadecimal digits.
    pub sha256: String,
}

/// A statement whose signature was checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Statement {
    /// Names with digests, in the order of the statement.
    pub subjects: Vec<Subject>,
    /// A URI that says how to read the predicate.
    pub predicate_type: String,
    /// Data about the subjects.
    pub predicate: Value,
    /// The key that signed it.
    pub key: PublicKey,
}

/// Returns the bytes that are signed: the pre-authentication encoding of DSSE.
fn pre_authentication(payload: &[u8]) -> Vec<u8> {
    let mut bytes = format!("DSSEv1 {} {PAYLOAD_TYPE} {} ", PAYLOAD_TYPE.len(), payload.len()).into_bytes();
    bytes.extend_from_slice(payload);
    bytes
}

/// Signs a statement. Returns the envelope as one line of canonical JSON.
pub fn sign(key: &SigningKey, subjects: &[Subject], predicate_type: &str, predicate: Value) -> Vec<u8> {
    let subject = |subject: &Subject| {
        let digest = Value::map([("sha256", Value::from(subject.sha256.as_str()))]);
        Value::map([("name", Value::from(subject.name.as_str())), ("digest", digest)])
    };
    let statement = Value::map([
        ("_type", Value::from(STATEMENT_TYPE)),
        ("subject", subjects.iter().map(subject).collect::<Vec<_>>().into()),
        ("predicateType", predicate_type.into()),
        ("predicate", predicate),
    ]);
    let payload = json::canonical(&statement);
    let signature = key.sign(&pre_authentication(payload.as_bytes()));
    let signature = Value::map([("keyid", Value::from(key.public().id())), ("sig", STANDARD.encode(signature).into())]);
    let envelope = Value::map([
        ("payload", Value::from(STANDARD.encode(payload))),
        ("payloadType", PAYLOAD_TYPE.into()),
        ("signatures", vec![signature].into()),
    ]);
    let mut line = json::canonical(&envelope).into_bytes();
    line.push(b'\n');
    line
}

/// Reads an envelope, and checks that the key has signed it.
///
/// # Errors
/// Says what is wrong with the envelope.
pub fn open(bytes: &[u8], key: PublicKey) -> Result<Statement, String> {
    if bytes.len() > STATEMENT_BYTES_MAX {
        return Err(format!("the envelope has more than {STATEMENT_BYTES_MAX} bytes"));
    }
    let envelope = json::value(bytes).map_err(|error| format!("the envelope is not JSON: {error}"))?;
    let mut canonical = json::canonical(&envelope).into_bytes();
    canonical.push(b'\n');
    if canonical != bytes {
        return Err("the envelope is not one line of canonical JSON".into());
    }
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_text).map(String::from);
    if text(&envelope, "payloadType").as_deref() != Some(PAYLOAD_TYPE) {
        return Err(format!("the payload type is not {PAYLOAD_TYPE}"));
    }
    let decoded = |text: Option<String>| text.and_then(|text| STANDARD.decode(text).ok());
    let payload = decoded(text(&envelope, "payload")).ok_or("the payload is not base64")?;
    let signatures = envelope.get("signatures").and_then(Value::as_list).unwrap_or_default();
    let [signature] = signatures else { return Err(format!("there are {} signatures, and not one", signatures.len())) };
    if text(signature, "keyid") != Some(key.id()) {
        return Err(format!("it is not signed with the key {}", key.id()));
    }
    let signature = decoded(text(signature, "sig")).ok_or("the signature is not base64")?;
    if !key.has_signed(&pre_authentication(&payload), &signature) {
        return Err(format!("the signature is not that of the key {}", key.id()));
    }
    let statement = json::value(&payload).map_err(|error| format!("the statement is not JSON: {error}"))?;
    if text(&statement, "_type").as_deref() != Some(STATEMENT_TYPE) {
        return Err("the payload is no in-toto statement".into());
    }
    let subjects = statement.get("subject").and_then(Value::as_list).unwrap_or_default();
    let subject = |subject: &Value| {
        let sha256 = subject.get("digest").and_then(|digest| text(digest, "sha256"));
        Some(Subject { name: text(subject, "name")?, sha256: sha256? })
    };
    let subjects: Option<Vec<Subject>> = subjects.iter().map(subject).collect();
    Ok(Statement {
        subjects: subjects.ok_or("a subject has no name or no SHA-256")?,
        predicate_type: text(&statement, "predicateType").unwrap_or_default(),
        predicate: statement.get("predicate").cloned().unwrap_or_default(),
        key,
    })
}
