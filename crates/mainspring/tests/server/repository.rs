//! `mainspring diff` and `mainspring apply`: a folder of definitions and the workflows of a server.

use std::{fs, os::unix::net::UnixListener};

use mainspring_kernel::{json, value::Value};

use super::{
    client::Client,
    commands::Caller,
    process::{Organization, Server},
};

fn definition(ms: u64) -> String {
    format!("constraints: {{allowSelfModification: true}}\nsteps:\n  - {{id: a, type: sleep, durationMs: {ms}}}\n")
}

fn write(caller: &Caller, name: &str, text: &str) {
    let folder = caller.folder().join("workflows/nested");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), text).unwrap();
}

fn hash(server: &Server, slug: &str) -> Option<String> {
    let reply = server.owner().get(&format!("/api/workflows/{slug}"));
    (reply.status == 200).then(|| reply.text_at("workflowHash"))
}

#[test]
fn a_folder_is_compared_saved_proposed_and_pruned() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let caller = Caller::owner(&server);
    caller.save("old", &definition(1));
    caller.save("same", &definition(2));
    caller.save("changed", &definition(3));
    write(&caller, "same.yaml", &format!("# another spelling\n{}", definition(2)));
    write(&caller, "changed.yaml", &definition(4));
    write(&caller, "new.yaml", &definition(5));
    write(&caller, "orphan.scenario.yaml", "not a definition");
    let _socket = UnixListener::bind(caller.folder().join("workflows/nested/socket.yaml")).unwrap();
    let diff = caller.call(&["diff", "workflows"]);
    assert_eq!(diff.exit, Some(1), "{diff:?}");
    for part in ["+ new", "~ changed  risk: ", "- old", "1 new, 1 changed, 1 not in the folder"] {
        assert!(diff.stdout.contains(part), "{part}: {diff:?}");
    }
    let before = ["old", "same", "changed", "new"].map(|slug| hash(&server, slug));
    caller.fine(&["apply", "workflows", "--dry-run", "--prune"]);
    // A changed workflow becomes a proposal, and a new one is left out.
    let proposed = caller.fine(&["apply", "workflows", "--propose", "--json"]);
    let proposals = json::value(proposed.trim().as_bytes()).unwrap();
    let proposals = proposals.get("proposals").and_then(Value::as_list).unwrap().to_vec();
    assert_eq!(proposals.iter().map(|one| one.get("slug").cloned()).collect::<Vec<_>>(), [Some("changed".into())]);
    assert_eq!(["old", "same", "changed", "new"].map(|slug| hash(&server, slug)), before, "nothing has changed");
    let applied = caller.fine(&["apply", "workflows"]);
    assert!(applied.contains("saved 3 workflows, deleted 0, in one transaction"), "{applied}");
    assert_eq!((hash(&server, "old"), hash(&server, "same")), (before[0].clone(), before[1].clone()));
    assert!(hash(&server, "changed") != before[2] && hash(&server, "new").is_some());
    assert_eq!(caller.call(&["apply", "workflows", "--prune"]).exit, Some(0));
    assert_eq!(hash(&server, "old"), None);
    assert_eq!(caller.call(&["diff", "workflows"]).exit, Some(0));
    // One invalid file, and nothing is saved.
    write(&caller, "new.yaml", &definition(6));
    write(&caller, "broken.yaml", "steps: []\n");
    let kept = hash(&server, "new");
    caller.refused(&["apply", "workflows"], 10, &["broken.yaml"]);
    assert_eq!(hash(&server, "new"), kept);
    caller.refused(&["diff", "nowhere"], 10, &["nowhere"]);
}

#[test]
fn a_set_is_saved_only_against_the_compared_hashes() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let (owner, caller) = (server.owner(), Caller::owner(&server));
    caller.save("one", &definition(1));
    let seen = hash(&server, "one").unwrap();
    caller.save("two", &definition(2));
    let step = [("id", Value::from("a")), ("type", "sleep".into()), ("durationMs", 9u64.into())];
    let data = Value::map([("steps", Value::List(vec![Value::map(step)]))]);
    let whole = Value::map([("slug", Value::from("one")), ("data", data)]);
    let body = |keeps: bool, expected: Value| {
        Value::map([
            ("workflows", Value::List(vec![whole.clone()])),
            ("keepOthers", keeps.into()),
            ("expected", expected),
        ])
    };
    let known = |hash: &str| Value::map([("one", Value::from(hash))]);
    // Another hash, a workflow that must not exist, and a deletion of a workflow that was not compared.
    let other = format!("sha256:{}", "0".repeat(64));
    for refused in
        [body(true, known(&other)), body(true, Value::map([("one", Value::Null)])), body(false, known(&seen))]
    {
        owner.post("/api/workflows/sync-all", &refused).expect(409);
        assert_eq!(hash(&server, "one"), Some(seen.clone()));
        assert!(hash(&server, "two").is_some());
    }
    owner.post("/api/workflows/sync-all", &body(true, known(&seen))).expect(200);
    assert!(hash(&server, "one") != Some(seen) && hash(&server, "two").is_some());
}

/// The files of a folder with every kind.
const FOLDER: [(&str, &str); 6] = [
    ("release.yaml", "steps: [{id: greet, type: bash, command: 'echo hello', onInterrupted: retry}]\n"),
    (
        "release.scenario.yaml",
        "name: greets\ndefinition: release.yaml\neffects: {greet: {return: {stdout: hello}}}\n\
         expect: {status: completed}\n",
    ),
    (
        "triggers/nightly.yaml",
        "workflow: release\nconfig: {type: schedule, cron: '0 3 * * *', timezone: Europe/Berlin}\n",
    ),
    (
        "triggers/hook.yaml",
        "workflow: release\nvariableMapping: {tag: $.release.tag_name}\nconfig:\n  type: webhook\n  path: hooks/release\n  \
         secret: {secret: HOOK}\n  headers: {X-Key: {secret: HOOK_HEADER}}\n  signature: {scheme: github}\n",
    ),
    (
        "organization.yaml",
        "features: {proposal_four_eyes: true}\nlimits: {perUser: 7, perWorkflow: 3}\nverdicts: {destructive: deny}\n",
    ),
    ("nested/other.yaml", "steps: [{id: a, type: sleep, durationMs: 1}]\n"),
];

fn put(caller: &Caller, name: &str, text: &str) {
    let path = caller.folder().join("flows").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn remove(caller: &Caller, name: &str) {
    fs::remove_file(caller.folder().join("flows").join(name)).unwrap();
}

/// A command line whose settings have the secrets of the folder.
fn caller_with_secrets(server: &Server, token: &str) -> Caller {
    let caller = Caller::new(&server.address, token);
    let config = caller.folder().join(".config/mainspring");
    fs::create_dir_all(&config).unwrap();
    fs::write(caller.folder().join("hook"), "planted-hook-secret").unwrap();
    fs::write(caller.folder().join("header"), "planted-header-value").unwrap();
    fs::write(config.join("config.yaml"), "secrets: {HOOK: {file: hook}, HOOK_HEADER: {file: header}}\n").unwrap();
    caller
}

fn trigger(client: &Client, name: &str) -> Option<Value> {
    let listed = client.get("/api/triggers").expect(200).json();
    let triggers = listed.get("triggers").and_then(Value::as_list).unwrap().to_vec();
    triggers.into_iter().find(|trigger| trigger.get("name") == Some(&name.into()))
}

fn text(value: &Value, key: &str) -> String {
    value.get(key).and_then(Value::as_text).unwrap().to_owned()
}

#[test]
fn triggers_scenarios_and_the_organization_are_part_of_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let (owner, caller) = (server.owner(), caller_with_secrets(&server, server.token.as_deref().unwrap()));
    FOLDER.iter().for_each(|(name, text)| put(&caller, name, text));
    let diff = caller.call(&["diff", "flows"]);
    assert_eq!(diff.exit, Some(1), "{diff:?}");
    for part in [
        "+ release",
        "+ scenarios release",
        "+ trigger nightly",
        "+ trigger hook",
        "config.cron: none → \"0 3 * * *\"",
        "~ organization",
        "limits.perUser: 5 → 7",
        "features.proposal_four_eyes: false → true",
    ] {
        assert!(diff.stdout.contains(part), "{part}: {}", diff.stdout);
    }
    // Everything at once: a part that is refused leaves nothing behind.
    put(&caller, "triggers/bad.yaml", "workflow: nowhere\nconfig: {type: manual}\n");
    caller.refused(&["apply", "flows"], 10, &["bad", "there is no workflow `nowhere`"]);
    assert!(hash(&server, "release").is_none() && trigger(&owner, "nightly").is_none());
    remove(&caller, "triggers/bad.yaml");
    let applied = caller.fine(&["apply", "flows"]);
    assert!(applied.contains("made 4 other changes, in one transaction"), "{applied}");
    assert_eq!(caller.call(&["diff", "flows"]).stdout.trim(), "0 new, 0 changed, 0 not in the folder");
    let hook = trigger(&owner, "hook").unwrap();
    assert_eq!(hook.get("config").and_then(|config| config.get("secretCount")), Some(&1u64.into()));
    assert!(owner.get("/api/workflows/release/scenarios").expect(200).text.contains("greets"));
    assert!(owner.get("/api/organization").expect(200).text.contains("\"perUser\":7"));
    assert!(owner.get("/api/audit?limit=50").expect(200).text.contains("trigger.create"));

    // Other spellings of the same content are no change.
    put(&caller, "release.scenario.yaml", &format!("# a comment\n{}", FOLDER[1].1));
    put(&caller, "triggers/nightly.yaml", &format!("{}enabled: true\nvariableMapping: {{}}\n", FOLDER[2].1));
    assert_eq!(caller.call(&["diff", "flows"]).exit, Some(0));

    // Changes are shown by field, and secrets by their number.
    put(&caller, "triggers/nightly.yaml", &FOLDER[2].1.replace("0 3", "0 4"));
    put(&caller, "triggers/hook.yaml", "workflow: release\nconfig: {type: webhook, path: hooks/release}\n");
    put(&caller, "organization.yaml", "limits: {perWorkflow: null}\nverdicts: {payment: ask}\n");
    let json = caller.call(&["diff", "flows", "--json"]);
    let paths: Vec<&str> = [
        "config.cron",
        "config.secretCount",
        "config.headerNames",
        "limits.perWorkflow",
        "verdicts.destructive",
        "verdicts.payment",
    ]
    .to_vec();
    assert!(paths.iter().all(|path| json.stdout.contains(&format!("\"{path}\""))), "{json:?}");
    let proposed = caller.call(&["apply", "flows", "--propose"]);
    assert!(
        proposed.exit == Some(0) && proposed.stderr.contains("a proposal changes definitions only"),
        "{proposed:?}"
    );
    caller.fine(&["apply", "flows"]);
    let hook = trigger(&owner, "hook").unwrap();
    assert_eq!(hook.get("config").and_then(|config| config.get("secretCount")), Some(&0u64.into()));
    assert_eq!(hook.get("config").and_then(|config| config.get("headerNames")), Some(&Vec::<Value>::new().into()));
    assert_eq!(caller.call(&["diff", "flows"]).exit, Some(0));
    assert!(owner.get("/api/organization").expect(200).text.contains("\"proposal_four_eyes\":true"), "it is kept");
    let policy = owner.get("/api/policy").expect(200).json();
    assert_eq!(policy.get("verdicts"), Some(&Value::map([("payment", Value::from("ask"))])), "replaced as a whole");
    let log = owner.get("/api/audit?limit=50").expect(200).text;
    assert_eq!(log.matches("policy.set").count(), 2, "{log}");
}

#[test]
fn apply_deletes_only_with_prune_and_only_kinds_of_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let (owner, caller) = (server.owner(), caller_with_secrets(&server, server.token.as_deref().unwrap()));
    FOLDER.iter().for_each(|(name, text)| put(&caller, name, text));
    caller.fine(&["apply", "flows"]);
    // Nothing is deleted without --prune, and a kind that the folder does not have not even then.
    remove(&caller, "triggers/hook.yaml");
    remove(&caller, "release.scenario.yaml");
    caller.fine(&["apply", "flows"]);
    assert!(trigger(&owner, "hook").is_some());
    caller.fine(&["apply", "flows", "--prune"]);
    assert!(trigger(&owner, "hook").is_none() && trigger(&owner, "nightly").is_some());
    owner.get("/api/workflows/release/scenarios").expect(200);
    fs::remove_dir_all(caller.folder().join("flows/triggers")).unwrap();
    caller.fine(&["apply", "flows", "--prune"]);
    assert!(trigger(&owner, "nightly").is_some());
}

#[test]
fn a_delivery_is_verified_with_the_secret_that_a_file_names() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let (owner, caller) = (server.owner(), caller_with_secrets(&server, server.token.as_deref().unwrap()));
    put(&caller, "release.yaml", FOLDER[5].1);
    let hook = "workflow: release\nconfig:\n  type: webhook\n  path: hooks/r\n  secret: {secret: HOOK}\n  \
                signature: {scheme: gitlab}\n";
    put(&caller, "triggers/hook.yaml", hook);
    caller.fine(&["apply", "flows"]);
    let deliver = |secret: &str| {
        let headers = [("X-Gitlab-Token", secret), ("Content-Type", "application/json")];
        server.nobody().send("POST", "/webhooks/hooks/r", &headers, Some("{}")).status
    };
    assert_eq!((deliver("planted-hook-secret"), deliver("another-secret")), (202, 401));
    // A new value is no difference, and is sent again on request.
    fs::write(caller.folder().join("hook"), "planted-other-secret").unwrap();
    assert_eq!(caller.call(&["diff", "flows"]).exit, Some(0));
    caller.fine(&["apply", "flows", "--resend-secrets"]);
    // The same content has started an execution before.
    assert_eq!((deliver("planted-hook-secret"), deliver("planted-other-secret")), (401, 200));
    put(&caller, "triggers/hook.yaml", &hook.replace("{secret: HOOK}", "planted-hook-secret"));
    caller.refused(&["diff", "flows"], 10, &["config.secret: a folder has no values of secrets"]);
    put(&caller, "triggers/hook.yaml", &hook.replace("HOOK}", "NOWHERE}").replace("hooks/r", "hooks/s"));
    caller.refused(&["apply", "flows"], 10, &["the secret `NOWHERE` cannot be used"]);
    let audit = owner.get("/api/audit?limit=200").expect(200).text;
    assert!(!audit.contains("planted"), "{audit}");
}

/// Sends a request of a folder, of which only the given fields count.
fn sync(client: &Client, fields: Vec<(&str, Value)>) -> super::client::Reply {
    let always = [("workflows", Vec::<Value>::new().into()), ("keepOthers", Value::Bool(true))];
    client.post("/api/workflows/sync-all", &Value::map(always.into_iter().chain(fields)))
}

#[test]
fn each_part_needs_the_compared_state_and_its_permission() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let acme = Organization::new(&server, "acme");
    let caller = caller_with_secrets(&server, acme.owner.token());
    FOLDER.iter().for_each(|(name, text)| put(&caller, name, text));
    caller.fine(&["apply", "flows"]);
    let manual = || Value::map([("type", Value::from("manual"))]);
    let nightly = trigger(&acme.owner, "nightly").unwrap();
    let replace = |id: &str, compared: &str| {
        let part = [("id", id.into()), ("compared", compared.into()), ("name", "nightly".into()), ("config", manual())];
        vec![("triggers", vec![Value::map(part)].into())]
    };
    let (id, seen) = (text(&nightly, "id"), text(&nightly, "updatedAt"));
    sync(&acme.owner, replace(&id, "2026-01-01T00:00:00Z")).expect(409);
    sync(&acme.owner, replace("trg-nowhere", &seen)).expect(409);
    // A change by another way after the comparison.
    acme.owner.send("PATCH", &format!("/api/triggers/{id}"), &[], Some(r#"{"enabled": false}"#)).expect(200);
    sync(&acme.owner, replace(&id, &seen)).expect(409);
    let create = |name: &str| {
        let part = [("workflowId", Value::from("release")), ("name", name.into()), ("config", manual())];
        vec![("triggers", vec![Value::map(part)].into())]
    };
    sync(&acme.owner, create("nightly")).expect(409);
    sync(&acme.owner, create("fresh")).expect(200);
    let scenarios = |compared: Value| {
        let part = Value::map([("files", Value::Null), ("compared", compared)]);
        vec![("scenarios", Value::map([("release", part)]))]
    };
    sync(&acme.owner, scenarios(Value::Null)).expect(409);
    let hash = acme.owner.get("/api/workflows/release/scenarios").expect(200).text_at("hash");
    sync(&acme.owner, scenarios(hash.as_str().into())).expect(200);
    acme.owner.get("/api/workflows/release/scenarios").expect(404);
    let settings = acme.owner.get("/api/organization").expect(200).json();
    let compared = |limit: u64| {
        let mut limits = settings.get("limits").and_then(Value::as_map).unwrap().clone();
        limits.insert("perUser".into(), limit.into());
        Value::map([("features", settings.get("features").unwrap().clone()), ("limits", Value::Map(limits))])
    };
    let policy = |seen: u64| {
        let limits = Value::map([("perUser", Value::from(9u64))]);
        vec![("organization", Value::map([("limits", limits), ("compared", compared(seen))]))]
    };
    sync(&acme.owner, policy(6)).expect(409);
    let member = acme.member("bob", "member");
    let refused = sync(&member, policy(7)).expect(403);
    assert!(refused.text.contains("organization:write"), "{refused:?}");
    sync(&acme.owner, policy(7)).expect(200);
    assert!(acme.owner.get("/api/organization").text.contains("\"perUser\":9"));
    // Another member's trigger and scenarios.
    let present = text(&trigger(&acme.owner, "nightly").unwrap(), "updatedAt");
    sync(&member, replace(&id, &present)).expect(403);
    let missing = [("workflowId", Value::from("release")), ("name", "theirs".into()), ("config", manual())];
    let refused = sync(&member, vec![("triggers", vec![Value::map(missing)].into())]).expect(400);
    assert!(refused.text.contains("there is no workflow"), "only own slugs are resolved: {refused:?}");
}

#[test]
fn mistakes_of_a_folder_name_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let caller = caller_with_secrets(&server, server.token.as_deref().unwrap());
    for (name, text, word) in [
        ("triggers/a.yaml", "steps: []\n", "`steps` is not known"),
        ("triggers/a.yaml", "workflow: w\nconfig: {type: schedule, cron: '61 * * * *'}\n", "config.cron"),
        ("triggers/a.yaml", "workflow: w\nconfig: {type: schedule, cron: '@daily', zone: UTC}\n", "zone"),
        ("triggers/a.yaml", "workflow: w\nenabled: yes please\nconfig: {type: manual}\n", "enabled"),
        ("organization.yaml", "budgets: []\n", "mainspring budgets set"),
        ("organization.yaml", "verdicts: {destructive: maybe}\n", "verdicts.destructive"),
        ("organization.yaml", "verdict: {destructive: deny}\n", "features, limits, verdicts"),
    ] {
        put(&caller, name, text);
        caller.refused(&["diff", "flows"], 10, &[name, word]);
        remove(&caller, name);
    }
}
