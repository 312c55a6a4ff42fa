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
    let served = mainspring_authoring::lsp::serve(&InSandbox);
    served.map(|()| Exit::Fine).map_err(|why| CliError::internal("language_server_failed", why))
}

/// The compiler of the language server. Workflows that a definition starts are read from its folder.
#[cfg(feature = "language-server")]
struct InSandbox;

#[cfg(feature = "language-server")]
mod server {
    use std::path::PathBuf;

    use mainspring_authoring::lsp::Compiler;
    use mainspring_kernel::{
        definition::{Field, Syntax, fields_of, read},
        diagnostic::Diagnostic,
        document::{Document, Path},
    };

    use super::InSandbox;
    use crate::evaluator::{InFolder, compile, compile_in, evaluator};

    impl Compiler for InSandbox {
        fn check(&self, address: &str, text: &str, syntax: Syntax) -> Vec<Diagnostic> {
            let compiled =
                read(text.as_bytes(), syntax).map_err(|found| vec![found]).and_then(|document| match folder(address) {
                    Some(folder) => compile_in(&document, &folder),
                    None => compile(&document),
                });
            compiled.map_or_else(|found| found, |compiled| compiled.warnings)
        }

        fn fields(&self, address: &str, document: &Document, step: &Path, reference: &str) -> Vec<Field> {
            let (evaluator, folder) = (evaluator(), folder(address).unwrap_or_default());
            fields_of(document, &InFolder::new(&*evaluator, &folder), step, reference)
        }
    }

    /// Returns the folder of a text; `None` for a text that is no file.
    fn folder(address: &str) -> Option<PathBuf> {
        let file = url::Url::parse(address).ok()?.to_file_path().ok()?;
        file.parent().map(PathBuf::from)
    }
}

#[cfg(not(feature = "language-server"))]
pub(crate) fn lsp(_: &Lsp, _: &Context) -> Result<Exit, CliError> {
    let message = "this build of mainspring has no language server: build it with the feature `language-server`";
    Err(CliError::bad_input("no_language_server", message))
}
