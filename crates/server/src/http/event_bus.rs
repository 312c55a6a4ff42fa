//! Events inside of this process, with the names of the specifications' event bus.
//!
//! An event is only a hint. The fact is already durable when it is published, and a listener that misses it finds the
//! same in the store.

use tokio::sync::broadcast;

/// Events buffered for a slow listener.
const EVENTS_MAX: usize = 1024;

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BusEvent {
    /// Name, as `workflow.execution.enqueued`.
    pub name: &'static str,
    /// The organization of the subject.
    pub organization: String,
    /// The id of the subject.
    pub subject: String,
}

/// Broadcasts events to the listeners in this process.
#[derive(Debug, Clone)]
pub(crate) struct Bus(broadcast::Sender<BusEvent>);

impl Default for Bus {
    fn default() -> Self {
        Self(broadcast::channel(EVENTS_MAX).0)
    }
}

impl Bus {
    /// Publishes an event, if there are listeners.
    pub(crate) fn publish(&self, name: &'static str, organization: &str, subject: &str) {
        let _ = self.0.send(BusEvent { name, organization: organization.into(), subject: subject.into() });
    }

    /// Subscribes to all later events.
    #[cfg_attr(not(test), expect(dead_code, reason = "the triggers will subscribe"))]
    pub(crate) fn subscribe(&self) -> broadcast::Receiver<BusEvent> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subscriber_receives_later_events() {
        let bus = Bus::default();
        bus.publish("workflow.updated", "acme", "w0");
        let mut listener = bus.subscribe();
        bus.publish("workflow.updated", "acme", "w1");
        assert_eq!(listener.try_recv().unwrap().subject, "w1");
    }
}
