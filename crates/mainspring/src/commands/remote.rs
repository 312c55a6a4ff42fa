//! The commands at a server: the same output and exit codes as for a local store.

mod approvals;
mod decide;
mod find;
mod follow;
mod inputs;
mod list;
mod quarantine;
mod run;
mod show;
mod tail;
mod verify;

pub(super) use self::{
    approvals::approvals,
    decide::decide,
    inputs::{cancel, signal},
    list::list,
    quarantine::{erase, quarantine},
    run::run,
    show::show,
    tail::tail,
    verify::verify,
};
