//! Prompts that wait for their delivery to the orchestrator of an organization.

use serde::{Deserialize, Serialize};

use crate::resources::repository::Resource;

/// A prompt that was accepted and is not delivered yet. Its id is that of the message, the same for each attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Prompt {
    /// Id of the trigger.
    pub trigger: String,
    /// Display name of the trigger.
    pub trigger_name: String,
    /// Id of the member for whom the trigger acts.
    pub user: String,
    /// The text, as it was when the prompt was accepted.
    pub text: String,
    /// `schedule` or `manual`.
    pub source: String,
    /// The UTC minute of the tick.
    pub scheduled_at: Option<String>,
    /// The id of the request, for the run log.
    pub request: Option<String>,
    /// Id of the member who requested it.
    pub requested_by: Option<String>,
    /// Id of the message that this one repeats on request.
    pub redelivery_of: Option<String>,
    /// Milliseconds since 1970.
    pub accepted_at: u64,
    /// Id of its [`DuePrompt`].
    pub due: String,
    /// Number of failed attempts.
    pub attempts: u32,
    /// Time of the first of them, in milliseconds since 1970.
    pub failing_since: Option<u64>,
}

impl Resource for Prompt {
    const KIND: &'static str = "prompt";
    const DISPLAY_NAME: &'static str = "prompt";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        vec![("trigger", self.trigger.clone(), false)]
    }
}

/// The next attempt of a prompt. Its id begins with the time ([`due_id`](crate::resources::due_id)), and it has no text,
/// so that one read in the order of ids finds the due prompts of all organizations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DuePrompt {
    /// Id of the organization.
    pub organization: String,
    /// Id of the prompt.
    pub prompt: String,
}

impl Resource for DuePrompt {
    const KIND: &'static str = "due prompt";
    const DISPLAY_NAME: &'static str = "due prompt";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}

/// The number of prompts of an organization that wait. It is counted in the transactions that add and remove them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PromptQueue {
    /// Prompts that are not delivered yet.
    pub waiting: u32,
}

impl PromptQueue {
    /// The id of the only one of an organization.
    pub const ID: &'static str = "queue";
}

impl Resource for PromptQueue {
    const KIND: &'static str = "prompt queue";
    const DISPLAY_NAME: &'static str = "queue of prompts";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}
