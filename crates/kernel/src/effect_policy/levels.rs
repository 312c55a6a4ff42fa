//! The rules of an organization beside those of the settings file, and all rules as a value for readers.

use alloc::{borrow::ToOwned, string::ToString, vec::Vec};

use super::EffectPolicy;
use crate::{
    plan::VerdictRules,
    value::{Map, Value},
};

impl EffectPolicy {
    /// Adds rules that an organization has set for itself. The strictest rule of all levels decides, so they can only tighten.
    pub fn tightened(&self, organization: &str, rules: &VerdictRules) -> Self {
        let mut policy = self.clone();
        policy.organizations.entry(organization.to_owned()).or_default().tighten(rules);
        policy
    }

    /// Returns the rules that apply to an organization, in the form of a settings file: `{classes, trusted, verdicts,
    /// organization, flows, raises}`. Those of other organizations are left out.
    pub fn to_value(&self, organization: &str) -> Value {
        let classes = self.classes.iter().map(|(pattern, class)| (pattern.to_string(), class.name().into()));
        let trusted: Vec<Value> = self.trusted.iter().map(|name| name.as_str().into()).collect();
        let own = self.organizations.get(organization).map_or_else(|| Value::Map(Map::new()), VerdictRules::to_value);
        let raises = self.raise_approvals.map(|approvals| Value::map([("approvals", approvals.into())]));
        Value::map([
            ("classes", Value::Map(classes.collect())),
            ("trusted", trusted.into()),
            ("verdicts", self.installation.to_value()),
            ("organization", own),
            ("flows", self.flows.to_value()),
            ("raises", raises.unwrap_or_default()),
        ])
    }

    /// True if no rule is configured for the organization.
    pub fn is_default_for(&self, organization: &str) -> bool {
        self.classes.is_empty()
            && self.trusted.is_empty()
            && self.installation.is_empty()
            && self.organizations.get(organization).is_none_or(VerdictRules::is_empty)
            && !self.has_flow_rules()
            && self.raise_approvals.is_none()
    }
}
