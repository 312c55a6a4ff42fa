//! Every provider format against the scripted model: answers, tool calls, errors, and what is sent.

use std::sync::Arc;

use mainspring_effects::{
    BoxFuture, CancelHandle, Executor,
    http::{HttpOptions, Resolver, SystemResolver},
};
use mainspring_kernel::{
    effect::{Attempt, AttemptFlags, Outcome},
    failure::{Class, Failure},
    hash::Hash,
    json,
    key::ExecutionKey,
    value::Value,
};
use mainspring_models::{
    config,
    dev::{Script, ScriptedModel},
    executor::Agents,
    provider::Provider,
    tools::{ToolDefinition, ToolSource},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};

fn value(text: &str) -> Value {
    json::value(text.as_bytes()).expect("the test has valid JSON")
}

fn attempt(params: Value) -> Attempt {
    Attempt {
        execution: ExecutionKey::new(0, [0; 10]),
        root: ExecutionKey::new(0, [0; 10]),
        execution_id: "e1".into(),
        organization: None,
        workflow_id: None,
        step: "ask#1".into(),
        number: 1,
        effect: "agent".into(),
        params,
        intent: Hash::of(b"intent"),
        flags: AttemptFlags::default(),
        handed_out_at: 0,
        workspace: None,
        secrets: mainspring_kernel::secret::SecretUses::default(),
        progress: None,
    }
}

/// Describes one tool of a server.
struct OneTool;

impl ToolSource for OneTool {
    fn describe<'a>(
        &'a self,
        names: &'a [String],
        _: &'a Attempt,
    ) -> BoxFuture<'a, Result<Vec<ToolDefinition>, Failure>> {
        let tool = |name: &String| ToolDefinition {
            name: name.clone(),
            description: "reads an issue".into(),
            input_schema: value(r#"{"type": "object"}"#),
            digest: None,
        };
        Box::pin(std::future::ready(Ok(names.iter().map(tool).collect())))
    }
}

fn agents(provider: Provider, port: u16) -> Agents {
    let path = if matches!(provider, Provider::OpenAi | Provider::OpenAiResponses) { "/v1" } else { "" };
    let text = format!(
        r#"{{"m": {{"provider": "{}", "model": "test-1", "baseUrl": "http://127.0.0.1:{port}{path}"}}}}"#,
        provider.name()
    );
    let resolver: Arc<dyn Resolver> = Arc::new(SystemResolver);
    let allow = format!("127.0.0.1:{port}").parse().expect("an entry");
    let http = HttpOptions { allow, resolver, ..HttpOptions::default() };
    Agents::new(config::models(&value(&text)).expect("a model"), http, Some(Arc::new(OneTool)))
}

async fn ask(agents: &Agents, params: &str) -> Outcome {
    let (_handle, signal) = CancelHandle::pair();
    agents.perform(&attempt(value(params)), signal).await
}

async fn start(script: &str) -> u16 {
    let script = Script::parse(script.as_bytes()).expect("a script");
    let model = ScriptedModel::bind(([127, 0, 0, 1], 0).into(), script).expect("a free port");
    let port = model.address().expect("an address").port();
    tokio::spawn(model.run());
    port
}

async fn report(port: u16) -> Value {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.expect("the model listens");
    stream.write_all(b"GET /requests HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.expect("sent");
    let mut response = String::new();
    stream.read_to_string(&mut response).await.expect("an answer");
    value(response.split_once("\r\n\r\n").expect("a body").1)
}

fn done(outcome: Outcome) -> Value {
    match outcome {
        Outcome::Done(value) => value,
        other => panic!("{other:?}"),
    }
}

fn failed(outcome: Outcome) -> Failure {
    match outcome {
        Outcome::Failed(failure) => failure,
        other => panic!("{other:?}"),
    }
}

const CONVERSATION: &str = r#"
answers:
  - toolCalls:
      - {id: c1, name: issues.get, arguments: {id: 7}}
      - {id: c2, name: bash, arguments: {command: "true"}}
    usage: {inputTokens: 100, outputTokens: 7, cachedInputTokens: 40}
  - {when: "it crashes", text: "The issue is a crash."}
"#;

#[tokio::test]
async fn a_conversation_with_tools_is_the_same_in_every_format() {
    for provider in Provider::ALL {
        let port = start(CONVERSATION).await;
        let agents = agents(provider, port);
        let common = r#""goal": "Read issue 7", "instructions": "Be brief", "tools": ["issues.get", "bash"]"#;
        let first = done(ask(&agents, &format!(r#"{{{common}, "turns": []}}"#)).await);
        let calls = first.get("toolCalls").and_then(Value::as_list).expect("calls");
        let names: Vec<_> = calls.iter().filter_map(|call| call.get("name").and_then(Value::as_text)).collect();
        assert_eq!(names, ["issues.get", "bash"], "{provider:?}: the full names come back");
        assert_eq!(calls[0].get("arguments"), Some(&value(r#"{"id": 7}"#)), "{provider:?}");
        let usage = r#"{"inputTokens": 100, "outputTokens": 7, "cachedInputTokens": 40}"#;
        assert_eq!(first.get("usage"), Some(&value(usage)), "{provider:?}");
        assert_eq!(first.get("stopReason").and_then(Value::as_text), Some("tool_calls"), "{provider:?}");

        let turn = Value::map([
            ("answer", first.clone()),
            (
                "results",
                value(
                    r#"[{"output": [{"type": "text", "text": "it crashes"}]},
                          {"error": {"code": "bash_exit_code:1", "message": "it crashes"}}]"#,
                ),
            ),
        ]);
        let params = format!(r#"{{{common}, "turns": [{}]}}"#, json::compact(&turn));
        let second = done(ask(&agents, &params).await);
        assert_eq!(second.get("text").and_then(Value::as_text), Some("The issue is a crash."), "{provider:?}");
        assert_eq!(second.get("toolCalls"), None, "{provider:?}");
        let report = report(port).await;
        assert_eq!(report.get("count").and_then(Value::as_u64), Some(2), "{provider:?}: {report:?}");
        let key = attempt(Value::Null).intent.hex();
        assert!(json::compact(&report).contains(&key), "{provider:?}: the intent is the idempotency key");
    }
}

#[tokio::test]
async fn a_step_without_a_conversation_has_the_output_of_an_agent() {
    let port = start("answers: [{text: hello}]").await;
    let output = done(ask(&agents(Provider::OpenAi, port), r#"{"goal": "Say hello", "context": {"a": 1}}"#).await);
    let expected = r#"{"text": "hello", "value": null, "turns": 1, "stopReason": "end",
        "usage": {"inputTokens": 10, "outputTokens": 5, "cachedInputTokens": 0}}"#;
    assert_eq!(output, value(expected));
    assert!(json::compact(&report(port).await).contains("Context"), "the context is in the message");
}

#[tokio::test]
async fn errors_of_providers_have_classes_by_which_steps_are_retried() {
    let cases = [
        (401, "bad key", Class::Failed, "model_not_authorized"),
        (403, "no", Class::Failed, "model_not_authorized"),
        (429, "slow down", Class::RateLimited, "model_rate_limited"),
        (500, "fault", Class::Unavailable, "model_unavailable"),
        (503, "busy", Class::Unavailable, "model_unavailable"),
        (529, "Overloaded", Class::Unavailable, "model_unavailable"),
        (400, "prompt is too long: 9 > 8", Class::Policy, "model_context_too_long"),
        (400, "no such parameter", Class::Invalid, "model_request_rejected"),
        (404, "no such model", Class::Invalid, "model_request_rejected"),
        (413, "too large", Class::Policy, "model_context_too_long"),
    ];
    for provider in Provider::ALL {
        for (status, message, class, code) in cases {
            let script = format!(
                "answers: [{{text: x, errors: [{{status: {status}, message: '{message}', retryAfterSeconds: 7}}]}}]"
            );
            let port = start(&script).await;
            let agents = agents(provider, port);
            let failure = failed(ask(&agents, r#"{"goal": "g"}"#).await);
            assert_eq!((failure.class, failure.code.as_str()), (class, code), "{provider:?} {status}: {failure:?}");
            assert!(failure.message.contains(message), "{provider:?}: {}", failure.message);
            let delay = failure.details.get("retryAfterMs").and_then(Value::as_u64);
            assert_eq!(delay, class.is_retryable().then_some(7_000), "{provider:?} {status}");
            done(ask(&agents, r#"{"goal": "g"}"#).await);
        }
    }
}

/// A gateway may quote the key that it rejects, and the message of a failure is recorded.
#[tokio::test]
async fn a_key_that_a_provider_quotes_is_not_in_the_failure() {
    let key = "sk-test-0123456789-abcdefghij";
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("quoted.key");
    std::fs::write(&file, format!("{key}\n")).expect("the file is written");
    // The second message is cut in the middle of the key.
    for message in [format!("the key {key} is wrong, not {key}!"), format!("{} {key}", "x".repeat(280))] {
        let port = start(&format!("answers: [{{text: x, errors: [{{status: 401, message: '{message}'}}]}}]")).await;
        let text = format!(
            r#"{{"m": {{"provider": "openai", "model": "t", "baseUrl": "http://127.0.0.1:{port}", "apiKey": {{"file": "{}"}}}}}}"#,
            file.display()
        );
        let http =
            HttpOptions { allow: format!("127.0.0.1:{port}").parse().expect("an entry"), ..HttpOptions::default() };
        let agents = Agents::new(config::models(&value(&text)).expect("a model"), http, None);
        let failure = failed(ask(&agents, r#"{"goal": "g"}"#).await);
        assert_eq!(failure.code, "model_not_authorized");
        assert!(failure.message.contains("***") && !failure.message.contains(&key[..12]), "{}", failure.message);
    }
}

#[tokio::test]
async fn an_answer_that_was_cut_off_leaves_the_outcome_unknown() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut request = [0; 65536];
        let _ = stream.read(&mut request).await;
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{\"choices\": [").await;
    });
    let outcome = ask(&agents(Provider::OpenAi, port), r#"{"goal": "g"}"#).await;
    assert_eq!(outcome, Outcome::Interrupted, "the answer may have been paid for");
}

#[tokio::test]
async fn a_request_without_a_connection_is_a_failure_that_may_pass() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let port = listener.local_addr().expect("an address").port();
    drop(listener);
    let failure = failed(ask(&agents(Provider::OpenAi, port), r#"{"goal": "g"}"#).await);
    assert_eq!((failure.class, failure.code.as_str()), (Class::Unavailable, "http_connect_failed"));
}

#[tokio::test]
async fn a_canceled_request_ends() {
    let port = start("answers: [{hang: true}]").await;
    let agents = agents(Provider::Anthropic, port);
    let (handle, signal) = CancelHandle::pair();
    let attempt = attempt(value(r#"{"goal": "g"}"#));
    let mut performed = agents.perform(&attempt, signal);
    while report(port).await.get("count").and_then(Value::as_u64) != Some(1) {
        let polled = tokio::time::timeout(std::time::Duration::from_millis(5), &mut performed).await;
        assert!(polled.is_err(), "the model never answers");
    }
    handle.cancel();
    assert!(matches!(performed.await, Outcome::Stopped(_)));
}

#[tokio::test]
async fn wrong_parameters_and_unknown_models_are_refused_before_a_request() {
    let port = start("answers: [{text: x}]").await;
    let agents = agents(Provider::Gemini, port);
    for (params, code) in [
        (r#"{"goal": "g", "model": "other"}"#, "model_unknown"),
        (r#"{"goal": "g", "unknown": 1}"#, "model_request_invalid"),
        (r#"{"goal": 1}"#, "model_request_invalid"),
        (r#"{"goal": "g", "model": 1}"#, "model_request_invalid"),
        ("[]", "model_request_invalid"),
    ] {
        let failure = failed(ask(&agents, params).await);
        assert_eq!((failure.code.as_str(), failure.class), (code, Class::Invalid), "{params}");
    }
    assert_eq!(report(port).await.get("count").and_then(Value::as_u64), Some(0));
}

#[test]
fn malformed_answers_are_errors_and_refusals_have_their_codes() {
    let cases = [
        (Provider::Anthropic, "[]", "model_answer_invalid"),
        (Provider::Anthropic, "\"text\"", "model_answer_invalid"),
        (Provider::Anthropic, "{}", "model_answer_invalid"),
        (Provider::Anthropic, r#"{"content": 3, "stop_reason": "end_turn"}"#, "model_answer_invalid"),
        (Provider::Anthropic, r#"{"content": []}"#, "model_answer_invalid"),
        (Provider::Anthropic, r#"{"content": [], "stop_reason": "new"}"#, "model_answer_invalid"),
        (Provider::Anthropic, r#"{"content": [], "stop_reason": "refusal"}"#, "model_refused"),
        (
            Provider::Anthropic,
            r#"{"content": [], "stop_reason": "model_context_window_exceeded"}"#,
            "model_context_too_long",
        ),
        (Provider::OpenAi, "{}", "model_answer_invalid"),
        (Provider::OpenAi, r#"{"choices": []}"#, "model_answer_invalid"),
        (Provider::OpenAi, r#"{"choices": [{}]}"#, "model_answer_invalid"),
        (Provider::OpenAi, r#"{"choices": [{"message": {"content": "x"}}]}"#, "model_answer_invalid"),
        (Provider::OpenAi, r#"{"choices": [{"message": {"refusal": "no"}}]}"#, "model_refused"),
        (
            Provider::OpenAi,
            r#"{"choices": [{"message": {"tool_calls": [{"id": "a"}]}, "finish_reason": "tool_calls"}]}"#,
            "model_answer_invalid",
        ),
        (
            Provider::OpenAi,
            r#"{"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}"#,
            "model_content_filtered",
        ),
        (Provider::OpenAiResponses, "{}", "model_answer_invalid"),
        (Provider::OpenAiResponses, r#"{"output": []}"#, "model_answer_invalid"),
        (
            Provider::OpenAiResponses,
            r#"{"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "no"}]}], "status": "completed"}"#,
            "model_refused",
        ),
        (Provider::OpenAiResponses, r#"{"output": [], "status": "failed"}"#, "model_unavailable"),
        (
            Provider::OpenAiResponses,
            r#"{"output": [], "status": "incomplete", "incomplete_details": {"reason": "content_filter"}}"#,
            "model_content_filtered",
        ),
        (Provider::Gemini, "{}", "model_answer_invalid"),
        (Provider::Gemini, r#"{"promptFeedback": {"blockReason": "SAFETY"}}"#, "model_content_filtered"),
        (Provider::Gemini, r#"{"candidates": [{}]}"#, "model_answer_invalid"),
        (Provider::Gemini, r#"{"candidates": [{"finishReason": "SAFETY"}]}"#, "model_content_filtered"),
    ];
    for (provider, body, code) in cases {
        let error = provider.answer(&value(body)).expect_err(body);
        assert_eq!(error.to_failure("s").code, code, "{provider:?} {body}");
    }
}

#[test]
fn parts_that_must_be_repeated_unchanged_are_kept() {
    let body = r#"{"content": [{"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "text", "text": "x"}],
        "stop_reason": "end_turn"}"#;
    let answer = Provider::Anthropic.answer(&value(body)).expect("an answer");
    assert_eq!(answer.text, "x");
    let raw = answer.raw.expect("the signed part is kept");
    assert_eq!(raw.get("content"), value(body).get("content"));
    let plain = r#"{"content": [{"type": "text", "text": "x"}], "stop_reason": "end_turn"}"#;
    assert_eq!(Provider::Anthropic.answer(&value(plain)).expect("an answer").raw, None, "a text is not kept twice");
}

#[test]
fn calls_of_an_answer_that_was_cut_are_dropped() {
    let body =
        r#"{"content": [{"type": "tool_use", "id": "a", "name": "b", "input": {}}], "stop_reason": "max_tokens"}"#;
    let answer = Provider::Anthropic.answer(&value(body)).expect("an answer");
    assert!(answer.tool_calls.is_empty() && answer.stop_reason.name() == "max_tokens");
    let text = r#"{"choices": [{"message": {"tool_calls": [{"id": "", "function": {"name": "f", "arguments": "{bad"}}]},
        "finish_reason": "stop"}]}"#;
    let answer = Provider::OpenAi.answer(&value(text)).expect("an answer");
    assert_eq!(answer.tool_calls[0].arguments, Value::from("{bad"), "arguments that are not JSON stay text");
    assert_eq!(answer.tool_calls[0].id, "call_0");
}
