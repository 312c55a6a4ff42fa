//! `mainspring dev`: a server for authors of workflows, on a folder of definitions.

pub(super) mod folder;
mod model;

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use mainspring_kernel::hash::Hash;

use super::up::{self, Beside};
use crate::{
    context::{Context, Global},
    error::{CliError, Exit},
    paths,
    server_settings::{ServerFlags, Settings},
    store_location::StoreLocation,
};
use folder::Folder;

/// Start a server that saves the definitions of a folder whenever they change, and opens the console
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Dev {
    #[command(subcommand)]
    action: Option<Action>,
    /// The folder of the definitions; folders in it are not searched
    #[arg(value_name = "FOLDER", default_value = ".", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// Do not open the browser; the address to open is printed
    #[arg(long)]
    no_open: bool,
    #[command(flatten)]
    flags: ServerFlags,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
enum Action {
    /// Start a scripted model, which speaks the formats of Anthropic, OpenAI and Gemini
    Model(model::Model),
}

/// Runs the command.
pub(crate) fn dev(dev: &Dev, context: &Context) -> Result<Exit, CliError> {
    if let Some(Action::Model(script)) = &dev.action {
        return model::model(script, context);
    }
    let folder = Folder::open(&dev.folder)?;
    let settings = Settings::of(&dev.flags, &own_data_folder(&context.global, &folder)?)?;
    if !matches!(StoreLocation::of(&settings.global)?, StoreLocation::Folder(_)) {
        let message = "`dev` saves every change of a file at once, so it does not work on a shared store: remove \
                       `store` (MAINSPRING_STORE, --store), and use `mainspring save` for that server";
        return Err(CliError::bad_input("dev_shared_store", message));
    }
    let opens = context.terminal.is_live && !dev.no_open;
    up::serve_with(&settings, context, Beside::Folder { folder, opens })
}

/// The data folder of this folder's executions: they are not mixed with those of the installation.
fn own_data_folder(global: &Global, folder: &Folder) -> Result<Global, CliError> {
    let hash = Hash::of(folder.path().as_os_str().as_encoded_bytes()).hex();
    let own = || Ok::<_, CliError>(paths::state_home()?.join("mainspring-dev").join(&hash[..16]));
    let dir = global.dir.clone().map_or_else(own, Ok)?;
    Ok(Global { dir: Some(dir), ..global.clone() })
}
