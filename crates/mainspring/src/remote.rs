//! The HTTP client of a server: addresses, credentials, requests, event streams and errors.
//!
//! Responses are untrusted input: sizes are bounded, types are checked, and text is escaped before it reaches a
//! terminal. Unknown fields are ignored, since a newer server may send them.

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
