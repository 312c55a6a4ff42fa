//! The schemes: the headers of each, the content that is signed, and the form of signatures.

use super::{
    error::{ConfigurationError, Rejection},
    headers::{Headers, header, required},
    signature::{self, Algorithm, Key, Signed, seconds},
};
use crate::limits::{DELIVERY_ID_BYTES_MAX, SIGNATURES_MAX};

/// The way in which a sender proves that it knows the secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scheme {
    /// Standard Webhooks 1.0, symmetric signatures (`v1`). Signing tokens of GitLab have this form as well.
    StandardWebhooks,
    /// `X-Hub-Signature-256` of GitHub.
    GitHub,
    /// `X-Gitlab-Token`, the secret token of GitLab.
    GitLab,
    /// `Stripe-Signature`, version `v1`.
    Stripe,
    /// `X-Slack-Signature`, version `v0`.
    Slack,
    /// An HMAC in a header.
    Hmac(HmacScheme),
    /// The secret itself in this header.
    Token(String),
}

/// An HMAC in a header, as other senders have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HmacScheme {
    /// The header with the signature.
    pub header: String,
    /// Text before the signature, such as `sha256=`.
    pub prefix: String,
    /// The form of the signature.
    pub encoding: Encoding,
    /// The hash of the HMAC.
    pub algorithm: Algorithm,
    /// The header with the time of the signature, in seconds since 1970.
    pub timestamp_header: Option<String>,
    /// The content that is signed.
    pub content: SignedContent,
}

/// The form of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Hexadecimal digits of either case.
    Hex,
    /// Base64 with padding.
    Base64,
}

/// A template of the content that is signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedContent(Vec<Piece>);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Timestamp,
    Body,
}

/// The id of a delivery.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The value of the header, or of the field of the body.
    pub id: String,
    /// The signature covers the id, or the request has the secret itself. Otherwise a captured request can be sent again
    /// under another id.
    pub is_signed: bool,
}

impl SignedContent {
    /// Only the body.
    pub fn body() -> Self {
        Self(vec![Piece::Body])
    }

    /// Parses a template such as `{timestamp}.{body}`.
    pub fn parse(template: &str) -> Result<Self, ConfigurationError> {
        let unknown = |text: &str| Err(ConfigurationError::UnknownPlaceholder(text.into()));
        let (mut pieces, mut rest) = (Vec::new(), template);
        while let Some(at) = rest.find(['{', '}']) {
            let (text, placeholder) = rest.split_at(at);
            if !text.is_empty() {
                pieces.push(Piece::Text(text.into()));
            }
            let Some(end) = placeholder.find('}').filter(|end| *end > 0) else { return unknown(placeholder) };
            pieces.push(match &placeholder[..=end] {
                "{timestamp}" => Piece::Timestamp,
                "{body}" => Piece::Body,
                other => return unknown(other),
            });
            rest = &placeholder[end + 1..];
        }
        if !rest.is_empty() {
            pieces.push(Piece::Text(rest.into()));
        }
        if !pieces.contains(&Piece::Body) {
            return Err(ConfigurationError::BodyNotSigned);
        }
        Ok(Self(pieces))
    }

    fn of<'a>(&'a self, timestamp: &'a str, body: &'a [u8]) -> Vec<&'a [u8]> {
        let piece = |piece: &'a Piece| match piece {
            Piece::Text(text) => text.as_bytes(),
            Piece::Timestamp => timestamp.as_bytes(),
            Piece::Body => body,
        };
        self.0.iter().map(piece).collect()
    }
}

impl Scheme {
    /// Checks the parts that an author gives.
    pub(super) fn check(&self) -> Result<(), ConfigurationError> {
        let names = match self {
            Self::Hmac(scheme) => {
                if scheme.timestamp_header.is_some() != scheme.content.0.contains(&Piece::Timestamp) {
                    return Err(ConfigurationError::TimeNotSigned);
                }
                [Some(&scheme.header), scheme.timestamp_header.as_ref()]
            }
            Self::Token(header) => [Some(header), None],
            _ => return Ok(()),
        };
        let is_valid = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        match names.into_iter().flatten().find(|name| !is_valid(name)) {
            Some(name) => Err(ConfigurationError::InvalidHeader(name.clone())),
            None => Ok(()),
        }
    }

    /// Converts a secret to the key of the scheme.
    pub(super) fn key(&self, secret: &str, position: usize) -> Result<Key, ConfigurationError> {
        let bytes = match self {
            Self::StandardWebhooks => {
                let encoded = secret.strip_prefix("whsec_").unwrap_or(secret);
                signature::base64(encoded).ok_or(ConfigurationError::NotBase64(position))?
            }
            _ => secret.as_bytes().to_vec(),
        };
        if bytes.is_empty() {
            return Err(ConfigurationError::EmptySecret(position));
        }
        Ok(Key(bytes))
    }

    /// Reads signatures and signed content from a request.
    pub(super) fn read<'a>(&'a self, headers: Headers<'a>, body: &'a [u8]) -> Result<Signed<'a>, Rejection> {
        match self {
            Self::StandardWebhooks => standard(headers, body),
            Self::GitHub => {
                let header = "X-Hub-Signature-256";
                let signature = encoded(header, required(headers, header)?, "sha256=", Encoding::Hex)?;
                Ok(Signed::hmac(Algorithm::Sha256, vec![signature], vec![body], None))
            }
            Self::GitLab => token(headers, "X-Gitlab-Token"),
            Self::Stripe => stripe(headers, body),
            Self::Slack => slack(headers, body),
            Self::Hmac(scheme) => scheme.read(headers, body),
            Self::Token(header) => token(headers, header),
        }
    }

    /// Returns the id of the delivery. Stripe and Slack sign a retry again, with another time, so only the id of the event
    /// in the body names it.
    pub(super) fn delivery(&self, headers: Headers<'_>, body: &[u8]) -> Result<Option<Delivery>, Rejection> {
        let (name, is_signed) = match self {
            Self::StandardWebhooks => ("webhook-id", true),
            Self::GitHub => ("X-GitHub-Delivery", false),
            Self::GitLab => ("Idempotency-Key", true),
            Self::Stripe => return Ok(event_id(body, "id")),
            Self::Slack => return Ok(event_id(body, "event_id")),
            Self::Hmac(_) => ("X-Delivery-Id", false),
            Self::Token(_) => ("X-Delivery-Id", true),
        };
        Ok(header(headers, name)?.map(|id| Delivery { id: id.into(), is_signed }))
    }
}

/// Reads the id of an event from a signed body; `None` for a body that is no JSON object with such an id, as a form.
fn event_id(body: &[u8], key: &str) -> Option<Delivery> {
    let event: serde_json::Value = serde_json::from_slice(body).ok()?;
    let id = event.get(key)?.as_str()?;
    let is_id = (1..=DELIVERY_ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic());
    is_id.then(|| Delivery { id: id.into(), is_signed: true })
}

fn token<'a>(headers: Headers<'a>, header: &str) -> Result<Signed<'a>, Rejection> {
    Ok(Signed::token(required(headers, header)?.as_bytes()))
}

/// The signed content is `ID.TIMESTAMP.BODY`. Signatures of other versions are skipped, as the specification asks.
fn standard<'a>(headers: Headers<'a>, body: &'a [u8]) -> Result<Signed<'a>, Rejection> {
    let (id, time) = (required(headers, "webhook-id")?, required(headers, "webhook-timestamp")?);
    let name = "webhook-signature";
    let listed = required(headers, name)?.split(' ').filter_map(|entry| entry.strip_prefix("v1,"));
    let signatures = signatures(name, listed.map(signature::base64))?;
    let content = vec![id.as_bytes(), b".", time.as_bytes(), b".", body];
    Ok(Signed::hmac(Algorithm::Sha256, signatures, content, Some(seconds("webhook-timestamp", time)?)))
}

/// The header is `t=TIMESTAMP,v1=SIGNATURE,…`, and the signed content `TIMESTAMP.BODY`.
fn stripe<'a>(headers: Headers<'a>, body: &'a [u8]) -> Result<Signed<'a>, Rejection> {
    let name = "Stripe-Signature";
    let value = required(headers, name)?;
    let of = |key: &'static str| {
        let entries = value.split(',').filter_map(|entry| entry.trim().split_once('='));
        entries.filter(move |(other, _)| *other == key).map(|(_, value)| value)
    };
    let malformed = || Rejection::MalformedHeader(name.into());
    let time = of("t").next().filter(|_| of("t").count() == 1).ok_or_else(malformed)?;
    let signatures = signatures(name, of("v1").map(signature::hex))?;
    let content = vec![time.as_bytes(), b".", body];
    Ok(Signed::hmac(Algorithm::Sha256, signatures, content, Some(seconds(name, time)?)))
}

/// The signed content is `v0:TIMESTAMP:BODY`.
fn slack<'a>(headers: Headers<'a>, body: &'a [u8]) -> Result<Signed<'a>, Rejection> {
    let time = required(headers, "X-Slack-Request-Timestamp")?;
    let name = "X-Slack-Signature";
    let signature = encoded(name, required(headers, name)?, "v0=", Encoding::Hex)?;
    let content = vec![b"v0:", time.as_bytes(), b":", body];
    let seconds = seconds("X-Slack-Request-Timestamp", time)?;
    Ok(Signed::hmac(Algorithm::Sha256, vec![signature], content, Some(seconds)))
}

impl HmacScheme {
    fn read<'a>(&'a self, headers: Headers<'a>, body: &'a [u8]) -> Result<Signed<'a>, Rejection> {
        let signature = encoded(&self.header, required(headers, &self.header)?, &self.prefix, self.encoding)?;
        let (time, seconds) = match &self.timestamp_header {
            Some(name) => {
                let time = required(headers, name)?;
                (time, Some(seconds(name, time)?))
            }
            None => ("", None),
        };
        Ok(Signed::hmac(self.algorithm, vec![signature], self.content.of(time, body), seconds))
    }
}

/// Collects the signatures of a list. An entry that cannot be decoded matches no secret, and is left out.
fn signatures(name: &str, decoded: impl Iterator<Item = Option<Vec<u8>>>) -> Result<Vec<Vec<u8>>, Rejection> {
    let signatures: Vec<Vec<u8>> = decoded.take(SIGNATURES_MAX).flatten().collect();
    match signatures.is_empty() {
        true => Err(Rejection::MalformedHeader(name.into())),
        false => Ok(signatures),
    }
}

fn encoded(name: &str, value: &str, prefix: &str, encoding: Encoding) -> Result<Vec<u8>, Rejection> {
    let decoded = value.strip_prefix(prefix).and_then(|text| match encoding {
        Encoding::Hex => signature::hex(text),
        Encoding::Base64 => signature::base64(text),
    });
    decoded.ok_or_else(|| Rejection::MalformedHeader(name.into()))
}
