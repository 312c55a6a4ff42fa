//! The policy for calls of workflows: the rules that apply to the organization, and those that it sets for itself.

use std::{collections::BTreeMap, fmt};

use axum::{extract::State, http::HeaderMap};
use mainspring_store::Change;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, Visitor},
};
use utoipa::ToSchema;
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::caller::Caller,
    http::{
        body::{Body, Data, Tagged, check_seen, if_match},
        problem::{Problem, ProblemBody, Result},
    },
    resources::{
        Organization,
        repository::{Repository, Stored, apply},
    },
    services::effect_policies::{check_verdicts, effect_policy, set_verdicts},
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get, put))
}

/// The policy of an organization.
#[derive(Debug, Serialize, ToSchema)]
struct CallPolicy {
    /// The rules that the organization has set for itself: `allow`, `ask` or `deny` by class or by pattern of names.
    verdicts: BTreeMap<String, String>,
    /// All rules that apply, in the form of a settings file: `{classes, trusted, verdicts, organization, flows, raises}`.
    /// `verdicts` are those of the installation; `organization` joins those of the settings file and its own.
    #[schema(value_type = Object)]
    effective: Data,
}

/// The rules of the organization. They replace the previous ones.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct SetCallPolicy {
    /// `allow`, `ask` or `deny` by class (`read`, `model`, `write`, `execute`, `message`, `payment`, `destructive`) or by
    /// pattern of names, as `github.delete_*`.
    #[serde(deserialize_with = "each_once")]
    verdicts: BTreeMap<String, String>,
}

/// Reads rules. A repeated rule is refused, since one of its verdicts would be lost.
fn each_once<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<BTreeMap<String, String>, D::Error> {
    struct Rules;

    impl<'de> Visitor<'de> for Rules {
        type Value = BTreeMap<String, String>;

        fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
            out.write_str("a map from classes and patterns to allow, ask or deny")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> std::result::Result<Self::Value, A::Error> {
            let mut rules = BTreeMap::new();
            while let Some((rule, verdict)) = entries.next_entry::<String, String>()? {
                if rules.contains_key(&rule) {
                    return Err(A::Error::custom(format!("the rule {rule:?} is there twice: remove one")));
                }
                rules.insert(rule, verdict);
            }
            Ok(rules)
        }
    }

    deserializer.deserialize_map(Rules)
}

fn tagged(app: &App, stored: &Stored<Organization>) -> Result<Tagged<CallPolicy>> {
    let effective = Data(effect_policy(app, &stored.id)?.to_value(&stored.id));
    Ok(Tagged { body: CallPolicy { verdicts: stored.body.verdicts.clone(), effective }, tag: stored.tag() })
}

/// Get the policy for calls of workflows. The strictest rule of all levels decides.
#[utoipa::path(get, path = "/api/policy", tag = "policy",
    extensions(("x-permission" = json!("workflows:read"))),
    responses((status = 200, body = CallPolicy)))]
async fn get(State(app): State<App>, caller: Caller) -> Result<Tagged<CallPolicy>> {
    app.run(move |app| tagged(app, &Repository::of(app.catalogue(), "").require(&caller.organization)?)).await
}

/// Set the rules of the organization for calls of its workflows. They can tighten the rules of the installation, and not loosen
/// them. Executions that have started keep the policy of their start.
#[utoipa::path(put, path = "/api/policy", tag = "policy", request_body = SetCallPolicy,
    extensions(("x-permission" = json!("organization:write"))),
    responses((status = 200, body = CallPolicy), (status = 409, body = ProblemBody),
        (status = 412, body = ProblemBody)))]
async fn put(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    Body(body): Body<SetCallPolicy>,
) -> Result<Tagged<CallPolicy>> {
    let seen = if_match(&headers)?;
    check_verdicts(&body.verdicts)?;
    app.run(move |app| {
        let repository = Repository::of(app.catalogue(), "");
        let mut stored = repository.require::<Organization>(&caller.organization)?;
        check_seen(seen, Some(stored.tag()))?;
        let audit = vec![set_verdicts(&caller, &mut stored, body.verdicts)];
        let puts = vec![repository.put(&stored.id, &stored.body, stored.version)?];
        let change = Change { puts, audit, sealing: *app.engine.key(), ..Change::default() };
        apply(app.catalogue(), &change)?.map_err(|_| Problem::concurrent_change())?;
        stored.version += 1;
        tagged(app, &stored)
    })
    .await
}
