//! The next tick of an enabled schedule. Its id begins with the time, so that one read in the order of ids finds the
//! due schedules of all organizations.

use serde::{Deserialize, Serialize};

use crate::resources::repository::Resource;

/// The next tick of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DueSchedule {
    /// Id of the organization.
    pub organization: String,
    /// Id of the trigger.
    pub trigger: String,
    /// All ticks up to this time are decided; milliseconds since 1970.
    pub cursor_ms: u64,
}

/// The id of a schedule that is due at a time. Fifteen digits last beyond the year 9999.
pub fn due_id(due_ms: u64, trigger: &str) -> String {
    format!("{due_ms:015}/{trigger}")
}

/// The time in an id, in milliseconds since 1970; `None` if the id is not one of [`due_id`].
pub fn due_ms(id: &str) -> Option<u64> {
    id.split_once('/')?.0.parse().ok()
}

impl Resource for DueSchedule {
    const KIND: &'static str = "due schedule";
    const DISPLAY_NAME: &'static str = "due schedule";

    fn names(&self) -> Vec<(&'static str, String, bool)> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::{due_id, due_ms};

    #[test]
    fn ids_sort_by_time() {
        assert!(due_id(999, "b") < due_id(1_000, "a"));
        assert_eq!(due_ms(&due_id(1_771_929_000_000, "t")), Some(1_771_929_000_000));
        assert_eq!(due_ms("t"), None);
    }
}
