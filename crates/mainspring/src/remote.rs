//! A server as its clients see it: where it is, what lets in there, what it answers.
//!
//! Whatever a server sends is a stranger's until it was read: sizes are bounded, the forms are checked, and no text of it
//! reaches a terminal as it is. Fields that this build does not know are those of a newer server and are passed over.

pub(crate) mod address;
pub(crate) mod answer;
pub(crate) mod client;
pub(crate) mod connection;
pub(crate) mod credentials;
pub(crate) mod events;
pub(crate) mod execution;
pub(crate) mod named;
pub(crate) mod trouble;

pub(crate) use self::{client::Client, trouble::Trouble};
