//! The encoding of a frame's payloads in one column.
//!
//! ```text
//! format    1 byte, 1
//! values    one after the other: salt (16) · kind (1) · length (4, little-endian) · content (length)
//! check     the first 4 bytes of the SHA-256 of all before
//! ```
//!
//! The content is the body (kind 0), the hash of the body in the blob table (kind 1), or zeros (kind 2, erased). An
//! erased value keeps its length, so that the row is overwritten in place.

use mainspring_kernel::{hash::Hash, stored_frame::StoredValue};

use crate::BLOB_BYTES_MIN;

const FORMAT: u8 = 1;
const CHECK_BYTES: usize = 4;
const PREFIX_BYTES: usize = 16 + 1 + 4;

/// A payload as stored in its row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackedValue {
    /// As in [`StoredValue::salt`].
    pub(crate) salt: [u8; 16],
    /// The body or its location.
    pub(crate) content: Content,
}

/// The location of a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Content {
    /// In the row itself.
    Inline(Vec<u8>),
    /// In the blob table, by its hash.
    Blob(Hash),
    /// Erased; the length that its content had.
    Erased(usize),
}

impl Content {
    /// Returns the erased form with the same length.
    pub(crate) fn erased(&self) -> Self {
        match self {
            Self::Inline(body) => Self::Erased(body.len()),
            Self::Blob(hash) => Self::Erased(hash.0.len()),
            Self::Erased(length) => Self::Erased(*length),
        }
    }
}

/// Encodes the payloads of a frame. A body for the blob table is passed to `put_blob` first.
pub(crate) fn pack<'v, E>(
    values: &'v [StoredValue],
    mut put_blob: impl FnMut(Hash, &'v [u8]) -> Result<(), E>,
) -> Result<Vec<u8>, E> {
    let mut packed = vec![FORMAT];
    for value in values {
        match &value.body {
            None => push(&mut packed, &value.salt, 2, &[]),
            Some(body) if body.len() > BLOB_BYTES_MIN => {
                let hash = Hash::of(body);
                put_blob(hash, body)?;
                push(&mut packed, &value.salt, 1, &hash.0);
            }
            Some(body) => push(&mut packed, &value.salt, 0, body),
        }
    }
    Ok(checked(packed))
}

/// Encodes values whose bodies are already in their places.
pub(crate) fn repack(values: &[PackedValue]) -> Vec<u8> {
    let mut packed = vec![FORMAT];
    for value in values {
        match &value.content {
            Content::Inline(body) => push(&mut packed, &value.salt, 0, body),
            Content::Blob(hash) => push(&mut packed, &value.salt, 1, &hash.0),
            Content::Erased(length) => push(&mut packed, &value.salt, 2, &vec![0; *length]),
        }
    }
    checked(packed)
}

/// Decodes a column; `None` if it is not an output of [`pack`].
pub(crate) fn unpack(packed: &[u8]) -> Option<Vec<PackedValue>> {
    let (sound, check) = packed.split_at_checked(packed.len().checked_sub(CHECK_BYTES)?)?;
    if Hash::of(sound).0[..CHECK_BYTES] != *check {
        return None;
    }
    let (&FORMAT, mut rest) = sound.split_first()? else { return None };
    let mut values = Vec::new();
    while !rest.is_empty() {
        let (prefix, after) = rest.split_at_checked(PREFIX_BYTES)?;
        let length = u32::from_le_bytes(prefix[17..].try_into().ok()?) as usize;
        let (content, after) = after.split_at_checked(length)?;
        let content = match prefix[16] {
            0 => Content::Inline(content.to_vec()),
            1 => Content::Blob(Hash(content.try_into().ok()?)),
            2 => Content::Erased(length),
            _ => return None,
        };
        values.push(PackedValue { salt: prefix[..16].try_into().ok()?, content });
        rest = after;
    }
    Some(values)
}

fn push(packed: &mut Vec<u8>, salt: &[u8; 16], kind: u8, content: &[u8]) {
    packed.extend_from_slice(salt);
    packed.push(kind);
    packed.extend_from_slice(&(content.len() as u32).to_le_bytes());
    packed.extend_from_slice(content);
}

fn checked(mut packed: Vec<u8>) -> Vec<u8> {
    let check = Hash::of(&packed).0;
    packed.extend_from_slice(&check[..CHECK_BYTES]);
    packed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(fill: u8, length: Option<usize>) -> StoredValue {
        StoredValue { salt: [fill; 16], body: length.map(|length| vec![fill; length]) }
    }

    #[test]
    fn packs_and_notices_every_changed_byte() {
        let values = [value(1, Some(3)), value(2, Some(0)), value(0, None), value(3, Some(BLOB_BYTES_MIN + 1))];
        let mut blobs = Vec::new();
        let packed = pack(&values, |hash, body: &[u8]| -> Result<(), ()> {
            blobs.push((hash, body.len()));
            Ok(())
        })
        .unwrap();
        let hash = Hash::of(&vec![3; BLOB_BYTES_MIN + 1]);
        assert_eq!(blobs, [(hash, BLOB_BYTES_MIN + 1)]);
        let contents = [Content::Inline(vec![1; 3]), Content::Inline(vec![]), Content::Erased(0), Content::Blob(hash)];
        let mut read = unpack(&packed).unwrap();
        assert!(read.iter().map(|value| &value.content).eq(&contents));
        assert_eq!(repack(&read), packed);
        for at in 0..packed.len() {
            let mut changed = packed.clone();
            changed[at] ^= 1;
            assert_eq!(unpack(&changed), None, "byte {at}");
            assert_eq!(unpack(&packed[..at]), None, "cut at {at}");
        }
        for value in &mut read {
            value.content = value.content.erased();
        }
        assert_eq!(repack(&read).len(), packed.len(), "erasing keeps the length");
        assert_eq!(unpack(&repack(&read)), Some(read));
    }
}
