//! Side-effect classes, verdicts, and the rules that map the one to the other. [`effect_policy`](crate::effect_policy)
//! joins the rules of all levels.

use alloc::{borrow::ToOwned, collections::BTreeMap, string::ToString};

use crate::{label::Label, value::Value};

mod pattern;
mod read;

pub use pattern::Pattern;
pub use read::RuleError;
pub(crate) use read::RuleReader;

/// The effect of a call on the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EffectClass {
    /// It changes nothing.
    Read,
    /// It asks a language model.
    Model,
    /// It adds or changes data.
    Write,
    /// It runs code.
    Execute,
    /// It reaches people.
    Message,
    /// It moves money.
    Payment,
    /// It deletes or overwrites data.
    Destructive,
}

impl EffectClass {
    /// All classes.
    pub const ALL: [Self; 7] =
        [Self::Read, Self::Model, Self::Write, Self::Execute, Self::Message, Self::Payment, Self::Destructive];

    /// Returns the class as a configuration writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Model => "model",
            Self::Write => "write",
            Self::Execute => "execute",
            Self::Message => "message",
            Self::Payment => "payment",
            Self::Destructive => "destructive",
        }
    }

    /// Parses a class.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|class| class.name() == word)
    }

    /// The verdict for a tool of this class where the installation has no rule.
    pub(crate) fn verdict_default(self) -> Verdict {
        match self {
            Self::Read | Self::Model | Self::Write | Self::Execute => Verdict::Allow,
            Self::Message | Self::Payment | Self::Destructive => Verdict::Ask,
        }
    }
}

/// The decision about a call. A later variant is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// The call runs.
    Allow,
    /// A person decides before the call.
    Ask,
    /// The call does not run, and its step fails with `policy_denied`.
    Deny,
}

impl Verdict {
    /// All verdicts.
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// Returns the verdict as a configuration writes it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }

    /// Parses a verdict.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|verdict| verdict.name() == word)
    }
}

/// The origin of a call's class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClassSource {
    /// A rule of the installation.
    Rule,
    /// The annotations of a trusted tool server.
    Annotations,
    /// A `bash`, `http` or agent step.
    StepType,
    /// Nothing is known about the tool, so the most careful class applies.
    Assumed,
}

impl ClassSource {
    /// Returns the origin as a clause for people.
    pub fn words(self) -> &'static str {
        match self {
            Self::Rule => "by a rule",
            Self::Annotations => "by the annotations of its server",
            Self::StepType => "by the type of the step",
            Self::Assumed => "assumed",
        }
    }
}

/// The rules of one level. The verdict of a level is the strictest one of all entries that match.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerdictRules {
    classes: BTreeMap<EffectClass, Verdict>,
    patterns: BTreeMap<Pattern, Verdict>,
}

impl VerdictRules {
    /// True if the level has no rule.
    pub fn is_empty(&self) -> bool {
        self.classes.is_empty() && self.patterns.is_empty()
    }

    /// Returns the strictest verdict that matches. An `allow` for a class does not match an assumed class: only a rule
    /// that names the tool can allow a tool about which nothing is known.
    pub(crate) fn verdict(&self, name: &str, class: EffectClass, source: ClassSource) -> Option<Verdict> {
        let by_class = self.classes.get(&class).copied();
        let by_class = by_class.filter(|verdict| source != ClassSource::Assumed || *verdict != Verdict::Allow);
        let by_name = self.patterns.iter().filter(|(pattern, _)| pattern.matches(name)).map(|(_, verdict)| *verdict);
        by_name.chain(by_class).max()
    }

    /// The verdicts by name.
    pub(crate) fn patterns(&self) -> impl Iterator<Item = (&Pattern, Verdict)> {
        self.patterns.iter().map(|(pattern, verdict)| (pattern, *verdict))
    }

    /// Adds rules. The stricter verdict stays where both have one for a class or a pattern.
    pub(crate) fn tighten(&mut self, rules: &Self) {
        for (class, verdict) in &rules.classes {
            let own = self.classes.entry(*class).or_insert(*verdict);
            *own = (*own).max(*verdict);
        }
        for (pattern, verdict) in &rules.patterns {
            let own = self.patterns.entry(pattern.clone()).or_insert(*verdict);
            *own = (*own).max(*verdict);
        }
    }

    /// Returns the rules as a configuration writes them.
    pub fn to_value(&self) -> Value {
        let classes = self.classes.iter().map(|(class, verdict)| (class.name().to_owned(), verdict.name().into()));
        let patterns = self.patterns.iter().map(|(pattern, verdict)| (pattern.to_string(), verdict.name().into()));
        Value::Map(classes.chain(patterns).collect())
    }
}

/// The part of a judgment that a plan carries: a call that does not simply run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Guard {
    /// The class of the call.
    pub class: EffectClass,
    /// True if nothing is known about the tool, and the class is therefore the most careful one.
    pub is_assumed: bool,
    /// True for `deny`, false for `ask`.
    pub is_denied: bool,
    /// The label of a value that reaches the call, if a rule for labels asks or denies.
    pub label: Option<Label>,
}

impl Guard {
    /// Returns the verdict.
    pub fn verdict(self) -> Verdict {
        if self.is_denied { Verdict::Deny } else { Verdict::Ask }
    }
}
