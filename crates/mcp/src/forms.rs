//! Forms that servers ask people to fill in: `elicitation/create`, and the requests of `input_required`.
//!
//! A request of a server over a connection does not name the call that it belongs to, so a form is accepted while one call
//! alone is in progress there.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use mainspring_effects::secrets::Redactor;
use mainspring_kernel::{
    diagnostic::is_obeyed,
    form::Form,
    limits::FORM_MESSAGE_BYTES_MAX,
    value::{Map, Value},
};
use rmcp::{
    ErrorData,
    model::{ElicitRequestParams, ElicitResult, ElicitationAction, InputRequest, InputRequests},
};
use tokio::sync::{mpsc, oneshot};

use crate::{
    error::ToolError,
    json::{from_json, to_json},
    limits::FORMS_WAITING_MAX,
};

/// A form of a server, with the way to answer it.
#[derive(Debug)]
pub(crate) struct AskedForm {
    /// `{message, form}`.
    pub(crate) form: Value,
    /// Takes the answer. Without one the server is told that the people canceled.
    pub(crate) reply: oneshot::Sender<ElicitResult>,
}

/// The receiver of the forms of one call.
pub(crate) type FormDesk = mpsc::Sender<AskedForm>;

/// The calls in progress over a connection that accept forms.
#[derive(Default)]
pub(crate) struct Forms {
    open: Mutex<Vec<(u64, FormDesk)>>,
    number: AtomicU64,
}

/// Accepts the forms of a call until it is dropped.
pub(crate) struct OpenDesk {
    forms: Arc<Forms>,
    number: u64,
}

impl Forms {
    fn desks(&self) -> MutexGuard<'_, Vec<(u64, FormDesk)>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts the forms of a call.
    pub(crate) fn open(self: &Arc<Self>, desk: &FormDesk) -> OpenDesk {
        let number = self.number.fetch_add(1, Ordering::SeqCst);
        self.desks().push((number, desk.clone()));
        OpenDesk { forms: self.clone(), number }
    }

    /// Passes a form to the call that is in progress, and returns the answer.
    pub(crate) async fn ask(&self, request: ElicitRequestParams) -> Result<ElicitResult, ErrorData> {
        let form = read(&request).map_err(|why| ErrorData::invalid_params(why, None))?;
        let desk = match self.desks().as_slice() {
            [(_, desk)] => desk.clone(),
            [] => return Err(refusal("no call is in progress for which a person could be asked")),
            _ => return Err(refusal("several calls are in progress, so it is unknown which of them asks")),
        };
        let (reply, answer) = oneshot::channel();
        desk.try_send(AskedForm { form, reply })
            .map_err(|_| refusal("more forms wait for an answer than one call may ask for at a time"))?;
        Ok(answer.await.unwrap_or_else(|_| ElicitResult::new(ElicitationAction::Cancel)))
    }
}

impl Drop for OpenDesk {
    fn drop(&mut self) {
        self.forms.desks().retain(|(number, _)| *number != self.number);
    }
}

/// Returns the ends of a desk.
pub(crate) fn desk() -> (FormDesk, mpsc::Receiver<AskedForm>) {
    mpsc::channel(FORMS_WAITING_MAX)
}

fn refusal(why: &'static str) -> ErrorData {
    ErrorData::invalid_request(why, None)
}

/// Reads a request as `{message, form}`, with hidden characters of the texts escaped. The error is a sentence for the
/// server.
fn read(request: &ElicitRequestParams) -> Result<Value, String> {
    let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = request else {
        return Err("elicitation with a URL is not supported; forms are".into());
    };
    let schema = serde_json::to_value(requested_schema).map_err(|error| error.to_string())?;
    let form = with_visible_texts(from_json(&schema)?);
    Ok(Value::map([("message", Value::Text(visible(message))), ("form", form)]))
}

/// Reads the requests of a call or a task that needs input: their keys, each with `{message, form}`, without secrets.
pub(crate) fn read_all(
    server: &str,
    requests: &InputRequests,
    redactor: &Redactor,
) -> Result<Vec<(String, Value)>, ToolError> {
    let invalid = |why| ToolError::InvalidAnswer(server.to_owned(), why);
    if requests.len() > FORMS_WAITING_MAX {
        return Err(invalid(format!("it asks for {} forms at a time, more than {FORMS_WAITING_MAX}", requests.len())));
    }
    let of = |(key, request): (&String, &InputRequest)| match request {
        InputRequest::Elicitation(request) => {
            Ok((key.clone(), redactor.value(read(&request.params).map_err(invalid)?)))
        }
        _ => Err(ToolError::InputRequired(server.to_owned())),
    };
    requests.iter().map(of).collect()
}

/// Checks that a form, as `{message, form}`, can be shown, before a journal keeps it.
pub(crate) fn check(server: &str, form: &Value) -> Result<(), ToolError> {
    let message = form.get("message").and_then(Value::as_text).unwrap_or_default();
    let checked = match message.len() > FORM_MESSAGE_BYTES_MAX {
        true => Err(format!("its message has more than {FORM_MESSAGE_BYTES_MAX} bytes")),
        false => Form::of_schema(form.get("form").unwrap_or(&Value::Null)).map(|_| ()),
    };
    checked.map_err(|why| ToolError::InvalidForm(server.to_owned(), why))
}

/// Returns the answer of a person, as `{action}` or `{action, content}`, for a server.
pub(crate) fn result_of(answer: &Value) -> ElicitResult {
    let content = || answer.get("content").map(to_json).unwrap_or_default();
    match answer.get("action").and_then(Value::as_text) {
        Some("accept") => ElicitResult::new(ElicitationAction::Accept).with_content(content()),
        Some("decline") => ElicitResult::new(ElicitationAction::Decline),
        _ => ElicitResult::new(ElicitationAction::Cancel),
    }
}

/// Escapes the titles and descriptions of a schema. Values that an answer repeats stay as they are; the kernel refuses those
/// with hidden characters.
fn with_visible_texts(schema: Value) -> Value {
    match schema {
        Value::Map(map) => Value::Map(map.into_iter().map(entry).collect::<Map>()),
        Value::List(items) => Value::List(items.into_iter().map(with_visible_texts).collect()),
        other => other,
    }
}

fn entry((key, value): (String, Value)) -> (String, Value) {
    let value = match value {
        Value::Text(text) if key == "title" || key == "description" => Value::Text(visible(&text)),
        Value::List(names) if key == "enumNames" => Value::List(names.into_iter().map(visible_name).collect()),
        other => with_visible_texts(other),
    };
    (key, value)
}

fn visible_name(name: Value) -> Value {
    match name {
        Value::Text(text) => Value::Text(visible(&text)),
        other => other,
    }
}

/// Escapes characters that are not seen or that change how other text looks. Line ends stay.
fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\n' => shown.push('\n'),
            hidden if is_obeyed(hidden) => shown.extend(hidden.escape_unicode()),
            other => shown.push(other),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(message: &str) -> ElicitRequestParams {
        let schema = r#"{"type":"object","properties":{"a":{"type":"string","title":"A\u202e"}}}"#;
        let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
        serde_json::from_value(serde_json::json!({"message": message, "requestedSchema": schema})).unwrap()
    }

    #[tokio::test]
    async fn a_form_reaches_the_only_call_in_progress() {
        let forms = Arc::new(Forms::default());
        let none = forms.ask(request("m")).await.unwrap_err();
        assert!(none.message.contains("no call"), "{none}");
        let (desk_a, mut asked) = desk();
        let open = forms.open(&desk_a);
        let answers = async {
            let asked = asked.recv().await.unwrap();
            assert_eq!(asked.form.get("message").and_then(Value::as_text), Some("one\ntwo\\u{1b}"));
            let title = asked.form.get("form").and_then(|form| form.get("properties")?.get("a")?.get("title").cloned());
            assert_eq!(title, Some("A\\u{202e}".into()));
            let content = Value::map([("a", "x".into())]);
            asked.reply.send(result_of(&Value::map([("action", "accept".into()), ("content", content)]))).unwrap();
        };
        let (answer, ()) = tokio::join!(forms.ask(request("one\ntwo\u{1b}")), answers);
        assert_eq!(answer.unwrap().content, Some(serde_json::json!({"a": "x"})));
        let (desk_b, _asked) = desk();
        let second = forms.open(&desk_b);
        let several = forms.ask(request("m")).await.unwrap_err();
        assert!(several.message.contains("several calls"), "{several}");
        drop((open, second));
        assert!(forms.ask(request("m")).await.unwrap_err().message.contains("no call"));
    }

    #[tokio::test]
    async fn forms_that_cannot_be_shown_are_refused() {
        let forms = Arc::new(Forms::default());
        let (desk, _asked) = desk();
        let _open = forms.open(&desk);
        let url = serde_json::json!({"mode": "url", "message": "m", "url": "https://a.b", "elicitationId": "e"});
        let refused = forms.ask(serde_json::from_value(url).unwrap()).await.unwrap_err();
        assert!(refused.message.contains("URL"), "{refused}");
    }

    #[test]
    fn sampling_and_roots_are_refused() {
        let requests = serde_json::json!({"r": {"method": "roots/list"}});
        let requests: InputRequests = serde_json::from_value(requests).unwrap();
        assert_eq!(read_all("s", &requests, &Redactor::default()), Err(ToolError::InputRequired("s".into())));
    }
}
