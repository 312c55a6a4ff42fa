//! `mainspring record`: writes a workflow by making its calls.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

/// Record calls of tools as the steps of a workflow
#[derive(Debug, Args)]
pub(crate) struct Record {
    #[command(subcommand)]
    action: Action,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
enum Action {
    /// Begin a recording in a new file
    Start {
        /// The file of the recording
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The input, to which calls refer as `@input`: JSON, or @FILE, or - for standard input
        #[arg(long, value_name = "JSON")]
        input: Option<String>,
    },
    /// Call a tool, record the call as a step, and print its result
    Call {
        /// The file of the recording
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The tool: SERVER.TOOL, or its name if only one server has it
        tool: String,
        /// The arguments: a JSON object, or @FILE, or -. Texts may refer: `@input.id`, `@get_user_1.id`
        #[arg(long, value_name = "JSON")]
        args: Option<String>,
        /// Allow the call if the policy asks about it
        #[arg(long)]
        yes: bool,
    },
    /// Set the result of a step without a call
    Set {
        /// The file of the recording
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The name of the step
        step: String,
        /// The result: JSON, or @FILE, or -
        #[arg(long, value_name = "JSON")]
        output: String,
    },
    /// Answer requests on standard input, one JSON object in each line: {"call": TOOL, "args": {…}} or {"set": STEP, "output": …}
    Session {
        /// The file of the recording
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// Allow all calls about which the policy asks
        #[arg(long)]
        yes: bool,
    },
    /// Print the recorded workflow, or write it to a file
    Save {
        /// The file of the recording
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The file to write; by its name as YAML or JSON
        #[arg(short, long, value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
        /// The name of the workflow [default: that of the recording's file]
        #[arg(long)]
        name: Option<String>,
    },
}

#[cfg(not(feature = "tools"))]
pub(crate) fn record(_: &Record, _: &crate::context::Context) -> Result<crate::error::Exit, crate::error::CliError> {
    Err(crate::error::CliError::bad_input(
        "no_tools",
        "this build has no tool servers: build it with the feature `tools`",
    ))
}

#[cfg(feature = "tools")]
pub(crate) use enabled::record;

#[cfg(feature = "tools")]
mod enabled {
    use std::{
        fs,
        io::{BufRead, Read, Write},
        path::Path,
        sync::Arc,
    };

    use mainspring_kernel::{
        definition::convert::text,
        effect::Outcome,
        effect_policy::{Call, EffectPolicy},
        failure::Failure,
        hash::Hash,
        json::{self, compact, pretty},
        limits::DEFINITION_BYTES_MAX,
        plan::{Verdict, VerdictRules},
        value::{Map, Value},
    };
    use mainspring_mcp::pool::Pool;
    use tokio::sync::mpsc;

    use super::{Action, Record};
    use crate::{
        backend::start::input,
        context::{Context, block_on},
        error::{CliError, Exit},
        output::{
            terminal::{print_err, print_out},
            text::{lines_shown, shown},
        },
        recording_file::{RecordingFile, refused},
        server_settings::object_settings,
        tool_policy,
        tool_servers::{call_once, pool},
    };

    /// Runs the command.
    pub(crate) fn record(record: &Record, context: &Context) -> Result<Exit, CliError> {
        match &record.action {
            Action::Start { file, input: given } => RecordingFile::create(file, input(given.as_deref(), None)?)?,
            Action::Set { file, step, output } => open(file)?.set(step, input(Some(output), None)?)?,
            Action::Save { file, output, name } => save(file, output.as_deref(), name.as_deref())?,
            Action::Call { file, tool, args, yes } => {
                let arguments = input(args.as_deref(), Some(&Value::map([("type", "object".into())])))?;
                let mut recorder = Recorder::open(file, *yes)?;
                let result = block_on(async {
                    context.signals.install()?;
                    let called = recorder.call(tool, &arguments, context).await;
                    recorder.pool.close_all().await;
                    called
                })?;
                match context.global.json {
                    true => print_out!("{}", compact(&answer(&result))),
                    false => print_out!("{}", lines_shown(&pretty(&result.1))),
                }
            }
            Action::Session { file, yes } => {
                let mut recorder = Recorder::open(file, *yes)?;
                block_on(async {
                    let served = session(&mut recorder, context).await;
                    recorder.pool.close_all().await;
                    served
                })?;
            }
        }
        Ok(Exit::Fine)
    }

    /// Opens a recording, and returns whether a call in it has no result.
    fn open(path: &Path) -> Result<RecordingFile, CliError> {
        let file = RecordingFile::open(path)?;
        if let Some(tool) = file.unknown_call() {
            print_err!(
                "The last call of `{}` has no result: the process ended before it. It is not recorded and is not repeated.",
                shown(tool)
            );
        }
        Ok(file)
    }

    /// A recording with the tools that it calls.
    struct Recorder {
        file: RecordingFile,
        pool: Arc<Pool>,
        policy: EffectPolicy,
        approves_all: bool,
    }

    impl Recorder {
        fn open(path: &Path, approves_all: bool) -> Result<Self, CliError> {
            let policy = tool_policy::of_settings(&object_settings()?)?;
            Ok(Self { file: open(path)?, pool: pool()?, policy, approves_all })
        }

        /// Calls a tool and records the call. Returns the name of the step and the result.
        async fn call(
            &mut self,
            tool: &str,
            arguments: &Value,
            context: &Context,
        ) -> Result<(String, Value), CliError> {
            let call = self.file.recording().prepare(tool, arguments).map_err(refused)?;
            self.check(tool)?;
            let mut random = [0; 32];
            getrandom::fill(&mut random).map_err(|error| CliError::internal("no_randomness", error.to_string()))?;
            let intent = Hash(random);
            self.file.begin(&call, intent)?;
            match call_once(&self.pool, tool, call.arguments.clone(), intent, context).await? {
                Outcome::Done(result) => {
                    let step = call.step.clone();
                    self.file.end(call, result.clone())?;
                    Ok((step, result))
                }
                Outcome::Failed(failure) => {
                    self.file.fail(&failure.code)?;
                    Err(CliError { exit: Exit::Failed, failure })
                }
                _ => Err(CliError::internal("cancelled", "the call was canceled; the tool may have had an effect")),
            }
        }

        /// Checks the policy of this machine.
        fn check(&self, tool: &str) -> Result<(), CliError> {
            let judged = self.policy.judge(Call::Tool(tool), None, &VerdictRules::default());
            let class = judged.class.name();
            let denied = |why: String| {
                let failure = Failure::new(mainspring_kernel::failure::Class::Policy, "policy_denied", why);
                Err(CliError { exit: Exit::Policy, failure })
            };
            match judged.verdict {
                Verdict::Deny => denied(format!("the policy denies `{tool}`, which is of the class {class}")),
                Verdict::Ask if !self.approves_all => denied(format!(
                    "the policy asks about `{tool}`, which is of the class {class} ({}): repeat with --yes to allow it",
                    judged.source.words()
                )),
                Verdict::Ask | Verdict::Allow => Ok(()),
            }
        }

        /// Answers one request of a session.
        async fn answer(&mut self, line: &[u8], context: &Context) -> Result<Value, CliError> {
            let bad = |why: &str| CliError::bad_input("bad_input", format!("this request: {why}"));
            let request = json::data(line).map_err(|error| bad(&error.to_string()))?;
            let known = |keys: [&str; 2]| {
                request.as_map().is_some_and(|map| map.keys().all(|key| keys.contains(&key.as_str())))
            };
            let text = |key: &str| request.get(key).and_then(Value::as_text);
            match (text("call"), text("set")) {
                (Some(tool), None) if known(["call", "args"]) => {
                    let arguments = request.get("args").cloned().unwrap_or_else(|| Value::Map(Map::new()));
                    Ok(answer(&self.call(tool, &arguments, context).await?))
                }
                (None, Some(step)) if known(["set", "output"]) => {
                    self.file.set(step, request.get("output").cloned().unwrap_or_default())?;
                    Ok(Value::map([("step", step.into())]))
                }
                _ => Err(bad("write {\"call\": TOOL, \"args\": {…}} or {\"set\": STEP, \"output\": …}")),
            }
        }
    }

    fn answer((step, result): &(String, Value)) -> Value {
        Value::map([("step", step.as_str().into()), ("result", result.clone())])
    }

    /// Answers each line of standard input with one line. An error is an answer and does not end the session.
    async fn session(recorder: &mut Recorder, context: &Context) -> Result<(), CliError> {
        context.signals.install()?;
        let mut lines = lines();
        loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                () = context.signals.any() => return Ok(()),
            };
            let Some(line) = line else { return Ok(()) };
            let line = line.map_err(|why| CliError::bad_input("unreadable", format!("standard input: {why}")))?;
            if line.trim_ascii().is_empty() {
                continue;
            }
            let answered = recorder.answer(&line, context).await;
            let answer = answered.unwrap_or_else(|error| Value::map([("error", error.failure.to_value())]));
            print_out!("{}", compact(&answer));
        }
    }

    /// Reads standard input in a thread, which ends with the process. The next line is read when one is taken.
    fn lines() -> mpsc::Receiver<Result<Vec<u8>, String>> {
        let (sender, lines) = mpsc::channel(1);
        std::thread::spawn(move || {
            let mut input = std::io::stdin().lock();
            loop {
                let mut line = Vec::new();
                let read = (&mut input).take(DEFINITION_BYTES_MAX as u64).read_until(b'\n', &mut line);
                let line = match read {
                    Ok(0) => return,
                    Ok(_) if line.len() >= DEFINITION_BYTES_MAX => {
                        Err(format!("a line has {DEFINITION_BYTES_MAX} bytes or more"))
                    }
                    Ok(_) => Ok(line),
                    Err(error) => Err(error.to_string()),
                };
                let is_last = line.is_err();
                if sender.blocking_send(line).is_err() || is_last {
                    return;
                }
            }
        });
        lines
    }

    fn save(path: &Path, output: Option<&Path>, name: Option<&str>) -> Result<(), CliError> {
        let file = open(path)?;
        let own = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
        let definition = file.recording().definition(name.unwrap_or(&own));
        let is_json = output.and_then(Path::extension).is_some_and(|extension| extension == "json");
        let written = if is_json { text::json(&definition) } else { text::yaml(&definition) };
        match output {
            None => print_out!("{}", written.trim_end()),
            Some(output) => {
                let created = fs::File::create_new(output);
                let failed =
                    |why: std::io::Error| CliError::bad_input("unwritable", format!("{}: {why}", output.display()));
                created.and_then(|mut file| file.write_all(written.as_bytes())).map_err(failed)?;
            }
        }
        Ok(())
    }
}
