//! Tools of MCP servers: the configuration of the servers, connections to them, and the executor of `tool` steps.
//!
//! The protocol is the work of `rmcp`. This crate decides what a call may cost and what it leaves behind: a server is
//! hostile, so its messages, its lists and its results are bounded; a call is sent once for each attempt in the
//! journal; and a process that serves an execution ends with the connection.
//!
//! | module | content |
//! |---|---|
//! | [`config`] | `mcpServers`, as MCP clients write it |
//! | [`connection`] | one connection: protocol version, list of tools, calls |
//! | `transport` | bounds on the messages of a server; messages as lines |
//! | [`http`] | reaches a server over streamable HTTP |
//! | [`process`] | starts the process of a stdio server |
//! | [`pool`] | connections that are open, and when they close |
//! | `lookup` | the server of a tool, by its name |
//! | [`executor`] | performs the attempts of `tool` steps |

pub mod config;
pub mod connection;
mod error;
pub mod executor;
pub mod http;
mod json;
pub mod limits;
mod lookup;
mod outcome;
pub mod pool;
pub mod process;
pub mod tool;
mod transport;

pub use error::ToolError;
