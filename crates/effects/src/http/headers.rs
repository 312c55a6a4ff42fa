//! Headers: those that a step may set, those that a redirect to another origin keeps, and those of responses as values.

use hyper::header::{
    ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, CONTENT_LOCATION,
    CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, SET_COOKIE, USER_AGENT,
};
use mainspring_kernel::value::{Map, Value};

use super::{
    error::RequestError,
    limits::{HEAD_BYTES_MAX, REQUEST_HEAD_BYTES_MAX, REQUEST_HEADERS_MAX},
};

/// Headers of the connection or of the message's framing (RFC 9110, 7.6.1). A step that could set them could smuggle a
/// second request into the connection.
const RESERVED: [&str; 11] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "http2-settings",
    "keep-alive",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Headers that a redirect to another origin keeps: those that describe the wanted response or the body. Any other
/// header may be a credential under any name.
const FOLLOWING: [HeaderName; 7] =
    [ACCEPT, ACCEPT_ENCODING, ACCEPT_LANGUAGE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, USER_AGENT];

/// Headers that describe a body and are dropped with it (Fetch standard, "request-body-header name").
const OF_BODY: [HeaderName; 4] = [CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION, CONTENT_TYPE];

/// Joins the values of several fields with one name.
const SEPARATOR: &str = ", ";

/// Parses the headers of a step.
pub(super) fn given(headers: Option<&Value>) -> Result<HeaderMap, RequestError> {
    let mut map = HeaderMap::new();
    let given = match headers {
        None | Some(Value::Null) => return Ok(map),
        Some(Value::Map(given)) => given,
        Some(_) => return Err(RequestError::parameter("headers", "is no object: write `headers: {Name: text}`")),
    };
    if given.len() > REQUEST_HEADERS_MAX {
        let why = format!("are {} and at most {REQUEST_HEADERS_MAX} are sent: use the body", given.len());
        return Err(RequestError::parameter("headers", why));
    }
    for (name, value) in given {
        let key = || format!("headers.{name}");
        let parsed = name_of(name).map_err(|why| RequestError::parameter(key(), why))?;
        let value = value_of(value).map_err(|why| RequestError::parameter(key(), why))?;
        if map.insert(parsed, value).is_some() {
            return Err(RequestError::parameter(key(), "stands here twice, in different letters: keep one"));
        }
    }
    match bytes_of(&map) {
        bytes if bytes > REQUEST_HEAD_BYTES_MAX => {
            let why = format!("take {bytes} bytes and at most {REQUEST_HEAD_BYTES_MAX} are sent: use the body");
            Err(RequestError::parameter("headers", why))
        }
        _ => Ok(map),
    }
}

/// Parses the name of a header that a step may set.
pub(super) fn name_of(name: &str) -> Result<HeaderName, &'static str> {
    let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
        return Err("is no name of a header: use letters, digits and hyphens");
    };
    match RESERVED.contains(&name.as_str()) {
        true => Err("is set by us, as the connection needs it: leave it out"),
        false => Ok(name),
    }
}

fn value_of(value: &Value) -> Result<HeaderValue, &'static str> {
    let Some(text) = value.as_text() else { return Err("is not text: a header holds nothing else, so convert it") };
    let text = text.trim_matches([' ', '\t']);
    match HeaderValue::from_str(text) {
        Ok(value) if text.is_ascii() => Ok(value),
        _ => Err("holds a control character or one beyond ASCII: encode it"),
    }
}

/// Removes headers that another origin must not see.
pub(super) fn keep_following(headers: &mut HeaderMap) {
    retain(headers, |name| FOLLOWING.contains(name));
}

/// Removes headers that describe a body which is not sent any more.
pub(super) fn drop_of_body(headers: &mut HeaderMap) {
    retain(headers, |name| !OF_BODY.contains(name));
}

fn retain(headers: &mut HeaderMap, keep: impl Fn(&HeaderName) -> bool) {
    let dropped: Vec<HeaderName> = headers.keys().filter(|name| !keep(name)).cloned().collect();
    for name in dropped {
        headers.remove(name);
    }
}

/// Returns whether the headers of a response are small enough to keep.
pub(super) fn fits(headers: &HeaderMap) -> bool {
    bytes_of(headers) <= HEAD_BYTES_MAX
}

/// Counts the separators between fields with one name too, so that everything that fits can be shown.
fn bytes_of(headers: &HeaderMap) -> usize {
    headers.iter().map(|(name, value)| name.as_str().len() + value.len() + SEPARATOR.len()).sum()
}

/// Converts the headers of a response to `{name: text}`, and returns whether all of them are included: headers beyond
/// `bytes_max` are left out. Several fields with one name are joined with a comma (RFC 9110, 5.3), cookies with a line
/// feed, since they contain commas.
pub(super) fn to_value(headers: &HeaderMap, bytes_max: usize) -> (Value, bool) {
    let (mut map, mut room, mut is_whole) = (Map::new(), bytes_max, true);
    for name in headers.keys() {
        let separator = if name == SET_COOKIE { "\n" } else { SEPARATOR };
        let values: Vec<String> = headers.get_all(name).iter().map(text_of).collect();
        let text = values.join(separator);
        match room.checked_sub(name.as_str().len() + text.len()) {
            Some(rest) => {
                room = rest;
                map.insert(name.as_str().to_owned(), text.into());
            }
            None => is_whole = false,
        }
    }
    (Value::Map(map), is_whole)
}

/// Decodes a value. Bytes beyond ASCII are decoded as UTF-8 if valid, else as ISO 8859-1, the encoding of older
/// standards.
fn text_of(value: &HeaderValue) -> String {
    match std::str::from_utf8(value.as_bytes()) {
        Ok(text) => text.to_owned(),
        Err(_) => value.as_bytes().iter().copied().map(char::from).collect(),
    }
}

/// Removes the headers that described the body before it was decoded.
pub(super) fn drop_coding(headers: &mut HeaderMap) {
    headers.remove(CONTENT_ENCODING);
    headers.remove(CONTENT_LENGTH);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_refused(name: &str, value: Value, why: &str) {
        match given(Some(&Value::map([(name, value)]))) {
            Err(RequestError::ParameterInvalid { key, why: told }) => {
                assert_eq!(key, format!("headers.{name}"));
                assert!(told.contains(why), "{name}: {told}");
            }
            other => panic!("{name}: {other:?}"),
        }
    }

    #[test]
    fn headers_that_break_the_message_are_rejected() {
        for name in RESERVED {
            check_refused(name, "x".into(), "set by us");
            check_refused(&name.to_uppercase(), "x".into(), "set by us");
        }
        for name in ["", "a b", "a:b", ":path", "a\r\nb", "ä", "a\0"] {
            check_refused(name, "x".into(), "no name");
        }
        for value in ["a\r\nb: c", "a\nb", "a\rb", "a\0b", "ä", "\u{7f}"] {
            check_refused("a", value.into(), "control character");
        }
        for value in [Value::Null, Value::from(1u64), Value::from(true), Value::List(vec![])] {
            check_refused("a", value, "not text");
        }
        let twice = Value::map([("A", Value::from("x")), ("a", Value::from("x"))]);
        assert!(matches!(given(Some(&twice)), Err(RequestError::ParameterInvalid { key, .. }) if key == "headers.a"));
        assert!(given(Some(&Value::from("a: b"))).is_err());
        assert!(given(Some(&Value::map([("a", Value::from("x".repeat(REQUEST_HEAD_BYTES_MAX)))]))).is_err());
        let many = |count: usize| Value::map((0..count).map(|number| (format!("x-{number}"), Value::from(""))));
        assert!(given(Some(&many(REQUEST_HEADERS_MAX))).is_ok());
        assert!(given(Some(&many(REQUEST_HEADERS_MAX + 1))).is_err());
        assert!(given(Some(&many(40_000))).is_err());
    }

    #[test]
    fn plain_headers_are_accepted() {
        let headers = given(Some(&Value::map([("X-A", Value::from(" b ")), ("c", Value::from(""))]))).unwrap();
        assert_eq!(headers["x-a"], "b");
        assert_eq!(headers["c"], "");
        assert!(given(None).unwrap().is_empty() && given(Some(&Value::Null)).unwrap().is_empty());
    }

    /// Holds for every distribution of the bytes over fields.
    #[test]
    fn headers_within_the_bound_are_returned_whole() {
        let headers = |count: usize| {
            let mut headers = HeaderMap::new();
            for _ in 0..count {
                headers.append("a", HeaderValue::from_static(""));
            }
            headers
        };
        let count_max = HEAD_BYTES_MAX / 3;
        assert!(fits(&headers(count_max)) && !fits(&headers(count_max + 1)));
        assert!(to_value(&headers(count_max), HEAD_BYTES_MAX).1);
    }

    #[test]
    fn response_headers_of_one_name_are_joined() {
        let mut headers = HeaderMap::new();
        for (name, value) in [("a", "1"), ("a", "2"), ("set-cookie", "b=1, x"), ("set-cookie", "c=2")] {
            headers.append(name, HeaderValue::from_static(value));
        }
        headers.insert("utf8", HeaderValue::from_bytes("ä".as_bytes()).unwrap());
        headers.insert("latin", HeaderValue::from_bytes(b"\xe4").unwrap());
        let (value, is_whole) = to_value(&headers, 1000);
        let expected = [("a", "1, 2"), ("set-cookie", "b=1, x\nc=2"), ("utf8", "ä"), ("latin", "ä")];
        assert_eq!(value, Value::map(expected.map(|(name, text)| (name, Value::from(text)))));
        assert!(is_whole);
        assert_eq!(to_value(&headers, 5), (Value::map([("a", Value::from("1, 2"))]), false));
        assert_eq!(to_value(&headers, 4), (Value::Map(Map::new()), false));
    }
}
