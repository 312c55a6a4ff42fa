//! The stream of the Responses API. Its last event holds the whole response.

use mainspring_kernel::value::{Map, Value};

use super::{Assembly, Growth, invalid, provider_error, text};
use crate::{error::ModelError, provider::list};

/// A response so far.
#[derive(Default)]
pub(super) struct Response {
    /// The items that have ended, for servers whose last event lacks them.
    items: Vec<Value>,
    last: Option<Map>,
}

impl Assembly for Response {
    fn take(&mut self, data: &Value, growth: &mut Growth) -> Result<bool, ModelError> {
        match text(data, "type")? {
            "response.output_text.delta" => {
                growth.has_begun = true;
                growth.text.push_str(text(data, "delta")?);
            }
            "response.output_item.added" => growth.has_begun = true,
            "response.output_item.done" => {
                let item = data.get("item").cloned().unwrap_or_default();
                growth.add_part(&item)?;
                self.items.push(item);
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                let Some(Value::Map(response)) = data.get("response") else {
                    return Err(invalid("its last event has no `response`"));
                };
                self.last = Some(response.clone());
                return Ok(true);
            }
            "error" => return Err(provider_error(data)),
            _ => {}
        }
        Ok(false)
    }

    /// The provider always sends the end of a response.
    fn may_end(&self) -> bool {
        false
    }

    fn body(&mut self) -> Value {
        let mut response = self.last.take().unwrap_or_default();
        let is_listed = !list(&Value::Map(response.clone()), "output").is_empty();
        if !is_listed && !self.items.is_empty() {
            response.insert("output".into(), std::mem::take(&mut self.items).into());
        }
        Value::Map(response)
    }
}
