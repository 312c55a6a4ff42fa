//! Executions that are quarantined, at the rim.

use mainspring_kernel::key::ExecutionKey;
use tracing::warn;

use super::Rim;
use crate::{
    aside::{Place, tell_parent},
    shard::{Event, LoadAnswer},
};

/// Quarantined executions that are remembered. The set begins anew when it is full: then a parent may be looked up twice,
/// which costs a read and changes nothing.
const ASIDE_MAX: usize = 65_536;

impl Rim {
    /// An execution was quarantined.
    pub(super) fn quarantined(&mut self, execution: ExecutionKey) {
        self.aside.remove(&execution);
        self.meet(execution);
    }

    /// A load says whether an execution is quarantined. One that was and is not any more was released: the letters that it
    /// could not take in are read again.
    pub(super) fn meet_quarantined(&mut self, event: &Event) {
        let Event::Loaded(execution, _, answer) = event else { return };
        match **answer {
            LoadAnswer::Quarantined(_) => self.meet(*execution),
            LoadAnswer::Journal(_) if self.aside.remove(execution) => {
                self.forget_letters();
                self.look_for_letters();
            }
            _ => {}
        }
    }

    /// Tells the execution that waits for a quarantined one, once. Where that fails, the next load tries again.
    fn meet(&mut self, execution: ExecutionKey) {
        if self.aside.len() >= ASIDE_MAX {
            self.aside.clear();
        }
        if !self.aside.insert(execution) {
            return;
        }
        let (store, loader) = (self.store.clone(), self.loader.clone());
        let home = self.home.as_ref().map(|(home, _)| home.clone());
        tokio::task::spawn_blocking(move || {
            let place = Place { store: &*store, loader: &loader, home: home.as_ref() };
            if let Err(error) = tell_parent(place, execution) {
                warn!(%execution, %error, "the parent of a quarantined execution could not be told");
            }
        });
    }
}
