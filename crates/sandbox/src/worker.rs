//! The main loop of a worker process: it confines itself, and then answers requests until the stream ends.

use crate::confine::limit_computing;
pub use crate::confine::{Confinement, confine};
use crate::evaluate::Evaluator;
use crate::fault::{Fault, FaultKind};
use crate::limits::THREAD_STACK_BYTES;
use crate::request::{Call, Request};
use crate::response::Response;
use crate::wire::{Message, TAKEN, read_frame, write_frame};
use std::any::Any;
use std::io::{self, Read, Write};
use std::thread;

/// Confines the whole process permanently, then answers requests until the stream ends.
///
/// Call it from the `main` of a worker with its standard input and output. It fails if the stream breaks or contains
/// bytes that no [`Workers`](crate::Workers) sends. If the kernel rejects the filter of system calls, no code runs
/// unless `unconfined` permits it.
pub fn serve(reader: impl Read + Send, writer: impl Write + Send, unconfined: bool) -> io::Result<()> {
    thread::scope(|scope| {
        let work = move || answer_all(reader, writer, unconfined);
        let thread = thread::Builder::new().stack_size(THREAD_STACK_BYTES).spawn_scoped(scope, work)?;
        thread.join().unwrap_or_else(|_| Err(io::Error::other("the sandbox broke")))
    })
}

fn answer_all(mut reader: impl Read, mut writer: impl Write, unconfined: bool) -> io::Result<()> {
    let confinement = confine();
    let mut evaluator = Evaluator::default();
    evaluator.tidy_up();
    while let Some(bytes) = read_frame(&mut reader)? {
        writer.write_all(&[TAKEN])?;
        writer.flush()?;
        let request = Request::from_bytes(&bytes);
        let request =
            request.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a request of another build"))?;
        drop(bytes);
        limit_computing(request.limits.wall_ms_max);
        let answer = match request.call {
            Call::Hello => Ok(Response::of(Ok(confinement.to_json()))),
            Call::Function(_) | Call::CheckFunction { .. } if !confinement.system_calls && !unconfined => {
                Ok(Response::of(Err(not_confined())))
            }
            _ => evaluator.answer(&request),
        };
        let is_broken = answer.is_err();
        let answer = answer.unwrap_or_else(|panic| Response::of(Err(broken(panic.as_ref()))));
        write_frame(&mut writer, &answer.to_bytes())?;
        writer.flush()?;
        if is_broken {
            break;
        }
        evaluator.tidy_up();
    }
    Ok(())
}

fn not_confined() -> Fault {
    let message = "The system refuses the filter of system calls (seccomp) that confines code, so no code runs here. Allow \
        seccomp to the container that this node runs in, or set MAINSPRING_UNCONFINED_CODE=1 if all who write code may do \
        what this user may.";
    Fault::new(FaultKind::Unavailable, message)
}

fn broken(panic: &(dyn Any + Send)) -> Fault {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    let message = format!("The sandbox broke, which is a defect of ours: {}", text.unwrap_or("no more is known"));
    Fault::new(FaultKind::Crashed, message)
}
