//! External agents, as commands that speak the Agent Client Protocol (version 1) on their standard streams.
//!
//! A run is one attempt: a process, a session and a prompt. The agent is hostile, so its messages are bounded before they
//! are read, and its permission requests are answered by the verdicts in the plan of the execution.
//!
//! | module | content |
//! |---|---|
//! | [`config`] | `agents`, the configured agents |
//! | `lines` | messages as lines, within bounds |
//! | `message` | the messages of the protocol that are used |
//! | `permission` | permission requests: kind, verdict, question to people, options |
//! | `transcript` | the answer and the tool calls of a session, from its updates |
//! | `session` | a session from the handshake to the end of the prompt |
//! | `live` | agents that run, also those that are held while people decide |
//! | `handle` | the way to continue a session, as journals keep it |
//! | [`executor`] | performs the attempts of `agent` steps with `runner` |

pub mod config;
mod error;
pub mod executor;
mod handle;
pub mod limits;
mod lines;
mod live;
mod message;
mod permission;
mod session;
mod transcript;
