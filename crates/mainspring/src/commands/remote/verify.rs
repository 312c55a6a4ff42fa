//! `mainspring verify` at a server.
//!
//! The hash chain is verified here, frame by frame, over the bytes that the server sends. Decisions and the seal of the
//! head are not verified: that requires the values and the key of the installation.

use mainspring_kernel::{
    cbor::Reader,
    hash::{Hash, unhex},
    json::compact,
    value::{Map, Value},
};

use super::find::{Pages, find};
use crate::{
    cli::Global,
    client::{Client, ClientError, address::route, response::Response},
    commands::verify::Verify,
    error::{CliError, Exit},
    output::terminal::{bold, print_out, status},
    output::text::{paragraph, shown},
    read_store::block_on,
};

/// Frames per page.
const PAGE_FRAMES: usize = 200;

/// Description of the verified properties, for the output.
const CHECKED: &str = "each with its hash, none missing between; not checked from here: decisions and the seal of the head (`mainspring verify` where the store is)";

/// Verifies the chain of one journal, or of all journals and the audit log.
pub(in crate::commands) fn verify(verify: &Verify, client: &Client, global: &Global) -> Result<Exit, CliError> {
    block_on(async {
        if let Some(id) = &verify.id {
            return journal(client, &find(client, id).await?, global).await;
        }
        let (mut exit, mut is_empty) = (Exit::Fine, true);
        let mut pages = Pages::new(client, Vec::new(), usize::MAX);
        loop {
            let page = pages.next().await?;
            if page.is_empty() {
                break;
            }
            is_empty = false;
            for row in page {
                if journal(client, &row.id, global).await? != Exit::Fine {
                    exit = Exit::NotSo;
                }
            }
        }
        if is_empty {
            let message = format!("there are no executions at {}", client.address());
            return Err(CliError::bad_input("no_executions", message));
        }
        if audit(client, global).await? == Exit::Fine { Ok(exit) } else { Ok(Exit::NotSo) }
    })
}

async fn journal(client: &Client, id: &str, global: &Global) -> Result<Exit, CliError> {
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
    Ok(tell_journal(id, found, global))
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
                return Ok(Err(format!("frame {sequence} does not have the hash that the server tells")));
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

fn tell_journal(id: &str, found: Result<u64, String>, global: &Global) -> Exit {
    let exit = if found.is_ok() { Exit::Fine } else { Exit::NotSo };
    if global.json {
        let mut map = Map::from([("executionId".to_string(), Value::from(id)), ("ok".into(), found.is_ok().into())]);
        match found {
            Ok(frames) => {
                map.insert("frames".into(), frames.into());
                map.insert("checked".into(), vec![Value::from("chain")].into());
            }
            Err(why) => drop(map.insert("error".into(), why.as_str().into())),
        }
        print_out!("{}", compact(&Value::Map(map)));
        return exit;
    }
    match found {
        Ok(frames) => print_out!("{} {}  {frames} frames in the chain, {CHECKED}", bold(&shown(id)), status("ok")),
        Err(why) => print_out!("{} {}  {}", bold(&shown(id)), status("failed"), paragraph(&why)),
    }
    exit
}

/// Prints the server's verification of its audit log, or that the token may not read it.
async fn audit(client: &Client, global: &Global) -> Result<Exit, CliError> {
    let told = match client.get("/api/audit/verify").await {
        Err(error) if error.is("FORBIDDEN") => None,
        told => Some(told?),
    };
    if global.json {
        let told = told.clone().unwrap_or_default();
        print_out!("{}", compact(&Value::map([("auditLog", told)])));
    }
    let Some(told) = told else {
        if !global.json {
            print_out!("{}  not checked: this token may not read it", bold("audit log"));
        }
        return Ok(Exit::Fine);
    };
    let answer = Response::new(client, "the proof of the audit log", &told);
    let (is_so, entries, error) = (answer.flag("ok")?, answer.number("entries")?, answer.maybe_text("error")?);
    if !global.json && is_so {
        print_out!(
            "{} {}  {entries} entries in the chain, head sealed, as the server says",
            bold("audit log"),
            status("ok")
        );
    } else if !global.json {
        print_out!("{} {}  {}", bold("audit log"), status("failed"), paragraph(&error.unwrap_or_default()));
    }
    Ok(if is_so { Exit::Fine } else { Exit::NotSo })
}
