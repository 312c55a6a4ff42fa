//! The stored form of budgets and of the terms of models. Costs are whole numbers of billionths.

use alloc::{
    collections::BTreeMap,
    string::{String, ToString},
};

use crate::{
    budget::{Budget, Limits, ModelTerm, ModelTerms, NAMES, Price},
    limits::APPROVAL_COUNT_MAX,
    value::{Map, Value},
};

/// Returns the stored form of a budget.
pub(super) fn budget(budget: &Budget) -> Value {
    let limits = NAMES.into_iter().zip(budget.limits.0);
    let mut map: Map = limits.filter_map(|(name, limit)| Some((name.to_string(), limit?.into()))).collect();
    if budget.asks {
        map.insert("onExceeded".into(), "ask".into());
    }
    map.insert("warnPercent".into(), budget.warn_percent.into());
    Value::Map(map)
}

/// Reads a budget; `None` for any other value.
pub(super) fn read_budget(value: &Value) -> Option<Budget> {
    let mut budget = Budget { limits: Limits::default(), asks: false, warn_percent: 0 };
    for (key, value) in value.as_map()? {
        match (key.as_str(), NAMES.iter().position(|name| name == key)) {
            (_, Some(place)) => budget.limits.0[place] = Some(value.as_u64()?),
            ("onExceeded", _) => budget.asks = value.as_text()? == "ask",
            ("warnPercent", _) => budget.warn_percent = u32::try_from(value.as_u64()?).ok()?,
            _ => return None,
        }
    }
    (!budget.limits.is_empty() && (1..=100).contains(&budget.warn_percent)).then_some(budget)
}

/// Returns the stored form of the terms of models.
pub(super) fn models(terms: &ModelTerms) -> Value {
    let mut map = Map::new();
    let texts = [("default", &terms.default), ("currency", &terms.currency), ("date", &terms.date)];
    map.extend(texts.into_iter().filter_map(|(key, text)| Some((key.to_string(), text.as_deref()?.into()))));
    if terms.needs_leases {
        map.insert("leases".into(), true.into());
    }
    map.extend(terms.raise_approvals.map(|count| ("raiseApprovals".to_string(), count.into())));
    let model = |term: &ModelTerm| {
        let mut map = Map::new();
        map.extend(term.max_tokens.map(|tokens| ("maxTokens".to_string(), tokens.into())));
        map.extend(term.price.map(|price| {
            let price = [price.input, price.cached_input, price.output].map(Value::from);
            ("price".to_string(), Value::List(price.into()))
        }));
        Value::Map(map)
    };
    map.insert(
        "models".into(),
        terms.models.iter().map(|(name, term)| (name.clone(), model(term))).collect::<Map>().into(),
    );
    Value::Map(map)
}

/// Reads the terms of models; `None` for any other value.
pub(super) fn read_models(value: &Value) -> Option<ModelTerms> {
    let map = value.as_map()?;
    let is_known =
        |key: &String| ["default", "currency", "date", "leases", "models", "raiseApprovals"].contains(&key.as_str());
    if !map.keys().all(is_known) {
        return None;
    }
    let text = |key: &str| -> Option<Option<String>> {
        map.get(key).map_or(Some(None), |text| text.as_text().map(|text| Some(text.to_string())))
    };
    let models = map.get("models")?.as_map()?.iter().map(|(name, value)| Some((name.clone(), read_model(value)?)));
    Some(ModelTerms {
        default: text("default")?,
        currency: text("currency")?,
        date: text("date")?,
        models: models.collect::<Option<BTreeMap<_, _>>>()?,
        needs_leases: map.get("leases").map_or(Some(false), Value::as_bool)?,
        raise_approvals: map.get("raiseApprovals").map_or(Some(None), |count| {
            let count = count.as_u64().and_then(|count| u32::try_from(count).ok());
            count.filter(|count| (1..=APPROVAL_COUNT_MAX).contains(count)).map(Some)
        })?,
    })
}

fn read_model(value: &Value) -> Option<ModelTerm> {
    let mut term = ModelTerm::default();
    for (key, value) in value.as_map()? {
        match key.as_str() {
            "maxTokens" => term.max_tokens = Some(value.as_u64()?),
            "price" => {
                let [input, cached_input, output] = value.as_list()? else { return None };
                let (input, cached_input, output) = (input.as_u64()?, cached_input.as_u64()?, output.as_u64()?);
                term.price = Some(Price { input, cached_input, output });
            }
            _ => return None,
        }
    }
    Some(term)
}
