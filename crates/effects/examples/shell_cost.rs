//! Measures the cost of a shell step: fifty times `echo hi`, as a step and as `bash -lc` alone. Prints the CPU time
//! (user and system, with children) and the elapsed time of one run. It is a measurement, not a test.

use std::{
    fs,
    process::Command,
    time::{Duration, Instant},
};

use mainspring_effects::{
    CancelHandle, Executor,
    shell::{GRACE_DEFAULT, Shell, ShellOptions, contain::Scripts},
};
use mainspring_kernel::{
    effect::{Attempt, AttemptFlags, Outcome},
    hash::Hash,
    key::ExecutionKey,
    value::Value,
};

const RUNS: u32 = 50;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let records = std::env::temp_dir().join(format!("shell-cost-{}", std::process::id()));
    let options = ShellOptions {
        records: records.clone(),
        same_boot: true,
        untrusted_before_ms: 0,
        hidden_env: vec![],
        grace: GRACE_DEFAULT,
        traces: false,
        scripts: Scripts::Uncontained,
        needs_workspace: false,
    };
    let shell = Shell::new(options);
    let mut attempt = Attempt {
        execution: ExecutionKey([0; 16]),
        root: ExecutionKey([0; 16]),
        execution_id: "cost".into(),
        organization: None,
        workflow_id: None,
        step: "echo".into(),
        number: 0,
        effect: "bash".into(),
        params: Value::map([("command", Value::from("echo hi"))]),
        intent: Hash([0; 32]),
        flags: AttemptFlags::default(),
        handed_out_at: u64::MAX,
        workspace: None,
        secrets: mainspring_kernel::secret::SecretUses::default(),
        progress: None,
    };
    for round in ["first", "second"] {
        let (cpu, begun) = (cpu_time(), Instant::now());
        for _ in 0..RUNS {
            Command::new("bash").args(["-lc", "echo hi"]).output().expect("bash runs");
        }
        report(round, "bash -lc", cpu_time() - cpu, begun.elapsed());
        let (cpu, begun) = (cpu_time(), Instant::now());
        for number in 0..RUNS {
            attempt.number = number;
            let (_cancel_handle, stop) = CancelHandle::pair();
            assert!(matches!(shell.perform(&attempt, stop).await, Outcome::Done(_)), "the step succeeds");
            shell.forget((&attempt).into());
        }
        report(round, "step", cpu_time() - cpu, begun.elapsed());
    }
    fs::remove_dir_all(records).expect("the records were made");
}

fn report(round: &str, what: &str, cpu: Duration, elapsed: Duration) {
    println!("{round} {what:>8}: {:>5.1?} CPU, {:>5.1?} elapsed", cpu / RUNS, elapsed / RUNS);
}

/// Returns the CPU time of this process and of its reaped children, in units of the clock tick of 10 ms.
fn cpu_time() -> Duration {
    let stat = fs::read_to_string("/proc/self/stat").expect("/proc is there");
    let fields = stat.rsplit_once(") ").expect("a name in parentheses").1.split_whitespace();
    let ticks: u64 = fields.skip(11).take(4).map(|field| field.parse::<u64>().expect("a number")).sum();
    Duration::from_millis(ticks * 10)
}
