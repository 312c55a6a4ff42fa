//! Verification of ID tokens (OpenID Connect Core 1.0, 3.1.3.7).

use jsonwebtoken::{
    Algorithm, DecodingKey, Validation, decode, decode_header,
    jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, PublicKeyUse},
};
use serde_json::{Map, Value};

use super::signature::{self, ALGORITHMS};

/// Tolerated clock skew in seconds.
const LEEWAY_S: u64 = 60;

/// Most bytes of a token. A larger one probably carries a directory of groups.
const TOKEN_BYTES_MAX: usize = 64 * 1024;

/// Claims of a verified token.
pub(super) type Claims = Map<String, Value>;

/// Required values of a token.
pub(super) struct Expected<'a> {
    /// Issuer of the provider.
    pub(super) issuer: &'a str,
    /// Audience: this server's client id.
    pub(super) client_id: &'a str,
    /// Nonce of the pending sign-in.
    pub(super) nonce: &'a str,
    /// Seconds since 1970.
    pub(super) now_s: u64,
}

/// Reason for rejecting a token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Refused {
    /// Signed with an unknown key: the provider may have rotated its keys.
    UnknownKey,
    /// Invalid, with the reason. The reason contains nothing of the token.
    No(&'static str),
}

use Refused::{No, UnknownKey};

/// Parses a key set. Keys of unsupported types are skipped.
pub(super) fn keys(document: &Value) -> Option<Vec<Jwk>> {
    let listed = document.get("keys")?.as_array()?;
    Some(listed.iter().filter_map(|key| serde_json::from_value(key.clone()).ok()).collect())
}

/// True if a key may be used with a signature algorithm.
fn fits(key: &Jwk, algorithm: Algorithm) -> bool {
    let (is_kind, name) = match (&key.algorithm, algorithm) {
        (AlgorithmParameters::RSA(_), Algorithm::RS256) => (true, KeyAlgorithm::RS256),
        (AlgorithmParameters::EllipticCurve(of), Algorithm::ES256) => {
            (of.curve == EllipticCurve::P256, KeyAlgorithm::ES256)
        }
        (AlgorithmParameters::OctetKeyPair(of), Algorithm::EdDSA) => {
            (of.curve == EllipticCurve::Ed25519, KeyAlgorithm::EdDSA)
        }
        _ => return false,
    };
    let is_for_signatures = key.common.public_key_use.as_ref().is_none_or(|is| *is == PublicKeyUse::Signature);
    is_kind && is_for_signatures && key.common.key_algorithm.as_ref().is_none_or(|is| *is == name)
}

/// The key that a token was signed with. Without a key id, exactly one key must match.
fn key<'a>(keys: &'a [Jwk], algorithm: Algorithm, kid: Option<&str>) -> Result<&'a Jwk, Refused> {
    let is_named = |key: &&Jwk| kid.is_none() || key.common.key_id.as_deref() == kid;
    let mut found = keys.iter().filter(|key| fits(key, algorithm)).filter(is_named);
    match (found.next(), found.next()) {
        (Some(one), None) => Ok(one),
        (None, _) => Err(UnknownKey),
        (Some(_), Some(_)) => Err(No("it does not name the provider's key that signed it")),
    }
}

/// Verifies a token and returns its claims.
pub(super) fn verify(token: &str, keys: &[Jwk], expected: &Expected<'_>) -> Result<Claims, Refused> {
    signature::install();
    if token.len() > TOKEN_BYTES_MAX {
        return Err(No("it is too long"));
    }
    let header =
        decode_header(token).map_err(|_| No("its head cannot be read, or names no algorithm that is known"))?;
    if !ALGORITHMS.contains(&header.alg) {
        return Err(No("it is not signed by RS256, ES256 or EdDSA; have the provider sign by one of them"));
    }
    if header.extras.inner().contains_key("crit") {
        return Err(No("its header requires an unknown extension (`crit`)"));
    }
    let key = DecodingKey::from_jwk(key(keys, header.alg, header.kid.as_deref())?);
    let key = key.map_err(|_| No("the provider's key cannot be read"))?;
    let mut validation = Validation::new(header.alg);
    validation.leeway = LEEWAY_S;
    validation.validate_nbf = true;
    validation.set_issuer(&[expected.issuer]);
    validation.set_audience(&[expected.client_id]);
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    let claims = decode::<Claims>(token, &key, &validation).map_err(|error| No(reason(error.kind())))?.claims;
    check_more(&claims, expected)?;
    Ok(claims)
}

fn reason(kind: &jsonwebtoken::errors::ErrorKind) -> &'static str {
    use jsonwebtoken::errors::ErrorKind as Kind;
    match kind {
        Kind::InvalidSignature => "its signature is not the provider's",
        Kind::ExpiredSignature => "it has expired: compare the clocks of the two machines",
        Kind::ImmatureSignature => "it is not valid yet: compare the clocks of the two machines",
        Kind::InvalidIssuer => "it is from another issuer: compare `oidcIssuer` with the issuer of the provider",
        Kind::InvalidAudience => "it is for another client: compare `oidcClientId`",
        Kind::MissingRequiredClaim(_) => "it lacks one of `exp`, `iss`, `aud` and `sub`",
        _ => "it cannot be read",
    }
}

/// Checks that OpenID Connect demands beyond a generic JWT library.
fn check_more(claims: &Claims, expected: &Expected<'_>) -> Result<(), Refused> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss").is_none() || text("sub").is_none_or(|sub| sub.is_empty() || sub.len() > 255) {
        return Err(No("`iss` and `sub` must be texts"));
    }
    if text("nonce") != Some(expected.nonce) {
        return Err(No("it is not of this sign-in (`nonce`)"));
    }
    let audiences = claims.get("aud").and_then(Value::as_array).map_or(1, Vec::len);
    let is_ours = text("azp").map(|azp| azp == expected.client_id);
    if is_ours == Some(false) || is_ours.is_none() && (audiences > 1 || claims.contains_key("azp")) {
        return Err(No("it was issued for another client (`azp`)"));
    }
    let made = claims.get("iat").and_then(Value::as_f64).ok_or(No("it has no time of issue (`iat`)"))?;
    if made > (expected.now_s + LEEWAY_S) as f64 {
        return Err(No("it was issued in the future: compare the clocks of the two machines"));
    }
    Ok(())
}
