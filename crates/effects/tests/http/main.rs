//! Tests of the http executor with real connections to local servers.

mod addresses;
mod bodies;
mod redirects;
mod requests;
mod server;
mod statuses;
mod stops;
mod tls;

use std::{
    io,
    net::IpAddr,
    sync::{Arc, Mutex},
};

use mainspring_effects::{
    BoxFuture, CancelHandle, Executor,
    http::{Http, HttpOptions, Resolver},
};
use mainspring_kernel::{
    effect::{Attempt, AttemptFlags, Outcome},
    failure::{Class, Failure},
    hash::Hash,
    key::ExecutionKey,
    value::{Map, Value},
};

/// Makes an executor with these exceptions to the public internet.
fn http_to(allow: &str) -> Http {
    Http::new(HttpOptions { allow: allow.parse().unwrap(), ..HttpOptions::default() })
}

fn attempt_number<const N: usize>(number: u32, url: &str, params: [(&str, Value); N]) -> Attempt {
    let mut params: Map = params.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
    params.insert("url".into(), url.into());
    Attempt {
        execution: ExecutionKey([5; 16]),
        root: ExecutionKey([6; 16]),
        execution_id: "nightly-42".into(),
        organization: None,
        workflow_id: None,
        step: "fetch".into(),
        number,
        effect: "http".into(),
        params: Value::Map(params),
        intent: Hash([0xab; 32]),
        flags: AttemptFlags::default(),
        handed_out_at: u64::MAX,
        workspace: None,
        secrets: mainspring_kernel::secret::SecretUses::default(),
        progress: None,
    }
}

fn attempt<const N: usize>(url: &str, params: [(&str, Value); N]) -> Attempt {
    attempt_number(1, url, params)
}

async fn perform(http: &Http, attempt: &Attempt) -> Outcome {
    let (_cancel_handle, stop) = CancelHandle::pair();
    http.perform(attempt, stop).await
}

/// Performs a request with an executor that may connect to the loopback address.
async fn run<const N: usize>(url: &str, params: [(&str, Value); N]) -> Outcome {
    perform(&http_to("127.0.0.1"), &attempt(url, params)).await
}

#[track_caller]
fn done(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Done(result) => result,
        other => panic!("not done: {other:?}"),
    }
}

#[track_caller]
fn failed(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("not failed: {other:?}"),
    }
}

#[track_caller]
fn assert_failed(outcome: Outcome, code: &str, class: Class) -> Failure {
    let failure = failed(outcome);
    assert_eq!((failure.code.as_str(), failure.class), (code, class), "{failure:?}");
    failure
}

/// Returns the item at a path of keys.
#[track_caller]
fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    path.split('/').fold(value, |value, key| value.get(key).unwrap_or_else(|| panic!("no {path} in {value:?}")))
}

/// Resolves each lookup to the next list of addresses, and to the last one from then on.
struct Scripted(Mutex<Vec<Vec<IpAddr>>>);

impl Scripted {
    fn new(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |answer: &&[&str]| answer.iter().map(|address| address.parse().unwrap()).collect();
        Arc::new(Self(Mutex::new(answers.iter().rev().map(parse).collect())))
    }

    fn left_count(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

impl Resolver for Scripted {
    fn resolve<'a>(&'a self, _: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        let mut answers = self.0.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop() } else { answers.last().cloned() };
        Box::pin(async { answer.ok_or_else(|| io::Error::other("no such name")) })
    }
}
