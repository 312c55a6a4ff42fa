//! SHA-256, plain and keyed, and how a hash is written.

use alloc::{format, string::String};
use core::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// A SHA-256.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The hash of some bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The hash of several pieces, one after the other without a separator.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// HMAC-SHA-256 over several pieces. Pieces that come from outside are hashed or of fixed length before they come
    /// here, so that no two lists of pieces can run together into the same bytes.
    pub fn keyed(key: &[u8; 32], parts: &[&[u8]]) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of every length");
        for part in parts {
            mac.update(part);
        }
        Self(mac.finalize().into_bytes().into())
    }

    /// Whether two hashes are equal, in a time that does not depend on where they differ.
    pub fn equals_in_constant_time(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).fold(0u8, |difference, (a, b)| difference | (a ^ b)) == 0
    }

    /// Sixty-four lower-case hexadecimal digits.
    pub fn hex(&self) -> String {
        hex(&self.0)
    }

    /// `sha256:` and the digits.
    pub fn prefixed(&self) -> String {
        format!("sha256:{}", self.hex())
    }

    /// Reads either form; `None` for anything else.
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("sha256:").unwrap_or(text);
        let mut bytes = [0; 32];
        unhex(digits, &mut bytes).then_some(Self(bytes))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.prefixed())
    }
}

/// Lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// Reads exactly as many digits as fill `bytes`; false for anything else.
pub fn unhex(digits: &str, bytes: &mut [u8]) -> bool {
    let digits = digits.as_bytes();
    if digits.len() != bytes.len() * 2 {
        return false;
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let (Some(high), Some(low)) = (char::from(pair[0]).to_digit(16), char::from(pair[1]).to_digit(16)) else {
            return false;
        };
        *byte = (high * 16 + low) as u8;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_answers() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(Hash::of(b"").hex(), empty);
        assert_eq!(Hash::of_parts(&[b"a", b"bc"]), Hash::of(b"abc"));
        assert_eq!(Hash::parse(&alloc::format!("sha256:{empty}")), Some(Hash::of(b"")));
        assert_eq!(Hash::parse(empty), Some(Hash::of(b"")));
        assert_eq!(Hash::parse("sha256:00"), None);
        assert_eq!(Hash::parse(&empty.replace('e', "g")), None);
        // RFC 4231, test case 2, with its key filled up to the length that we use (HMAC pads with zeros itself).
        let mut key = [0; 32];
        key[..4].copy_from_slice(b"Jefe");
        assert_eq!(
            Hash::keyed(&key, &[b"what do ya want ", b"for nothing?"]).hex(),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn constant_time_equality_is_equality() {
        let (a, b) = (Hash::of(b"a"), Hash::of(b"b"));
        assert!(a.equals_in_constant_time(&a) && !a.equals_in_constant_time(&b));
    }
}
