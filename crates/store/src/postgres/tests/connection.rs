//! Ways to connect, foreign tables, and unusual texts.

use std::{sync::Barrier, thread};

use super::{commit, message, open};
use crate::prelude::*;
use crate::{
    AuditedNotes, Batch, EnqueueRequest, Fence, Filter, InboxMessage, Node, Part, PartOutcome, QuarantineRelease,
    ReadLimit, Refusal, StoreError, StoredPlan,
    contract_tests::{
        op::{Turn, continues, key, look, opens},
        postgres::server,
    },
    postgres::{
        Options, PostgresStore,
        columns::column,
        migrations,
        server::{self, Server},
    },
};

fn error(opened: Result<PostgresStore, StoreError>) -> StoreError {
    opened.err().expect("this does not open")
}

#[test]
fn a_new_store_has_64_partitions_and_keeps_its_count() {
    let (new, small) = (server().scratch(), server().scratch());
    assert_eq!(PostgresStore::open(&new.address()).unwrap().partitions(), Ok(64));
    assert_eq!(open(&small.address()).partitions(), Ok(1));
    assert_eq!(PostgresStore::open(&small.address()).unwrap().partitions(), Ok(1));
}

#[test]
fn concurrent_opens_create_one_store() {
    const NODES: usize = 8;
    let scratch = server().scratch();
    let together = Barrier::new(NODES);
    let stores = thread::scope(|scope| {
        let open_one = || {
            together.wait();
            open(&scratch.address())
        };
        let openers: Vec<_> = (0..NODES).map(|_| scope.spawn(open_one)).collect();
        openers.into_iter().map(|opener| opener.join().unwrap()).collect::<Vec<_>>()
    });
    for (store, epoch) in stores.iter().zip(1..) {
        assert_eq!(store.claim(0, "node"), Ok(epoch));
    }
}

#[test]
fn a_newer_format_is_refused_and_unchanged() {
    let scratch = server().scratch();
    open(&scratch.address()).claim(0, "node").unwrap();
    let beside = scratch.beside().unwrap();
    beside.execute("UPDATE mainspring_format SET format = 99; DROP TABLE late_receipts").unwrap();
    let expected = StoreError::Newer { found: 99, readable: migrations::FORMAT };
    assert_eq!(error(PostgresStore::open(&scratch.address())), expected);
    assert_eq!(beside.ask("SELECT to_regclass('late') IS NULL").unwrap(), "t");
}

#[test]
fn an_interrupted_creation_is_completed() {
    let scratch = server().scratch();
    let beside = scratch.beside().unwrap();
    // The state after a process ended between the row of the format and the tables.
    beside.execute(&format!("CREATE SCHEMA {}", scratch.schema())).unwrap();
    beside.execute(crate::sql::named(include_str!("../sql/format.sql"), "format_create")).unwrap();
    assert_eq!(open(&scratch.address()).claim(0, "node"), Ok(1));
}

#[test]
fn a_concurrent_migration_is_awaited() {
    let scratch = server().scratch();
    let beside = scratch.beside().unwrap();
    beside.execute(&format!("CREATE SCHEMA {}", scratch.schema())).unwrap();
    beside.execute(crate::sql::named(include_str!("../sql/format.sql"), "format_create")).unwrap();
    beside.execute("BEGIN; UPDATE mainspring_format SET format = 1").unwrap();
    beside.execute(include_str!("../sql/migrations/0001.sql")).unwrap();
    beside.execute("INSERT INTO spread VALUES (1, 5, 0)").unwrap();
    thread::scope(|scope| {
        let opening = scope.spawn(|| open(&scratch.address()));
        super::wait_until_blocked(&scratch.beside().unwrap(), scratch.schema());
        beside.execute("COMMIT").unwrap();
        assert_eq!(opening.join().unwrap().partitions(), Ok(5));
    });
}

#[test]
fn tables_of_another_program_are_not_changed() {
    let table = [
        "CREATE TABLE executions (x INT)",
        "CREATE TABLE mainspring_format (x INT)",
        "CREATE TABLE mainspring_format (program TEXT, format BIGINT)",
        "CREATE TABLE mainspring_format AS SELECT 'other' AS program, 1::BIGINT AS format",
    ];
    for made in table {
        let scratch = server().scratch();
        let beside = scratch.beside().unwrap();
        beside.execute(&format!("CREATE SCHEMA {}", scratch.schema())).unwrap();
        beside.execute(made).unwrap();
        let refused = error(PostgresStore::open(&scratch.address()));
        assert!(
            matches!(&refused, StoreError::Damaged(why) if why.contains("another program") && why.contains("?schema=")),
            "{made}: {refused}"
        );
        let count = format!("SELECT count(*) FROM pg_tables WHERE schemaname = '{}'", scratch.schema());
        assert_eq!(beside.ask(&count).unwrap(), "1", "{made}");
    }
    // Foreign tables with other names do not matter.
    let scratch = server().scratch();
    let beside = scratch.beside().unwrap();
    beside.execute(&format!("CREATE SCHEMA {}", scratch.schema())).unwrap();
    beside.execute("CREATE TABLE of_someone_else (x INT)").unwrap();
    open(&scratch.address());
}

#[test]
fn a_password_is_used_and_never_shown() {
    let server = Server::start(server::Options { fsync: false, tls: false }).unwrap();
    server
        .execute("CREATE ROLE careful LOGIN PASSWORD 'right?@/'; GRANT CREATE ON DATABASE postgres TO careful")
        .unwrap();
    assert_eq!(open(&server.address_with_password("right%3F%40%2F", "")).claim(0, "node"), Ok(1));
    let missing = server.address_with_password("", "").replace(":@", "@");
    for address in [server.address_with_password("wrong-secret", ""), missing] {
        let refused = error(PostgresStore::open(&address)).to_string();
        assert!(refused.contains("password") && refused.contains("localhost"), "{refused}");
        assert!(!refused.contains("secret") && !refused.contains("right"), "{refused}");
    }
    let nowhere = server.address("").replace("/postgres?", "/missing?");
    assert!(error(PostgresStore::open(&nowhere)).to_string().contains("createdb"));
    server.execute("REVOKE ALL ON SCHEMA mainspring FROM careful; ALTER SCHEMA mainspring OWNER TO postgres").unwrap();
    let refused = error(PostgresStore::open(&server.address_with_password("right%3F%40%2F", ""))).to_string();
    assert!(refused.contains("grant the user"), "{refused}");
}

#[test]
fn tls_follows_sslmode() {
    let with = Server::start(server::Options { fsync: false, tls: true }).unwrap();
    let without = server();
    let authority = with.authority().display().to_string();
    let encrypted =
        "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'mainspring'";
    let verified = format!("sslmode=verify-full&sslrootcert={authority}");
    for (query, is_encrypted) in
        [("", "t"), ("sslmode=prefer", "t"), ("sslmode=require", "t"), (&verified, "t"), ("sslmode=disable", "f")]
    {
        let scratch = with.scratch();
        let store = open(&format!("{}&{query}", scratch.address()));
        assert_eq!(store.claim(0, "node"), Ok(1), "{query}");
        assert_eq!(with.beside().unwrap().ask(encrypted).unwrap(), is_encrypted, "{query}");
        drop(store);
        super::wait_until(
            &with.beside().unwrap(),
            "its connections are closed",
            "NOT EXISTS (SELECT 1 FROM pg_stat_activity WHERE application_name = 'mainspring')",
        );
    }
    let refuse = |address: String, why: &str| {
        let refused = error(PostgresStore::open(&address)).to_string();
        assert!(refused.contains(why), "{address}: {refused}");
    };
    // No authority in Mozilla's list has signed this certificate, and it is for another name.
    refuse(with.address("sslmode=verify-full"), "invalid peer certificate");
    refuse(with.address(&verified).replace("@localhost", "@127.0.0.1"), "certificate not valid for name");
    refuse(without.address("sslmode=require"), "does not support TLS");
    refuse(with.address("sslmode=verify-full&sslrootcert=/nowhere.pem"), "/nowhere.pem");
    refuse(with.address("sslmode=verify-full&sslrootcert=/proc/self/status"), "no certificate");
    open(&format!("{}&sslmode=prefer", without.scratch().address()));
}

#[test]
fn a_unix_socket_is_supported() {
    let scratch = server().scratch();
    let store = open(&server().local_address(&format!("schema={}", scratch.schema())));
    assert_eq!(store.claim(0, "node"), Ok(1));
}

#[test]
fn commits_are_synchronous_despite_server_settings() {
    let server = Server::start(server::Options { fsync: false, tls: false }).unwrap();
    for (set, expected) in [("off", "on"), ("on", "on"), ("remote_apply", "remote_apply")] {
        server.execute(&format!("ALTER ROLE postgres SET synchronous_commit = {set}")).unwrap();
        let store = open(&server.scratch().address());
        let show = |sql| {
            let shown = store.with_session(async |session| column::<String>(&session.query(sql, &[]).await?[0], 0));
            shown.unwrap()
        };
        assert_eq!(show("SHOW synchronous_commit"), expected);
        // A plan that was made for a small table does not scan a large one.
        assert_eq!(show("SHOW enable_seqscan"), "off");
    }
}

/// External texts of any length, with every character of UTF-8.
#[test]
fn texts_are_stored_unchanged() {
    let scratch = server().scratch();
    let store = open(&scratch.address());
    store.claim(0, "n\0de").unwrap();
    for (number, word) in ["\0", "a\0b", "", "é", "e\u{301}", &"lång\0".repeat(3_000)].into_iter().enumerate() {
        let execution = number as u8;
        let mut part = opens(execution).part();
        let row = part.row.as_mut().unwrap();
        row.id = format!("id {word}");
        for place in [&mut row.workflow, &mut row.workflow_version, &mut row.idempotency_key, &mut row.session_id] {
            *place = Some(word.to_owned());
        }
        for place in [&mut row.organization, &mut row.workflow_id, &mut row.trigger_id] {
            *place = Some(word.to_owned());
        }
        (row.error, row.initiator_user_id, row.started_at) = (Some(word.into()), Some(word.into()), u64::MAX);
        let mut expected = part.row.clone().unwrap();
        expected.started_at = i64::MAX as u64;
        let batch =
            |parts: Vec<Part>| Batch { fences: vec![Fence { partition: 0, epoch: 1 }], parts, ..Batch::default() };
        assert_eq!(store.commit(&batch(vec![part.clone()])), Ok(vec![PartOutcome::Durable]), "{word:?}");
        assert_eq!(store.execution_by_id(&expected.id), Ok(Some(expected.clone())));
        assert_eq!(store.execution_by_idempotency_key(&expected.origin(), word), Ok(Some(expected.clone())));
        let word_of = || Some(word.to_owned());
        let (workflow, workflow_id, organization, initiator) = (word_of(), word_of(), word_of(), word_of());
        let statuses = vec!["running".into()];
        let filter = Filter { statuses, workflow, organization, workflow_id, initiator, excludes_quarantined: true };
        assert_eq!(store.executions(&filter, None, 9), Ok(vec![expected]));
        // The same names belong to another execution now.
        let mut again = part;
        again.execution = mainspring_kernel::key::ExecutionKey([0xee; 16]);
        let refused = PartOutcome::Refused(Refusal::IdTaken(key(execution)));
        assert_eq!(store.commit(&batch(vec![again.clone()])), Ok(vec![refused]), "{word:?}");
        again.row.as_mut().unwrap().id = format!("other {word}");
        let refused = PartOutcome::Refused(Refusal::IdempotencyKeyTaken(key(execution)));
        assert_eq!(store.commit(&batch(vec![again])), Ok(vec![refused]), "{word:?}");
        store.quarantine(key(execution), word).unwrap();
        assert_eq!(store.head(key(execution)).unwrap().unwrap().quarantined.as_deref(), Some(word));
        assert_eq!(store.put_metadata_if_absent(&format!("pin {number}"), word).as_deref(), Ok(word));
        let sent = InboxMessage { id: word.into(), ..message("") };
        assert_eq!(
            (store.enqueue(&EnqueueRequest::of(&sent, 1)), store.enqueue(&EnqueueRequest::of(&sent, 1))),
            (Ok(true), Ok(true))
        );
        assert_eq!(store.inbox(&[0], 0, ReadLimit::of(9)).unwrap().pop().unwrap().message, sent);
        let node = Node {
            name: format!("{number}\0"),
            address: word.into(),
            release: word.into(),
            decide_version: u32::MAX,
            accepts_partitions: true,
        };
        assert!(store.heartbeat(&node, u64::MAX).unwrap().unwrap().nodes.contains(&node));
        assert_eq!(store.acquire(&node.name, &[100 + number as u32]).unwrap().len(), 1);
    }
    assert_eq!(store.inbox(&[0], 0, ReadLimit::of(99)).unwrap().len(), 6, "each word is another message");
    // A message with the longest id is consumed like any other.
    let consumed = vec!["lång\0".repeat(3_000)];
    let part = Part { execution: key(5), consumed, ..Turn { frames: 0, ..continues(5, 0) }.part() };
    store
        .release_quarantine(&QuarantineRelease { execution: key(5), parent: None, audited: AuditedNotes::of(&[]) })
        .unwrap();
    assert_eq!(
        store
            .commit(&Batch { fences: vec![Fence { partition: 0, epoch: 1 }], parts: vec![part], ..Batch::default() })
            .unwrap(),
        [PartOutcome::Durable]
    );
    assert_eq!(store.inbox(&[0], 0, ReadLimit::of(99)).unwrap().len(), 5);
}

#[test]
fn plans_are_stored_only_with_enqueued_messages() {
    let scratch = server().scratch();
    let store = open(&scratch.address());
    let plan = StoredPlan { hash: mainspring_kernel::hash::Hash::of(b"plan"), bytes: b"plan"[..].into() };
    let sent = message("a");
    let request =
        |partitions| EnqueueRequest { plans: std::slice::from_ref(&plan), ..EnqueueRequest::of(&sent, partitions) };
    assert_eq!(store.enqueue(&request(2)), Ok(false));
    assert_eq!((store.plan(plan.hash), store.inbox(&[0], 0, ReadLimit::of(9))), (Ok(None), Ok(vec![])));
    assert_eq!(store.enqueue(&request(1)), Ok(true));
    assert_eq!(store.plan(plan.hash).unwrap().as_deref(), Some(&b"plan"[..]));
}

/// Operations block; a call from asynchronous code completes nevertheless, and does not panic.
#[test]
fn a_store_can_be_used_and_dropped_in_async_code() {
    let scratch = server().scratch();
    let work = || {
        let store = open(&scratch.address());
        let epoch = store.claim(0, "node").unwrap();
        // More polls than tokio's cooperative budget permits without a yield.
        for sequence in 0..100u64 {
            let after = store.head(key(0)).unwrap().map(|row| row.head.sequence);
            let turn = after.map_or(opens(0), |after| continues(0, after));
            assert_eq!(commit(&store, epoch, &[turn]), Ok(vec![PartOutcome::Durable]), "{sequence}");
        }
        store.subscribe(Box::new(|_| ()));
        store.notify(&[0]);
        look(&store)
    };
    let one = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let many = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    for runtime in [one, many] {
        let looked = runtime.block_on(async { tokio::spawn(std::future::ready(())).await.map(|()| work()) }).unwrap();
        assert!(looked.contains("wake 0"), "{looked}");
    }
    let options = Options { partitions: 1, ..Options::default() };
    let store = PostgresStore::open_with(&scratch.address(), options).unwrap();
    assert_eq!(store.head(key(0)).unwrap().unwrap().head.sequence, 199);
}
