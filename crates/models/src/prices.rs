//! `prices` of the settings file: the price of each model, with the date on which the owner read it.

use mainspring_kernel::{
    budget::{ModelTerm, ModelTerms},
    plan::RuleError,
    value::Value,
};

use crate::config::{ConfigError, ModelConfig};

/// Reads the value of `prices`, and returns the terms of all models. All errors are returned. Null is a table without
/// prices.
pub fn terms(prices: &Value, models: &[ModelConfig]) -> Result<ModelTerms, Vec<ConfigError>> {
    let default = models.iter().find(|model| model.is_default).map(|model| model.name.clone());
    let term = |model: &ModelConfig| (model.name.clone(), ModelTerm { max_tokens: model.max_tokens, price: None });
    let terms = ModelTerms { default, models: models.iter().map(term).collect(), ..ModelTerms::default() };
    let of_models = |errors: Vec<RuleError>| errors.into_iter().map(config_error).collect();
    terms.with_prices(prices).map_err(of_models)
}

fn config_error(error: RuleError) -> ConfigError {
    ConfigError { path: error.path, message: error.message, help: error.help }
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::{budget::Price, json};

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
