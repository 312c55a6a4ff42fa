//! The sessions of executions. Each execution has one of its own, so that everything about it follows from the row and
//! the journal of the execution, and no second table can contradict them.

use std::collections::BTreeMap;

use mainspring_engine::start_request::is_child;
use mainspring_kernel::{
    hash::Hash,
    history::{AttemptHistory, History},
    instance::Instance,
    key::ExecutionKey,
    limits::LINEAGE_DEPTH_MAX,
    plan::{AgentPart, Loop, Over, Plan, Work},
    template::Template,
};
use mainspring_store::{ExecutionRow, Filter, ReadLimit, Store, is_final};
use mainspring_triggers::session_key::{SessionKey, SessionKeyError, SessionPattern};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    app::App,
    auth::{caller::Caller, execution_access::visible_execution},
    http::{
        pagination::Page,
        problem::{Problem, Result},
        timestamps,
    },
};

/// The purpose of the session of an execution.
pub(crate) const WORKFLOW: &str = "workflow";

/// All purposes of sessions (first specification, 7). Only those of executions exist in this product.
pub(crate) const PURPOSES: [&str; 3] = ["interactive", "orchestrator", WORKFLOW];

/// The statuses of sessions, each with those of executions.
pub(crate) const STATUSES: [(&str, &[&str]); 3] = [
    ("hibernated", &["pending", "waiting_approval"]),
    ("running", &["running", "cancel_requested"]),
    ("terminated", &["completed", "failed", "cancelled"]),
];

/// Rows per read of the store.
const ROWS_AT_A_TIME: usize = 25;

/// Most rows that one request compares with a pattern. A page may then be short and have a cursor.
const ROWS_COMPARED_MAX: usize = 2_000;

/// A session as the API shows it: where the effects of one execution happen.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExecutionSession {
    /// Unique id; `sessionId` of the execution.
    pub id: String,
    /// Session key: `agent:A:workflow:W:run:X` with the member, the workflow and the execution. A part that such a key
    /// cannot hold is replaced.
    pub key: String,
    /// `workflow`.
    pub purpose: &'static str,
    /// `hibernated` before the start and while only approvals are open, `running`, or `terminated` with the execution.
    pub status: &'static str,
    /// As in `GET /api/executions/{id}`.
    pub execution_id: String,
    /// As in `GET /api/executions/{id}`: `pending`, `running`, `waiting_approval`, `completed`, …
    pub execution_status: String,
    /// Id of the workflow; null for child executions of older releases.
    pub workflow_id: Option<String>,
    /// Id of the member on whose behalf it acts.
    pub user_id: Option<String>,
    /// Key of the session whose step started this execution; null without one.
    pub spawned_by: Option<String>,
    /// Number of sessions above this one: 0 for an execution without a parent. Null if a parent is unknown.
    pub spawn_depth: Option<u32>,
    /// Always false: no link gives access to it.
    pub shareable: bool,
    /// Paths to its records.
    pub transcript: Transcript,
    /// Time of acceptance, RFC 3339.
    pub created_at: String,
    /// End of the execution, RFC 3339; null if it has not ended.
    pub ended_at: Option<String>,
}

/// Paths to the records of a session.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Transcript {
    /// Attempts with inputs and outputs.
    pub steps: String,
    /// Events as a stream.
    pub events: String,
    /// Frames of the journal.
    pub journal: String,
}

/// The session of a step attempt.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct AttemptSession {
    /// Session key: `agent:A:workflow:W:run:X:node:S:attempt:N`.
    pub key: String,
    /// Step instance, such as `fetch[3].parse`.
    pub node: String,
    /// Number of the attempt, from 1.
    pub attempt: u32,
    /// `running`, `waiting`, `waiting_approval`, `completed`, `failed` or `cancelled`.
    pub status: String,
    /// Key of the session of the execution.
    pub spawned_by: String,
    /// Number of sessions above this one; null if a parent of the execution is unknown.
    pub spawn_depth: Option<u32>,
    /// Model that the agent of this attempt names; null for other attempts, and for the default model.
    pub agent_hint: Option<String>,
    /// Path to the attempt with its input and output.
    pub transcript: String,
    /// Id of the session of the child execution that the attempt started; null without one.
    pub child_session_id: Option<String>,
    /// Start of the attempt, RFC 3339.
    pub started_at: String,
    /// End of the attempt, RFC 3339; null if it has not ended.
    pub ended_at: Option<String>,
}

/// A text as a part of a session key, or the hash of a text that cannot be a part.
fn part(text: &str) -> String {
    match SessionKey::of_execution(text, "w", "r") {
        Ok(_) => text.into(),
        Err(_) => Hash::of(text.as_bytes()).hex(),
    }
}

/// `agent:A:workflow:W:run:X` for the member, the workflow and the execution of a row.
pub(crate) fn key_of(row: &ExecutionRow) -> std::result::Result<SessionKey, SessionKeyError> {
    let agent = row.initiator_user_id.as_deref().map_or_else(|| "none".into(), part);
    let workflow = row.workflow_id.as_ref().or(row.workflow.as_ref());
    SessionKey::of_execution(&agent, &part(workflow.unwrap_or(&row.workflow_hash)), &part(&row.id))
}

fn text_of_key(row: &ExecutionRow) -> String {
    key_of(row).map_or_else(|_| row.session(), |key| key.to_string())
}

/// The status of the session of an execution.
pub(crate) fn status_of(row: &ExecutionRow) -> &'static str {
    let found = STATUSES.iter().find(|(_, statuses)| statuses.contains(&row.status.as_str()));
    found.map_or("running", |(status, _)| status)
}

/// The parents of sessions. Each is read once.
pub(crate) struct Parents<'a> {
    store: &'a dyn Store,
    known: BTreeMap<String, Option<Parent>>,
}

/// A session that started another one.
#[derive(Debug, Clone)]
struct Parent {
    key: String,
    depth: Option<u32>,
}

impl<'a> Parents<'a> {
    pub(crate) fn of(store: &'a dyn Store) -> Self {
        Self { store, known: BTreeMap::new() }
    }

    /// The key of the parent, and the number of sessions above an execution.
    fn above(&mut self, row: &ExecutionRow) -> Result<(Option<String>, Option<u32>)> {
        self.above_within(row, LINEAGE_DEPTH_MAX)
    }

    fn above_within(&mut self, row: &ExecutionRow, levels: u32) -> Result<(Option<String>, Option<u32>)> {
        let Some(id) = row.started_by() else {
            return Ok((None, (!is_child(&row.trigger_type)).then_some(0)));
        };
        let parent = match self.known.get(&id) {
            Some(parent) => parent.clone(),
            None => {
                let parent = self.read(&id, levels)?;
                self.known.insert(id, parent.clone());
                parent
            }
        };
        let depth = parent.as_ref().and_then(|parent| parent.depth).map(|depth| depth + 1);
        Ok((parent.map(|parent| parent.key), depth))
    }

    fn read(&mut self, id: &str, levels: u32) -> Result<Option<Parent>> {
        let row = match ExecutionKey::parse(id) {
            Some(key) => self.store.execution(key)?,
            None => self.store.execution_by_id(id)?,
        };
        let Some(row) = row else { return Ok(None) };
        let depth = match levels.checked_sub(1) {
            Some(levels) => self.above_within(&row, levels)?.1,
            None => None,
        };
        Ok(Some(Parent { key: text_of_key(&row), depth }))
    }
}

/// The session of an execution as the API shows it.
pub(crate) fn session(parents: &mut Parents<'_>, row: &ExecutionRow) -> Result<ExecutionSession> {
    let (spawned_by, spawn_depth) = parents.above(row)?;
    // An external id may contain any character, and the key none that a path must encode.
    let path = |part: &str| format!("/api/executions/{}/{part}", row.key);
    Ok(ExecutionSession {
        id: row.session(),
        key: text_of_key(row),
        purpose: WORKFLOW,
        status: status_of(row),
        execution_id: row.id.clone(),
        execution_status: row.status.clone(),
        workflow_id: row.workflow_id.clone(),
        user_id: row.initiator_user_id.clone(),
        spawned_by,
        spawn_depth,
        shareable: false,
        transcript: Transcript { steps: path("steps"), events: path("events"), journal: path("journal") },
        created_at: timestamps::text(row.started_at),
        ended_at: row.completed_at.filter(|_| is_final(&row.status)).map(timestamps::text),
    })
}

/// The execution of a session that the caller may see, by the id or the key of the session.
pub(crate) fn visible_session(app: &App, caller: &Caller, id: &str) -> Result<ExecutionRow> {
    let unknown = || Problem::not_found("session");
    let key = match (ExecutionKey::of_session_id(id), SessionKey::parse(id)) {
        (Some(key), _) => return visible_execution(app, caller, &key.to_string()).map_err(|_| unknown()),
        (None, Ok(key)) => key,
        (None, Err(_)) => return Err(unknown()),
    };
    if key.attempt().is_some() {
        let message = "this is the key of a step attempt; `GET /api/sessions/{id}/attempts` of its execution lists it";
        return Err(Problem::field("id", message));
    }
    let row = visible_execution(app, caller, key.run()).map_err(|_| unknown())?;
    if key_of(&row).is_ok_and(|known| known == key) { Ok(row) } else { Err(unknown()) }
}

/// A page of rows whose session keys match, and the position of the next page. It may be short if few match.
pub(crate) fn matching(
    store: &dyn Store,
    (filter, pattern): (&Filter, Option<&SessionPattern>),
    mut before: Option<ExecutionKey>,
    most: ReadLimit,
) -> Result<(Vec<ExecutionRow>, Option<ExecutionKey>)> {
    let (mut page, mut compared) = (Page::new(most), 0);
    loop {
        let rows = store.executions(filter, before, ROWS_AT_A_TIME)?;
        let is_last = rows.len() < ROWS_AT_A_TIME;
        for row in rows {
            if page.is_full() || compared == ROWS_COMPARED_MAX {
                return Ok((page.rows, before));
            }
            (before, compared) = (Some(row.key), compared + 1);
            if pattern.is_none_or(|pattern| key_of(&row).is_ok_and(|key| pattern.matches(&key))) {
                let bytes = row.id.len() + row.workflow.as_ref().map_or(0, String::len);
                page.add(row, bytes);
            }
        }
        if is_last {
            return Ok((page.rows, None));
        }
    }
}

/// The session of a step attempt; `None` for a step that never started.
pub(crate) fn attempt(
    (execution, spawn_depth): (&SessionKey, Option<u32>),
    (row, place): (&ExecutionRow, usize),
    plan: &Plan,
    attempt: &AttemptHistory,
) -> Option<AttemptSession> {
    let key = execution.with_attempt(&part(&attempt.step), attempt.attempt).ok()?;
    Some(AttemptSession {
        key: key.to_string(),
        node: attempt.step.clone(),
        attempt: attempt.attempt,
        status: attempt.status.name().into(),
        spawned_by: execution.to_string(),
        spawn_depth: spawn_depth.map(|depth| depth + 1),
        agent_hint: agent_hint(plan, &attempt.step),
        transcript: format!("/api/executions/{}/steps?cursor={place}&limit=1", row.key),
        child_session_id: attempt.child.map(ExecutionKey::session_id),
        started_at: timestamps::text(attempt.started_at),
        ended_at: attempt.ended_at.map(timestamps::text),
    })
}

/// The model that the agent around a step names.
fn agent_hint(plan: &Plan, name: &str) -> Option<String> {
    let step = Instance::parse(name, plan)?.step;
    let agent = match plan.agent_part(step) {
        None => step,
        Some(AgentPart::Model | AgentPart::Calls) => plan.parent(step)?,
        Some(AgentPart::Call) => plan.parent(plan.parent(step)?)?,
    };
    let Work::Loop(Loop { over: Over::Turns(agent), .. }) = &plan.step(agent).work else { return None };
    let Template::Map(fields) = &agent.settings else {
        let Template::Literal(settings) = &agent.settings else { return None };
        return settings.get("model")?.as_text().map(Into::into);
    };
    match &fields.iter().find(|(key, _)| key == "model")?.1 {
        Template::Literal(model) => model.as_text().map(Into::into),
        _ => None,
    }
}

/// The depth of the session of an execution; see [`ExecutionSession::spawn_depth`].
pub(crate) fn depth_of(parents: &mut Parents<'_>, row: &ExecutionRow) -> Result<Option<u32>> {
    Ok(parents.above(row)?.1)
}

/// The sessions of a page of attempts.
pub(crate) fn attempts(
    row: &ExecutionRow,
    spawn_depth: Option<u32>,
    plan: &Plan,
    (history, from, count): (&History, usize, usize),
) -> Vec<AttemptSession> {
    let Ok(key) = key_of(row) else { return Vec::new() };
    let numbered = history.attempts.iter().take(count).enumerate();
    numbered.filter_map(|(at, one)| attempt((&key, spawn_depth), (row, from + at), plan, one)).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use mainspring_kernel::stored_frame::StoredFrame;
    use mainspring_store::{Batch, Fence, Part, StartNames, memory::MemoryStore, prelude::*};

    use super::*;

    pub(crate) fn row(number: u8, parent: Option<u8>) -> ExecutionRow {
        let name = |number: u8| format!("run {number}");
        ExecutionRow {
            key: ExecutionKey([number; 16]),
            id: name(number),
            organization: Some("acme".into()),
            workflow_id: Some("w:1".into()),
            trigger_id: None,
            parent: None,
            names: StartNames { parent_id: parent.map(name), ..StartNames::default() },
            usage: None,
            workflow: None,
            workflow_version: None,
            workflow_hash: String::new(),
            plan_hash: Hash::default(),
            status: "running".into(),
            outcome: None,
            error: None,
            trigger_type: if parent.is_some() { "subworkflow_detached" } else { "manual" }.into(),
            initiator_type: "manual".into(),
            initiator_user_id: Some("ada".into()),
            idempotency_key: None,
            session_id: None,
            partition: 0,
            attempt_count: 1,
            started_at: 1,
            completed_at: None,
        }
    }

    pub(crate) fn store(rows: impl IntoIterator<Item = ExecutionRow>) -> MemoryStore {
        let store = MemoryStore::new();
        let epoch = store.claim(0, "n").unwrap();
        let part = |row: ExecutionRow| Part {
            frames: vec![StoredFrame { sequence: 0, frame: vec![1], values: Vec::new() }],
            row: Some(row.clone()),
            ..Part::empty(row.key, 0)
        };
        let parts = rows.into_iter().map(part).collect();
        let batch = Batch { fences: vec![Fence { partition: 0, epoch }], parts, sealing: [0; 32] };
        store.commit(&batch).unwrap();
        store
    }

    #[test]
    fn every_row_has_a_key_that_is_read_back() {
        let key = key_of(&row(1, None)).unwrap();
        let hashed = |text: &str| Hash::of(text.as_bytes()).hex();
        assert_eq!((key.agent(), key.workflow(), key.run()), ("ada", &*hashed("w:1"), &*hashed("run 1")));
        assert_eq!(SessionKey::parse(&key.to_string()), Ok(key));
        let unknown = ExecutionRow { initiator_user_id: None, workflow_id: None, id: "e".repeat(300), ..row(1, None) };
        assert!(key_of(&unknown).is_ok());
    }

    #[test]
    fn depth_counts_the_sessions_above() {
        // The parent of 4 is not in the store, and 5 is its own.
        let rows = [row(1, None), row(2, Some(1)), row(3, Some(2)), row(4, Some(9)), row(5, Some(5))];
        let store = store(rows.clone());
        let mut parents = Parents::of(&store);
        let above: Vec<_> = rows.iter().map(|row| parents.above(row).unwrap()).collect();
        let key = |number: u8| Some(text_of_key(&row(number, None)));
        assert_eq!(above[..3], [(None, Some(0)), (key(1), Some(1)), (key(2), Some(2))]);
        assert_eq!(above[3..], [(None, None), (key(5), None)]);
        let older = ExecutionRow { names: StartNames::default(), ..row(2, Some(1)) };
        assert_eq!(parents.above(&older).unwrap(), (None, None));
    }

    #[test]
    fn pages_of_matching_sessions_are_the_whole_list_once() {
        let rows =
            (1..=120).map(|number| ExecutionRow { id: format!("r{}-{number}", number % 3), ..row(number, None) });
        let store = store(rows);
        let filter = Filter { organization: Some("acme".into()), ..Filter::default() };
        let all = |pattern: &str, rows: usize| {
            let pattern = SessionPattern::parse(pattern).unwrap();
            let (mut found, mut before) = (Vec::new(), None);
            loop {
                let most = ReadLimit { rows, bytes: 1 << 20 };
                let (page, next) = matching(&store, (&filter, Some(&pattern)), before, most).unwrap();
                assert!(page.len() <= rows);
                found.extend(page.iter().map(|row| row.key.0[0]));
                match next {
                    Some(_) => before = next,
                    None => return found,
                }
            }
        };
        for rows in [1, 7, 40, 200] {
            let expected: Vec<u8> = (1..=120).rev().filter(|number| number % 3 == 0).collect();
            assert_eq!(all("agent:ada:workflow:*:run:r0-*", rows), expected, "{rows}");
        }
        assert!(all("agent:bob:workflow:*:run:*", 10).is_empty());
    }

    #[test]
    fn each_status_of_an_execution_is_one_of_a_session() {
        let statuses = STATUSES.iter().flat_map(|(status, all)| all.iter().map(move |one| (*status, *one)));
        for (expected, status) in statuses {
            assert_eq!(status_of(&ExecutionRow { status: status.into(), ..row(1, None) }), expected);
        }
    }
}
