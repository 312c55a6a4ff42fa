//! What has happened, for whoever in this process wants to know: the names of the specifications' event bus.
//!
//! A hint, as a bell is: what it says is durable already, and who misses it finds the same in the store.

use tokio::sync::broadcast;

/// Events kept for a listener that is behind.
const KEPT: usize = 1024;

/// Something that has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Happened {
    /// What, as `workflow.execution.enqueued`.
    pub name: &'static str,
    /// In which organisation.
    pub organization: String,
    /// To what, by its id.
    pub subject: String,
}

/// Where it is told.
#[derive(Debug, Clone)]
pub(crate) struct Bus(broadcast::Sender<Happened>);

impl Default for Bus {
    fn default() -> Self {
        Self(broadcast::channel(KEPT).0)
    }
}

impl Bus {
    /// Tells it to whoever listens, if anybody does.
    pub(crate) fn publish(&self, name: &'static str, organization: &str, subject: &str) {
        let _ = self.0.send(Happened { name, organization: organization.into(), subject: subject.into() });
    }

    /// Hears everything from now on.
    #[cfg_attr(not(test), expect(dead_code, reason = "the issues that follow listen"))]
    pub(crate) fn listen(&self) -> broadcast::Receiver<Happened> {
        self.0.subscribe()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_listens_hears_what_comes_after() {
        let bus = Bus::default();
        bus.publish("workflow.updated", "acme", "w0");
        let mut listener = bus.listen();
        bus.publish("workflow.updated", "acme", "w1");
        assert_eq!(listener.try_recv().unwrap().subject, "w1");
    }
}
