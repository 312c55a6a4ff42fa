//! Reads the rules of a settings file, of a definition, and of a stored plan.

use alloc::{
    format,
    string::{String, ToString},
    vec::Vec,
};
use core::fmt;

use super::{EffectClass, Pattern, Verdict, VerdictRules};
use crate::{
    limits::EFFECT_RULES_MAX,
    value::{Map, Value},
};

/// The reason why a rule is rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    /// The place, such as `policy.verdicts.payment`.
    pub path: String,
    /// The problem.
    pub message: String,
    /// The remedy.
    pub help: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}; {}", self.path, self.message, self.help)
    }
}

impl VerdictRules {
    /// Reads a map from classes and patterns to verdicts, which is at `path`. All errors are returned.
    pub fn read(path: &str, value: &Value) -> Result<Self, Vec<RuleError>> {
        let mut reader = RuleReader::default();
        let rules = reader.verdicts(path, value);
        reader.finish(rules)
    }
}

/// Reads rules, and collects the errors.
#[derive(Default)]
pub(crate) struct RuleReader {
    errors: Vec<RuleError>,
}

impl RuleReader {
    /// Returns what was read if there was no error.
    pub(crate) fn finish<T>(self, read: T) -> Result<T, Vec<RuleError>> {
        if self.errors.is_empty() { Ok(read) } else { Err(self.errors) }
    }

    /// Adds an error.
    pub(crate) fn refuse(&mut self, path: String, message: impl Into<String>, help: impl Into<String>) {
        self.errors.push(RuleError { path, message: message.into(), help: help.into() });
    }

    /// Returns the entries of a map; none for null.
    pub(crate) fn map<'v>(
        &mut self,
        path: &str,
        value: &'v Value,
    ) -> impl Iterator<Item = (&'v String, &'v Value)> + use<'v> {
        static EMPTY: Map = Map::new();
        let map = match value {
            Value::Null => &EMPTY,
            Value::Map(map) if map.len() > EFFECT_RULES_MAX => {
                let message = format!("{} entries are more than {EFFECT_RULES_MAX}", map.len());
                self.refuse(path.to_string(), message, "combine entries by `*`");
                &EMPTY
            }
            Value::Map(map) => map,
            other => {
                let message = format!("this is {}, not a map", other.kind());
                self.refuse(path.to_string(), message, "write `{key: value}`");
                &EMPTY
            }
        };
        map.iter()
    }

    /// Reads a pattern, or reports why it is none.
    pub(crate) fn pattern(&mut self, path: &str, key: &str) -> Option<Pattern> {
        match Pattern::parse(key) {
            Ok(pattern) => Some(pattern),
            Err(why) => {
                self.refuse(format!("{path}.{key}"), why, "write a name such as `github.get_issue` or `github.*`");
                None
            }
        }
    }

    /// Reads a word, or reports the known ones.
    pub(crate) fn word<T>(
        &mut self,
        path: String,
        value: &Value,
        parsed: impl Fn(&str) -> Option<T>,
        known: &[&str],
    ) -> Option<T> {
        let word = value.as_text().and_then(parsed);
        if word.is_none() {
            let shown = value.as_text().map_or_else(|| value.kind().to_string(), |text| format!("`{text}`"));
            self.refuse(path, format!("{shown} is not known here"), format!("write {}", known.join(", ")));
        }
        word
    }

    /// Reads a map from classes and patterns to verdicts.
    pub(crate) fn verdicts(&mut self, path: &str, value: &Value) -> VerdictRules {
        let known = Verdict::ALL.map(Verdict::name);
        let mut rules = VerdictRules::default();
        for (key, value) in self.map(path, value) {
            let verdict = self.word(format!("{path}.{key}"), value, Verdict::parse, &known);
            match (EffectClass::parse(key), verdict) {
                (_, None) => {}
                (Some(class), Some(verdict)) => drop(rules.classes.insert(class, verdict)),
                (None, Some(verdict)) => {
                    if let Some(pattern) = self.pattern(path, key) {
                        rules.patterns.insert(pattern, verdict);
                    }
                }
            }
        }
        rules
    }
}
