//! Events in the form of CloudEvents 1.0 (structured JSON).

use mainspring_kernel::{
    json::compact,
    key::ExecutionKey,
    time::rfc3339,
    value::{Map, Value},
};
use mainspring_store::ExecutionRow;

use super::{event_types::TEST_TYPE, journal_events::JournalEvent};
use crate::resources::{Prompt, repository::Stored};

/// The media type of an event.
pub(crate) const MEDIA_TYPE: &str = "application/cloudevents+json; charset=utf-8";

/// The identifier of the schema of `data`, in `schemas/event.schema.json`.
const DATA_SCHEMA: &str = "urn:mainspring:schema:event";

/// The type of a prompt for an orchestrator.
pub(crate) const PROMPT_TYPE: &str = "workflow.orchestrator.prompt";

/// The identifier of the schema of `data` of a prompt, in `schemas/prompt.schema.json`.
const PROMPT_SCHEMA: &str = "urn:mainspring:schema:prompt";

/// An event that is ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CloudEvent {
    /// Its id, unique in all installations, and the same for each attempt.
    pub id: String,
    /// Its type.
    pub event_type: String,
    /// The body of the request.
    pub body: String,
    /// The number of webhooks with events that led to it, this one included; 0 if it is no event of an execution.
    pub hops: u32,
}

/// The id of an event, which follows from its position in the journal. It has no dot, since a signature covers
/// `ID.TIMESTAMP.BODY` (Standard Webhooks).
pub(crate) fn event_id(execution: ExecutionKey, (sequence, index): (u64, u32)) -> String {
    format!("{execution}_{sequence}_{index}")
}

/// Builds the CloudEvent of a fact in the journal of an execution to which so many hops led.
pub(crate) fn of_execution(row: &ExecutionRow, event: &JournalEvent, hops: u32) -> CloudEvent {
    let id = event_id(row.key, (event.sequence, event.index));
    let mut data = event.data.clone();
    let text = |value: Option<&str>| Value::from(value);
    data.extend([
        ("executionId".to_string(), row.id.as_str().into()),
        ("workflowId".into(), text(row.workflow_id.as_deref())),
        ("workflowName".into(), text(row.names.workflow_name.as_deref().or(row.workflow.as_deref()))),
        ("workflowVersion".into(), text(row.workflow_version.as_deref())),
        ("triggerId".into(), text(row.trigger_id.as_deref())),
        ("triggerType".into(), row.trigger_type.as_str().into()),
        ("parentExecutionId".into(), text(row.started_by().as_deref())),
    ]);
    let attributes = Attributes {
        id: &id,
        source: source(row.organization.as_deref().unwrap_or_default(), row.workflow_id.as_deref()),
        subject: Some(&row.id),
        time: &event.time,
        // It has a fixed width, so that the order of texts is that of the journal.
        sequence: Some(format!("{:012}.{:04}", event.sequence, event.index)),
        schema: DATA_SCHEMA,
    };
    let body = envelope(&event.event_type, &attributes, data);
    CloudEvent { id, event_type: event.event_type.clone(), body, hops: hops.saturating_add(1) }
}

/// The event of a test delivery.
pub(crate) fn of_test(organization: &str, subscription: &str, id: String, time: &str) -> CloudEvent {
    let data = Map::from([("subscriptionId".to_string(), Value::from(subscription))]);
    let source = source(organization, None);
    let attributes = Attributes { id: &id, source, subject: None, time, sequence: None, schema: DATA_SCHEMA };
    let body = envelope(TEST_TYPE, &attributes, data);
    CloudEvent { id, event_type: TEST_TYPE.into(), body, hops: 0 }
}

/// The event of a prompt for the orchestrator of an organization.
pub(crate) fn of_prompt(organization: &str, prompt: &Stored<Prompt>) -> CloudEvent {
    let Prompt { trigger, trigger_name, user, text, source: by, scheduled_at, requested_by, redelivery_of, .. } =
        &prompt.body;
    let data = [
        ("prompt", Value::from(text.as_str())),
        ("triggerId", trigger.as_str().into()),
        ("triggerName", trigger_name.as_str().into()),
        ("triggerType", by.as_str().into()),
        ("userId", user.as_str().into()),
        ("requestedBy", requested_by.as_deref().into()),
        ("scheduledAt", scheduled_at.as_deref().into()),
        ("redeliveryOf", redelivery_of.as_deref().into()),
    ];
    let data = Map::from(data.map(|(key, value)| (key.to_string(), value)));
    let time = rfc3339(prompt.body.accepted_at);
    let attributes = Attributes {
        id: &prompt.id,
        source: source(organization, None),
        subject: Some(trigger),
        time: &time,
        sequence: None,
        schema: PROMPT_SCHEMA,
    };
    let body = envelope(PROMPT_TYPE, &attributes, data);
    CloudEvent { id: prompt.id.clone(), event_type: PROMPT_TYPE.into(), body, hops: 0 }
}

/// A relative reference, so that all nodes of an installation send the same.
fn source(organization: &str, workflow: Option<&str>) -> String {
    let escaped = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    match workflow {
        Some(workflow) => format!("/organizations/{}/workflows/{}", escaped(organization), escaped(workflow)),
        None => format!("/organizations/{}", escaped(organization)),
    }
}

struct Attributes<'a> {
    id: &'a str,
    source: String,
    subject: Option<&'a str>,
    time: &'a str,
    sequence: Option<String>,
    schema: &'static str,
}

fn envelope(event_type: &str, attributes: &Attributes<'_>, data: Map) -> String {
    let mut event = Map::from([
        ("specversion".to_string(), Value::from("1.0")),
        ("id".into(), attributes.id.into()),
        ("source".into(), attributes.source.as_str().into()),
        ("type".into(), event_type.into()),
        ("time".into(), attributes.time.into()),
        ("datacontenttype".into(), "application/json".into()),
        ("dataschema".into(), attributes.schema.into()),
        ("data".into(), Value::Map(data)),
    ]);
    event.extend(attributes.subject.map(|subject| ("subject".to_string(), subject.into())));
    event.extend(attributes.sequence.as_deref().map(|sequence| ("sequence".to_string(), sequence.into())));
    compact(&Value::Map(event))
}
