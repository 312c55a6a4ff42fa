//! The operations of a catalogue as data with formatted answers, and the cases of the conformance suite about them.
//!
//! A resource is written as `kind organization id`, and its body follows from that and from a text.

use super::{
    journal::Case,
    op::{
        Op::{self, *},
        Text, Turn, continues, join, opens,
    },
};
use crate::{
    AuditEntry, AuditRow, Change as Request, ChangeOutcome, Put, READ_BYTES, ReadLimit, Removal, ResourceKey,
    ResourceQuery, ResourceRow, Store, StoreError,
};

/// Field, value and whether it is unique.
type Called = (Text, Text, bool);

/// A compact [`Change`](crate::Change).
#[derive(Debug, Clone, Default)]
pub(crate) struct CatalogueOp {
    pub(crate) removals: Vec<(Text, Option<u64>)>,
    /// Resource, expected version, text of its body, and names.
    pub(crate) puts: Vec<(Text, u64, Text, Vec<Called>)>,
    /// Organization of the log, and action.
    pub(crate) audit: Vec<(Text, Text)>,
}

/// A compact [`ResourceQuery`]: kind and organization, a name, the start, the direction, and the limit.
pub(crate) type Asked = (Text, Option<(Text, Text)>, Option<Text>, bool, usize);

pub(crate) const SEALING: [u8; 32] = [7; 32];

fn place(at: Text) -> (String, String, String) {
    let mut words = at.splitn(3, ' ').map(str::to_owned);
    let mut next = || words.next().unwrap_or_default();
    (next(), next(), next())
}

fn body(at: &str, word: &str) -> Vec<u8> {
    format!("{at}={word}").into_bytes()
}

pub(crate) fn entries(audited: &[(Text, Text)]) -> Vec<AuditEntry> {
    audited.iter().map(|(organization, action)| entry(organization, action)).collect()
}

fn entry(organization: &str, action: &str) -> AuditEntry {
    let (organization, action) = (organization.to_owned(), action.to_owned());
    let (actor, target) = ("act\0r".into(), format!("target of {action}"));
    AuditEntry { organization, at: u64::MAX, actor, action, target, detail: vec![0xf6] }
}

impl CatalogueOp {
    fn change(&self) -> Request {
        let removal = |(at, expected): &(Text, Option<u64>)| {
            let (kind, organization, id) = place(at);
            Removal { kind, organization, id, expected: *expected }
        };
        let name = |(field, value, is_unique): &Called| ResourceKey {
            field: (*field).into(),
            value: (*value).into(),
            is_unique: *is_unique,
        };
        let put = |(at, expected, word, names): &(Text, u64, Text, Vec<_>)| {
            let (kind, organization, id) = place(at);
            let names = names.iter().map(name).collect();
            Put {
                resource: ResourceRow { kind, organization, id, version: 99, keys: names, body: body(at, word) },
                expected: *expected,
            }
        };
        Request {
            removals: self.removals.iter().map(removal).collect(),
            puts: self.puts.iter().map(put).collect(),
            audit: entries(&self.audit),
            sealing: SEALING,
        }
    }
}

/// Runs an operation of a catalogue, and formats the answer.
pub(super) fn answer(store: &dyn Store, op: &Op) -> Result<String, StoreError> {
    match op {
        ResourceRow(at) => item(store, at),
        ItemNamed(of, field, value) => item_named(store, of, field, value),
        Items(asked) => items(store, asked, READ_BYTES),
        ItemsWithin(asked, bytes) => items(store, asked, *bytes),
        Change(op) => change(store, op),
        Audit(organization, after, limit) => audit(store, organization, *after, ReadLimit::of(*limit)),
        AuditWithin(organization, bytes) => audit(store, organization, 0, ReadLimit { rows: 99, bytes: *bytes }),
        other => panic!("no op of a catalogue: {other:?}"),
    }
}

fn change(store: &dyn Store, op: &CatalogueOp) -> Result<String, StoreError> {
    Ok(match store.catalogue().change(&op.change())? {
        ChangeOutcome::Done => "done".into(),
        ChangeOutcome::Conflict { id } => format!("conflict {id}"),
        ChangeOutcome::KeyTaken { id, field } => format!("{id} may not have its {field}"),
    })
}

fn item(store: &dyn Store, at: Text) -> Result<String, StoreError> {
    let (kind, organization, id) = place(at);
    Ok(join(store.catalogue().resource(&kind, &organization, &id)?.into_iter().map(draw)))
}

fn item_named(store: &dyn Store, of: Text, field: Text, value: Text) -> Result<String, StoreError> {
    let (kind, organization, _) = place(of);
    Ok(join(store.catalogue().resource_by_key(&kind, &organization, field, value)?.into_iter().map(draw)))
}

fn items(store: &dyn Store, asked: &Asked, bytes: usize) -> Result<String, StoreError> {
    let (of, name, after, is_descending, rows) = *asked;
    let (kind, organization, _) = place(of);
    let name = name.map(|(field, value)| (field.into(), value.into()));
    let most = ReadLimit { rows, bytes };
    let query =
        ResourceQuery { kind, organization, key: name, after: after.map(Into::into), is_descending, limit: most };
    Ok(join(store.catalogue().resources(&query)?.into_iter().map(draw)))
}

fn draw(item: ResourceRow) -> String {
    let at = format!("{} {} {}", item.kind, item.organization, item.id);
    let text = String::from_utf8(item.body).unwrap();
    let (of, word) = text.split_once('=').expect("a body of the tests");
    assert_eq!(of, at, "a body of another");
    let unique = |name: &ResourceKey| if name.is_unique { "!" } else { "" };
    let names = item.keys.iter().map(|name| format!("{}:{}{}", name.field, name.value, unique(name)));
    let names = names.collect::<Vec<_>>().join(",");
    format!("{}.{}={word}({names})", item.id, item.version)
}

/// Returns the actions, after checking that the whole log is a chain that ends at its head.
fn audit(store: &dyn Store, organization: Text, after: u64, bound: ReadLimit) -> Result<String, StoreError> {
    let catalogue = store.catalogue();
    let (mut before, mut number) = (Default::default(), 0);
    for row in catalogue.audit(organization, 0, ReadLimit::of(usize::MAX))? {
        number += 1;
        assert!(row.number == number && row.follows(before), "{row:?}");
        assert_eq!(row.entry, AuditEntry { at: i64::MAX as u64, ..entry(organization, &row.entry.action) });
        before = row.hash;
    }
    let head = catalogue.audit_head(organization)?;
    assert_eq!(head.as_ref().map_or((0, Default::default()), |head| (head.number, head.hash)), (number, before));
    assert!(head.is_none_or(|head| head.is_sealed(&SEALING, organization) && !head.is_sealed(&[1; 32], organization)));
    let rows = catalogue.audit(organization, after, bound)?;
    Ok(join(rows.into_iter().map(|AuditRow { number, entry, .. }| format!("{number}:{}", entry.action))))
}

/// The resources of the random operations.
pub(crate) const PLACES: [Text; 4] = ["w o a", "w o a\0", "w o b", "t o a"];

/// Operations that read all of those.
pub(crate) fn look() -> Vec<Op> {
    vec![
        Items(("w o", None, None, false, 99)),
        Items(("t o", None, None, true, 99)),
        Audit("o", 0, 99),
        Audit("p", 0, 99),
    ]
}

pub(super) fn cases() -> Vec<Case> {
    [versions(), names(), lists(), logs()].into_iter().flatten().collect()
}

fn put(at: Text, expected: u64, word: Text) -> CatalogueOp {
    named(at, expected, word, vec![])
}

fn named(at: Text, expected: u64, word: Text, names: Vec<Called>) -> CatalogueOp {
    CatalogueOp { puts: vec![(at, expected, word, names)], ..CatalogueOp::default() }
}

fn removed(at: Text, expected: Option<u64>) -> CatalogueOp {
    CatalogueOp { removals: vec![(at, expected)], ..CatalogueOp::default() }
}

fn versions() -> Vec<Case> {
    let both = |first: CatalogueOp, second: CatalogueOp| CatalogueOp {
        removals: [first.removals, second.removals].concat(),
        puts: [first.puts, second.puts].concat(),
        audit: vec![("o", "both")],
    };
    vec![
        (
            "a resource has a version, and a change must name it",
            vec![
                (ResourceRow("w o a"), ""),
                (Change(put("w o a", 1, "x")), "conflict a"),
                (Change(put("w o a", 0, "x")), "done"),
                (Change(put("w o a", 0, "y")), "conflict a"),
                (Change(put("w o a", 1, "y")), "done"),
                (ResourceRow("w o a"), "a.2=y()"),
                (Change(put("w o a", 1, "z")), "conflict a"),
                (Change(removed("w o a", Some(1))), "conflict a"),
                (Change(removed("w o b", None)), "conflict b"),
                (ResourceRow("w o a"), "a.2=y()"),
                (ResourceRow("t o a"), ""),
                (ResourceRow("w p a"), ""),
                (Change(removed("w o a", Some(2))), "done"),
                (Change(put("w o a", 0, "again")), "done"),
                (ResourceRow("w o a"), "a.1=again()"),
                (Change(removed("w o a", None)), "done"),
                (ResourceRow("w o a"), ""),
            ],
        ),
        (
            "a change is atomic, with removals before puts",
            vec![
                (Change(CatalogueOp::default()), "done"),
                (Change(both(put("w o a", 0, "x"), put("t  a", 0, "y"))), "done"),
                (Change(both(put("w o b", 0, "x"), put("w o a", 0, "y"))), "conflict a"),
                (Change(both(put("w o c", 7, "x"), removed("w o d", None))), "conflict d"),
                (Change(both(removed("w o a", None), removed("w o a", None))), "conflict a"),
                (ResourceRow("w o a"), "a.1=x()"),
                (ResourceRow("w o b"), ""),
                (ResourceRow("t  a"), "a.1=y()"),
                (Change(both(removed("w o a", Some(1)), put("w o a", 1, "z"))), "conflict a"),
                (Change(both(removed("w o a", Some(1)), put("w o a", 0, "z"))), "done"),
                (ResourceRow("w o a"), "a.1=z()"),
                (Change(both(put("w o a", 1, "one"), put("w o a", 2, "two"))), "done"),
                (ResourceRow("w o a"), "a.3=two()"),
                (Audit("o", 0, 9), "1:both 2:both 3:both"),
            ],
        ),
    ]
}

fn names() -> Vec<Case> {
    let unique = |value| vec![("slug", value, true)];
    let swap = CatalogueOp {
        puts: vec![("w o a", 3, "3", unique("y")), ("w o b", 1, "3", unique("x"))],
        ..CatalogueOp::default()
    };
    let same = CatalogueOp {
        puts: vec![("w o d", 0, "", unique("n")), ("w o e", 0, "", unique("n"))],
        ..CatalogueOp::default()
    };
    let inherits = CatalogueOp {
        removals: vec![("w o a", None)],
        puts: vec![("w o c", 1, "heir", unique("y"))],
        audit: vec![("o", "inherits")],
    };
    vec![(
        "a unique name belongs to one resource of a kind in an organization",
        vec![
            (Change(named("w o a", 0, "1", vec![("slug", "x", true), ("by", "u", false)])), "done"),
            (Change(named("w o b", 0, "1", vec![("by", "u", false), ("slug", "x", true)])), "b may not have its slug"),
            (ResourceRow("w o b"), ""),
            (Change(named("w p b", 0, "1", unique("x"))), "done"),
            (Change(named("t o b", 0, "1", unique("x"))), "done"),
            (Change(named("w o c", 0, "1", vec![("other", "x", true), ("by", "u", false)])), "done"),
            (ItemNamed("w o", "slug", "x"), "a.1=1(by:u,slug:x!)"),
            (ItemNamed("w p", "slug", "x"), "b.1=1(slug:x!)"),
            (ItemNamed("w o", "by", "u"), ""),
            (ItemNamed("w o", "slug", "z"), ""),
            // A resource's own names do not conflict with it.
            (Change(named("w o a", 1, "2", unique("x"))), "done"),
            (ItemNamed("w o", "slug", "x"), "a.2=2(slug:x!)"),
            // Versions are checked before names.
            (Change(named("w o b", 1, "2", unique("x"))), "conflict b"),
            (Change(named("w o a", 2, "2", unique("x"))), "done"),
            (Change(named("w o b", 0, "2", unique("y"))), "done"),
            (Change(swap), "done"),
            (ItemNamed("w o", "slug", "x"), "b.2=3(slug:x!)"),
            (ItemNamed("w o", "slug", "y"), "a.4=3(slug:y!)"),
            (Change(same), "e may not have its slug"),
            (ResourceRow("w o d"), ""),
            (Change(inherits), "done"),
            (ItemNamed("w o", "slug", "y"), "c.2=heir(slug:y!)"),
            (ItemNamed("w o", "other", "x"), ""),
        ],
    )]
}

fn lists() -> Vec<Case> {
    let ids = ["w o b", "w o a\0", "w o é", "w o Z", "w o a", "w o "];
    let puts = ids.map(|at| (at, 0, "", vec![("by", if at == "w o b" { "v" } else { "u\0" }, at == "w o a")]));
    let all = CatalogueOp { puts: puts.into(), ..CatalogueOp::default() };
    let others = CatalogueOp {
        puts: vec![("w p a", 0, "", vec![("by", "u\0", false)]), ("wx o a", 0, "", vec![])],
        ..CatalogueOp::default()
    };
    let by = Some(("by", "u\0"));
    vec![(
        "resources are listed by the bytes of their ids, up and down, in pages, by a name",
        vec![
            (Items(("w o", None, None, false, 9)), ""),
            (Change(all), "done"),
            (Change(others), "done"),
            (
                Items(("w o", None, None, false, 9)),
                ".1=(by:u\0) Z.1=(by:u\0) a.1=(by:u\0!) a\0.1=(by:u\0) b.1=(by:v) é.1=(by:u\0)",
            ),
            (Items(("w o", None, None, true, 2)), "é.1=(by:u\0) b.1=(by:v)"),
            (Items(("w o", None, Some("a"), false, 2)), "a\0.1=(by:u\0) b.1=(by:v)"),
            (Items(("w o", None, Some("a\0"), true, 9)), "a.1=(by:u\0!) Z.1=(by:u\0) .1=(by:u\0)"),
            (Items(("w o", None, Some("c"), true, 1)), "b.1=(by:v)"),
            (Items(("w o", None, Some(""), true, 9)), ""),
            (Items(("w o", None, None, true, 0)), ""),
            (Items(("w o", by, None, false, 2)), ".1=(by:u\0) Z.1=(by:u\0)"),
            (Items(("w o", by, Some("a"), false, 9)), "a\0.1=(by:u\0) é.1=(by:u\0)"),
            (Items(("w o", by, Some("é"), true, 2)), "a\0.1=(by:u\0) a.1=(by:u\0!)"),
            (Items(("w o", by, None, true, 1)), "é.1=(by:u\0)"),
            (Items(("w o", Some(("by", "w")), None, true, 9)), ""),
            (Items(("w p", None, None, false, 9)), "a.1=(by:u\0)"),
            // The bodies have 5, 6, 6, 7, 6 and 7 bytes: the one that reaches the bound is returned completely.
            (ItemsWithin(("w o", None, None, false, 9), 1), ".1=(by:u\0)"),
            (ItemsWithin(("w o", None, None, false, 9), 11), ".1=(by:u\0) Z.1=(by:u\0)"),
            (ItemsWithin(("w o", None, None, false, 9), 12), ".1=(by:u\0) Z.1=(by:u\0) a.1=(by:u\0!)"),
            (ItemsWithin(("w o", None, None, false, 1), 12), ".1=(by:u\0)"),
            (ItemsWithin(("w o", None, Some("a"), false, 9), 7), "a\0.1=(by:u\0)"),
            (ItemsWithin(("w o", None, None, true, 9), 8), "é.1=(by:u\0) b.1=(by:v)"),
            (ItemsWithin(("w o", by, None, false, 9), 18), ".1=(by:u\0) Z.1=(by:u\0) a.1=(by:u\0!) a\0.1=(by:u\0)"),
            (ItemsWithin(("w o", by, None, true, 9), 14), "é.1=(by:u\0) a\0.1=(by:u\0)"),
            (ItemsWithin(("w o", by, None, true, 0), 14), ""),
        ],
    )]
}

fn logs() -> Vec<Case> {
    let audited = |audit: Vec<(Text, Text)>| CatalogueOp { audit, ..CatalogueOp::default() };
    let acts = |turn: Turn, action| Turn { audit: vec![("o", action)], ..turn };
    vec![
        (
            "an audit log is a chain for each organization, without gaps",
            vec![
                (Audit("o", 0, 9), ""),
                (Change(audited(vec![("o", "a"), ("p", "b"), ("o", "c")])), "done"),
                (Change(CatalogueOp { audit: vec![("o", "never")], ..put("w o a", 5, "x") }), "conflict a"),
                (Change(audited(vec![("p", "d\0"), ("", "e")])), "done"),
                (Audit("o", 0, 9), "1:a 2:c"),
                (Audit("p", 0, 9), "1:b 2:d\0"),
                (Audit("p", 1, 9), "2:d\0"),
                (Audit("", 0, 9), "1:e"),
                (Audit("o", 0, 1), "1:a"),
                (Audit("o", 2, 9), ""),
                // Target and detail have 12 bytes together in the first of these, and 13 in the second.
                (AuditWithin("p", 1), "1:b"),
                (AuditWithin("p", 12), "1:b"),
                (AuditWithin("p", 13), "1:b 2:d\0"),
            ],
        ),
        (
            "the audit entry of a part or message is durable with it, and once",
            vec![
                (Claim(0), "1"),
                (
                    Commit(1, vec![acts(opens(0), "a"), acts(continues(1, 3), "never"), acts(opens(2), "b")]),
                    "durable sequence durable",
                ),
                (Commit(2, vec![acts(continues(0, 0), "never")]), "fence"),
                (Commit(1, vec![acts(Turn { frames: 0, consumed: vec!["x"], ..continues(0, 0) }, "c")]), "durable"),
                (EnqueueAudited(1, 4, "message", vec![("o", "d"), ("p", "e")]), "enqueued"),
                (EnqueueAudited(1, 4, "message", vec![("o", "never")]), "enqueued"),
                (EnqueueAudited(2, 4, "other", vec![("o", "never")]), "not enqueued"),
                (Change(audited(vec![("o", "f")])), "done"),
                (Audit("o", 0, 9), "1:a 2:b 3:c 4:d 5:f"),
                (Audit("p", 0, 9), "1:e"),
            ],
        ),
    ]
}

#[test]
fn keys_too_long_for_an_index_are_refused_by_every_store() {
    let long: Text = Box::leak(format!("w o {}", "x".repeat(crate::ID_BYTES_MAX + 1)).into_boxed_str());
    let check = |store: &dyn Store| {
        for op in [put(long, 0, ""), removed(long, None)] {
            let refused = super::op::run(store, &Change(op));
            assert!(refused.contains("choose a shorter one"), "{refused}");
        }
        assert_eq!(super::op::run(store, &Change(put(&long[..long.len() - 1], 0, ""))), "done");
    };
    check(&crate::memory::MemoryStore::new());
    check(super::Subject::store(&super::Sqlite::new()));
    #[cfg(feature = "postgres")]
    check(super::Subject::store(&super::postgres::Postgres::new()));
}

#[test]
fn all_resources_are_listed_in_pages_by_every_store() {
    let check = |store: &dyn Store| {
        let names = || vec![("by", "u\0", false), ("as", "é", false)];
        let mut places = ["w o b", "w o a\0", "w o é", "w o Z", "w p a", "wx o a", "v  a", "w o a", "é o a"];
        let puts = places.map(|at| (at, 0, "", if at == "w o a" { vec![] } else { names() }));
        let op = CatalogueOp { puts: puts.into(), ..CatalogueOp::default() };
        assert_eq!(super::op::run(store, &Change(op)), "done");
        places.sort_by_key(|at| place(at));
        // Bodies have 5 to 7 bytes: at most three reach the bound.
        let limits = [(ReadLimit::of(1), 1), (ReadLimit::of(2), 2), (ReadLimit::of(99), 9)];
        for (limit, most) in limits.into_iter().chain([(ReadLimit { rows: 99, bytes: 13 }, 3)]) {
            let (mut found, mut after, mut longest) = (Vec::new(), None, 0);
            loop {
                let rows = store.catalogue().all_resources(after.as_ref(), limit).unwrap();
                let Some(last) = rows.last() else { break };
                after = Some(last.resource_id());
                longest = longest.max(rows.len());
                found.extend(rows);
            }
            let ids: Vec<_> = found.iter().map(ResourceRow::resource_id).collect();
            assert_eq!(ids, places.map(place), "{limit:?}");
            assert_eq!(longest, most, "{limit:?}");
            for row in found {
                let names = if row.resource_id() == place("w o a") { 0 } else { 2 };
                assert_eq!((row.version, row.keys.len()), (1, names), "{row:?}");
                let (kind, organization, id) = row.resource_id();
                assert_eq!(store.catalogue().resource(&kind, &organization, &id), Ok(Some(row)));
            }
        }
    };
    check(&crate::memory::MemoryStore::new());
    check(super::Subject::store(&super::Sqlite::new()));
    #[cfg(feature = "postgres")]
    check(super::Subject::store(&super::postgres::Postgres::new()));
}
