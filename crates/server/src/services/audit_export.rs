//! Audit log exports: writes an organization's log to a file, and verifies such a file without a store.
//!
//! The file is NDJSON. The first line is a [`Head`]; every other line is an [`Entry`], from the first entry of the log
//! to the one that the head names. The hash of an entry is the SHA-256 of the canonical CBOR (RFC 8949, 4.2.1) of
//! `["mainspring audit 1", previous hash, number, organizationId, at in milliseconds, actor, action, target,
//! detailCbor]`. Hashes and detail are byte strings, and the previous hash of the first entry is 32 zero bytes. The
//! seal is HMAC-SHA-256 with the installation's key over the CBOR of `["mainspring audit head 1", organizationId,
//! number, hash]`.

use std::io::{BufRead, Read};

use mainspring_kernel::{
    cbor,
    hash::{Hash, hex, unhex},
    json,
    time::{parse_rfc3339, rfc3339},
};
use mainspring_store::{AuditEntry, AuditHead, AuditRow, Catalogue, ReadLimit, StoreError};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{
    http::{body::Data, pagination::PAGE_MAX},
    resources::{Organization, repository::Resource},
    services::audit_marks::Marks,
};

/// Value of `format` in the first line.
const FORMAT: &str = "mainspring-audit-export/1";

/// Most bytes of a line. Entries carry no payloads, so that this is ample.
const LINE_BYTES_MAX: u64 = 4 * 1024 * 1024;

/// The first line of an export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Head {
    format: String,
    organization_id: String,
    exported_at: String,
    head: Option<Sealed>,
}

/// The sealed end of the log at the time of the export.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Sealed {
    number: u64,
    hash: String,
    seal: String,
}

/// An audit entry, one per line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Entry {
    number: u64,
    at: String,
    actor: String,
    action: String,
    target: String,
    detail: Data,
    detail_cbor: String,
    hash: String,
}

impl Head {
    /// The first line of an export of a log with this head.
    pub fn new(organization: &str, now_ms: u64, head: Option<&AuditHead>) -> Self {
        let sealed =
            |head: &AuditHead| Sealed { number: head.number, hash: head.hash.prefixed(), seal: head.seal.prefixed() };
        let (format, exported_at) = (FORMAT.into(), rfc3339(now_ms));
        Self { format, organization_id: organization.into(), exported_at, head: head.map(sealed) }
    }
}

impl From<&AuditRow> for Entry {
    fn from(row: &AuditRow) -> Self {
        let AuditEntry { at, actor, action, target, detail, .. } = row.entry.clone();
        Self {
            number: row.number,
            at: rfc3339(at),
            actor,
            action,
            target,
            detail_cbor: hex(&detail),
            detail: Data(cbor::decode(&detail).unwrap_or_default()),
            hash: row.hash.prefixed(),
        }
    }
}

impl Entry {
    /// Converts a line to a stored row. The readable `detail` must equal the hashed `detailCbor`.
    fn row(self, organization: &str) -> Result<AuditRow, String> {
        let at = parse_rfc3339(&self.at).ok_or("`at` is no time")?;
        let mut detail = vec![0; self.detail_cbor.len() / 2];
        if !unhex(&self.detail_cbor, &mut detail) {
            return Err("`detailCbor` is not made of hexadecimal digits".into());
        }
        let decoded = cbor::decode(&detail).unwrap_or_default();
        if json::compact(&decoded) != json::compact(&self.detail.0) {
            return Err("`detail` differs from `detailCbor`".into());
        }
        let Self { number, actor, action, target, hash, .. } = self;
        let hash = Hash::parse(&hash).ok_or("`hash` is no hash")?;
        let entry = AuditEntry { organization: organization.into(), at, actor, action, target, detail };
        Ok(AuditRow { number, entry, hash })
    }
}

/// Serializes one line of the file.
pub(crate) fn line(of: &impl Serialize) -> Vec<u8> {
    let mut line = serde_json::to_vec(of).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Verifies that entries form a hash chain.
#[derive(Debug, Clone, Default)]
pub(crate) struct Chain {
    /// Number of the last entry; 0 before the first.
    pub number: u64,
    /// Hash of the last entry.
    pub hash: Hash,
}

impl Chain {
    /// Accepts the next entry, or returns the reason for which it does not continue the chain.
    pub(crate) fn take(&mut self, row: &AuditRow) -> Result<(), String> {
        if row.number != self.number + 1 || !row.follows(self.hash) {
            return Err(format!("entry {} was changed", self.number + 1));
        }
        (self.number, self.hash) = (row.number, row.hash);
        Ok(())
    }
}

/// Verifies an organization's log in the store: the number of verified entries, and the first defect found. With
/// `marks` it also detects a rollback to an earlier head, whose seal is still valid.
pub fn prove(
    catalogue: &dyn Catalogue,
    key: &[u8; 32],
    organization: &str,
    marks: Option<&Marks>,
) -> Result<(u64, Option<String>), StoreError> {
    let (entries, wrong) = prove_chain(catalogue, key, organization)?;
    let wrong = match (wrong, marks) {
        (None, Some(marks)) => marks.check(catalogue, organization)?,
        (wrong, _) => wrong,
    };
    Ok((entries, wrong))
}

/// Verifies the hash chain up to the sealed head.
fn prove_chain(
    catalogue: &dyn Catalogue,
    key: &[u8; 32],
    organization: &str,
) -> Result<(u64, Option<String>), StoreError> {
    // Reads the head first: entries that are added during the verification follow it.
    let head = catalogue.audit_head(organization)?;
    let mut chain = Chain::default();
    let Some(head) = head else {
        let stray = !catalogue.audit(organization, 0, ReadLimit::of(1))?.is_empty();
        if stray {
            return Ok((0, Some("the log has entries and no head".into())));
        }
        // A log is never empty: its first entry is the creation of the organization.
        let exists = catalogue.resource(Organization::KIND, "", organization)?.is_some();
        return Ok((0, exists.then(|| "the organization exists, and its log is empty: it was deleted".into())));
    };
    if !head.is_sealed(key, organization) {
        return Ok((0, Some("the head is not sealed with this installation's key".into())));
    }
    while chain.number < head.number {
        let rows = catalogue.audit(organization, chain.number, ReadLimit::of(PAGE_MAX))?;
        if rows.is_empty() {
            return Ok((chain.number, Some(format!("entry {} is missing", chain.number + 1))));
        }
        for row in rows.iter().filter(|row| row.number <= head.number) {
            if let Err(why) = chain.take(row) {
                return Ok((chain.number, Some(why)));
            }
        }
    }
    let fits = chain.hash == head.hash;
    Ok((chain.number, (!fits).then(|| format!("entry {} is not the one that the head names", chain.number))))
}

/// The facts that a file proves: its entries form a chain from the first to the one that its head names. With the key,
/// also that this installation wrote the head for this organization. Without the key, the whole file may be forged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proof {
    /// Id of the organization.
    pub organization: String,
    /// Time of the export as the file states it; not proven.
    pub exported_at: String,
    /// Number of entries.
    pub entries: u64,
    /// Hash of the last entry; `None` for an empty log, which proves nothing.
    pub head: Option<String>,
    /// True if the seal was verified with the installation's key.
    pub is_sealed: bool,
}

/// Verifies a file, with the installation's key if it is given. The error names the defect and its line.
pub fn verify(mut file: impl BufRead, key: Option<&[u8; 32]>) -> Result<Proof, String> {
    let mut line = 1;
    let at = |line: u64, why: String| format!("line {line}: {why}");
    let head: Head = next(&mut file).map_err(|why| at(line, why))?.ok_or("the file is empty")?;
    if head.format != FORMAT {
        return Err(at(line, format!("the format is `{}`, not `{FORMAT}`", head.format)));
    }
    let mut chain = Chain::default();
    loop {
        line += 1;
        let Some(entry) = next::<Entry>(&mut file).map_err(|why| at(line, why))? else { break };
        let taken = entry.row(&head.organization_id).and_then(|row| chain.take(&row));
        taken.map_err(|why| at(line, why))?;
    }
    let Head { organization_id: organization, exported_at, head: sealed, .. } = head;
    let mut proof = Proof { organization, exported_at, entries: chain.number, head: None, is_sealed: false };
    let Some(sealed) = sealed else {
        return if chain.number == 0 { Ok(proof) } else { Err("there are entries, and no head".into()) };
    };
    let parse = |name: &str, text: &str| Hash::parse(text).ok_or(format!("line 1: `{name}` of the head is no hash"));
    let head =
        AuditHead { number: sealed.number, hash: parse("hash", &sealed.hash)?, seal: parse("seal", &sealed.seal)? };
    if head.number != chain.number {
        return Err(format!("the head names entry {}, and the last one is {}", head.number, chain.number));
    }
    if head.hash != chain.hash {
        return Err(format!("entry {} is not the one that the head names", head.number));
    }
    if key.is_some_and(|key| !head.is_sealed(key, &proof.organization)) {
        return Err("the head is not sealed with this key for this organization".into());
    }
    (proof.head, proof.is_sealed) = (Some(head.hash.prefixed()), key.is_some());
    Ok(proof)
}

/// Reads the next line.
fn next<T: DeserializeOwned>(file: &mut impl BufRead) -> Result<Option<T>, String> {
    let mut line = Vec::new();
    let read = file.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line);
    read.map_err(|error| error.to_string())?;
    if line.is_empty() {
        return Ok(None);
    }
    if line.pop() != Some(b'\n') {
        return Err("it breaks off: the export did not end, or the file was cut".into());
    }
    serde_json::from_slice(&line).map(Some).map_err(|error| format!("it cannot be read: {error}"))
}

#[cfg(test)]
mod tests {
    use mainspring_kernel::value::Value;

    use super::*;

    const KEY: [u8; 32] = [7; 32];

    /// The export of a log with the given number of entries.
    fn exported(entries: u64) -> String {
        let (mut head, mut lines) = (None, String::new());
        for number in 0..entries {
            let detail = cbor::encode(&Value::map([("by", "t1".into()), ("n", number.into())]));
            let (organization, at) = ("acme".into(), 1_700_000_000_000 + number);
            let (actor, action, target) = ("ada".into(), "workflow.update".into(), "w".into());
            let row =
                AuditRow::following(head.as_ref(), AuditEntry { organization, at, actor, action, target, detail });
            head = Some(AuditHead::sealed(&KEY, &row));
            lines += std::str::from_utf8(&line(&Entry::from(&row))).unwrap();
        }
        let first = line(&Head::new("acme", 1_700_000_000_000, head.as_ref()));
        String::from_utf8(first).unwrap() + &lines
    }

    fn proven(file: &str, key: Option<&[u8; 32]>) -> Result<Proof, String> {
        verify(file.as_bytes(), key)
    }

    #[test]
    fn an_export_verifies_with_and_without_the_key() {
        let file = exported(5);
        let proof = proven(&file, None).unwrap();
        assert_eq!((proof.entries, proof.is_sealed, proof.organization.as_str()), (5, false, "acme"));
        assert!(proven(&file, Some(&KEY)).unwrap().is_sealed);
        assert!(proven(&file, Some(&[8; 32])).unwrap_err().contains("not sealed"));
        let empty = proven(&exported(0), Some(&KEY)).unwrap();
        assert_eq!((empty.entries, empty.is_sealed), (0, false), "of an empty log nothing is proven");
    }

    #[test]
    fn every_changed_line_is_detected_with_its_position() {
        let file = exported(3);
        let lines: Vec<&str> = file.lines().collect();
        for (from, to) in [
            ("\"ada\"", "\"eve\""),
            ("workflow.update", "workflow.delete"),
            ("\"target\":\"w\"", "\"target\":\"x\""),
            (":20.001Z", ":20.002Z"),
            ("\"n\":1", "\"n\":2"),
            ("\"number\":2", "\"number\":3"),
            ("\"detail\":", "\"other\":1,\"detail\":"),
        ] {
            let second = lines[2].replace(from, to);
            assert_ne!(second, lines[2], "{from}");
            let changed = [lines[0], lines[1], &second, lines[3], ""].join("\n");
            let why = proven(&changed, None).unwrap_err();
            assert!(why.starts_with("line 3: "), "{from}: {why}");
        }
        let other = file.replace("\"organizationId\":\"acme\"", "\"organizationId\":\"globex\"");
        assert!(proven(&other, None).unwrap_err().starts_with("line 2: "));
    }

    #[test]
    fn removed_added_and_truncated_lines_are_detected() {
        let file = exported(3);
        let lines: Vec<&str> = file.lines().collect();
        let of = |lines: &[&str]| proven(&(lines.join("\n") + "\n"), None);
        assert!(of(&[lines[0], lines[2], lines[3]]).is_err());
        assert!(of(&[lines[0], lines[1], lines[1], lines[2], lines[3]]).is_err());
        assert!(of(&[lines[0], lines[1], lines[2]]).unwrap_err().contains("the head names entry 3"));
        assert!(of(&[lines[1], lines[2], lines[3]]).is_err());
        assert!(proven(&file[..file.len() - 1], None).unwrap_err().contains("line 4: it breaks off"));
        assert!(proven("", None).is_err());
        // Truncated together with its head: only the key reveals it.
        let shorter = exported(2);
        let forged = shorter.replace(
            shorter.lines().next().unwrap().split("\"seal\":").nth(1).unwrap(),
            file.lines().next().unwrap().split("\"seal\":").nth(1).unwrap(),
        );
        assert!(proven(&forged, None).is_ok() && proven(&forged, Some(&KEY)).is_err());
    }
}
