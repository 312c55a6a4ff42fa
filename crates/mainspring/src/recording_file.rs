//! The durable file of a recording: lines of JSON, each written and synced before it is acted upon.
//!
//! | line | meaning |
//! |---|---|
//! | `{"recording": 1, "input": …}` | the first line |
//! | `{"calling": {"tool": …, "args": …, "intent": …}}` | a call is about to be made |
//! | `{"step": {"name": …, "output": …}}` | the call above has succeeded and is a step |
//! | `{"failed": {"code": …}}` | the call above has failed and is no step |
//! | `{"set": {"name": …, "output": …}}` | a result was set without a call |

use std::{
    fs::{File, OpenOptions},
    io::{ErrorKind, Read, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use mainspring_kernel::{
    hash::Hash,
    json,
    recording::{PreparedCall, Recording, RecordingError},
    value::Value,
};

use crate::error::CliError;

/// The largest recording. A workflow of it would be refused long before.
const RECORDING_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// The version of the form.
const FORM: u64 = 1;

/// An open recording. No other process writes to its file at the same time.
pub(crate) struct RecordingFile {
    path: PathBuf,
    file: File,
    recording: Recording,
    /// The call whose result is missing, because a process ended before it.
    unknown: Option<PreparedCall>,
}

impl RecordingFile {
    /// Makes the file of a new recording. An existing file is not changed.
    pub(crate) fn create(path: &Path, input: Value) -> Result<(), CliError> {
        let file = OpenOptions::new().write(true).create_new(true).open(path);
        let file = file.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => bad(path, "it exists: name another file, or remove it"),
            _ => bad(path, &error.to_string()),
        })?;
        let head = Value::map([("recording", FORM.into()), ("input", input)]);
        append(path, &file, &head)
    }

    /// Opens a recording. A last line without an end was never acknowledged and is removed.
    pub(crate) fn open(path: &Path) -> Result<Self, CliError> {
        let failed = |error: std::io::Error| bad(path, &error.to_string());
        let mut file = OpenOptions::new().read(true).append(true).open(path).map_err(failed)?;
        file.try_lock().map_err(|_| bad(path, "another process records into it"))?;
        let mut bytes = Vec::new();
        (&mut file).take(RECORDING_BYTES_MAX + 1).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > RECORDING_BYTES_MAX {
            return Err(bad(path, &format!("it has more than {RECORDING_BYTES_MAX} bytes")));
        }
        let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        if whole < bytes.len() {
            file.set_len(whole as u64).and_then(|()| file.seek(SeekFrom::End(0))).map_err(failed)?;
        }
        let text = std::str::from_utf8(&bytes[..whole]).map_err(|error| bad(path, &error.to_string()))?;
        let (recording, unknown) = replayed(path, text)?;
        Ok(Self { path: path.to_owned(), file, recording, unknown })
    }

    /// Returns the recording.
    pub(crate) fn recording(&self) -> &Recording {
        &self.recording
    }

    /// Returns the tool of the last call, if it is unknown whether it was made.
    pub(crate) fn unknown_call(&self) -> Option<&str> {
        self.unknown.as_ref().map(|call| call.tool.as_str())
    }

    /// Writes that a call is about to be made.
    pub(crate) fn begin(&mut self, call: &PreparedCall, intent: Hash) -> Result<(), CliError> {
        let calling = Value::map([
            ("tool", call.tool.as_str().into()),
            ("args", call.written.clone()),
            ("intent", intent.hex().into()),
        ]);
        self.unknown = None;
        self.append(&Value::map([("calling", calling)]))
    }

    /// Writes the result of the call, which becomes a step.
    pub(crate) fn end(&mut self, call: PreparedCall, output: Value) -> Result<(), CliError> {
        let step = Value::map([("name", call.step.as_str().into()), ("output", output.clone())]);
        self.append(&Value::map([("step", step)]))?;
        self.recording.record(call, output).map(drop).map_err(refused)
    }

    /// Writes that the call has failed.
    pub(crate) fn fail(&mut self, code: &str) -> Result<(), CliError> {
        self.append(&Value::map([("failed", Value::map([("code", code.into())]))]))
    }

    /// Sets the result of a step without a call.
    pub(crate) fn set(&mut self, step: &str, output: Value) -> Result<(), CliError> {
        let mut next = self.recording.clone();
        next.set(step, output.clone()).map_err(refused)?;
        let set = Value::map([("name", step.into()), ("output", output)]);
        self.append(&Value::map([("set", set)]))?;
        self.recording = next;
        Ok(())
    }

    fn append(&self, line: &Value) -> Result<(), CliError> {
        append(&self.path, &self.file, line)
    }
}

/// Writes and syncs one line.
fn append(path: &Path, mut file: &File, line: &Value) -> Result<(), CliError> {
    let line = format!("{}\n", json::compact(line));
    let size_bytes = file.metadata().map_err(|error| bad(path, &error.to_string()))?.len();
    if size_bytes + line.len() as u64 > RECORDING_BYTES_MAX {
        return Err(bad(path, &format!("the recording would have more than {RECORDING_BYTES_MAX} bytes")));
    }
    file.write_all(line.as_bytes()).and_then(|()| file.sync_data()).map_err(|error| bad(path, &error.to_string()))
}

/// Reads the lines of a recording, and returns a call at the end that has no result.
fn replayed(path: &Path, text: &str) -> Result<(Recording, Option<PreparedCall>), CliError> {
    let (mut recording, mut calling) = (None, None);
    for (number, line) in text.lines().enumerate() {
        let damaged = |why: &str| bad(path, &format!("line {}: {why}", number + 1));
        let entry = json::value(line.as_bytes()).map_err(|error| damaged(&error.to_string()))?;
        let entry = entry.as_map().ok_or_else(|| damaged("this is not an object"))?;
        let Some(open) = &mut recording else {
            if entry.get("recording").and_then(Value::as_u64) != Some(FORM) || entry.len() != 2 {
                return Err(damaged("this is not the beginning of a recording"));
            }
            recording = Some(Recording::new(entry.get("input").cloned().unwrap_or_default()));
            continue;
        };
        let (Some((kind, of)), 1) = (entry.first_key_value(), entry.len()) else {
            return Err(damaged("an entry has one key"));
        };
        let text = |key: &str| of.get(key).and_then(Value::as_text).unwrap_or_default();
        let output = || of.get("output").cloned().unwrap_or_default();
        let wrong = |error: RecordingError| damaged(&error.to_string());
        match (kind.as_str(), calling.take()) {
            ("calling", _) => {
                let arguments = of.get("args").cloned().unwrap_or_default();
                calling = Some(open.prepare(text("tool"), &arguments).map_err(wrong)?);
            }
            ("step", Some(call)) if call.step == text("name") => drop(open.record(call, output()).map_err(wrong)?),
            ("failed", Some(_)) => {}
            // A call whose process ended may precede it.
            ("set", _) => drop(open.set(text("name"), output()).map_err(wrong)?),
            _ => return Err(damaged("this entry is not allowed here")),
        }
    }
    Ok((recording.ok_or_else(|| bad(path, "it is not a recording: `mainspring record start` creates one"))?, calling))
}

fn bad(path: &Path, why: &str) -> CliError {
    CliError::bad_input("bad_recording", format!("the recording {}: {why}", path.display()))
}

/// The error for a call or a result that is not recorded.
pub(crate) fn refused(error: RecordingError) -> CliError {
    CliError::bad_input("recording_refused", error.to_string())
}
