//! The envelope of a receipt: the facts that an executor key signs.
//!
//! A receipt is the outcome of an attempt as an execution received it. Its envelope names the execution, the workflow,
//! the step, the attempt and the call, and binds the receipt to its frame. Everything in it but the signing node
//! follows from the journal, so a verification computes the envelope again. Signatures are stored beside the frames:
//! deciding does not read them.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    cbor::{CborError, Reader, Writer},
    effect::{ChildEnd, Outcome},
    hash::Hash,
    input::Input,
    instance::Instance,
    key::ExecutionKey,
    plan::Plan,
    state::State,
    time::rfc3339,
    value::Value,
};

/// The way by which a receipt reached the node that recorded it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Via {
    /// An executor of the node that recorded it, or the recovery of that node.
    Executor,
    /// The inbox: a child execution, a quarantine, or a node that performed the attempt and lost the partition.
    Inbox,
}

/// A receipt as it is recorded. The values of its payload are in the frame, or in the late receipt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {
    /// The execution that received it.
    pub execution: ExecutionKey,
    /// Hash of the normalized definition.
    pub workflow_hash: Hash,
    /// SHA-256 of the stored plan.
    pub plan_hash: Hash,
    /// Name of the step instance, such as `fetch[3].parse`.
    pub step: String,
    /// Attempt number, from 1.
    pub attempt: u32,
    /// Idempotency key of the step; `None` for a step that is not in progress.
    pub intent: Option<Hash>,
    /// Kind of the call: an effect such as `bash`, or another kind of work that gets a receipt.
    pub effect: String,
    /// `done`, `failed`, `stopped`, `interrupted`, `cancelled` or `reported`; `undecodable` for a
    /// [broken](Self::undecodable) one.
    pub status: &'static str,
    /// The way to the node that recorded it.
    pub via: Via,
    /// Time of the turn, or of the arrival of a late receipt, in milliseconds since 1970.
    pub at: u64,
    /// Sequence and hash of the frame; `None` for a late receipt.
    pub frame: Option<(u64, Hash)>,
}

/// The node that records and signs receipts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Recorder {
    /// Id of its executor key: the SHA-256 of the public key.
    pub key: Hash,
    /// Its name: the name in the cluster, or host and process.
    pub name: String,
    /// The version of Mainspring that it runs.
    pub release: String,
}

impl Via {
    /// The name in documents.
    pub fn name(self) -> &'static str {
        match self {
            Self::Executor => "executor",
            Self::Inbox => "inbox",
        }
    }

    /// The number in stored bytes.
    pub fn number(self) -> u64 {
        match self {
            Self::Executor => 0,
            Self::Inbox => 1,
        }
    }

    /// The way with a number, if there is one.
    pub fn of_number(number: u64) -> Option<Self> {
        [Self::Executor, Self::Inbox].into_iter().find(|via| via.number() == number)
    }
}

impl Receipt {
    /// Returns the receipt of an input, or `None` if the input is another one or the execution has not started.
    /// `intent` is that of the step [before the turn](intent_of).
    pub fn of(
        state: &State,
        input: &Input,
        intent: Option<Hash>,
        via: Via,
        at: u64,
        frame: Option<(u64, Hash)>,
    ) -> Option<Self> {
        let Input::Receipt { instance, attempt, outcome } = input else { return None };
        let (workflow_hash, plan_hash) = state.hashes_at(at)?;
        // An input may name any step; the state machine ignores those that the plan does not have.
        state.plan.steps.get(instance.step as usize)?;
        Some(Self {
            execution: state.key,
            workflow_hash,
            plan_hash,
            step: instance.name(&state.plan),
            attempt: *attempt,
            intent,
            effect: effect_of(&state.plan, instance).into(),
            status: status_of(outcome),
            via,
            at,
            frame,
        })
    }

    /// Describes a late receipt whose body is not the receipt of a step of the plan. Step and attempt are those of the body, if
    /// they can be decoded.
    pub fn undecodable(state: &State, body: &[u8], at: u64) -> Self {
        let head = Input::decode_receipt_head(body);
        let known = head.as_ref().filter(|(instance, _)| state.plan.steps.len() > instance.step as usize);
        let (workflow_hash, plan_hash) = state.hashes_at(at).unwrap_or_default();
        Self {
            execution: state.key,
            workflow_hash,
            plan_hash,
            step: known.map(|(instance, _)| instance.name(&state.plan)).unwrap_or_default(),
            attempt: head.as_ref().map_or(0, |(_, attempt)| *attempt),
            intent: None,
            effect: known.map(|(instance, _)| effect_of(&state.plan, instance).into()).unwrap_or_default(),
            status: "undecodable",
            via: Via::Inbox,
            at,
            frame: None,
        }
    }

    /// Encodes the envelope as deterministic CBOR. `payload` is [that of the frame](payload_of_frame), or
    /// [that of the late receipt](payload_of_late).
    pub fn envelope(&self, payload: Hash, recorder: &Recorder) -> Vec<u8> {
        let mut out = Writer::with_capacity(384);
        out.array(16);
        out.text("mainspring receipt 1");
        out.byte_string(&self.execution.0);
        out.byte_string(&self.workflow_hash.0);
        out.byte_string(&self.plan_hash.0);
        out.text(&self.step);
        out.unsigned(self.attempt.into());
        optional(&mut out, self.intent.as_ref());
        out.text(&self.effect);
        out.text(self.status);
        out.unsigned(self.via.number());
        out.unsigned(self.at);
        match &self.frame {
            Some((sequence, hash)) => {
                out.array(2);
                out.unsigned(*sequence);
                out.byte_string(&hash.0);
            }
            None => out.null(),
        }
        out.byte_string(&payload.0);
        out.byte_string(&recorder.key.0);
        out.text(&recorder.name);
        out.text(&recorder.release);
        out.bytes
    }

    /// Returns the envelope as data for people and programs.
    pub fn to_value(&self, payload: Hash, recorder: &Recorder) -> Value {
        let executor = Value::map([
            ("key", Value::from(recorder.key.prefixed())),
            ("name", recorder.name.as_str().into()),
            ("version", recorder.release.as_str().into()),
        ]);
        let frame = self
            .frame
            .map(|(sequence, hash)| Value::map([("sequence", Value::from(sequence)), ("sha256", hash.hex().into())]));
        Value::map([
            ("at", Value::from(rfc3339(self.at))),
            ("attempt", self.attempt.into()),
            ("effect", self.effect.as_str().into()),
            ("executionKey", self.execution.to_string().into()),
            ("executor", executor),
            ("frame", frame.into()),
            ("intent", self.intent.map(|intent| intent.hex()).into()),
            ("payloadSha256", payload.hex().into()),
            ("planHash", self.plan_hash.prefixed().into()),
            ("status", self.status.into()),
            ("step", self.step.as_str().into()),
            ("via", self.via.name().into()),
            ("workflowHash", self.workflow_hash.prefixed().into()),
        ])
    }
}

/// Returns the idempotency key of the step that a receipt is for. It is read before the turn, which may drop the step.
pub fn intent_of(state: &State, input: &Input) -> Option<Hash> {
    let Input::Receipt { instance, .. } = input else { return None };
    state.steps.get(instance)?.intent
}

/// Returns the payload hash of a receipt: SHA-256 of the frame's input, its fifth part. Values are in it as salted
/// hashes, so the hash stays valid when a value is erased, and does not help to guess it.
///
/// # Errors
/// Fails if the bytes are no frame.
pub fn payload_of_frame(frame: &[u8]) -> Result<Hash, CborError> {
    let mut from = Reader::new(frame);
    if from.array()? != 7 {
        return Err(from.error("a frame has seven parts"));
    }
    (0..4).try_for_each(|_| from.skip())?;
    Ok(Hash::of(from.raw()?))
}

/// Returns the payload hash of a late receipt: SHA-256 of its body. The signature is erased together with the body.
pub fn payload_of_late(body: &[u8]) -> Hash {
    Hash::of(body)
}

/// Returns the name of an outcome.
pub fn status_of(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Done(_)
        | Outcome::Child { end: ChildEnd::Done(_), .. }
        | Outcome::ChildWithUsage { end: ChildEnd::Done(_), .. } => "done",
        Outcome::Failed(_)
        | Outcome::Child { end: ChildEnd::Failed(_), .. }
        | Outcome::ChildWithUsage { end: ChildEnd::Failed(_), .. } => "failed",
        Outcome::Cancelled(_)
        | Outcome::Child { end: ChildEnd::Cancelled(_), .. }
        | Outcome::ChildWithUsage { end: ChildEnd::Cancelled(_), .. } => "cancelled",
        Outcome::Stopped(_) => "stopped",
        Outcome::Interrupted => "interrupted",
        Outcome::Reported(_) => "reported",
    }
}

/// Returns the kind of call of a step as its plan says. The parameters of an agent's tool call, which say more, can be
/// erased.
fn effect_of<'p>(plan: &'p Plan, instance: &Instance) -> &'p str {
    plan.step(instance.step).work.kind()
}

fn optional(out: &mut Writer, hash: Option<&Hash>) {
    match hash {
        Some(hash) => out.byte_string(&hash.0),
        None => out.null(),
    }
}
