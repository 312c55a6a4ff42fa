//! Processes of stdio servers in containers, as scripts are.

use std::sync::Arc;

use mainspring_effects::{
    BoxFuture,
    shell::{
        contain::Container,
        program::{Program, Programs, RunningProgram, StartedProgram},
    },
};

use crate::{
    limits::STOP_TIMEOUT,
    process::{ErrorOutput, ProcessSpec, RunningProcess, StartProcess, Started},
};

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
        let (Some(workspace), Some(folder)) = (&spec.workspace, &spec.directory) else {
            return Err(
                "it runs in the workspace of an execution, and there is none here: use a server with `url`".into()
            );
        };
        let program = Program {
            program: spec.command.clone(),
            arguments: spec.args.clone(),
            variables: spec.env.clone().into_iter().collect(),
            workspace: workspace.clone(),
            folder: folder.clone(),
            organization: spec.organization.clone(),
        };
        let StartedProgram { input, output, errors, running } = self.0.start(program).await?;
        let process = Box::new(InContainer { running, errors: ErrorOutput::keep(errors) });
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
        Box::pin(async move { self.running.end(STOP_TIMEOUT).await })
    }
}
