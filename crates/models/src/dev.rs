//! A scripted model: a server on loopback that speaks the formats of the providers and answers from a file. Examples and
//! tests run against it without a key.
//!
//! An answer is chosen by the number of answers that the conversation has already. A request that is repeated after a
//! crash therefore gets the same answer, and the count of requests shows the repetition.

mod reply_body;
mod script;
mod server;
mod stream;
mod wire;

pub use script::{Script, ScriptError};
pub use server::ScriptedModel;
pub use stream::stream_of;
