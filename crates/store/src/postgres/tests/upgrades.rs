//! Upgrades: processes of an older release that have the store open, and processes that may not upgrade.

use super::{make_older, open, partitioning};
use crate::prelude::*;
use crate::{
    Node, StoreError,
    contract_tests::postgres::server,
    postgres::{
        Options, PostgresStore,
        migrations::{FORMAT, FORMAT_WITH_SEALS},
        server::Scratch,
    },
};

/// The statements of format 6 for a heartbeat and a message.
const OLD_HEARTBEAT: &str = "INSERT INTO nodes (name, place, release, decide_version, alive_until) \
                             VALUES ('old', 'host:1', '0.1.0', 4, 9000000000000000)";
const OLD_POST: &str =
    "INSERT INTO inbox (execution, id_key, id, partition, body, posted_at) VALUES ('x', 'y', 'z', 0, 'b', 0)";

/// Makes a store of an older format.
fn older(format: u32) -> Scratch<'static> {
    let scratch = server().scratch();
    let beside = scratch.beside().unwrap();
    make_older(&beside, scratch.schema(), format);
    beside.execute(&format!("INSERT INTO {} VALUES (1, 1, 0)", partitioning(format))).unwrap();
    scratch
}

fn refusal(scratch: &Scratch<'_>, upgrades: bool) -> String {
    let options = Options { upgrades, ..Options::default() };
    match PostgresStore::open_with(&scratch.address(), options) {
        Ok(_) => panic!("it is opened"),
        Err(error) => error.to_string(),
    }
}

fn format(scratch: &Scratch<'_>) -> String {
    scratch.beside().unwrap().ask("SELECT format FROM mainspring_format").unwrap()
}

#[test]
fn an_older_format_is_upgraded_only_with_permission() {
    let scratch = older(FORMAT_WITH_SEALS - 1);
    let refused = refusal(&scratch, false);
    assert!(refused.contains("has format 4") && refused.contains("`mainspring upgrade`"), "{refused}");
    assert_eq!(format(&scratch), "4");
    assert!(open(&scratch.address()).is_of_unsealed_format());
    let options = Options { upgrades: false, ..Options::default() };
    let again = PostgresStore::open_with(&scratch.address(), options).unwrap();
    assert!(!again.is_of_unsealed_format(), "another process has upgraded it");
    // A new store needs no permission to upgrade.
    let new = server().scratch();
    assert_eq!(PostgresStore::open_with(&new.address(), options).unwrap().partitions(), Ok(64));
}

#[test]
fn live_nodes_of_an_older_release_prevent_an_upgrade() {
    for before in [FORMAT_WITH_SEALS - 1, 7, FORMAT - 1] {
        let scratch = older(before);
        let beside = scratch.beside().unwrap();
        if before >= 8 {
            beside.execute("ALTER TABLE nodes ALTER COLUMN format SET DEFAULT 8").unwrap();
        }
        let heartbeat = if before < 10 { OLD_HEARTBEAT.into() } else { OLD_HEARTBEAT.replace("place", "address") };
        beside.execute(&heartbeat).unwrap();
        let refused = refusal(&scratch, true);
        assert!(refused.contains("old at host:1 of release 0.1.0") && refused.contains("stop all"), "{refused}");
        assert_eq!(format(&scratch), before.to_string());
        beside.execute("UPDATE nodes SET alive_until = 1").unwrap();
        open(&scratch.address());
        assert_eq!(format(&scratch), FORMAT.to_string());
    }
}

/// Its connections are open, and its writes are rejected.
#[test]
fn writes_of_older_releases_fail_after_an_upgrade() {
    let scratch = older(7);
    let beside = scratch.beside().unwrap();
    beside.execute(OLD_POST).unwrap();
    open(&scratch.address());
    for statement in [OLD_HEARTBEAT, OLD_POST] {
        let refused = beside.execute(statement).unwrap_err().to_string();
        assert!(refused.contains("does not exist"), "{refused}");
    }
    assert_eq!(beside.ask("SELECT count(*) FROM inbox").unwrap(), "1", "what it posted before is there");
}

#[test]
fn a_heartbeat_detects_an_upgraded_store() {
    let scratch = server().scratch();
    let store = open(&scratch.address());
    let node =
        Node { name: "n".into(), address: "".into(), release: "".into(), decide_version: 1, accepts_partitions: true };
    assert!(store.heartbeat(&node, 1_000).unwrap().is_some());
    scratch.beside().unwrap().execute("UPDATE mainspring_format SET format = 99").unwrap();
    assert_eq!(store.heartbeat(&node, 1_000), Err(StoreError::Newer { found: 99, readable: FORMAT }));
}

/// Tables of a newer release have other columns, so the heartbeat's statements fail before its check of the format.
#[test]
fn a_heartbeat_detects_columns_of_a_newer_release() {
    let scratch = server().scratch();
    let store = open(&scratch.address());
    let node =
        Node { name: "n".into(), address: "".into(), release: "".into(), decide_version: 1, accepts_partitions: true };
    assert!(store.heartbeat(&node, 1_000).unwrap().is_some());
    let beside = scratch.beside().unwrap();
    beside.execute("ALTER TABLE nodes RENAME COLUMN address TO location").unwrap();
    let damaged = store.heartbeat(&node, 1_000);
    assert!(matches!(&damaged, Err(StoreError::Damaged(what)) if what.contains("address")), "{damaged:?}");
    beside.execute("UPDATE mainspring_format SET format = 99").unwrap();
    assert_eq!(store.heartbeat(&node, 1_000), Err(StoreError::Newer { found: 99, readable: FORMAT }));
}
