//! Rules for the labels of values: which labeled values may reach which calls.

use alloc::{
    borrow::ToOwned,
    collections::{BTreeMap, BTreeSet},
    format,
    string::{String, ToString},
    vec::Vec,
};

use super::EffectPolicy;
use crate::{
    flow::{Flows, Source, Surroundings},
    label::Label,
    limits::EFFECT_RULES_MAX,
    plan::{EffectClass, Pattern, Plan, RuleReader, Verdict, Work},
    template::{Piece, Template},
    value::{Map, Value},
};

/// The keys of `policy.flows`.
const KEYS: [&str; 3] = ["untrusted", "private", "hosts"];

/// The key of `policy.flows.private` for requests to hosts outside of `hosts`.
const FOREIGN: &str = "foreign";

/// The rules of an installation. Without any, some flows are warnings.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct FlowRules {
    is_configured: bool,
    untrusted: BTreeMap<EffectClass, Verdict>,
    private: BTreeMap<EffectClass, Verdict>,
    foreign: Option<Verdict>,
    hosts: BTreeSet<Pattern>,
}

/// A labeled value that reaches a call for which the label matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flow {
    /// The step of the call, by number.
    pub step: u32,
    /// The label that matters for the class.
    pub label: Label,
    /// The origin of the label.
    pub source: Source,
    /// The class of the call.
    pub class: EffectClass,
    /// The verdict of a rule. `None` where no rules are configured: the flow is a warning.
    pub verdict: Option<Verdict>,
}

impl FlowRules {
    pub(super) fn read(reader: &mut RuleReader, value: &Value) -> Self {
        let mut rules = Self { is_configured: true, ..Self::default() };
        for (key, value) in reader.map("policy.flows", value) {
            let path = format!("policy.flows.{key}");
            match key.as_str() {
                "untrusted" => rules.untrusted = by_class(reader, &path, value, &mut None),
                "private" => {
                    let mut foreign = Some(None);
                    rules.private = by_class(reader, &path, value, &mut foreign);
                    rules.foreign = foreign.flatten();
                }
                "hosts" => rules.hosts = hosts(reader, value),
                _ => reader.refuse(path, "this key is not known", format!("the keys are {}", KEYS.join(", "))),
            }
        }
        rules
    }

    /// Returns the rules as a configuration writes them; null without any.
    pub(super) fn to_value(&self) -> Value {
        if !self.is_configured {
            return Value::Null;
        }
        let by_class = |rules: &BTreeMap<EffectClass, Verdict>| {
            rules.iter().map(|(class, verdict)| (class.name().to_owned(), verdict.name().into())).collect::<Map>()
        };
        let mut private = by_class(&self.private);
        private.extend(self.foreign.map(|verdict| (FOREIGN.to_owned(), verdict.name().into())));
        let hosts: Vec<Value> = self.hosts.iter().map(|host| host.to_string().into()).collect();
        Value::map([
            ("untrusted", Value::Map(by_class(&self.untrusted))),
            ("private", Value::Map(private)),
            ("hosts", hosts.into()),
        ])
    }
}

/// Reads a map from classes to verdicts. `foreign` is `None` where the key of that name is not allowed.
fn by_class(
    reader: &mut RuleReader,
    path: &str,
    value: &Value,
    foreign: &mut Option<Option<Verdict>>,
) -> BTreeMap<EffectClass, Verdict> {
    let (classes, verdicts) = (EffectClass::ALL.map(EffectClass::name), Verdict::ALL.map(Verdict::name));
    let mut rules = BTreeMap::new();
    for (key, value) in reader.map(path, value) {
        let place = format!("{path}.{key}");
        let verdict = reader.word(place.clone(), value, Verdict::parse, &verdicts);
        match (foreign.as_mut().filter(|_| key == FOREIGN), EffectClass::parse(key)) {
            (Some(foreign), _) => *foreign = verdict,
            (None, Some(class)) => rules.extend(verdict.map(|verdict| (class, verdict))),
            (None, None) => reader.refuse(place, "this is no class", format!("write {}", classes.join(", "))),
        }
    }
    rules
}

fn hosts(reader: &mut RuleReader, value: &Value) -> BTreeSet<Pattern> {
    let items = value.as_list().filter(|items| items.len() <= EFFECT_RULES_MAX);
    let texts = items.and_then(|items| items.iter().map(Value::as_text).collect::<Option<Vec<_>>>());
    let Some(texts) = texts else {
        let message = "this is not a list of hosts, or too long";
        reader.refuse("policy.flows.hosts".to_owned(), message, "write `[api.example.com, \"*.internal\"]`");
        return BTreeSet::new();
    };
    texts.into_iter().filter_map(|text| reader.pattern("policy.flows.hosts", text)).collect()
}

impl EffectPolicy {
    /// True if rules for labels are configured.
    pub(super) fn has_flow_rules(&self) -> bool {
        self.flows.is_configured
    }

    /// Returns the labeled values of a plan that reach a call for which the label matters. A call that a person decides
    /// about anyway is not among the warnings.
    pub fn flows(&self, plan: &Plan, organization: Option<&str>) -> Vec<Flow> {
        self.flows_within(plan, organization, &Surroundings::default())
    }

    /// The same for a plan among others.
    pub(super) fn flows_within(&self, plan: &Plan, organization: Option<&str>, around: &Surroundings) -> Vec<Flow> {
        let flows = self.labels_within(plan, around);
        let mut found = Vec::new();
        for step in 0..plan.steps.len() as u32 {
            let Some(judged) = self.judge_step(plan, step, organization) else { continue };
            let mut labels = flows.of_input(step);
            if self.flows.is_configured
                && let Some((agent, _)) = plan.agent_of_call(step)
            {
                // A model writes the arguments.
                labels.untrusted.get_or_insert(Source::Step(agent));
            }
            let is_foreign = self.is_foreign(&plan.step(step).work);
            for label in Label::ALL {
                let Some(source) = labels.get(label) else { continue };
                let verdict = match self.flows.is_configured {
                    true => self.flow_verdict(label, judged.class, is_foreign),
                    false => {
                        let matters = match label {
                            Label::Untrusted => {
                                let is_harmful =
                                    matches!(judged.class, EffectClass::Payment | EffectClass::Destructive);
                                is_harmful && !is_to_known_host(&plan.step(step).work)
                            }
                            Label::Private => judged.class == EffectClass::Message || is_foreign,
                        };
                        (matters && judged.verdict == Verdict::Allow).then_some(None)
                    }
                };
                if let Some(verdict) = verdict {
                    let (source, class) = (source.clone(), judged.class);
                    found.push(Flow { step, label, source, class, verdict });
                }
            }
        }
        found
    }

    /// Returns the labels of the values in a plan.
    pub fn labels<'p>(&self, plan: &'p Plan) -> Flows<'p> {
        self.labels_within(plan, &Surroundings::default())
    }

    pub(super) fn labels_within<'p>(&self, plan: &'p Plan, around: &Surroundings) -> Flows<'p> {
        Flows::of(plan, &|server| self.trusted.contains(server), around)
    }

    /// Returns the verdict of a rule that does not allow a flow.
    pub(super) fn flow_verdict(&self, label: Label, class: EffectClass, is_foreign: bool) -> Option<Option<Verdict>> {
        let rules = match label {
            Label::Untrusted => &self.flows.untrusted,
            Label::Private => &self.flows.private,
        };
        let foreign = self.flows.foreign.filter(|_| label == Label::Private && is_foreign);
        let verdict = rules.get(&class).copied().into_iter().chain(foreign).max()?;
        (verdict != Verdict::Allow).then_some(Some(verdict))
    }

    /// True for a request to a host that is not among `hosts`, or that is not known before the step runs.
    fn is_foreign(&self, work: &Work) -> bool {
        let Work::Effect { effect, params } = work else { return false };
        if effect != "http" {
            return false;
        }
        let host = host_of(params);
        !host.is_some_and(|host| self.flows.hosts.iter().any(|pattern| pattern.matches(&host)))
    }
}

/// True for a request whose host is literal. A value that is only a part of its path or body, such as the id of a resource
/// to delete, is usual.
fn is_to_known_host(work: &Work) -> bool {
    matches!(work, Work::Effect { effect, params } if effect == "http" && host_of(params).is_some())
}

/// Returns the host of a request whose URL names it literally, in lower case.
fn host_of(params: &Template) -> Option<String> {
    let text = match params {
        Template::Literal(value) => value.get("url")?.as_text()?,
        Template::Map(fields) => match fields.iter().find(|(key, _)| key == "url")? {
            (_, Template::Literal(url)) => url.as_text()?,
            (_, Template::Text(pieces)) => match pieces.first()? {
                Piece::Plain(plain) => plain.as_str(),
                Piece::Reference(_) => return None,
            },
            _ => return None,
        },
        _ => return None,
    };
    let (_, rest) = text.split_once("://")?;
    // The authority must end within the literal text, or a value could extend the host.
    let is_whole = matches!(params, Template::Literal(_)) || rest.contains(['/', '?', '#']) || !has_references(params);
    let authority = rest.split(['/', '?', '#', '\\']).next().filter(|_| is_whole)?;
    let host = authority.rsplit('@').next()?;
    let host = if host.starts_with('[') { host } else { host.split(':').next()? };
    (!host.is_empty()).then(|| host.to_ascii_lowercase())
}

fn has_references(params: &Template) -> bool {
    let Template::Map(fields) = params else { return false };
    fields.iter().any(|(key, url)| key == "url" && !matches!(url, Template::Literal(_)))
}
