//! Verifies signatures of ID tokens with *ring*, the library of our TLS, because `jsonwebtoken` is built without
//! cryptography.

use jsonwebtoken::{
    Algorithm, AlgorithmFamily, DecodingKey, DecodingKeyKind,
    crypto::{CryptoProvider, JwtVerifier, KeyUtils},
    errors::{ErrorKind, Result},
    signature::{Error, Verifier},
};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents, UnparsedPublicKey,
};

/// Accepted signature algorithms. Unsigned tokens are not accepted, and neither are symmetric algorithms, whose key
/// would be shared with the provider or confused with a public one.
pub(super) const ALGORITHMS: [Algorithm; 3] = [Algorithm::RS256, Algorithm::ES256, Algorithm::EdDSA];

/// Registers this verifier with `jsonwebtoken`.
pub(super) fn install() {
    static OURS: CryptoProvider = CryptoProvider {
        signer_factory: |_, _| Err(ErrorKind::UnsupportedAlgorithm.into()),
        verifier_factory: verifier,
        key_utils: KeyUtils::new_unimplemented(),
    };
    // Fails only if it is registered already.
    let _ = OURS.install_default();
}

/// A key and its algorithm.
struct Check {
    algorithm: Algorithm,
    key: DecodingKey,
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let fits = matches!(
        (algorithm, key.family()),
        (Algorithm::RS256, AlgorithmFamily::Rsa)
            | (Algorithm::ES256, AlgorithmFamily::Ec)
            | (Algorithm::EdDSA, AlgorithmFamily::Ed)
    );
    if !fits || !ALGORITHMS.contains(algorithm) {
        return Err(ErrorKind::InvalidAlgorithm.into());
    }
    Ok(Box::new(Check { algorithm: *algorithm, key: key.clone() }))
}

impl Verifier<Vec<u8>> for Check {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        let checked = match (self.algorithm, self.key.kind()) {
            (Algorithm::RS256, DecodingKeyKind::RsaModulusExponent { n, e }) => {
                let components = RsaPublicKeyComponents { n: without_zeros(n), e: without_zeros(e) };
                components.verify(&RSA_PKCS1_2048_8192_SHA256, message, signature)
            }
            (Algorithm::ES256, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(message, signature)
            }
            (Algorithm::EdDSA, DecodingKeyKind::SecretOrDer(point)) => {
                UnparsedPublicKey::new(&ED25519, point).verify(message, signature)
            }
            _ => return Err(Error::new()),
        };
        checked.map_err(|_| Error::new())
    }
}

impl JwtVerifier for Check {
    fn algorithm(&self) -> Algorithm {
        self.algorithm
    }
}

/// A number as in RFC 7518, 6.3.1.1, without the leading zeros that some providers add.
fn without_zeros(digits: &[u8]) -> &[u8] {
    let begins = digits.iter().position(|digit| *digit != 0).unwrap_or(digits.len());
    &digits[begins..]
}
