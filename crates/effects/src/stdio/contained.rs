//! Such programs in containers, as scripts are.
//!
//! Workflows choose the files of a workspace, and many programs run code that they find in their working directory. A
//! server therefore begins in an empty folder of its own, unless the settings name a folder of the workspace. It gets no
//! secrets there. To list its tools without an execution, it gets an empty folder in place of the workspace.

use std::{
    fs::{self, DirBuilder},
    io,
    os::unix::fs::DirBuilderExt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{ErrorOutput, ProcessSpec, RunningProcess, STOP_TIMEOUT, StartProcess, Started};
use crate::{
    BoxFuture,
    shell::{
        contain::Container,
        program::{Program, Programs, RunningProgram, StartedProgram},
    },
};

/// The variable that names the workspace for a contained server.
const WORKSPACE_VARIABLE: &str = "MAINSPRING_WORKSPACE";

/// Starts servers in containers, which show them the workspace of the execution and nothing else of the host that scripts
/// do not see.
#[derive(Debug)]
pub struct InContainers(Programs);

impl InContainers {
    /// Makes a starter.
    pub fn new(container: Arc<Container>) -> Self {
        Self(Programs::new(container))
    }

    async fn run(&self, spec: &ProcessSpec) -> Result<Started, String> {
        let empty = match &spec.workspace {
            Some(_) => None,
            None if spec.names_directory => {
                return Err("its `cwd` is in the workspace of an execution, and there is none here".into());
            }
            None => Some(EmptyFolder::create().map_err(|error| format!("no folder for it can be created: {error}"))?),
        };
        let Some(workspace) = spec.workspace.as_ref().or(empty.as_ref().map(|empty| &empty.0)) else {
            return Err("it has no folder".into());
        };
        if spec.names_directory && spec.has_secrets {
            return Err(
                "its `cwd` is in the workspace, whose files workflows choose, and its `env` has secrets: remove one \
                        of them in the settings file"
                    .into(),
            );
        }
        let mut variables: Vec<(String, String)> = spec.env.clone().into_iter().collect();
        variables.push((WORKSPACE_VARIABLE.into(), workspace.display().to_string()));
        let program = Program {
            program: spec.command.clone(),
            arguments: spec.args.clone(),
            variables,
            workspace: workspace.clone(),
            folder: spec.directory.clone().filter(|_| spec.names_directory),
            organization: spec.organization.clone(),
        };
        let StartedProgram { input, output, errors, running } = self.0.start(program).await?;
        let process = Box::new(InContainer { running, errors: ErrorOutput::keep(errors), _empty: empty });
        Ok(Started { output: Box::new(output), input: Box::new(input), process })
    }
}

impl StartProcess for InContainers {
    fn start<'a>(&'a self, spec: &'a ProcessSpec) -> BoxFuture<'a, Result<Started, String>> {
        Box::pin(self.run(spec))
    }
}

/// A server in its container.
struct InContainer {
    running: RunningProgram,
    errors: ErrorOutput,
    /// The folder in place of a workspace, until the end of the container.
    _empty: Option<EmptyFolder>,
}

/// An empty folder in place of a workspace, for a server whose tools are listed without an execution.
struct EmptyFolder(PathBuf);

impl EmptyFolder {
    fn create() -> io::Result<Self> {
        static CREATED: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = CREATED.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("mainspring-tools-{}-{number}", std::process::id()));
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                created => return created.map(|()| Self(path)),
            }
        }
    }
}

impl Drop for EmptyFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

impl RunningProcess for InContainer {
    fn error_output(&self) -> BoxFuture<'_, String> {
        Box::pin(async {
            let said = self.errors.text().await;
            match self.running.excess() {
                Some(why) => format!("it was ended, because {why}. {said}").trim().to_owned(),
                None => said,
            }
        })
    }

    fn stop(self: Box<Self>) -> BoxFuture<'static, ()> {
        Box::pin(async move {
            let Self { running, _empty: empty, .. } = *self;
            running.end(STOP_TIMEOUT).await;
            drop(empty);
        })
    }
}
