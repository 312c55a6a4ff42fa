//! Load: many watchers while executions start, and many clients that send equal requests. The default size is
//! small; `MAINSPRING_CROWD=full`, with `MAINSPRING_BINARY` set to a release build, tests the documented size.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    time::Instant,
};

use mainspring_kernel::value::{Map, Value};

use super::{
    client::Client,
    events::{Event, Watcher},
    process::Server,
    start::{save, start},
};

/// The size of the load.
struct Size {
    watchers: usize,
    executions: usize,
    /// Clients that start other executions at the same time.
    starters: usize,
    /// Start requests, of which every second one is a repeat, and the clients that send them.
    starts: usize,
    clients: usize,
}

impl Size {
    fn from_env() -> Self {
        match std::env::var("MAINSPRING_CROWD").as_deref() {
            Ok("full") => Self { watchers: 2_000, executions: 200, starters: 16, starts: 10_000, clients: 64 },
            _ => Self { watchers: 60, executions: 6, starters: 2, starts: 200, clients: 8 },
        }
    }
}

/// A server without effective concurrency limits.
fn server(folder: &std::path::Path) -> Server {
    let server = Server::start(folder);
    let limits = r#"{"limits":{"perUser":1000000,"perOrganization":1000000}}"#;
    server.owner().send("PATCH", "/api/organization", &[], Some(limits)).expect(200);
    server
}

/// Saves a workflow that runs for seconds with continuous events, and one that ends at once.
fn save_all(client: &Client) {
    let sleep = Value::map([("id", Value::from("nap")), ("type", "sleep".into()), ("durationMs", 100u64.into())]);
    let again =
        [("id", "again".into()), ("type", "loop".into()), ("while", Value::Bool(true)), ("maxRounds", 25u64.into())];
    let rounds =
        Value::map(again.into_iter().chain([("steps", Value::List(vec![sleep])), ("onError", "continue".into())]));
    save(client, "watched", Value::List(vec![rounds]));
    let at_once = [("id", "done"), ("type", "return")];
    save(client, "quick", Value::List(vec![Value::map(at_once.map(|(key, value)| (key, Value::from(value))))]));
}

fn ids(events: &[Event]) -> Vec<(String, String)> {
    events.iter().map(|event| (event.id.clone(), event.kind.clone())).collect()
}

#[test]
fn watchers_miss_no_event_under_load() {
    let size = Size::from_env();
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path());
    let owner = server.owner();
    save_all(&owner);
    let (is_over, started) = (AtomicBool::new(false), AtomicUsize::new(0));
    let began = Instant::now();
    let seen = std::thread::scope(|scope| {
        for starter in 0..size.starters {
            let (owner, is_over, started) = (owner.clone(), &is_over, &started);
            scope.spawn(move || {
                for number in (0..).take_while(|_| !is_over.load(Ordering::Relaxed)) {
                    start(&owner, "quick", &format!("s{starter}-{number}"), Map::new()).expect(202);
                    started.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let executions: Vec<String> = (0..size.executions)
            .map(|number| {
                start(&owner, "watched", &format!("w{number}"), Map::new()).expect(202).text_at("executionId")
            })
            .collect();
        let watchers: Vec<_> = (0..size.watchers)
            .map(|number| {
                let (owner, execution) = (owner.clone(), executions[number % executions.len()].clone());
                let small = std::thread::Builder::new().stack_size(256 * 1024);
                let watch = move || (execution.clone(), Watcher::new(&owner, &execution, None).all());
                small.spawn_scoped(scope, watch).unwrap()
            })
            .collect();
        let seen: Vec<_> = watchers.into_iter().map(|watcher| watcher.join().unwrap()).collect();
        is_over.store(true, Ordering::Relaxed);
        seen
    });
    let (took, started) = (began.elapsed().as_secs_f64(), started.into_inner());
    let mut events = 0;
    let mut whole: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    for (execution, seen) in &seen {
        let whole = whole.entry(execution.clone()).or_insert_with(|| ids(&Watcher::new(&owner, execution, None).all()));
        assert_eq!(ids(seen), *whole, "{execution}");
        events += seen.len();
    }
    assert_eq!(whole.len(), size.executions);
    assert!(whole.values().all(|all| all.len() > 50 && all.last().unwrap().1 == "execution.finished"), "{whole:?}");
    let peak = server.peak_kib() / 1024;
    println!(
        "{} watchers, {events} events; beside them {started} starts in {took:.1} s, {:.0}/s; {peak} MiB at most",
        seen.len(),
        started as f64 / took
    );
}

#[test]
fn concurrent_equal_starts_start_once() {
    let size = Size::from_env();
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path());
    let owner = server.owner();
    save_all(&owner);
    let (next, began) = (AtomicUsize::new(0), Instant::now());
    let answered: Vec<Vec<(usize, String, u16)>> = std::thread::scope(|scope| {
        let work = || {
            let mut answered = Vec::new();
            loop {
                let number = next.fetch_add(1, Ordering::Relaxed);
                if number >= size.starts {
                    return answered;
                }
                // Each request is sent twice, mostly concurrently.
                let request = number / 2;
                let reply = start(&owner, "quick", &format!("r{request}"), Map::new());
                answered.push((request, reply.text_at("executionId"), reply.status));
            }
        };
        let clients: Vec<_> = (0..size.clients).map(|_| scope.spawn(work)).collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect()
    });
    let took = began.elapsed().as_secs_f64();
    let (mut executions, mut statuses) = (BTreeMap::<usize, BTreeSet<String>>::new(), BTreeMap::<u16, usize>::new());
    for (request, execution, status) in answered.into_iter().flatten() {
        executions.entry(request).or_default().insert(execution);
        *statuses.entry(status).or_default() += 1;
    }
    assert!(executions.values().all(|of_one| of_one.len() == 1), "a request has started two");
    assert_eq!(statuses, BTreeMap::from([(200, size.starts / 2), (202, size.starts / 2)]));
    let all: BTreeSet<&String> = executions.values().flatten().collect();
    assert_eq!(all.len(), size.starts / 2);
    let mut listed = BTreeSet::new();
    let mut cursor = String::new();
    loop {
        let page = owner.get(&format!("/api/executions?limit=200{cursor}")).expect(200).json();
        let rows = page.get("executions").and_then(Value::as_list).unwrap();
        listed.extend(rows.iter().map(|row| row.get("id").and_then(Value::as_text).unwrap().to_string()));
        let Some(next) = page.get("nextCursor").and_then(Value::as_text) else { break };
        cursor = format!("&cursor={next}");
    }
    assert!(listed.iter().eq(all), "what is there is what was answered");
    println!("{} starts by {} clients in {took:.1} s; {} executions", size.starts, size.clients, listed.len());
}
