//! Verifies journals of a server.
//!
//! The server checks the signatures of receipts, because that requires the certificates and the values beside the frames.
//!
//! The hash chain is verified here, frame by frame, over the bytes that the server sends. Decisions and the seal of the
//! head are not verified: that requires the values and the key of the installation.

use mainspring_kernel::{
    cbor::Reader,
    hash::{Hash, unhex},
    value::{Map, Value},
};

use super::{
    contract::{Verdict, Verification},
    server_find::{Pages, find},
};
use crate::{
    client::{Client, ClientError, address::route, response::Response},
    error::CliError,
    output::text::counted,
};

/// Receipts per page, the most that a server allows.
const PAGE_RECEIPTS: &str = "200";

/// Frames per page.
const PAGE_FRAMES: usize = 200;

/// Description of the verified properties, for the output.
const CHECKED: &str = "each with its hash, none missing between; not checked from here: decisions and the seal of the head (`mainspring verify` where the store is)";

/// Verifies the chain of one journal, or of all journals and the audit log.
pub(super) async fn verify(
    client: &Client,
    name: Option<&str>,
    report: &mut dyn FnMut(Verification),
) -> Result<(), CliError> {
    if let Some(name) = name {
        report(journal(client, &find(client, name).await?).await?);
        return Ok(());
    }
    let mut is_empty = true;
    let mut pages = Pages::new(client, Vec::new(), usize::MAX);
    loop {
        let page = pages.next().await?;
        if page.is_empty() {
            break;
        }
        is_empty = false;
        for row in page {
            report(journal(client, &row.id).await?);
        }
    }
    if is_empty {
        let message = format!("there are no executions at {}", client.address());
        return Err(CliError::bad_input("no_executions", message));
    }
    report(audit(client).await?);
    Ok(())
}

async fn journal(client: &Client, id: &str) -> Result<Verification, CliError> {
    let mut chain = Chain::default();
    let mut cursor: Option<String> = None;
    let limit = PAGE_FRAMES.to_string();
    let found = loop {
        let (before, mut query) = (chain.next, vec![("limit", limit.as_str())]);
        query.extend(cursor.iter().map(|cursor| ("cursor", cursor.as_str())));
        let page = client.get(&route(&["api", "executions", id, "journal"], &query)).await?;
        let page = Response::new(client, "a journal", &page);
        cursor = page.maybe_text("nextCursor")?;
        match chain.add(&page)? {
            Ok(()) if cursor.is_none() => break Ok(chain.next),
            // Reports a server that announces further frames and sends none.
            Ok(()) if chain.next == before => {
                break Err(format!("frame {before} of the journal is missing"));
            }
            Ok(()) => {}
            Err(why) => break Err(why),
        }
    };
    let found = found.and_then(|count| if count == 0 { Err("its journal is missing".into()) } else { Ok(count) });
    let found = match found {
        Ok(frames) => receipts(client, id).await?.map(|receipts| (frames, receipts)),
        Err(why) => Err(why),
    };
    Ok(verification(id, found))
}

/// Returns the route of a page of receipts. The pages are as large as possible, since the server reads the whole journal for
/// each.
pub(super) fn receipts_route(id: &str, cursor: Option<&str>) -> String {
    let query = [Some(("limit", PAGE_RECEIPTS)), cursor.map(|cursor| ("cursor", cursor))];
    route(&["api", "executions", id, "receipts"], &query.into_iter().flatten().collect::<Vec<_>>())
}

/// Counts of receipts by the server's check of their signatures.
#[derive(Default)]
struct Receipts {
    signed: u64,
    unsigned: u64,
}

/// Asks the server to check the receipts of an execution. The inner error describes a broken one; `None` is the answer of
/// an older server, which has no such route.
async fn receipts(client: &Client, id: &str) -> Result<Result<Option<Receipts>, String>, CliError> {
    let (mut receipts, mut cursor) = (Receipts::default(), None::<String>);
    loop {
        let page = match client.get(&receipts_route(id, cursor.as_deref())).await {
            Err(error) if error.is("NOT_FOUND") => return Ok(Ok(None)),
            page => page?,
        };
        let page = Response::new(client, "a page of receipts", &page);
        for receipt in page.objects("receipts", "a receipt")? {
            match receipt.text("signature")?.as_str() {
                "verified" => receipts.signed += 1,
                "unsigned" => receipts.unsigned += 1,
                _ => {
                    let (step, attempt) = (receipt.text("step")?, receipt.number("attempt")?);
                    let why = receipt.maybe_text("error")?.unwrap_or_default();
                    return Ok(Err(format!("the receipt of step `{step}`, attempt {attempt}: {why}")));
                }
            }
        }
        cursor = page.maybe_text("nextCursor")?;
        if cursor.is_none() {
            return Ok(Ok(Some(receipts)));
        }
    }
}

/// The verified part of a chain.
#[derive(Default)]
struct Chain {
    next: u64,
    before: Hash,
}

impl Chain {
    /// Verifies the frames of a page. The inner error describes a broken chain.
    fn add(&mut self, page: &Response<'_>) -> Result<Result<(), String>, ClientError> {
        for frame in page.objects("frames", "a frame")? {
            let digits = frame.text("frame")?;
            let mut bytes = vec![0; digits.len() / 2];
            if !unhex(&digits, &mut bytes) {
                return Err(frame.not("frame", "bytes in hexadecimal digits"));
            }
            let sequence = self.next;
            let hash = Hash::of(&bytes);
            let Some((own, before)) = head(&bytes) else { return Ok(Err(format!("frame {sequence} cannot be read"))) };
            if frame.number("sequence")? != sequence || own != sequence {
                return Ok(Err(format!("frame {sequence} is not there: number {own} stands in its place")));
            }
            if frame.text("hash")? != hash.prefixed() {
                return Ok(Err(format!("frame {sequence} does not have the hash that the server reports")));
            }
            if before != self.before {
                return Ok(Err(format!("frame {sequence} does not follow the one before it")));
            }
            (self.before, self.next) = (hash, sequence + 1);
        }
        Ok(Ok(()))
    }
}

/// Reads the sequence number of a frame and the hash of its predecessor.
fn head(bytes: &[u8]) -> Option<(u64, Hash)> {
    let mut reader = Reader::new(bytes);
    reader.array().ok()?;
    reader.unsigned().ok()?;
    Some((reader.unsigned().ok()?, Hash(reader.byte_array().ok()?)))
}

fn verification(id: &str, found: Result<(u64, Option<Receipts>), String>) -> Verification {
    let mut map = Map::from([("executionId".to_string(), Value::from(id)), ("ok".into(), found.is_ok().into())]);
    let mut unsigned_receipts = None;
    let verdict = match found {
        Ok((frames, receipts)) => {
            map.insert("frames".into(), frames.into());
            map.insert("checked".into(), vec![Value::from("chain")].into());
            let mut text = format!("{} in the chain, {CHECKED}", counted(frames, "frame", "frames"));
            if let Some(Receipts { signed, unsigned }) = receipts {
                unsigned_receipts = Some(unsigned);
                let value = [("signed", Value::from(signed)), ("unsigned", unsigned.into())];
                map.insert("receipts".into(), Value::map(value));
                text.push_str(&format!(
                    "; {} signed and {unsigned} unsigned, according to the server",
                    counted(signed, "receipt", "receipts")
                ));
            }
            Verdict::Sound(text)
        }
        Err(why) => {
            map.insert("error".into(), why.as_str().into());
            Verdict::Broken(why)
        }
    };
    Verification { subject: id.into(), verdict, unsigned_receipts, value: Value::Map(map) }
}

/// Requests the server's verification of its audit log. A token that may not read the log leaves it unchecked.
async fn audit(client: &Client) -> Result<Verification, CliError> {
    let found = match client.get("/api/audit/verify").await {
        Err(error) if error.is("FORBIDDEN") => None,
        found => Some(found?),
    };
    let value = Value::map([("auditLog", found.clone().unwrap_or_default())]);
    let verdict = match found {
        None => Verdict::Unchecked("not checked: this token may not read it".into()),
        Some(found) => {
            let answer = Response::new(client, "the proof of the audit log", &found);
            let (is_sound, entries) = (answer.flag("ok")?, answer.number("entries")?);
            let error = answer.maybe_text("error")?;
            if is_sound {
                Verdict::Sound(format!(
                    "{} in the chain, head sealed, according to the server",
                    counted(entries, "entry", "entries")
                ))
            } else {
                Verdict::Broken(error.unwrap_or_default())
            }
        }
    };
    Ok(Verification { subject: "audit log".into(), verdict, unsigned_receipts: Some(0), value })
}
