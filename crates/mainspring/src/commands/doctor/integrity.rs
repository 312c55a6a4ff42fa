//! Checks integrity with `--deep`: decides every journal again, verifies every audit log up to its sealed head, and
//! checks the seal of every resource.

use std::sync::Arc;

use mainspring_engine::{journal_loader::Loader, keys};
use mainspring_server::services::{audit_export::prove, audit_marks::Marks};
use mainspring_store::{Filter, ReadLimit, Store, StoreError, has_valid_seal};

use super::{Contents, Installation, check::Check, refused};
use crate::{output::text::counted, paths, store_location::StoreLocation};

/// Executions read at a time.
const PAGE: usize = 1000;

/// Broken journals and logs that are named in a message.
const NAMED_MAX: usize = 3;

const NAMES: [&str; 3] = ["journals", "audit logs", "resources"];

/// Verifies all journals and audit logs with `--deep`.
pub(super) fn check(installation: &Installation, contents: &Contents) -> Vec<Check> {
    let skipped = |why: &str| NAMES.map(|name| Check::skipped(name, why)).to_vec();
    if !installation.is_deep {
        return skipped("--deep proves them");
    }
    let store = match contents {
        Contents::Nothing => return skipped("nothing is in the store yet"),
        Contents::Older => {
            return skipped(
                "the format of the store is older than this build reads; the next start brings it to the newest",
            );
        }
        Contents::Store(store) => store,
    };
    let file = match &installation.location {
        StoreLocation::Folder(home) => paths::key_file(&[home.folder()]),
        StoreLocation::Shared(_) => paths::key_file(&[]),
    };
    let Ok(key) = keys::load(&file) else {
        return skipped("nothing can be proved without the key");
    };
    let marks = installation.location.marks(&installation.home, key, false);
    let organizations = contents.organizations().unwrap_or_else(|| Ok(Vec::new()));
    let audit_logs = organizations.and_then(|organizations| audit_logs(&**store, &key, &organizations, &marks));
    let proofs = [journals(store, key), audit_logs, resources(&**store, &key)];
    proofs.into_iter().zip(NAMES).map(|(proof, name)| proof.unwrap_or_else(|error| refused(name, &error))).collect()
}

fn journals(store: &Arc<dyn Store>, key: [u8; 32]) -> Result<Check, StoreError> {
    let loader = Loader::new(store.clone(), key);
    let (mut proven, mut frames, mut broken, mut before) = (0_u64, 0, Vec::new(), None);
    let mut signed = 0;
    loop {
        let rows = store.executions(&Filter::default(), before, PAGE)?;
        let Some(last) = rows.last() else { break };
        before = Some(last.key);
        for row in &rows {
            match loader.verify_with_columns(row.key) {
                Ok(Some((verified, differences))) => {
                    (proven, frames) = (proven + 1, frames + verified.frames);
                    broken.extend(differences.iter().map(|difference| format!("{}: {difference}", row.id)));
                    match loader.receipts(row.key, drop) {
                        Ok(found) => {
                            let found = found.unwrap_or_default();
                            signed += found.proven;
                            broken.extend(found.broken.map(|why| format!("{}: {why}", row.id)));
                        }
                        Err(error) => broken.push(format!("{}: {error}", row.id)),
                    }
                }
                Ok(None) => broken.push(format!("{}: its journal is missing", row.id)),
                Err(error) => broken.push(format!("{}: {error}", row.id)),
            }
        }
    }
    let (all, verb) = (counted(proven, "journal", "journals"), if proven == 1 { "is" } else { "are" });
    let receipts = counted(signed, "signed receipt", "signed receipts");
    let message = format!("{all} with {} and {receipts} {verb} what was written", counted(frames, "frame", "frames"));
    Ok(verdict(
        "journals",
        message,
        &broken,
        "`mainspring verify ID` checks one; compare with the latest backup (`mainspring backup`; of PostgreSQL, `pg_dump`)",
    ))
}

fn audit_logs(store: &dyn Store, key: &[u8; 32], organizations: &[String], marks: &Marks) -> Result<Check, StoreError> {
    let (mut entries, mut broken) = (0, Vec::new());
    for organization in organizations {
        let (count, wrong) = prove(store.catalogue(), key, organization, Some(marks))?;
        entries += count;
        broken.extend(wrong.map(|why| format!("{organization}: {why}")));
    }
    let (all, verb) = (counted(entries, "entry", "entries"), if entries == 1 { "is" } else { "are" });
    let whose = counted(organizations.len() as u64, "organization", "organizations");
    let message = format!("{all} of {whose} {verb} what was written");
    Ok(verdict(
        "audit logs",
        message,
        &broken,
        "compare with the latest backup (`mainspring backup`; of PostgreSQL, `pg_dump`), and with exports of the log",
    ))
}

/// Checks the seals of members, tokens, workflows and all other resources.
fn resources(store: &dyn Store, key: &[u8; 32]) -> Result<Check, StoreError> {
    let (mut count, mut broken, mut after) = (0_u64, Vec::new(), None);
    loop {
        let rows = store.catalogue().all_resources(after.as_ref(), ReadLimit::of(PAGE))?;
        let Some(last) = rows.last() else { break };
        after = Some(last.resource_id());
        count += rows.len() as u64;
        let forged = rows.iter().filter(|row| !has_valid_seal(key, row));
        broken.extend(forged.map(|row| {
            let place = if row.organization.is_empty() { "" } else { &format!("{}/", row.organization) };
            format!("{} {place}{:?}: it has no valid seal", row.kind, row.id)
        }));
    }
    let (all, verb) = (counted(count, "resource", "resources"), if count == 1 { "has" } else { "have" });
    Ok(verdict(
        "resources",
        format!("{all} {verb} a valid seal"),
        &broken,
        "find out who writes to the store, and compare with the latest backup (`mainspring backup`; of PostgreSQL, `pg_dump`)",
    ))
}

fn verdict(name: &'static str, sound: String, broken: &[String], help: &str) -> Check {
    if broken.is_empty() {
        return Check::ok(name, sound);
    }
    let more = if broken.len() > NAMED_MAX { "; …" } else { "" };
    let named = broken.iter().take(NAMED_MAX).map(String::as_str).collect::<Vec<_>>().join("; ");
    let message = format!("{} not what was written: {named}{more}", broken.len());
    Check::broken(name, message, help).with("count", broken.len() as u64)
}
