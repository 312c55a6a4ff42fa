//! `mainspring message`: sends a text to an agent of an execution.

use clap::Args;
use mainspring_kernel::{cbor, limits::MESSAGE_BYTES_MAX, value::Value};

use crate::{
    backend::contract::{MessageRequest, fresh_id},
    context::Context,
    error::{CliError, Exit},
};

/// Send a message to an agent.
#[derive(Debug, Args)]
pub(crate) struct Message {
    /// The execution: its id, the beginning of it, or `last`
    id: String,
    /// Text for the agent
    text: String,
    /// The conversation; needed if the workflow has several
    #[arg(long, value_name = "NAME")]
    conversation: Option<String>,
    /// Cancel the open model call, so that the message is read at once; the call counts as paid
    #[arg(long)]
    interrupt: bool,
    /// The id of the message; a repeated id is ignored [default: a new one]
    #[arg(long, value_name = "ID")]
    message_id: Option<String>,
}

/// Sends a message. The agent reads it at its next turn, or when it begins.
pub(crate) fn message(message: &Message, context: &Context) -> Result<Exit, CliError> {
    let bytes = cbor::byte_count(&Value::from(message.text.as_str()));
    if message.text.trim().is_empty() || bytes > MESSAGE_BYTES_MAX {
        let text = format!("the message takes {bytes} bytes: write a text of 1 to {MESSAGE_BYTES_MAX} bytes");
        return Err(CliError::bad_input("bad_message", text));
    }
    let request = MessageRequest {
        id: message.message_id.clone().map_or_else(fresh_id, Ok)?,
        conversation: message.conversation.clone(),
        content: message.text.clone(),
        interrupt: message.interrupt,
    };
    Ok(context.backend()?.message(&message.id, &request)?.conclude(context))
}
