//! The change of the key that encrypts secrets in the store, while servers run.

use std::{fs, process::Command};

use mainspring_kernel::value::{Map, Value};

use super::{
    client::Client,
    commands::Caller,
    process::{Place, Server, everywhere},
    start::{save, start},
    support::{Answer, call, yaml},
};

/// The organization with the secrets of the tests.
struct Bench<'p> {
    place: &'p Place,
    token: String,
    /// The number of checks so far, which makes requests different.
    checks: u32,
}

impl<'p> Bench<'p> {
    fn new(place: &'p Place, server: &Server) -> Self {
        let owner = server.owner();
        for name in ["A", "B"] {
            set(&owner, name);
        }
        let uses = "- id: use\n  type: bash\n  retry: {maxAttempts: 1}\n  env: {A: {secret: A}, B: {secret: B}}\n  \
                    command: 'test \"$A\" = planted-value-A -a \"$B\" = planted-value-B'\n";
        save(&owner, "mine", yaml(uses));
        let trigger = r#"{"workflowId": "mine", "name": "t", "config": {"type": "webhook", "path": "keys", "secret": "hook-secret",
            "signature": {"scheme": "gitlab"}}}"#;
        owner.send("POST", "/api/triggers", &[], Some(trigger)).expect(201);
        let subscription = r#"{"name": "s", "url": "https://example.com/", "types": ["workflow.*"], "enabled": false}"#;
        owner.send("POST", "/api/event-subscriptions", &[], Some(subscription)).expect(201);
        Self { place, token: server.token.clone().unwrap(), checks: 0 }
    }

    /// Checks that a server reads every value.
    #[track_caller]
    fn check(&mut self, server: &Server) {
        self.checks += 1;
        assert_eq!(self.run(server), "completed", "{}", self.keys(server).text);
        let deliver = |secret: &str| {
            let headers = [("X-Gitlab-Token", secret), ("Content-Type", "application/json")];
            server.nobody().send("POST", "/webhooks/keys", &headers, Some("{}")).status
        };
        assert!([200, 202].contains(&deliver("hook-secret")), "{}", deliver("hook-secret"));
        assert_eq!(deliver("another-secret"), 401);
    }

    fn run(&self, server: &Server) -> String {
        let owner = server.client(&self.token);
        let id = start(&owner, "mine", &format!("r{}", self.checks), Map::new()).expect(202).text_at("executionId");
        let status = owner.get(&format!("/api/executions/{id}/wait")).expect(200).text_at("status");
        match status.as_str() {
            "completed" => status,
            _ => owner.get(&format!("/api/executions/{id}/steps")).expect(200).text,
        }
    }

    fn keys(&self, server: &Server) -> super::client::Reply {
        server.client(&self.token).get("/api/encryption-keys").expect(200)
    }

    /// The ids of the keys with the number of values under each; the primary one is marked.
    fn uses(&self, server: &Server) -> Vec<(String, u64, bool)> {
        let keys = self.keys(server).json();
        let keys = keys.get("keys").and_then(Value::as_list).unwrap().to_vec();
        let one = |key: &Value| {
            let id = key.get("id").and_then(Value::as_text).unwrap().to_owned();
            (id, key.get("values").and_then(Value::as_u64).unwrap(), key.get("primary") == Some(&true.into()))
        };
        keys.iter().map(one).collect()
    }

    /// Encrypts one row again. True if none is left.
    fn step(&self, server: &Server) -> (u64, bool) {
        let body = Value::map([("rows", Value::from(1u64))]);
        let step = server.client(&self.token).post("/api/encryption-keys/rotate", &body).expect(200).json();
        (step.get("rows").and_then(Value::as_u64).unwrap(), step.get("done") == Some(&true.into()))
    }

    /// A command with the key file of the servers.
    fn command(&self, server: &Server, arguments: &[&str]) -> Answer {
        let mut command: Command = Caller::new(&server.address, &self.token).command(arguments);
        command.env("MAINSPRING_KEY_FILE", self.place.key_file()).current_dir(self.place.key_file().parent().unwrap());
        call(command, b"")
    }
}

fn set(owner: &Client, name: &str) {
    let body = Value::map([("value", Value::from(format!("planted-value-{name}"))), ("workflows", Value::Null)]);
    owner.put(&format!("/api/secrets/{name}"), &body).expect(201);
}

#[test]
fn values_stay_readable_during_a_key_rotation() {
    everywhere(|place| {
        let mut server = place.start_uncontained();
        let mut bench = Bench::new(place, &server);
        let other = place.another_uncontained("other");
        let uses = bench.uses(&server);
        let first = uses[0].0.clone();
        assert_eq!(uses, [(first.clone(), 4, true)]);
        assert_eq!(bench.step(&server), (0, true), "there is no other key");
        let added = bench.command(&server, &["key", "add", "--json"]);
        assert_eq!(added.exit, Some(0), "{added:?}");
        bench.check(&server);
        let (mut rows, mut steps) = (0, 0);
        loop {
            let (changed, is_done) = bench.step(&server);
            rows += changed;
            steps += 1;
            bench.check(&server);
            other.iter().for_each(|other| bench.check(other));
            if is_done {
                break;
            }
            let counts: Vec<u64> = bench.uses(&server).iter().map(|one| one.1).collect();
            assert_eq!(counts.iter().sum::<u64>(), 4, "{counts:?}");
            if steps == 2 {
                server.kill();
                server = place.start_uncontained();
                bench.check(&server);
            }
        }
        assert_eq!((rows, steps), (4, 4));
        let uses = bench.uses(&server);
        let second = uses[1].0.clone();
        assert_eq!(uses, [(first.clone(), 0, false), (second.clone(), 4, true)]);
        // A node that began before the key was added encrypts with it, since the store says so.
        set(&other.as_ref().unwrap_or(&server).client(&bench.token), "C");
        assert_eq!(bench.uses(&server)[1].1, 5);
        for (id, word) in [(&first, "never removed"), (&second, "encrypts new values")] {
            let refused = bench.command(&server, &["key", "remove", id]);
            assert!(refused.exit != Some(0) && refused.stderr.contains(word), "{word}: {refused:?}");
        }
        assert_eq!(bench.command(&server, &["key", "add"]).exit, Some(0));
        let rotated = bench.command(&server, &["key", "rotate", "--json"]);
        assert!(rotated.stdout.contains(r#""rows":5"#) && rotated.stdout.contains(r#""unreadable":0"#), "{rotated:?}");
        bench.check(&server);
        let refused = bench.command(&server, &["key", "remove", &second]);
        assert!(refused.stderr.contains("try again in"), "values of requests in progress: {refused:?}");
        let audit = server.client(&bench.token).get("/api/audit?limit=200").expect(200).text;
        assert!(audit.contains("installation.rotate_key") && audit.contains(&second), "{audit}");
        let listed = bench.command(&server, &["key", "list"]).stdout;
        assert!(listed.contains("encrypts new values") && listed.contains("5 values"), "{listed}");
    });
}

#[test]
fn a_missing_primary_key_is_reported_until_it_is_added() {
    everywhere(|place| {
        if place.command(&[]).is_none() {
            return;
        }
        let mut server = place.start_uncontained();
        let mut bench = Bench::new(place, &server);
        let before = fs::read_to_string(place.key_file()).unwrap();
        bench.command(&server, &["key", "add"]);
        assert_eq!(bench.command(&server, &["key", "rotate"]).exit, Some(0));
        bench.check(&server);
        let after = fs::read_to_string(place.key_file()).unwrap();
        assert!(after.starts_with(&before) && after.contains("encryption "), "the first key stays");
        let id = bench.uses(&server)[1].0.clone();
        fs::write(place.key_file(), &before).unwrap();
        server.kill();
        server = place.start_uncontained();
        bench.checks += 1;
        let failed = bench.run(&server);
        assert!(failed.contains("secret_missing") && failed.contains(&id), "{failed}");
        let owner = server.client(&bench.token);
        let body = r#"{"value": "planted-value-D", "workflows": null}"#;
        let refused = owner.send("PUT", "/api/secrets/D", &[], Some(body)).expect(503);
        assert!(refused.text.contains(&id), "nothing is encrypted with the former key: {refused:?}");
        owner.send("POST", "/api/encryption-keys/rotate", &[], Some("{}")).expect(409);
        assert!(bench.command(&server, &["key", "list"]).stdout.contains("not in the key file"));
        fs::write(place.key_file(), &after).unwrap();
        bench.check(&server);
    });
}

#[test]
fn only_operators_change_keys() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let owner = super::process::Organization::new(&server, "acme").owner;
    owner.get("/api/encryption-keys").expect(403);
    owner.send("POST", "/api/encryption-keys/rotate", &[], Some("{}")).expect(403);
    for rows in ["0", "1001"] {
        let body = format!(r#"{{"rows": {rows}}}"#);
        server.owner().send("POST", "/api/encryption-keys/rotate", &[], Some(&body)).expect(400);
    }
}
