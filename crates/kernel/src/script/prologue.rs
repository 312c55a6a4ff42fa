//! What is put before a script with references: the command that takes its values out of the environment.
//!
//! Bash marks what it finds in its environment as exported, so that each program of the script would find the values
//! there: `env`, `printenv` and `export` print them, and `make` expands them. A variable that the script assigns a value
//! to is exported as well where the profile or the process of the execution has exported its name. `export -n` ends both,
//! keeps what the variables hold, and stands on the first line of the script, so that lines are counted as before.

use alloc::{format, string::String, vec::Vec};

use super::VARIABLE_PREFIX;

const BEGIN: &str = "export -n ";
const END: &str = "; ";

/// The text before a script with a number of references, and with variables that values are assigned to.
pub(super) fn prologue(references: usize, variables: &[Vec<u8>]) -> String {
    let mut names: Vec<String> = (0..references).map(|number| format!("{VARIABLE_PREFIX}{number}")).collect();
    names.extend(variables.iter().map(|name| String::from_utf8_lossy(name).into_owned()));
    format!("{BEGIN}{}{END}", names.join(" "))
}

/// The text of a script as its author wrote it but for the references.
pub fn without_prologue(text: &str) -> &str {
    let rest = text.strip_prefix(BEGIN).filter(|rest| rest.starts_with(VARIABLE_PREFIX));
    rest.and_then(|rest| rest.split_once(END)).map_or(text, |(_, script)| script)
}
