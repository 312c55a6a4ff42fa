//! The queue of prompts. A prompt, its next attempt, its entry in the run log and the number of those that wait change in
//! one transaction.

use mainspring_kernel::hash::{Hash, hex};
use mainspring_store::{Change, Put, ReadLimit, Removal};
use mainspring_triggers::limits::{PROMPTS_WAITING_MAX, RUN_REASON_CHARS_MAX};

use crate::{
    app::App,
    auth::token::random,
    http::problem::{Code, Problem, Result},
    resources::{
        DuePrompt, Prompt, PromptQueue, PromptState, Run, RunOutcome, Trigger, TriggerState, due_id,
        repository::{Listing, Repository, Stored},
    },
};

/// A prompt that a tick or a member requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NewPrompt {
    /// Id of the message.
    pub id: String,
    /// `schedule` or `manual`.
    pub source: &'static str,
    /// The UTC minute of the tick.
    pub scheduled_at: Option<String>,
    /// Id of the member who requested it.
    pub requested_by: Option<String>,
    /// The id of the request, for the run log.
    pub request: Option<String>,
    /// Id of the message that is repeated.
    pub redelivery_of: Option<String>,
}

/// The id of a message: the same at each node for the same parts, without a dot and without text of a member, as the
/// signature needs it (Standard Webhooks).
pub(crate) fn message_id(parts: &[&str]) -> String {
    let lengths: Vec<[u8; 8]> = parts.iter().map(|part| (part.len() as u64).to_be_bytes()).collect();
    let parts = lengths.iter().zip(parts).flat_map(|(length, part)| [&length[..], part.as_bytes()]);
    format!("prompt_{}", hex(&Hash::of_parts(&parts.collect::<Vec<_>>()).0[..16]))
}

/// The result of adding a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Added {
    /// It waits for its delivery.
    Queued,
    /// The same message waits already, or is in the run log.
    Existed,
    /// Too many prompts of the organization wait.
    Full,
}

/// Adds prompts of a trigger to a change, and their entries to its run log. The change must also write the state.
pub(crate) fn add(
    app: &App,
    organization: &str,
    trigger: &Stored<Trigger>,
    prompts: &[NewPrompt],
    (state, change): (&mut TriggerState, &mut Change),
) -> Result<Vec<Added>> {
    if prompts.is_empty() {
        return Ok(Vec::new());
    }
    let (own, now) = (Repository::of(app.catalogue(), organization), app.now_ms());
    let text = trigger.body.config.prompt().ok_or_else(|| Problem::not_found("prompt"))?;
    let (version, mut queue) = queue(own)?;
    let mut all = Vec::new();
    for new in prompts {
        let is_known = |run: &Run| run.prompt.as_ref() == Some(&new.id) && run.outcome != RunOutcome::Refused;
        if state.runs.iter().any(is_known) || own.get::<Prompt>(&new.id)?.is_some() {
            all.push(Added::Existed);
            continue;
        }
        if queue.waiting >= PROMPTS_WAITING_MAX {
            let reason = format!("{PROMPTS_WAITING_MAX} prompts of the organization wait for their delivery");
            state.add(run(new, now, RunOutcome::Refused, (None, Some(reason)))?);
            all.push(Added::Full);
            continue;
        }
        let due = due_id(now, &new.id);
        let prompt = Prompt {
            trigger: trigger.id.clone(),
            trigger_name: trigger.body.name.clone(),
            user: trigger.body.user.clone(),
            text: text.into(),
            source: new.source.into(),
            scheduled_at: new.scheduled_at.clone(),
            request: new.request.clone(),
            requested_by: new.requested_by.clone(),
            redelivery_of: new.redelivery_of.clone(),
            accepted_at: now,
            due: due.clone(),
            attempts: 0,
            failing_since: None,
        };
        change.puts.push(own.put(&new.id, &prompt, 0)?);
        change.puts.push(put_due(app, organization, &due, &new.id)?);
        queue.waiting += 1;
        state.prompts.get_or_insert_default().waiting += 1;
        state.add(run(new, now, RunOutcome::Queued, (None, None))?);
        all.push(Added::Queued);
    }
    if all.contains(&Added::Queued) {
        change.puts.push(own.put(PromptQueue::ID, &queue, version)?);
    }
    Ok(all)
}

/// The row of the next attempt of a prompt.
pub(super) fn put_due(app: &App, organization: &str, due: &str, prompt: &str) -> Result<Put> {
    let row = DuePrompt { organization: organization.into(), prompt: prompt.into() };
    Repository::of(app.catalogue(), "").put(due, &row, 0)
}

/// The number of waiting prompts, with its version.
fn queue(own: Repository<'_>) -> Result<(u64, PromptQueue)> {
    Ok(own.get::<PromptQueue>(PromptQueue::ID)?.map_or((0, PromptQueue::default()), |read| (read.version, read.body)))
}

/// Takes a prompt out of the queue in a change that also writes the state.
pub(super) fn take(
    app: &App,
    organization: &str,
    prompt: &Stored<Prompt>,
    (state, change): (&mut TriggerState, &mut Change),
) -> Result<()> {
    let own = Repository::of(app.catalogue(), organization);
    let (version, mut queue) = queue(own)?;
    queue.waiting = queue.waiting.saturating_sub(1);
    change.puts.push(own.put(PromptQueue::ID, &queue, version)?);
    change.removals.push(own.removal(prompt));
    change.removals.extend(due_removal(app, prompt)?);
    let prompts = state.prompts.get_or_insert_with(PromptState::default);
    prompts.waiting = prompts.waiting.saturating_sub(1);
    Ok(())
}

/// The removal of the row of the next attempt.
pub(super) fn due_removal(app: &App, prompt: &Stored<Prompt>) -> Result<Option<Removal>> {
    let installation = Repository::of(app.catalogue(), "");
    Ok(installation.get::<DuePrompt>(&prompt.body.due)?.map(|due| installation.removal(&due)))
}

/// Removes all waiting prompts of a trigger, which is deleted in the same change.
pub(crate) fn remove_all(app: &App, organization: &str, trigger: &str, change: &mut Change) -> Result<()> {
    let own = Repository::of(app.catalogue(), organization);
    let (name, most) = (Some(("trigger", trigger.to_string())), ReadLimit::of(PROMPTS_WAITING_MAX as usize));
    let mut removed = 0;
    let mut after = None;
    loop {
        let page = own.list::<Prompt>(Listing { name: name.clone(), after, most, ..Listing::default() })?;
        after = page.next_cursor(|last| last.id.clone());
        for prompt in page.rows {
            change.removals.push(own.removal(&prompt));
            change.removals.extend(due_removal(app, &prompt)?);
            removed += 1;
        }
        if after.is_none() {
            break;
        }
    }
    if removed > 0 {
        let (version, mut queue) = queue(own)?;
        queue.waiting = queue.waiting.saturating_sub(removed);
        change.puts.push(own.put(PromptQueue::ID, &queue, version)?);
    }
    Ok(())
}

/// An entry of the run log about a new prompt.
fn run(new: &NewPrompt, at: u64, outcome: RunOutcome, result: (Option<u16>, Option<String>)) -> Result<Run> {
    let delivery = new.request.clone().or_else(|| new.scheduled_at.clone());
    entry((new.source, &new.id), delivery, at, outcome, result)
}

/// An entry of the run log about a prompt.
pub(super) fn entry(
    (source, prompt): (&str, &str),
    delivery: Option<String>,
    at: u64,
    outcome: RunOutcome,
    (status, reason): (Option<u16>, Option<String>),
) -> Result<Run> {
    let reason = reason.map(|reason| reason.chars().take(RUN_REASON_CHARS_MAX).collect());
    Ok(Run {
        id: random(8)?,
        at,
        source: source.into(),
        outcome,
        status,
        execution: None,
        delivery,
        reason,
        prompt: Some(prompt.into()),
    })
}

/// The refusal of a request because of the bound.
pub(crate) fn full() -> Problem {
    let message = format!(
        "{PROMPTS_WAITING_MAX} prompts of this organization wait for their delivery. Repair the orchestrator's endpoint, or \
         delete triggers."
    );
    Problem::new(Code::RateLimited, message)
}

#[cfg(test)]
mod tests {
    use super::message_id;

    #[test]
    fn the_id_of_a_message_follows_from_its_parts_and_has_no_dot() {
        assert_eq!(message_id(&["a", "b.c"]), message_id(&["a", "b.c"]));
        assert_ne!(message_id(&["a", "bc"]), message_id(&["ab", "c"]));
        let id = message_id(&["user.name", "x\r\ny"]);
        assert!(id.len() == 39 && id.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()), "{id}");
    }
}
