//! Writes `schemas/*.schema.json` anew, from the keys that the compiler takes and from `schemas/keys.yaml`.
//!
//! The kernel's test of the schemas is also what generates them, so that this tool needs no crate of the product.

use std::path::Path;
use std::process::Command;

/// The variable that tells tests to write what they would compare.
const WRITE_VARIABLE: &str = "MAINSPRING_UPDATE_GOLDEN";

const ARGUMENTS: [&str; 7] =
    ["test", "--quiet", "--package", "mainspring-kernel", "--test", "schemas", "schemas_are_as_generated"];

/// Writes the schemas. The written files go into the same change as their cause.
pub(crate) fn run(root: &Path) -> Result<String, String> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let status = Command::new(cargo).args(ARGUMENTS).env(WRITE_VARIABLE, "1").current_dir(root).status();
    match status {
        Ok(status) if status.success() => Ok("schemas/*.schema.json are as generated.".to_owned()),
        Ok(status) => Err(format!("cargo {} ended with {status}.", ARGUMENTS.join(" "))),
        Err(error) => Err(format!("cargo cannot be run: {error}.")),
    }
}
