//! Stored forms of the server's resources, one file per resource, with the fields by which they are indexed, and the
//! repository that stores them.

mod budget;
mod due_schedule;
mod event_subscription;
mod identity;
mod member;
mod migration;
mod organization;
mod primary_key;
mod prompt;
mod proposal;
mod proposal_shadow;
mod removed_member;
pub mod repository;
mod repository_context;
mod reserved_name;
mod revoked_token;
mod rollout;
mod rollout_progress;
mod secret;
mod token;
mod trigger;
mod trigger_state;
mod version;
mod version_number;
mod version_return;
mod webhook_path;
mod workflow;
mod workflow_scenarios;

pub use budget::Budget;
pub use due_schedule::{DueSchedule, due_id, due_ms};
pub use event_subscription::{EventSubscription, FailedEvent, LastFailure, PreviousSecret, SubscriptionState};
pub use identity::Identity;
pub use member::Member;
pub use migration::{MigrationEnd, MigrationRun, OpenMigration, StayReason, StayedExecution};
pub use organization::{FEATURES, FOUR_EYES_FEATURE, Limits, Organization, RUNTIME_FEATURE, SHADOW_FEATURE};
pub use primary_key::{PRIMARY_KEY, PrimaryKey};
pub use prompt::{DuePrompt, Prompt, PromptQueue};
pub use proposal::{Applied, Author, Proposal, ProposalStatus, ProposedChange, Review, Written, proposal_key};
pub use proposal_shadow::{ProposalShadow, ShadowSummary};
pub use removed_member::RemovedMember;
pub(crate) use repository_context::RequestedRepository;
pub use repository_context::{RepositoryContext, RepositoryCredential};
pub use reserved_name::ReservedName;
pub use revoked_token::RevokedToken;
pub use rollout::{
    BothFigures, Rollout, RolloutEnd, RolloutPlan, RolloutStatus, RolloutVersion, SideFigures, Thresholds,
    WatchedRollout, rollout_key,
};
pub use rollout_progress::{Refusal, RolloutProgress};
pub use secret::Secret;
pub use token::{SignIn, Token};
pub use trigger::{
    Missed, Overlap, Respond, ScheduleConfig, SignatureAlgorithm, SignatureConfig, SignatureEncoding, SignatureScheme,
    Trigger, TriggerConfig, WebhookConfig,
};
pub use trigger_state::{PromptFailure, PromptState, Run, RunOutcome, Stopped, TriggerState};
pub use version::{Source, Version, version_id};
pub use version_number::{VersionNumber, version_number_id};
pub use version_return::VersionReturn;
pub use webhook_path::WebhookPath;
pub use workflow::{ActiveRollout, Drain, Workflow};
pub use workflow_scenarios::WorkflowScenarios;
