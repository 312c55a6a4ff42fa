//! Codes of failures of external agents.

use super::{ErrorCode, executions::execution};
use crate::failure::Class::{Failed, Invalid, Policy, RateLimited, Unavailable};

/// Codes of failures of `agent` steps with `runner`.
pub(super) static CODES: [ErrorCode; 10] = [
    execution(
        "runner_settings_invalid",
        Invalid,
        "The configuration of the agents has mistakes.",
        "Correct `agents` in the settings file, as the message says.",
    ),
    execution(
        "runner_unknown",
        Invalid,
        "No agent of this name is configured.",
        "Correct `runner`, or add the agent to `agents` in the settings file.",
    ),
    execution(
        "runner_unavailable",
        Unavailable,
        "The agent cannot be started, ended before it opened a session, or does not answer.",
        "Run its command by hand; the message has its last lines.",
    ),
    execution(
        "runner_protocol",
        Invalid,
        "The agent breaks the Agent Client Protocol or a limit, or speaks another version.",
        "Report it to the author of the agent, or use another version of it.",
    ),
    execution(
        "runner_unauthenticated",
        Invalid,
        "The agent requires an account or an API key.",
        "Give it a key in `env` of its configuration, as a secret.",
    ),
    execution(
        "runner_failed",
        Failed,
        "The agent reported an error, or ended its turn without a final answer.",
        "Read the agent's message or reason.",
    ),
    execution(
        "runner_answer_too_large",
        Policy,
        "The answer of the agent is too large.",
        "Let the agent write a file in the workspace, and answer with its name.",
    ),
    execution(
        "runner_requests_exceeded",
        Invalid,
        "The agent asked people for more permissions than one attempt may ask for.",
        "Allow the harmless kinds in `policy`, as `AGENT.KIND`, or give the agent a smaller task.",
    ),
    execution(
        "runners_exceeded",
        RateLimited,
        "Too many agents of the organization run at a time.",
        "Retry later, or lower `maxParallel`.",
    ),
    execution(
        "runner_no_workspace",
        Invalid,
        "The agent needs a workspace, and the execution has none.",
        "Start the server with `--scripts contained`, or name a workspace in the request.",
    ),
];
