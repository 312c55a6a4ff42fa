//! The price table of a settings file or a scenario: `{date, currency, models: {NAME: {input, output, cachedInput}}}`.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::{ModelTerm, ModelTerms, Price};
use crate::{
    plan::{RuleError, RuleReader},
    time::parse_rfc3339,
    value::{Map, Value},
};

const KEYS: [&str; 3] = ["currency", "date", "models"];
const PRICE_KEYS: [&str; 3] = ["input", "output", "cachedInput"];

/// The highest price of a million tokens, in units of the currency.
const PRICE_MAX: f64 = 1_000_000.0;

/// The name of a model that is the default in a table of several models without other settings.
const DEFAULT: &str = "default";

impl ModelTerms {
    /// Adds the prices of a table. Each price is for one of these models. All errors are returned; null is a table
    /// without prices.
    pub fn with_prices(mut self, prices: &Value) -> Result<Self, Vec<RuleError>> {
        let mut reader = RuleReader::default();
        let models = self.read_head(prices, &mut reader);
        for (name, value) in models.into_iter().flatten() {
            let path = format!("prices.models.{name}");
            match (self.models.get_mut(name), price(value)) {
                (None, _) => reader.refuse(path, "no model has this name", "use the names of `models`"),
                (_, Err(why)) => {
                    let help = "write `{input: 3, output: 15, cachedInput: 0.3}` for a million tokens each";
                    reader.refuse(path, why, help);
                }
                (Some(term), Ok(price)) => term.price = Some(price),
            }
        }
        reader.finish(self)
    }

    /// Reads a table whose models are known by nothing else, as in a scenario. A single model is the default, and among
    /// several the one called `default`.
    pub fn of_prices(prices: &Value) -> Result<Self, Vec<RuleError>> {
        let empty = Map::new();
        let names = prices.get("models").and_then(Value::as_map).unwrap_or(&empty);
        let default = match names.len() {
            1 => names.keys().next().cloned(),
            _ => names.contains_key(DEFAULT).then(|| DEFAULT.to_string()),
        };
        let models = names.keys().map(|name| (name.clone(), ModelTerm::default())).collect();
        Self { default, models, ..Self::default() }.with_prices(prices)
    }

    /// Reads date and currency, and returns the map of prices.
    fn read_head<'v>(&mut self, prices: &'v Value, reader: &mut RuleReader) -> Option<&'v Map> {
        if *prices == Value::Null {
            return None;
        }
        let Some(map) = prices.as_map() else {
            let help = "write `{date: 2026-11-01, currency: USD, models: {…}}`";
            reader.refuse("prices".into(), "this is not a map", help);
            return None;
        };
        for key in map.keys().filter(|key| !KEYS.contains(&key.as_str())) {
            let help = format!("the keys are {}", KEYS.join(", "));
            reader.refuse(format!("prices.{key}"), "this key is not known", help);
        }
        let text = |key: &str| map.get(key).and_then(Value::as_text);
        let is_date = |text: &&str| text.len() == 10 && parse_rfc3339(&format!("{text}T00:00:00Z")).is_some();
        self.date = text("date").filter(is_date).map(String::from);
        if self.date.is_none() {
            let help = "write the day on which you read the prices, as 2026-11-01";
            reader.refuse("prices.date".into(), "this is not a date", help);
        }
        let is_currency = |text: &&str| text.len() == 3 && text.bytes().all(|byte| byte.is_ascii_uppercase());
        self.currency = text("currency").filter(is_currency).map(String::from);
        if self.currency.is_none() {
            reader.refuse("prices.currency".into(), "this is not a currency", "write its code, such as USD");
        }
        let models = map.get("models").and_then(Value::as_map);
        if models.is_none() {
            let help = "write `NAME: {input: 3, output: 15}`, with names of `models`";
            reader.refuse("prices.models".into(), "this is not a map", help);
        }
        models
    }
}

/// Reads a price for a million tokens. Cached tokens cost as much as others unless it says otherwise.
fn price(value: &Value) -> Result<Price, String> {
    let Some(map) = value.as_map() else { return Err(format!("this is {}, not a map", value.kind())) };
    if let Some(key) = map.keys().find(|key| !PRICE_KEYS.contains(&key.as_str())) {
        return Err(format!("the key {} is not known", crate::diagnostic::quoted(key)));
    }
    let of = |key: &str| match map.get(key).map(|value| value.as_number().map(|number| number.as_double())) {
        None => Ok(None),
        Some(Some(units)) if (0.0..=PRICE_MAX).contains(&units) => Ok(Some(billionths(units))),
        Some(_) => Err(format!("`{key}` is not a price from 0 to {PRICE_MAX}")),
    };
    let needed = |key: &str| of(key)?.ok_or_else(|| format!("`{key}` is missing"));
    let input = needed("input")?;
    Ok(Price { input, cached_input: of("cachedInput")?.unwrap_or(input), output: needed("output")? })
}

/// Returns the price of a token in billionths of a unit, rounded up. A unit for a million tokens is a thousand of them.
fn billionths(units: f64) -> u64 {
    let exact = units * 1_000.0;
    let whole = exact as u64;
    whole + u64::from((whole as f64) < exact)
}
