//! The pool itself: workers that die, send garbage or hang, and the restrictions of a worker.

use crate::WORKER;
use mainspring_sandbox::{Call, FaultKind, Function, Limits, Request, WorkerCommand, Workers, evaluate, worker};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};
use std::sync::{Condvar, Mutex};
use std::thread::{self, Scope};
use std::{fs, net, path, process};

/// The roles of this program other than running its tests, by its first argument.
pub(crate) const ROLES: [(&str, fn()); 11] = [
    ("--die-at-once", || {}),
    ("--die-the-first-time", die_the_first_time),
    ("--die-after-reading", || take_and_say(&[])),
    ("--answer-nonsense", || take_and_say(&[3, 0, 0, 0, 1, 2, 3])),
    ("--announce-too-much", || take_and_say(&[0xff; 8])),
    ("--never-answer", never_answer),
    ("--look-around", check_confinement),
    ("--cannot-be-confined", || serve_without_seccomp(false)),
    ("--need-not-be-confined", || serve_without_seccomp(true)),
    ("--be-a-parent", be_a_parent),
    ("--tell-dates", print_dates),
];

pub(crate) fn command(role: &str) -> WorkerCommand {
    WorkerCommand { program: "/proc/self/exe".into(), arguments: vec![role.into()] }
}

fn request(source: &str, wall_ms_max: u64) -> Request {
    let function = Function { source: source.into(), input: "20".into(), now_ms: 0, seed: [0; 32] };
    Request { call: Call::Function(function), limits: Limits { wall_ms_max, ..Limits::default() } }
}

fn good() -> Request {
    request("export default (x) => x * 2 + 2", 10_000)
}

/// A native call that does not check its limits.
const NATIVE: &str = "export default () => 'a'.repeat(1e7).indexOf('a'.repeat(5e6) + 'b')";

/// A caller that repeats one harmless call.
pub(crate) struct Neighbor<'a> {
    workers: &'a Workers,
    /// The number of answers so far; `None` to end.
    answers: Mutex<Option<u64>>,
    answered: Condvar,
}

/// Ends the caller, so that a failing test ends too.
pub(crate) struct Ends<'a>(&'a Neighbor<'a>);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        *self.0.answers.lock().unwrap() = None;
    }
}

impl<'a> Neighbor<'a> {
    pub(crate) fn new(workers: &'a Workers) -> Neighbor<'a> {
        Neighbor { workers, answers: Mutex::new(Some(0)), answered: Condvar::new() }
    }

    pub(crate) fn continues<'scope>(&'scope self, scope: &'scope Scope<'scope, '_>) -> Ends<'scope> {
        scope.spawn(|| {
            while self.answers.lock().unwrap().is_some() {
                assert_eq!(self.workers.call("", &good()).result.as_deref(), Ok("42"));
                if let Some(answers) = self.answers.lock().unwrap().as_mut() {
                    *answers += 1;
                }
                self.answered.notify_all();
            }
        });
        Ends(self)
    }

    pub(crate) fn answers(&self) -> u64 {
        self.answers.lock().unwrap().unwrap_or(0)
    }

    pub(crate) fn wait_for_more_than(&self, before: u64) {
        let answers = self.answers.lock().unwrap();
        drop(self.answered.wait_while(answers, |answers| answers.is_some_and(|answers| answers <= before)).unwrap());
    }
}

pub(crate) fn failing_workers_are_replaced() {
    let cases = [
        ("--die-at-once", FaultKind::Crashed, "before it had read"),
        ("--die-after-reading", FaultKind::Crashed, "ended with code 0"),
        ("--answer-nonsense", FaultKind::Crashed, "no answer"),
        ("--announce-too-much", FaultKind::Crashed, "no answer"),
        ("--never-answer", FaultKind::TimeExceeded, "after 100 ms"),
    ];
    for (role, kind, words) in cases {
        let workers = Workers::with_count(command(role), 1);
        // Twice, since the pool has only one slot and must have released it.
        for _ in 0..2 {
            let fault = workers.call("", &request("export default () => 1", 100)).result.expect_err(role);
            assert!(fault.kind == kind && fault.message.contains(words), "{role}: {fault:?}");
        }
    }
    let absent = WorkerCommand { program: "/nowhere/at/all".into(), arguments: Vec::new() };
    // More often than the pool has slots, which it must release each time.
    let workers = Workers::with_count(absent, 1);
    for tenant in ["a", "a", "a", "b", "c"] {
        let fault = workers.call(tenant, &good()).result.unwrap_err();
        assert!(fault.kind == FaultKind::Unavailable && fault.message.contains("/nowhere/at/all"), "{fault:?}");
    }
}

/// A worker that died before it had read anything is silently replaced, once.
pub(crate) fn a_worker_that_died_idle_is_replaced() {
    let folder = std::env::temp_dir().join(format!("mainspring-sandbox-{}", process::id()));
    fs::create_dir_all(&folder).unwrap();
    let mark = folder.join("died");
    let mut command = command("--die-the-first-time");
    command.arguments.push(mark.clone().into());
    let workers = Workers::with_count(command, 1);
    assert_eq!(workers.call("", &good()).result.as_deref(), Ok("42"));
    assert!(mark.exists(), "the first worker has not run");
    fs::remove_dir_all(&folder).unwrap();
}

fn die_the_first_time() {
    let mark = std::env::args().nth(2).unwrap();
    if path::Path::new(&mark).exists() {
        worker::serve(io::stdin(), io::stdout(), false).unwrap();
    } else {
        fs::write(mark, "").unwrap();
    }
}

/// Reads a request as a worker does, and responds with these bytes.
fn take_and_say(bytes: &[u8]) {
    let mut length = [0; 4];
    io::stdin().read_exact(&mut length).unwrap();
    io::stdin().read_exact(&mut vec![0; u32::from_le_bytes(length) as usize]).unwrap();
    io::stdout().write_all(&[&[0x51], bytes].concat()).unwrap();
    io::stdout().flush().unwrap();
}

fn never_answer() {
    take_and_say(&[]);
    let _ = io::stdin().read(&mut [0]);
}

pub(crate) fn workers_are_shared_and_used_again() {
    let workers = Workers::with_count(command(WORKER), 2);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..20).for_each(|_| assert_eq!(workers.call("", &good()).result.as_deref(), Ok("42"))));
        }
    });
    assert!((1..=2).contains(&children_of(process::id()).len()));
    assert_eq!(workers.call("", &request(NATIVE, 100)).result.unwrap_err().kind, FaultKind::TimeExceeded);
    assert_eq!(workers.call("", &good()).result.as_deref(), Ok("42"));
    drop(workers);
    assert_eq!(children_of(process::id()), [0; 0]);
}

/// A worker gives the same answer as this process, to the byte.
pub(crate) fn workers_answer_like_this_process() {
    let workers = Workers::new(command(WORKER));
    for source in [
        "export default (x: number) => ({x, now: new Date(), r: [Math.random(), Math.random()]})",
        "export default (x) => { console.log(x, [x]); throw new Error('no') }",
        "export default () => { for (;;); }",
        "export default () => { const f = () => f(); f() }",
        "export default () => { let l; for (;;) l = {l} }",
        "export default (",
    ] {
        let mut request = request(source, 10_000);
        request.limits.ticks_max = 500;
        assert_eq!(workers.call("", &request), evaluate(&request), "{source}");
    }
}

pub(crate) fn a_worker_is_confined() {
    let hello = Workers::with_count(command(WORKER), 1).hello().result.unwrap();
    let all = r#"{"resourceLimits":true,"noNewPrivileges":true,"systemCalls":true,"endsWithParent":true,"noCapabilities":true}"#;
    assert_eq!(hello, all);
    let output = Command::new("/proc/self/exe").arg("--look-around").output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "open no\nlist no\nwrite no\nlisten no\nstart no\nallocate no\nsignal no\nlimit no\nbecome root no\n"
    );
}

/// Tries actions that a worker must not be able to perform.
fn check_confinement() {
    use rustix::process::{Resource, Rlimit, Signal, getppid, getrlimit, kill_process, prlimit};
    let parent = getppid().unwrap();
    // More memory than a worker may use, to show that the machine has it.
    let much = || Vec::<u8>::new().try_reserve_exact(2 << 30).is_ok();
    assert!(much(), "the machine itself has no room");
    let files = getrlimit(Resource::Nofile);
    assert!(worker::confine().system_calls);
    let told = |what: &str, can: bool| println!("{what} {}", if can { "yes" } else { "no" });
    told("open", fs::File::open("/etc/passwd").is_ok());
    told("list", fs::read_dir("/").is_ok());
    told("write", fs::write(std::env::temp_dir().join("mainspring-sandbox-was-here"), "x").is_ok());
    told("listen", net::TcpListener::bind("127.0.0.1:0").is_ok());
    told("start", Command::new("/bin/true").status().is_ok());
    told("allocate", much());
    told("signal", kill_process(parent, Signal::WINCH).is_ok());
    let same = Rlimit { current: files.current, maximum: files.maximum };
    told("limit", prlimit(Some(parent), Resource::Nofile, same).is_ok());
    told("become root", rustix::thread::set_thread_uid(rustix::process::Uid::ROOT).is_ok());
}

/// Runs a worker on a system that rejects filters of system calls.
fn serve_without_seccomp(unconfined: bool) {
    use seccompiler::{BpfProgram, SeccompAction, SeccompFilter, apply_filter};
    let rules = [libc::SYS_seccomp, libc::SYS_prctl].map(|number| (number, Vec::new())).into();
    let refuse = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let architecture = std::env::consts::ARCH.try_into().unwrap();
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, refuse, architecture).unwrap();
    let program: BpfProgram = filter.try_into().unwrap();
    apply_filter(&program).unwrap();
    worker::serve(io::stdin(), io::stdout(), unconfined).unwrap();
}

pub(crate) fn code_is_refused_without_confinement() {
    let workers = Workers::with_count(command("--cannot-be-confined"), 1);
    assert!(workers.hello().result.unwrap().contains(r#""systemCalls":false"#));
    let fault = workers.call("a", &good()).result.unwrap_err();
    assert!(fault.kind == FaultKind::Unavailable && fault.message.contains("MAINSPRING_UNCONFINED_CODE"), "{fault:?}");
    let check = Call::CheckFunction { source: "export default () => 1".into() };
    let fault = workers.call("a", &Request { call: check, limits: Limits::default() }).result.unwrap_err();
    assert_eq!(fault.kind, FaultKind::Unavailable);
    let schema = Request { call: Call::CheckSchema { schema: "{}".into() }, limits: Limits::default() };
    assert!(workers.call("a", &schema).result.is_ok(), "a schema is no code");
    let workers = Workers::with_count(command("--need-not-be-confined"), 1);
    assert_eq!(workers.call("a", &good()).result.as_deref(), Ok("42"));
}

/// One tenant keeps all of its workers busy while another is answered.
pub(crate) fn tenants_do_not_wait_for_each_other() {
    let workers = Workers::with_count(command(WORKER), 2);
    let done = Mutex::new(false);
    thread::scope(|scope| {
        for _ in 0..5 {
            scope.spawn(|| {
                let answer = workers.call("heavy", &request(NATIVE, 2_000));
                assert_eq!(answer.result.unwrap_err().kind, FaultKind::TimeExceeded);
                assert!(*done.lock().unwrap(), "the other tenant has waited for this call");
            });
        }
        while children_of(process::id()).len() < 2 {
            thread::yield_now();
        }
        assert_eq!(workers.call("light", &good()).result.as_deref(), Ok("42"));
        *done.lock().unwrap() = true;
    });
}

/// A worker ends after a number of calls, and serves one tenant only.
pub(crate) fn a_worker_ends_after_its_calls() {
    let workers = Workers::with_count(command(WORKER), 1);
    let call = |tenant: &str| {
        assert_eq!(workers.call(tenant, &good()).result.as_deref(), Ok("42"));
        children_of(process::id())
    };
    let first = call("a");
    assert_eq!(call("a"), first);
    let both = call("b");
    assert!(both.len() == 2 && both.iter().all(|one| call("a").contains(one)), "{both:?}");
    while call("a").contains(&first[0]) {}
}

/// A tenant with frequent calls gets a second worker, if the pool has an unused slot for it.
pub(crate) fn a_tenant_with_frequent_calls_gets_a_second_worker() {
    let workers = Workers::with_count(command(WORKER), 2);
    let call_often =
        |workers: &Workers| (0..100).for_each(|_| assert_eq!(workers.call("a", &good()).result.as_deref(), Ok("42")));
    // A slow machine may delay some calls for too long, so that they do not count as frequent.
    while children_of(process::id()).len() < 2 {
        call_often(&workers);
    }
    call_often(&workers);
    assert_eq!(children_of(process::id()).len(), 2);
    drop(workers);
    assert_eq!(children_of(process::id()), [0; 0]);
    let workers = Workers::with_count(command(WORKER), 1);
    call_often(&workers);
    assert_eq!(children_of(process::id()).len(), 1, "a pool of one ordinary slot has no room for a second worker");
}

/// After a parent is killed no worker remains, neither an idle one nor one in a native call.
pub(crate) fn workers_end_with_their_parent() {
    let mut parent = Command::new("/proc/self/exe").arg("--be-a-parent").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(parent.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    let workers = children_of(parent.id());
    assert_eq!(workers.len(), 2);
    parent.kill().unwrap();
    parent.wait().unwrap();
    while workers.iter().any(|worker| is_alive(*worker)) {
        thread::yield_now();
    }
}

fn be_a_parent() {
    let workers = Workers::with_count(command(WORKER), 2);
    thread::scope(|scope| {
        scope.spawn(|| workers.call("", &request(NATIVE, 600_000)));
        while children_of(process::id()).is_empty() {
            thread::yield_now();
        }
        while children_of(process::id()).len() < 2 {
            workers.call("", &good());
        }
        println!("ready");
    });
}

/// Lists the living children of a process; zombies are left out.
fn children_of(parent: u32) -> Vec<u32> {
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    all.filter(|process| status_of(*process).is_some_and(|(state, its)| its == parent && state != 'Z')).collect()
}

fn is_alive(process: u32) -> bool {
    status_of(process).is_some_and(|(state, _)| state != 'Z')
}

/// Returns the state and the parent of a process: proc_pid_stat(5), after the name in parentheses.
fn status_of(process: u32) -> Option<(char, u32)> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// The host's time zone is not visible, also without a worker.
pub(crate) fn dates_are_equal_in_every_time_zone() {
    let told = |zone: &str| Command::new("/proc/self/exe").arg("--tell-dates").env("TZ", zone).output().unwrap().stdout;
    let utc = told("UTC0");
    assert!(utc.starts_with(b"Ok("), "{}", String::from_utf8_lossy(&utc));
    for zone in ["EST5EDT,M3.2.0,M11.1.0", "<+0545>-5:45", "<-12>12"] {
        assert_eq!(String::from_utf8_lossy(&told(zone)), String::from_utf8_lossy(&utc), "{zone}");
    }
}

fn print_dates() {
    let source = "export default () => {
        const all = [];
        for (const date of [new Date(), new Date(2020, 6, 1, 3), new Date('2020-07-01T03:00'), new Date('1 Jul 2020 3:00'),
                            new Date('2020-07-01'), new Date('x'), new Date(Date.parse('Jul 1 2020 3:00 EST'))]) {
            for (const name of Object.getOwnPropertyNames(Date.prototype)) {
                if (/^(get|to)/.test(name)) {
                    try { all.push(name, date[name]()) } catch (error) { all.push(String(error)) }
                }
            }
            date.setHours(5); date.setMonth(1, 3); date.setMinutes(7, 8, 9); all.push(date, String(date), `${date}`, date + 1);
        }
        return [all, Date()]
    }";
    println!("{:?}", evaluate(&request(source, 10_000)).result);
}
