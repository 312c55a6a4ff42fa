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
//! | [`pool`] | connections that are open, and when they close |
//! | `lookup` | the server of a tool, by its name |
//! | [`executor`] | performs the attempts of `tool` steps |
//! | `report` | reports of attempts before their end |
//! | `live` | calls in progress, also those that are held open while people fill in a form |
//! | `forms` | forms that servers ask for |
//! | `task` | calls that a server continues as tasks |
//! | `handle` | the ways to continue a call, as journals keep them |

pub mod config;
pub mod connection;
mod error;
pub mod executor;
mod forms;
mod handle;
pub mod http;
mod json;
pub mod limits;
mod live;
mod lookup;
mod outcome;
pub mod pool;
mod report;
mod task;
pub mod tool;
mod transport;

pub use error::ToolError;
