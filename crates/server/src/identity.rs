//! Callers and their rights: roles, permissions, and the text form of tokens.

mod credential;
mod permission;
mod token;

pub use credential::{Caller, Kind};
pub use permission::{PERMISSIONS, Permission, Role};
pub(crate) use token::random;
pub use token::{TOKEN_PREFIX, TokenText};
