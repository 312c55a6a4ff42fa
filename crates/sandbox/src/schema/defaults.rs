//! Fills in defaults of missing properties.
//!
//! Defaults are searched in schemas that certainly apply to the value: through `properties`, `items`, `prefixItems`,
//! `allOf` and references within the document, never through branches that may not apply. Existing values never change.

use super::reference::resolve;
use crate::limits::{DEFAULTS_VISITS_MAX, VALUE_DEPTH_MAX};
use serde_json::{Map, Value};

/// Defaults contain each other without end, or too many times.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Endless;

/// Fills in missing properties. Returns whether there were any.
pub(super) fn fill(document: &Value, value: &mut Value) -> Result<bool, Endless> {
    let mut filler = Filler { document, visits_left: DEFAULTS_VISITS_MAX, depth: 0, filled: false };
    filler.fill(document, value)?;
    Ok(filler.filled)
}

/// One walk over a value and its schemas.
struct Filler<'a> {
    document: &'a Value,
    /// Bounds the work: a default can apply its own schema again, and two references to one schema double the work at
    /// each level.
    visits_left: usize,
    /// The nesting depth in the value.
    depth: usize,
    filled: bool,
}

impl<'a> Filler<'a> {
    fn fill(&mut self, schema: &'a Value, value: &mut Value) -> Result<(), Endless> {
        self.visits_left = self.visits_left.checked_sub(1).ok_or(Endless)?;
        let Some(keywords) = schema.as_object() else { return Ok(()) };
        for other in self.applied(keywords) {
            self.fill(other, value)?;
        }
        self.depth += 1;
        if self.depth > VALUE_DEPTH_MAX {
            return Err(Endless);
        }
        match value {
            Value::Object(object) => self.fill_object(keywords, object)?,
            Value::Array(list) => self.fill_list(keywords, list)?,
            _ => {}
        }
        self.depth -= 1;
        Ok(())
    }

    fn fill_object(
        &mut self,
        keywords: &'a Map<String, Value>,
        object: &mut Map<String, Value>,
    ) -> Result<(), Endless> {
        for (name, schema) in keywords.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if !object.contains_key(name)
                && let Some(default) = self.default_of(schema)?
            {
                object.insert(name.clone(), default.clone());
                self.filled = true;
            }
            if let Some(inner) = object.get_mut(name) {
                self.fill(schema, inner)?;
            }
        }
        Ok(())
    }

    fn fill_list(&mut self, keywords: &'a Map<String, Value>, list: &mut [Value]) -> Result<(), Endless> {
        // Before draft 2020-12, a list in `items` has the meaning of today's `prefixItems`.
        let items = keywords.get("items");
        let prefix = keywords.get("prefixItems").or(items).and_then(Value::as_array);
        let rest = match items {
            Some(Value::Array(_)) => keywords.get("additionalItems"),
            items => items,
        };
        let prefix_length = prefix.map_or(0, Vec::len);
        for (index, inner) in list.iter_mut().enumerate() {
            let schema = prefix.and_then(|prefix| prefix.get(index));
            if let Some(schema) = schema.or(rest.filter(|_| index >= prefix_length)) {
                self.fill(schema, inner)?;
            }
        }
        Ok(())
    }

    /// Returns the default of a schema: its own, or that of a schema that it refers to.
    fn default_of(&mut self, schema: &'a Value) -> Result<Option<&'a Value>, Endless> {
        self.visits_left = self.visits_left.checked_sub(1).ok_or(Endless)?;
        let Some(keywords) = schema.as_object() else { return Ok(None) };
        if let Some(default) = keywords.get("default") {
            return Ok(Some(default));
        }
        for other in self.applied(keywords) {
            if let Some(default) = self.default_of(other)? {
                return Ok(Some(default));
            }
        }
        Ok(None)
    }

    /// Lists the schemas that certainly apply to the same value. A schema that was accepted has no cycles of them.
    fn applied(&self, keywords: &'a Map<String, Value>) -> impl Iterator<Item = &'a Value> + use<'a> {
        let reference = keywords.get("$ref").and_then(Value::as_str);
        let referred = reference.and_then(|reference| resolve(self.document, reference));
        referred.into_iter().chain(keywords.get("allOf").and_then(Value::as_array).into_iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::{Endless, fill};
    use serde_json::{Value, json};

    #[track_caller]
    fn check(schema: Value, mut value: Value, expected: Value) {
        let before = value.clone();
        let filled = fill(&schema, &mut value);
        assert_eq!(value, expected);
        assert_eq!(filled, Ok(before != expected));
    }

    /// Makes two references to the schema of that level.
    fn doubled_of(level: usize) -> Value {
        let reference = json!({"$ref": format!("#/$defs/a{level}")});
        json!({"allOf": [reference, reference]})
    }

    #[test]
    fn missing_properties_take_their_defaults() {
        let schema = json!({"properties": {"a": {"default": 1}, "b": {"properties": {"c": {"default": []}}}}});
        check(schema.clone(), json!({}), json!({"a": 1}));
        check(schema.clone(), json!({"a": null, "b": {}}), json!({"a": null, "b": {"c": []}}));
        check(schema.clone(), json!([]), json!([]));
        check(schema, json!("a"), json!("a"));
        check(json!({"default": 7}), json!(null), json!(null));
        check(json!(true), json!({}), json!({}));
    }

    #[test]
    fn defaults_are_found_through_lists_references_and_all_of() {
        let item = json!({"properties": {"n": {"default": 0}}});
        check(json!({"items": item}), json!([{}, 1, {"n": 2}]), json!([{"n": 0}, 1, {"n": 2}]));
        check(json!({"prefixItems": [true, item], "items": false}), json!([{}, {}, {}]), json!([{}, {"n": 0}, {}]));
        check(json!({"prefixItems": [true], "items": item}), json!([{}, {}]), json!([{}, {"n": 0}]));
        check(json!({"items": [item], "additionalItems": item}), json!([{}, {}]), json!([{"n": 0}, {"n": 0}]));
        check(json!({"$ref": "#/$defs/i", "$defs": {"i": item}}), json!({}), json!({"n": 0}));
        check(json!({"allOf": [{"properties": {"m": {"default": 1}}}, item]}), json!({}), json!({"m": 1, "n": 0}));
        let properties = json!({"next": {"$ref": "#"}, "n": {"$ref": "#/$defs/d"}});
        let tree = json!({"properties": properties, "$defs": {"d": {"default": 3}}});
        check(tree, json!({"next": {"next": {}}}), json!({"n": 3, "next": {"n": 3, "next": {"n": 3}}}));
    }

    #[test]
    fn branches_that_may_not_apply_add_no_defaults() {
        let item = json!({"properties": {"n": {"default": 0}}});
        for keyword in ["anyOf", "oneOf"] {
            check(json!({keyword: [item]}), json!({}), json!({}));
        }
        for keyword in ["if", "then", "else", "not"] {
            check(json!({keyword: item}), json!({}), json!({}));
        }
    }

    #[test]
    fn nested_defaults_are_filled_and_endless_ones_rejected() {
        let schema = json!({"properties": {"a": {"default": {}, "properties": {"b": {"default": 1}}}}});
        check(schema, json!({}), json!({"a": {"b": 1}}));
        let again = json!({"default": {}, "$ref": "#"});
        assert_eq!(fill(&json!({"properties": {"a": again}}), &mut json!({})), Err(Endless));
        let doubled = json!({"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}]});
        let mut definitions: serde_json::Map<String, Value> =
            (0..40).map(|level| (format!("a{level}"), doubled_of(level + 1))).collect();
        definitions.insert("a".to_owned(), doubled_of(0));
        assert_eq!(fill(&json!({"$defs": definitions, "allOf": [doubled]}), &mut json!({})), Err(Endless));
    }
}
