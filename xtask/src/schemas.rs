//! Generates `schemas/*.schema.json` from the keys of the compiler and `schemas/keys.yaml`.
//!
//! The kernel's test of the schemas also generates them, so this tool needs no crate of the product.

use crate::cargo;
use std::path::Path;

/// The variable by which tests write golden files instead of comparing them.
const WRITE_VARIABLE: &str = "MAINSPRING_UPDATE_GOLDEN";

const ARGUMENTS: [&str; 7] =
    ["test", "--quiet", "--package", "mainspring-kernel", "--test", "schemas", "schemas_are_as_generated"];

/// Generates the schemas. The files belong in the same change as their cause.
pub(crate) fn run(root: &Path) -> Result<String, String> {
    let status = cargo::command().args(ARGUMENTS).env(WRITE_VARIABLE, "1").current_dir(root).status();
    match status {
        Ok(status) if status.success() => Ok("schemas/*.schema.json are as generated.".to_owned()),
        Ok(status) => Err(format!("cargo {} ended with {status}.", ARGUMENTS.join(" "))),
        Err(error) => Err(format!("cargo cannot be run: {error}.")),
    }
}
