//! The description of the API, taken at its word by a program that knows nothing else of it: Schemathesis asks whatever the
//! description allows and what it does not, and every answer must be one that it names.
//!
//! It is no part of a landing: Schemathesis is a program of Python. `cargo xtask api` runs it.

use std::process::Command;

use mainspring_kernel::value::{Map, Value};

use super::{
    client::Client,
    process::{Organization, Server},
    starts::{save, start},
};

/// What is held against every answer.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_schema_conformance,response_headers_conformance,unsupported_method";

/// What is not asked: streams and waits that end when the execution does, and routes that answer 501 until they are built.
const LEFT_OUT: &str = "/events$|/wait$|/proposals|/rollback$";

/// What takes away the rights or the things with which the rest is asked.
const TAKES_AWAY: &str = "/tokens|/members|/session$|/sign-in$|/sync-all$";

/// One run.
struct Run<'a> {
    /// With whose credential.
    asker: &'a Client,
    /// Paths, and methods of paths, that are left out beside [`LEFT_OUT`].
    without: (&'a str, &'a [&'a str]),
    /// What names in paths are, by a pattern of the path: any, if nothing is said.
    names: &'a [(&'a str, &'a str)],
}

/// Runs Schemathesis, and gives how many requests it has made up.
fn ask(server: &Server, folder: &std::path::Path, cases: u32, run: &Run<'_>) -> u64 {
    let named = |(path, id): &(&str, &str)| {
        format!("[[operations]]\ninclude-path-regex = \"{path}\"\nparameters = {{ \"path.id\" = \"{id}\" }}\n")
    };
    let config = folder.join("schemathesis.toml");
    std::fs::write(&config, run.names.iter().map(named).collect::<String>()).unwrap();
    let program = std::env::var_os("MAINSPRING_SCHEMATHESIS").unwrap_or_else(|| "schemathesis".into());
    let mut command = Command::new(program);
    command.arg("--config-file").arg(&config).arg("run").arg(format!("http://{}/openapi.json", server.address));
    command.args(["--phases", "coverage,fuzzing", "--checks", CHECKS, "--max-examples", &cases.to_string()]);
    command.args(["--exclude-path-regex", &format!("{LEFT_OUT}{}", run.without.0)]);
    for method in run.without.1 {
        command.args(["--exclude-method", method]);
    }
    command.args(["--header", &format!("Authorization: Bearer {}", run.asker.token())]);
    // How fast it is, and how much of what it makes up is refused, depends on the machine and on chance.
    command.args(["--request-timeout", "60", "--suppress-health-check", "all", "--no-shrink"]).current_dir(folder);
    let output = command.output().expect("Schemathesis is there: python3 -m pip install schemathesis");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let made_up = said.lines().find_map(|line| line.trim().split_once(" generated, "));
    made_up.and_then(|(count, _)| count.replace(',', "").parse().ok()).unwrap_or_else(|| panic!("{said}"))
}

#[test]
#[ignore = "it needs Schemathesis: cargo xtask api"]
fn every_answer_is_one_that_the_description_names() {
    let folder = tempfile::tempdir().unwrap();
    let unlimited = ["--rate-limit-per-second", "0", "--anonymous-rate-limit-per-second", "0"];
    let server = Server::start_with(folder.path(), &unlimited);
    let owner = server.owner();
    let gate = [("id", "ask"), ("type", "approval"), ("prompt", "?")].map(|(key, value)| (key, Value::from(value)));
    save(&owner, "sample", Value::List(vec![Value::map(gate)]));
    let waiting = start(&owner, "sample", "1", Map::new()).expect(202).text_at("executionId");
    let (other, stranger) = (Organization::new(&server, "other"), server.client(&format!("msp_{:018}_{:064}", 0, 0)));
    let cases = std::env::var("MAINSPRING_API_CASES").map_or(10, |cases| cases.parse().expect("a number of cases"));
    let names = [("^/api/workflows/", "sample"), ("^/api/executions/", waiting.as_str())];
    let runs = [
        // Of things that are there, with all rights.
        Run { asker: &owner, without: (&format!("|{TAKES_AWAY}"), &["DELETE"]), names: &names },
        // Whatever is asked, also what takes the rights away in the midst of it.
        Run { asker: &other.owner, without: ("", &[]), names: &[] },
        // By somebody who may do nothing.
        Run { asker: &stranger, without: ("", &[]), names: &names },
    ];
    let made_up: u64 = runs.iter().map(|run| ask(&server, folder.path(), cases, run)).sum();
    eprintln!("{made_up} requests, and every answer was one that the description names");
    owner.get("/readyz").expect(200);
}
