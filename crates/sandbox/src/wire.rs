//! The protocol between a process and its worker: length-prefixed frames, parsed without trust in the sender.
//!
//! Both ends are the same build of the same program, so the format has no versions. A frame is its length in four
//! bytes, little-endian, and that many bytes. Inside, numbers have eight bytes, a text is its length and UTF-8, an enum
//! is one byte, a list is its length and its entries.

use crate::fault::{Fault, FaultKind, Mismatch};
use crate::limits::{FRAME_BYTES_MAX, Limits};
use crate::request::{Call, Function, Request, Validate};
use crate::response::{Console, Level, Line, Response};
use std::io::{self, Read, Write};

/// The byte that a worker sends when it has read a request, before it parses it.
pub(crate) const TAKEN: u8 = 0x51;

/// Writes a frame, which may have at most [`FRAME_BYTES_MAX`] bytes.
pub(crate) fn write_frame(writer: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    let length = u32::try_from(bytes.len()).ok().filter(|_| bytes.len() <= FRAME_BYTES_MAX);
    let length = length.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidInput, "the message is too long"))?;
    // One write for a short frame, so that the reader wakes up once.
    let mut frame = Vec::with_capacity(4 + bytes.len());
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(bytes);
    writer.write_all(&frame)
}

/// Reads one frame; `None` at the end of the stream, if it ends between frames.
pub(crate) fn read_frame(reader: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut length = [0; 4];
    let mut filled = 0;
    while filled < length.len() {
        match reader.read(&mut length[filled..]) {
            Ok(0) if filled == 0 => return Ok(None),
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let length = u32::from_le_bytes(length) as usize;
    if length > FRAME_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a frame is longer than any message"));
    }
    let mut bytes = vec![0; length];
    reader.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

/// A value with an encoding in this protocol.
pub(crate) trait Message: Sized {
    fn put(&self, out: &mut Vec<u8>);
    /// Decodes a value; `None` for bytes that [`put`](Self::put) never writes.
    fn take(bytes: &mut &[u8]) -> Option<Self>;

    fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    /// Decodes a value that uses all of the bytes.
    fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let message = Self::take(&mut bytes)?;
        bytes.is_empty().then_some(message)
    }
}

impl Message for u8 {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }
    fn take(bytes: &mut &[u8]) -> Option<u8> {
        let (first, rest) = bytes.split_first()?;
        *bytes = rest;
        Some(*first)
    }
}

impl Message for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn take(bytes: &mut &[u8]) -> Option<bool> {
        match u8::take(bytes)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Message for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_le_bytes());
    }
    fn take(bytes: &mut &[u8]) -> Option<u64> {
        let (first, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(u64::from_le_bytes(*first))
    }
}

impl Message for u32 {
    fn put(&self, out: &mut Vec<u8>) {
        u64::from(*self).put(out);
    }
    fn take(bytes: &mut &[u8]) -> Option<u32> {
        u32::try_from(u64::take(bytes)?).ok()
    }
}

impl Message for usize {
    fn put(&self, out: &mut Vec<u8>) {
        (*self as u64).put(out);
    }
    fn take(bytes: &mut &[u8]) -> Option<usize> {
        usize::try_from(u64::take(bytes)?).ok()
    }
}

impl Message for i64 {
    fn put(&self, out: &mut Vec<u8>) {
        self.cast_unsigned().put(out);
    }
    fn take(bytes: &mut &[u8]) -> Option<i64> {
        Some(u64::take(bytes)?.cast_signed())
    }
}

impl Message for [u8; 32] {
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
    fn take(bytes: &mut &[u8]) -> Option<[u8; 32]> {
        let (first, rest) = bytes.split_first_chunk()?;
        *bytes = rest;
        Some(*first)
    }
}

impl Message for String {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn take(bytes: &mut &[u8]) -> Option<String> {
        let length = usize::take(bytes)?;
        let (first, rest) = bytes.split_at_checked(length)?;
        *bytes = rest;
        Some(std::str::from_utf8(first).ok()?.to_owned())
    }
}

impl<T: Message> Message for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        if let Some(value) = self {
            value.put(out);
        }
    }
    fn take(bytes: &mut &[u8]) -> Option<Option<T>> {
        Some(if bool::take(bytes)? { Some(T::take(bytes)?) } else { None })
    }
}

impl<T: Message> Message for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.len().put(out);
        self.iter().for_each(|value| value.put(out));
    }
    fn take(bytes: &mut &[u8]) -> Option<Vec<T>> {
        // Nothing is allocated for a length that was only claimed.
        let length = usize::take(bytes)?;
        (0..length).map(|_| T::take(bytes)).collect()
    }
}

/// Encodes a struct as its fields, in this order.
macro_rules! crosses_as_fields {
    ($($name:ident { $($field:ident),* })*) => {$(
        impl Message for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }
            fn take(bytes: &mut &[u8]) -> Option<$name> {
                $(let $field = Message::take(bytes)?;)*
                Some($name { $($field),* })
            }
        }
    )*};
}

crosses_as_fields! {
    Limits { ticks_max, wall_ms_max, memory_bytes_max, result_bytes_max }
    Function { source, input, now_ms, seed }
    Validate { schema, value, fill_defaults }
    Request { call, limits }
    Response { result, console, ticks }
    Console { lines, truncated }
    Line { level, text }
    Fault { kind, message, line, column, stack, mismatches }
    Mismatch { pointer, path, keyword, message }
}

impl Message for Call {
    fn put(&self, out: &mut Vec<u8>) {
        match self {
            Call::Function(function) => {
                out.push(0);
                function.put(out);
            }
            Call::CheckFunction { source } => {
                out.push(1);
                source.put(out);
            }
            Call::CheckSchema { schema } => {
                out.push(2);
                schema.put(out);
            }
            Call::Validate(validate) => {
                out.push(3);
                validate.put(out);
            }
            Call::Hello => out.push(4),
        }
    }
    fn take(bytes: &mut &[u8]) -> Option<Call> {
        Some(match u8::take(bytes)? {
            0 => Call::Function(Function::take(bytes)?),
            1 => Call::CheckFunction { source: String::take(bytes)? },
            2 => Call::CheckSchema { schema: String::take(bytes)? },
            3 => Call::Validate(Validate::take(bytes)?),
            4 => Call::Hello,
            _ => return None,
        })
    }
}

impl Message for Result<String, Fault> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_ok().put(out);
        match self {
            Ok(text) => text.put(out),
            Err(fault) => fault.put(out),
        }
    }
    fn take(bytes: &mut &[u8]) -> Option<Result<String, Fault>> {
        Some(if bool::take(bytes)? { Ok(String::take(bytes)?) } else { Err(Fault::take(bytes)?) })
    }
}

/// Encodes an enum without fields as the index in its list of all values.
macro_rules! crosses_as_place {
    ($($name:ident)*) => {$(
        impl Message for $name {
            fn put(&self, out: &mut Vec<u8>) {
                out.push($name::ALL.iter().position(|one| one == self).map_or(u8::MAX, |place| place as u8));
            }
            fn take(bytes: &mut &[u8]) -> Option<$name> {
                $name::ALL.get(usize::from(u8::take(bytes)?)).copied()
            }
        }
    )*};
}

crosses_as_place! { FaultKind Level }

#[cfg(test)]
mod tests;
