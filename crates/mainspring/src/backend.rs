//! The executions that a command works on: those of a data folder, of a shared store, or of a server.
//!
//! Commands send plain requests to a [`Backend`], and do not know which one it is.

mod audit_entry;
pub(crate) mod contract;
mod delegate;
mod delivery;
pub(crate) mod engine_follow;
mod folder;
pub(crate) mod idle;
pub(crate) mod read_store;
mod server;
mod server_decide;
mod server_find;
mod server_follow;
mod server_list;
pub(crate) mod server_save;
mod server_start;
mod server_verify;
mod shared_store;
pub(crate) mod start;
mod store_tail;
mod stored;
pub(crate) mod subworkflows;

use self::{contract::Backend, folder::Folder, server::Server, shared_store::SharedStore};
use crate::{context::Context, error::CliError};

impl Context {
    /// The backend that the flags and the environment select.
    pub(crate) fn backend(&self) -> Result<Box<dyn Backend + '_>, CliError> {
        if let Some(client) = self.global.client()? {
            return Ok(Box::new(Server { client, context: self }));
        }
        Ok(match self.global.store {
            Some(_) => Box::new(SharedStore { context: self }),
            None => Box::new(Folder { context: self }),
        })
    }
}
