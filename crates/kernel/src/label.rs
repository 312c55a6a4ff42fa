//! The labels that values carry through a plan, and the form in which a step removes them.

use alloc::vec::Vec;
use core::fmt;

use crate::value::Value;

/// A label of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Label {
    /// It comes from outside: the response of a request, the result of a tool, the answer of a model.
    Untrusted,
    /// It must not leave the organization.
    Private,
}

/// The labels that a step removes from its output, as its `trust` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trust {
    /// The output is trusted.
    pub trusted: bool,
    /// The output is public.
    pub public: bool,
}

impl Label {
    /// Both labels.
    pub const ALL: [Self; 2] = [Self::Untrusted, Self::Private];

    /// Returns the name in settings and plans.
    pub fn name(self) -> &'static str {
        match self {
            Self::Untrusted => "untrusted",
            Self::Private => "private",
        }
    }

    /// Parses a name.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|label| label.name() == word)
    }
}

impl Trust {
    /// The words of `trust`.
    pub const WORDS: [&'static str; 2] = ["trusted", "public"];

    /// Parses `trusted`, `public` or a list of them. `None` if it is something else.
    pub fn read(value: &Value) -> Option<Self> {
        let words = match value {
            Value::List(words) if !words.is_empty() => words.as_slice(),
            word => core::slice::from_ref(word),
        };
        let mut trust = Self::default();
        for word in words {
            match word.as_text()? {
                "trusted" => trust.trusted = true,
                "public" => trust.public = true,
                _ => return None,
            }
        }
        Some(trust)
    }

    /// Returns the form that [`read`](Self::read) parses.
    pub fn to_value(self) -> Value {
        let given = [self.trusted, self.public].into_iter().zip(Self::WORDS);
        given.filter(|(is_given, _)| *is_given).map(|(_, word)| Value::from(word)).collect::<Vec<_>>().into()
    }
}

impl fmt::Display for Label {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}
