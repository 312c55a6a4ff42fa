//! Suggests a condition for an object in the form of another language, such as `{left: "@a.b", op: "==", right: 1}`.

use alloc::string::String;

use super::suggest::synonyms::synonym;
use crate::{
    condition::Operator,
    reference::is_whole,
    value::{Map, Value},
};

/// Keys that hold the compared value in other languages.
const SUBJECTS: [&str; 9] = ["ref", "left", "field", "path", "key", "value", "variable", "Variable", "var"];

/// Keys that name the operator.
const OPERATORS: [&str; 4] = ["op", "operator", "comparator", "comparison"];

/// Keys that hold the other value beside a named operator.
const OPERANDS: [&str; 4] = ["right", "value", "operand", "to"];

/// Keys around a condition.
const WRAPPERS: [&str; 5] = ["condition", "when", "if", "expression", "expr"];

/// Returns the condition that an object means, if every key of it is understood.
pub(super) fn as_condition(map: &Map) -> Option<Value> {
    let only = map.iter().next().filter(|_| map.len() == 1);
    match only {
        Some((key, inner @ (Value::Map(_) | Value::Bool(_)))) if WRAPPERS.contains(&key.as_str()) => {
            return Some(inner.clone());
        }
        Some((key, parts @ Value::List(_))) if key == "none" || key == "nor" => {
            return Some(Value::map([("not", Value::map([("any", parts.clone())]))]));
        }
        Some((key, subject)) if key == "exists" && is_whole(subject) => {
            return Some(Value::map([("ref", subject.clone()), ("exists", true.into())]));
        }
        Some((key, Value::List(pair))) => {
            let [subject, operand] = &pair[..] else { return None };
            return is_whole(subject).then(|| compared(subject, operator(key)?, operand)).flatten();
        }
        _ => {}
    }
    let (subject_key, subject) =
        SUBJECTS.iter().find_map(|key| Some((*key, map.get(*key).filter(|value| is_whole(value))?)))?;
    let rest = || map.iter().filter(|(key, _)| key.as_str() != subject_key);
    let named = rest().find(|(key, _)| OPERATORS.contains(&key.as_str()));
    let (word, operand) = match named {
        Some((_, word)) => {
            let operand = rest().find(|(key, _)| OPERANDS.contains(&key.as_str()))?;
            (word.as_text()?, operand.1)
        }
        None => rest().next().map(|(key, operand)| (key.as_str(), operand))?,
    };
    let used = if named.is_some() { 3 } else { 2 };
    (map.len() == used).then(|| compared(subject, operator(word)?, operand)).flatten()
}

fn compared(subject: &Value, operator: &str, operand: &Value) -> Option<Value> {
    let mut map = Map::new();
    map.insert("ref".into(), subject.clone());
    map.insert(String::from(operator), operand.clone());
    Some(Value::Map(map))
}

fn operator(word: &str) -> Option<&'static str> {
    let names = || Operator::ALL.into_iter().map(Operator::name).chain(["exists"]);
    names().find(|name| *name == word).or_else(|| {
        let words: alloc::vec::Vec<&'static str> = names().collect();
        synonym(word, words)
    })
}
