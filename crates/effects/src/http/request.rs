//! Builds the request of an attempt from its parameters alone, so that every attempt of a step sends the same request.

use bytes::Bytes;
use hyper::{
    Method,
    header::{ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, USER_AGENT},
};
use mainspring_kernel::{
    effect::Attempt,
    json, trace_context,
    value::{Map, Value},
};

use super::{
    decode::CODINGS,
    error::RequestError,
    expected_status::ExpectedStatus,
    headers,
    limits::{RESPONSE_BYTES_DEFAULT, RESPONSE_BYTES_MAX},
    url::Target,
};

/// All parameters of an `http` step.
const KEYS: [&str; 9] =
    ["body", "expect", "followRedirects", "headers", "idempotencyHeader", "maxResponseBytes", "method", "query", "url"];

/// The default header of the idempotency key (draft-ietf-httpapi-idempotency-key-header).
const IDEMPOTENCY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");

const AGENT: &str = concat!("mainspring/", env!("CARGO_PKG_VERSION"));

/// A request that is ready to send.
#[derive(Debug, Clone)]
pub(super) struct Request {
    /// The method, in capital letters.
    pub(super) method: Method,
    /// The URL with its query.
    pub(super) target: Target,
    /// All headers except those of the connection.
    pub(super) headers: HeaderMap,
    /// The body, if there is one.
    pub(super) body: Option<Bytes>,
    /// The statuses that count as success.
    pub(super) expect: ExpectedStatus,
    /// False if a redirect is the final response.
    pub(super) follows_redirects: bool,
    /// Maximum bytes of the decoded body of the response.
    pub(super) response_bytes_max: usize,
}

impl Request {
    /// Builds the request of an attempt.
    pub(super) fn of(attempt: &Attempt) -> Result<Self, RequestError> {
        let Value::Map(params) = &attempt.params else {
            return Err(RequestError::parameter("params", format!("are {} and no object", attempt.params.kind())));
        };
        if let Some(unknown) = params.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(RequestError::parameter(
                unknown,
                format!("is no parameter of `http`; it has {}", KEYS.join(", ")),
            ));
        }
        // A reference to a skipped step yields null, which means the same as a missing key.
        let given = |key: &str| params.get(key).filter(|value| **value != Value::Null);
        let mut headers = headers::given(given("headers"))?;
        let body = body_of(params.get("body"), &mut headers);
        add_idempotency_key(attempt, params, &mut headers)?;
        add_default(&mut headers, USER_AGENT, AGENT);
        add_default(&mut headers, ACCEPT, "*/*");
        add_default(&mut headers, ACCEPT_ENCODING, CODINGS);
        Ok(Self {
            method: method_of(given("method"))?,
            target: target_of(given("url"), given("query"))?,
            headers,
            body,
            expect: ExpectedStatus::of(given("expect"))?,
            follows_redirects: match given("followRedirects") {
                None => true,
                Some(Value::Bool(follows)) => *follows,
                Some(_) => return Err(RequestError::parameter("followRedirects", "is neither true nor false")),
            },
            response_bytes_max: response_bytes_max_of(given("maxResponseBytes"))?,
        })
    }
}

impl Request {
    /// Adds the trace context. A value of the step takes precedence.
    pub(super) fn tell_trace(&mut self, attempt: &Attempt) {
        add_default(&mut self.headers, HeaderName::from_static("traceparent"), &trace_context::traceparent(attempt));
    }
}

fn method_of(method: Option<&Value>) -> Result<Method, RequestError> {
    let wrong = |why| Err(RequestError::parameter("method", why));
    let name = match method {
        None => return Ok(Method::GET),
        Some(Value::Text(name)) => name.to_ascii_uppercase(),
        Some(_) => return wrong("is no text: write `method: POST`"),
    };
    match Method::from_bytes(name.as_bytes()) {
        // CONNECT would make a tunnel of the connection, and TRACE returns credentials as text.
        Ok(Method::CONNECT | Method::TRACE) => wrong("is none that a step may use"),
        Ok(method) => Ok(method),
        Err(_) => wrong("is no method: write GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS"),
    }
}

fn target_of(url: Option<&Value>, query: Option<&Value>) -> Result<Target, RequestError> {
    let Some(Value::Text(url)) = url else {
        return Err(RequestError::parameter("url", "is missing or no text: write `url: https://host/path`"));
    };
    let target = Target::parse(url).map_err(|why| RequestError::parameter("url", why))?;
    target.with_query(&pairs_of(query)?).map_err(|why| RequestError::parameter("query", why))
}

/// Returns names and values of a query; a list repeats its name for each item.
fn pairs_of(query: Option<&Value>) -> Result<Vec<(String, String)>, RequestError> {
    let query = match query {
        None => return Ok(Vec::new()),
        Some(Value::Map(query)) => query,
        Some(_) => return Err(RequestError::parameter("query", "is no object: write `query: {name: value}`")),
    };
    let mut pairs = Vec::new();
    for (name, value) in query {
        for value in value.as_list().unwrap_or(std::slice::from_ref(value)) {
            let text = match value {
                Value::Text(text) => text.clone(),
                Value::Number(_) | Value::Bool(_) => json::compact(value),
                Value::Null | Value::List(_) | Value::Map(_) => {
                    let why = format!("is {}: give text, a number, a boolean or a list of them", value.kind());
                    return Err(RequestError::parameter(format!("query.{name}"), why));
                }
            };
            pairs.push((name.clone(), text));
        }
    }
    Ok(pairs)
}

/// Sends text as it is and any other value as JSON. An explicit null is sent; only a missing `body` means no body.
fn body_of(body: Option<&Value>, headers: &mut HeaderMap) -> Option<Bytes> {
    let (body, content_type) = match body? {
        Value::Text(text) => (text.clone(), "text/plain; charset=utf-8"),
        other => (json::compact(other), "application/json"),
    };
    add_default(headers, CONTENT_TYPE, content_type);
    Some(body.into())
}

/// Adds the idempotency key. It is the same for all attempts, so that a server that supports the header performs the
/// work once. A value of the step takes precedence.
fn add_idempotency_key(attempt: &Attempt, params: &Map, headers: &mut HeaderMap) -> Result<(), RequestError> {
    let name = match params.get("idempotencyHeader") {
        None => Some(IDEMPOTENCY_HEADER),
        Some(Value::Null | Value::Bool(false)) => None,
        Some(Value::Text(name)) => {
            Some(headers::name_of(name).map_err(|why| RequestError::parameter("idempotencyHeader", why))?)
        }
        Some(_) => {
            return Err(RequestError::parameter("idempotencyHeader", "is neither the name of a header nor false"));
        }
    };
    let key = attempt.intent.hex();
    let key = if attempt.flags.key_per_attempt { format!("{key}-{}", attempt.number) } else { key };
    if let Some(name) = name {
        add_default(headers, name, &key);
    }
    Ok(())
}

fn response_bytes_max_of(bytes_max: Option<&Value>) -> Result<usize, RequestError> {
    let Some(value) = bytes_max else { return Ok(RESPONSE_BYTES_DEFAULT) };
    match value.as_u64().and_then(|bytes| usize::try_from(bytes).ok()) {
        Some(bytes @ 1..=RESPONSE_BYTES_MAX) => Ok(bytes),
        _ => {
            let why = format!("is no whole number from 1 to {RESPONSE_BYTES_MAX}");
            Err(RequestError::parameter("maxResponseBytes", why))
        }
    }
}

fn add_default(headers: &mut HeaderMap, name: HeaderName, value: &str) {
    // The added values are ASCII. Any other would be skipped.
    if let Ok(value) = HeaderValue::from_str(value) {
        headers.entry(name).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mainspring_kernel::{effect::AttemptFlags, hash::Hash, key::ExecutionKey};
    use proptest::prelude::*;

    fn attempt(number: u32, params: Value) -> Attempt {
        Attempt {
            execution: ExecutionKey([1; 16]),
            root: ExecutionKey([1; 16]),
            execution_id: "run-1".into(),
            organization: None,
            workflow_id: None,
            step: "fetch".into(),
            number,
            effect: "http".into(),
            params,
            intent: Hash([0xab; 32]),
            flags: AttemptFlags::default(),
            handed_out_at: 0,
            workspace: None,
            secrets: mainspring_kernel::secret::SecretUses::default(),
            progress: None,
        }
    }

    /// Builds the request of these parameters and a plain URL.
    fn request<const N: usize>(params: [(&str, Value); N]) -> Result<Request, RequestError> {
        let mut params: Map = params.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        params.entry("url".into()).or_insert("https://a.test/p".into());
        Request::of(&attempt(2, Value::Map(params)))
    }

    #[track_caller]
    fn check_refused(params: Value, expected: &str) {
        match Request::of(&attempt(1, params)) {
            Err(RequestError::ParameterInvalid { key, .. }) => assert_eq!(key, expected),
            other => panic!("{expected}: {other:?}"),
        }
    }

    #[test]
    fn a_url_alone_is_a_whole_request() {
        let request = request([]).unwrap();
        assert_eq!((request.method, request.body, request.follows_redirects), (Method::GET, None, true));
        assert_eq!(request.response_bytes_max, RESPONSE_BYTES_DEFAULT);
        assert_eq!(request.headers.len(), 4);
        assert_eq!(request.headers["idempotency-key"], *"ab".repeat(32));
        assert_eq!(request.headers["user-agent"], AGENT);
    }

    #[test]
    fn traceparent_is_sent_unless_the_step_sets_one() {
        let told = |params| {
            let attempt = attempt(1, Value::map(params));
            let mut request = Request::of(&attempt).unwrap();
            assert_eq!(
                request.headers.get_all("traceparent").iter().count(),
                attempt.params.get("headers").iter().len()
            );
            request.tell_trace(&attempt);
            (request.headers["traceparent"].to_str().unwrap().to_owned(), trace_context::traceparent(&attempt))
        };
        let (sent, ours) = told(vec![("url", "https://a.test".into())]);
        assert_eq!(sent, ours);
        let headers = Value::map([("Traceparent", Value::from("mine"))]);
        let (sent, _) = told(vec![("url", "https://a.test".into()), ("headers", headers)]);
        assert_eq!(sent, "mine");
    }

    #[test]
    fn parameters_of_another_form_are_refused_by_name() {
        let list = || Value::List(vec![]);
        for (key, wrong) in [
            (
                "method",
                vec![list(), "".into(), "A B".into(), "Ä".into(), "connect".into(), "TRACE".into(), true.into()],
            ),
            ("url", vec![Value::Null, list(), "".into(), "a".into(), "file:///".into()]),
            ("query", vec![list(), "a=b".into()]),
            ("headers", vec![list(), "a: b".into()]),
            ("followRedirects", vec!["yes".into(), 1u64.into()]),
            ("idempotencyHeader", vec![true.into(), "a b".into(), "Host".into(), "".into(), 1u64.into()]),
            ("maxResponseBytes", vec![0u64.into(), (RESPONSE_BYTES_MAX as u64 + 1).into(), (-1i64).into(), "1".into()]),
            ("expect", vec![list(), "2xx".into()]),
            ("timeout", vec![1u64.into()]),
            ("URL", vec!["https://a.test".into()]),
        ] {
            for value in wrong {
                let mut params = Map::from([("url".to_owned(), Value::from("https://a.test/"))]);
                params.insert(key.into(), value);
                check_refused(Value::Map(params), key);
            }
        }
        check_refused(Value::map([("headers", Value::Map(Map::new()))]), "url");
        check_refused(Value::Null, "params");
        for value in [Value::Null, Value::Map(Map::new()), Value::List(vec![list()])] {
            let query = Value::map([("a.b", value)]);
            check_refused(Value::map([("url", "https://a.test".into()), ("query", query)]), "query.a.b");
        }
    }

    #[test]
    fn methods_are_capital_and_may_be_any_token() {
        for (given, method) in [("post", "POST"), ("Report", "REPORT"), ("M-SEARCH", "M-SEARCH")] {
            assert_eq!(request([("method", given.into())]).unwrap().method.as_str(), method);
        }
    }

    #[test]
    fn queries_are_encoded_in_the_order_of_their_names() {
        let list = Value::List(vec!["x y".into(), 1u64.into(), false.into()]);
        let query = Value::map([("b", list), ("a", Value::from(1u64)), ("c", Value::List(vec![]))]);
        let request = request([("url", "https://a.test/p?z=0#f".into()), ("query", query)]).unwrap();
        assert_eq!(request.target.uri().path_and_query().unwrap(), "/p?z=0&a=1&b=x+y&b=1&b=false");
    }

    #[test]
    fn bodies_set_their_content_type() {
        let check = |body: Value, bytes: &str, content_type: &str| {
            let request = request([("body", body)]).unwrap();
            assert_eq!(request.body.as_deref(), Some(bytes.as_bytes()));
            assert_eq!(request.headers["content-type"], content_type);
        };
        check("ä".into(), "ä", "text/plain; charset=utf-8");
        check("".into(), "", "text/plain; charset=utf-8");
        check(Value::map([("a", Value::from(1u64 << 60))]), r#"{"a":1152921504606846976}"#, "application/json");
        check(Value::List(vec![Value::Null]), "[null]", "application/json");
        check(Value::Null, "null", "application/json");
        let headers = Value::map([("CONTENT-TYPE", Value::from("text/csv"))]);
        let request = request([("headers", headers), ("body", "a,b".into())]).unwrap();
        assert_eq!(request.headers["content-type"], "text/csv");
    }

    #[test]
    fn the_idempotency_key_is_derived_from_the_intent() {
        let key = |params: Value, number: u32, name: &str| {
            let request = Request::of(&attempt(number, params)).unwrap();
            request.headers.get(name).map(|value| value.to_str().unwrap().to_owned())
        };
        let with = |name: &str, value: Value| Value::map([("url", Value::from("https://a.test")), (name, value)]);
        let hex = "ab".repeat(32);
        for number in [1, 7] {
            assert_eq!(key(with("method", "GET".into()), number, "idempotency-key"), Some(hex.clone()));
            let params = with("method", "GET".into());
            let flags = AttemptFlags { key_per_attempt: true, ..AttemptFlags::default() };
            let request = Request::of(&Attempt { flags, ..attempt(number, params) }).unwrap();
            assert_eq!(request.headers["idempotency-key"].to_str().unwrap(), format!("{hex}-{number}"));
        }
        assert_eq!(key(with("idempotencyHeader", "X-Request".into()), 1, "x-request"), Some(hex));
        assert_eq!(key(with("idempotencyHeader", "X-Request".into()), 1, "idempotency-key"), None);
        assert_eq!(key(with("idempotencyHeader", Value::Null), 1, "idempotency-key"), None);
        assert_eq!(key(with("idempotencyHeader", false.into()), 1, "idempotency-key"), None);
        let own = with("headers", Value::map([("Idempotency-Key", Value::from("mine"))]));
        assert_eq!(key(own, 1, "idempotency-key"), Some("mine".into()));
    }

    /// Values of every kind, with texts close to those that the parsers accept.
    fn any_value() -> impl Strategy<Value = Value> {
        let text = prop_oneof![
            ".{0,12}",
            "https?://[a-z0-9.:@\\[\\]%/?#\\\\-]{0,20}",
            Just("https://a.test/".to_owned()),
            "[1-6]xx|[A-Za-z-]{1,9}|step|attempt"
        ];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            (0u64..700).prop_map(Value::from),
            text.prop_map(Value::from),
        ];
        leaf.prop_recursive(3, 16, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::List),
                proptest::collection::btree_map("[A-Za-z-]{0,8}|.{0,3}", inner, 0..4).prop_map(Value::Map),
            ]
        })
    }

    proptest! {
        /// Any parameters give a request or an error, the same for every attempt.
        #[test]
        fn any_parameters_give_a_request_or_an_error(
            params in proptest::collection::btree_map(
                prop_oneof![9 => proptest::sample::select(KEYS.to_vec()).prop_map(str::to_owned), 1 => ".{0,5}"],
                any_value(),
                0..8,
            ),
            is_reachable: bool,
        ) {
            let mut params = params;
            if is_reachable {
                params.insert("url".into(), "https://a.test/".into());
            }
            let of = |number| Request::of(&attempt(number, Value::Map(params.clone())));
            match (of(1), of(2)) {
                (Ok(first), Ok(second)) => {
                    let all = |request: &Request| format!("{request:?}");
                    prop_assert_eq!(all(&first), all(&second));
                }
                (Err(first), Err(second)) => prop_assert_eq!(format!("{first:?}"), format!("{second:?}")),
                (first, second) => prop_assert!(false, "{first:?} and {second:?}"),
            }
        }

        #[test]
        fn params_may_be_any_value(params in any_value()) {
            let _ = Request::of(&attempt(1, params));
        }
    }
}
