//! A hostile organization next to an ordinary one: it sends every kind of request that an authenticated tenant can
//! send, and the ordinary one must not suffer. The default run is short. `MAINSPRING_HOSTILE=full`, with
//! `MAINSPRING_BINARY` set to a release build, runs ten minutes with a latency bound; a number runs so many
//! seconds.

mod attacks;

use std::{
    collections::BTreeMap,
    net::TcpListener,
    sync::{
        Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use mainspring_kernel::value::Value;
use mainspring_store::postgres::server as postgres;

use super::{
    client::Client,
    process::{Organization, Server, peak_kib},
    start::{save, start},
};
use attacks::{ATTACKS, Sent, Target};

/// Peak memory of the server under attack, in MiB.
const PEAK_MIB_MAX: u64 = 2_048;

/// The ordinary tenant's 99th percentile under attack, as a multiple of the one without.
const DELAY_MAX: u32 = 3;

/// Percentiles below this duration are not compared, since the jitter of the machine is as large.
const JITTER: Duration = Duration::from_millis(20);

/// Bound of the median under attack in a short run, for small and busy machines too.
const DELAY_SHORT_MAX: Duration = Duration::from_secs(30);

/// Extensions of the attack by its duration if not every attack was begun.
const LONGER_MAX: u32 = 5;

/// Attacks that may get no response: the server closes their connections.
const WITHOUT_ANSWER: [&str; 4] =
    ["half requests", "bodies that never end", "watchers that do not read", "large signals"];

struct Size {
    alone: Duration,
    attacked: Duration,
    attackers: u64,
    is_full: bool,
}

impl Size {
    fn from_env() -> Self {
        let seconds = Duration::from_secs;
        let full = |attacked| Self {
            alone: seconds(attacked / 10),
            attacked: seconds(attacked),
            attackers: 24,
            is_full: true,
        };
        match std::env::var("MAINSPRING_HOSTILE").as_deref() {
            Ok("full") => full(600),
            Ok(attacked) => full(attacked.parse().expect("`full`, or a number of seconds")),
            Err(_) => Self { alone: seconds(3), attacked: seconds(20), attackers: 8, is_full: false },
        }
    }
}

/// Two functions, a branch and a short sleep.
fn ordinary() -> Value {
    let text = r#"[
        {"id":"a","type":"code","code":"export default () => ({n: 1})","outputVariable":"a"},
        {"id":"b","type":"conditional","condition":{"ref":"@a.n","eq":1},"then":[{"id":"c","type":"sleep","durationMs":5}]},
        {"id":"d","type":"return","input":"@a"}]"#;
    mainspring_kernel::json::read(text.as_bytes()).unwrap().value
}

/// The durations of an execution: until it was accepted, until it ended, and until a list was read.
type Times = [Duration; 3];

/// Runs one execution and lists executions.
fn work(client: &Client, number: u64) -> Times {
    let began = Instant::now();
    let id = start(client, "ordinary", &format!("r{number}"), Default::default()).expect(202).text_at("executionId");
    let started = began.elapsed();
    let ended = client.get(&format!("/api/executions/{id}/wait")).expect(200);
    assert_eq!(ended.text_at("status"), "completed", "{ended:?}");
    let has_ended = began.elapsed();
    client.get("/api/executions?limit=5").expect(200);
    [started, has_ended, began.elapsed()]
}

/// Runs ordinary work of two clients for a duration, each on its own node if there are several. Returns the
/// durations of all executions, in order.
fn measured(clients: &[Client], numbers: &AtomicU64, lasts: Duration) -> Vec<Times> {
    let until = Instant::now() + lasts;
    let all = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for client in clients.iter().cycle().take(2) {
            let all = &all;
            scope.spawn(move || {
                while Instant::now() < until {
                    let took = work(client, numbers.fetch_add(1, Ordering::Relaxed));
                    all.lock().unwrap().push(took);
                }
            });
        }
    });
    all.into_inner().unwrap()
}

/// A percentile of the total durations.
fn percentile(all: &[Times], percent: usize) -> Duration {
    let mut sorted: Vec<Duration> = all.iter().map(|times| times[2]).collect();
    sorted.sort();
    sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)]
}

/// The mean duration of each stage.
fn stages(all: &[Times]) -> String {
    let sums = all.iter().fold([Duration::ZERO; 3], |sums, times| std::array::from_fn(|at| sums[at] + times[at]));
    let [begin, end, list] = sums.map(|sum| sum / all.len().max(1) as u32);
    format!("start {begin:?}, wait {:?}, list {:?}", end - begin, list - end)
}

/// Kills a server above its memory bound, before the machine runs out of memory.
fn guard(process: u32, is_over: &AtomicBool) {
    let pid = rustix::process::Pid::from_raw(process as i32).unwrap();
    while !is_over.load(Ordering::Relaxed) {
        if peak_kib(process).is_some_and(|kib| kib / 1024 > PEAK_MIB_MAX) {
            println!("killed: more than {PEAK_MIB_MAX} MiB");
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            return;
        }
        std::thread::park_timeout(Duration::from_millis(50));
    }
}

/// A server that accepts connections and never responds.
fn tarpit() -> (u16, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let accepting = std::thread::spawn(move || {
        let mut held = Vec::new();
        // A connection that sends `!` ends the tarpit.
        for connection in listener.incoming().flatten() {
            let mut first = [0; 1];
            let is_end = connection.peer_addr().is_ok_and(|peer| peer.port() == 0)
                || connection.set_read_timeout(Some(Duration::from_millis(1))).is_ok()
                    && std::io::Read::read(&mut (&connection), &mut first)
                        .is_ok_and(|count| count == 1 && first[0] == b'!');
            if is_end {
                return;
            }
            held.push(connection);
            if held.len() > 4_000 {
                held.clear();
            }
        }
    });
    (port, accepting)
}

/// Runs ordinary work under attack, until each attack was begun.
fn measured_until_sent(clients: &[Client], numbers: &AtomicU64, size: &Size, sent: &Sent) -> Vec<Times> {
    let mut all = measured(clients, numbers, size.attacked);
    for _ in 0..LONGER_MAX {
        if sent.has_begun_all() {
            break;
        }
        all.extend(measured(clients, numbers, size.attacked));
    }
    all
}

/// Checks that each attack was sent, that none caused an internal error, and that those with a response got one.
fn check_answers(answers: &BTreeMap<&'static str, BTreeMap<u16, u64>>) {
    for (name, _) in ATTACKS {
        let of = answers.get(name).unwrap_or_else(|| panic!("{name} was never sent"));
        println!("{name}: {of:?}");
        assert!(!of.contains_key(&500), "{name} broke a request: {of:?}");
        let has_answer = of.keys().any(|status| *status != 0);
        assert!(has_answer || WITHOUT_ANSWER.contains(&name), "{name} was never answered: {of:?}");
    }
}

/// Sends the attacks to every node while the ordinary organization works. Returns the durations of its executions.
fn attacked(servers: &[Server], target: &Target<'_>, good: &[Client], numbers: &AtomicU64, size: &Size) -> Vec<Times> {
    std::thread::scope(|scope| {
        for attacker in 0..size.attackers {
            let target = target.at(&servers[attacker as usize % servers.len()].address);
            let small = std::thread::Builder::new().stack_size(512 * 1024);
            small.spawn_scoped(scope, move || target.attack(attacker)).unwrap();
        }
        for process in servers.iter().map(Server::process) {
            scope.spawn(move || guard(process, &target.sent.is_over));
        }
        let attacked = measured_until_sent(good, numbers, size, target.sent);
        target.sent.is_over.store(true, Ordering::Relaxed);
        attacked
    })
}

/// Checks that starts acknowledged before and during the attack exist, and that the audit log verifies.
fn check_nothing_lost(owner: &Client, count: u64) {
    for number in [0, count / 2, count - 1] {
        start(owner, "ordinary", &format!("r{number}"), Default::default()).expect(200);
    }
    let proof = owner.get("/api/audit/verify").expect(200).json();
    assert_eq!(proof.get("ok"), Some(&Value::Bool(true)), "{proof:?}");
}

/// Attacks every node by a hostile organization, next to an ordinary one.
fn takes_nothing_from_another(nodes: usize, start: &dyn Fn(usize, &str) -> Server) {
    let size = Size::from_env();
    let (port, accepting) = tarpit();
    let reach = format!("hostile=127.0.0.1:{port}");
    let mut servers: Vec<Server> = (0..nodes).map(|node| start(node, &reach)).collect();
    let [good, bad] = ["ordinary", "hostile"].map(|id| Organization::new(&servers[0], id));
    let good_at: Vec<Client> = servers.iter().map(|server| good.owner.at(&server.address)).collect();
    save(&good.owner, "ordinary", ordinary());
    let numbers = AtomicU64::new(0);
    let alone = measured(&good_at, &numbers, size.alone);
    let sent = Sent::default();
    let target = Target {
        owner: bad.owner.clone(),
        member: bad.member("mel", "member"),
        viewer: bad.member("vic", "viewer"),
        anonymous: servers[0].nobody(),
        address: servers[0].address.clone(),
        tarpit_port: port,
        sent: &sent,
    };
    target.prepare();
    let attacked = attacked(&servers, &target, &good_at, &numbers, &size);
    let _ =
        std::net::TcpStream::connect(("127.0.0.1", port)).and_then(|mut end| std::io::Write::write_all(&mut end, b"!"));
    accepting.join().unwrap();
    let peak = servers.iter().map(|server| server.peak_kib() / 1024).max().unwrap();
    let [alone_p99, attacked_p99] = [&alone, &attacked].map(|all| percentile(all, 99));
    println!(
        "alone {} at p50 {:?}, p99 {alone_p99:?}; attacked {} at p50 {:?}, p99 {attacked_p99:?}; {peak} MiB at most",
        alone.len(),
        percentile(&alone, 50),
        attacked.len(),
        percentile(&attacked, 50),
    );
    println!("alone {}; attacked {}", stages(&alone), stages(&attacked));
    check_answers(&sent.answers.into_inner().unwrap());
    assert!(percentile(&attacked, 50) <= DELAY_SHORT_MAX, "{:?}", percentile(&attacked, 50));
    assert!(peak < PEAK_MIB_MAX, "{peak} MiB");
    let count = numbers.into_inner();
    // In the same processes, and after a kill.
    good_at.iter().for_each(|owner| check_nothing_lost(owner, count));
    servers.iter_mut().for_each(Server::kill);
    check_nothing_lost(&good.owner.at(&start(0, &reach).address), count);
    if size.is_full {
        assert!(attacked_p99 <= (alone_p99 * DELAY_MAX).max(JITTER), "{alone_p99:?} alone, {attacked_p99:?} attacked");
    }
}

#[test]
fn a_hostile_tenant_does_not_affect_others() {
    let folder = tempfile::tempdir().unwrap();
    takes_nothing_from_another(1, &|_, reach| {
        Server::start_as(folder.path(), "data", &[], &[("MAINSPRING_HTTP_ALLOW", reach)])
    });
}

#[test]
fn a_hostile_tenant_does_not_affect_others_on_three_nodes() {
    let folder = tempfile::tempdir().unwrap();
    let fsync = Size::from_env().is_full;
    let postgres = postgres::Server::start(postgres::Options { fsync, ..Default::default() }).unwrap();
    let address = postgres.address("");
    takes_nothing_from_another(3, &|node, reach| {
        let data = format!("data{node}");
        Server::start_as(folder.path(), &data, &["--store", &address], &[("MAINSPRING_HTTP_ALLOW", reach)])
    });
}
