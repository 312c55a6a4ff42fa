//! Measures the cost of a call: in this process, and in a worker. Run it with `cargo run --release -p
//! mainspring-sandbox --example sandbox_cost`.

use mainspring_sandbox::{Call, Function, Limits, Request, Validate, WorkerCommand, Workers, evaluate, worker};
use std::io;
use std::time::{Duration, Instant};

const CALLS: u32 = 2_000;
const WORKER: &str = "--be-a-worker";

fn main() -> io::Result<()> {
    if std::env::args().any(|argument| argument == WORKER) {
        return worker::serve(io::stdin(), io::stdout(), false);
    }
    let command = WorkerCommand { program: "/proc/self/exe".into(), arguments: vec![WORKER.into()] };
    let [one, two] = [1, 2].map(|count| Workers::with_count(command.clone(), count));
    let function = |source: &str| {
        Call::Function(Function {
            source: source.to_owned(),
            input: r#"{"a": 1, "list": [1, 2, 3]}"#.to_owned(),
            now_ms: 0,
            seed: [1; 32],
        })
    };
    let schema = r#"{"properties": {"a": {"type": "integer"}, "b": {"default": 2}}}"#.to_owned();
    let calls = [
        ("JavaScript", function("export default (input) => input.a + 1")),
        ("TypeScript", function("export default (input: {a: number}): number => input.a + 1")),
        ("an error", function("export default (input) => input.b.c")),
        ("a schema", Call::Validate(Validate { schema, value: r#"{"a": 1}"#.to_owned(), fill_defaults: true })),
    ];
    for (name, call) in calls {
        let request = Request { call, limits: Limits::default() };
        let first = took(1, || drop(one.call("", &request)));
        let warm = took(CALLS, || drop(one.call("", &request)));
        let in_turn = took(CALLS, || drop(two.call("", &request)));
        let here = took(100, || drop(evaluate(&request)));
        println!(
            "{name:12} first {first:>9.1?}   in one worker {warm:>9.1?}   in two {in_turn:>9.1?}   \
            here, with its thread {here:>9.1?}"
        );
    }
    Ok(())
}

/// Returns the mean time of one call.
fn took(count: u32, work: impl Fn()) -> Duration {
    let begun = Instant::now();
    (0..count).for_each(|_| work());
    begun.elapsed() / count
}
