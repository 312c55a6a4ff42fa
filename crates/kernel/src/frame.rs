//! A turn as it is written: its input, its records, the hash of what was before. The unit of durability.
//!
//! Frames are deterministic CBOR and name no node. The chain runs over them; payloads stand in them as salted hashes,
//! with the values beside, so that a value can be erased and the chain still holds.

mod item;
mod table;

use alloc::{collections::BTreeSet, string::String, vec::Vec};
use core::fmt;

use crate::{
    cbor::{CborError, Reader},
    evaluation::Evaluated,
    hash::Hash,
    input::Input,
    record::Record,
    stored::{StoredFrame, StoredValue},
};

use item::{Decoder, Encoder, Item};

/// The form of the frames that this build writes.
pub const FRAME_VERSION: u32 = 1;

/// One turn.
#[derive(Debug, Clone, PartialEq)]
pub struct Frame {
    /// Place in the journal, from 0.
    pub sequence: u64,
    /// The hash of the frame before; zeros for the first.
    pub before: Hash,
    /// The time of the turn, in milliseconds since 1970.
    pub now: u64,
    /// What was taken in.
    pub input: Input,
    /// What evaluations gave, in the order in which they were asked for.
    pub results: Vec<Evaluated>,
    /// What came of it.
    pub records: Vec<Record>,
}

/// A stored frame that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameError {
    /// What is wrong with it.
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
    /// The stored form and its hash. `salt_of` gives the salt of each payload by its place among the frame's values.
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

    /// Reads a stored frame, and checks every value against its hash. Where the values were erased, the payloads say so.
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

    /// The version of what is decided that a journal's first frame names, also where this build cannot read the rest of
    /// that frame: a newer release may have put into it what is unknown here. It is found by what stays as it is: the
    /// frame's seven parts, and the beginning of the record `Started`.
    pub fn decide_version(first: &StoredFrame) -> Option<u32> {
        let mut from = Reader::new(&first.frame);
        (from.array().ok()? == 7).then_some(())?;
        (0..6).try_for_each(|_| from.skip()).ok()?;
        (from.array().ok()? > 0 && from.array().ok()? > 4 && from.unsigned().ok()? == 0).then_some(())?;
        (0..3).try_for_each(|_| from.skip()).ok()?;
        from.unsigned_32().ok()
    }

    /// Places among a stored frame's values that stand in an input or in records for which the caller says so. What
    /// evaluations gave counts with any record that does: it cannot be told apart.
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

    /// Places among a stored frame's values that were erased.
    pub fn erased(stored: &StoredFrame) -> impl Iterator<Item = usize> + '_ {
        stored.values.iter().enumerate().filter(|(_, value)| value.body.is_none()).map(|(place, _)| place)
    }
}

impl Input {
    /// The input by itself, with its payloads in it: how it lies in an inbox.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Encoder::inline();
        self.write(&mut out);
        out.finish().0
    }

    /// Reads what [`encode`](Self::encode) wrote.
    pub fn decode(bytes: &[u8]) -> Result<Self, FrameError> {
        let mut from = Decoder::inline(bytes);
        let input = Self::read(&mut from)?;
        from.finish()?;
        Ok(input)
    }
}

/// The hash by which a frame names a payload.
fn payload_hash(salt: &[u8; 16], body: &[u8]) -> Hash {
    Hash::of_parts(&[salt, body])
}

fn stored_value(salt: [u8; 16], body: Vec<u8>) -> StoredValue {
    StoredValue { salt, body: Some(body) }
}

#[cfg(test)]
mod tests;
