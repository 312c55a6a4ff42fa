//! Encodes and decodes the items of a frame, and separates payloads from it.

use alloc::{
    collections::{BTreeMap, btree_map::Entry},
    string::{String, ToString},
    vec::Vec,
};

use crate::{
    cbor::{self, CborError, Reader, Writer},
    failure::{Class, Failure},
    hash::Hash,
    instance::Instance,
    key::ExecutionKey,
    plan::PlanBytes,
    record::{Fault, Payload},
    stored_frame::StoredValue,
    value::Value,
};

use super::{payload_hash, stored_value};

/// A type with a binary form. Decoding an encoded item gives an equal item.
pub(super) trait Item: Sized {
    fn write(&self, out: &mut Encoder<'_>);
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError>;
}

/// Initial capacity of the encoder, in bytes: enough for most frames with a few records.
const FRAME_BYTES_USUAL: usize = 512;

/// Encodes items. Payloads are collected beside the frame; an inline encoder writes them among the items.
pub(super) struct Encoder<'a> {
    pub(super) writer: Writer,
    beside: Option<Beside<'a>>,
}

struct Beside<'a> {
    salt_of: &'a dyn Fn(usize) -> [u8; 16],
    /// For each encoded value: its index, its salt, and the hash by which the frame refers to it.
    values: BTreeMap<Vec<u8>, (usize, [u8; 16], Hash)>,
}

impl<'a> Encoder<'a> {
    pub(super) fn salted(salt_of: &'a dyn Fn(usize) -> [u8; 16]) -> Self {
        let writer = Writer::with_capacity(FRAME_BYTES_USUAL);
        Self { writer, beside: Some(Beside { salt_of, values: BTreeMap::new() }) }
    }

    pub(super) fn inline() -> Self {
        Self { writer: Writer::default(), beside: None }
    }

    pub(super) fn finish(self) -> (Vec<u8>, Vec<StoredValue>) {
        let values = self.beside.map(|beside| beside.values).unwrap_or_default();
        let mut placed: Vec<_> =
            values.into_iter().map(|(body, (place, salt, _))| (place, stored_value(salt, body))).collect();
        placed.sort_unstable_by_key(|(place, _)| *place);
        (self.writer.bytes, placed.into_iter().map(|(_, value)| value).collect())
    }

    /// Equal values in a frame share one salt and are stored once, as with a receipt's result that becomes the output
    /// of the step.
    fn payload(&mut self, value: &Value) {
        let Some(beside) = &mut self.beside else { return self.writer.value(value) };
        let body = cbor::encode(value);
        let place = beside.values.len();
        let salt_of = beside.salt_of;
        let (_, _, hash) = match beside.values.entry(body) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(new) => {
                let salt = salt_of(place);
                let hash = payload_hash(&salt, new.key());
                *new.insert((place, salt, hash))
            }
        };
        self.writer.byte_string(&hash.0);
    }
}

/// Decodes items and resolves their payloads.
pub(super) struct Decoder<'a> {
    pub(super) reader: Reader<'a>,
    values: Option<&'a [StoredValue]>,
    /// Hashes referenced so far, with the index of each value. Indexes follow the order of the first reference.
    named: BTreeMap<Hash, usize>,
    /// Indexes of the values decoded since the caller last emptied the list; `None` if the caller does not need them.
    pub(super) touched: Option<Vec<usize>>,
}

impl<'a> Decoder<'a> {
    pub(super) fn salted(frame: &'a [u8], values: &'a [StoredValue]) -> Self {
        Self { reader: Reader::new(frame), values: Some(values), named: BTreeMap::new(), touched: None }
    }

    pub(super) fn inline(bytes: &'a [u8]) -> Self {
        Self { reader: Reader::new(bytes), values: None, named: BTreeMap::new(), touched: None }
    }

    pub(super) fn finish(self) -> Result<(), CborError> {
        if self.values.is_some_and(|values| values.len() != self.named.len()) {
            return Err(self.reader.error("values beside the frame that it does not name"));
        }
        self.reader.end()
    }

    fn payload(&mut self) -> Result<Payload, CborError> {
        let Some(values) = self.values else { return self.reader.value().map(Payload::Known) };
        let hash = Hash(self.reader.byte_array()?);
        let known = self.named.get(&hash).copied();
        let place = known.unwrap_or(self.named.len());
        self.touched.iter_mut().for_each(|touched| touched.push(place));
        let Some(value) = values.get(place) else {
            return Err(self.reader.error("a value that the frame names is not there"));
        };
        let Some(body) = &value.body else {
            self.named.insert(hash, place);
            return Ok(Payload::Erased);
        };
        if known.is_none() {
            if payload_hash(&value.salt, body) != hash {
                return Err(self.reader.error("a value does not have the hash by which the frame names it"));
            }
            self.named.insert(hash, place);
        }
        cbor::decode(body).map(Payload::Known)
    }
}

impl Item for u32 {
    fn write(&self, out: &mut Encoder<'_>) {
        out.writer.unsigned(u64::from(*self));
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        from.reader.unsigned_32()
    }
}

impl Item for u64 {
    fn write(&self, out: &mut Encoder<'_>) {
        out.writer.unsigned(*self);
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        from.reader.unsigned()
    }
}

impl Item for bool {
    fn write(&self, out: &mut Encoder<'_>) {
        out.writer.bool(*self);
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        from.reader.bool()
    }
}

impl Item for String {
    fn write(&self, out: &mut Encoder<'_>) {
        out.writer.text(self);
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        from.reader.text().map(ToString::to_string)
    }
}

impl Item for Hash {
    fn write(&self, out: &mut Encoder<'_>) {
        out.writer.byte_string(&self.0);
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        from.reader.byte_array().map(Self)
    }
}

impl Item for PlanBytes {
    fn write(&self, out: &mut Encoder<'_>) {
        out.writer.byte_string(&self.0);
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        from.reader.byte_string().map(|bytes| Self(bytes.into()))
    }
}

impl Item for ExecutionKey {
    fn write(&self, out: &mut Encoder<'_>) {
        out.writer.byte_string(&self.0);
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        from.reader.byte_array().map(Self)
    }
}

/// User data is always encoded as a payload.
impl Item for Value {
    fn write(&self, out: &mut Encoder<'_>) {
        out.payload(self);
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        from.payload().map(|payload| payload.value().clone())
    }
}

impl Item for Payload {
    fn write(&self, out: &mut Encoder<'_>) {
        out.payload(self.value());
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        from.payload()
    }
}

impl Item for Instance {
    fn write(&self, out: &mut Encoder<'_>) {
        out.writer.array(1 + self.rounds.len());
        self.step.write(out);
        self.rounds.iter().for_each(|round| round.write(out));
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        let parts = from.reader.array()?;
        if parts == 0 {
            return Err(from.reader.error("an instance has a step"));
        }
        let step = u32::read(from)?;
        let rounds = (1..parts).map(|_| u32::read(from)).collect::<Result<_, _>>()?;
        Ok(Self { step, rounds })
    }
}

impl<T: Item> Item for Option<T> {
    fn write(&self, out: &mut Encoder<'_>) {
        match self {
            None => out.writer.null(),
            Some(item) => item.write(out),
        }
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        if from.reader.null() { Ok(None) } else { T::read(from).map(Some) }
    }
}

impl<T: Item> Item for Vec<T> {
    fn write(&self, out: &mut Encoder<'_>) {
        out.writer.array(self.len());
        self.iter().for_each(|item| item.write(out));
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        let items = from.reader.array()?;
        (0..items).map(|_| T::read(from)).collect()
    }
}

impl Item for Class {
    fn write(&self, out: &mut Encoder<'_>) {
        let place = Self::ALL.iter().position(|class| class == self).unwrap_or_default();
        out.writer.unsigned(place as u64);
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        let place = u32::read(from)? as usize;
        Self::ALL.get(place).copied().ok_or_else(|| from.reader.error("an unknown class of failures"))
    }
}

impl Item for Fault {
    fn write(&self, out: &mut Encoder<'_>) {
        out.writer.array(3);
        self.code.write(out);
        self.class.write(out);
        self.text.write(out);
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        if from.reader.array()? != 3 {
            return Err(from.reader.error("a failure has three parts"));
        }
        let (code, class, text) = (Item::read(from)?, Item::read(from)?, Item::read(from)?);
        // A payload of another form would otherwise be read as a failure without a message.
        let is_text = |text: &Value| {
            let fields = text.as_map().map_or(0, |fields| fields.len());
            fields == 2
                && text.get("message").is_some_and(|message| message.as_text().is_some())
                && text.get("details").is_some()
        };
        if matches!(&text, Payload::Known(text) if !is_text(text)) {
            return Err(from.reader.error("a failure has a message and details"));
        }
        Ok(Self { code, class, text })
    }
}

impl Item for Failure {
    fn write(&self, out: &mut Encoder<'_>) {
        Fault::from(self.clone()).write(out);
    }
    fn read(from: &mut Decoder<'_>) -> Result<Self, CborError> {
        Fault::read(from).map(|fault| fault.failure())
    }
}
