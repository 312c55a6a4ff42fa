//! Concurrent changes of the same resources, and tables of older formats.

use std::{
    sync::{
        Barrier,
        atomic::{AtomicU64, Ordering},
    },
    thread,
};

use mainspring_kernel::{
    hash::{Hash, hex},
    key::ExecutionKey,
};

use super::{make_older, message, open, partitioning};
use crate::prelude::*;
use crate::{
    AuditEntry, Batch, Catalogue, Change, ChangeOutcome, EnqueueRequest, Fence, InboxMessage, Origin, Part,
    PartOutcome, Put, ReadLimit, Removal, ResourceKey, ResourceRow, Store, StoredPlan,
    contract_tests::{op::opens, postgres::server},
    postgres::migrations::{FORMAT, FORMAT_WITH_SEALED_RESOURCES, FORMAT_WITH_SEALS},
};

const NODES: usize = 6;
const ROUNDS: usize = 12;

fn put(id: &str, expected: u64, names: &[&str]) -> Put {
    let name = |value: &&str| ResourceKey { field: "slug".into(), value: (*value).into(), is_unique: true };
    let names = names.iter().map(name).collect();
    let item = ResourceRow {
        kind: "w".into(),
        organization: "o".into(),
        id: id.into(),
        version: 0,
        keys: names,
        body: id.into(),
    };
    Put { resource: item, expected }
}

fn audited(organizations: &[&str], puts: Vec<Put>, removals: Vec<Removal>) -> Change {
    let entry = |organization: &&str| AuditEntry {
        organization: (*organization).into(),
        at: 1,
        actor: "a".into(),
        action: "put".into(),
        target: "t".into(),
        detail: vec![],
    };
    Change { removals, puts, audit: organizations.iter().map(entry).collect(), sealing: [3; 32] }
}

/// Does `work` concurrently, each with its own connection to one store, and returns the total count.
fn together(address: &str, work: impl Fn(&dyn Store, usize) -> usize + Sync) -> usize {
    let start = Barrier::new(NODES);
    let one = |node| {
        let store = open(address);
        start.wait();
        (0..ROUNDS).map(|_| work(&store, node)).sum::<usize>()
    };
    thread::scope(|scope| {
        let one = &one;
        let workers: Vec<_> = (0..NODES).map(|node| scope.spawn(move || one(node))).collect();
        workers.into_iter().map(|worker| worker.join().unwrap()).sum()
    })
}

#[test]
fn concurrent_changes_get_successive_versions() {
    let scratch = server().scratch();
    let store = open(&scratch.address());
    let done = together(&scratch.address(), |store, node| {
        let catalogue = store.catalogue();
        let version = catalogue.resource("w", "o", "a").unwrap().map_or(0, |item| item.version);
        // Two logs, named in both orders.
        let logs = if node % 2 == 0 { ["o", "p"] } else { ["p", "o"] };
        match catalogue.change(&audited(&logs, vec![put("a", version, &["n"])], vec![])).unwrap() {
            ChangeOutcome::Done => 1,
            changed => {
                assert_eq!(changed, ChangeOutcome::Conflict { id: "a".into() });
                0
            }
        }
    });
    assert_eq!(store.resource("w", "o", "a").unwrap().unwrap().version, done as u64);
    for organization in ["o", "p"] {
        let rows = store.audit(organization, 0, ReadLimit::of(usize::MAX)).unwrap();
        assert_eq!(rows.len(), done);
        let mut before = Default::default();
        for row in &rows {
            assert!(row.follows(before), "{row:?}");
            before = row.hash;
        }
        assert_eq!(store.audit_head(organization).unwrap().unwrap().hash, before);
    }
}

#[test]
fn one_of_many_concurrent_claims_gets_the_names() {
    let scratch = server().scratch();
    let store = open(&scratch.address());
    let done = together(&scratch.address(), |store, node| {
        let catalogue = store.catalogue();
        let (mine, names) = (format!("{node}"), if node % 2 == 0 { ["x", "y"] } else { ["y", "x"] });
        let other = format!("{node} too");
        let puts = vec![put(&mine, 0, &names[..1]), put(&other, 0, &names[1..])];
        match catalogue.change(&audited(&["o"], puts, vec![])).unwrap() {
            ChangeOutcome::Done => {
                let removal =
                    |id: &str| Removal { kind: "w".into(), organization: "o".into(), id: id.into(), expected: Some(1) };
                let gone = audited(&["o"], vec![], vec![removal(&other), removal(&mine)]);
                assert_eq!(catalogue.change(&gone).unwrap(), ChangeOutcome::Done);
                2
            }
            changed => {
                assert!(
                    matches!(&changed, ChangeOutcome::KeyTaken { id, .. } if *id == mine || *id == other),
                    "{changed:?}"
                );
                0
            }
        }
    });
    assert!(done > 0);
    assert_eq!(store.audit_head("o").unwrap().unwrap().number, done as u64);
    assert_eq!(
        store.resources(&crate::ResourceQuery {
            kind: "w".into(),
            organization: "o".into(),
            limit: ReadLimit::of(9),
            ..Default::default()
        }),
        Ok(vec![])
    );
}

#[test]
fn writers_of_the_same_audit_logs_are_serialized() {
    let scratch = server().scratch();
    let store = open(&scratch.address());
    let keys = AtomicU64::new(0);
    let done = together(&scratch.address(), |store, node| {
        let logs = if node % 2 == 0 { ["o", "p"] } else { ["p", "o"] };
        let change = audited(&logs, vec![], vec![]);
        let partition = node as u32;
        let fences = vec![Fence { partition, epoch: store.claim(partition, "node").unwrap() }];
        let mut part = Part { partition, audit: change.audit.clone(), ..opens(0).part() };
        part.execution = ExecutionKey::new(keys.fetch_add(1, Ordering::Relaxed), [7; 10]);
        part.row.as_mut().unwrap().id = part.execution.to_string();
        // The same plan in all parts, so that they conflict there too.
        let plan = StoredPlan { hash: Hash::of(b"plan"), bytes: b"plan"[..].into() };
        part.plans = vec![plan.clone()];
        let message = InboxMessage { execution: part.execution, ..message("a") };
        let batch = Batch { fences, parts: vec![part], sealing: [3; 32] };
        assert_eq!(store.commit(&batch), Ok(vec![PartOutcome::Durable]));
        let request = EnqueueRequest {
            plans: &[plan],
            audit: &change.audit,
            sealing: [3; 32],
            ..EnqueueRequest::of(&message, 1)
        };
        assert_eq!(store.enqueue(&request), Ok(true));
        assert_eq!(store.catalogue().change(&change), Ok(ChangeOutcome::Done));
        3
    });
    for organization in ["o", "p"] {
        assert_eq!(store.audit(organization, 0, ReadLimit::of(usize::MAX)).unwrap().len(), done);
        assert_eq!(store.audit_head(organization).unwrap().unwrap().number, done as u64);
    }
}

#[test]
fn stores_of_every_older_format_are_migrated_without_loss() {
    for format in 1..FORMAT {
        let scratch = server().scratch();
        let beside = scratch.beside().unwrap();
        make_older(&beside, scratch.schema(), format);
        beside.execute("INSERT INTO partitions VALUES (0, 41, 'process 7')").unwrap();
        beside.execute(&format!("INSERT INTO {} VALUES (1, 5, 0)", partitioning(format))).unwrap();
        // The key of the start in format 1.
        let start = hex(&Hash::of_parts(&[&4u64.to_be_bytes(), b"flow", b"k"]).0);
        let (key, hash) = ("07".repeat(16), "08".repeat(32));
        let bytes = |hex: &str| format!("decode('{hex}', 'hex')");
        beside
            .execute(&format!(
                "INSERT INTO executions (execution, id_key, id, workflow, workflow_hash, plan_hash, status, \
                 trigger_type, initiator_type, start_key, idempotency_key, partition, attempt_count, started_at) VALUES \
                 ({}, 'id', 'id', 'flow', '', {}, 'running', 'manual', 'manual', {}, 'k', 0, 1, 0)",
                bytes(&key),
                bytes(&hash),
                bytes(&start)
            ))
            .unwrap();
        let store = open(&scratch.address());
        assert_eq!(store.is_of_unsealed_format(), format < FORMAT_WITH_SEALS);
        assert_eq!(store.has_unsealed_resources(), format < FORMAT_WITH_SEALED_RESOURCES);
        let found = store.execution_by_idempotency_key(&Origin::named(Some("flow")), "k").unwrap().unwrap();
        assert_eq!((found.id.as_str(), found.organization), ("id", None));
        assert_eq!(store.claim(0, "process 8"), Ok(42));
        assert_eq!(store.partitions(), Ok(5));
        assert_eq!(store.catalogue().audit_head("o"), Ok(None));
    }
}

#[test]
fn organizations_with_pending_executions_are_read_from_an_index() {
    let scratch = server().scratch();
    drop(open(&scratch.address()));
    let beside = scratch.beside().unwrap();
    // Rows of two organizations, one in ten pending.
    beside
        .execute(
            "INSERT INTO executions (execution, id_key, id, workflow_hash, plan_hash, status, trigger_type, \
             initiator_type, partition, attempt_count, started_at, organization_key, organization) \
             SELECT CAST(CAST(n AS TEXT) AS BYTEA), CAST(CAST(n AS TEXT) AS BYTEA), '', '', '', \
             CAST(CASE WHEN n % 10 = 0 THEN 'pending' ELSE 'completed' END AS BYTEA), '', '', 0, 1, 0, \
             CAST(CAST(n % 2 AS TEXT) AS BYTEA), '' FROM generate_series(1, 20000) AS n; ANALYZE executions",
        )
        .unwrap();
    let asked = crate::sql::named(include_str!("../sql/executions.sql"), "pending_organizations");
    let plan = beside.ask(&format!("EXPLAIN (FORMAT JSON) {asked}")).unwrap();
    let of_rows = plan.matches(r#""Relation Name": "executions""#).count();
    assert!(of_rows == 3 && plan.matches(r#""executions_pending""#).count() == 3, "{plan}");
    assert!(!plan.contains("Semi"), "{plan}");
}
