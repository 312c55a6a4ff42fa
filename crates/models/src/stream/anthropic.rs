//! The stream of the Messages API: blocks that begin, grow and end, each with its index.

use mainspring_kernel::{
    json,
    value::{Map, Value},
};

use super::{Assembly, Growth, index, invalid, merge, text};
use crate::error::{ModelError, quoted};

/// A message so far.
#[derive(Default)]
pub(super) struct Message {
    has_begun: bool,
    model: Value,
    stop_reason: Value,
    usage: Map,
    blocks: Vec<Block>,
}

struct Block {
    value: Map,
    /// The arguments of a call, as JSON that may not be complete.
    arguments: String,
    is_open: bool,
}

/// The texts by which blocks grow: the type of the delta, its key, the type of the block, and the key there.
const TEXTS: [(&str, &str, &str, &str); 3] = [
    ("text_delta", "text", "text", "text"),
    ("thinking_delta", "thinking", "thinking", "thinking"),
    ("signature_delta", "signature", "thinking", "signature"),
];

impl Assembly for Message {
    fn take(&mut self, data: &Value, growth: &mut Growth) -> Result<bool, ModelError> {
        let kind = text(data, "type")?;
        let needs_begin = kind.starts_with("content_block_") || matches!(kind, "message_delta" | "message_stop");
        if needs_begin && !self.has_begun {
            return Err(invalid(format!("it begins with `{}` and not with `message_start`", quoted(kind))));
        }
        match kind {
            "message_start" => self.begin(data, growth)?,
            "content_block_start" => self.begin_block(data, growth)?,
            "content_block_delta" => {
                let (block, delta) = (self.open_block(data)?, data.get("delta").unwrap_or(&Value::Null));
                grow(block, delta, growth)?;
            }
            "content_block_stop" => end(self.open_block(data)?),
            "message_delta" => {
                let reason = data.get("delta").and_then(|delta| delta.get("stop_reason"));
                if let Some(reason) = reason.filter(|reason| **reason != Value::Null) {
                    self.stop_reason = reason.clone();
                }
                merge(&mut self.usage, data.get("usage").unwrap_or(&Value::Null));
            }
            "message_stop" if self.blocks.iter().any(|block| block.is_open) => {
                return Err(invalid("it ends in the middle of a block"));
            }
            "message_stop" => return Ok(true),
            // Pings, and events of later versions, which clients are asked to ignore.
            _ => {}
        }
        Ok(false)
    }

    /// The provider always sends the end of a message.
    fn may_end(&self) -> bool {
        false
    }

    fn body(&mut self) -> Value {
        let content: Vec<Value> = self.blocks.drain(..).map(|block| Value::Map(block.value)).collect();
        Value::map([
            ("content", content.into()),
            ("model", std::mem::take(&mut self.model)),
            ("stop_reason", std::mem::take(&mut self.stop_reason)),
            ("usage", Value::Map(std::mem::take(&mut self.usage))),
        ])
    }
}

impl Message {
    fn begin(&mut self, data: &Value, growth: &mut Growth) -> Result<(), ModelError> {
        if std::mem::replace(&mut self.has_begun, true) {
            return Err(invalid("a second message begins in it"));
        }
        let message = data.get("message").unwrap_or(&Value::Null);
        let model = text(message, "model")?;
        growth.add(model.len())?;
        self.model = Some(model).filter(|model| !model.is_empty()).into();
        merge(&mut self.usage, message.get("usage").unwrap_or(&Value::Null));
        Ok(())
    }

    fn begin_block(&mut self, data: &Value, growth: &mut Growth) -> Result<(), ModelError> {
        let at = index(data)?;
        if at != Some(self.blocks.len()) {
            return Err(invalid(format!("block {} begins where block {} is due", number(at), self.blocks.len())));
        }
        let block = data.get("content_block").unwrap_or(&Value::Null);
        let Value::Map(value) = block else { return Err(invalid("a block begins without its content")) };
        growth.add_part(block)?;
        if text(block, "type")? == "text" {
            growth.text.push_str(text(block, "text")?);
        }
        self.blocks.push(Block { value: value.clone(), arguments: String::new(), is_open: true });
        Ok(())
    }

    fn open_block(&mut self, data: &Value) -> Result<&mut Block, ModelError> {
        let at = index(data)?;
        let block = at.and_then(|at| self.blocks.get_mut(at)).filter(|block| block.is_open);
        block.ok_or_else(|| invalid(format!("block {} is not open", number(at))))
    }
}

fn number(index: Option<usize>) -> String {
    index.map_or_else(|| "without an index".into(), |index| index.to_string())
}

fn grow(block: &mut Block, delta: &Value, growth: &mut Growth) -> Result<(), ModelError> {
    let (kind, block_kind) = (text(delta, "type")?, block.value.get("type").and_then(Value::as_text));
    let misplaced = |kind: &str| invalid(format!("a `{}` is part of another kind of block", quoted(kind)));
    if kind == "input_json_delta" {
        if !block.value.contains_key("input") {
            return Err(misplaced(kind));
        }
        return growth.extend(&mut block.arguments, text(delta, "partial_json")?);
    }
    if kind == "citations_delta" {
        let citation = delta.get("citation").cloned().unwrap_or_default();
        growth.add_part(&citation)?;
        match block.value.entry("citations".into()).or_insert(Value::Null) {
            Value::List(citations) => citations.push(citation),
            none => *none = Value::List(vec![citation]),
        }
        return Ok(());
    }
    let Some((_, from, wanted, to)) = TEXTS.iter().find(|(known, ..)| *known == kind) else {
        return Err(invalid(format!("a block grows by `{}`, which is not known", quoted(kind))));
    };
    if block_kind != Some(wanted) {
        return Err(misplaced(kind));
    }
    let more = text(delta, from)?;
    match block.value.entry((*to).into()).or_insert(Value::Null) {
        Value::Text(grown) if kind == "text_delta" => growth.say(grown, more),
        Value::Text(grown) => growth.extend(grown, more),
        none => {
            let mut grown = String::new();
            growth.extend(&mut grown, more)?;
            if kind == "text_delta" {
                growth.text.push_str(more);
            }
            *none = Value::Text(grown);
            Ok(())
        }
    }
}

/// Ends a block. Arguments that are not JSON stay text.
fn end(block: &mut Block) {
    block.is_open = false;
    let arguments = std::mem::take(&mut block.arguments);
    if !arguments.trim().is_empty() {
        let read = json::data(arguments.as_bytes()).unwrap_or(Value::Text(arguments));
        block.value.insert("input".into(), read);
    }
}
