//! The owner of a webhook path; its id is the path. It belongs to the installation, since paths are shared by all
//! organizations.

use serde::{Deserialize, Serialize};

use crate::resources::repository::Resource;

/// The trigger that a path belongs to. It is written and removed together with the trigger.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebhookPath {
    /// Id of the organization.
    pub organization: String,
    /// Id of the trigger.
    pub trigger: String,
}

impl Resource for WebhookPath {
    const KIND: &'static str = "webhook path";
    const DISPLAY_NAME: &'static str = "webhook";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}
