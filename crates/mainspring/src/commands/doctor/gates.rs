//! Checks for approvals without enough approvers, which stay open until they time out.

use std::sync::Arc;

use mainspring_engine::{journal_loader::Loader, keys};
use mainspring_kernel::value::Value;
use mainspring_server::{http::problem::Result, services::pending_approvals};
use mainspring_store::{SealedStore, Store};

use super::{Contents, Installation, check::Check};
use crate::{paths, store_location::StoreLocation};

const NAME: &str = "approvers";

/// Approvals that are checked without `--deep`, beginning with the newest executions. Each costs a read of its
/// whole journal.
const GATES_MAX: usize = 1_000;

/// Approvals read at a time.
const PAGE: usize = 200;

/// Approvals that are named in a message.
const NAMED_MAX: usize = 3;

/// Checks whether enough users can approve each open approval.
pub(super) fn check(installation: &Installation, contents: &Contents) -> Check {
    let store = match contents {
        Contents::Nothing => return Check::ok(NAME, "no gate waits"),
        Contents::Older => {
            return Check::skipped(NAME, "the format of the store is older than this, and has no such thing");
        }
        Contents::Store(store) => store,
    };
    let file = match &installation.location {
        StoreLocation::Folder(home) => paths::key_file(&[home.folder()]),
        StoreLocation::Shared(_) => paths::key_file(&[]),
    };
    let Ok(key) = keys::load(&file) else { return Check::skipped(NAME, "no journal can be read without the key") };
    match found(store, key, installation.is_deep) {
        Ok(found) => found.check(),
        Err(problem) => Check::skipped(NAME, format!("open approvals cannot be read: {}", problem.full_message())),
    }
}

/// The result of the search.
#[derive(Debug, Default)]
struct Found {
    checked: usize,
    /// Approvals with too few approvers: execution and step.
    stuck: Vec<(String, String)>,
    /// True if the search ended at the limit.
    is_cut: bool,
}

fn found(store: &Arc<dyn Store>, key: [u8; 32], is_deep: bool) -> Result<Found> {
    let store = SealedStore::over(store.clone(), key);
    let loader = Loader::new(store.clone(), key);
    let (mut found, mut after) = (Found::default(), None);
    loop {
        let page = pending_approvals::pending(&*store, &loader, &key, after.as_ref(), PAGE)?;
        for pending in &page.gates {
            found.checked += 1;
            if pending_approvals::are_enough(store.catalogue(), &pending.row, &pending.open)? == Some(false) {
                found.stuck.push((pending.row.id.clone(), pending.open.step.clone()));
            }
        }
        after = page.next;
        found.is_cut = after.is_some() && !is_deep && found.checked >= GATES_MAX;
        if after.is_none() || found.is_cut {
            return Ok(found);
        }
    }
}

impl Found {
    fn check(&self) -> Check {
        let count = self.stuck.len();
        let gates = |count: usize, one: &str, many: &str| {
            format!("{count} {}", if count == 1 { format!("gate {one}") } else { format!("gates {many}") })
        };
        let cut = if self.is_cut { ", of the newest that wait; --deep reads all" } else { "" };
        if count == 0 {
            let message = match self.checked {
                0 => "no gate waits".to_string(),
                checked => format!("enough can decide at {}{cut}", gates(checked, "that waits", "that wait")),
            };
            return Check::ok(NAME, message);
        }
        let named: Vec<String> =
            self.stuck.iter().take(NAMED_MAX).map(|(id, step)| format!("{id} at {step}")).collect();
        let more = if count > NAMED_MAX { ", …" } else { "" };
        let message =
            format!("{} for more than can decide: {}{more}{cut}", gates(count, "waits", "wait"), named.join(", "));
        let (id, step) = &self.stuck[0];
        let help = format!(
            "`mainspring approvals` lists the approvers; add them as members in a role that can decide, or `mainspring deny {id} --step {step}`"
        );
        let first: Vec<Value> = self.stuck.iter().take(NAMED_MAX).map(|(id, _)| id.as_str().into()).collect();
        Check::warning(NAME, message, help).with("count", count as u64).with("first", first)
    }
}

#[cfg(test)]
mod tests {
    use super::{super::check::State, *};

    #[test]
    fn stuck_approvals_are_named() {
        let of = |checked, stuck: usize, is_cut| {
            let stuck = (0..stuck).map(|number| (format!("e{number}"), "ship".to_string())).collect();
            Found { checked, stuck, is_cut }.check()
        };
        let table = [
            (of(0, 0, false), State::Ok, "no gate waits"),
            (of(1, 0, false), State::Ok, "enough can decide at 1 gate that waits"),
            (of(1_000, 0, true), State::Ok, "1000 gates that wait, of the newest that wait; --deep"),
            (of(2, 1, false), State::Warning, "1 gate waits for more than can decide: e0 at ship"),
            (
                of(9, 4, false),
                State::Warning,
                "4 gates wait for more than can decide: e0 at ship, e1 at ship, e2 at ship, …",
            ),
        ];
        for (check, state, said) in table {
            assert!(check.state == state && check.message.contains(said), "{check:?}");
        }
    }
}
