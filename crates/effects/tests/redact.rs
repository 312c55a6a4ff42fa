//! Tests of redaction: every form of a value that a program is likely to print.

use base64::{
    Engine,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE},
};
use mainspring_effects::secrets::{Redactor, SecretValue};
use mainspring_kernel::{
    effect::{Outcome, Report},
    json,
    value::Value,
};

const VALUE: &str = "p+ss/w0rd \"quöted\"&more";

fn redactor() -> Redactor {
    Redactor::new([SecretValue::new(VALUE).unwrap()])
}

#[track_caller]
fn check(text: &str, expected: &str) {
    assert_eq!(redactor().text(text.to_owned()), expected, "{text}");
}

#[test]
fn each_form_of_a_value_is_removed() {
    check("nothing here", "nothing here");
    check(&format!("a {VALUE} b {VALUE}"), "a *** b ***");
    check(&format!("{VALUE}{VALUE}"), "***");
    check(&json::compact(&Value::from(VALUE)), "\"***\"");
    check(r#"p+ss\/w0rd\u0020\"qu\u00f6ted\"\u0026more"#, "***");
    for encoded in ["p%2Bss%2Fw0rd%20%22qu%C3%B6ted%22%26more", "p%2bss/w0rd+%22qu%c3%b6ted%22%26more"] {
        check(&format!("?k={encoded}&x=1"), "?k=***&x=1");
    }
    // Some programs leave out what a URL permits, and encode no plus sign.
    check("?k=p+ss/w0rd%20%22qu%C3%B6ted%22&more", "?k=***");
    for html in [
        "p+ss/w0rd &quot;quöted&quot;&amp;more",
        "p&#43;ss/w0rd &#34;qu&#xF6;ted&#x22;&more",
        "&#112;+ss/w0rd&nbsp;\"quöted\"&#00038;more",
    ] {
        check(&format!("<b>{html}</b> & so"), "<b>***</b> & so");
    }
    // HTML in the JSON of programs that escape ampersands, and a line that the shell continues.
    check(r"p+ss/w0rd \u0026quot;qu\u00f6ted\u0026quot;\u0026amp;more", "***");
    check("p+ss/w\\\n0rd \"qu\\\nöted\"&more", "***");
    let hex: String = VALUE.bytes().map(|byte| format!("{byte:02x}")).collect();
    check(&hex, "***");
    // The escapes of web servers' logs, of Python and of shells.
    check(r"p+ss/w0rd \x22qu\xC3\xB6ted\x22&more", "***");
    check(r#"p+ss/w0rd "qu\303\266ted"&more"#, "***");
    let escaped: String = VALUE.bytes().map(|byte| format!("\\x{byte:02x}")).collect();
    check(&format!("b'{escaped}'"), "b'***'");
    // No escapes.
    for text in [r"\x4", r"\xzz", r"\9", r"\40", r"C:\x64"] {
        check(text, text);
    }
}

#[test]
fn an_address_inside_of_another_is_decoded() {
    fn encoded(text: &str, space: &str) -> String {
        let byte = |byte: u8| match byte {
            b'a'..=b'z' | b'0'..=b'9' => char::from(byte).to_string(),
            b' ' => space.to_owned(),
            _ => format!("%{byte:02X}"),
        };
        text.bytes().map(byte).collect()
    }
    for space in ["%20", "+"] {
        let mut text = VALUE.to_owned();
        for _ in 1..=4 {
            text = encoded(&text, space);
            check(&format!("?next={text}"), "?next=***");
        }
    }
}

#[test]
fn escapes_inside_of_escapes_are_decoded() {
    let value = "🔑 \"key\" \\ pa/ss";
    let redactor = Redactor::new([SecretValue::new(value).unwrap()]);
    let mut text = value.to_owned();
    for nested in 1..=4 {
        text = json::compact(&Value::from(&*text));
        let redacted = redactor.text(text.clone());
        assert!(redacted.contains("***") && !redacted.contains("pa/ss"), "{nested}: {text} {redacted}");
    }
    let ascii = r#"{"k":"\ud83d\udd11 \"key\" \\ pa\/ss"}"#;
    assert_eq!(redactor.text(ascii.to_owned()), r#"{"k":"***"}"#);
    assert_eq!(redactor.text(r#"\ud83d\u0041 \ud83d \u00"#.to_owned()), r#"\ud83d\u0041 \ud83d \u00"#);
}

#[test]
fn base64_is_found_at_any_position_and_across_lines() {
    for before in ["", "u", "us", "user:"] {
        for after in ["", "\n", "!!"] {
            let text = format!("{before}{VALUE}{after}");
            for encoded in [BASE64_STANDARD.encode(&text), BASE64_URL_SAFE.encode(&text)] {
                let redacted = redactor().text(encoded.clone());
                assert!(redacted.contains("***") && redacted.len() < 20, "{text} {encoded} {redacted}");
                let (start, end) = encoded.split_at(14);
                let redacted = redactor().text(format!("{start}\r\n{end}"));
                assert!(redacted.contains("***") && redacted.len() < 20, "{text} {redacted}");
            }
        }
    }
}

#[test]
fn a_value_that_a_bound_has_cut_is_removed() {
    check("output p+ss/w0rd \"qu", "output ***");
    check("output p+ss/w0rd…", "output ***…");
    check("output p+ss", "output p+ss");
}

#[test]
fn lines_keys_and_numbers_are_redacted() {
    let key = "-----BEGIN KEY-----\nAAAABBBBCCCC\nDDDDEEEEFFFF\n-----END KEY-----\n";
    let redactor = Redactor::new(["12345678", key].map(|value| SecretValue::new(value).unwrap()));
    let text = |text: &str| redactor.text(text.to_owned());
    assert_eq!(text("x DDDDEEEEFFFF y"), "x *** y");
    assert_eq!(text(&key.replace('\n', "\\n")), "***\\n");
    assert_eq!(text(&format!("<{}>", key.replace('\n', "\r\n").trim())), "<***>");
    let value = Value::map([("12345678", Value::from(912_345_678_u64)), ("n", Value::from(12_345_u64))]);
    assert_eq!(json::compact(&redactor.value(value)), r#"{"***":"9***","n":12345}"#);
}

#[test]
fn a_value_is_not_shown_by_debug() {
    let shown = format!("{:?} {:?}", SecretValue::new(VALUE).unwrap(), redactor());
    assert!(!shown.contains("w0rd"), "{shown}");
}

/// A handle without its value would not continue the call, and one with it would be in the journal.
#[test]
fn a_form_is_redacted_and_a_handle_with_a_value_is_a_failure() {
    let redactor = Redactor::new([SecretValue::new("hunter2hunter2").unwrap()]);
    let asked = |question: &str, handle: &str| {
        let report = Report::Asked { question: question.into(), handle: handle.into() };
        redactor.outcome(Outcome::Reported(Box::new(report)))
    };
    let expected = Report::Asked { question: "is it ***?".into(), handle: "h".into() };
    assert_eq!(asked("is it hunter2hunter2?", "h"), Outcome::Reported(Box::new(expected)));
    let continued = Outcome::Reported(Box::new(Report::Continued("state hunter2hunter2".into())));
    for outcome in [asked("q", "hunter2hunter2"), redactor.outcome(continued)] {
        match outcome {
            Outcome::Failed(failure) => assert_eq!(failure.code, "tool_answer_invalid"),
            other => panic!("{other:?}"),
        }
    }
}

/// Shells, SQL and CSV double or leave a quote inside of quotes.
#[test]
fn a_value_with_quotes_is_found_inside_of_quotes() {
    let value = r#"My+Secret/Value=00&<tag>'q"x"#;
    let redactor = Redactor::new([SecretValue::new(value).unwrap()]);
    for (open, close, quote, escape) in [("'", "'", "'", r"'\''"), ("'", "'", "'", "''"), ("\"", "\"", "\"", "\"\"")] {
        let text = format!("+ echo {open}{}{close} end", value.replace(quote, escape));
        assert_eq!(redactor.text(text), format!("+ echo {open}***{close} end"), "{escape}");
    }
}
