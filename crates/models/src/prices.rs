//! `prices` of the settings file: the price of each model, with the date on which the owner read it.

use mainspring_kernel::{
    budget::{ModelTerm, ModelTerms, Price},
    time::parse_rfc3339,
    value::{Map, Value},
};

use crate::config::{ConfigError, ModelConfig};

const KEYS: [&str; 3] = ["currency", "date", "models"];
const PRICE_KEYS: [&str; 3] = ["input", "output", "cachedInput"];

/// The highest price of a million tokens, in units of the currency.
const PRICE_MAX: f64 = 1_000_000.0;

/// Reads the value of `prices`, and returns the terms of all models. All errors are returned. Null is a table without
/// prices.
pub fn terms(prices: &Value, models: &[ModelConfig]) -> Result<ModelTerms, Vec<ConfigError>> {
    let default = models.iter().find(|model| model.is_default).map(|model| model.name.clone());
    let term = |model: &ModelConfig| (model.name.clone(), ModelTerm { max_tokens: model.max_tokens, price: None });
    let mut terms = ModelTerms { default, models: models.iter().map(term).collect(), ..ModelTerms::default() };
    if *prices == Value::Null {
        return Ok(terms);
    }
    let mut errors = Vec::new();
    let Some(map) = prices.as_map() else {
        return Err(vec![error(
            "prices",
            "this is not a map",
            "write `{date: 2026-11-01, currency: USD, models: {…}}`",
        )]);
    };
    for key in map.keys().filter(|key| !KEYS.contains(&key.as_str())) {
        errors.push(error(
            &format!("prices.{key}"),
            "this key is not known",
            &format!("the keys are {}", KEYS.join(", ")),
        ));
    }
    let text = |key: &str| map.get(key).and_then(Value::as_text);
    let is_date = |text: &&str| text.len() == 10 && parse_rfc3339(&format!("{text}T00:00:00Z")).is_some();
    match text("date").filter(is_date) {
        Some(date) => terms.date = Some(date.into()),
        None => errors.push(error(
            "prices.date",
            "this is not a date",
            "write the day on which you read the prices, as 2026-11-01",
        )),
    }
    let is_currency = |text: &&str| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase());
    match text("currency").filter(is_currency) {
        Some(currency) => terms.currency = Some(currency.into()),
        None => errors.push(error("prices.currency", "this is not a currency", "write its code, such as USD")),
    }
    let empty = Map::new();
    for (name, value) in map.get("models").and_then(Value::as_map).unwrap_or(&empty) {
        let path = format!("prices.models.{name}");
        match (terms.models.get_mut(name), price(value)) {
            (None, _) => errors.push(error(&path, "no model has this name", "use the names of `models`")),
            (_, Err(why)) => errors.push(error(
                &path,
                &why,
                "write `{input: 3, output: 15, cachedInput: 0.3}` for a million tokens each",
            )),
            (Some(term), Ok(price)) => term.price = Some(price),
        }
    }
    if map.get("models").is_none_or(|models| models.as_map().is_none()) {
        errors.push(error(
            "prices.models",
            "this is not a map",
            "write `NAME: {input: 3, output: 15}`, with names of `models`",
        ));
    }
    if errors.is_empty() { Ok(terms) } else { Err(errors) }
}

/// Reads a price for a million tokens. Cached tokens cost as much as others unless it says otherwise.
fn price(value: &Value) -> Result<Price, String> {
    let Some(map) = value.as_map() else { return Err(format!("this is {}, not a map", value.kind())) };
    if let Some(key) = map.keys().find(|key| !PRICE_KEYS.contains(&key.as_str())) {
        return Err(format!("the key `{key}` is not known"));
    }
    // A unit for a million tokens is a thousand billionths for each.
    let of = |key: &str| match map.get(key).map(|value| value.as_number().map(|number| number.as_double())) {
        None => Ok(None),
        Some(Some(units)) if (0.0..=PRICE_MAX).contains(&units) => Ok(Some((units * 1_000.0).ceil() as u64)),
        Some(_) => Err(format!("`{key}` is not a price from 0 to {PRICE_MAX}")),
    };
    let needed = |key: &str| of(key)?.ok_or_else(|| format!("`{key}` is missing"));
    let input = needed("input")?;
    Ok(Price { input, cached_input: of("cachedInput")?.unwrap_or(input), output: needed("output")? })
}

fn error(path: &str, message: &str, help: &str) -> ConfigError {
    ConfigError { path: path.into(), message: message.into(), help: help.into() }
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::json;

    use super::*;
    use crate::config;

    fn read(prices: &str) -> Result<ModelTerms, Vec<String>> {
        let models = r#"{"a": {"provider": "gemini", "model": "m", "maxTokens": 100}}"#;
        let models = config::models(&json::value(models.as_bytes()).unwrap()).unwrap();
        terms(&json::value(prices.as_bytes()).unwrap(), &models)
            .map_err(|errors| errors.iter().map(ToString::to_string).collect())
    }

    #[test]
    fn prices_of_a_million_tokens_become_billionths_of_one() {
        let table = r#"{"date": "2026-11-01", "currency": "USD", "models": {"a": {"input": 3, "output": 15, "cachedInput": 0.3}}}"#;
        let terms = read(table).unwrap();
        let price = Price { input: 3_000, cached_input: 300, output: 15_000 };
        assert_eq!(terms.models["a"], ModelTerm { max_tokens: Some(100), price: Some(price) });
        assert_eq!((terms.default.as_deref(), terms.date.as_deref()), (Some("a"), Some("2026-11-01")));
        assert_eq!(read("null").unwrap().models["a"].price, None);
    }

    #[test]
    fn errors_name_their_place() {
        let check = |table: &str, expected: &str| {
            let errors = read(table).unwrap_err();
            assert!(errors.iter().any(|error| error.contains(expected)), "{table}: {errors:?}");
        };
        check("[]", "prices: this is not a map");
        check(r#"{"currency": "USD", "models": {}}"#, "prices.date: this is not a date");
        check(r#"{"date": "2026-13-01", "currency": "USD", "models": {}}"#, "prices.date: this is not a date");
        check(r#"{"date": "2026-11-01", "currency": "dollar", "models": {}}"#, "prices.currency");
        check(
            r#"{"date": "2026-11-01", "currency": "USD", "models": {"b": {"input": 1, "output": 1}}}"#,
            "no model has",
        );
        check(r#"{"date": "2026-11-01", "currency": "USD", "models": {"a": {"input": 1}}}"#, "`output` is missing");
        check(
            r#"{"date": "2026-11-01", "currency": "USD", "models": {"a": {"input": -1, "output": 1}}}"#,
            "`input` is not",
        );
        check(r#"{"date": "2026-11-01", "currency": "USD", "modles": {}}"#, "prices.modles: this key is not known");
    }
}
