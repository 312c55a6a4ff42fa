//! The results of external agents: the value of an answer whose step has an `outputSchema`.

use alloc::format;

use super::Decider;
use crate::{
    agent::read_answer,
    failure::{Class, Failure},
    instance::Instance,
    plan::Step,
    value::Value,
};

impl Decider<'_> {
    /// Returns the result of an external agent with the value of its answer. The results of other steps stay as they are. The
    /// error is the failure of the step: the answer has no value.
    pub(super) fn with_value(&self, instance: &Instance, result: &Value) -> Result<Option<Value>, Failure> {
        let step = self.state.plan.step(instance.step);
        let (Value::Map(fields), true) = (result, is_checked(step)) else { return Ok(None) };
        if fields.get("value").is_some_and(|value| *value != Value::Null) {
            return Ok(None);
        }
        let text = fields.get("text").and_then(Value::as_text).unwrap_or_default();
        let value = read_answer(text).map_err(|why| {
            let message =
                format!("step `{}`: the answer of the agent has no value: {why}", instance.name(&self.state.plan));
            Failure::new(Class::Invalid, "invalid_output", message).with_details(result.clone())
        })?;
        let mut fields = fields.clone();
        fields.insert("value".into(), value);
        Ok(Some(Value::Map(fields)))
    }
}

/// Returns the part of an output that its `outputSchema` describes: the value of an agent's answer, else all of it.
pub(super) fn described<'v>(step: &Step, output: &'v Value) -> &'v Value {
    if is_checked(step) { output.get("value").unwrap_or(&Value::Null) } else { output }
}

/// True for an external agent whose answer has a schema.
fn is_checked(step: &Step) -> bool {
    step.work.runner().is_some() && step.output_schema.is_some()
}
