//! `mainspring diff` and `mainspring apply`: a folder of definitions and the workflows of a server.

use std::{fs, os::unix::net::UnixListener};

use mainspring_kernel::{json, value::Value};

use super::{commands::Caller, process::Server};

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
    write(&caller, "new.scenario.yaml", "not a definition");
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
    assert!(applied.contains("in one transaction"), "{applied}");
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
fn a_set_is_saved_against_the_hashes_that_were_compared() {
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
