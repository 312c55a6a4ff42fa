//! Prompts the user at the terminal for a decision.

use std::{
    io::{self, Write},
    sync::OnceLock,
    time::Duration,
};

use mainspring_kernel::{plan::Decision, value::Value};
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};
use tokio::sync::{Mutex, mpsc::UnboundedReceiver};

use super::summary::show_items;
use crate::{
    context::{Context, block_on},
    error::CliError,
    output::terminal::{bold, print_err, print_out},
    output::text::paragraph,
    signals::Signals,
};

/// The result of a prompt.
pub(crate) enum PromptAnswer {
    Decided(Decision),
    /// The user decides later.
    Later,
    /// The gate was closed while the prompt was open, by another user or by its timeout.
    Elsewhere,
}

/// Reads a line without echo, such as a token. After an interrupt the terminal echoes again.
pub(crate) fn hidden(label: &str, context: &Context) -> Result<String, CliError> {
    let failed = |why: String| CliError::bad_input("unreadable", format!("the terminal cannot be read: {why}"));
    block_on(async {
        context.signals.install()?;
        let echo_off = EchoOff::begin().map_err(|error| failed(error.to_string()))?;
        {
            let mut out = anstream::stderr().lock();
            let _ = write!(out, "{label}");
            let _ = out.flush();
        }
        let line = tokio::select! {
            () = context.signals.any() => None,
            line = typed() => line,
        };
        drop(echo_off);
        print_err!();
        line.ok_or_else(|| CliError::internal("interrupted", "interrupted; nothing is stored"))
    })
}

/// Disables the terminal's echo until it is dropped.
struct EchoOff {
    before: Termios,
}

impl EchoOff {
    fn begin() -> rustix::io::Result<Self> {
        let before = tcgetattr(io::stdin())?;
        let mut echo_off = before.clone();
        echo_off.local_modes.remove(LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Flush, &echo_off)?;
        Ok(Self { before })
    }
}

impl Drop for EchoOff {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.before);
    }
}

/// Prompts for a decision, and polls whether the gate is still open. The execution continues while the prompt is
/// open, and Ctrl-C leaves the gate open.
pub(crate) async fn ask(
    question: &str,
    items: &Value,
    poll_interval: Duration,
    signals: &Signals,
    still_open: impl AsyncFn() -> Result<bool, CliError>,
) -> Result<PromptAnswer, CliError> {
    print_out!("\n  {}", bold(&paragraph(question)));
    show_items(items);
    let mut poll = tokio::time::interval(poll_interval);
    prompt();
    loop {
        tokio::select! {
            () = signals.any() => {
                print_out!();
                return Ok(PromptAnswer::Later);
            }
            _ = poll.tick() => {
                if !still_open().await? {
                    print_out!();
                    return Ok(PromptAnswer::Elsewhere);
                }
            }
            line = typed() => match line.as_deref().map(str::trim) {
                Some("y" | "yes") => return Ok(PromptAnswer::Decided(Decision::Approve)),
                Some("n" | "no") => return Ok(PromptAnswer::Decided(Decision::Deny)),
                Some("l" | "later") | None => return Ok(PromptAnswer::Later),
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

/// The next typed line; `None` at the end of input. One thread reads for the whole process, because a second one
/// would consume its lines.
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
