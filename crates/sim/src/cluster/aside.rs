//! Quarantine at a simulated node, as in the engine's driver: the node records the quarantine in the store, and
//! notifies the parent execution that waits for a quarantined child.

use std::collections::BTreeMap;

use mainspring_engine::{
    aside::{Place, tell_parent},
    shard::LoadAnswer,
};
use mainspring_kernel::key::ExecutionKey;
use mainspring_store::Store;

use super::{Cluster, Happening, line::What, node::Inner, operators};

/// The state that a process keeps about quarantined executions.
#[derive(Debug, Default)]
pub(super) struct Aside {
    /// Executions whose quarantine is not recorded in the store yet, with the reason.
    setting_aside: BTreeMap<ExecutionKey, String>,
    /// Known quarantined executions. The flag is set once the parent was notified or a notification is in progress.
    met: BTreeMap<ExecutionKey, bool>,
    /// A read of the quarantined executions is requested (`is_wanted`) or in progress (`is_looking`).
    is_wanted: bool,
    is_looking: bool,
}

impl Aside {
    /// Returns whether a quarantine is still being recorded in the store.
    pub(super) fn is_telling(&self) -> bool {
        !self.setting_aside.is_empty()
    }
}

/// A request to the store.
#[derive(Debug)]
pub(super) enum Asked {
    SetAside(ExecutionKey, String),
    TellParent(ExecutionKey),
    Look,
}

/// The response to a request.
#[derive(Debug)]
pub(super) enum Answered {
    IsSetAside(ExecutionKey, bool),
    ToldParent(ExecutionKey, Option<bool>),
    Found(Option<Vec<ExecutionKey>>),
}

impl Cluster {
    /// Quarantines an execution. A quarantine without an injected cause violates the rules.
    pub(super) fn quarantine(&mut self, node: usize, execution: ExecutionKey, why: String) -> Result<(), String> {
        if !self.mishaps.may_be_set_aside.contains(&execution) {
            return Err(format!("{execution} was set aside: {why}"));
        }
        if let Some(call) = self.calls.goes_on(node, self.nodes[node].life, execution) {
            return Err(format!("{execution} is quarantined, and {call:?} goes on"));
        }
        self.table.met_fault(operators::QUARANTINED);
        self.nodes[node].aside.setting_aside.insert(execution, why.clone());
        self.ask_store(node, What::Aside(Asked::SetAside(execution, why)));
        Ok(())
    }

    /// Requests a journal. The journal of an execution whose quarantine is not recorded yet is not read again: the
    /// request is answered here.
    pub(super) fn ask_for_journal(&mut self, node: usize, execution: ExecutionKey, number: u64) {
        let Some(why) = self.nodes[node].aside.setting_aside.get(&execution) else {
            return self.ask_store(node, What::Load(execution, number));
        };
        let (answer, life) = (Box::new(LoadAnswer::Quarantined(why.clone())), self.nodes[node].life);
        self.at(0, Happening::Node(node, life, Inner::Loaded(execution, number, answer)));
    }

    /// Handles a request about quarantined executions at the store. `fails` makes the store unavailable for it.
    pub(super) fn store_takes_aside(&mut self, who: (usize, u32), asked: Asked, fails: bool) -> Result<(), String> {
        let answered = match asked {
            Asked::SetAside(execution, _) if fails => Answered::IsSetAside(execution, false),
            Asked::SetAside(execution, why) => {
                self.store.quarantine(execution, &why).map_err(|error| error.to_string())?;
                Answered::IsSetAside(execution, true)
            }
            Asked::TellParent(execution) if fails => Answered::ToldParent(execution, None),
            Asked::TellParent(execution) => {
                let place = Place { store: &self.store, loader: &self.loader, home: None };
                let told = tell_parent(place, execution);
                let partitions = self.store.partitions().map_err(|error| error.to_string())?;
                self.hint(&(0..partitions).collect::<Vec<u32>>());
                Answered::ToldParent(execution, told.ok())
            }
            Asked::Look if fails => Answered::Found(None),
            Asked::Look => {
                let rows = self.store.quarantined(None, None, usize::MAX).map_err(|error| error.to_string())?;
                Answered::Found(Some(rows.iter().map(|row| row.execution).collect()))
            }
        };
        let delay = self.delay_of_answer();
        self.answer_in(delay, who, Inner::Aside(answered));
        Ok(())
    }

    pub(super) fn hear_aside(&mut self, node: usize, answered: Answered) {
        let aside = &mut self.nodes[node].aside;
        match answered {
            Answered::IsSetAside(execution, is_known) => {
                aside.setting_aside.remove(&execution);
                if is_known {
                    aside.met.remove(&execution);
                    self.meet(node, execution);
                } else {
                    self.forget_letters(node);
                }
            }
            // A failed notification is repeated after a later read.
            Answered::ToldParent(execution, is_told) => {
                if is_told != Some(true) {
                    aside.met.entry(execution).and_modify(|is_told| *is_told = false);
                    aside.is_wanted |= is_told.is_none();
                }
            }
            Answered::Found(found) => {
                aside.is_looking = false;
                let Some(found) = found else {
                    aside.is_wanted = true;
                    return;
                };
                for execution in found {
                    if self.nodes[node].holds_execution(execution) {
                        self.meet(node, execution);
                    }
                }
                self.look_for_quarantined(node);
            }
        }
    }

    /// Compares the answer to a load with the known quarantines. A journal that loads again was released: the inbox
    /// messages that the execution could not consume are read again.
    pub(super) fn meet_quarantined(&mut self, node: usize, execution: ExecutionKey, answer: &LoadAnswer) {
        if !self.mishaps.may_set_aside() {
            return;
        }
        match answer {
            LoadAnswer::Quarantined(_) => self.meet(node, execution),
            LoadAnswer::Journal(_) if self.nodes[node].aside.met.remove(&execution).is_some() => {
                self.forget_letters(node);
                self.look_for_letters(node);
            }
            _ => {}
        }
    }

    /// Requests a read after the node acquired partitions: their previous owner may not have notified the parents of
    /// quarantined executions.
    pub(super) fn want_quarantined(&mut self, node: usize) {
        if self.mishaps.may_set_aside() {
            self.nodes[node].aside.is_wanted = true;
            self.look_for_quarantined(node);
        }
    }

    /// Reads the quarantined executions if requested, one read at a time.
    pub(super) fn look_for_quarantined(&mut self, node: usize) {
        let aside = &mut self.nodes[node].aside;
        if !aside.is_wanted || aside.is_looking {
            return;
        }
        (aside.is_wanted, aside.is_looking) = (false, true);
        self.ask_store(node, What::Aside(Asked::Look));
    }

    /// Notifies the parent of a quarantined execution, once.
    fn meet(&mut self, node: usize, execution: ExecutionKey) {
        if self.nodes[node].aside.met.insert(execution, true) != Some(true) {
            self.ask_store(node, What::Aside(Asked::TellParent(execution)));
        }
    }
}
