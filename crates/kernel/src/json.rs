//! JSON text: read strictly, written plainly or canonically.

mod read;
mod write;

pub(crate) use read::{cut, not_utf8, number_of_literal, place};
pub use read::{data, read, value};
pub use write::{canonical, compact, pretty};
