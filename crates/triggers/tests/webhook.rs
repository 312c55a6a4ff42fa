//! Webhook signatures: the vectors of the schemes, and requests that must not pass.

use mainspring_triggers::{
    idempotency::verified_key,
    webhook::{
        Algorithm, ConfigurationError, Delivery, Encoding, HmacScheme, Rejection, Scheme, SignedContent, Verified,
        Verifier,
    },
};

type Header = (&'static str, &'static str);

/// A request that passes.
struct Vector {
    scheme: Scheme,
    secret: &'static str,
    headers: Vec<Header>,
    body: &'static [u8],
    /// Seconds since 1970.
    now: u64,
    delivery: Option<Delivery>,
}

impl Vector {
    fn verify(&self) -> Result<Verified, Rejection> {
        let verifier = Verifier::new(self.scheme.clone(), &[self.secret]).unwrap();
        verifier.verify(&self.headers, self.body, self.now * 1000)
    }

    /// Replaces the header at a position.
    fn with_header(&self, position: usize, value: &'static str) -> Self {
        let mut headers = self.headers.clone();
        headers[position].1 = value;
        Self { headers, ..self.clone() }
    }
}

impl Clone for Vector {
    fn clone(&self) -> Self {
        let (scheme, headers, delivery) = (self.scheme.clone(), self.headers.clone(), self.delivery.clone());
        Self { scheme, headers, delivery, ..*self }
    }
}

/// The example of the Standard Webhooks libraries.
fn standard() -> Vector {
    Vector {
        scheme: Scheme::StandardWebhooks,
        secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
        headers: vec![
            ("Webhook-Id", "msg_p5jXN8AQM9LWM0D4loKWxJek"),
            ("Webhook-Timestamp", "1614265330"),
            ("Webhook-Signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        ],
        body: br#"{"test": 2432232314}"#,
        now: 1_614_265_330,
        delivery: Some(Delivery { id: "msg_p5jXN8AQM9LWM0D4loKWxJek".into(), is_signed: true }),
    }
}

/// The example of GitHub's documentation.
fn github() -> Vector {
    Vector {
        scheme: Scheme::GitHub,
        secret: "It's a Secret to Everybody",
        headers: vec![
            ("x-hub-signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"),
            ("x-github-delivery", "72d3162e-cc78-11e3-81ab-4c9367dc0958"),
        ],
        body: b"Hello, World!",
        now: 0,
        delivery: Some(Delivery { id: "72d3162e-cc78-11e3-81ab-4c9367dc0958".into(), is_signed: false }),
    }
}

/// The example of Slack's documentation.
fn slack() -> Vector {
    Vector {
        scheme: Scheme::Slack,
        secret: "8f742231b10e8888abcd99yyyzzz85a5",
        headers: vec![
            ("X-Slack-Request-Timestamp", "1531420618"),
            ("X-Slack-Signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"),
        ],
        body: b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&\
            channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&\
            response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&\
            trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
        now: 1_531_420_618,
        delivery: None,
    }
}

/// The signature was made with Stripe's Python library.
fn stripe() -> Vector {
    Vector {
        scheme: Scheme::Stripe,
        secret: "whsec_new",
        headers: vec![(
            "Stripe-Signature",
            "t=1614265330,v1=1d281d0eeb6fac528576ca3769505ff4f8cf11b72bb9b7dbbec2cd69e886177b,v0=00",
        )],
        body: br#"{"id":"evt_1","object":"event"}"#,
        now: 1_614_265_330,
        delivery: Some(Delivery { id: "evt_1".into(), is_signed: true }),
    }
}

fn gitlab() -> Vector {
    Vector {
        scheme: Scheme::GitLab,
        secret: "a secret token",
        headers: vec![("X-Gitlab-Token", "a secret token"), ("Idempotency-Key", "f5e5f430")],
        body: b"{}",
        now: 0,
        delivery: Some(Delivery { id: "f5e5f430".into(), is_signed: true }),
    }
}

fn token() -> Vector {
    Vector {
        scheme: Scheme::Token("X-Token".into()),
        headers: vec![("x-token", "a secret token")],
        delivery: None,
        ..gitlab()
    }
}

/// The signature was made with Python's `hmac`.
fn hmac() -> Vector {
    let scheme = HmacScheme {
        header: "X-Signature".into(),
        prefix: String::new(),
        encoding: Encoding::Base64,
        algorithm: Algorithm::Sha512,
        timestamp_header: Some("X-Time".into()),
        content: SignedContent::parse("{timestamp}\n{body}").unwrap(),
    };
    let signature = "9zsU2qRrAAqch6iJcZHW2MZEhGdWxKdHjB3ELIjh5Q6SnoOM9qTU400gEvW0TOgqnTcb5KUIWnkquMgDdBzBUw==";
    Vector {
        scheme: Scheme::Hmac(scheme),
        secret: "k",
        headers: vec![("X-Time", "1614265330"), ("X-Signature", signature), ("X-Delivery-Id", "7")],
        body: b"body",
        now: 1_614_265_330,
        delivery: Some(Delivery { id: "7".into(), is_signed: false }),
    }
}

fn all() -> [Vector; 7] {
    [standard(), github(), slack(), stripe(), gitlab(), token(), hmac()]
}

#[test]
fn vectors_of_the_schemes() {
    for vector in all() {
        let verified = vector.verify().unwrap_or_else(|why| panic!("{:?}: {why}", vector.scheme));
        assert_eq!((verified.secret, verified.delivery), (0, vector.delivery.clone()));
        let is_timed = vector.now > 0;
        assert_eq!(verified.signed_at_ms, is_timed.then_some(vector.now * 1000));
    }
}

#[test]
fn a_changed_byte_does_not_pass() {
    for vector in all().into_iter().filter(|vector| !matches!(vector.scheme, Scheme::GitLab | Scheme::Token(_))) {
        let verifier = Verifier::new(vector.scheme.clone(), &[vector.secret]).unwrap();
        let verify = |body: &[u8]| verifier.verify(&vector.headers, body, vector.now * 1000);
        for position in 0..vector.body.len() {
            let mut body = vector.body.to_vec();
            body[position] ^= 1;
            assert_eq!(verify(&body), Err(Rejection::WrongSignature), "{:?}, byte {position}", vector.scheme);
        }
        assert_eq!(verify(&[vector.body, b"\n"].concat()), Err(Rejection::WrongSignature));
        assert_eq!(verify(&vector.body[1..]), Err(Rejection::WrongSignature));
    }
}

/// A captured request that is written in another way finds the execution of the first.
#[test]
fn other_text_of_one_signature_gives_one_key() {
    let key = |vector: &Vector| {
        let verified = vector.verify().unwrap_or_else(|why| panic!("{:?}: {why}", vector.scheme));
        verified_key("t1", &verified, vector.body)
    };
    let slack_upper = "v0=A2114D57B48EAC39B9AD189DD8316235A7B4A8D21A10BD27519666489C69B503";
    assert_eq!(key(&slack()), key(&slack().with_header(1, slack_upper)));
    let stripe_more = "t=1614265330,v1=00,v1=1D281d0eeb6fac528576ca3769505ff4f8cf11b72bb9b7dbbec2cd69e886177b,v0=x";
    assert_eq!(key(&stripe()), key(&stripe().with_header(0, stripe_more)));
    assert_eq!(key(&github()), key(&github().with_header(1, "another id")));
    assert_eq!(key(&hmac()), key(&hmac().with_header(2, "8")));
    assert_ne!(key(&gitlab()), key(&gitlab().with_header(1, "another id")), "the sender knows the secret");
}

/// Stripe and Slack sign a retry again. The body, which has the id of the event, stays the same.
#[test]
fn a_retry_that_is_signed_again_gives_the_same_key() {
    use hmac::{KeyInit as _, Mac as _};
    let key_at = |vector: Vector, header: &str, seconds: u64, body: &str| {
        let key = hmac::Hmac::<sha2::Sha256>::new_from_slice(vector.secret.as_bytes()).unwrap();
        let content = if header == "t" { format!("{seconds}.{body}") } else { format!("v0:{seconds}:{body}") };
        let code = key.chain_update(content).finalize().into_bytes();
        let code: String = code.iter().map(|byte| format!("{byte:02x}")).collect();
        let (time, slack, stripe) = (seconds.to_string(), format!("v0={code}"), format!("t={seconds},v1={code}"));
        let headers: Vec<(&str, &str)> = match header {
            "t" => vec![("Stripe-Signature", &stripe)],
            _ => vec![("X-Slack-Request-Timestamp", &time), ("X-Slack-Signature", &slack)],
        };
        let verifier = Verifier::new(vector.scheme.clone(), &[vector.secret]).unwrap();
        let verified = verifier.verify(&headers, body.as_bytes(), seconds * 1000).unwrap();
        verified_key("t1", &verified, body.as_bytes())
    };
    for (vector, header, body) in [
        (stripe(), "t", r#"{"id": "evt_1", "type": "charge.succeeded"}"#),
        (slack(), "", r#"{"event_id": "evt_1", "type": "event_callback"}"#),
    ] {
        let at = |seconds, body: &str| key_at(vector.clone(), header, seconds, body);
        assert_eq!(at(1_000, body), "webhook:t1:evt_1");
        assert_eq!(at(1_000, body), at(4_600, body));
        assert_ne!(at(1_000, body), at(1_000, &body.replace("evt_1", "evt_2")));
        // Without an id the signatures are different deliveries.
        for other in ["a=1", "{}", r#"{"id": 7, "event_id": 7}"#, r#"{"id": "a b", "event_id": ""}"#] {
            assert_ne!(at(1_000, other), at(4_600, other), "{other}");
        }
    }
}

#[test]
fn another_secret_does_not_pass() {
    for vector in all() {
        let other = if vector.scheme == Scheme::StandardWebhooks { "whsec_AAAA" } else { "another secret" };
        assert_eq!(Vector { secret: other, ..vector }.verify(), Err(Rejection::WrongSignature));
    }
    for given in ["", "a secret toke", "a secret token ", "A secret token"] {
        assert_eq!(token().with_header(0, given).verify(), Err(Rejection::WrongSignature), "{given:?}");
    }
}

#[test]
fn every_required_header_is_required_once() {
    for vector in all() {
        for (position, (name, value)) in vector.headers.iter().enumerate() {
            let mut headers = vector.headers.clone();
            headers.remove(position);
            let without = Vector { headers, ..vector.clone() }.verify();
            let is_id = vector.delivery.as_ref().is_some_and(|delivery| delivery.id == *value);
            let is_unsigned_id = is_id && vector.scheme != Scheme::StandardWebhooks;
            match without {
                Ok(verified) => assert!(is_unsigned_id && verified.delivery.is_none(), "{name}"),
                Err(why) => {
                    assert!(
                        matches!(&why, Rejection::MissingHeader(missing) if missing.eq_ignore_ascii_case(name)),
                        "{why}"
                    );
                }
            }
            let mut headers = vector.headers.clone();
            headers.push((name, value));
            let why = Vector { headers, ..vector.clone() }.verify().unwrap_err();
            assert!(matches!(why, Rejection::RepeatedHeader(_)), "{name}: {why}");
        }
    }
}

#[test]
fn old_and_future_signatures_do_not_pass() {
    for vector in all().into_iter().filter(|vector| vector.now > 0) {
        let at = |now| Vector { now, ..vector.clone() }.verify().map(drop);
        assert_eq!(at(vector.now + 300), Ok(()));
        assert_eq!(at(vector.now - 300), Ok(()));
        assert_eq!(at(vector.now + 301), Err(Rejection::OutsideTolerance(301)));
        assert_eq!(at(vector.now - 301), Err(Rejection::OutsideTolerance(-301)));
        let verifier = Verifier::new(vector.scheme.clone(), &[vector.secret]).unwrap().with_tolerance_ms(1_000);
        let verify = |now_ms| verifier.verify(&vector.headers, vector.body, now_ms).is_ok();
        assert_eq!([verify(vector.now * 1000 + 1_000), verify(vector.now * 1000 + 1_001)], [true, false]);
    }
}

#[test]
fn a_changed_time_or_id_does_not_pass() {
    for (vector, position, value) in [
        (standard(), 0, "msg_other"),
        (standard(), 1, "1614265331"),
        (slack(), 0, "1531420619"),
        (hmac(), 0, "1614265331"),
    ] {
        assert_eq!(vector.with_header(position, value).verify(), Err(Rejection::WrongSignature));
    }
    let other = "t=1614265331,v1=1d281d0eeb6fac528576ca3769505ff4f8cf11b72bb9b7dbbec2cd69e886177b";
    assert_eq!(stripe().with_header(0, other).verify(), Err(Rejection::WrongSignature));
}

#[test]
fn malformed_headers() {
    for (vector, position, value) in [
        (standard(), 1, "1614265330.0"),
        (standard(), 1, "-1"),
        (standard(), 1, "+1614265330"),
        (standard(), 1, ""),
        (standard(), 2, ""),
        (standard(), 2, "g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        (standard(), 2, "v1a,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        (standard(), 2, "v1,"),
        (github(), 0, "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"),
        (github(), 0, "sha1=757107ea0eb2509fc211221cce984b8a37570b6d"),
        (github(), 0, "sha256="),
        (github(), 0, "sha256=7571x"),
        (github(), 0, "sha256=757"),
        (slack(), 1, "v1=a2114d57"),
        (slack(), 0, "now"),
        (stripe(), 0, "v1=00"),
        (stripe(), 0, "t=1614265330"),
        (stripe(), 0, "t=1614265330,t=1614265331,v1=00"),
        (stripe(), 0, "garbage"),
        (hmac(), 1, "9zsU2qRrAAqch6iJcZHW2MZEhGdWxKdHjB3ELIjh5Q6SnoOM9qTU400gEvW0TOgqnTcb5KUIWnkquMgDdBzBUw"),
    ] {
        let why = vector.with_header(position, value).verify().unwrap_err();
        assert!(matches!(why, Rejection::MalformedHeader(_)), "{value}: {why}");
    }
    // A shortened signature is no prefix match.
    assert_eq!(github().with_header(0, "sha256=757107ea").verify(), Err(Rejection::WrongSignature));
}

#[test]
fn secrets_rotate() {
    let vector = stripe();
    let verifier = |secrets: &[&str]| Verifier::new(Scheme::Stripe, secrets).unwrap();
    let both = "t=1614265330,v1=efffcea6bc2d923dce6bb11bd9c5d0d2ccba505bde7b29eaf59b887a22679aa9,\
                v1=1d281d0eeb6fac528576ca3769505ff4f8cf11b72bb9b7dbbec2cd69e886177b";
    let matched = |secrets: &[&str], signature: &str| {
        let verified = verifier(secrets).verify(&[("Stripe-Signature", signature)], vector.body, vector.now * 1000);
        verified.map(|verified| verified.secret)
    };
    // The receiver has both secrets, the sender one; then the reverse.
    assert_eq!(matched(&["whsec_old", "whsec_new"], vector.headers[0].1), Ok(1));
    assert_eq!(matched(&["whsec_old"], both), Ok(0));
    assert_eq!(matched(&["whsec_new"], both), Ok(0));
    assert_eq!(matched(&["whsec_other"], both), Err(Rejection::WrongSignature));
    let listed = "v1a,AAAA v1,AAAA v1,%%% v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";
    assert!(standard().with_header(2, listed).verify().is_ok());
}

#[test]
fn configurations_that_are_refused() {
    use ConfigurationError::*;
    let refused = |scheme: Scheme, secrets: &[&str]| Verifier::new(scheme, secrets).unwrap_err();
    assert_eq!(refused(Scheme::GitHub, &[]), NoSecret);
    assert_eq!(refused(Scheme::GitHub, &["a", ""]), EmptySecret(1));
    assert_eq!(refused(Scheme::GitHub, &["a"; 9]), TooManySecrets(8));
    assert_eq!(refused(Scheme::StandardWebhooks, &["whsec_?"]), NotBase64(0));
    assert_eq!(refused(Scheme::StandardWebhooks, &["whsec_"]), NotBase64(0));
    assert_eq!(refused(Scheme::Token("a b".into()), &["a"]), InvalidHeader("a b".into()));
    assert_eq!(refused(Scheme::Token(String::new()), &["a"]), InvalidHeader(String::new()));
    assert_eq!(SignedContent::parse("{timestamp}"), Err(BodyNotSigned));
    assert_eq!(SignedContent::parse("{id}{body}"), Err(UnknownPlaceholder("{id}".into())));
    assert_eq!(SignedContent::parse("{body"), Err(UnknownPlaceholder("{body".into())));
    assert_eq!(SignedContent::parse("}{body}"), Err(UnknownPlaceholder("}{body}".into())));
    assert_eq!(SignedContent::parse("{body}"), Ok(SignedContent::body()));
    let Scheme::Hmac(scheme) = hmac().scheme else { unreachable!() };
    let untimed = HmacScheme { timestamp_header: None, ..scheme.clone() };
    assert_eq!(refused(Scheme::Hmac(untimed), &["a"]), TimeNotSigned);
    let unsigned = HmacScheme { content: SignedContent::body(), ..scheme };
    assert_eq!(refused(Scheme::Hmac(unsigned), &["a"]), TimeNotSigned);
}

#[test]
fn secrets_are_not_shown() {
    let verifier = Verifier::new(Scheme::GitHub, &["hunter2"]).unwrap();
    let shown = format!("{verifier:?}");
    assert!(!shown.contains("hunter2") && !shown.contains("104"), "{shown}");
}
