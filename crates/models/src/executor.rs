//! The executor of `agent` steps: one attempt is one request to a model.

use std::sync::{Arc, Mutex, PoisonError};

use mainspring_effects::{
    Adopted, AttemptName, BoxFuture, CancelSignal, Executor,
    http::{BodyReader, Http, HttpOptions},
    partial::PartialText,
    secrets::{Purpose, Redactor, SecretSource, SecretUser, SecretValue, read_reference},
};
use mainspring_kernel::{
    effect::{Attempt, Outcome, Report},
    failure::Failure,
    json,
    value::{Map, Value},
};

use crate::{
    answer::Answer,
    config::{ModelConfig, Temperature, find},
    dev::ScriptedModel,
    error::{ModelError, of_status},
    limits::{ANSWER_BYTES_MAX, ANSWER_TOKENS_DEFAULT, QUOTED_KEY_BYTES_MAX, TOOLS_MAX},
    request::{Request, messages},
    stream::{AnswerStream, Ending},
    tools::{ToolDefinition, ToolSource, WireNames, built_in, compare_pins, wire_name, workflow},
};

/// The parameters of an attempt. The kernel adds `tools` and the conversation to those of the step.
const PARAMS: [&str; 13] = [
    "context",
    "goal",
    "inputSchemas",
    "instructions",
    "maxTokens",
    "messages",
    "model",
    "outputSchema",
    "past",
    "seed",
    "temperature",
    "tools",
    "turns",
];

/// Performs the attempts of `agent` steps at the configured models.
pub struct Agents {
    models: Vec<ModelConfig>,
    http: Http,
    tools: Option<Arc<dyn ToolSource>>,
    /// Scripted models that are not served yet.
    scripted: Mutex<Vec<ScriptedModel>>,
    secrets: Option<Arc<dyn SecretSource>>,
}

impl Agents {
    /// Makes an executor. The addresses of the models have to be permitted by `http`; `tools` describes the tools of
    /// servers.
    pub fn new(models: Vec<ModelConfig>, http: HttpOptions, tools: Option<Arc<dyn ToolSource>>) -> Self {
        Self { models, http: Http::new(http), tools, scripted: Mutex::default(), secrets: None }
    }

    /// Takes the source of the secrets that hold keys.
    #[must_use]
    pub fn with_secrets(self, secrets: Option<Arc<dyn SecretSource>>) -> Self {
        Self { secrets, ..self }
    }

    /// Serves scripted models, from the first attempt to the end of its runtime.
    #[must_use]
    pub fn with_scripted(self, scripted: Vec<ScriptedModel>) -> Self {
        Self { scripted: Mutex::new(scripted), ..self }
    }

    fn serve_scripted(&self) {
        let scripted = std::mem::take(&mut *self.scripted.lock().unwrap_or_else(PoisonError::into_inner));
        for model in scripted {
            // A listener that fails refuses connections, which fails the attempt with the reason.
            tokio::spawn(model.run());
        }
    }

    async fn run(
        &self,
        attempt: &Attempt,
        stop: CancelSignal,
        partial: Option<PartialText>,
    ) -> Result<Outcome, Failure> {
        let named = |error: ModelError| error.to_failure(&attempt.step);
        self.serve_scripted();
        let config = self.model_of(attempt).map_err(named)?;
        let tools = self.tools_of(attempt).await?;
        if let Some(progress) = attempt.progress.as_deref() {
            let new = compare_pins(&tools, &listed_tools(attempt), &progress.pins);
            let new = new.map_err(|error| error.to_failure(&attempt.step))?;
            if !new.is_empty() {
                return Ok(Outcome::Reported(Box::new(Report::Tools(new))));
            }
        }
        let names = WireNames::of(tools.iter().map(|tool| tool.name.as_str()));
        let request = request(&attempt.params, config, &tools).map_err(named)?;
        let key = self.key_of(attempt, config).await?;
        let redactor = Redactor::new(key.iter().filter_map(|key| SecretValue::new(key).ok()));
        let call = http_attempt(attempt, config, &request, key);
        // A conversation may be large, and the wait for the answer long.
        drop((request, tools));
        let mut stream = config
            .streams
            .then(|| AnswerStream::new(config.provider, partial.map(|partial| partial.redacted(redactor.clone()))));
        let reader = stream.as_mut().map(|stream| stream as &mut dyn BodyReader);
        let outcome = redactor.outcome(self.http.perform_reading(&call, stop, reader).await);
        let streamed = stream.filter(AnswerStream::has_arrived);
        match outcome {
            Outcome::Done(result) => {
                let body = match streamed.map(|stream| (stream.has_begun(), stream.end(true))) {
                    None => (false, result.get("body").cloned().unwrap_or_default()),
                    // The parts of an answer are redacted as a whole, since a value may be in several of them.
                    Some((has_begun, Ending::Whole(body))) => (has_begun, redactor.value(body)),
                    Some((_, Ending::Failed(error))) => return Err(named(error)),
                    Some((_, Ending::Cut)) => return Ok(Outcome::Interrupted),
                };
                match config.provider.answer(&body.1) {
                    Ok(answer) => Ok(Outcome::Done(output(attempt, answer, &names))),
                    // The provider has failed in the middle of an answer, which may have been paid for.
                    Err(ModelError::Unavailable { .. }) if body.0 => Ok(Outcome::Interrupted),
                    Err(error) => Err(named(error)),
                }
            }
            // The request may have been received and paid for, so only `onInterrupted` may repeat it.
            Outcome::Failed(failure) if failure.code == "http_connection_lost" => Ok(Outcome::Interrupted),
            Outcome::Failed(failure) => Err(translated(failure, &attempt.step)),
            other => Ok(other),
        }
    }

    async fn perform_until(&self, attempt: &Attempt, mut stop: CancelSignal, partial: Option<PartialText>) -> Outcome {
        if stop.is_requested() {
            return Outcome::Stopped(Value::Null);
        }
        let run = self.run(attempt, stop.clone(), partial);
        tokio::pin!(run);
        // The request itself ends with `stop`; the lists of tools do not.
        let outcome = tokio::select! {
            biased;
            outcome = &mut run => outcome,
            () = stop.requested() => return Outcome::Stopped(Value::Null),
        };
        outcome.unwrap_or_else(|failure| Outcome::Failed(self.without_keys(failure)))
    }

    /// Reads the key of a model; `None` if it needs none.
    async fn key_of(&self, attempt: &Attempt, config: &ModelConfig) -> Result<Option<String>, Failure> {
        let named = |error: ModelError| error.to_failure(&attempt.step);
        let Some(reference) = config.secret() else { return config.key().map_err(named) };
        let purpose = Purpose::Settings(format!("models.{}", config.name));
        let by = SecretUser { organization: attempt.organization.clone(), purpose };
        let read = read_reference(self.secrets.as_ref(), reference, &by).await;
        let (_, key) = read.map_err(|error| error.to_failure(&attempt.step, &reference.name))?;
        config.checked_key(&key, &format!("the secret `{}`", reference.name)).map(Some).map_err(named)
    }

    fn model_of(&self, attempt: &Attempt) -> Result<&ModelConfig, ModelError> {
        let params = &attempt.params;
        let Some(map) = params.as_map() else {
            return Err(ModelError::RequestInvalid(format!("the parameters are {} and no object", params.kind())));
        };
        if let Some(unknown) = map.keys().find(|key| !PARAMS.contains(&key.as_str())) {
            let known = PARAMS.join(", ");
            return Err(ModelError::RequestInvalid(format!("`{unknown}` is no parameter of `agent`; it has {known}")));
        }
        match map.get("model") {
            None | Some(Value::Null) => find(&self.models, None, attempt.organization.as_deref()),
            Some(Value::Text(name)) => find(&self.models, Some(name), attempt.organization.as_deref()),
            Some(other) => Err(ModelError::RequestInvalid(format!("`model` is {} and no name", other.kind()))),
        }
    }

    /// Removes the keys of the models from a message: a gateway may quote the key that it rejects. The message may end in
    /// the middle of a key.
    fn without_keys(&self, failure: Failure) -> Failure {
        let keys = self.models.iter().filter_map(|model| model.key().ok().flatten());
        let keys = keys.filter(|key| key.len() > QUOTED_KEY_BYTES_MAX);
        let message = keys.fold(failure.message, |message, key| without_key(message, &key));
        Failure { message, ..failure }
    }

    async fn tools_of(&self, attempt: &Attempt) -> Result<Vec<ToolDefinition>, Failure> {
        let listed = listed_tools(attempt);
        let known = |name: &str| built_in(name).or_else(|| workflow(name, &attempt.params));
        let mut tools: Vec<ToolDefinition> = listed.iter().filter_map(|name| known(name)).collect();
        let of_servers: Vec<String> = listed.into_iter().filter(|name| known(name).is_none()).collect();
        if !of_servers.is_empty() {
            let Some(source) = &self.tools else {
                let why = format!("no tool server is configured, and the step lists {}", of_servers.join(", "));
                return Err(ModelError::RequestInvalid(why).to_failure(&attempt.step));
            };
            tools.extend(source.describe(&of_servers, attempt).await?);
        }
        if tools.len() > TOOLS_MAX {
            let why = format!("the step lists {} tools and a request has at most {TOOLS_MAX}", tools.len());
            return Err(ModelError::RequestInvalid(why).to_failure(&attempt.step));
        }
        Ok(tools)
    }
}

/// The names in the `tools` of an attempt.
fn listed_tools(attempt: &Attempt) -> Vec<String> {
    let listed = attempt.params.get("tools").and_then(Value::as_list).unwrap_or_default();
    listed.iter().filter_map(Value::as_text).map(Into::into).collect()
}

/// Replaces each part of a text that begins as the key does.
fn without_key(text: String, key: &str) -> String {
    let begin = key.get(..=QUOTED_KEY_BYTES_MAX).unwrap_or(key);
    let (mut rest, mut kept) = (text.as_str(), String::new());
    while let Some(at) = rest.find(begin) {
        let (before, found) = rest.split_at(at);
        let same = found.bytes().zip(key.bytes()).take_while(|(one, other)| one == other).count();
        kept.push_str(before);
        kept.push_str("***");
        rest = &found[same..];
    }
    kept + rest
}

/// Builds the request of an attempt.
fn request(params: &Value, config: &ModelConfig, tools: &[ToolDefinition]) -> Result<Request, ModelError> {
    let mut instructions = match params.get("instructions") {
        None | Some(Value::Null) => String::new(),
        Some(Value::Text(text)) => text.clone(),
        Some(other) => {
            return Err(ModelError::RequestInvalid(format!("`instructions` is {} and no text", other.kind())));
        }
    };
    if let Some(schema) = params.get("outputSchema").filter(|schema| **schema != Value::Null) {
        if !instructions.is_empty() {
            instructions.push_str("\n\n");
        }
        instructions.push_str("Your final answer is one JSON value that matches this JSON Schema, and nothing else:\n");
        instructions.push_str(&json::compact(schema));
    }
    let temperature = match (params.get("temperature"), &config.temperature) {
        (Some(value @ Value::Number(_)), _) => Some(value.clone()),
        (_, Temperature::Value(number)) => Some(Value::Number(*number)),
        (_, Temperature::Omitted) => None,
    };
    let max_tokens = params.get("maxTokens").and_then(Value::as_u64);
    Ok(Request {
        model: config.model.clone(),
        instructions,
        messages: messages(params, &wire_name)?,
        tools: tools.iter().map(|tool| ToolDefinition { name: wire_name(&tool.name), ..tool.clone() }).collect(),
        temperature,
        max_tokens: max_tokens.or(config.max_tokens).unwrap_or(ANSWER_TOKENS_DEFAULT),
        seed: params.get("seed").and_then(Value::as_u64),
    })
}

/// Returns the attempt of the `http` executor that sends the request. The key is part of it and of nothing that is
/// recorded.
fn http_attempt(attempt: &Attempt, config: &ModelConfig, request: &Request, key: Option<String>) -> Attempt {
    let call = config.provider.call(request, &config.base_url);
    let call = if config.streams { config.provider.streamed(call) } else { call };
    let key = key.map(|key| config.provider.key_header(&key));
    let headers = call.headers.into_iter().chain(key);
    let headers: Map = headers.map(|(name, value)| (name.to_owned(), value.into())).collect();
    let params = Value::map([
        ("method", "POST".into()),
        ("url", format!("{}{}", config.base_url, call.path).into()),
        ("headers", headers.into()),
        ("body", call.body),
        ("followRedirects", false.into()),
        ("maxResponseBytes", (ANSWER_BYTES_MAX as u64).into()),
    ]);
    // The addresses of models are permitted to every organization, so the request is made on behalf of none.
    Attempt { effect: "http".into(), params, organization: None, workspace: None, ..identity_of(attempt) }
}

/// Returns the attempt without its parameters, which hold the whole conversation.
fn identity_of(attempt: &Attempt) -> Attempt {
    Attempt {
        execution: attempt.execution,
        root: attempt.root,
        execution_id: attempt.execution_id.clone(),
        organization: attempt.organization.clone(),
        workflow_id: attempt.workflow_id.clone(),
        step: attempt.step.clone(),
        number: attempt.number,
        effect: attempt.effect.clone(),
        params: Value::Null,
        intent: attempt.intent,
        flags: attempt.flags,
        handed_out_at: attempt.handed_out_at,
        workspace: attempt.workspace.clone(),
        secrets: attempt.secrets.clone(),
        progress: None,
    }
}

/// Returns the output of the attempt: the answer as the kernel reads it, or that of a step without a conversation.
fn output(attempt: &Attempt, mut answer: Answer, names: &WireNames) -> Value {
    for call in &mut answer.tool_calls {
        call.name = names.full(&call.name).to_owned();
    }
    match attempt.params.get("turns") {
        Some(_) => answer.to_value(),
        None => answer.to_output(),
    }
}

/// Translates the failure of a request. A failure before a response keeps its code, such as `http_connect_failed`.
fn translated(failure: Failure, step: &str) -> Failure {
    let status = failure.code.strip_prefix("http_status:").and_then(|status| status.parse::<u16>().ok());
    let retry_after_ms = failure.details.get("retryAfterMs").and_then(Value::as_u64);
    let body = failure.details.get("body").unwrap_or(&Value::Null);
    let error = match (status, failure.code.as_str()) {
        (Some(status), _) => of_status(status, body, retry_after_ms),
        (None, "http_response_too_large") => {
            let message =
                format!("the response has more than {ANSWER_BYTES_MAX} bytes: ask for less, or lower `maxTokens`");
            ModelError::AnswerTooLarge(message)
        }
        (None, "http_response_invalid") => ModelError::AnswerInvalid(failure.message),
        (None, _) => {
            let message = format!("step `{step}`: {}", failure.message);
            return Failure { message, details: Value::Null, ..failure };
        }
    };
    error.to_failure(step)
}

impl Executor for Agents {
    fn performs(&self, attempt: &Attempt) -> bool {
        attempt.effect == "agent"
    }

    /// The result is `{text, toolCalls, stopReason, usage, model, raw}` for a call of a conversation, whose parameters
    /// have `turns`; otherwise `{text, value, usage, turns, stopReason}`.
    fn perform<'a>(&'a self, attempt: &'a Attempt, stop: CancelSignal) -> BoxFuture<'a, Outcome> {
        Box::pin(self.perform_until(attempt, stop, None))
    }

    fn perform_shown<'a>(
        &'a self,
        attempt: &'a Attempt,
        stop: CancelSignal,
        partial: PartialText,
    ) -> BoxFuture<'a, Outcome> {
        Box::pin(self.perform_until(attempt, stop, Some(partial)))
    }

    /// A request is not recorded before it is sent, so every attempt of an earlier process may have been paid for.
    fn adopt<'a>(&'a self, _: &'a Attempt) -> BoxFuture<'a, Adopted> {
        Box::pin(std::future::ready(Adopted::Interrupted))
    }

    fn forget(&self, _: AttemptName<'_>) {}
}
