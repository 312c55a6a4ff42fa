//! Stores that the release before the last change of the format has written, with executions in every state: this
//! release upgrades them and continues.

use std::{
    fs,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use mainspring_kernel::value::Value;
use mainspring_store::postgres::server as postgres;
use rusqlite::Connection;

use super::{
    client::Client,
    limits::approve,
    process::Server,
    support::{MAINSPRING, call},
};

/// A store as SQL text, with the key and the owner's token of its installation.
struct Written {
    sql: &'static str,
    key: &'static str,
    token: &'static str,
}

const SQLITE: Written = Written {
    sql: include_str!("../../../store/tests/formats/sqlite_8.sql"),
    key: "2e8e80c46290d70ddd492dc67a0e175239d81267bc75c6884a4edca24397e998",
    token: "msp_346a062cf5311cc2d6_c5ae1bb908f6ca1bb92603b6c723e6720449efcedb47142f0bee970afe7db47b",
};

const POSTGRES: Written = Written {
    sql: include_str!("../../../store/tests/formats/postgres_9.sql"),
    key: "d4b738e7ea4dae2638b2928abc5445011b29ba69a7dba28f1127ccda3efafaa2",
    token: "msp_e19b48cbb266c74958_de4f7ecfb5a0dc59430ac79fce4f3775d4b744aee1ef6e73f53f44edd3eecf99",
};

fn write_private(path: &Path, text: &str) {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path.parent().unwrap()).unwrap();
    let mut options = fs::OpenOptions::new();
    std::io::Write::write_all(
        &mut options.write(true).create_new(true).mode(0o600).open(path).unwrap(),
        text.as_bytes(),
    )
    .unwrap();
}

/// Returns an execution of a workflow by its place in the list, from the newest.
fn find(client: &Client, workflow: &str, place: usize) -> String {
    let listed = client.get("/api/executions?limit=100").expect(200).json();
    let Some(Value::List(rows)) = listed.get("executions") else { panic!("{listed:?}") };
    let text = |row: &Value, key: &str| row.get(key).and_then(Value::as_text).unwrap_or_default().to_owned();
    let mut of_workflow = rows.iter().filter(|row| text(row, "workflowName") == workflow);
    text(of_workflow.nth(place).unwrap_or_else(|| panic!("{workflow} {place}: {listed:?}")), "id")
}

/// Waits until an execution waits for nothing but people, and returns its status.
fn settled(client: &Client, id: &str) -> String {
    let is_settled = |status: &String| status != "running" && status != "pending";
    let mut statuses =
        std::iter::repeat_with(|| client.get(&format!("/api/executions/{id}/wait")).expect(200).text_at("status"));
    statuses.find(is_settled).unwrap()
}

/// `was_approved` if an approval waits in the inbox.
fn continue_all(server: &Server, token: &str, was_approved: bool) {
    let client = server.client(token);
    let of = |workflow: &str, place: usize| find(&client, workflow, place);
    let done = of("done", 0);
    let output = client.get(&format!("/api/executions/{done}/steps")).expect(200).json();
    assert!(format!("{output:?}").contains("a value: kept"), "{output:?}");
    // The approvals were opened when the store was written, and have expired since.
    let expired = of("ask", 1);
    assert_eq!(settled(&client, &expired), "cancelled");
    assert_eq!(client.get(&format!("/api/executions/{expired}")).expect(200).text_at("errorCode"), "approval_timeout");
    let queued = of("ask", 0);
    assert_eq!(settled(&client, &queued), "waiting_approval", "the limit of the workflow admits the next one");
    approve(&client, &queued);
    assert_eq!(settled(&client, &queued), "completed");
    let picked = settled(&client, &of("pick", 0));
    // A decision in the inbox and the end of the time are both due, in either order.
    assert!(picked == "cancelled" || (was_approved && picked == "completed"), "{picked}");
    assert_eq!(settled(&client, &of("nap", 0)), "completed", "its timer was due");
    assert_eq!(settled(&client, &of("pay", 0)), "waiting_approval", "it was interrupted, and asks");
}

fn verify(folder: &Path, store: Option<&str>) {
    let mut command = std::process::Command::new(MAINSPRING);
    command.args(["verify", "--all", "--json"]).env_clear().env("HOME", folder);
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    match store {
        Some(address) => command.args(["--store", address]),
        None => command.arg("--dir").arg(folder.join("data")),
    };
    let verified = call(command, b"");
    assert_eq!(verified.exit, Some(0), "{verified:?}");
}

/// Runs `mainspring upgrade` on a store whose resources have lost their seals, whose marks are gone, and whose format is the
/// older one again: the file beside the key proves that it was upgraded.
fn refuse_to_upgrade_again(folder: &Path, store: Option<&str>) {
    let upgrade = |more: &[&str]| {
        let mut command = std::process::Command::new(MAINSPRING);
        command.args(["upgrade", "--json"]).args(more).env_clear().env("HOME", folder);
        command.envs(std::env::var_os("PATH").map(|path| ("PATH", path))).arg("--dir").arg(folder.join("data"));
        command.args(store.iter().flat_map(|address| ["--store", address]));
        call(command, b"")
    };
    let refused = upgrade(&[]);
    assert!(refused.stdout.contains("unsealed_resources"), "{refused:?}");
    let accepted = upgrade(&["--accept-unsealed"]);
    assert!(accepted.exit == Some(0) && !accepted.stdout.contains(r#""resourcesSealed":0"#), "{accepted:?}");
}

#[test]
fn an_embedded_store_of_the_format_before_is_upgraded_and_continued() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data/journal.db");
    write_private(&path, "");
    write_private(&folder.path().join(".config/mainspring/key"), &format!("{}\n", SQLITE.key));
    let store = Connection::open(&path).unwrap();
    store.execute_batch(SQLITE.sql).unwrap();
    drop(store);
    let mut server = Server::start(folder.path());
    continue_all(&server, SQLITE.token, false);
    assert_eq!(server.stop(), Some(0));
    verify(folder.path(), None);
    let store = Connection::open(&path).unwrap();
    let older = "UPDATE resources SET body = substr(body, 34); DELETE FROM metadata WHERE name = 'resources-sealed';
        PRAGMA user_version = 12";
    store.execute_batch(older).unwrap();
    drop(store);
    refuse_to_upgrade_again(folder.path(), None);
}

#[test]
fn a_shared_store_of_the_format_before_is_upgraded_and_continued() {
    let database = postgres::Server::start(postgres::Options { fsync: false, ..postgres::Options::default() }).unwrap();
    let (scratch, folder) = (database.scratch(), tempfile::tempdir().unwrap());
    let beside = database.beside().unwrap();
    beside.execute(&POSTGRES.sql.replace("{schema}", scratch.schema())).unwrap();
    write_private(&folder.path().join(".config/mainspring/key"), &format!("{}\n", POSTGRES.key));
    let address = scratch.address();
    let mut server = Server::start_with(folder.path(), &["--store", &address, "--lease-seconds", "2"]);
    continue_all(&server, POSTGRES.token, true);
    assert_eq!(server.stop(), Some(0));
    verify(folder.path(), Some(&address));
    let older = "SET search_path = {schema}; UPDATE resources SET body = substr(body, 34);
        DELETE FROM metadata WHERE name = 'resources-sealed'; UPDATE mainspring_format SET format = 13";
    beside.execute(&older.replace("{schema}", scratch.schema())).unwrap();
    refuse_to_upgrade_again(folder.path(), Some(&address));
}
