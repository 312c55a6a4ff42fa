//! Every example compiles, and every scenario beside it holds.

use std::path::{Path, PathBuf};

use mainspring_kernel::definition::{Syntax, compile, read};
use mainspring_sim::{run_case, scenario};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

#[test]
fn every_scenario_holds() {
    let files = scenario::find(&[examples()]).expect("the folder is read");
    let mut cases = 0;
    for file in &files {
        for case in scenario::read(file).unwrap_or_else(|error| panic!("{error}")) {
            let report = run_case(&case);
            assert!(report.holds(), "{}: {}\n{}", file.display(), report.name, report.failures.join("\n"));
            cases += 1;
        }
    }
    assert!(cases >= 20, "{cases}");
}

#[test]
fn every_example_has_a_scenario_and_compiles_without_a_remark() {
    let mut examples_seen = 0;
    for entry in std::fs::read_dir(examples()).expect("the folder is read") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default().to_string();
        if !name.ends_with(".yaml") || name.ends_with(".scenario.yaml") {
            continue;
        }
        let document = read(&std::fs::read(&path).expect("it reads"), Syntax::Yaml).expect("it is YAML");
        let compiled = compile(&document).unwrap_or_else(|problems| panic!("{name}: {problems:?}"));
        assert_eq!(compiled.warnings, [], "{name}");
        assert!(path.with_extension("scenario.yaml").exists(), "{name} has no scenario");
        examples_seen += 1;
    }
    assert!(examples_seen >= 8, "{examples_seen}");
}
