//! Runs the scenarios in the pages below `docs`. `crates/kernel/tests/docs.rs` compiles the definitions there.

use std::{
    fs,
    path::{Path, PathBuf},
};

use mainspring_kernel::definition::Syntax;
use mainspring_sim::{run_case, scenario};

/// A sample with scenarios begins with this key.
const CASES: &str = "cases:";

/// A sample with a definition that a scenario of its page may name: as `NAME.yaml`.
const NAME: &str = "name: ";

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn pages() -> Vec<PathBuf> {
    let mut pages = Vec::new();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("the folder is read") {
            let path = entry.expect("an entry").path();
            let is_page = path.extension().is_some_and(|extension| extension == "md");
            if path.is_dir() {
                folders.push(path)
            } else if is_page {
                pages.push(path)
            }
        }
    }
    pages.sort();
    pages
}

/// The samples of a page in YAML.
fn samples(page: &str) -> Vec<&str> {
    page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// A folder with the examples and the definitions of a page, for the paths in its scenarios.
fn folder_for(samples: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for entry in fs::read_dir(root().join("examples")).expect("the folder is read") {
        let path = entry.expect("an entry").path();
        if path.is_file() {
            fs::copy(&path, folder.path().join(path.file_name().expect("a name"))).expect("it is copied");
        }
    }
    for sample in samples {
        if let Some(name) = sample.strip_prefix(NAME).and_then(|rest| rest.lines().next()) {
            fs::write(folder.path().join(format!("{name}.yaml")), sample).expect("it is written");
        }
    }
    folder
}

#[test]
fn every_scenario_in_the_documents_holds() {
    let mut tried = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).expect("the page is read");
        let samples = samples(&page);
        let folder = folder_for(&samples);
        for sample in samples.iter().filter(|sample| sample.starts_with(CASES)) {
            let cases = scenario::read_text(sample.as_bytes(), Syntax::Yaml, folder.path())
                .unwrap_or_else(|error| panic!("{}\n{sample}\n{error}", path.display()));
            for case in cases {
                let report = run_case(&case);
                assert!(report.holds(), "{}: {}\n{}", path.display(), report.name, report.failures.join("\n"));
                tried += 1;
            }
        }
    }
    assert!(tried >= 2, "{tried} scenarios");
}
