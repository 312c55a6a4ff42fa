//! What a node does with quarantined executions, as the engine's rim does it: the store is told, and whoever waits for
//! them.

use std::collections::BTreeMap;

use mainspring_engine::{
    aside::{Place, tell_parent},
    shard::LoadAnswer,
};
use mainspring_kernel::key::ExecutionKey;
use mainspring_store::Store;

use super::{Cluster, Happening, line::What, node::Inner, operators};

/// What a process knows of quarantined executions.
#[derive(Debug, Default)]
pub(super) struct Aside {
    /// Those of which the store does not know yet, and why.
    setting_aside: BTreeMap<ExecutionKey, String>,
    /// Those that it has met, and whether an execution that waits for one was told or is being told.
    met: BTreeMap<ExecutionKey, bool>,
    /// Whether they are to be looked for, and whether they are being looked for.
    is_wanted: bool,
    is_looking: bool,
}

impl Aside {
    /// Whether the store is being told of one.
    pub(super) fn is_telling(&self) -> bool {
        !self.setting_aside.is_empty()
    }
}

/// What a node asks of the store.
#[derive(Debug)]
pub(super) enum Asked {
    SetAside(ExecutionKey, String),
    TellParent(ExecutionKey),
    Look,
}

/// What it is answered.
#[derive(Debug)]
pub(super) enum Answered {
    IsSetAside(ExecutionKey, bool),
    ToldParent(ExecutionKey, Option<bool>),
    Found(Option<Vec<ExecutionKey>>),
}

impl Cluster {
    /// A node quarantines an execution. Only one that something was wrong with may be.
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

    /// Asks for a journal, unless its execution is being quarantined: until the store knows it, the journal is not read
    /// again.
    pub(super) fn ask_for_journal(&mut self, node: usize, execution: ExecutionKey, number: u64) {
        let Some(why) = self.nodes[node].aside.setting_aside.get(&execution) else {
            return self.ask_store(node, What::Load(execution, number));
        };
        let (answer, life) = (Box::new(LoadAnswer::Quarantined(why.clone())), self.nodes[node].life);
        self.at(0, Happening::Node(node, life, Inner::Loaded(execution, number, answer)));
    }

    /// What is asked of quarantined executions reaches the store, or does not.
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
            // What could not be told is told again at a later look.
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

    /// A journal that was read says whether its execution is quarantined. One that was and is not any more was released:
    /// the letters that it could not take in are read again.
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

    /// Partitions are held from now on: who held them before may have told nobody of what is quarantined in them.
    pub(super) fn want_quarantined(&mut self, node: usize) {
        if self.mishaps.may_set_aside() {
            self.nodes[node].aside.is_wanted = true;
            self.look_for_quarantined(node);
        }
    }

    /// Looks for quarantined executions if that is wanted, one look at a time.
    pub(super) fn look_for_quarantined(&mut self, node: usize) {
        let aside = &mut self.nodes[node].aside;
        if !aside.is_wanted || aside.is_looking {
            return;
        }
        (aside.is_wanted, aside.is_looking) = (false, true);
        self.ask_store(node, What::Aside(Asked::Look));
    }

    /// Tells the execution that waits for a quarantined one, once.
    fn meet(&mut self, node: usize, execution: ExecutionKey) {
        if self.nodes[node].aside.met.insert(execution, true) != Some(true) {
            self.ask_store(node, What::Aside(Asked::TellParent(execution)));
        }
    }
}
