//! The layers of crates: a table, compared with what cargo reports and with `ARCHITECTURE.md`.

use crate::finding::Finding;
use crate::repository::{File, Package, Repository};
use crate::token;
use std::collections::BTreeMap;

/// The layers from the top. A crate uses only crates of lower layers, also in its tests. Crates of one layer do not use
/// each other.
const LAYERS: [(&str, &[&str]); 5] = [
    ("3", &["mainspring"]),
    ("2", &["mainspring-server", "mainspring-sim"]),
    ("1", &["mainspring-acp", "mainspring-authoring", "mainspring-engine", "mainspring-mcp", "mainspring-models"]),
    ("0b", &["mainspring-store", "mainspring-effects", "mainspring-evidence", "mainspring-review"]),
    ("0a", &["mainspring-kernel", "mainspring-sandbox", "mainspring-triggers", "mainspring-console"]),
];

/// The crate outside of the layers: it uses none of them, and none uses it.
const TOOL: &str = "xtask";

const ARCHITECTURE: &str = "ARCHITECTURE.md";
const TABLE_BEGINS: &str = "<!-- crate-edges -->";
const TABLE_ENDS: &str = "<!-- /crate-edges -->";

const KERNEL: &str = "crates/kernel/src/lib.rs";
const NO_STD: [&str; 5] = ["#", "!", "[", "no_std", "]"];

pub(super) fn look(repository: &Repository) -> Vec<Finding> {
    let mut findings: Vec<Finding> = repository.packages.iter().flat_map(edges_of).collect();
    findings.extend(repository.file(ARCHITECTURE).map(architecture).unwrap_or_default());
    if let Some(kernel) = repository.file(KERNEL)
        && !(0..kernel.tokens.len()).any(|start| token::reads(&kernel.tokens, start, &NO_STD))
    {
        findings.push(Finding::of_file(KERNEL, "The kernel must be no_std; restore its #![no_std]."));
    }
    findings
}

fn edges_of(package: &Package) -> Vec<Finding> {
    let manifest = manifest_of(&package.name);
    let Some(own) = layer_of(&package.name).or((package.name == TOOL).then_some(LAYERS.len())) else {
        let message =
            format!("{} is in no layer. Give it one, in xtask/src/tidy/edges.rs and {ARCHITECTURE}.", package.name);
        return vec![Finding::of_file(&manifest, message)];
    };
    let mut findings = Vec::new();
    for used in &package.uses {
        let message = match layer_of(used) {
            None if used == TOOL => format!("{} uses {TOOL}, which is not part of the product.", package.name),
            Some(other) if other <= own => format!(
                "{} ({}) uses {used} (layer {}); a crate uses only crates of lower layers.",
                package.name,
                LAYERS.get(own).map_or("the tool, beside the layers".to_owned(), |(layer, _)| format!("layer {layer}")),
                LAYERS[other].0
            ),
            _ => continue,
        };
        findings.push(Finding::of_file(&manifest, message));
    }
    findings
}

/// Returns the index of a crate's layer in [`LAYERS`]; a larger index is a lower layer.
fn layer_of(name: &str) -> Option<usize> {
    LAYERS.iter().position(|(_, names)| names.contains(&name))
}

fn manifest_of(name: &str) -> String {
    match name.strip_prefix("mainspring-") {
        Some(folder) => format!("crates/{folder}/Cargo.toml"),
        None if name == TOOL => format!("{TOOL}/Cargo.toml"),
        None => format!("crates/{name}/Cargo.toml"),
    }
}

/// Compares the table between the markers with [`LAYERS`]. Its rows are `| layer | crate | … |`, with one or more
/// crates in the second cell.
fn architecture(file: &File) -> Vec<Finding> {
    let marked = |marker: &str| file.lines().find(|(_, line)| line.trim() == marker).map(|(number, _)| number);
    let (Some(begins), Some(ends)) = (marked(TABLE_BEGINS), marked(TABLE_ENDS)) else {
        let message =
            format!("The table of crates must be between {TABLE_BEGINS} and {TABLE_ENDS}; a marker is missing.");
        return vec![Finding::of_file(ARCHITECTURE, message)];
    };
    let mut told = BTreeMap::new();
    for (number, line) in file.lines().filter(|(number, _)| (begins..ends).contains(number)) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let ["", layer, names, ..] = cells.as_slice() {
            let names = names.split([',', ' ']).map(|name| name.trim_matches('`')).filter(|name| is_ours(name));
            told.extend(names.map(|name| (name.to_owned(), (layer.to_string(), number))));
        }
    }
    let mut findings = Vec::new();
    for (layer, name) in LAYERS.iter().flat_map(|(layer, names)| names.iter().map(move |name| (layer, name))) {
        match told.remove(*name) {
            Some((said, _)) if said == *layer => {}
            Some((said, line)) => {
                let message = format!("{name} is of layer {layer} and not {said}.");
                findings.push(Finding::at(ARCHITECTURE, line, message));
            }
            None => findings.push(Finding::at(
                ARCHITECTURE,
                begins,
                format!("The row of {name} is missing (layer {layer})."),
            )),
        }
    }
    let unknown =
        told.into_iter().map(|(name, (_, line))| Finding::at(ARCHITECTURE, line, format!("{name} is in no layer.")));
    findings.extend(unknown);
    findings
}

fn is_ours(name: &str) -> bool {
    name == "mainspring" || name.starts_with("mainspring-")
}

#[cfg(test)]
mod tests {
    use super::{ARCHITECTURE, KERNEL, LAYERS, TABLE_BEGINS, TABLE_ENDS, look};
    use crate::repository::{File, Package, Repository};
    use crate::tidy::tests::assert_found;

    /// Checks an edge `user > used`, which is allowed or refused.
    #[track_caller]
    fn check_edge(user: &str, used: &str, refused: Option<&str>) {
        let package = Package { name: user.to_owned(), uses: [used.to_owned(), "serde".to_owned()].into() };
        let findings = look(&Repository::of(Vec::new(), vec![package]));
        let messages: Vec<&String> = findings.iter().map(|finding| &finding.message).collect();
        match refused {
            None => assert!(messages.is_empty(), "{messages:?}"),
            Some(word) => assert!(messages.len() == 1 && messages[0].contains(word), "{messages:?}"),
        }
    }

    fn check_text(path: &str, text: &str, expected: &[(&str, usize, &str)]) {
        assert_found(look(&Repository::of(vec![File::of(path, text)], Vec::new())), expected);
    }

    #[test]
    fn a_crate_uses_only_lower_layers() {
        check_edge("mainspring", "mainspring-kernel", None);
        check_edge("mainspring-store", "mainspring-kernel", None);
        check_edge("mainspring-kernel", "mainspring-store", Some("layer 0b"));
        check_edge("mainspring-engine", "mainspring-sim", Some("layer 2"));
    }

    #[test]
    fn crates_of_one_layer_are_independent() {
        check_edge("mainspring-kernel", "mainspring-sandbox", Some("layer 0a"));
        check_edge("mainspring-effects", "mainspring-store", Some("layer 0b"));
    }

    #[test]
    fn xtask_is_outside_of_the_layers() {
        check_edge("xtask", "clap", None);
        check_edge("mainspring-kernel", "xtask", Some("not part of the product"));
        check_edge("xtask", "mainspring-kernel", Some("beside the layers"));
    }

    #[test]
    fn a_crate_without_a_layer_is_refused() {
        check_edge("mainspring-common", "serde", Some("in no layer"));
    }

    #[test]
    fn the_kernel_has_no_std() {
        check_text(KERNEL, "//! #![no_std]\n#![no_std]\n", &[]);
        check_text(KERNEL, "//! #![no_std]\n", &[(KERNEL, 0, "no_std")]);
    }

    #[test]
    fn the_architecture_has_the_same_table() {
        let row = |(layer, names): &(&str, &[&str])| format!("| {layer} | `{}` | why |\n", names.join("`, `"));
        let rows: String = LAYERS.iter().map(row).collect();
        let page = |rows: &str| format!("# A\n\n{TABLE_BEGINS}\n| layer | crate |\n|---|---|\n{rows}{TABLE_ENDS}\n");
        check_text(ARCHITECTURE, &page(&rows), &[]);
        check_text(ARCHITECTURE, &page(&rows.replace("| 3 |", "| 2 |")), &[(ARCHITECTURE, 6, "of layer 3")]);
        check_text(
            ARCHITECTURE,
            &page(&rows.replace("-engine", "-core")),
            &[(ARCHITECTURE, 3, "mainspring-engine"), (ARCHITECTURE, 8, "mainspring-core")],
        );
        check_text(ARCHITECTURE, &rows, &[(ARCHITECTURE, 0, "marker")]);
    }
}
