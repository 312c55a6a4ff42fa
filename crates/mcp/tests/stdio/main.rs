//! Connections to servers as processes: calls, errors, cancellation, changes, crashes and hostile servers.

mod reports;
mod server;

use std::{
    collections::BTreeMap,
    env,
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use libtest_mimic::{Arguments, Trial};
use mainspring_effects::{
    CancelHandle, CancelSignal, Executor,
    http::{SystemResolver, TlsRoots},
    stdio::Uncontained,
};
use mainspring_kernel::{
    effect::{Attempt, AttemptFlags, Outcome},
    hash::Hash,
    json,
    key::ExecutionKey,
    value::Value,
};
use mainspring_mcp::{
    config::{ServerConfig, StdioConfig, TransportConfig},
    connection::{Access, Connection, Scope},
    executor::{CheckArguments, Tools},
    http::HttpAccess,
    pool::Pool,
};
use tempfile::TempDir;

/// Bounds each test. The slowest one waits for a handshake that never ends.
const TEST_TIMEOUT: Duration = Duration::from_secs(90);

fn main() {
    if let Ok(mode) = env::var(server::MODE) {
        return server::serve(&mode);
    }
    let mut tests: Vec<Trial> = vec![
        trial("results_become_outcomes", results_become_outcomes),
        trial("errors_become_failures_with_help", errors_become_failures_with_help),
        trial("a_server_of_the_version_without_handshake_is_used", a_server_of_the_version_without_handshake_is_used),
        trial("a_server_of_an_unknown_version_is_not_used", a_server_of_an_unknown_version_is_not_used),
        trial("a_cancellation_reaches_the_server", a_cancellation_reaches_the_server),
        trial("a_dead_server_is_started_again_for_the_next_call", a_dead_server_is_started_again_for_the_next_call),
        trial("a_changed_list_is_read_again", a_changed_list_is_read_again),
        trial("a_server_sees_the_workspace_and_no_secret_variable", a_server_sees_the_workspace_and_no_secret_variable),
        trial("the_intent_travels_with_the_call", the_intent_travels_with_the_call),
        trial("a_name_that_two_servers_have_is_an_error", a_name_that_two_servers_have_is_an_error),
        trial("hostile_lists_are_errors", hostile_lists_are_errors),
        trial("hostile_messages_end_the_connection", hostile_messages_end_the_connection),
        trial("a_list_ends_with_the_page_that_is_too_large", a_list_ends_with_the_page_that_is_too_large),
        trial("the_cache_time_of_a_list_is_bounded", the_cache_time_of_a_list_is_bounded),
        trial("a_broken_server_is_named_in_the_lookup_of_a_tool", a_broken_server_is_named_in_the_lookup_of_a_tool),
        trial("a_slow_server_is_named_in_the_lookup_of_a_tool", a_slow_server_is_named_in_the_lookup_of_a_tool),
        trial("a_name_is_looked_up_at_a_bounded_number_of_servers", a_name_is_looked_up_at_a_bounded_number_of_servers),
        trial("a_server_that_exits_is_quoted", a_server_that_exits_is_quoted),
        trial("idle_connections_close", idle_connections_close),
        trial("a_process_ends_with_its_connection", a_process_ends_with_its_connection),
        trial("a_wait_for_a_server_that_starts_is_canceled", a_wait_for_a_server_that_starts_is_canceled),
        trial("arguments_are_checked_before_the_call", arguments_are_checked_before_the_call),
    ];
    tests.extend(trials_of_reports());
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}

fn trial(name: &str, test: fn(&Bench)) -> Trial {
    let run = move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let bench = Bench { runtime, folder: TempDir::new()? };
        test(&bench);
        bench.runtime.shutdown_timeout(Duration::from_secs(5));
        Ok(())
    };
    Trial::test(name, run)
}

fn trials_of_reports() -> Vec<Trial> {
    vec![
        trial("a_tool_is_pinned_before_its_first_call", reports::a_tool_is_pinned_before_its_first_call),
        trial("a_changed_or_removed_tool_is_not_called", reports::a_changed_or_removed_tool_is_not_called),
        trial("a_form_is_answered_over_the_open_call", reports::a_form_is_answered_over_the_open_call),
        trial("a_form_of_a_lost_call_is_interrupted", reports::a_form_of_a_lost_call_is_interrupted),
        trial(
            "a_call_that_ends_without_the_answer_is_detected",
            reports::a_call_that_ends_without_the_answer_is_detected,
        ),
        trial("a_stop_ends_an_open_call", reports::a_stop_ends_an_open_call),
        trial("a_call_that_needs_input_is_resent_with_it", reports::a_call_that_needs_input_is_resent_with_it),
        trial("a_task_is_polled_and_not_repeated", reports::a_task_is_polled_and_not_repeated),
        trial(
            "a_task_that_its_server_has_lost_is_interrupted",
            reports::a_task_that_its_server_has_lost_is_interrupted,
        ),
        trial("a_stop_cancels_a_task_except_at_shutdown", reports::a_stop_cancels_a_task_except_at_shutdown),
        trial("an_undisplayable_form_is_not_recorded", reports::an_undisplayable_form_is_not_recorded),
        trial("texts_of_a_form_show_hidden_characters", reports::texts_of_a_form_show_hidden_characters),
        trial(
            "form_fields_may_have_names_of_built_in_members",
            reports::form_fields_may_have_names_of_built_in_members,
        ),
        trial("further_forms_of_a_call_are_presented", reports::further_forms_of_a_call_are_presented),
        trial("a_withdrawn_form_ends_its_call_or_its_task", reports::a_withdrawn_form_ends_its_call_or_its_task),
        trial("an_endless_task_is_polled_until_it_is_stopped", reports::an_endless_task_is_polled_until_it_is_stopped),
        trial("a_completed_task_is_polled_once", reports::a_completed_task_is_polled_once),
        trial(
            "a_pinned_tool_changed_while_connected_is_not_called",
            reports::a_pinned_tool_changed_while_connected_is_not_called,
        ),
    ]
}

/// The surroundings of one test.
struct Bench {
    runtime: tokio::runtime::Runtime,
    folder: TempDir,
}

impl Bench {
    fn server(&self, name: &str, mode: &str) -> ServerConfig {
        let own = env::current_exe().unwrap().display().to_string();
        let env = BTreeMap::from([
            (server::MODE.to_owned(), mode.to_owned().into()),
            (server::LOG.to_owned(), self.log_path().display().to_string().into()),
        ]);
        let transport = TransportConfig::Stdio(StdioConfig { command: own, args: Vec::new(), env, cwd: None });
        ServerConfig { name: name.to_owned(), transport }
    }

    fn log_path(&self) -> PathBuf {
        self.folder.path().join("log")
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.log_path()).unwrap_or_default()
    }

    /// Counts the running servers of this test.
    fn process_count(&self) -> usize {
        let marker = self.log_path().display().to_string();
        let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
            let environment = std::fs::read(entry.ok()?.path().join("environ")).ok()?;
            String::from_utf8_lossy(&environment).contains(&marker).then_some(())
        });
        processes.count()
    }

    fn pool(&self, servers: Vec<ServerConfig>) -> Arc<Pool> {
        Arc::new(Pool::new(servers, access(), Duration::from_secs(60)))
    }

    fn tools(&self) -> Tools {
        Tools::new(self.pool(vec![self.server("test", "legacy")]))
    }

    fn attempt(&self, tool: &str, arguments: &str) -> Attempt {
        let arguments = json::value(arguments.as_bytes()).unwrap();
        Attempt {
            execution: ExecutionKey::new(0, [0; 10]),
            root: ExecutionKey::new(0, [0; 10]),
            execution_id: "exe_1".into(),
            organization: None,
            workflow_id: None,
            step: "call".into(),
            number: 1,
            effect: "tool".into(),
            params: Value::map([("tool", tool.into()), ("arguments", arguments)]),
            intent: Hash::of(b"intent"),
            flags: AttemptFlags::default(),
            handed_out_at: 0,
            workspace: Some(self.folder.path().display().to_string()),
            secrets: mainspring_kernel::secret::SecretUses::default(),
            progress: None,
        }
    }

    fn perform(&self, tools: &Tools, tool: &str, arguments: &str) -> Outcome {
        let (_stopper, stop) = CancelHandle::pair();
        self.perform_until(tools, &self.attempt(tool, arguments), stop)
    }

    fn perform_until(&self, tools: &Tools, attempt: &Attempt, stop: CancelSignal) -> Outcome {
        let performed = async { tokio::time::timeout(TEST_TIMEOUT, tools.perform(attempt, stop)).await };
        self.runtime.block_on(performed).expect("the attempt ends in time")
    }
}

fn access() -> Access {
    let http = HttpAccess {
        allow: "127.0.0.1".parse().unwrap(),
        trust: TlsRoots::default(),
        resolver: Arc::new(SystemResolver),
        connect_timeout: Duration::from_secs(5),
    };
    Access { start: Arc::new(Uncontained), http, secrets: None }
}

/// Returns an outcome as text: `done JSON`, `failed CLASS CODE: MESSAGE` or `stopped`.
fn shown(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Done(value) => format!("done {}", json::canonical(value)),
        Outcome::Failed(failure) => format!("failed {} {}: {}", failure.class.name(), failure.code, failure.message),
        Outcome::Stopped(_) => "stopped".into(),
        other => format!("{other:?}"),
    }
}

fn check(bench: &Bench, tools: &Tools, tool: &str, arguments: &str, expected: &str) {
    let outcome = shown(&bench.perform(tools, tool, arguments));
    assert!(outcome.contains(expected), "{tool}: {} does not contain {expected}", &outcome[..outcome.len().min(2_000)]);
}

fn results_become_outcomes(bench: &Bench) {
    let tools = bench.tools();
    let check = |tool, arguments, expected| check(bench, &tools, tool, arguments, expected);
    check("echo", r#"{"a": [1, 2.5, "x"]}"#, r#"done [{"text":"{\"a\":[1,2.5,\"x\"]}","type":"text"}]"#);
    check("test.echo", "null", r#"done [{"text":"null","type":"text"}]"#);
    check("test.structured", "{}", r#"done {"total":3}"#);
    check("test.new-block", "{}", r#"done [{"data":[1,2],"type":"hologram"}]"#);
    check("test.garbage", "{}", "after garbage");
    check("test.asks", "{}", "asked");
    check("test.samples", "{}", "sampled");
    // Text of a server is data: no reference and no template in it is read.
    check("test.escape", "{}", "@echo.text {{secret}}");
}

fn errors_become_failures_with_help(bench: &Bench) {
    let tools = bench.tools();
    let check = |tool, arguments, expected| check(bench, &tools, tool, arguments, expected);
    check(
        "fail",
        "{}",
        "failed failed tool_error: step `call`: the tool `fail` of the server `test` failed: disk full",
    );
    check(
        "test.reject",
        "{}",
        "failed invalid tool_call_invalid: step `call`: the tool server `test` rejected the call",
    );
    check("echo", "[1]", "failed invalid tool_arguments_invalid");
    check("ecko", "{}", "`mainspring tools` lists the tools");
    check("ech", "{}", "did you mean `test.echo`?");
    check("test.large", "{}", "tool_answer_invalid");
    check("test.input", "{}", "failed policy tool_input_required");
    check("test.crash", "{}", "failed unavailable tool_connection_lost");
}

fn a_server_of_the_version_without_handshake_is_used(bench: &Bench) {
    let versions = [("modern", "2026-07-28"), ("legacy", "2025-11-25")];
    for (mode, expected) in versions {
        let config = bench.server("test", mode);
        let version = bench.runtime.block_on(async {
            let connection = Connection::open(&config, &Scope::default(), &access()).await.unwrap();
            let tools = connection.tools().await.unwrap();
            assert_eq!(tools.tools().len(), 3, "both pages are read");
            let version = connection.protocol_version();
            connection.close().await;
            version
        });
        assert_eq!(version.as_deref(), Some(expected));
        let tools = Tools::new(bench.pool(vec![config]));
        check(bench, &tools, "echo", "{}", "done [");
    }
}

fn a_server_of_an_unknown_version_is_not_used(bench: &Bench) {
    let tools = Tools::new(bench.pool(vec![bench.server("test", "unknown")]));
    check(
        bench,
        &tools,
        "echo",
        "{}",
        "it speaks version `2031-01-01` of the protocol, and this release speaks 2024-11-05,",
    );
    assert!(!bench.log().contains("call"), "{}", bench.log());
}

fn a_cancellation_reaches_the_server(bench: &Bench) {
    let tools = bench.tools();
    let attempt = bench.attempt("test.never", "{}");
    let (stopper, stop) = CancelHandle::pair();
    bench.runtime.spawn({
        let log = bench.log_path();
        async move {
            until(|| std::fs::read_to_string(&log).is_ok_and(|log| log.contains("call never"))).await;
            stopper.cancel();
        }
    });
    assert_eq!(shown(&bench.perform_until(&tools, &attempt, stop)), "stopped");
    bench.runtime.block_on(until(|| bench.log().contains("cancelled")));
}

/// Returns once a condition holds. The test's own time limit bounds it.
async fn until(holds: impl Fn() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < TEST_TIMEOUT, "the condition holds in time");
        tokio::task::yield_now().await;
    }
}

fn a_dead_server_is_started_again_for_the_next_call(bench: &Bench) {
    let tools = bench.tools();
    check(bench, &tools, "test.crash", "{}", "out of memory");
    check(bench, &tools, "test.echo", "{}", "done [");
}

fn a_changed_list_is_read_again(bench: &Bench) {
    let tools = bench.tools();
    check(bench, &tools, "grown", "{}", "tool_unknown");
    check(bench, &tools, "grow", "{}", "done");
    check(bench, &tools, "grown", "{}", "no tool grown");
}

fn a_server_sees_the_workspace_and_no_secret_variable(bench: &Bench) {
    let tools = bench.tools();
    let workspace = bench.folder.path().canonicalize().unwrap().display().to_string();
    check(bench, &tools, "test.directory", "{}", &workspace);
    let variables = shown(&bench.perform(&tools, "test.env", "{}"));
    assert!(variables.contains("PATH") && variables.contains(server::MODE), "{variables}");
    assert!(!variables.contains("CARGO"), "variables of this process are not inherited: {variables}");
}

fn the_intent_travels_with_the_call(bench: &Bench) {
    let tools = bench.tools();
    check(bench, &tools, "test.echo", "{}", "done");
    assert_eq!(bench.log(), format!("call echo {}\n", Hash::of(b"intent").hex()));
}

fn a_name_that_two_servers_have_is_an_error(bench: &Bench) {
    let tools = Tools::new(bench.pool(vec![bench.server("one", "legacy"), bench.server("two", "legacy")]));
    check(bench, &tools, "echo", "{}", "write `one.echo`, `two.echo`");
    check(bench, &tools, "two.echo", "{}", "done");
}

fn hostile_lists_are_errors(bench: &Bench) {
    let modes = [
        ("endless-pages", "does not end"),
        ("same-cursor", "does not end"),
        ("twice", "lists the tool `echo` twice"),
        ("ten-thousand", "more than 2000 tools"),
    ];
    for (mode, expected) in modes {
        let tools = Tools::new(bench.pool(vec![bench.server("test", mode)]));
        check(bench, &tools, "echo", "{}", expected);
    }
}

/// An answer that is not read would be silence until the timeout, after which the call is repeated.
fn hostile_messages_end_the_connection(bench: &Bench) {
    let tools = bench.tools();
    let check = |tool, expected| check(bench, &tools, tool, "{}", expected);
    check("test.huge", "failed invalid tool_answer_invalid");
    check("test.huge", "a message has more than 2 MiB");
    check("test.wide", "a message has more than 2 MiB");
    check("test.deep", "a message cannot be read: recursion limit exceeded");
    check("test.flood", "it sent more than 64 requests without reading the answers");
    check("test.long-id", "the id of a request has more than 256 bytes");
    check("test.echo", "done [");
}

fn a_list_ends_with_the_page_that_is_too_large(bench: &Bench) {
    let tools = Tools::new(bench.pool(vec![bench.server("test", "large-pages")]));
    check(bench, &tools, "echo", "{}", "its tools are described in more than 8 MiB");
    assert_eq!(bench.log().lines().last(), Some("page 8"), "no further page is requested");
}

fn the_cache_time_of_a_list_is_bounded(bench: &Bench) {
    let tools = Tools::new(bench.pool(vec![bench.server("test", "cached")]));
    check(bench, &tools, "echo", "{}", "done [");
    check(bench, &tools, "test.grow-quietly", "{}", "done [");
    check(bench, &tools, "grown", "{}", "no tool grown");
}

fn a_broken_server_is_named_in_the_lookup_of_a_tool(bench: &Bench) {
    let servers = vec![missing("broken"), bench.server("sound", "legacy")];
    let tools = Tools::new(bench.pool(servers));
    let expected = "failed unavailable tool_server_not_connected: step `call`: the tool `echo` is named without its \
        server, and not all servers can be searched: write `sound.echo`. the tool server `broken` cannot be started";
    check(bench, &tools, "echo", "{}", expected);
    check(bench, &tools, "none", "{}", "write `SERVER.none`. the tool server `broken` cannot be started");
    check(bench, &tools, "sound.echo", "{}", "done [");
    let servers = vec![missing("broken"), bench.server("one", "legacy"), bench.server("two", "legacy")];
    let tools = Tools::new(bench.pool(servers));
    check(bench, &tools, "echo", "{}", "write `one.echo`, `two.echo`");
}

fn a_slow_server_is_named_in_the_lookup_of_a_tool(bench: &Bench) {
    let servers = vec![bench.server("slow", "silent"), bench.server("sound", "legacy")];
    let tools = Tools::new(bench.pool(servers)).with_lookup_timeout(Duration::from_secs(1));
    // Lists of a connection that is open are found at once.
    check(bench, &tools, "sound.echo", "{}", "done [");
    let expected = "write `sound.echo`. the tool server `slow` did not list its tools within 1 s";
    check(bench, &tools, "echo", "{}", expected);
}

fn a_name_is_looked_up_at_a_bounded_number_of_servers(bench: &Bench) {
    let servers = (0..33).map(|number| missing(&format!("s{number}"))).collect();
    let tools = Tools::new(bench.pool(servers));
    let expected = "failed invalid tool_ambiguous: step `call`: the tool `echo` is named without its server, which is \
        possible with up to 32 servers, and 33 are configured: write `SERVER.echo`";
    check(bench, &tools, "echo", "{}", expected);
}

/// A server whose program does not exist.
fn missing(name: &str) -> ServerConfig {
    let command = "no-such-program".into();
    let stdio = StdioConfig { command, args: Vec::new(), env: BTreeMap::new(), cwd: None };
    ServerConfig { name: name.to_owned(), transport: TransportConfig::Stdio(stdio) }
}

fn a_server_that_exits_is_quoted(bench: &Bench) {
    let tools = Tools::new(bench.pool(vec![bench.server("test", "exits")]));
    check(bench, &tools, "echo", "{}", "no license found");
    let tools = Tools::new(bench.pool(vec![missing("test")]));
    check(bench, &tools, "echo", "{}", "the program `no-such-program` is not in PATH");
}

fn idle_connections_close(bench: &Bench) {
    let pool = Arc::new(Pool::new(vec![bench.server("test", "legacy")], access(), Duration::ZERO));
    let tools = Tools::new(pool.clone());
    check(bench, &tools, "echo", "{}", "done");
    bench.runtime.block_on(async {
        assert_eq!(pool.connection_count().await, 1);
        pool.close_idle().await;
        assert_eq!(pool.connection_count().await, 0);
    });
    check(bench, &tools, "echo", "{}", "done");
}

fn a_process_ends_with_its_connection(bench: &Bench) {
    let config = bench.server("test", "legacy");
    let count = || bench.process_count();
    let connection =
        bench.runtime.block_on(async { Connection::open(&config, &Scope::default(), &access()).await.unwrap() });
    assert_eq!(count(), 1);
    bench.runtime.block_on(async { drop(connection) });
    bench.runtime.block_on(until(|| count() == 0));
}

/// The call ends at once, the server is killed, and its connection holds no place of the organization.
fn a_wait_for_a_server_that_starts_is_canceled(bench: &Bench) {
    let pool = Arc::new(Pool::new(vec![bench.server("test", "silent")], access(), Duration::ZERO));
    let tools = Tools::new(pool.clone());
    let attempt = bench.attempt("test.echo", "{}");
    let (stopper, stop) = CancelHandle::pair();
    bench.runtime.spawn({
        let log = bench.log_path();
        async move {
            until(|| std::fs::read_to_string(&log).is_ok_and(|log| log.contains("silent"))).await;
            stopper.cancel();
        }
    });
    assert_eq!(shown(&bench.perform_until(&tools, &attempt, stop)), "stopped");
    bench.runtime.block_on(async {
        pool.close_idle().await;
        assert_eq!(pool.connection_count().await, 0, "nothing uses the connection");
        until(|| bench.process_count() == 0).await;
    });
}

/// Accepts objects with the key `a` only.
struct OnlyA;

impl CheckArguments for OnlyA {
    fn check(&self, organization: Option<&str>, schema: &Value, arguments: &Value) -> Result<(), String> {
        assert_eq!((organization, schema.get("type").and_then(Value::as_text)), (None, Some("object")));
        let keys: Vec<_> = arguments.as_map().unwrap().keys().map(String::as_str).collect();
        if keys == ["a"] { Ok(()) } else { Err(format!("the keys are {keys:?}\u{1b}")) }
    }
}

fn arguments_are_checked_before_the_call(bench: &Bench) {
    let tools = bench.tools().with_checks(Arc::new(OnlyA));
    check(bench, &tools, "test.echo", r#"{"b": 1}"#, "failed invalid tool_arguments_invalid");
    check(bench, &tools, "echo", "null", "schema of the tool `echo`: the keys are []\\u{1b}");
    assert_eq!(bench.log(), "", "nothing was called");
    check(bench, &tools, "test.echo", r#"{"a": 1}"#, "done");
}
