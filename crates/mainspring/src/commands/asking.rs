//! Asking whoever is at the terminal to decide at a gate.

use std::{
    io::{self, Write},
    sync::OnceLock,
    time::Duration,
};

use mainspring_kernel::{plan::Decision, value::Value};
use tokio::sync::{Mutex, mpsc::UnboundedReceiver};

use super::summary::show_items;
use crate::{
    exit::Refusal,
    runner::Signals,
    terminal::{bold, say},
    text::paragraph,
};

/// What came of a question.
pub(crate) enum Answer {
    /// It was answered.
    Decided(Decision),
    /// Nobody wants to decide now.
    Later,
    /// The gate is no longer open: somebody else has decided, or nobody in time.
    Elsewhere,
}

/// Asks, and looks now and then whether the question still stands. The execution goes on meanwhile, and Ctrl-C leaves the gate open.
pub(crate) async fn ask(
    question: &str,
    items: &Value,
    look: Duration,
    signals: &mut Signals,
    still_open: impl AsyncFn() -> Result<bool, Refusal>,
) -> Result<Answer, Refusal> {
    say!("\n  {}", bold(&paragraph(question)));
    show_items(items);
    let mut look = tokio::time::interval(look);
    prompt();
    loop {
        tokio::select! {
            () = signals.any() => {
                say!();
                return Ok(Answer::Later);
            }
            _ = look.tick() => {
                if !still_open().await? {
                    say!();
                    return Ok(Answer::Elsewhere);
                }
            }
            line = typed() => match line.as_deref().map(str::trim) {
                Some("y" | "yes") => return Ok(Answer::Decided(Decision::Approve)),
                Some("n" | "no") => return Ok(Answer::Decided(Decision::Deny)),
                Some("l" | "later") | None => return Ok(Answer::Later),
                Some(_) => prompt(),
            },
        }
    }
}

fn prompt() {
    let mut out = anstream::stdout().lock();
    let _ = write!(out, "  {} ", bold("[y]es, [n]o, [l]ater?"));
    let _ = out.flush();
}

/// The next line that is typed; nothing once there are no more. One thread reads for the whole process: a second one
/// would take the other's lines.
pub(crate) async fn typed() -> Option<String> {
    static LINES: OnceLock<Mutex<UnboundedReceiver<String>>> = OnceLock::new();
    let lines = LINES.get_or_init(|| {
        let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
        std::thread::spawn(move || {
            for line in io::stdin().lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Mutex::new(receiver)
    });
    lines.lock().await.recv().await
}
