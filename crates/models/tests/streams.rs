//! Streamed answers: the same as without a stream, cut at every byte, malformed, with errors in the middle, and watched.

use std::sync::Arc;

use mainspring_effects::{
    CancelHandle, Executors,
    http::{BodyReader, HttpOptions},
};
use mainspring_kernel::{
    effect::{Attempt, AttemptFlags, Outcome},
    hash::Hash,
    json,
    key::ExecutionKey,
    secret::SecretUses,
    value::Value,
};
use mainspring_models::{
    config,
    dev::{Script, ScriptedModel, stream_of},
    executor::Agents,
    provider::Provider,
    stream::{AnswerStream, Ending},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
};

fn value(text: &str) -> Value {
    json::value(text.as_bytes()).expect("the test has valid JSON")
}

/// An answer of each provider with reasoning, text, two tool calls and cached tokens, as it was sent without a stream.
fn recorded(provider: Provider) -> Value {
    value(match provider {
        Provider::Anthropic => {
            r#"{"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-1", "content": [
                {"type": "thinking", "thinking": "Zwei \"Fälle\" 🦀", "signature": "c2lnbg=="},
                {"type": "text", "text": "Ich lese\n„beides“ 🦀."},
                {"type": "tool_use", "id": "toolu_1", "name": "issues_get", "input": {"id": 7, "q": "ä\"\\\u0007"}},
                {"type": "tool_use", "id": "toolu_2", "name": "list", "input": {}}],
              "stop_reason": "tool_use", "stop_sequence": null,
              "usage": {"input_tokens": 60, "cache_read_input_tokens": 40, "cache_creation_input_tokens": 5, "output_tokens": 17}}"#
        }
        Provider::OpenAi => {
            r#"{"id": "c1", "object": "chat.completion", "model": "gpt-1", "choices": [{"index": 0, "message": {
                "role": "assistant", "content": "Ich lese\n„beides“ 🦀.", "tool_calls": [
                {"id": "call_a", "type": "function", "function": {"name": "issues_get", "arguments": "{\"id\":7,\"q\":\"ä\\\"\\\\\"}"}},
                {"id": "call_b", "type": "function", "function": {"name": "list", "arguments": "{}"}}]},
                "finish_reason": "tool_calls"}],
              "usage": {"prompt_tokens": 100, "completion_tokens": 17, "prompt_tokens_details": {"cached_tokens": 40},
                "completion_tokens_details": {"reasoning_tokens": 9}}}"#
        }
        Provider::OpenAiResponses => {
            r#"{"id": "resp_1", "object": "response", "model": "gpt-1", "status": "completed", "error": null,
              "incomplete_details": null, "output": [
                {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "c2VjcmV0"},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Ich lese\n„beides“ 🦀."}]},
                {"type": "function_call", "call_id": "call_a", "name": "issues_get", "arguments": "{\"id\":7,\"q\":\"ä\"}"}],
              "usage": {"input_tokens": 100, "output_tokens": 17, "input_tokens_details": {"cached_tokens": 40}}}"#
        }
        Provider::Gemini => {
            r#"{"candidates": [{"content": {"role": "model", "parts": [
                {"text": "Zwei Fälle 🦀", "thought": true},
                {"text": "Ich lese\n„beides“ 🦀."},
                {"functionCall": {"name": "issues_get", "args": {"id": 7, "q": "ä\""}}, "thoughtSignature": "c2ln"}]},
                "finishReason": "STOP"}],
              "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 10, "thoughtsTokenCount": 7, "cachedContentTokenCount": 40},
              "modelVersion": "gemini-1"}"#
        }
    })
}

/// Reads a stream in chunks of a size.
fn read(provider: Provider, bytes: &[u8], chunk_bytes: usize, is_whole: bool) -> Ending {
    let mut stream = AnswerStream::new(provider, None);
    for chunk in bytes.chunks(chunk_bytes) {
        if !stream.read(chunk) {
            break;
        }
    }
    stream.end(is_whole)
}

#[track_caller]
fn check_same(provider: Provider, body: &Value) {
    let expected = provider.answer(body);
    for piece_chars in [1, 2, 3, 5, 1_000] {
        let stream = stream_of(provider, body, piece_chars);
        for chunk_bytes in [1, 7, 100_000] {
            let Ending::Whole(assembled) = read(provider, stream.as_bytes(), chunk_bytes, true) else {
                panic!("{provider:?}: {:?}\n{stream}", read(provider, stream.as_bytes(), chunk_bytes, true));
            };
            assert_eq!(provider.answer(&assembled), expected, "{provider:?}, pieces of {piece_chars}: {stream}");
        }
    }
}

#[test]
fn a_recorded_answer_is_the_same_as_a_stream() {
    for provider in Provider::ALL {
        let body = recorded(provider);
        let answer = provider.answer(&body).expect("an answer");
        assert_eq!(answer.text, "Ich lese\n„beides“ 🦀.");
        assert_eq!(answer.usage.output_tokens, 17, "{provider:?}");
        assert_eq!(answer.usage.cached_input_tokens, 40, "{provider:?}");
        check_same(provider, &body);
    }
}

/// A deterministic random generator (xorshift, Marsaglia 2003).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// A text of letters that JSON and UTF-8 encode in many ways.
    fn text(&mut self, chars_max: u64) -> String {
        let letters =
            ['a', '"', '\\', '\n', '\r', ' ', 'ä', '語', '🦀', '\u{7}', '/', '{', ':', '\u{2028}', '\u{feff}'];
        (0..self.below(chars_max)).map(|_| letters[self.below(letters.len() as u64) as usize]).collect()
    }
}

/// A random answer of Anthropic with a text, calls with arguments, and sometimes reasoning.
fn anthropic(
    said: &str,
    calls: &[String],
    is_cut: bool,
    (input, output, cached): (u64, u64, u64),
    dice: &mut Dice,
) -> String {
    let mut blocks = vec![format!(r#"{{"type": "text", "text": {said}}}"#)];
    blocks.extend(
        calls
            .iter()
            .enumerate()
            .map(|(at, input)| format!(r#"{{"type": "tool_use", "id": "t{at}", "name": "n{at}", "input": {input}}}"#)),
    );
    if dice.below(2) == 0 {
        let thinking = json::compact(&dice.text(20).into());
        blocks.insert(0, format!(r#"{{"type": "thinking", "thinking": {thinking}, "signature": "s"}}"#));
    }
    let stop = match (is_cut, calls.is_empty()) {
        (true, _) => "max_tokens",
        (_, true) => "end_turn",
        (_, false) => "tool_use",
    };
    format!(
        r#"{{"model": "m", "content": [{}], "stop_reason": "{stop}", "usage": {{"input_tokens": {input}, "output_tokens": {output},
            "cache_read_input_tokens": {cached}}}}}"#,
        blocks.join(",")
    )
}

/// A random answer in the form of a provider.
fn random(provider: Provider, dice: &mut Dice) -> Value {
    let text = |dice: &mut Dice| json::compact(&dice.text(20).into());
    let said = text(dice);
    let arguments = |dice: &mut Dice| format!(r#"{{"k{}": {}, "n": {}}}"#, dice.below(9), text(dice), dice.below(99));
    let calls: Vec<String> = (0..dice.below(3)).map(|_| arguments(dice)).collect();
    let as_text = |arguments: &String| json::compact(&arguments.as_str().into());
    let (input, output, cached) = (dice.below(50) + 50, dice.below(90), dice.below(50));
    let each = |of: &dyn Fn((usize, &String)) -> String| calls.iter().enumerate().map(of).collect::<Vec<_>>();
    let is_cut = dice.below(9) == 0;
    value(&match provider {
        Provider::Anthropic => anthropic(&said, &calls, is_cut, (input, output, cached), dice),
        Provider::OpenAi => {
            let listed = each(&|(at, arguments)| {
                format!(r#"{{"id": "c{at}", "function": {{"name": "n{at}", "arguments": {}}}}}"#, as_text(arguments))
            });
            let stop = if is_cut {
                "length"
            } else if calls.is_empty() {
                "stop"
            } else {
                "tool_calls"
            };
            format!(
                r#"{{"model": "m", "choices": [{{"message": {{"content": {said}, "tool_calls": [{}]}}, "finish_reason": "{stop}"}}],
                    "usage": {{"prompt_tokens": {input}, "completion_tokens": {output}, "prompt_tokens_details": {{"cached_tokens": {cached}}}}}}}"#,
                listed.join(",")
            )
        }
        Provider::OpenAiResponses => {
            let mut items =
                vec![format!(r#"{{"type": "message", "content": [{{"type": "output_text", "text": {said}}}]}}"#)];
            items.extend(each(&|(at, arguments)| {
                format!(
                    r#"{{"type": "function_call", "call_id": "c{at}", "name": "n{at}", "arguments": {}}}"#,
                    as_text(arguments)
                )
            }));
            let status = if is_cut { "incomplete" } else { "completed" };
            format!(
                r#"{{"model": "m", "status": "{status}", "output": [{}], "usage": {{"input_tokens": {input}, "output_tokens": {output},
                    "input_tokens_details": {{"cached_tokens": {cached}}}}}}}"#,
                items.join(",")
            )
        }
        Provider::Gemini => {
            let mut parts = vec![format!(r#"{{"text": {said}}}"#)];
            parts.extend(each(&|(at, args)| {
                format!(r#"{{"functionCall": {{"id": "c{at}", "name": "n{at}", "args": {args}}}}}"#)
            }));
            let finish = if is_cut { "MAX_TOKENS" } else { "STOP" };
            format!(
                r#"{{"modelVersion": "m", "candidates": [{{"content": {{"parts": [{}]}}, "finishReason": "{finish}"}}],
                    "usageMetadata": {{"promptTokenCount": {input}, "candidatesTokenCount": {output}, "cachedContentTokenCount": {cached}}}}}"#,
                parts.join(",")
            )
        }
    })
}

#[test]
fn random_answers_are_the_same_as_streams() {
    let mut dice = Dice(20_260_101);
    for _ in 0..60 {
        for provider in Provider::ALL {
            let body = random(provider, &mut dice);
            assert!(provider.answer(&body).is_ok(), "{provider:?}: {}", json::compact(&body));
            check_same(provider, &body);
        }
    }
}

/// The end of the response after any byte, once by itself and once because the connection broke.
#[test]
fn a_stream_that_ends_after_any_byte_is_a_whole_answer_or_none() {
    for provider in Provider::ALL {
        let (body, stream) = (recorded(provider), stream_of(provider, &recorded(provider), 9));
        let expected = provider.answer(&body);
        let mut whole = 0;
        for at in 0..=stream.len() {
            for is_whole in [true, false] {
                match read(provider, &stream.as_bytes()[..at], 4096, is_whole) {
                    Ending::Cut => {}
                    Ending::Whole(body) => {
                        whole += 1;
                        assert_eq!(provider.answer(&body), expected, "{provider:?} after {at} bytes");
                    }
                    Ending::Failed(error) => panic!("{provider:?} after {at} bytes: {error:?}"),
                }
            }
        }
        assert!((1..200).contains(&whole), "{provider:?}: {whole}");
    }
}

fn attempt(params: &str) -> Attempt {
    Attempt {
        execution: ExecutionKey::new(0, [0; 10]),
        root: ExecutionKey::new(0, [0; 10]),
        execution_id: "e1".into(),
        organization: None,
        workflow_id: None,
        step: "ask#1".into(),
        number: 1,
        effect: "agent".into(),
        params: value(params),
        intent: Hash::of(b"intent"),
        flags: AttemptFlags::default(),
        handed_out_at: 0,
        workspace: None,
        secrets: SecretUses::default(),
        progress: None,
    }
}

fn agents(provider: Provider, port: u16, more: &str) -> Executors {
    let path = if matches!(provider, Provider::OpenAi | Provider::OpenAiResponses) { "/v1" } else { "" };
    let text = format!(
        r#"{{"m": {{"provider": "{}", "model": "test-1", "stream": true, "baseUrl": "http://127.0.0.1:{port}{path}"{more}}}}}"#,
        provider.name()
    );
    let http = HttpOptions { allow: format!("127.0.0.1:{port}").parse().expect("an entry"), ..HttpOptions::default() };
    Executors::new(vec![Arc::new(Agents::new(config::models(&value(&text)).expect("a model"), http, None))])
}

const ASK: &str = r#"{"goal": "Say hello", "turns": []}"#;

/// Answers each request with the next response of a list, and closes the connection. Returns the bodies of the requests.
async fn answer_each(listener: TcpListener, responses: Vec<Vec<u8>>) -> Vec<Value> {
    let mut requests = Vec::new();
    for response in responses {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let (mut request, mut buffer) = (Vec::new(), [0; 4096]);
        let body = loop {
            let count = stream.read(&mut buffer).await.expect("a request");
            assert!(count > 0, "the request ends early");
            request.extend_from_slice(&buffer[..count]);
            let text = String::from_utf8_lossy(&request).into_owned();
            let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
            let length =
                head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
            if body.len() >= length.unwrap_or(0) {
                break value(body);
            }
        };
        requests.push(body);
        stream.write_all(&response).await.expect("sent");
        let _ = stream.shutdown().await;
    }
    requests
}

fn response(head: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{head}\r\n");
    [head.as_bytes(), body].concat()
}

/// Performs one attempt for each response, and returns the outcomes. Each attempt sends one request.
async fn outcomes(provider: Provider, responses: Vec<Vec<u8>>) -> (Vec<Outcome>, Vec<Value>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port");
    let executors = agents(provider, listener.local_addr().expect("an address").port(), "");
    let count = responses.len();
    let server = tokio::spawn(answer_each(listener, responses));
    let mut outcomes = Vec::new();
    for _ in 0..count {
        let (_handle, signal) = CancelHandle::pair();
        outcomes.push(executors.perform(&attempt(ASK), signal).await);
    }
    (outcomes, server.await.expect("as many requests as attempts"))
}

/// A broken connection may have cost money, so the attempt is interrupted: only the step's `onInterrupted` repeats it.
#[tokio::test]
async fn a_connection_lost_at_any_byte_is_an_unknown_outcome() {
    for provider in Provider::ALL {
        let stream = stream_of(provider, &recorded(provider), 40);
        // The length promises more than arrives.
        let head = format!("content-length: {}\r\n", stream.len() + 1);
        let mut responses: Vec<_> = (0..=stream.len()).map(|at| response(&head, &stream.as_bytes()[..at])).collect();
        responses.push(response(&format!("content-length: {}\r\n", stream.len()), stream.as_bytes()));
        let (outcomes, _) = outcomes(provider, responses).await;
        let whole = outcomes.last().cloned().expect("the last one is complete");
        assert!(matches!(whole, Outcome::Done(_)), "{provider:?}: {whole:?}");
        let mut done = 0;
        for (at, outcome) in outcomes.iter().enumerate().take(stream.len() + 1) {
            match outcome {
                Outcome::Interrupted => {}
                outcome => {
                    assert_eq!(*outcome, whole, "{provider:?} after {at} bytes");
                    done += 1;
                }
            }
        }
        // An answer is complete once its last event is, however the connection ends.
        let most = if provider == Provider::Gemini { 0 } else { 4 };
        assert!(done <= most, "{provider:?}: {done}");
    }
}

#[tokio::test]
async fn a_request_asks_for_a_stream_and_takes_an_answer_without_one() {
    for provider in Provider::ALL {
        let body = json::compact(&recorded(provider));
        let whole = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let stream = stream_of(provider, &recorded(provider), 9);
        let streamed = response(&format!("content-length: {}\r\n", stream.len()), stream.as_bytes());
        let (outcomes, requests) = outcomes(provider, vec![whole.into_bytes(), streamed]).await;
        assert!(matches!(&outcomes[0], Outcome::Done(_)), "{provider:?}: {:?}", outcomes[0]);
        assert_eq!(outcomes[0], outcomes[1], "{provider:?}");
        let streams = requests[0].get("stream").and_then(Value::as_bool);
        assert_eq!(streams, (provider != Provider::Gemini).then_some(true), "{provider:?}");
        let usage = requests[0].get("stream_options").and_then(|options| options.get("include_usage")).is_some();
        assert_eq!(usage, provider == Provider::OpenAi);
    }
}

/// The outcome that a malformed stream has.
const INVALID: &str = "model_answer_invalid";
const CUT: &str = "interrupted";
const TEXT: &str = "done";

#[track_caller]
fn check(provider: Provider, name: &str, stream: &str, expected: &str) {
    for chunk_bytes in [1, 100_000] {
        let ending = read(provider, stream.as_bytes(), chunk_bytes, true);
        let outcome = match &ending {
            Ending::Cut => CUT.to_owned(),
            Ending::Failed(error) => error.to_failure("s").code,
            Ending::Whole(body) => match provider.answer(body) {
                Ok(_) => TEXT.to_owned(),
                Err(error) => error.to_failure("s").code,
            },
        };
        assert_eq!(outcome, expected, "{provider:?}, {name}: {ending:?}\n{stream}");
    }
}

fn events(events: &[&str]) -> String {
    events.iter().map(|data| format!("data: {data}\n\n")).collect()
}

#[test]
fn malformed_streams_of_anthropic() {
    let p = Provider::Anthropic;
    let (begin, open) = (
        r#"{"type":"message_start","message":{"model":"m","usage":{"input_tokens":5,"output_tokens":1}}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    );
    let hi = r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}"#;
    let (close, reason, stop) = (
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}"#,
        r#"{"type":"message_stop"}"#,
    );
    let whole = events(&[begin, open, hi, close, reason, stop]);
    check(p, "as it should be", &whole, TEXT);
    check(p, "CRLF", &whole.replace('\n', "\r\n"), TEXT);
    check(p, "CR", &whole.replace('\n', "\r"), TEXT);
    check(p, "byte order mark", &format!("\u{feff}{whole}"), TEXT);
    check(p, "comments", &whole.replace("data:", ": ping\nretry: 5\nid: 7\ndata:"), TEXT);
    check(p, "no space", &whole.replace("data: ", "data:"), TEXT);
    check(p, "events without data", &format!("data\n\nevent: x\n\n{whole}"), TEXT);
    check(p, "unknown events", &events(&[begin, r#"{"type":"later","x":1}"#, open, hi, close, reason, stop]), TEXT);
    check(p, "more after the end", &format!("{whole}data: nonsense\n\n"), TEXT);
    check(p, "no usage at the end", &whole.replace(r#","usage":{"output_tokens":2}"#, ""), TEXT);
    check(p, "no end", &events(&[begin, open, hi, close, reason]), CUT);
    check(p, "empty", "", CUT);
    check(p, "only comments", ": ping\n\n: ping\n\n", CUT);
    check(p, "half a line", &format!("{}data: {{\"type\":\"mess", events(&[begin, open, hi])), CUT);
    check(p, "bad JSON", &events(&[begin, "{\"type\": "]), INVALID);
    check(p, "not an object", &events(&[begin, "[1]"]), INVALID);
    check(p, "a NUL in a text", &whole.replace("hi", "h\0i"), INVALID);
    check(p, "a key twice", &whole.replace(r#""index":0,"delta""#, r#""index":0,"index":0,"delta""#), INVALID);
    check(p, "no begin", &events(&[open, hi, close, reason, stop]), INVALID);
    check(p, "two begins", &events(&[begin, begin, open, hi, close, reason, stop]), INVALID);
    check(p, "a block twice", &events(&[begin, open, open, hi, close, reason, stop]), INVALID);
    check(p, "a block too far", &events(&[begin, &open.replace(":0", ":99999999999")]), INVALID);
    check(p, "a negative block", &events(&[begin, &open.replace(":0", ":-1")]), INVALID);
    check(p, "a delta after the end of its block", &events(&[begin, open, close, hi, reason, stop]), INVALID);
    check(p, "an open block", &events(&[begin, open, hi, reason, stop]), INVALID);
    check(p, "a delta of another kind", &whole.replace("text_delta", "input_json_delta"), INVALID);
    check(p, "an unknown delta", &whole.replace("text_delta", "dance_delta"), INVALID);
    check(p, "a text that is none", &whole.replace(r#""text":"hi""#, r#""text":7"#), INVALID);
    check(p, "no reason", &events(&[begin, open, hi, close, stop]), INVALID);
    let second = |text: &str| text.replace("\"index\":0", "\"index\":1");
    let crossed = [begin, open, &second(open), &second(hi), hi, close, &second(close), reason, stop];
    check(p, "blocks that cross", &events(&crossed), TEXT);
}

#[test]
fn malformed_streams_of_the_other_formats() {
    let (chat, done) = (Provider::OpenAi, "[DONE]");
    let call = |call: &str| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{call}]}}}}]}}"#);
    let hi = r#"{"model":"m","choices":[{"index":0,"delta":{"content":"hi"}}]}"#;
    let (end, usage) = (
        r#"{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
        r#"{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}"#,
    );
    check(chat, "as it should be", &events(&[hi, end, usage, done]), TEXT);
    check(chat, "no usage", &events(&[hi, end, done]), TEXT);
    check(chat, "no mark of the end", &events(&[hi, end, usage]), TEXT);
    check(chat, "neither usage nor mark", &events(&[hi, end]), CUT);
    check(chat, "no finish reason", &events(&[hi, usage, done]), INVALID);
    check(chat, "no choice", &events(&[usage, done]), INVALID);
    check(chat, "more after the reason", &events(&[hi, end, hi, done]), INVALID);
    check(chat, "other choices", &events(&[hi, &hi.replace(":0", ":1"), end, usage, done]), TEXT);
    let (first, more) = (
        call(r#"{"index":0,"id":"a","function":{"name":"n","arguments":"{\"q\":\"\\u00"}}"#),
        call(r#"{"index":0,"function":{"arguments":"e4\"}"}}"#),
    );
    check(chat, "arguments split in an escape", &events(&[&first, &more, end, usage, done]), TEXT);
    check(chat, "arguments that are cut", &events(&[&first, end, usage, done]), TEXT);
    let other = call(r#"{"index":0,"id":"b","function":{"name":"n","arguments":"{}"}}"#);
    check(chat, "an index twice", &events(&[&first, &other, end, usage, done]), INVALID);
    check(chat, "neither index nor id", &events(&[&call(r#"{"function":{"arguments":"{}"}}"#), end, done]), INVALID);
    check(
        chat,
        "no index",
        &events(&[&first.replace("\"index\":0,", ""), &more.replace("\"index\":0,", ""), end, done]),
        TEXT,
    );
    check(chat, "an index without end", &events(&[&first.replace(":0", ":18446744073709551616"), end, done]), INVALID);

    let responses = Provider::OpenAiResponses;
    let completed = r#"{"type":"response.completed","response":{"status":"completed","output":[{"type":"message","content":[{"text":"hi"}]}]}}"#;
    check(responses, "as it should be", &events(&[completed]), TEXT);
    check(responses, "no response", &events(&[r#"{"type":"response.completed"}"#]), INVALID);
    check(responses, "no end", &events(&[r#"{"type":"response.output_text.delta","delta":"hi"}"#]), CUT);
    let item = r#"{"type":"response.output_item.done","item":{"type":"message","content":[{"text":"hi"}]}}"#;
    let bare = r#"{"type":"response.completed","response":{"status":"completed","output":[]}}"#;
    check(responses, "a last event without items", &events(&[item, bare]), TEXT);

    let gemini = Provider::Gemini;
    let part = r#"{"candidates":[{"content":{"parts":[{"text":"hi"}]}}]}"#;
    let stop = r#"{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}]}"#;
    check(gemini, "as it should be", &events(&[part, stop]), TEXT);
    check(gemini, "no empty line at the end", events(&[part, stop]).trim_end(), TEXT);
    check(gemini, "no reason", &events(&[part]), CUT);
    check(gemini, "half an event at the end", &format!("{}data: {{", events(&[part, stop])), CUT);
    check(gemini, "blocked", &events(&[r#"{"promptFeedback":{"blockReason":"SAFETY"}}"#]), "model_content_filtered");
}

#[test]
fn streams_are_bounded() {
    let event = |size: usize| format!("data: {{\"type\":\"ping\",\"x\":\"{}\"}}\n\n", "x".repeat(size));
    let large = "model_answer_too_large";
    check(Provider::Anthropic, "a giant event", &event(300_000), large);
    check(Provider::Anthropic, "an event without end", &"data: xxxxxxxxx\n".repeat(40_000), large);
    check(Provider::OpenAi, "a giant line", &"x".repeat(300_000), large);
    let text = format!(r#"{{"choices":[{{"delta":{{"content":"{}"}}}}]}}"#, "x".repeat(1_000));
    check(Provider::OpenAi, "a long text", &events(&[text.as_str(); 300]), large);
    let call = |at: usize| format!(r#"{{"choices":[{{"delta":{{"tool_calls":[{{"index":{at}}}]}}}}]}}"#);
    let calls: Vec<String> = (0..4_000).map(call).collect();
    check(Provider::OpenAi, "many calls", &events(&calls.iter().map(String::as_str).collect::<Vec<_>>()), large);
    let empty = "data: {}\n\n".repeat(230_000);
    let mut stream = AnswerStream::new(Provider::Gemini, None);
    assert!(!stream.read(empty.as_bytes()), "many empty events");
}

/// Errors in a stream have the classes of errors before it, until the model has said something.
#[test]
fn errors_in_a_stream_have_our_classes() {
    let anthropic = |kind: &str| format!(r#"{{"type":"error","error":{{"type":"{kind}","message":"Oh"}}}}"#);
    for (kind, code) in [
        ("overloaded_error", "model_unavailable"),
        ("api_error", "model_unavailable"),
        ("rate_limit_error", "model_rate_limited"),
        ("authentication_error", "model_not_authorized"),
        ("invalid_request_error", "model_request_rejected"),
        ("billing_error", "model_request_rejected"),
    ] {
        check(Provider::Anthropic, kind, &events(&[&anthropic(kind)]), code);
    }
    let begun = [
        r#"{"type":"message_start","message":{"model":"m"}}"#,
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    ];
    for (kind, code) in [("overloaded_error", CUT), ("rate_limit_error", CUT), ("invalid_request_error", INVALID)] {
        check(Provider::Anthropic, kind, &events(&[begun[0], begun[1], &anthropic(kind)]), code);
    }
    check(Provider::OpenAi, "gateway", &events(&[r#"{"error":{"code":502,"message":"Oh"}}"#]), "model_unavailable");
    check(Provider::OpenAi, "quota", &events(&[r#"{"error":{"code":"insufficient_quota"}}"#]), "model_not_authorized");
    let long = r#"{"error":{"code":"context_length_exceeded","message":"Oh"}}"#;
    check(Provider::OpenAi, "long", &events(&[long]), "model_context_too_long");
    let of_event = r#"{"type":"error","code":"server_error","message":"Oh"}"#;
    check(Provider::OpenAiResponses, "event", &events(&[of_event]), "model_unavailable");
    let failed = r#"{"type":"response.failed","response":{"status":"failed","output":[],"error":{"message":"Oh"}}}"#;
    check(Provider::OpenAiResponses, "failed", &events(&[failed]), "model_unavailable");
    let gemini = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Oh"}}"#;
    check(Provider::Gemini, "limit", &events(&[gemini]), "model_rate_limited");
}

async fn start(script: &str) -> u16 {
    let script = Script::parse(script.as_bytes()).expect("a script");
    let model = ScriptedModel::bind(([127, 0, 0, 1], 0).into(), script).expect("a free port");
    let port = model.address().expect("an address").port();
    tokio::spawn(model.run());
    port
}

/// The key of a model is in a text that its gateway sends, split into single characters.
#[tokio::test]
async fn partial_texts_are_redacted_and_end_with_a_cancel() {
    let key = "sk-test-0123456789abcdef";
    let file = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("stream.key");
    std::fs::write(&file, key).expect("a folder for files of tests");
    for provider in Provider::ALL {
        // The stream stays open in the middle of the many letters at its end, in every format.
        let script = format!(
            "answers: [{{text: 'The key is {key}, and so on {}', stream: {{deltaChars: 1, chunkBytes: 7, hangAtByte: 20000}}}}]",
            "x".repeat(400)
        );
        let port = start(&script).await;
        let executors = agents(provider, port, &format!(r#", "apiKey": {{"file": "{}"}}"#, file.display()));
        let ask = attempt(ASK);
        let mut watch = executors.partial_texts().watch(ask.execution);
        let (handle, signal) = CancelHandle::pair();
        let performed = executors.perform(&ask, signal);
        tokio::pin!(performed);
        let mut seen = String::new();
        while !seen.contains("so on") {
            tokio::select! {
                outcome = &mut performed => panic!("{provider:?} after `{seen}`: {outcome:?}"),
                () = watch.changed() => watch.take(1_000).iter().for_each(|piece| seen.push_str(&piece.text)),
            }
        }
        assert!(seen.starts_with("The key is ***, and"), "{provider:?}: {seen}");
        handle.cancel();
        assert!(matches!(performed.await, Outcome::Stopped(_)), "{provider:?}");
        assert_eq!(watch.take(1_000), [], "nothing stays after the attempt");
    }
}

#[tokio::test]
async fn the_scripted_model_streams_its_answer_and_can_be_cut() {
    for provider in Provider::ALL {
        let script = |stream: &str| format!("answers: [{{text: 'Hi „you“', stream: {{{stream}}}}}]");
        let outcome = async |stream: &str| {
            let executors = agents(provider, start(&script(stream)).await, "");
            let (_handle, signal) = CancelHandle::pair();
            executors.perform(&attempt(ASK), signal).await
        };
        let Outcome::Done(done) = outcome("deltaChars: 1, chunkBytes: 3, chunkDelayMs: 0").await else {
            panic!("{provider:?}")
        };
        assert_eq!(done.get("text"), Some(&"Hi „you“".into()));
        assert_eq!(done.get("usage").and_then(|usage| usage.get("inputTokens")), Some(&10u32.into()), "{provider:?}");
        assert_eq!(outcome("cutAtByte: 100").await, Outcome::Interrupted, "{provider:?}");
    }
}
