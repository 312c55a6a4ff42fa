//! `mainspring lsp`: the language server of editors.

use clap::Args;

use crate::{
    context::Context,
    error::{CliError, Exit},
};

/// Serve an editor on standard input and output.
///
/// It reports diagnostics of definitions in YAML and JSON, completes keys, step types and references, explains them, and
/// finds and renames ids of steps. `editors/vscode` has an extension; other editors start `mainspring lsp` themselves.
#[derive(Debug, Args)]
pub(crate) struct Lsp {
    /// Accepted because editors pass it; standard input and output are the only transport
    #[arg(long, hide = true)]
    stdio: bool,
}

#[cfg(feature = "language-server")]
pub(crate) fn lsp(_: &Lsp, _: &Context) -> Result<Exit, CliError> {
    use mainspring_kernel::definition::{Syntax, read};

    use crate::evaluator::compile;

    let check = |text: &str, syntax: Syntax| {
        let compiled =
            read(text.as_bytes(), syntax).map_err(|found| vec![found]).and_then(|document| compile(&document));
        compiled.map_or_else(|found| found, |compiled| compiled.warnings)
    };
    let served = mainspring_authoring::lsp::serve(&check);
    served.map(|()| Exit::Fine).map_err(|why| CliError::internal("language_server_failed", why))
}

#[cfg(not(feature = "language-server"))]
pub(crate) fn lsp(_: &Lsp, _: &Context) -> Result<Exit, CliError> {
    let message = "this build of mainspring has no language server: build it with the feature `language-server`";
    Err(CliError::bad_input("no_language_server", message))
}
