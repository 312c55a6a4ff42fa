//! Calls of language models: the configured models, the formats of their providers, and the executor of `agent` steps.
//!
//! One attempt is one request. The loop around it (turns, tool calls, repairs) is in the kernel, so this crate holds no
//! conversation: every request is built from the parameters of the attempt alone. Requests go through the executor of
//! `http` steps, which has the address filter, TLS, bounds, cancellation and `Retry-After`.
//!
//! | module | content |
//! |---|---|
//! | [`config`] | `models`, the configured models |
//! | [`request`] | a request without the form of a provider |
//! | [`answer`] | an answer without the form of a provider |
//! | [`provider`] | the formats: Anthropic Messages, OpenAI Chat Completions and Responses, Gemini |
//! | [`stream`] | the events of a streamed answer, assembled to the same answer |
//! | [`tools`] | the tools that a model may call, as the request describes them |
//! | [`executor`] | performs the attempts of `agent` steps |
//! | [`dev`] | a scripted model that speaks the same formats, for tests and examples |

pub mod answer;
pub mod config;
pub mod dev;
mod error;
pub mod executor;
pub mod limits;
pub mod prices;
pub mod provider;
pub mod request;
pub mod stream;
pub mod tools;

pub use error::ModelError;
