//! The policy for the calls of an organization's workflows: the rules of the settings file, and those that the organization has
//! set for itself.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use mainspring_kernel::{
    effect_policy::EffectPolicy,
    plan::{RuleError, VerdictRules},
    value::Value,
};
use mainspring_store::AuditEntry;
use tokio::time::{MissedTickBehavior, interval, timeout};

use crate::{
    app::App,
    auth::caller::Caller,
    http::problem::{Code, Problem, Result},
    resources::{
        Organization,
        repository::{Repository, Stored, entry},
    },
    services::integrations::CHECK_TIMEOUT,
};

/// The interval in which the annotations of trusted tool servers are read again.
const ANNOTATIONS_INTERVAL: Duration = Duration::from_secs(300);

/// The policy that applies to an organization now.
pub(crate) fn effect_policy(app: &App, organization: &str) -> Result<Arc<EffectPolicy>> {
    let stored = Repository::of(app.catalogue(), "").get::<Organization>(organization)?;
    let of_settings = of_settings(app);
    let Some(rules) = stored.map(|stored| own_rules(&stored.body)).transpose()? else { return Ok(of_settings) };
    Ok(match rules.is_empty() {
        true => of_settings,
        false => Arc::new(of_settings.tightened(organization, &rules)),
    })
}

/// The policy of the settings file, with the classes that trusted tool servers give their tools.
fn of_settings(app: &App) -> Arc<EffectPolicy> {
    let annotated = app.settings.configured.integrations.as_ref().and_then(|own| own.annotated_policy());
    annotated.unwrap_or_else(|| app.settings.configured.effect_policy.clone())
}

/// The rules that an organization has set for itself.
fn own_rules(organization: &Organization) -> Result<VerdictRules> {
    // A release that knows more verdicts may have stored them. A start under fewer rules would be worse than none.
    read_rules(&rules_value(&organization.verdicts)).map_err(|errors| {
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        Problem::new(Code::InternalError, format!("The stored policy of the organization: {}", errors.join("; ")))
    })
}

fn rules_value(verdicts: &BTreeMap<String, String>) -> Value {
    Value::map(verdicts.iter().map(|(key, verdict)| (key.as_str(), Value::from(verdict.as_str()))))
}

/// Reads rules: a map from classes and patterns to verdicts.
fn read_rules(value: &Value) -> Result<VerdictRules, Vec<RuleError>> {
    VerdictRules::read("verdicts", value)
}

/// Refuses rules that cannot be read.
pub(crate) fn check_verdicts(verdicts: &BTreeMap<String, String>) -> Result<()> {
    read_rules(&rules_value(verdicts)).map(drop).map_err(|errors| {
        let field = errors.first().map_or("verdicts", |error| error.path.as_str()).to_owned();
        let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
        Problem::new(Code::ValidationError, errors.join("; ")).with(serde_json::json!({ "field": field }))
    })
}

/// Sets the rules of an organization, and returns the entry for the audit log. They were checked.
pub(crate) fn set_verdicts(
    caller: &Caller,
    stored: &mut Stored<Organization>,
    verdicts: BTreeMap<String, String>,
) -> AuditEntry {
    let (before, rules) = (rules_value(&stored.body.verdicts), rules_value(&verdicts));
    stored.body.verdicts = verdicts;
    entry(caller, "policy.set", &stored.id, Value::map([("before", before), ("verdicts", rules)]))
}

/// Reads the annotations of all trusted tool servers once. A server that does not answer keeps the classes of its last answer.
pub async fn read_annotations(app: &App) {
    let Some(own) = &app.settings.configured.integrations else { return };
    let policy = &app.settings.configured.effect_policy;
    for server in policy.trusted_servers() {
        if let Ok(Ok(tools)) = timeout(CHECK_TIMEOUT, own.integrations.tools(server, None)).await {
            own.remember(policy, server, &tools);
        }
    }
}

/// Reads the annotations of trusted tool servers every five minutes, until the task is aborted.
pub async fn keep_annotations(app: App) {
    let mut again = interval(ANNOTATIONS_INTERVAL);
    again.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        again.tick().await;
        read_annotations(&app).await;
    }
}
