//! Hostile code in real workers. This program starts itself again as the worker.
//!
//! While each function runs, another call on a second worker must continue to be answered, and the pool must work
//! afterwards. Every request is sent twice and must have the same answer to the byte.

#[path = "hostile/cases.rs"]
mod cases;
#[path = "hostile/pool.rs"]
mod pool;

use libtest_mimic::{Arguments, Trial};
use std::io;
use std::process::ExitCode;

/// The argument that makes this program a worker.
const WORKER: &str = "--be-a-worker";

const TESTS: [(&str, fn()); 15] = [
    ("failing_workers_are_replaced", pool::failing_workers_are_replaced),
    ("a_worker_that_died_idle_is_replaced", pool::a_worker_that_died_idle_is_replaced),
    ("workers_are_shared_and_used_again", pool::workers_are_shared_and_used_again),
    ("workers_answer_like_this_process", pool::workers_answer_like_this_process),
    ("a_worker_is_confined", pool::a_worker_is_confined),
    ("code_is_refused_without_confinement", pool::code_is_refused_without_confinement),
    ("tenants_do_not_wait_for_each_other", pool::tenants_do_not_wait_for_each_other),
    ("a_worker_ends_after_its_calls", pool::a_worker_ends_after_its_calls),
    ("a_tenant_with_frequent_calls_gets_a_second_worker", pool::a_tenant_with_frequent_calls_gets_a_second_worker),
    ("workers_end_with_their_parent", pool::workers_end_with_their_parent),
    ("dates_are_equal_in_every_time_zone", pool::dates_are_equal_in_every_time_zone),
    ("hostile_functions", cases::functions),
    ("hostile_sources", cases::sources),
    ("hostile_checks", cases::checks),
    ("hostile_schemas", cases::schemas),
];

fn main() -> ExitCode {
    let argument = std::env::args().nth(1).unwrap_or_default();
    if argument == WORKER {
        return match mainspring_sandbox::worker::serve(io::stdin(), io::stdout(), false) {
            Ok(()) => ExitCode::SUCCESS,
            Err(_) => ExitCode::FAILURE,
        };
    }
    if let Some((_, play)) = pool::ROLES.iter().find(|(role, _)| *role == argument) {
        play();
        return ExitCode::SUCCESS;
    }
    let trials = TESTS.iter().map(|(name, test)| {
        Trial::test(*name, || {
            test();
            Ok(())
        })
    });
    // One after the other: the tests count workers and measure time.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
