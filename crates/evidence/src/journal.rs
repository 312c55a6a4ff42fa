//! Journals as text: one line of canonical JSON for each frame.

use base64::{Engine, engine::general_purpose::STANDARD};
use mainspring_kernel::{
    hash::Hash,
    json,
    stored_frame::{StoredFrame, StoredValue},
    value::Value,
};

/// Writes frames. `hash` is the SHA-256 of the frame, which the next frame contains.
pub fn write(frames: &[StoredFrame]) -> Vec<u8> {
    let mut out = Vec::new();
    for frame in frames {
        let value = |value: &StoredValue| {
            let body = value.body.as_ref().map_or(Value::Null, |body| STANDARD.encode(body).into());
            Value::map([("body", body), ("salt", STANDARD.encode(value.salt).into())])
        };
        let line = Value::map([
            ("frame", Value::from(STANDARD.encode(&frame.frame))),
            ("hash", Hash::of(&frame.frame).hex().into()),
            ("sequence", frame.sequence.into()),
            ("values", frame.values.iter().map(value).collect::<Vec<_>>().into()),
        ]);
        out.extend_from_slice(json::canonical(&line).as_bytes());
        out.push(b'\n');
    }
    out
}

/// Reads frames.
///
/// # Errors
/// Names the first line that is not a frame.
pub fn read(text: &[u8]) -> Result<Vec<StoredFrame>, String> {
    let lines = text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let frame = |(place, line)| frame(line).ok_or_else(|| format!("line {} is no frame", place + 1));
    let frames = lines.enumerate().map(frame).collect::<Result<Vec<_>, _>>()?;
    // One journal has one form, so nothing can be hidden between the lines.
    if write(&frames) == text { Ok(frames) } else { Err("it is not in the form in which journals are written".into()) }
}

fn frame(line: &[u8]) -> Option<StoredFrame> {
    let line = json::value(line).ok()?;
    let bytes = |value: &Value| STANDARD.decode(value.as_text()?).ok();
    let frame = bytes(line.get("frame")?)?;
    if line.get("hash")?.as_text()? != Hash::of(&frame).hex() {
        return None;
    }
    let value = |value: &Value| {
        let body = match value.get("body")? {
            Value::Null => None,
            body => Some(bytes(body)?),
        };
        Some(StoredValue { salt: bytes(value.get("salt")?)?.try_into().ok()?, body })
    };
    let values = line.get("values")?.as_list()?.iter().map(value).collect::<Option<Vec<_>>>()?;
    Some(StoredFrame { sequence: line.get("sequence")?.as_u64()?, frame, values })
}
