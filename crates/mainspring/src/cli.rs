//! The flags of `mainspring`, and the dispatch from a command line to a command and its exit code.

use std::ffi::OsString;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand, error::ErrorKind, parser::ValueSource};
use mainspring_kernel::diagnostic::is_obeyed;
use mainspring_store::postgres::PostgresStore;

use crate::{
    commands,
    context::{Context, Global},
    error::{CliError, Exit},
    output::terminal::{Terminal, print_out},
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

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server
    Up(commands::up::Up),
    /// Run a workflow and show what it does
    Run(commands::run::Run),
    /// Resume unfinished executions
    Resume(commands::resume::Resume),
    /// Run executions until stopped
    Node(commands::node::Node),
    /// Store a token for a server
    Login(commands::login::Login),
    /// Remove the stored token of a server
    Logout(commands::login::Logout),
    /// Save a workflow on a server
    Save(commands::save::Save),
    /// List the workflows of a server
    Workflows(commands::workflows::Workflows),
    /// Propose a change of a workflow of a server
    Propose(commands::propose::Propose),
    /// Compare a folder of definitions, scenarios, triggers and a policy with a server
    Diff(commands::repository::Diff),
    /// Make a server equal to a folder of definitions, scenarios, triggers and a policy
    Apply(commands::repository::Apply),
    /// List, review and apply proposed changes of a workflow
    Proposals(commands::proposals::Proposals),
    /// Return a workflow of a server to an earlier version
    Rollback(commands::rollback::Rollback),
    /// Show, promote and abort the staged rollout of a workflow
    Rollout(commands::rollout::Rollout),
    /// List, create, run and change the triggers of a server: webhooks and schedules
    Triggers(commands::triggers::Triggers),
    /// Send the events of executions of a server to webhooks: list, create, test and change subscriptions
    Subscriptions(commands::subscriptions::Subscriptions),
    /// Set, list and remove the budgets of the organization and its workflows for a day or a month
    Budgets(commands::budgets::Budgets),
    /// Show the rules for calls of workflows, and set those of your organization
    Policy(commands::policy::Policy),
    /// Set, list and remove the secrets that steps use as {secret: NAME}
    Secret(commands::secret::Secret),
    /// List and change the keys that encrypt secrets in the store
    Key(commands::key::Key),
    /// List the sessions of executions of a server, and reap ended ones
    Sessions(commands::sessions::Sessions),
    /// Create a token for a member of the server
    Token(commands::token::Token),
    /// Show the server's settings and the source of each
    Config(commands::config::Config),
    /// Check this installation, without changing anything
    Doctor(commands::doctor::Doctor),
    /// Back up the store of the data folder, even while it is in use
    Backup(commands::backup::Backup),
    /// List executions, the newest first
    List(commands::list::List),
    /// Show an execution: steps, attempts, open approvals
    Show(commands::show::Show),
    Usage(commands::usage::Usage),
    /// Follow an execution
    Tail(commands::tail::Tail),
    /// List open approvals with approvers, start and deadline
    Approvals(commands::approvals::Approvals),
    /// Approve an open approval, and resume the execution (`mainspring approvals` lists them)
    Approve(commands::decide::Approve),
    /// Deny an open approval, which cancels the execution (`mainspring approvals` lists them)
    Deny(commands::decide::Deny),
    /// Cancel an execution
    Cancel(commands::cancel::Cancel),
    /// Send a named message to an execution
    Signal(commands::signal::Signal),
    /// Send a message to an agent of an execution
    Message(commands::message::Message),
    /// Record calls of tools as the steps of a workflow
    Record(commands::record::Record),
    /// List the tools of the configured MCP servers, or call one
    Tools(commands::tools::ToolsArgs),
    /// List the configured models, or ask one
    Models(commands::models::Models),
    /// Save and test a folder of definitions at a local server as they change; start a scripted model
    Dev(commands::dev::Dev),
    /// Upgrade the store of an older release to the format of this one
    Upgrade(commands::upgrade::Upgrade),
    /// List, release or end quarantined executions
    Quarantine(commands::quarantine::Quarantine),
    /// Erase values of an ended execution
    Erase(commands::erase::Erase),
    /// Verify journals
    Verify(commands::verify::Verify),
    /// Export and verify evidence of executions, and pin the heads of the store
    Evidence(commands::evidence::Evidence),
    /// Verify exported audit logs
    Audit(commands::audit::Audit),
    /// Check a definition without running it
    Validate(commands::validate::Validate),
    /// Draw the plan of a definition
    Plan(commands::plan::Plan),
    /// Compare two versions of a definition, and rate the risk of the change
    Review(commands::review::Review),
    /// Explain a step type, a topic, a key or an error code
    Explain(commands::explain::Explain),
    /// Write a template of a workflow with its test
    Init(commands::init::Init),
    /// List the examples, or print one
    Examples(commands::examples::Examples),
    /// Print the JSON Schema of definitions
    Schema(commands::schema::Schema),
    /// Replay recorded executions with another definition, without performing effects
    Shadow(commands::shadow::Shadow),
    /// Serve an editor with diagnostics and completion, on standard input and output
    Lsp(commands::lsp::Lsp),
    /// Convert a definition to another notation
    Convert(commands::convert::Convert),
    /// Check schedules
    Schedule(commands::schedule::ScheduleCommand),
    /// Write scenarios that test a workflow
    Scenario(commands::scenario::Scenario),
    /// Run scenario files on virtual time
    Test(commands::test::Test),
    /// Run scenario files on simulated nodes with injected faults
    Sim(commands::sim::Sim),
    /// Measure throughput and latency on this machine
    Bench(commands::bench::Bench),
    /// Print a completion script for a shell
    Completions {
        /// The shell that runs the script, such as bash or zsh
        shell: clap_complete::Shell,
    },
}

/// The answer to `mainspring -h`: what a person types first. `--help` lists everything.
const FIRST_STEPS: &str = "\
Durable workflows: nothing lost, nothing repeated, everything on record.

Write
  mainspring init script            write a template with its test (without a name: list them)
  mainspring explain                list what can be explained: step types, references, every error code
  mainspring validate FILE          check a definition: all mistakes at once, each with its correction
  mainspring scenario new FILE      write a test with every effect, branch and gate, which passes at once
  mainspring test FILE              run tests on virtual time
  mainspring dev FOLDER             save and test the files of a folder as they change, with the console

Run
  mainspring run FILE               run a workflow (--input '{\"city\": \"Rome\"}', --var NAME=VALUE)
  mainspring show last              show its steps and attempts (--brief: a summary)
  mainspring approvals              list what waits for a person; approve ID or deny ID decides
  mainspring resume --all           continue what was interrupted

Serve
  mainspring up                     start the server with its console
  mainspring doctor                 check this installation

`mainspring --help` lists all commands and flags; `mainspring COMMAND -h` has the flags of one.";

/// Parses and runs a command line. Errors are printed here, so the caller only exits.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> Exit {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    if arguments.len() == 2 && arguments[1] == "-h" {
        print_out!("{FIRST_STEPS}");
        return Exit::Fine;
    }
    let matches = described(&arguments).try_get_matches_from(&arguments);
    let line = match matches.and_then(|matches| read(&matches)) {
        Ok(line) => line,
        Err(error) => return refused_arguments(&without_global_usage(error, &arguments), &arguments),
    };
    let (command, context) = (line.command, Context::new(line.global));
    let default_log = if matches!(command, Command::Node(_) | Command::Up(_)) { "info" } else { "off" };
    let started = context.global.telemetry.begin(default_log);
    let result = started.and_then(|()| run(command, &context));
    context.global.telemetry.end(&context.terminal);
    match result {
        Ok(exit) => exit,
        Err(error) => {
            print_error(&error, &context);
            error.exit
        }
    }
}

/// The end of the help of a command.
const OTHER_FLAGS: &str = "\
All commands take --dir, --store, --server, --plain-http, --otlp, --log and --log-format: `mainspring --help` describes them.";

/// Returns the command line. The help of a command leaves out the global flags, which it would repeat otherwise.
fn described(arguments: &[OsString]) -> clap::Command {
    let mut command = CommandLine::command();
    if !arguments.iter().any(|argument| argument == "--help" || argument == "help") {
        return command;
    }
    // Only a built command has the global flags in its subcommands.
    command.build();
    command.mut_subcommands(without_global_flags)
}

/// Returns the same error with a usage that leaves out the global flags, of which clap shows those that were given.
fn without_global_usage(error: clap::Error, arguments: &[OsString]) -> clap::Error {
    let mut command = CommandLine::command();
    command.build();
    let again = command.mut_subcommands(without_global_flags).try_get_matches_from(arguments).err();
    let has_tip = |error: &clap::Error| error.render().to_string().contains("tip:");
    let is_same = |again: &clap::Error| again.kind() == error.kind() && has_tip(again) == has_tip(&error);
    if again.as_ref().is_some_and(is_same) { again.unwrap_or(error) } else { error }
}

fn without_global_flags(command: clap::Command) -> clap::Command {
    let own = command.get_after_long_help().or(command.get_after_help()).map(|text| format!("{}\n\n", text.ansi()));
    let end = own.unwrap_or_default() + OTHER_FLAGS;
    let is_left_out = |argument: &clap::Arg| argument.is_global_set() && argument.get_id() != "json";
    command
        .mut_args(|argument| if is_left_out(&argument) { argument.hide(true) } else { argument })
        .mut_subcommands(without_global_flags)
        .after_long_help(end)
}

fn read(matches: &ArgMatches) -> Result<CommandLine, clap::Error> {
    let mut line = CommandLine::from_arg_matches(matches)?;
    let is_flag = |id: &str| matches.value_source(id) == Some(ValueSource::CommandLine);
    line.global.store_by_flag = is_flag("store");
    line.global.place_by_flag = is_flag("dir") || line.global.store_by_flag;
    Ok(line)
}

impl Command {
    /// For a command that works on this machine only: the error message if `--server` is given.
    fn belongs_here(&self) -> Option<&'static str> {
        match self {
            Self::Up(_) => Some("`up` starts a server on this machine: leave out --server"),
            Self::Node(_) => Some("`node` works on executions on this machine; a server does that by itself"),
            Self::Resume(_) => {
                Some("`resume` works on this machine; a server continues by itself, and `tail` follows it")
            }
            Self::Token(_) => {
                Some("`token` needs the server's folder or store in hand; at a server it is POST /api/tokens")
            }
            Self::Config(_) => Some("`config` shows the settings of this machine's server, not those of another"),
            Self::Backup(_) => {
                Some("`backup` copies the store of this machine's folder; run it on the server's machine")
            }
            Self::Tools(_) => Some("`tools` uses the tool servers of this machine's configuration"),
            Self::Record(_) => Some("`record` calls the tool servers of this machine's configuration"),
            Self::Models(_) => Some("`models` uses the models of this machine's configuration"),
            Self::Dev(_) => Some("`dev` starts a server on this machine"),
            Self::Explain(_) => Some("`explain` describes this program"),
            Self::Init(_) => Some("`init` writes files of this machine"),
            Self::Examples(_) => Some("`examples` prints files of this program"),
            Self::Schema(_) => Some("`schema` describes the language of this program"),
            Self::Lsp(_) => Some("`lsp` serves an editor of this machine"),
            Self::Convert(_) => Some("`convert` works on files of this machine"),
            Self::Review(_) => {
                Some("`review` compares files of this machine; `proposals show` shows the review of a server")
            }
            Self::Shadow(_) => {
                Some("`shadow` reads executions of this machine; `proposals shadow` runs a proposal at a server")
            }
            Self::Schedule(_) => Some("`schedule` computes ticks on this machine"),
            Self::Scenario(_) => Some("`scenario` reads files and stores of this machine"),
            Self::Test(_) => Some("`test` runs scenarios on this machine, on virtual time"),
            Self::Upgrade(_) => {
                Some("`upgrade` upgrades a store of this machine, or the one of --store; leave out --server")
            }
            Self::Sim(_) => Some("`sim` simulates nodes on this machine, on virtual time"),
            Self::Audit(_) => {
                Some("`audit` proves a file of this machine; a server proves its log at GET /api/audit/verify")
            }
            Self::Evidence(_) => {
                Some("`evidence` needs the store and the key of the installation; run it on the server's machine")
            }
            Self::Bench(_) => Some("`bench` measures this machine"),
            Self::Completions { .. } => Some("`completions` is about this program, not about a server"),
            _ => None,
        }
    }
}

/// Rejects `--server` for a command that works on this machine. A server named by the environment is ignored
/// instead, since it is meant for other commands. Only `resume` rejects that too, because it has no other possible
/// meaning there.
fn check_location(command: &Command, global: &Global) -> Result<(), CliError> {
    let Some(why) = command.belongs_here() else { return Ok(()) };
    let is_meant = global.server.is_some() || (matches!(command, Command::Resume(_)) && global.server()?.is_some());
    if is_meant { Err(CliError::bad_input("not_at_a_server", why)) } else { Ok(()) }
}

/// Rejects a password in `--store`: every user of this machine can read the command lines of its processes.
fn check_password(global: &Global) -> Result<(), CliError> {
    if !global.store_by_flag || !global.store.as_deref().is_some_and(PostgresStore::has_password) {
        return Ok(());
    }
    let message = "--store has a password in it, and all users of this machine can read command lines: put the address into the \
                   environment (MAINSPRING_STORE=postgres://USER:PASSWORD@HOST/DATABASE), and leave --store out";
    Err(CliError::bad_input("password_in_flag", message))
}

fn run(command: Command, context: &Context) -> Result<Exit, CliError> {
    check_location(&command, &context.global)?;
    check_password(&context.global)?;
    match command {
        Command::Up(up) => commands::up::up(&up, context),
        Command::Login(login) => commands::login::login(&login, context),
        Command::Logout(logout) => commands::login::logout(&logout, context),
        Command::Save(save) => commands::save::save(&save, context),
        Command::Workflows(workflows) => commands::workflows::workflows(&workflows, context),
        Command::Propose(propose) => commands::propose::propose(&propose, context),
        Command::Diff(diff) => commands::repository::diff(&diff, context),
        Command::Apply(apply) => commands::repository::apply(&apply, context),
        Command::Proposals(proposals) => commands::proposals::proposals(&proposals, context),
        Command::Rollback(rollback) => commands::rollback::rollback(&rollback, context),
        Command::Rollout(rollout) => commands::rollout::rollout(&rollout, context),
        Command::Sessions(sessions) => commands::sessions::sessions(&sessions, context),
        Command::Budgets(budgets) => commands::budgets::budgets(&budgets, context),
        Command::Policy(policy) => commands::policy::policy(&policy, context),
        Command::Secret(secret) => commands::secret::secret(&secret, context),
        Command::Key(key) => commands::key::key(&key, context),
        Command::Triggers(triggers) => commands::triggers::triggers(&triggers, context),
        Command::Subscriptions(given) => commands::subscriptions::subscriptions(&given, context),
        Command::Token(token) => commands::token::token(&token, context),
        Command::Config(config) => commands::config::config(&config, context),
        Command::Doctor(doctor) => commands::doctor::doctor(&doctor, context),
        Command::Backup(backup) => commands::backup::backup(&backup, context),
        Command::Run(run) => commands::run::run(&run, context),
        Command::Resume(resume) => commands::resume::resume(&resume, context),
        Command::Node(node) => commands::node::node(&node, context),
        Command::List(list) => commands::list::list(&list, context),
        Command::Show(show) => commands::show::show(&show, context),
        Command::Usage(usage) => commands::usage::usage(&usage, context),
        Command::Tail(tail) => commands::tail::tail(&tail, context),
        Command::Approvals(approvals) => commands::approvals::approvals(&approvals, context),
        Command::Approve(approve) => commands::decide::approve(&approve, context),
        Command::Deny(deny) => commands::decide::deny(&deny, context),
        Command::Cancel(cancel) => commands::cancel::cancel(&cancel, context),
        Command::Signal(signal) => commands::signal::signal(&signal, context),
        Command::Message(message) => commands::message::message(&message, context),
        Command::Record(record) => commands::record::record(&record, context),
        Command::Tools(tools) => commands::tools::tools(&tools, context),
        Command::Models(models) => commands::models::models(&models, context),
        Command::Dev(dev) => commands::dev::dev(&dev, context),
        Command::Upgrade(upgrade) => commands::upgrade::upgrade(&upgrade, context),
        Command::Quarantine(quarantine) => commands::quarantine::quarantine(&quarantine, context),
        Command::Erase(erase) => commands::erase::erase(&erase, context),
        Command::Evidence(evidence) => commands::evidence::evidence(&evidence, context),
        Command::Audit(audit) => commands::audit::audit(&audit, context),
        Command::Verify(verify) => commands::verify::verify(&verify, context),
        Command::Validate(validate) => commands::validate::validate(&validate, context),
        Command::Plan(plan) => commands::plan::plan(&plan, context),
        Command::Review(review) => commands::review::review(&review, context),
        Command::Explain(explain) => commands::explain::explain(&explain, context),
        Command::Init(init) => commands::init::init(&init, context),
        Command::Examples(examples) => commands::examples::examples(&examples, context),
        Command::Schema(schema) => commands::schema::schema(&schema, context),
        Command::Shadow(shadow) => commands::shadow::shadow(&shadow, context),
        Command::Lsp(lsp) => commands::lsp::lsp(&lsp, context),
        Command::Convert(convert) => commands::convert::convert(&convert, context),
        Command::Schedule(schedule) => commands::schedule::schedule(&schedule, context),
        Command::Scenario(scenario) => commands::scenario::scenario(&scenario, context),
        Command::Test(test) => commands::test::test(&test, context),
        Command::Sim(sim) => commands::sim::sim(&sim, context),
        Command::Bench(bench) => commands::bench::bench(&bench, context),
        Command::Completions { shell } => Ok(completions(shell)),
    }
}

fn completions(shell: clap_complete::Shell) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut CommandLine::command(), "mainspring", &mut script);
    print_out!("{}", String::from_utf8_lossy(&script).trim_end());
    Exit::Fine
}

fn refused_arguments(rejected: &clap::Error, arguments: &[OsString]) -> Exit {
    if matches!(rejected.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        let _ = rejected.print();
        return Exit::Fine;
    }
    let error = CliError::arguments(rejected);
    if asks_for_json(arguments) {
        answer(&error);
    }
    // The message of clap has colors, and contains the arguments unescaped, such as a file name that a shell has
    // expanded.
    if arguments.iter().any(|argument| argument.to_string_lossy().contains(is_obeyed)) {
        Terminal::of_process().error(&error.failure.message);
    } else {
        let _ = rejected.print();
    }
    error.exit
}

/// True if the command line that clap rejected contains `--json`. Arguments after `--` are not flags.
fn asks_for_json(arguments: &[OsString]) -> bool {
    arguments.iter().take_while(|argument| *argument != "--").any(|argument| argument == "--json")
}

fn print_error(error: &CliError, context: &Context) {
    if context.global.json {
        answer(error);
    }
    context.terminal.error(&error.failure.message);
}

fn answer(error: &CliError) {
    print_out!("{}", mainspring_kernel::json::compact(&mainspring_engine::envelope::of_refusal(None, &error.failure)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flags_fit_together() {
        CommandLine::command().debug_assert();
    }
}
