//! Deliveries with which a sender tries the address of a webhook. They are answered as the sender expects, and start nothing.

use axum::http::HeaderMap;
use mainspring_kernel::{json, value::Value};

use crate::resources::{SignatureConfig, SignatureScheme};

/// Longest challenge that is returned, in bytes. Slack sends about 50.
const CHALLENGE_BYTES_MAX: usize = 512;

/// A handshake: its name for the log, and the body of the response.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Handshake {
    pub(crate) name: &'static str,
    pub(crate) answer: Value,
}

/// Recognizes the ping that GitHub sends for a new webhook, and the URL verification of Slack. The delivery is verified before.
pub(crate) fn handshake(signature: Option<&SignatureConfig>, headers: &HeaderMap, body: &[u8]) -> Option<Handshake> {
    match signature.map(|signature| signature.scheme) {
        None | Some(SignatureScheme::Github) => {
            let event = headers.get("x-github-event")?;
            let answer = || Value::map([("status", "acknowledged".into())]);
            (event == "ping").then(|| Handshake { name: "ping", answer: answer() })
        }
        Some(SignatureScheme::Slack) => {
            let body = json::value(body).ok()?;
            let text = |key: &str| body.get(key).and_then(Value::as_text);
            let challenge = text("challenge").filter(|text| text.len() <= CHALLENGE_BYTES_MAX)?;
            let answer = || Value::map([("challenge", challenge.into())]);
            (text("type") == Some("url_verification")).then(|| Handshake { name: "url_verification", answer: answer() })
        }
        Some(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(scheme: &str, event: Option<&str>, body: &str) -> Option<&'static str> {
        let signature = (!scheme.is_empty())
            .then(|| serde_json::from_str::<SignatureConfig>(&format!(r#"{{"scheme": "{scheme}"}}"#)).unwrap());
        let mut headers = HeaderMap::new();
        event.map(|event| headers.insert("x-github-event", event.parse().unwrap()));
        handshake(signature.as_ref(), &headers, body.as_bytes()).map(|handshake| handshake.name)
    }

    #[test]
    fn only_the_handshakes_of_the_scheme_are_recognized() {
        let slack = r#"{"type": "url_verification", "challenge": "c"}"#;
        assert_eq!(of("github", Some("ping"), "{}"), Some("ping"));
        assert_eq!(of("", Some("ping"), "{}"), Some("ping"));
        assert_eq!(of("slack", None, slack), Some("url_verification"));
        assert_eq!(of("github", Some("push"), "{}"), None);
        assert_eq!(of("github", None, slack), None);
        assert_eq!(of("stripe", Some("ping"), slack), None);
        assert_eq!(of("slack", Some("ping"), r#"{"type": "event_callback", "challenge": "c"}"#), None);
        assert_eq!(of("slack", None, &slack.replace(r#""c""#, &format!("{:?}", "c".repeat(513)))), None);
        assert_eq!(of("slack", None, "[["), None);
    }
}
