//! The flags of `mainspring`, and the way from a command line to an exit code.

use std::{ffi::OsString, path::PathBuf};

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueHint, error::ErrorKind};
use mainspring_kernel::diagnostic::is_obeyed;

use crate::{
    commands,
    exit::{Exit, Refusal},
    seeing::Seeing,
    terminal::{Terminal, say},
};

/// Durable workflows: nothing lost, nothing repeated, everything on record.
#[derive(Debug, Parser)]
#[command(name = "mainspring", version, disable_help_subcommand = true, max_term_width = 100)]
pub(crate) struct CommandLine {
    #[command(subcommand)]
    command: Command,
    #[command(flatten)]
    global: Global,
}

/// What every command takes.
#[derive(Debug, Clone, Args)]
pub(crate) struct Global {
    /// The folder of executions [default: $XDG_STATE_HOME/mainspring]
    #[arg(long, visible_alias = "data-dir", global = true, value_name = "DIR", env = "MAINSPRING_DIR", value_hint = ValueHint::DirPath)]
    pub(crate) dir: Option<PathBuf>,
    /// The store that several machines share, instead of a folder: postgres://user:password@host/database
    #[arg(long, global = true, value_name = "URL", env = "MAINSPRING_STORE", hide_env_values = true)]
    pub(crate) store: Option<String>,
    /// Answer in JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) seeing: Seeing,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server
    Up(commands::up::Up),
    /// Run a workflow and show what it does
    Run(commands::run::Run),
    /// Go on with executions that were left unfinished
    Resume(commands::resume::Resume),
    /// Work on executions until asked to stop
    Node(commands::node::Node),
    /// Make a token that lets a member in at the server
    Token(commands::token::Token),
    /// Show the server's settings, and where each came from
    Config(commands::config::Config),
    /// List executions, the newest first
    List(commands::list::List),
    /// Show an execution: its steps, its attempts, what it waits for
    Show(commands::show::Show),
    /// Follow an execution as it goes
    Tail(commands::tail::Tail),
    /// Approve what an execution waits for, and go on with it
    Approve(commands::decide::Approve),
    /// Deny what an execution waits for, which cancels it
    Deny(commands::decide::Deny),
    /// Cancel an execution
    Cancel(commands::cancel::Cancel),
    /// Send a named message to an execution
    Signal(commands::signal::Signal),
    /// Prove that journals are what was written
    Verify(commands::verify::Verify),
    /// Prove audit logs that a server has exported
    Audit(commands::audit::Audit),
    /// Check a definition without running it
    Validate(commands::validate::Validate),
    /// Draw the plan of a definition
    Plan(commands::plan::Plan),
    /// Say a definition in another notation
    Convert(commands::convert::Convert),
    /// Run scenario files on virtual time
    Test(commands::test::Test),
    /// Measure throughput and latency on this machine
    Bench(commands::bench::Bench),
    /// Print a completion script for a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// Runs the command line.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let matches = CommandLine::command().try_get_matches_from(&arguments);
    let line = match matches.and_then(|matches| CommandLine::from_arg_matches(&matches)) {
        Ok(line) => line,
        Err(error) => return refused_arguments(&error, &arguments),
    };
    let terminal = Terminal::of_process();
    let usual_log = if matches!(line.command, Command::Node(_) | Command::Up(_)) { "info" } else { "off" };
    let begun = line.global.seeing.begin(usual_log);
    let obeyed = begun.and_then(|()| obey(line.command, &line.global, &terminal));
    line.global.seeing.end(&terminal);
    match obeyed {
        Ok(exit) => exit,
        Err(refusal) => {
            tell(&refusal, &line.global, &terminal);
            refusal.exit
        }
    }
}

fn obey(command: Command, global: &Global, terminal: &Terminal) -> Result<Exit, Refusal> {
    match command {
        Command::Up(up) => commands::up::up(&up, global, terminal),
        Command::Token(token) => commands::token::token(&token, global, terminal),
        Command::Config(config) => commands::config::config(&config, global, terminal),
        Command::Run(run) => commands::run::run(&run, global, terminal),
        Command::Resume(resume) => commands::resume::resume(&resume, global, terminal),
        Command::Node(node) => commands::node::node(&node, global, terminal),
        Command::List(list) => commands::list::list(&list, global, terminal),
        Command::Show(show) => commands::show::show(&show, global, terminal),
        Command::Tail(tail) => commands::tail::tail(&tail, global, terminal),
        Command::Approve(approve) => commands::decide::approve(&approve, global, terminal),
        Command::Deny(deny) => commands::decide::deny(&deny, global, terminal),
        Command::Cancel(cancel) => commands::cancel::cancel(&cancel, global, terminal),
        Command::Signal(signal) => commands::signal::signal(&signal, global, terminal),
        Command::Audit(audit) => commands::audit::audit(&audit, global, terminal),
        Command::Verify(verify) => commands::verify::verify(&verify, global, terminal),
        Command::Validate(validate) => commands::validate::validate(&validate, global, terminal),
        Command::Plan(plan) => commands::plan::plan(&plan, global, terminal),
        Command::Convert(convert) => commands::convert::convert(&convert, global),
        Command::Test(test) => commands::test::test(&test, global, terminal),
        Command::Bench(bench) => commands::bench::bench(&bench, global, terminal),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut CommandLine::command(), "mainspring", &mut script);
            say!("{}", String::from_utf8_lossy(&script).trim_end());
            Ok(Exit::Fine)
        }
    }
}

fn refused_arguments(error: &clap::Error, arguments: &[OsString]) -> Exit {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let _ = error.print();
        return Exit::Fine;
    }
    let refusal = Refusal::arguments(error);
    if asks_for_json(arguments) {
        answer(&refusal);
    }
    // What clap prints has colours, and the arguments as they are: a file's name that a shell has put there, too.
    if arguments.iter().any(|argument| argument.to_string_lossy().contains(is_obeyed)) {
        Terminal::of_process().error(&refusal.failure.message);
    } else {
        let _ = error.print();
    }
    refusal.exit
}

/// Whether a command line that could not be read has the flag. What stands behind `--` is no flag.
fn asks_for_json(arguments: &[OsString]) -> bool {
    arguments.iter().take_while(|argument| *argument != "--").any(|argument| argument == "--json")
}

fn tell(refusal: &Refusal, global: &Global, terminal: &Terminal) {
    if global.json {
        answer(refusal);
    }
    terminal.error(&refusal.failure.message);
}

fn answer(refusal: &Refusal) {
    say!("{}", mainspring_kernel::json::compact(&mainspring_engine::envelope::of_refusal(None, &refusal.failure)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_fit_together() {
        CommandLine::command().debug_assert();
    }
}
