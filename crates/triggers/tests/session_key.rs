//! Session keys and patterns of them.

use mainspring_triggers::session_key::{SessionKey, SessionPattern, StepAttempt};
use proptest::prelude::*;

#[test]
fn keys_of_executions_and_steps() {
    let key = SessionKey::parse("agent:main:workflow:nightly:run:r-1").unwrap();
    assert_eq!((key.agent(), key.workflow(), key.run(), key.attempt()), ("main", "nightly", "r-1", None));
    let step = key.with_attempt("build", 2).unwrap();
    assert_eq!(step.to_string(), "agent:main:workflow:nightly:run:r-1:node:build:attempt:2");
    assert_eq!(step.attempt(), Some(&StepAttempt { node: "build".into(), attempt: 2 }));
    assert_eq!(SessionKey::parse(&step.to_string()), Ok(step));
}

#[test]
fn other_texts_are_refused() {
    for text in [
        "",
        "agent:main",
        "agent:main:subagent:x",
        "agent:main:workflow:w",
        "agent:main:workflow:w:run:",
        "agent::workflow:w:run:x",
        "Agent:main:workflow:w:run:x",
        " agent:main:workflow:w:run:x",
        "agent:main:workflow:w:run:x:",
        "agent:main:workflow:w:run:x:node:s",
        "agent:main:workflow:w:run:x:node:s:attempt:",
        "agent:main:workflow:w:run:x:node:s:attempt:0",
        "agent:main:workflow:w:run:x:node:s:attempt:01",
        "agent:main:workflow:w:run:x:node:s:attempt:+1",
        "agent:main:workflow:w:run:x:node:s:attempt:-1",
        "agent:main:workflow:w:run:x:node:s:attempt:4294967296",
        "agent:main:workflow:w:run:x:node:s:attempt:1:more",
        "agent:main:workflow:w:run:x:node::attempt:1",
        "agent:main:workflow:w w:run:x",
        "agent:main:workflow:w:run:x\n",
    ] {
        let error = SessionKey::parse(text).expect_err(text);
        assert!(!error.to_string().is_empty());
    }
    assert!(SessionKey::of_execution("a", &"w".repeat(256), "r").is_ok());
    assert!(SessionKey::of_execution("a", &"w".repeat(257), "r").is_err());
    assert!(SessionKey::of_execution("a:b", "w", "r").is_err());
}

#[test]
fn patterns() {
    let execution = "agent:main:workflow:nightly-1:run:r";
    let step = "agent:main:workflow:nightly-1:run:r:node:build:attempt:12";
    for (pattern, matches) in [
        ("agent:*:workflow:*:run:*", [true, false]),
        ("agent:*:workflow:*:run:*:node:*:attempt:*", [false, true]),
        ("agent:main:workflow:nightly-*:run:*", [true, false]),
        ("agent:main:workflow:*-1:run:r", [true, false]),
        ("agent:main:workflow:n*ly*1:run:r", [true, false]),
        ("agent:main:workflow:n*ly*2:run:r", [false, false]),
        ("agent:mai:workflow:*:run:*", [false, false]),
        ("agent:main:workflow:*:run:*:node:b*d:attempt:12", [false, true]),
        ("agent:main:workflow:*:run:*:node:b*d:attempt:1", [false, false]),
        ("agent:m**n:workflow:*:run:r*r", [false, false]),
    ] {
        let pattern = SessionPattern::parse(pattern).unwrap();
        let found = [execution, step].map(|key| pattern.matches(&SessionKey::parse(key).unwrap()));
        assert_eq!(found, matches, "{pattern:?}");
    }
    for text in ["*", "agent:*", "agent:*:workflow:*:run:*:node:*", "agent:*:workflow:*:run:*:node:*:attempt:x"] {
        assert!(SessionPattern::parse(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn written_keys_are_read_again(
        agent in "[a-z*._-]{1,9}", workflow in "[^:\\s\\p{C}]{1,9}", run in "[A-Z0-9]{1,9}", attempt in 1..u32::MAX,
    ) {
        let key = SessionKey::of_execution(&agent, &workflow, &run).unwrap();
        prop_assert_eq!(SessionKey::parse(&key.to_string()), Ok(key.clone()));
        let step = key.with_attempt(&workflow, attempt).unwrap();
        prop_assert_eq!(SessionKey::parse(&step.to_string()), Ok(step));
    }

    #[test]
    fn no_text_panics(text in ".{0,40}", start in "(agent:|agent:a:workflow:w:run:|\\* |@|\\$[.\\[?(']{0,4}){0,3}") {
        let text = start + &text;
        let _ = (SessionKey::parse(&text), SessionPattern::parse(&text));
        let _ = mainspring_triggers::cron::Cron::parse(&text);
        let _ = mainspring_triggers::mapping::Mapping::parse(&std::collections::BTreeMap::from([("v".into(), text)]));
    }
}
