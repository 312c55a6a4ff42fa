//! The history of an execution: its attempts, and the frames of its journal.

use axum::{Json, extract::State};
use mainspring_kernel::{
    frame::{Frame, FrameError},
    hash::hex,
    key::ExecutionKey,
    stored::StoredFrame,
    trace::{AttemptTrace, Trace},
};
use mainspring_store::{Most, Store};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use crate::{
    app::App,
    body::Written,
    clock,
    extract::{Asked, Named},
    identity::Caller,
    page::{Page, most, most_of, number},
    problem::{Answer, Code, Problem},
    starting::visible,
    view::attempts,
};

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(steps)).routes(routes!(journal))
}

/// What an execution did, attempt by attempt.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Steps {
    /// The execution.
    execution_id: String,
    /// In the order in which they began.
    #[schema(value_type = Vec<Attempt>)]
    steps: Vec<Written>,
    /// What the next page is asked for with; null if there is none.
    next_cursor: Option<String>,
}

/// An attempt at a step.
#[derive(ToSchema)]
#[serde(rename_all = "camelCase")]
#[expect(dead_code, reason = "described here, and written by the kernel")]
pub(super) struct Attempt {
    /// The step instance, as `fetch[3].parse`.
    step_id: String,
    /// Which, from 1; 0 for a step that was skipped, or failed before it could begin.
    attempt: u32,
    /// `running`, `waiting`, `waiting_approval`, `completed`, `failed`, `skipped` or `cancelled`.
    status: String,
    /// When it began.
    started_at: String,
    /// When it ended; null while it has not.
    completed_at: Option<String>,
    /// The resolved parameters: any value.
    input: serde_json::Value,
    /// The output of one that completed: any value; else null.
    output: serde_json::Value,
    /// Why it failed: `{code, class, message, details}`; null where it did not.
    #[schema(value_type = Option<Object>, required)]
    error: (),
    /// What led to it.
    because: String,
    /// Why it was skipped, retried, called off or decided.
    #[schema(nullable = false)]
    note: Option<String>,
    /// What was decided, where people were asked.
    #[schema(nullable = false)]
    decisions: Option<Vec<Decided>>,
    /// The execution that it has started.
    #[schema(nullable = false)]
    child_execution_id: Option<String>,
    /// What its function wrote to its console: `{level, text}`.
    #[schema(value_type = Option<Vec<Object>>, nullable = false)]
    log: (),
}

/// What was decided at a gate.
#[derive(ToSchema)]
#[expect(dead_code, reason = "described here, and written by the kernel")]
struct Decided {
    /// `approve` or `deny`.
    decision: String,
    /// Who; null where nobody decided in time.
    by: Option<String>,
    /// When.
    at: String,
    /// Why, if that was said and not erased.
    reason: Option<String>,
}

/// Which attempts.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct StepsQuery {
    /// At most so many, up to 200; as many as there is room for if nothing is said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

/// What an execution did, attempt by attempt.
///
/// Each page is made from the whole journal. So it ends by its bytes, and by a count only where one is asked for.
#[utoipa::path(get, path = "/api/executions/{id}/steps", tag = "executions", params(("id" = String, Path), StepsQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = Steps)))]
async fn steps(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<String>,
    Asked(query): Asked<StepsQuery>,
) -> Answer<Json<Steps>> {
    let (most, from) = (most_of(query.limit, usize::MAX)?, number(query.cursor.as_deref())?.unwrap_or(0));
    app.run(move |app| {
        let row = visible(app, &caller, &id)?;
        let from = usize::try_from(from).unwrap_or(usize::MAX);
        let trace = attempts(app, &row, from)?;
        let (steps, next_cursor) = steps_page(&trace.attempts, from, trace.count, most)?;
        Ok(Json(Steps { execution_id: row.id, steps, next_cursor }))
    })
    .await
}

/// The first page of attempts, and the cursor of the next one.
pub(super) fn first_steps(trace: &Trace) -> Answer<(Vec<Written>, Option<String>)> {
    steps_page(&trace.attempts, 0, trace.count, most_of(None, usize::MAX)?)
}

/// A page of attempts from a position on, and the position of the next page. Positions are stable; an attempt that was
/// running may have ended when it is read again.
fn steps_page(
    attempts: &[AttemptTrace],
    from: usize,
    count: usize,
    most: Most,
) -> Answer<(Vec<Written>, Option<String>)> {
    let mut page = Page::new(most);
    for attempt in attempts {
        if page.is_full() {
            break;
        }
        let written = Written::of(&attempt.to_value())?;
        let bytes = written.byte_count();
        page.add(written, bytes);
    }
    let next = from.saturating_add(page.rows.len());
    Ok((page.rows, (next < count).then(|| next.to_string())))
}

/// The journal of an execution: what is proved and how long it is.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct Journal {
    /// The execution.
    execution_id: String,
    /// Its frames, in order.
    frames: Vec<FrameBody>,
    /// What the next page is asked for with; null if there is none.
    next_cursor: Option<String>,
}

/// A frame of a journal.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct FrameBody {
    /// Its place, from 0.
    sequence: u64,
    /// When it was decided.
    at: String,
    /// The hash of the frame before it, `sha256:…`.
    before: String,
    /// Its own hash.
    hash: String,
    /// The frame as it is stored, in deterministic CBOR, as hexadecimal digits: what the hash is over.
    frame: String,
}

/// Which frames.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct JournalQuery {
    /// Only those of this sequence and behind it.
    from: Option<u64>,
    /// At most so many, up to 200; 50 if nothing is said.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// `nextCursor` of the page before.
    cursor: Option<String>,
}

/// The journal of an execution, frame by frame, with the hashes that chain them.
#[utoipa::path(get, path = "/api/executions/{id}/journal", tag = "executions", params(("id" = String, Path), JournalQuery),
    extensions(("x-permission" = json!("executions:read"))),
    responses((status = 200, body = Journal)))]
async fn journal(
    State(app): State<App>,
    caller: Caller,
    Named(id): Named<String>,
    Asked(query): Asked<JournalQuery>,
) -> Answer<Json<Journal>> {
    let (most, next) = (most(query.limit)?, number(query.cursor.as_deref())?);
    app.run(move |app| {
        let row = visible(app, &caller, &id)?;
        let page = frames(&**app.engine.store(), row.key, next.max(query.from).unwrap_or(0), most)?;
        let next_cursor = page.next_cursor(|last| (last.sequence + 1).to_string());
        Ok(Json(Journal { execution_id: row.id, frames: page.rows, next_cursor }))
    })
    .await
}

/// Frames from a sequence number on. The store reads frames together with their values, which are not sent: the store
/// bounds each read, and the page bounds the response.
fn frames(store: &dyn Store, execution: ExecutionKey, mut from: u64, most: Most) -> Answer<Page<FrameBody>> {
    let mut page = Page::new(most);
    while !page.is_full() {
        let stored = store.frames(execution, from, Most { rows: page.room(), ..most })?;
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

fn frame(stored: &StoredFrame) -> Answer<FrameBody> {
    let broken = |error: FrameError| {
        Problem::new(Code::InternalError, format!("Frame {} cannot be read: {error}.", stored.sequence))
    };
    let (frame, hash) = Frame::read(stored).map_err(broken)?;
    Ok(FrameBody {
        sequence: frame.sequence,
        at: clock::text(frame.now),
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
        stored::Head,
        value::{Map, Value},
    };
    use mainspring_store::{Batch, Fence, Part, memory::MemoryStore};

    use super::*;

    const KEY: ExecutionKey = ExecutionKey([7; 16]);

    /// A frame with a text and a value of the given lengths.
    fn stored(sequence: u64, letters: usize, value: usize) -> StoredFrame {
        let input = Input::Signal { id: "s".into(), name: "n".into(), payload: Value::from("v".repeat(value)) };
        let records = vec![Record::CancelRequested { reason: "r".repeat(letters), by: "b".into() }];
        let frame = Frame { sequence, before: Hash::default(), now: 1, input, results: Vec::new(), records };
        frame.store(&|_| [0; 16]).0
    }

    fn store(frames: Vec<StoredFrame>) -> MemoryStore {
        let store = MemoryStore::new();
        let epoch = store.claim(0, "n").unwrap();
        let head = Head { sequence: frames.len() as u64 - 1, hash: Hash::default(), seal: Hash::default() };
        let part = Part { frames, head, ..Part::empty(KEY, 0) };
        let batch = Batch { fences: vec![Fence { partition: 0, epoch }], parts: vec![part], sealing: [0; 32] };
        assert_eq!(store.commit(&batch), Ok(vec![mainspring_store::Answer::Durable]));
        store
    }

    #[test]
    fn a_journal_in_pages_is_the_whole_journal_however_they_end() {
        let frames = (0..12).map(|sequence| match sequence % 4 {
            1 => stored(sequence, 600, 1),
            3 => stored(sequence, 1, 5_000),
            _ => stored(sequence, 1, 1),
        });
        let store = store(frames.collect());
        let pages = |most: Most| {
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
        let two = Most { rows: 99, bytes: 1_200 };
        assert_eq!(pages(two), [vec![0, 1], vec![2, 3, 4, 5], vec![6, 7, 8, 9], vec![10, 11]]);
        for rows in 1..14 {
            for bytes in [1, 1_000, 2_000, 100_000] {
                let most = Most { rows, bytes };
                assert_eq!(pages(most).concat(), Vec::from_iter(0..12), "{most:?}");
                assert!(pages(most).iter().all(|page| page.len() <= rows), "{most:?}");
            }
        }
    }

    #[test]
    fn attempts_in_pages_are_all_attempts_and_a_page_that_has_the_last_is_the_last() {
        let attempt = |place: u32| AttemptTrace {
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
        let all: Vec<AttemptTrace> = (0..10).map(attempt).collect();
        let step = |written: &Written| {
            let value = serde_json::to_value(written).unwrap();
            value["stepId"].as_str().unwrap().to_string()
        };
        let pages = |most: Most| {
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
        let wanted: Vec<String> = all.iter().map(|attempt| attempt.step.clone()).collect();
        assert_eq!(pages(Most { rows: usize::MAX, bytes: 4_000 }).iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 2]);
        assert_eq!(pages(Most { rows: 5, bytes: 40_000 }).len(), 2, "no page is empty");
        for most in [Most { rows: 3, bytes: 4_000 }, Most { rows: 1, bytes: 9 }, Most { rows: 99, bytes: 99_999 }] {
            assert_eq!(pages(most).concat(), wanted, "{most:?}");
        }
        assert_eq!(steps_page(&[], usize::MAX, all.len(), Most::of(1)).unwrap().0.len(), 0);
    }
}
