//! JSON text: read strictly, written plainly or canonically.

mod read;
mod write;

pub use read::read;
pub(crate) use read::{not_utf8, number_of_literal, place};
pub use write::{canonical, compact, pretty};
