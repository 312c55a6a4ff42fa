//! JSON text: a strict parser, and writers for the compact, pretty and canonical forms.

mod read;
mod write;

pub(crate) use read::{cut, not_utf8, number_of_literal, place};
pub use read::{data, read, value};
pub use write::{canonical, compact, pretty};
