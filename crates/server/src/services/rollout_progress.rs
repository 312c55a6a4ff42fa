//! Writes and reads the progress of rollouts: refused starts and refused decisions.

use mainspring_engine::clock::now_ms;
use mainspring_store::Change;
use tracing::warn;

use crate::{
    app::App,
    http::problem::Result,
    resources::{
        Refusal, RolloutProgress,
        repository::{Repository, Stored, with_retries},
    },
    services::rollout_choice::SAMPLE_MAX,
};

/// Attempts of a write that conflicts with concurrent ones.
const TRIES: usize = 5;

/// Reads the progress of a rollout by its key; version 0 if nothing was written.
pub(crate) fn progress(repository: Repository<'_>, key: &str) -> Result<Stored<RolloutProgress>> {
    let stored = repository.get::<RolloutProgress>(key)?;
    Ok(stored.unwrap_or_else(|| {
        let workflow = key.split_once('/').map_or(key, |(workflow, _)| workflow).to_string();
        let body = RolloutProgress { workflow, refused: Vec::new(), last_refusal: None };
        Stored { id: key.into(), version: 0, body }
    }))
}

/// Counts a start that the candidate refused. A failure of the store is logged: the caller gets the error of the start.
pub(crate) fn count_refused_start(app: &App, organization: &str, key: &str, bucket: u64) {
    let counted = change(app, organization, key, |progress| {
        let Err(at) = progress.refused.binary_search(&bucket) else { return false };
        if progress.refused.len() >= SAMPLE_MAX {
            return false;
        }
        progress.refused.insert(at, bucket);
        true
    });
    if let Err(problem) = counted {
        warn!(rollout = key, error = problem.full_message(), "a start that the candidate refused was not counted");
    }
}

/// Stores the reason for which an automatic decision was refused.
pub(super) fn store_refusal(app: &App, organization: &str, key: &str, message: &str) -> Result<()> {
    change(app, organization, key, |progress| {
        progress.last_refusal = Some(Refusal { at: now_ms(), message: message.into() });
        true
    })
}

/// Writes a change of the progress; `edit` returns false if nothing changes.
fn change(app: &App, organization: &str, key: &str, edit: impl Fn(&mut RolloutProgress) -> bool) -> Result<()> {
    let repository = Repository::of(app.catalogue(), organization);
    with_retries(app.catalogue(), TRIES, || {
        let mut stored = progress(repository, key)?;
        let mut change = Change { sealing: *app.engine.key(), ..Change::default() };
        if edit(&mut stored.body) {
            change.puts.push(repository.put(key, &stored.body, stored.version)?);
        }
        Ok((change, ()))
    })
}
