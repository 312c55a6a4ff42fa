//! Pins: signed lists of the heads of a store. A pin that is kept elsewhere shows later that a store was rewound.

use mainspring_kernel::{hash::Hash, key::ExecutionKey, value::Value};

use crate::{
    dsse::{self, Subject},
    limits::HEADS_MAX,
    signing::{PublicKey, SigningKey},
};

/// The predicate type of a pin.
pub const PIN_TYPE: &str = "https://mainspring.dev/evidence/pin/v1";

/// The end of a journal or of an audit log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Head {
    /// The journal or log.
    pub of: HeadOf,
    /// Sequence of the last frame, or number of the last entry.
    pub number: u64,
    /// SHA-256 of that frame or entry.
    pub hash: Hash,
}

/// A hash chain of a store.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum HeadOf {
    /// The journal of an execution.
    Execution(ExecutionKey),
    /// The audit log of an organization.
    AuditLog(String),
}

impl HeadOf {
    /// Returns the name in a pin: `execution/KEY` or `audit/ORGANIZATION`.
    pub fn name(&self) -> String {
        match self {
            Self::Execution(key) => format!("execution/{key}"),
            Self::AuditLog(organization) => format!("audit/{organization}"),
        }
    }

    fn parse(name: &str) -> Option<Self> {
        match name.split_once('/')? {
            ("execution", key) => ExecutionKey::parse(key).map(Self::Execution),
            ("audit", organization) => Some(Self::AuditLog(organization.into())),
            _ => None,
        }
    }
}

/// Signs the heads of a store. `at` is the time of the statement, RFC 3339.
///
/// # Errors
/// Fails for more than [`HEADS_MAX`] heads.
pub fn write(heads: &[Head], at: &str, key: &SigningKey) -> Result<Vec<u8>, String> {
    if heads.len() > HEADS_MAX {
        return Err(format!("the store has more than {HEADS_MAX} journals and audit logs"));
    }
    let subject = |head: &Head| Subject { name: head.of.name(), sha256: head.hash.hex() };
    let subjects: Vec<Subject> = heads.iter().map(subject).collect();
    let numbers = heads.iter().map(|head| Value::from(head.number)).collect::<Vec<_>>();
    let predicate = Value::map([("at", Value::from(at)), ("numbers", numbers.into())]);
    Ok(dsse::sign(key, &subjects, PIN_TYPE, predicate))
}

/// Reads a pin: its time and its heads.
///
/// # Errors
/// Says what is wrong with it.
pub fn read(envelope: &[u8], key: PublicKey) -> Result<(String, Vec<Head>), String> {
    let statement = dsse::open(envelope, key)?;
    if statement.predicate_type != PIN_TYPE {
        return Err("it is a statement of another type".into());
    }
    let numbers = statement.predicate.get("numbers").and_then(Value::as_list).unwrap_or_default();
    if numbers.len() != statement.subjects.len() {
        return Err("it does not have a number for each head".into());
    }
    let head = |(subject, number): (&Subject, &Value)| {
        let hash = Hash::parse(&format!("sha256:{}", subject.sha256))?;
        Some(Head { of: HeadOf::parse(&subject.name)?, number: number.as_u64()?, hash })
    };
    let heads: Option<Vec<Head>> = statement.subjects.iter().zip(numbers).map(head).collect();
    let at = statement.predicate.get("at").and_then(Value::as_text).unwrap_or_default();
    Ok((at.into(), heads.ok_or("one of its heads is unreadable")?))
}
