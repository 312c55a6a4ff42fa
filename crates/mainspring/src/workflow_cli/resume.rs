//! `workflow resume`: decides an approval. The token is verified before an engine starts.

use std::{path::PathBuf, sync::Arc};

use mainspring_engine::{clock::now_ms, journal_loader::Loader, keys, resume_token};
use mainspring_kernel::{frame::Frame, key::ExecutionKey, record::Record, state::GateState, value::Value};
use mainspring_store::{ReadLimit, Store, StoreError, sqlite::SqliteStore};

use super::{
    Answer,
    arguments::Resume,
    block_on, home,
    run::{Beginning, open, to_its_rest},
};
use crate::{error::CliError, paths, signals::Signals};

/// Decides, and then runs the execution until it has ended or only approvals are left.
pub(super) fn resume(resume: &Resume) -> Result<Answer, CliError> {
    let home = home(resume.state_dir.as_ref(), &resume.execution_id)?;
    let unknown = || {
        let message = format!("there is no execution `{}` in {}", resume.execution_id, home.folder().display());
        CliError::contract("resume_mismatch", message)
    };
    if !home.journal().exists() {
        return Err(unknown());
    }
    let store: Arc<dyn Store> = Arc::new(SqliteStore::open_read_only(&home.journal()).map_err(store_refusal)?);
    let row = store.execution_by_id(&resume.execution_id).map_err(store_refusal)?.ok_or_else(unknown)?;
    let workspace = workspace(&*store, row.key)?;
    let key = keys::load(&paths::key_file(&[&workspace, home.folder()]))?;
    home.check_key(&key)?;
    let loader = Loader::new(store.clone(), key);
    let read = loader.journal(row.key).map_err(mainspring_engine::EngineError::from)?.ok_or_else(unknown)?;
    let state = read.journal.state;
    let opened = resume_token::gate_of(&key, &state, &resume.resume_token);
    let Some((instance, gate)) = opened else {
        return Err(mismatch("the token opens no gate that waits: it is wrong, was used, or the execution has ended"));
    };
    if now_ms() >= gate.expires_at {
        return Err(mismatch("the token has expired with the time limit of its approval"));
    }
    let by = paths::user();
    may_decide(gate, &by)?;
    let (instance, gate, from) = (instance.clone(), gate.number, read.journal.head.sequence + 1);
    // The reading connection is closed before the engine opens the store.
    drop((loader, store));
    paths::workspace(&workspace)?;
    block_on(async {
        let signals = Signals::default();
        signals.install()?;
        let engine = open(home, &workspace).await?;
        let decided = engine.decide(row.key, instance, gate, resume.decision, &by, Value::Null).await;
        let answer = match decided {
            Ok(true) => to_its_rest(&engine, row.key, Beginning::Resumed(from), &signals).await,
            Ok(false) => Err(mismatch("the approval was already decided")),
            Err(error) => Err(error.into()),
        };
        engine.drain().await;
        answer
    })
}

/// Checks whether a decision of this user would count at the open gate.
fn may_decide(gate: &GateState, by: &str) -> Result<(), CliError> {
    if !gate.approvers.is_empty() && !gate.approvers.iter().any(|approver| approver == by) {
        let approvers = gate.approvers.join(", ");
        return Err(mismatch(&format!("`{by}` may not decide at this gate; its approvers are {approvers}")));
    }
    if gate.approved_by.iter().any(|approver| approver == by) {
        let message = format!("`{by}` has already approved, and this approval needs {} different people", gate.count);
        return Err(mismatch(&message));
    }
    Ok(())
}

/// Reads the workspace from frame 0. This precedes the check of the journal, because the location of the key
/// depends on the workspace. A forged frame gains nothing: the journal is verified with a key of this user
/// afterwards.
fn workspace(store: &dyn Store, key: ExecutionKey) -> Result<PathBuf, CliError> {
    let frames = store.frames(key, 0, ReadLimit::of(1)).map_err(store_refusal)?;
    let first = frames.first().and_then(|stored| Frame::read(stored).ok());
    let workspace = first.and_then(|(frame, _)| match frame.records.into_iter().next() {
        Some(Record::Started { context, .. }) => {
            context.value().get("workspace").and_then(Value::as_text).map(PathBuf::from)
        }
        _ => None,
    });
    workspace.ok_or_else(|| {
        CliError::internal("journal_broken", "frame 0 of the journal cannot be read, or names no workspace")
    })
}

fn mismatch(message: &str) -> CliError {
    CliError::contract("resume_mismatch", message)
}

fn store_refusal(error: StoreError) -> CliError {
    mainspring_engine::EngineError::from(error).into()
}
