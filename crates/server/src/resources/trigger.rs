//! A trigger: starts executions of a workflow from webhooks, by a schedule, or on request. A schedule can send a prompt
//! to the orchestrator of its organization instead.

use std::collections::BTreeMap;

use mainspring_triggers::{
    catch_up::{CatchUp, MissedTicks},
    limits::CATCH_UP_WINDOW_MS_MAX,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{
    auth::permission::Permission,
    resources::{
        repository::{Resource, Versioned},
        repository_context::RepositoryContext,
    },
};

/// Stored form of a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trigger {
    /// Id of the workflow; `None` for a schedule with a prompt.
    pub workflow: Option<String>,
    /// Id of the workflow's owner, as whom its executions run. With a prompt, the member who created the trigger.
    pub user: String,
    /// Display name.
    pub name: String,
    /// True if events and ticks start executions.
    pub enabled: bool,
    /// The source of events.
    pub config: TriggerConfig,
    /// Paths into the event by the names of variables.
    pub variable_mapping: BTreeMap<String, String>,
    /// The repository of its executions, which precedes that of the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<RepositoryContext>,
    /// Scopes of the credential that saved the trigger; empty for all permissions of the owner. They apply to its
    /// executions, so that a narrow credential gains no rights through a trigger.
    pub scopes: Vec<Permission>,
    /// Another member who knows the secret of the credential that saved the trigger, since that member has made it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub known_to: Option<String>,
    /// Id of the member who created it.
    pub created_by: String,
    /// Milliseconds since 1970.
    pub created_at: u64,
    /// Milliseconds since 1970.
    pub updated_at: u64,
}

/// The source of the events of a trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum TriggerConfig {
    /// Only requests of members.
    Manual,
    /// HTTP requests to a path.
    Webhook(WebhookConfig),
    /// Ticks of a cron expression.
    Schedule(ScheduleConfig),
}

/// A webhook.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookConfig {
    /// The path below `/webhooks/`.
    pub path: String,
    /// The accepted HTTP method.
    pub method: String,
    /// The scheme of signatures; `None` for the default one.
    pub signature: Option<SignatureConfig>,
    /// The secrets and the values of the required headers, encrypted; `None` without any.
    pub sealed: Option<String>,
    /// The number of secrets.
    pub secret_count: usize,
    /// The names of the required headers.
    pub header_names: Vec<String>,
    /// The response of a delivery.
    pub respond: Respond,
    /// Longest wait of a response for the output, in milliseconds.
    pub wait_ms: u64,
}

/// The response of a delivery that starts an execution.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Respond {
    /// 202 with the id of the execution, once the start is durable.
    #[default]
    Accepted,
    /// The output of the execution, or 202 if it has not ended in time.
    Wait,
}

/// The way in which a sender signs deliveries.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SignatureConfig {
    /// The sender whose headers and signed content are expected.
    pub scheme: SignatureScheme,
    /// `hmac` and `token`: the header with the signature or the secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<String>,
    /// `hmac`: text before the signature, such as `sha256=`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// `hmac`: `hex` (default) or `base64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub encoding: Option<SignatureEncoding>,
    /// `hmac`: `sha256` (default) or `sha512`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<SignatureAlgorithm>,
    /// `hmac`: the header with the time of the signature, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp_header: Option<String>,
    /// `hmac`: the signed content, with `{body}` (default) and `{timestamp}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<String>,
    /// Largest distance between the time of a signature and now, in milliseconds; default 300,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tolerance_ms: Option<u64>,
}

/// The headers and the signed content of a kind of sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignatureScheme {
    /// Standard Webhooks 1.0.
    StandardWebhooks,
    /// `X-Hub-Signature-256`.
    Github,
    /// `X-Gitlab-Token`.
    Gitlab,
    /// `Stripe-Signature`.
    Stripe,
    /// `X-Slack-Signature`.
    Slack,
    /// An HMAC in a header.
    Hmac,
    /// The secret in a header.
    Token,
}

/// The form of a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignatureEncoding {
    /// Hexadecimal digits.
    Hex,
    /// Base64 with padding.
    Base64,
}

/// The hash of an HMAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SignatureAlgorithm {
    /// HMAC-SHA256.
    Sha256,
    /// HMAC-SHA512.
    Sha512,
}

/// A schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleConfig {
    /// Five fields, or a name such as `@daily`.
    pub cron: String,
    /// IANA name of the time zone.
    pub timezone: String,
    /// The treatment of ticks that no node ran in time.
    pub missed: Missed,
    /// Milliseconds; older missed ticks never run.
    pub window_ms: u64,
    /// The treatment of a tick while an execution of the trigger is active.
    pub overlap: Overlap,
    /// Largest delay of all ticks of this trigger, in milliseconds.
    pub jitter_ms: u64,
    /// The prompt that ticks send to the orchestrator of the organization; `None` if they start the workflow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// The treatment of ticks that are found more than a minute after they were due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// They do not run.
    #[default]
    Skip,
    /// Only the last one runs.
    Once,
    /// All run, the oldest first.
    All,
}

/// The treatment of a tick while an execution of the trigger is active.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Overlap {
    /// The tick starts an execution.
    #[default]
    Allow,
    /// The tick starts once the active execution has ended.
    Queue,
    /// The tick does not run.
    Skip,
    /// The active execution is canceled, and the tick starts.
    CancelPrevious,
}

impl ScheduleConfig {
    /// The treatment of missed ticks. A queued tick waits longer than a minute and must not count as missed.
    pub(crate) fn catch_up(&self) -> CatchUp {
        let missed = match (self.overlap, self.missed) {
            (Overlap::Queue, Missed::Skip) | (_, Missed::All) => MissedTicks::All,
            (_, Missed::Once) => MissedTicks::Once,
            (_, Missed::Skip) => MissedTicks::Skip,
        };
        CatchUp { missed, window_ms: self.window_ms.min(CATCH_UP_WINDOW_MS_MAX) }
    }
}

impl TriggerConfig {
    /// The name of the type in the API and in executions.
    pub(crate) fn type_name(&self) -> &'static str {
        match self {
            Self::Manual => "manual",
            Self::Webhook(_) => "webhook",
            Self::Schedule(_) => "schedule",
        }
    }

    /// The prompt of a schedule with the target `orchestrator`.
    pub(crate) fn prompt(&self) -> Option<&str> {
        match self {
            Self::Schedule(schedule) => schedule.prompt.as_deref(),
            _ => None,
        }
    }
}

impl Resource for Trigger {
    const KIND: &'static str = "trigger";
    const DISPLAY_NAME: &'static str = "trigger";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        let workflow = self.workflow.iter().map(|workflow| ("workflow", workflow.clone(), false));
        workflow.chain([("user", self.user.clone(), false)]).collect()
    }
}

impl Versioned for Trigger {
    fn created_at(&self) -> u64 {
        self.created_at
    }
}
