//! The statuses that count as success (`expect`).

use hyper::StatusCode;
use mainspring_kernel::value::Value;

use super::error::RequestError;

/// Statuses and classes of statuses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ExpectedStatus(Vec<Expected>);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Expected {
    Status(u16),
    /// All statuses with this first digit.
    Class(u16),
}

impl ExpectedStatus {
    /// Parses the parameter of a step; 2xx is the default.
    pub(super) fn of(expect: Option<&Value>) -> Result<Self, RequestError> {
        let wrong = |key: &str| {
            RequestError::parameter(
                key,
                "is no list of statuses and classes of them: write `expect: [200, 404, \"3xx\"]`",
            )
        };
        let list = match expect {
            None | Some(Value::Null) => return Ok(Self(vec![Expected::Class(2)])),
            Some(Value::List(list)) if !list.is_empty() => list,
            Some(_) => return Err(wrong("expect")),
        };
        let expected = list.iter().enumerate();
        let expected = expected.map(|(at, item)| parse(item).ok_or_else(|| wrong(&format!("expect[{at}]"))));
        expected.collect::<Result<_, _>>().map(Self)
    }

    /// Returns whether this status is a success.
    pub(super) fn holds(&self, status: StatusCode) -> bool {
        self.0.iter().any(|expected| match *expected {
            Expected::Status(code) => status.as_u16() == code,
            Expected::Class(class) => status.as_u16() / 100 == class,
        })
    }
}

fn parse(item: &Value) -> Option<Expected> {
    match item {
        Value::Number(_) => {
            let code = item.as_u64().and_then(|code| u16::try_from(code).ok())?;
            (100..600).contains(&code).then_some(Expected::Status(code))
        }
        Value::Text(text) => match text.as_bytes() {
            [digit @ b'1'..=b'5', b'x', b'x'] => Some(Expected::Class(u16::from(digit - b'0'))),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expect: Option<Value>, held: &[u16], not_held: &[u16]) {
        let expect = ExpectedStatus::of(expect.as_ref()).unwrap();
        let holds = |code: &u16| expect.holds(StatusCode::from_u16(*code).unwrap());
        assert!(held.iter().all(holds) && !not_held.iter().any(holds), "{expect:?}");
    }

    #[test]
    fn statuses_and_classes() {
        check(None, &[200, 204, 299], &[199, 300, 404]);
        check(Some(Value::Null), &[200], &[300]);
        let list = vec![Value::from(404u64), Value::from("3xx")];
        check(Some(Value::List(list)), &[404, 300, 399], &[200, 403, 405, 400]);
    }

    #[test]
    fn anything_else_is_refused() {
        let items = ["2XX", "6xx", "0xx", "200", "2x", "", "2xxx", "äx"].map(Value::from);
        let numbers = [0u64, 99, 600, 65536 + 200].map(Value::from);
        let others = [Value::Null, Value::from(true), Value::from(-200i64), Value::List(vec![])];
        for item in items.into_iter().chain(numbers).chain(others) {
            let list = Value::List(vec![Value::from(200u64), item]);
            match ExpectedStatus::of(Some(&list)) {
                Err(RequestError::ParameterInvalid { key, .. }) => assert_eq!(key, "expect[1]"),
                other => panic!("{list:?}: {other:?}"),
            }
        }
        for whole in [Value::List(vec![]), Value::from("2xx"), Value::from(200u64)] {
            assert!(ExpectedStatus::of(Some(&whole)).is_err(), "{whole:?}");
        }
    }
}
