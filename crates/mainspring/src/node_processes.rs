//! Processes of tool servers and agents at a node. They have the rights that the node gives to scripts.

use std::sync::Arc;

use mainspring_effects::{
    BoxFuture,
    sandbox::Profiles,
    shell::contain::Scripts,
    stdio::{InContainers, ProcessSpec, StartProcess, Started, Uncontained},
};

/// Starts processes as `scripts` says. Organizations with a sandbox have none, since their scripts do not run at the node.
/// `instead` tells a user an alternative, and begins with `: ` or is empty.
pub(crate) fn starter(scripts: &Scripts, sandboxes: &Profiles, instead: &'static str) -> Arc<dyn StartProcess> {
    let start: Arc<dyn StartProcess> = match scripts {
        Scripts::Uncontained => Arc::new(Uncontained),
        Scripts::Contained(container) => Arc::new(InContainers::new(container.clone())),
        Scripts::Off(why) => Arc::new(Refused(format!("processes are off, because {why}{instead}"))),
    };
    Arc::new(OutsideOfSandboxes { sandboxes: sandboxes.clone(), start, instead })
}

/// Starts no process, with the reason.
struct Refused(String);

impl StartProcess for Refused {
    fn start<'a>(&'a self, _: &'a ProcessSpec) -> BoxFuture<'a, Result<Started, String>> {
        Box::pin(async { Err(self.0.clone()) })
    }
}

/// Starts processes of organizations without a sandbox.
struct OutsideOfSandboxes {
    sandboxes: Profiles,
    start: Arc<dyn StartProcess>,
    instead: &'static str,
}

impl StartProcess for OutsideOfSandboxes {
    fn start<'a>(&'a self, spec: &'a ProcessSpec) -> BoxFuture<'a, Result<Started, String>> {
        match self.sandboxes.of(spec.organization.as_deref()) {
            None => self.start.start(spec),
            Some(profile) => Box::pin(async move {
                let (name, instead) = (&profile.name, self.instead);
                Err(format!("the sandbox profile `{name}` of the organization runs scripts only{instead}"))
            }),
        }
    }
}
