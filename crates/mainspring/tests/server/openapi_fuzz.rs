//! Tests the OpenAPI description with Schemathesis: it sends requests that the description allows and others that
//! it forbids, and every response must match the description.
//!
//! The test is not part of the default run, since Schemathesis needs Python. `cargo xtask api` runs it.

use std::process::Command;

use mainspring_kernel::value::{Map, Value};

use super::{
    client::Client,
    process::{Organization, Server},
    start::{save, start},
};

/// The checks of every response.
const CHECKS: &str = "not_a_server_error,status_code_conformance,content_type_conformance,\
    response_schema_conformance,response_headers_conformance,unsupported_method";

/// Excluded routes: streams and waits that last as long as an execution.
const LEFT_OUT: &str = "/events$|/wait$";

/// Routes that revoke credentials or delete what other requests need.
const TAKES_AWAY: &str = "/tokens|/members|/session$|/sign-in$|/sync-all$";

struct Run<'a> {
    /// The client whose credential is used.
    asker: &'a Client,
    /// Excluded paths, and excluded methods, in addition to [`LEFT_OUT`].
    without: (&'a str, &'a [&'a str]),
    /// Values of path parameters, by a pattern of the path; random ones by default.
    names: &'a [(&'a str, &'a str)],
}

/// Runs Schemathesis. Returns the number of generated requests.
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
    // Health checks depend on the machine and on chance, so they are suppressed.
    command.args(["--request-timeout", "60", "--suppress-health-check", "all", "--no-shrink"]).current_dir(folder);
    let output = command.output().expect("Schemathesis is there: python3 -m pip install schemathesis");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}\n{}", String::from_utf8_lossy(&output.stderr));
    let made_up = said.lines().find_map(|line| line.trim().split_once(" generated, "));
    made_up.and_then(|(count, _)| count.replace(',', "").parse().ok()).unwrap_or_else(|| panic!("{said}"))
}

#[test]
#[ignore = "it needs Schemathesis: cargo xtask api"]
fn every_response_is_documented_in_openapi() {
    let folder = tempfile::tempdir().unwrap();
    let unlimited = ["--rate-limit-per-second", "0", "--anonymous-rate-limit-per-second", "0"];
    let server = Server::start_with(folder.path(), &unlimited);
    let owner = server.owner();
    let gate = [("id", "ask"), ("type", "approval"), ("prompt", "?")].map(|(key, value)| (key, Value::from(value)));
    save(&owner, "sample", Value::List(vec![Value::map(gate)]));
    let waiting = start(&owner, "sample", "1", Map::new()).expect(202).text_at("executionId");
    let (other, anonymous) = (Organization::new(&server, "other"), server.client(&format!("msp_{:018}_{:064}", 0, 0)));
    let cases = std::env::var("MAINSPRING_API_CASES").map_or(10, |cases| cases.parse().expect("a number of cases"));
    let names = [("^/api/workflows/", "sample"), ("^/api/executions/", waiting.as_str())];
    let runs = [
        // Existing resources, with all rights.
        Run { asker: &owner, without: (&format!("|{TAKES_AWAY}"), &["DELETE"]), names: &names },
        // All routes, including those that revoke the rights of the run.
        Run { asker: &other.owner, without: ("", &[]), names: &[] },
        // A caller without rights.
        Run { asker: &anonymous, without: ("", &[]), names: &names },
    ];
    let made_up: u64 = runs.iter().map(|run| ask(&server, folder.path(), cases, run)).sum();
    eprintln!("{made_up} requests, and every answer was one that the description names");
    owner.get("/readyz").expect(200);
}
