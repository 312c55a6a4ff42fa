//! The prologue of a script with references: a command that removes its values from the environment of its programs.
//!
//! Bash exports every variable that it finds in its environment. Without the prologue each program of the script would
//! receive the values: `env`, `printenv` and `export` print them, and `make` expands them. A variable to which the
//! script assigns a value is exported too if the environment of the script already contains its name. `export -n` ends
//! both and keeps the contents of the variables. It is on the first line of the script, so that line numbers do not
//! change.

use alloc::{format, string::String, vec::Vec};

use super::VARIABLE_PREFIX;

const BEGIN: &str = "export -n ";
const END: &str = "; ";

/// Returns the prologue for a number of references and for the variables to which values are assigned.
pub(super) fn prologue(references: usize, variables: &[Vec<u8>]) -> String {
    let mut names: Vec<String> = (0..references).map(|number| format!("{VARIABLE_PREFIX}{number}")).collect();
    names.extend(variables.iter().map(|name| String::from_utf8_lossy(name).into_owned()));
    format!("{BEGIN}{}{END}", names.join(" "))
}

/// Returns the script as the author wrote it, except for the references.
pub fn without_prologue(text: &str) -> &str {
    let rest = text.strip_prefix(BEGIN).filter(|rest| rest.starts_with(VARIABLE_PREFIX));
    rest.and_then(|rest| rest.split_once(END)).map_or(text, |(_, script)| script)
}
