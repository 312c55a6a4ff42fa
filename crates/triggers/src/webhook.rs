//! Verification of webhook signatures over the bytes of the request as they were received, and the signatures of outgoing
//! webhooks.
//!
//! A [`Verifier`] has a scheme and the secrets that are valid now; during a rotation these are the old and the new one.
//! Signatures and tokens are compared in constant time.

mod error;
mod headers;
mod retry;
mod scheme;
mod sign;
mod signature;

pub use error::{ConfigurationError, Rejection};
pub use headers::Headers;
pub use retry::retry_delay_ms;
pub use scheme::{Delivery, Encoding, HmacScheme, Scheme, SignedContent};
pub use sign::standard_signatures;
pub use signature::Algorithm;

use crate::limits::{SECRETS_MAX, TOLERANCE_MS_DEFAULT};
use signature::{Key, Signed};

/// A scheme with its secrets.
#[derive(Debug, Clone)]
pub struct Verifier {
    scheme: Scheme,
    keys: Vec<Key>,
    tolerance_ms: u64,
}

/// A verified request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verified {
    /// The position of the secret that matched.
    pub secret: usize,
    /// The time of the signature in milliseconds since 1970, if the scheme has one.
    pub signed_at_ms: Option<u64>,
    /// The id of the delivery, if the request has one.
    pub delivery: Option<Delivery>,
}

impl Verifier {
    /// Checks the configuration. The tolerance is [`TOLERANCE_MS_DEFAULT`].
    pub fn new(scheme: Scheme, secrets: &[&str]) -> Result<Self, ConfigurationError> {
        match secrets.len() {
            0 => return Err(ConfigurationError::NoSecret),
            SECRETS_MAX.. if secrets.len() > SECRETS_MAX => {
                return Err(ConfigurationError::TooManySecrets(SECRETS_MAX));
            }
            _ => {}
        }
        scheme.check()?;
        let key = |(position, secret): (usize, &&str)| scheme.key(secret, position);
        let keys = secrets.iter().enumerate().map(key).collect::<Result<_, _>>()?;
        Ok(Self { scheme, keys, tolerance_ms: TOLERANCE_MS_DEFAULT })
    }

    /// Changes the largest distance between the time of a signature and now, in either direction.
    pub fn with_tolerance_ms(self, tolerance_ms: u64) -> Self {
        Self { tolerance_ms, ..self }
    }

    /// Verifies a request. `body` is the body as received, before any decoding.
    pub fn verify(&self, headers: Headers<'_>, body: &[u8], now_ms: u64) -> Result<Verified, Rejection> {
        let signed = self.scheme.read(headers, body)?;
        self.check_time(&signed, now_ms)?;
        let secret = self.keys.iter().position(|key| signed.is_made_by(key)).ok_or(Rejection::WrongSignature)?;
        let signed_at_ms = signed.seconds.map(|seconds| seconds.saturating_mul(1000));
        Ok(Verified { secret, signed_at_ms, delivery: self.scheme.delivery(headers, body)? })
    }

    fn check_time(&self, signed: &Signed<'_>, now_ms: u64) -> Result<(), Rejection> {
        let Some(seconds) = signed.seconds else { return Ok(()) };
        let signed_at_ms = seconds.saturating_mul(1000);
        if now_ms.abs_diff(signed_at_ms) <= self.tolerance_ms {
            return Ok(());
        }
        let seconds = i64::try_from(now_ms.abs_diff(signed_at_ms) / 1000).unwrap_or(i64::MAX);
        Err(Rejection::OutsideTolerance(if now_ms >= signed_at_ms { seconds } else { -seconds }))
    }
}
