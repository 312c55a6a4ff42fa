//! Conversion between the kernel's values and the JSON type of `rmcp`.

use mainspring_kernel::{
    json,
    value::{Number, Value},
};
use serde_json::{Map, Value as Json};

/// Converts a value of the kernel.
pub(crate) fn to_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(bool) => Json::Bool(*bool),
        Value::Number(number) => number_to_json(*number),
        Value::Text(text) => Json::String(text.clone()),
        Value::List(items) => Json::Array(items.iter().map(to_json).collect()),
        Value::Map(map) => Json::Object(map.iter().map(|(key, value)| (key.clone(), to_json(value))).collect()),
    }
}

fn number_to_json(number: Number) -> Json {
    match number.as_whole() {
        Some(whole) => match u64::try_from(whole) {
            Ok(whole) => whole.into(),
            Err(_) => i64::try_from(whole).map_or(Json::Null, Json::from),
        },
        None => number.as_double().into(),
    }
}

/// Converts the arguments of a tool.
pub(crate) fn to_object(value: &Value) -> Option<Map<String, Json>> {
    match to_json(value) {
        Json::Object(map) => Some(map),
        _ => None,
    }
}

/// Converts a value of a server. The error names the limit of the kernel that it exceeds: nesting, size or the range of
/// numbers.
pub(crate) fn from_json(value: &Json) -> Result<Value, String> {
    let text = serde_json::to_vec(value).map_err(|error| error.to_string())?;
    json::value(&text).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_both_directions() {
        let text =
            br#"{"a":[1,-9223372036854775808,18446744073709551615,0.1,1e300,true,null,"\u0000\ud83d\ude00"],"":{}}"#;
        let value = json::value(text).unwrap();
        assert_eq!(from_json(&to_json(&value)).unwrap(), value);
    }

    #[test]
    fn a_value_beyond_the_kernels_limits_is_an_error() {
        let deep = (0..1_000).fold(Json::Null, |inner, _| Json::Array(vec![inner]));
        assert!(from_json(&deep).is_err());
    }
}
