//! Frames: the binary form of turns and the unit of durability.
//!
//! A frame holds the input and the records of a turn and the hash of the frame before it. It is deterministic CBOR and
//! does not depend on the node that writes it. Payloads are stored beside the frame, which refers to them by salted
//! hash. Erasing a payload therefore leaves the hash chain valid.

mod codec;
mod tags;

use alloc::{collections::BTreeSet, string::String, vec::Vec};
use core::fmt;

use crate::{
    cbor::{CborError, Reader},
    evaluation::Evaluated,
    hash::Hash,
    input::Input,
    instance::Instance,
    record::Record,
    stored_frame::{StoredFrame, StoredValue},
};

use codec::{Decoder, Encoder, Item};

/// Version of the frames that this build writes. Each frame states its version.
pub const FRAME_VERSION: u32 = 1;

/// The tag of [`Input::Receipt`], as `tags.rs` has it.
const RECEIPT_TAG: u64 = 1;

/// One turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Position in the journal, from 0.
    pub sequence: u64,
    /// Hash of the preceding frame; all zeros for the first.
    pub before: Hash,
    /// Time of the turn, in milliseconds since 1970.
    pub now: u64,
    /// The input of the turn.
    pub input: Input,
    /// Results of evaluations, in the order of the requests.
    pub results: Vec<Evaluated>,
    /// Records of the turn, in order.
    pub records: Vec<Record>,
}

/// The error for a stored frame that cannot be decoded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameError {
    /// Description of the error.
    pub message: String,
}

impl fmt::Display for FrameError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.message)
    }
}

impl From<CborError> for FrameError {
    fn from(error: CborError) -> Self {
        Self { message: alloc::format!("{error}") }
    }
}

impl Frame {
    /// Encodes the frame and returns it with its hash. `salt_of` returns the salt of a payload, given its index among
    /// the values of the frame.
    pub fn store(&self, salt_of: &dyn Fn(usize) -> [u8; 16]) -> (StoredFrame, Hash) {
        let mut out = Encoder::salted(salt_of);
        out.writer.array(7);
        FRAME_VERSION.write(&mut out);
        self.sequence.write(&mut out);
        self.before.write(&mut out);
        self.now.write(&mut out);
        self.input.write(&mut out);
        self.results.write(&mut out);
        self.records.write(&mut out);
        let (frame, values) = out.finish();
        let hash = Hash::of(&frame);
        (StoredFrame { sequence: self.sequence, frame, values }, hash)
    }

    /// Decodes a stored frame and checks the hash of each value. Erased values become erased payloads.
    pub fn read(stored: &StoredFrame) -> Result<(Self, Hash), FrameError> {
        let mut from = Decoder::salted(&stored.frame, &stored.values);
        if from.reader.array()? != 7 {
            return Err(from.reader.error("a frame has seven parts").into());
        }
        let version = u32::read(&mut from)?;
        if version != FRAME_VERSION {
            let message = alloc::format!("the frame has version {version} and this build reads {FRAME_VERSION}");
            return Err(FrameError { message });
        }
        let sequence = u64::read(&mut from)?;
        let before = Hash::read(&mut from)?;
        let now = u64::read(&mut from)?;
        let input = Input::read(&mut from)?;
        let results = Vec::<Evaluated>::read(&mut from)?;
        let records = Vec::<Record>::read(&mut from)?;
        from.finish()?;
        if sequence != stored.sequence {
            let message = alloc::format!("the frame says that it is number {sequence}");
            return Err(FrameError { message });
        }
        Ok((Self { sequence, before, now, input, results, records }, Hash::of(&stored.frame)))
    }

    /// Returns the version of `decide` that the first frame of a journal pins, even if this build cannot decode the
    /// rest because a newer release wrote it. The result relies only on what never changes: a frame has seven parts,
    /// and `Started` begins with the same fields.
    pub fn decide_version(first: &StoredFrame) -> Option<u32> {
        let mut from = Reader::new(&first.frame);
        (from.array().ok()? == 7).then_some(())?;
        (0..6).try_for_each(|_| from.skip()).ok()?;
        (from.array().ok()? > 0 && from.array().ok()? > 4 && from.unsigned().ok()? == 0).then_some(())?;
        (0..3).try_for_each(|_| from.skip()).ok()?;
        from.unsigned_32().ok()
    }

    /// Returns the indexes of the values that belong to the input or to records that the callbacks select. Values of
    /// evaluation results are included if any record is selected, because they cannot be attributed to single records.
    pub fn places(
        stored: &StoredFrame,
        is_input: impl Fn(&Input) -> bool,
        is_record: impl Fn(&Record) -> bool,
    ) -> Result<BTreeSet<usize>, FrameError> {
        let mut from = Decoder::salted(&stored.frame, &stored.values);
        from.touched = Some(Vec::new());
        let touched = |from: &mut Decoder<'_>| from.touched.replace(Vec::new()).unwrap_or_default();
        if from.reader.array()? != 7 {
            return Err(from.reader.error("a frame has seven parts").into());
        }
        (0..4).try_for_each(|_| from.reader.skip())?;
        let mut places = BTreeSet::new();
        let input = Input::read(&mut from)?;
        let of_input = touched(&mut from);
        if is_input(&input) {
            places.extend(of_input);
        }
        Vec::<Evaluated>::read(&mut from)?;
        let of_results = touched(&mut from);
        let mut is_any = false;
        for _ in 0..from.reader.array()? {
            let record = Record::read(&mut from)?;
            let of_record = touched(&mut from);
            if is_record(&record) {
                is_any = true;
                places.extend(of_record);
            }
        }
        if is_any {
            places.extend(of_results);
        }
        Ok(places)
    }

    /// Returns the indexes of the erased values of a stored frame.
    pub fn erased(stored: &StoredFrame) -> impl Iterator<Item = usize> + '_ {
        stored.values.iter().enumerate().filter(|(_, value)| value.body.is_none()).map(|(place, _)| place)
    }
}

impl Input {
    /// Encodes the input alone, with its payloads inline. Inbox messages use this form.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::inline();
        self.write(&mut out);
        out.finish().0
    }

    /// Decodes the result of [`encode`](Self::encode).
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let mut from = Decoder::inline(bytes);
        let input = Self::read(&mut from)?;
        from.finish()?;
        Ok(input)
    }

    /// Returns the step instance and the attempt of an encoded receipt whose outcome cannot be decoded. `None` for other
    /// inputs, and if that much cannot be decoded either.
    pub fn decode_receipt_head(bytes: &[u8]) -> Option<(Instance, u32)> {
        let mut from = Decoder::inline(bytes);
        let is_receipt = from.reader.array().ok()? == 4 && from.reader.unsigned().ok()? == RECEIPT_TAG;
        is_receipt.then_some(())?;
        Some((Item::read(&mut from).ok()?, Item::read(&mut from).ok()?))
    }
}

/// Returns the hash by which a frame refers to a payload.
fn payload_hash(salt: &[u8; 16], body: &[u8]) -> Hash {
    Hash::of_parts(&[salt, body])
}

fn stored_value(salt: [u8; 16], body: Vec<u8>) -> StoredValue {
    StoredValue { salt, body: Some(body) }
}

#[cfg(test)]
mod tests;
