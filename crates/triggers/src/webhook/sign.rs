//! Signatures of outgoing webhooks by Standard Webhooks 1.0.

use super::{error::ConfigurationError, scheme::Scheme, signature::signature};

/// Returns the value of `webhook-signature`: one `v1` signature for each secret, separated by spaces. A secret has the form
/// `whsec_…`; the time is in seconds since 1970.
pub fn standard_signatures(
    secrets: &[&str],
    id: &str,
    seconds: u64,
    body: &[u8],
) -> Result<String, ConfigurationError> {
    let time = seconds.to_string();
    let content = [id.as_bytes(), b".", time.as_bytes(), b".", body];
    let sign = |(position, secret): (usize, &&str)| {
        let key = Scheme::StandardWebhooks.key(secret, position)?;
        Ok(format!("v1,{}", signature(&key, &content)))
    };
    let signatures: Result<Vec<String>, ConfigurationError> = secrets.iter().enumerate().map(sign).collect();
    Ok(signatures?.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the Standard Webhooks libraries and of Svix.
    #[test]
    fn the_published_example_has_its_signature() {
        let body = br#"{"test": 2432232314}"#;
        let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
        let signed = standard_signatures(&[secret], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signed, Ok("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=".into()));
    }

    #[test]
    fn a_rotation_signs_with_both_secrets_and_a_faulty_one_is_refused() {
        let [old, new] = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"];
        let both = standard_signatures(&[new, old], "id", 1, b"{}").unwrap();
        let each = [new, old].map(|secret| standard_signatures(&[secret], "id", 1, b"{}").unwrap());
        assert_eq!(both, each.join(" "));
        assert_ne!(each[0], each[1]);
        assert_eq!(standard_signatures(&[old, "whsec_!"], "id", 1, b"{}"), Err(ConfigurationError::NotBase64(1)));
    }
}
