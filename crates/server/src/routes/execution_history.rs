//! The history of an execution: its attempts, and the frames of its journal.

use axum::{Json, extract::State};
use mainspring_kernel::{
    frame::{Frame, FrameError},
    hash::hex,
    history::{AttemptHistory, History},
    key::ExecutionKey,
    stored_frame::StoredFrame,
};
use mainspring_store::{ReadLimit, Store};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    auth::{caller::Caller, execution_access::visible_execution},
    http::{
        body::RawJson,
        extract::{PathParams, QueryParams},
        pagination::{Page, most, most_of, number},
        problem::{Code, Problem, Result},
        timestamps,
    },
    services::execution_view::attempts,
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(steps)).routes(routes!(journal))
}

/// Attempts of an execution in the order of their start.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Steps {
    /// Execution, as in `/api/executions/{id}`.
    execution_id: String,
    /// Attempts in the order of their start.
    #[schema(value_type = Vec<Attempt>)]
    steps: Vec<RawJson>,
    /// `cursor` of the next page; null for the last page.
    next_cursor: Option<String>,
}

/// An attempt of a step.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "described here, and written by the kernel")]
pub(super) struct Attempt {
    /// Step instance, such as `fetch[3].parse`.
    step_id: String,
    /// Number of the attempt, from 1; 0 for a step that was skipped or failed before its first attempt.
    attempt: u32,
    /// `running`, `waiting`, `waiting_approval`, `completed`, `failed`, `skipped` or `cancelled`.
    status: String,
    /// Start of the attempt, RFC 3339.
    started_at: String,
    /// End of the attempt, RFC 3339; null if it has not ended.
    completed_at: Option<String>,
    /// Resolved parameters; any JSON value.
    input: serde_json::Value,
    /// Output of a completed attempt, any JSON value; null otherwise.
    output: serde_json::Value,
    /// Error of a failed attempt: `{code, class, message, details}`; null otherwise.
    #[schema(value_type = Option<Object>, required)]
    error: (),
    /// Cause of the attempt.
    because: String,
    /// Reason why the attempt was skipped, retried, not retried, cancelled or decided.
    #[schema(nullable = false)]
    note: Option<String>,
    /// Decisions of an approval step.
    #[schema(nullable = false)]
    decisions: Option<Vec<Decided>>,
    /// Id of the child execution that the attempt started.
    #[schema(nullable = false)]
    child_execution_id: Option<String>,
    /// Console output of the function: `{level, text}`.
    #[schema(value_type = Option<Vec<Object>>, nullable = false)]
    log: (),
}

/// A decision of an approval.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described here, and written by the kernel")]
struct Decided {
    /// `approve` or `deny`.
    decision: String,
    /// Id of the member who decided; null for the decision at the timeout.
    by: Option<String>,
    /// Time, RFC 3339.
    at: String,
    /// Reason; null if none was given or it was erased.
    reason: Option<String>,
}

/// Position and size of a page of attempts.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StepsQuery {
    /// Maximum number of items, 1 to 200; by default bounded by the size of the response only.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `nextCursor` of the previous page.
    cursor: Option<String>,
}

/// Attempts of an execution in the order of their start.
///
/// Each page reads the whole journal. Without `limit` a page is bounded by bytes only.
#[utoipa::path(get, path = "/api/executions/{id}/steps", tag = "executions", params(("id" = String, Path), StepsQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = Steps)))]
async fn steps(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<StepsQuery>,
) -> Result<Json<Steps>> {
    let (most, from) = (most_of(query.limit, usize::MAX)?, number(query.cursor.as_deref())?.unwrap_or(0));
    app.run(move |app| {
        let row = visible_execution(app, &caller, &id)?;
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let history = attempts(app, &row, from)?;
        let (steps, next_cursor) = steps_page(&history.attempts, from, history.count, most)?;
        Ok(Json(Steps { execution_id: row.id, steps, next_cursor }))
    })
    .await
}

/// The first page of attempts, and the cursor of the next one.
pub(super) fn first_steps(history: &History) -> Result<(Vec<RawJson>, Option<String>)> {
    steps_page(&history.attempts, 0, history.count, most_of(None, usize::MAX)?)
}

/// A page of attempts from a position on, and the position of the next page. Positions are stable; an attempt that was
/// running may have ended when it is read again.
fn steps_page(
    attempts: &[AttemptHistory],
    from: usize,
    count: usize,
    most: ReadLimit,
) -> Result<(Vec<RawJson>, Option<String>)> {
    let mut page = Page::new(most);
    for attempt in attempts {
        if page.is_full() {
            break;
        }
        let written = RawJson::of(&attempt.to_value())?;
        let bytes = written.byte_count();
        page.add(written, bytes);
    }
    let next = from.saturating_add(page.rows.len());
    Ok((page.rows, (next < count).then(|| next.to_string())))
}

/// Frames of an execution's journal.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Journal {
    /// Execution, as in `/api/executions/{id}`.
    execution_id: String,
    /// Frames in ascending order.
    frames: Vec<FrameBody>,
    /// `cursor` of the next page; null for the last page.
    next_cursor: Option<String>,
}

/// A frame of a journal.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct FrameBody {
    /// Position in the journal, from 0.
    sequence: u64,
    /// Time of the frame, RFC 3339.
    at: String,
    /// Hash of the previous frame: `sha256:…`.
    before: String,
    /// Hash of the frame: `sha256:…`.
    hash: String,
    /// Stored frame in deterministic CBOR, as hexadecimal digits. The hash covers these bytes.
    frame: String,
}

/// Position and size of a page of frames.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct JournalQuery {
    /// Returns frames from this sequence on.
    from: Option<u64>,
    /// Maximum number of items, 1 to 200; default 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `nextCursor` of the previous page.
    cursor: Option<String>,
}

/// List the frames of an execution's journal with the hashes that chain them.
#[utoipa::path(get, path = "/api/executions/{id}/journal", tag = "executions", params(("id" = String, Path), JournalQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = Journal)))]
async fn journal(
    State(app): State<App>,
    caller: Caller,
    PathParams(id): PathParams<String>,
    QueryParams(query): QueryParams<JournalQuery>,
) -> Result<Json<Journal>> {
    let (most, next) = (most(query.limit)?, number(query.cursor.as_deref())?);
    app.run(move |app| {
        let row = visible_execution(app, &caller, &id)?;
        let page = frames(&**app.engine.store(), row.key, next.max(query.from).unwrap_or(0), most)?;
        let next_cursor = page.next_cursor(|last| (last.sequence + 1).to_string());
        Ok(Json(Journal { execution_id: row.id, frames: page.rows, next_cursor }))
    })
    .await
}

/// Frames from a sequence number on. The store reads frames together with their values, which are not sent: the store
/// bounds each read, and the page bounds the response.
fn frames(store: &dyn Store, execution: ExecutionKey, mut from: u64, most: ReadLimit) -> Result<Page<FrameBody>> {
    let mut page = Page::new(most);
    while !page.is_full() {
        let stored = store.frames(execution, from, ReadLimit { rows: page.room(), ..most })?;
        let Some(last) = stored.last() else { break };
        from = last.sequence + 1;
        for stored in &stored {
            let body = frame(stored)?;
            let bytes = body.frame.len();
            page.add(body, bytes);
        }
    }
    Ok(page)
}

fn frame(stored: &StoredFrame) -> Result<FrameBody> {
    let broken = |error: FrameError| {
        Problem::new(Code::InternalError, format!("Frame {} cannot be read: {error}.", stored.sequence))
    };
    let (frame, hash) = Frame::read(stored).map_err(broken)?;
    Ok(FrameBody {
        sequence: frame.sequence,
        at: timestamps::text(frame.now),
        before: frame.before.prefixed(),
        hash: hash.prefixed(),
        frame: hex(&stored.frame),
    })
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::{
        hash::Hash,
        input::Input,
        record::Record,
        state::Status,
        stored_frame::Head,
        value::{Map, Value},
    };
    use mainspring_store::prelude::*;
    use mainspring_store::{Batch, Fence, Part, memory::MemoryStore};

    use super::*;

    const KEY: ExecutionKey = ExecutionKey([7; 16]);

    /// A frame with a text and a value of the given lengths.
    fn stored(sequence: u64, length: usize, value: usize) -> StoredFrame {
        let input = Input::Signal { id: "s".into(), name: "n".into(), payload: Value::from("v".repeat(value)) };
        let records = vec![Record::CancelRequested { reason: "r".repeat(length), by: "b".into() }];
        let frame = Frame { sequence, before: Hash::default(), now: 1, input, results: Vec::new(), records };
        frame.store(&|_| [0; 16]).0
    }

    fn store(frames: Vec<StoredFrame>) -> MemoryStore {
        let store = MemoryStore::new();
        let epoch = store.claim(0, "n").unwrap();
        let head = Head { sequence: frames.len() as u64 - 1, hash: Hash::default(), seal: Hash::default() };
        let part = Part { frames, head, ..Part::empty(KEY, 0) };
        let batch = Batch { fences: vec![Fence { partition: 0, epoch }], parts: vec![part], sealing: [0; 32] };
        assert_eq!(store.commit(&batch), Ok(vec![mainspring_store::PartOutcome::Durable]));
        store
    }

    #[test]
    fn pages_together_are_the_whole_journal() {
        let frames = (0..12).map(|sequence| match sequence % 4 {
            1 => stored(sequence, 600, 1),
            3 => stored(sequence, 1, 5_000),
            _ => stored(sequence, 1, 1),
        });
        let store = store(frames.collect());
        let pages = |most: ReadLimit| {
            let (mut pages, mut from) = (Vec::new(), 0);
            loop {
                let page = super::frames(&store, KEY, from, most).unwrap();
                let next = page.next_cursor(|last| (last.sequence + 1).to_string());
                pages.push(page.rows.iter().map(|frame| frame.sequence).collect::<Vec<_>>());
                match next {
                    Some(next) => from = next.parse().unwrap(),
                    None => return pages,
                }
            }
        };
        // A page counts only the bytes that are sent, and not the values that are read with them.
        let two = ReadLimit { rows: 99, bytes: 1_200 };
        assert_eq!(pages(two), [vec![0, 1], vec![2, 3, 4, 5], vec![6, 7, 8, 9], vec![10, 11]]);
        for rows in 1..14 {
            for bytes in [1, 1_000, 2_000, 100_000] {
                let most = ReadLimit { rows, bytes };
                assert_eq!(pages(most).concat(), Vec::from_iter(0..12), "{most:?}");
                assert!(pages(most).iter().all(|page| page.len() <= rows), "{most:?}");
            }
        }
    }

    #[test]
    fn pages_together_are_all_attempts() {
        let attempt = |place: u32| AttemptHistory {
            step: format!("s{place}"),
            attempt: 1,
            status: Status::Completed,
            started_at: 1,
            ended_at: Some(2),
            input: Value::Map(Map::new()),
            output: Value::from("o".repeat(if place % 4 == 3 { 5_000 } else { 1 })),
            failure: None,
            because: String::new(),
            note: None,
            decisions: Vec::new(),
            log: Vec::new(),
            child: None,
        };
        let all: Vec<AttemptHistory> = (0..10).map(attempt).collect();
        let step = |written: &RawJson| {
            let value = serde_json::to_value(written).unwrap();
            value["stepId"].as_str().unwrap().to_string()
        };
        let pages = |most: ReadLimit| {
            let (mut pages, mut from) = (Vec::new(), 0);
            loop {
                let (steps, next) = steps_page(&all[from..], from, all.len(), most).unwrap();
                pages.push(steps.iter().map(step).collect::<Vec<_>>());
                match next {
                    Some(next) => from = next.parse().unwrap(),
                    None => return pages,
                }
            }
        };
        let expected: Vec<String> = all.iter().map(|attempt| attempt.step.clone()).collect();
        assert_eq!(
            pages(ReadLimit { rows: usize::MAX, bytes: 4_000 }).iter().map(Vec::len).collect::<Vec<_>>(),
            [4, 4, 2]
        );
        assert_eq!(pages(ReadLimit { rows: 5, bytes: 40_000 }).len(), 2, "no page is empty");
        for most in [
            ReadLimit { rows: 3, bytes: 4_000 },
            ReadLimit { rows: 1, bytes: 9 },
            ReadLimit { rows: 99, bytes: 99_999 },
        ] {
            assert_eq!(pages(most).concat(), expected, "{most:?}");
        }
        assert_eq!(steps_page(&[], usize::MAX, all.len(), ReadLimit::of(1)).unwrap().0.len(), 0);
    }
}
