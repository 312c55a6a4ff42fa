//! The Ed25519 key of an installation (RFC 8032), which signs evidence.
//!
//! The key derives from the installation's key, so it needs no file of its own, and all nodes of an installation have the
//! same one. The public key is published; it proves signatures and cannot make them.

use mainspring_kernel::hash::{Hash, hex, unhex};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

/// The domain of the derivation. Another purpose needs another key.
const DERIVATION: &[u8] = b"mainspring evidence signing key 1";

/// An Ed25519 point, compressed (RFC 8032, 5.1.2).
pub const PUBLIC_KEY_BYTES: usize = 32;

/// The DER header of an Ed25519 public key (RFC 8410, 4).
const DER_HEADER: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];

/// An Ed25519 key pair. Its secret part is never written anywhere.
pub struct SigningKey(Ed25519KeyPair);

/// An Ed25519 public key: a compressed point.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct PublicKey(pub [u8; PUBLIC_KEY_BYTES]);

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "SigningKey({})", self.public().id())
    }
}

impl SigningKey {
    /// Derives the key of an installation from its secret key.
    pub fn of_installation(key: &[u8; 32]) -> Self {
        let Hash(seed) = Hash::keyed(key, &[DERIVATION]);
        Self::of_seed(&seed)
    }

    /// Returns the key of 32 random bytes.
    pub fn of_seed(seed: &[u8; 32]) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed);
        Self(pair.expect("every 32 bytes are the seed of an Ed25519 key"))
    }

    /// Returns the public key.
    pub fn public(&self) -> PublicKey {
        let mut bytes = [0; PUBLIC_KEY_BYTES];
        bytes.copy_from_slice(self.0.public_key().as_ref());
        PublicKey(bytes)
    }

    /// Signs a message. The same message always has the same signature.
    pub fn sign(&self, message: &[u8]) -> Vec<u8> {
        self.0.sign(message).as_ref().to_vec()
    }
}

impl PublicKey {
    /// Returns the id of the key: the SHA-256 of its bytes.
    pub fn id(&self) -> String {
        self.hash().prefixed()
    }

    /// Returns the same as bytes.
    pub fn hash(&self) -> Hash {
        Hash::of(&self.0)
    }

    /// Returns the 64 hexadecimal digits of the key.
    pub fn hex(&self) -> String {
        hex(&self.0)
    }

    /// Returns the key as PEM, which OpenSSL and other tools read.
    pub fn pem(&self) -> String {
        use base64::{Engine, engine::general_purpose::STANDARD};
        let der: Vec<u8> = DER_HEADER.into_iter().chain(self.0).collect();
        format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der))
    }

    /// Reads a key as 64 hexadecimal digits or as PEM.
    pub fn read(text: &str) -> Option<Self> {
        use base64::{Engine, engine::general_purpose::STANDARD};
        let text = text.trim();
        let mut bytes = [0; PUBLIC_KEY_BYTES];
        if unhex(text, &mut bytes) {
            return Some(Self(bytes));
        }
        let body = text.strip_prefix("-----BEGIN PUBLIC KEY-----")?.strip_suffix("-----END PUBLIC KEY-----")?;
        let der = STANDARD.decode(body.split_whitespace().collect::<String>()).ok()?;
        bytes.copy_from_slice(der.strip_prefix(DER_HEADER.as_slice()).filter(|key| key.len() == PUBLIC_KEY_BYTES)?);
        Some(Self(bytes))
    }

    /// True if the signature is this key's signature of the message.
    pub fn has_signed(&self, message: &[u8], signature: &[u8]) -> bool {
        UnparsedPublicKey::new(&ED25519, &self.0).verify(message, signature).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 8032, 7.1, test 2.
    #[test]
    fn signatures_are_those_of_the_standard() {
        let mut seed = [0; 32];
        assert!(unhex("4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb", &mut seed));
        let key = SigningKey::of_seed(&seed);
        assert_eq!(key.public().hex(), "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c");
        let signature = key.sign(&[0x72]);
        assert!(hex(&signature).starts_with("92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da"));
        assert!(key.public().has_signed(&[0x72], &signature));
        assert!(!key.public().has_signed(&[0x73], &signature) && !PublicKey([7; 32]).has_signed(&[0x72], &signature));
    }

    #[test]
    fn a_public_key_is_read_in_both_forms() {
        let key = SigningKey::of_installation(&[1; 32]).public();
        assert_eq!((PublicKey::read(&key.hex()), PublicKey::read(&key.pem())), (Some(key), Some(key)));
        for text in ["", "00", "-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----"] {
            assert_eq!(PublicKey::read(text), None, "{text}");
        }
        assert_ne!(SigningKey::of_installation(&[2; 32]).public(), key);
    }
}
