//! SHA-256 and HMAC-SHA-256, and the text forms of hashes.

use alloc::{format, string::String};
use core::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest, Sha256};

/// A SHA-256 or HMAC-SHA-256 digest.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// Returns the SHA-256 of `bytes`.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// Returns the SHA-256 of the concatenated parts. There is no separator.
    pub fn of_parts(parts: &[&[u8]]) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// Returns the HMAC-SHA-256 of the concatenated parts. There is no separator, so parts from outside must be hashed
    /// or have a fixed length; otherwise two lists of parts could give the same bytes.
    pub fn keyed(key: &[u8; 32], parts: &[&[u8]]) -> Self {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of every length");
        for part in parts {
            mac.update(part);
        }
        Self(mac.finalize().into_bytes().into())
    }

    /// Compares two hashes in constant time.
    pub fn equals_in_constant_time(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).fold(0u8, |difference, (a, b)| difference | (a ^ b)) == 0
    }

    /// Formats the hash as 64 lower-case hexadecimal digits.
    pub fn hex(&self) -> String {
        hex(&self.0)
    }

    /// Formats the hash as `sha256:` and the digits.
    pub fn prefixed(&self) -> String {
        format!("sha256:{}", self.hex())
    }

    /// Parses the digits with or without the prefix; `None` for anything else.
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

/// Formats bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(|digit| char::from(DIGITS[usize::from(digit)])).collect()
}

/// Parses exactly as many digits as fill `bytes`; returns false for anything else.
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
        // RFC 4231, test case 2. HMAC pads the key with zeros, so a key padded to 32 bytes gives the same result.
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
