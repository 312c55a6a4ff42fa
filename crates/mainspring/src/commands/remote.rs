//! The commands at a server: the same words and the same exit codes, with a server where a folder would be.

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
