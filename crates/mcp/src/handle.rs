//! The ways to continue a call after a report of its attempt. Journals keep them, so their form is frozen.

use mainspring_kernel::value::{Map, Value};

/// A call that continues.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Handle {
    /// This process holds the call open: `{kind: held}`.
    Held,
    /// The call is sent again with the answers: `{kind: repeat, state, pending, answers}`.
    Repeat {
        /// The state that the server requires with the answer.
        state: Option<String>,
        /// The forms that are to be answered.
        forms: Pending,
    },
    /// The server continues the call as a task: `{kind: task, server, tool, id, pending, answers}`.
    Task {
        /// Name of the server.
        server: String,
        /// Name of the tool there.
        tool: String,
        /// Id of the task.
        id: String,
        /// The forms that are to be answered.
        forms: Pending,
    },
}

/// The forms of a server that are asked for one after another.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Pending {
    /// Those without an answer: their keys, each with `{message, form}`. The first one is being asked for.
    pub(crate) open: Vec<(String, Value)>,
    /// The answers by key.
    pub(crate) answers: Map,
}

impl Pending {
    pub(crate) fn of(open: Vec<(String, Value)>) -> Self {
        Self { open, answers: Map::new() }
    }

    /// Adds the answer to the first open form.
    pub(crate) fn answered(mut self, answer: &Value) -> Self {
        if !self.open.is_empty() && *answer != Value::Null {
            let (key, _) = self.open.remove(0);
            self.answers.insert(key, answer.clone());
        }
        self
    }

    fn entries(&self) -> [(&'static str, Value); 2] {
        let open =
            self.open.iter().map(|(key, form)| Value::map([("key", key.as_str().into()), ("form", form.clone())]));
        [("pending", Value::List(open.collect())), ("answers", Value::Map(self.answers.clone()))]
    }

    fn read(value: &Value) -> Option<Self> {
        let open = value
            .get("pending")?
            .as_list()?
            .iter()
            .map(|entry| Some((entry.get("key")?.as_text()?.to_owned(), entry.get("form")?.clone())));
        Some(Self { open: open.collect::<Option<_>>()?, answers: value.get("answers")?.as_map()?.clone() })
    }
}

impl Handle {
    pub(crate) fn to_value(&self) -> Value {
        let text = |text: &str| Value::from(text);
        match self {
            Self::Held => Value::map([("kind", text("held"))]),
            Self::Repeat { state, forms } => {
                let state = state.as_deref().map_or(Value::Null, text);
                Value::map([("kind", text("repeat")), ("state", state)].into_iter().chain(forms.entries()))
            }
            Self::Task { server, tool, id, forms } => {
                let own = [("kind", text("task")), ("server", text(server)), ("tool", text(tool)), ("id", text(id))];
                Value::map(own.into_iter().chain(forms.entries()))
            }
        }
    }

    /// Reads a handle; `None` for one of a newer release.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let text = |key: &str| Some(value.get(key)?.as_text()?.to_owned());
        match value.get("kind")?.as_text()? {
            "held" => Some(Self::Held),
            "repeat" => Some(Self::Repeat { state: text("state"), forms: Pending::read(value)? }),
            "task" => {
                let (server, tool, id) = (text("server")?, text("tool")?, text("id")?);
                Some(Self::Task { server, tool, id, forms: Pending::read(value)? })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handles_are_read_back_and_their_form_is_frozen() {
        let forms = Pending::of(vec![("a".into(), "form a".into()), ("b".into(), "form b".into())]);
        let forms = forms.answered(&"yes".into());
        assert_eq!(forms.open, [("b".to_owned(), Value::from("form b"))]);
        let task = Handle::Task { server: "s".into(), tool: "t".into(), id: "1".into(), forms: forms.clone() };
        for (handle, expected) in [
            (Handle::Held, r#"{"kind":"held"}"#),
            (
                Handle::Repeat { state: None, forms },
                r#"{"answers":{"a":"yes"},"kind":"repeat","pending":[{"form":"form b","key":"b"}],"state":null}"#,
            ),
            (
                task,
                r#"{"answers":{"a":"yes"},"id":"1","kind":"task","pending":[{"form":"form b","key":"b"}],"server":"s","tool":"t"}"#,
            ),
        ] {
            let value = handle.to_value();
            assert_eq!(mainspring_kernel::json::canonical(&value), expected);
            assert_eq!(Handle::read(&value), Some(handle));
        }
        assert_eq!(Handle::read(&Value::map([("kind", "later".into())])), None);
    }
}
