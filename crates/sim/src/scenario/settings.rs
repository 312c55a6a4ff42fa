//! The settings of a case: the prices of models and the classes of tools, as a settings file has them.
//!
//! A case does not read the settings of the machine, so it gives the same result everywhere.

use mainspring_kernel::{
    budget::ModelTerms, diagnostic, document::Path, effect_policy::EffectPolicy, plan::RuleError, value::Value,
};

use super::reader::{Part, Reader};

/// Reads `prices` and `classes` of a case.
pub(super) fn read<'a>(part: &Part<'a>, reader: &mut Reader<'a>) -> EffectPolicy {
    let mut policy = EffectPolicy::default();
    if let Some(classes) = part.field("classes") {
        let settings = Value::map([("classes", classes.value.clone())]);
        match EffectPolicy::read(&settings) {
            Ok(read) => policy = read,
            Err(errors) => refuse(errors, "policy.classes", &classes.path, reader),
        }
    }
    if let Some(prices) = part.field("prices") {
        match ModelTerms::of_prices(prices.value) {
            Ok(terms) => policy = policy.with_models(terms),
            Err(errors) => refuse(errors, "prices", &prices.path, reader),
        }
    }
    policy
}

/// Reports errors at their places. Their paths begin with that of the key in a settings file.
fn refuse(errors: Vec<RuleError>, own: &str, path: &Path, reader: &mut Reader<'_>) {
    for RuleError { path: place, message, help } in errors {
        let inside = place.strip_prefix(own).unwrap_or_default().trim_start_matches('.');
        // A pattern may contain dots, so only known keys are split.
        let keys = match inside.split_once('.') {
            Some(("models", name)) if own == "prices" => vec!["models", name],
            _ if inside.is_empty() => Vec::new(),
            _ => vec![inside],
        };
        let path = keys.into_iter().fold(path.clone(), |path, key| path.key(key));
        reader.problem(diagnostic::WRONG_VALUE, &path, message, help);
    }
}
