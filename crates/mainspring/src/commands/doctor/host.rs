//! Checks the machine: bash, containers, the sandbox of untrusted code, the limit of open files.

use std::{process::Stdio, time::Duration};

use mainspring_effects::shell::{
    bash,
    contain::{Landlock, Scripts},
};
use mainspring_engine::evaluator::WORKER_ARGUMENT;
use mainspring_kernel::{json, value::Value};
use mainspring_sandbox::{WorkerCommand, Workers};
use rustix::process::{Resource, getrlimit};
use tokio::{process::Command, time::timeout};

use super::{
    Installation,
    check::{Check, Report},
};
use crate::{context::block_on, error::CliError, scripts::words, server_settings::Settings, tool_servers};

/// Timeout of `bash --version`.
const BASH: Duration = Duration::from_secs(5);

/// A running step has three open files, and a watcher of a server one.
const FILES_MIN: u64 = 1024;

/// The names of tool servers in a message.
const TOOL_PROCESSES_SHOWN: usize = 8;

/// The confinements that a sandbox worker reports, and their names for people.
const HOLDS: [(&str, &str); 5] = [
    ("resourceLimits", "limits of memory and files"),
    ("noNewPrivileges", "no rights beyond its own"),
    ("systemCalls", "a short list of system calls (seccomp)"),
    ("endsWithParent", "an end with its parent"),
    ("noCapabilities", "no capabilities"),
];

/// Checks the machine.
pub(super) fn check(installation: &Installation, report: &mut Report) {
    report.add(shell());
    if let Some(settings) = &installation.settings {
        let scripts = settings.scripts.in_force(&installation.global, false);
        report.add(containment(settings, &scripts));
        report.extend(
            scripts.ok().and_then(|scripts| tool_processes(&tool_servers::processes(&settings.objects), &scripts)),
        );
    }
    report.add(confinement());
    report.add(files(getrlimit(Resource::Nofile).current));
}

fn shell() -> Check {
    let Some(path) = bash() else {
        let help = "install bash, or add it to the PATH of the user that runs this";
        return Check::broken("bash", "there is no bash in the PATH, and scripts need it", help);
    };
    let asked = block_on(async {
        let mut command = Command::new(&path);
        command.arg("--version").env_clear().kill_on_drop(true);
        let output = command.stdin(Stdio::null()).stderr(Stdio::null()).output();
        let output = timeout(BASH, output).await.map_err(|_| CliError::internal("bash", "it does not answer"))?;
        output.map_err(|error| CliError::internal("bash", error.to_string()))
    });
    let shown = path.display();
    match asked {
        Ok(output) if output.status.success() => {
            let said = String::from_utf8_lossy(&output.stdout);
            let version = said.lines().next().unwrap_or_default().to_string();
            Check::ok("bash", format!("{shown} is {version}")).with("version", version)
        }
        Ok(output) => Check::broken("bash", format!("{shown} does not run: {}", output.status), "install it again"),
        Err(error) => {
            Check::broken("bash", format!("{shown} does not run: {}", error.failure.message), "install it again")
        }
    }
}

/// Checks how scripts of a server would run on this machine.
fn containment(settings: &Settings, scripts: &Result<Scripts, CliError>) -> Check {
    match scripts {
        Ok(scripts) => {
            let (mode, why) = words(scripts);
            let message = format!("scripts of a server are {mode}: {why}");
            let check = match (scripts, settings.scripts.is_off()) {
                (Scripts::Contained(container), _) if container.protections().landlock != Landlock::Full => {
                    Check::warning(
                        "scripts",
                        message,
                        "use Linux 6.12 or later: its Landlock is the second layer of containment for scripts",
                    )
                }
                (Scripts::Contained(container), _) if !container.counts_memory() => Check::warning(
                    "scripts",
                    message,
                    "give the server control groups if untrusted users write scripts: `Delegate=yes` in its unit",
                ),
                (Scripts::Contained(_), _) | (Scripts::Off(_), true) => Check::ok("scripts", message),
                (Scripts::Uncontained, _) => Check::warning("scripts", message, "set `--scripts contained`"),
                (Scripts::Off(_), false) => Check::warning("scripts", message, "correct what the message names"),
            };
            check.with("mode", mode)
        }
        Err(error) => Check::warning("scripts", error.failure.message.clone(), "name a folder with --dir"),
    }
}

/// Checks how a server would run the tool servers that are processes. They have the mode of scripts.
fn tool_processes(names: &[String], scripts: &Scripts) -> Option<Check> {
    let shown = match names {
        [] => return None,
        [first, rest @ ..] if rest.len() < TOOL_PROCESSES_SHOWN => {
            rest.iter().fold(format!("`{first}`"), |shown, name| format!("{shown}, `{name}`"))
        }
        [first, rest @ ..] => format!("`{first}` and {} more", rest.len()),
    };
    let (mode, why) = words(scripts);
    let check = match scripts {
        Scripts::Contained(_) => {
            let message = format!("a server runs {shown} in containers, in the workspace of the execution: {why}");
            Check::ok("tool servers", message)
        }
        Scripts::Uncontained => {
            let message = format!("a server runs {shown} as this user: its tools can read the installation's key");
            Check::warning("tool servers", message, "set `--scripts contained`")
        }
        Scripts::Off(_) => {
            let message = format!("a server does not start {shown}, and calls of their tools fail: {why}");
            Check::warning("tool servers", message, "use servers with `url`, or correct what the message names")
        }
    };
    Some(check.with("mode", mode))
}

/// Checks the confinement that a sandbox worker of this executable reports.
fn confinement() -> Check {
    let command = WorkerCommand { program: "/proc/self/exe".into(), arguments: vec![WORKER_ARGUMENT.into()] };
    match Workers::with_count(command, 1).hello().result {
        Ok(said) => held(&json::value(said.as_bytes()).unwrap_or_default()),
        Err(fault) => {
            let message = format!("no worker for `code` steps and schemas could be started: {}", fault.message);
            Check::broken("sandbox", message, "check that /proc is there, and how many processes this user may have")
        }
    }
}

fn held(said: &Value) -> Check {
    let missing = HOLDS.iter().filter(|(key, _)| said.get(key).and_then(Value::as_bool) != Some(true));
    let missing: Vec<&str> = missing.map(|(_, words)| *words).collect();
    let check = if missing.is_empty() {
        Check::ok("sandbox", "functions run in processes that are held by limits and by seccomp")
    } else {
        let message =
            format!("functions run, but the system does not support further confinement: {}", missing.join(", "));
        Check::warning("sandbox", message, "allow prctl, seccomp and setrlimit to the container, or run on Linux")
    };
    check.with("held", said.clone())
}

fn files(current: Option<u64>) -> Check {
    match current {
        None => Check::ok("open files", "as many as there are"),
        Some(current) if current < FILES_MIN => {
            let message = format!("{current} at a time, where {FILES_MIN} are little for a server");
            Check::warning("open files", message, "`ulimit -n 65536`, or LimitNOFILE of the service")
                .with("limit", current)
        }
        Some(current) => Check::ok("open files", format!("{current} at a time")).with("limit", current),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::check::State, *};

    #[test]
    fn tool_servers_have_the_mode_of_scripts() {
        let names = ["files".to_owned(), "git".to_owned()];
        let off = Scripts::Off("bubblewrap is not installed".into());
        assert!(tool_processes(&[], &off).is_none());
        let off = tool_processes(&names, &off).unwrap();
        assert!(off.state == State::Warning && off.message.contains("`files`, `git`"), "{off:?}");
        assert!(off.message.contains("bubblewrap is not installed"), "{off:?}");
        let open = tool_processes(&names, &Scripts::Uncontained).unwrap();
        assert!(open.state == State::Warning && open.message.contains("can read the installation's key"), "{open:?}");
        let many: Vec<String> = (0..300).map(|number| format!("s{number}")).collect();
        let many = tool_processes(&many, &Scripts::Uncontained).unwrap();
        assert!(many.message.contains("`s0` and 299 more"), "{many:?}");
    }

    #[test]
    fn properties_of_the_host_give_states() {
        let all = |keys: &[(&str, &str)]| Value::map(keys.iter().map(|(key, _)| (*key, Value::from(true))));
        let table = [
            (held(&all(&HOLDS)), State::Ok, "seccomp"),
            (
                held(&all(&HOLDS[..2])),
                State::Warning,
                "system calls (seccomp), an end with its parent, no capabilities",
            ),
            (held(&Value::Null), State::Warning, "limits of memory"),
            (files(None), State::Ok, "as many"),
            (files(Some(FILES_MIN)), State::Ok, "1024"),
            (files(Some(FILES_MIN - 1)), State::Warning, "1023"),
        ];
        for (check, state, said) in table {
            assert!(check.state == state && check.message.contains(said), "{check:?}");
        }
    }
}
