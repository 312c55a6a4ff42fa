//! Every example compiles and is listed, and every scenario next to it passes.

use std::{
    fs,
    path::{Path, PathBuf},
};

use mainspring_kernel::definition::{Syntax, compile, read};
use mainspring_sim::{run_case, scenario};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// The definitions of a folder, without its scenarios.
fn definitions(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("the folder is read");
    let mut files: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    files.retain(|path| {
        let name = path.to_string_lossy();
        (name.ends_with(".yaml") || name.ends_with(".json")) && !name.contains(".scenario.")
    });
    files.sort();
    files
}

#[test]
fn every_scenario_holds() {
    let files = scenario::find(&[examples()]).expect("the folder is read");
    let mut cases = 0;
    for file in &files {
        for case in scenario::read(file).unwrap_or_else(|error| panic!("{error}")) {
            let report = run_case(&case);
            assert!(report.holds(), "{}: {}\n{}", file.display(), report.name, report.failures.join("\n"));
            assert_eq!(report.warnings, [] as [String; 0], "{}: {}", file.display(), report.name);
            cases += 1;
        }
    }
    assert!(cases >= 100, "{cases}");
}

#[test]
fn every_example_is_listed_tested_and_free_of_warnings() {
    let mut examples_seen = 0;
    for folder in [examples(), examples().join("specifications")] {
        let list = fs::read_to_string(folder.join("README.md")).expect("the folder has a list");
        for path in definitions(&folder) {
            let name = path.file_name().expect("a name").to_string_lossy().into_owned();
            let syntax = if name.ends_with(".json") { Syntax::Json } else { Syntax::Yaml };
            let document = read(&fs::read(&path).expect("it reads"), syntax).expect("it is readable");
            let compiled = compile(&document).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
            assert_eq!(compiled.warnings, [], "{name}");
            assert!(path.with_extension("scenario.yaml").exists(), "{name} has no scenario");
            assert!(list.contains(&format!("`{name}`")), "{name} is not in the list of {}", folder.display());
            examples_seen += 1;
        }
    }
    assert!(examples_seen >= 30, "{examples_seen}");
}
