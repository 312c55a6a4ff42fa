//! The commands of `mainspring`, one file each: its flags, then what it does.

pub(crate) mod asking;
pub(crate) mod audit;
pub(crate) mod bench;
pub(crate) mod cancel;
pub(crate) mod config;
pub(crate) mod convert;
pub(crate) mod decide;
pub(crate) mod follow;
pub(crate) mod hand_over;
pub(crate) mod list;
pub(crate) mod login;
pub(crate) mod node;
pub(crate) mod plan;
mod remote;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod save;
pub(crate) mod show;
pub(crate) mod signal;
pub(crate) mod summary;
pub(crate) mod tail;
pub(crate) mod test;
pub(crate) mod token;
pub(crate) mod up;
pub(crate) mod validate;
pub(crate) mod verify;
pub(crate) mod workflows;
