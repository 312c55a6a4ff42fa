//! Secrets in HashiCorp Vault, read from a server that answers as Vault's HTTP API describes for the KV engine of version 2.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
};

use mainspring_kernel::{json, value::Value};

use super::{
    Bench,
    support::{Answer, call},
};

#[path = "../support/secured.rs"]
mod secured;

const VALUE: &str = "planted-vault-value-1";

const TOKEN: &str = "hvs.planted-vault-token";

/// A request as the server received it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    /// Method and path.
    line: String,
    token: Option<String>,
    namespace: Option<String>,
    body: String,
}

/// A server with the requests that it has received.
struct FakeVault {
    address: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

impl FakeVault {
    /// Starts a server whose answers are a function of the request and of the number of requests before it.
    fn start(answer: impl Fn(&Seen, usize) -> (u16, String) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let log = seen.clone();
        thread::spawn(move || {
            for connection in listener.incoming() {
                let Some((request, mut connection)) = received(connection.unwrap()) else { continue };
                let count = {
                    let mut log = log.lock().unwrap();
                    log.push(request.clone());
                    log.len() - 1
                };
                let (status, body) = answer(&request, count);
                let head =
                    format!("HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
                let _ = connection.write_all(head.as_bytes()).and_then(|()| connection.write_all(body.as_bytes()));
            }
        });
        Self { address, seen }
    }

    fn requests(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }
}

fn received(connection: TcpStream) -> Option<(Seen, TcpStream)> {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end() {
            "" => break,
            line => lines.push(line.to_owned()),
        }
    }
    let header = |name: &str| {
        let found =
            lines.iter().filter_map(|line| line.split_once(": ")).find(|(key, _)| key.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.to_owned())
    };
    assert_eq!(header("x-vault-request").as_deref(), Some("true"));
    let length = header("content-length").map_or(0, |length| length.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let line = lines[0].trim_end_matches(" HTTP/1.1").to_owned();
    let body = String::from_utf8(body).unwrap();
    Some((Seen { line, token: header("x-vault-token"), namespace: header("x-vault-namespace"), body }, connection))
}

/// The answer to a read, as `GET /v1/secret/data/PATH` gives it.
fn found(field: &str, value: &str) -> (u16, String) {
    let body = format!(
        r#"{{"request_id":"r","lease_id":"","renewable":false,"lease_duration":0,"data":{{"data":{{"{field}":{value}}},
        "metadata":{{"created_time":"2026-01-01T00:00:00Z","custom_metadata":null,"deletion_time":"","destroyed":false,
        "version":2}}}},"wrap_info":null,"warnings":null,"auth":null}}"#
    );
    (200, body)
}

/// The answer to a read of a version that is no longer there.
fn deleted_version(destroyed: bool) -> (u16, String) {
    let body = format!(
        r#"{{"data":{{"data":null,"metadata":{{"deletion_time":"2026-01-02T00:00:00Z","destroyed":{destroyed},"version":1}}}}}}"#
    );
    (404, body)
}

/// A bench whose settings have this text.
fn bench(config: &str) -> Bench {
    let bench = Bench::new();
    std::fs::write(bench.dir.root().join("config.yaml"), config).unwrap();
    bench
}

fn run(bench: &Bench, id: &str, definition: &str) -> Answer {
    std::fs::write(bench.dir.workspace().join("wf.yaml"), definition).unwrap();
    let mut command = bench.mainspring(&["run", "wf.yaml", "--id", id, "--json"]);
    // Only variables that the settings name are hidden from scripts.
    let config = std::fs::read_to_string(bench.dir.root().join("config.yaml")).unwrap();
    let given = [("PLANTED_TOKEN", TOKEN), ("ROLE_SECRET", "planted-secret-id")];
    command.envs(given.into_iter().filter(|(name, _)| config.contains(name)));
    call(command, b"")
}

fn uses(bench: &Bench, name: &str) -> String {
    let file = bench.outer.path().join("values").join(name).display().to_string();
    format!(
        "steps:\n  - id: use\n    type: bash\n    retry: {{maxAttempts: 1}}\n    env: {{A: {{secret: {name}}}}}\n    \
         command: 'printf %s \"$A\" > {file}; echo \"$A ${{PLANTED_TOKEN:-no}} ${{ROLE_SECRET:-no}}\"'\n"
    )
}

#[track_caller]
fn assert_absent(said: &str) {
    assert!(!said.contains("planted-vault") && !said.contains("planted-secret-id"), "a value is in {said}");
}

#[test]
fn a_value_is_read_once_and_cached_for_seconds() {
    let vault = FakeVault::start(|_, _| found("password", &format!("\"{VALUE}\"")));
    let bench = bench(&format!(
        "secrets: {{DB: {{vault: {{path: app/db, field: password, mount: kv, version: 2}}}}}}\n\
         vault: {{address: 'http://{}', token: {{env: PLANTED_TOKEN}}, namespace: team/a}}\n",
        vault.address
    ));
    let one = uses(&bench, "DB");
    let two = one.trim_start_matches("steps:\n").replace("id: use", "id: again");
    let ran = run(&bench, "e1", &format!("{one}{two}"));
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    assert_eq!(bench.value("DB"), VALUE);
    assert!(ran.stdout.contains("*** no no"), "scripts do not inherit the token: {ran:?}");
    let expected = Seen {
        line: "GET /v1/kv/data/app/db?version=2".into(),
        token: Some(TOKEN.into()),
        namespace: Some("team/a".into()),
        body: String::new(),
    };
    assert_eq!(vault.requests(), [expected], "the second step uses the value that was read");
    assert_absent(&format!("{}{}", ran.stdout, ran.stderr));
    let listed = call(bench.mainspring(&["secret", "list", "--json"]), b"");
    assert!(listed.stdout.contains("Vault, `password` of kv/app/db in version 2"), "{listed:?}");
}

#[test]
fn each_refusal_has_its_code_and_no_value() {
    let vault = FakeVault::start(|request, _| match request.line.rsplit('/').next().unwrap() {
        "forbidden" => (403, r#"{"errors":["permission denied"]}"#.into()),
        "nowhere" => (404, r#"{"errors":[]}"#.into()),
        "deleted" => deleted_version(false),
        "destroyed" => deleted_version(true),
        "sealed" => (503, format!(r#"{{"errors":["Vault is sealed","{VALUE}"]}}"#)),
        "standby" => (307, String::new()),
        "old-engine" => (200, format!(r#"{{"data":{{"f":"{VALUE}"}}}}"#)),
        "other" => found("g", &format!("\"{VALUE}\"")),
        "number" => found("f", "123456789012"),
        "large" => (200, VALUE.repeat(100_000)),
        "text" => (200, VALUE.into()),
        "short" => found("f", "\"abc\""),
        path => panic!("{path}"),
    });
    let cases = [
        ("forbidden", "secret_not_permitted", "lacks `read` of secret/data/forbidden"),
        ("nowhere", "secret_missing", "there is no such secret"),
        ("deleted", "secret_missing", "this version is deleted"),
        ("destroyed", "secret_missing", "this version is destroyed"),
        ("sealed", "secret_unavailable", "is sealed"),
        ("standby", "secret_unavailable", "redirects"),
        ("old-engine", "secret_missing", "KV engine of version 2"),
        ("other", "secret_missing", "no such field"),
        ("number", "secret_missing", "not text"),
        ("large", "secret_unavailable", "too large"),
        ("text", "secret_missing", "KV engine"),
        ("short", "secret_missing", "8 bytes"),
    ];
    let secrets: String =
        cases.iter().map(|(name, ..)| format!("  {name}: {{vault: {{path: {name}, field: f}}}}\n")).collect();
    let bench = bench(&format!(
        "secrets:\n{secrets}vault: {{address: 'http://{}', token: {{env: PLANTED_TOKEN}}}}\n",
        vault.address
    ));
    for (name, code, words) in cases {
        let ran = run(&bench, name, &uses(&bench, name));
        assert!(ran.stdout.contains(code) && ran.stdout.contains(words), "{name}: {ran:?}");
        assert_absent(&format!("{}{}", ran.stdout, ran.stderr));
        assert!(!bench.outer.path().join("values").join(name).exists(), "{name}: nothing runs");
    }
    assert_eq!(vault.requests().len(), cases.len());
}

#[test]
fn a_login_is_used_until_its_token_is_refused() {
    let vault = FakeVault::start(|request, count| match (request.line.as_str(), request.token.as_deref()) {
        ("POST /v1/auth/team/approle/login", None) => {
            assert_eq!(json::value(request.body.as_bytes()).unwrap().get("role_id"), Some(&Value::from("r1")));
            assert!(request.body.contains("planted-secret-id"));
            let auth = format!(r#"{{"client_token":"token-number-{count}","lease_duration":600,"renewable":true}}"#);
            (200, format!(r#"{{"auth":{auth}}}"#))
        }
        ("GET /v1/secret/data/a", Some("token-number-0")) | ("GET /v1/secret/data/b", Some("token-number-3")) => {
            found("f", &format!("\"{VALUE}\""))
        }
        ("GET /v1/secret/data/b", Some("token-number-0")) => (403, r#"{"errors":["permission denied"]}"#.into()),
        other => panic!("{other:?}"),
    });
    let bench = bench(&format!(
        "secrets: {{A: {{vault: {{path: a, field: f}}}}, B: {{vault: {{path: b, field: f}}}}}}\n\
         vault: {{address: 'http://{}', approle: {{roleId: r1, secretId: {{env: ROLE_SECRET}}, mount: team/approle}}}}\n",
        vault.address
    ));
    let two = uses(&bench, "B").trim_start_matches("steps:\n").replace("id: use", "id: again");
    let ran = run(&bench, "e1", &format!("{}{two}", uses(&bench, "A")));
    assert_eq!(ran.exit, Some(0), "{ran:?}");
    assert_eq!((bench.value("A"), bench.value("B")), (VALUE.into(), VALUE.into()));
    assert_absent(&format!("{}{}", ran.stdout, ran.stderr));

    let refused = FakeVault::start(|_, _| (400, r#"{"errors":["invalid role or secret ID"]}"#.into()));
    let bench = self::bench(&format!(
        "secrets: {{A: {{vault: {{path: a, field: f}}}}}}\n\
         vault: {{address: 'http://{}', kubernetes: {{role: r1, token: {{env: ROLE_SECRET}}}}}}\n",
        refused.address
    ));
    let ran = run(&bench, "e2", &uses(&bench, "A"));
    assert!(ran.stdout.contains("secret_not_permitted") && ran.stdout.contains("auth/kubernetes"), "{ran:?}");
    assert!(refused.requests()[0].body.contains(r#""jwt":"planted-secret-id""#));
    assert_absent(&format!("{}{}", ran.stdout, ran.stderr));
}

#[test]
fn tls_needs_a_trusted_certificate_and_doctor_reads_secrets() {
    let vault = FakeVault::start(|request, _| match request.line.as_str() {
        "GET /v1/sys/health?standbyok=true&perfstandbyok=true" => (200, r#"{"initialized":true}"#.into()),
        "GET /v1/secret/data/a" => found("f", &format!("\"{VALUE}\"")),
        _ => (404, r#"{"errors":[]}"#.into()),
    });
    let (address, certificate) = secured::before(&vault.address);
    let settings = |more: &str, authority: &str| {
        format!(
            "secrets: {{A: {{vault: {{path: a, field: f}}}}{more}}}\n\
             vault: {{address: '{address}', token: {{env: PLANTED_TOKEN}}{authority}}}\n"
        )
    };
    let bench = bench(&settings("", ""));
    let ran = run(&bench, "e1", &uses(&bench, "A"));
    assert!(ran.stdout.contains("secret_unavailable") && ran.stdout.contains("TLS"), "{ran:?}");
    assert_eq!(vault.requests(), [], "no token is sent to a server with another certificate");
    let file = bench.dir.root().join("ca.pem");
    std::fs::write(&file, certificate).unwrap();
    let authority = format!(", caCert: {}", file.display());
    let config = bench.dir.root().join("config.yaml");
    std::fs::write(&config, settings("", &authority)).unwrap();
    let ran = run(&bench, "e2", &uses(&bench, "A"));
    assert_eq!((ran.exit, bench.value("A").as_str()), (Some(0), VALUE), "{ran:?}");

    let doctor = || {
        let mut command = bench.mainspring(&["doctor", "--json"]);
        command.env("PLANTED_TOKEN", TOKEN);
        let answer = call(command, b"");
        assert_absent(&format!("{}{}", answer.stdout, answer.stderr));
        let line = answer.stdout.lines().find(|line| line.contains(r#""check":"vault""#)).map(String::from);
        line.unwrap_or_else(|| panic!("{answer:?}"))
    };
    let fine = doctor();
    assert!(fine.contains(r#""state":"ok""#) && fine.contains("1 secret can be read"), "{fine}");
    std::fs::write(&config, settings(", B: {vault: {path: b, field: f}}", &authority)).unwrap();
    let broken = doctor();
    assert!(broken.contains(r#""state":"broken""#) && broken.contains("the secret `B`"), "{broken}");
}

#[test]
fn a_secret_in_vault_needs_a_server_in_the_settings() {
    let bench = bench("secrets: {A: {vault: {path: a, field: f}}}\n");
    let ran = run(&bench, "e1", &uses(&bench, "A"));
    let said = format!("{}{}", ran.stdout, ran.stderr);
    assert!(ran.exit != Some(0) && said.contains("secrets.A.vault: there is no server"), "{said}");
}
