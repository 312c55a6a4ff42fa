//! Codes of failures of calls of tools.

use super::{ErrorCode, executions::execution};
use crate::failure::Class::{Failed, Invalid, Policy, RateLimited, Timeout, Transient, Unavailable};

/// Codes of failures of steps that call tools of tool servers.
pub(super) static CODES: [ErrorCode; 26] = [
    execution(
        "check_timeout",
        Timeout,
        "A tool server or a model did not answer a check in time.",
        "Check that it runs and that the server reaches it, and repeat the check.",
    ),
    execution(
        "tool_settings_invalid",
        Invalid,
        "The configuration of the tool servers has mistakes.",
        "Correct `mcpServers` in the settings file, as the message says.",
    ),
    execution(
        "tool_unknown",
        Invalid,
        "No configured tool server has the tool.",
        "Correct the name; `mainspring tools` lists the tools.",
    ),
    execution("tool_ambiguous", Invalid, "Several tool servers have the tool.", "Write `SERVER.TOOL`."),
    execution(
        "tool_arguments_invalid",
        Invalid,
        "The arguments of the tool are not an object.",
        "Write `arguments: {name: value}`.",
    ),
    execution(
        "tool_call_invalid",
        Invalid,
        "The tool server rejected the call as invalid, such as for an unknown tool.",
        "Compare the arguments with the schema that `mainspring tools --json` shows.",
    ),
    execution("tool_call_rejected", Failed, "The tool server rejected the call.", "Read the server's message."),
    execution(
        "tool_error",
        Failed,
        "The tool ran and reported an error.",
        "Read the tool's text; the details have its result.",
    ),
    execution(
        "tool_answer_invalid",
        Invalid,
        "The answer of the tool server breaks the protocol or a limit.",
        "Report it to the author of the server.",
    ),
    execution(
        "tool_input_required",
        Policy,
        "The tool server asks for input that cannot be given: the answer of a model, folders, or a form outside of an execution.",
        "Give the input as arguments.",
    ),
    execution(
        "tool_form_invalid",
        Invalid,
        "A tool server asks for a form that cannot be shown: it is too large, or not a flat schema of primitive values.",
        "Report it to the author of the server, or give the input as arguments.",
    ),
    execution(
        "tool_forms_exceeded",
        RateLimited,
        "Too many calls of the organization wait for people to fill in forms of tool servers.",
        "Answer them with `mainspring approvals`, or retry later.",
    ),
    execution(
        "tool_reports_exceeded",
        Invalid,
        "A tool server asked for input or continued the call more often than one call may.",
        "Report it to the author of the server, or give the input as arguments.",
    ),
    execution(
        "tool_pins_exceeded",
        Invalid,
        "The execution would use more tools of tool servers than one execution may.",
        "Name fewer tools in `tools`, or split the work among several executions.",
    ),
    execution(
        "tool_changed",
        Policy,
        "The tool is not the one that the execution has used before: its server has changed its description or schemas.",
        "Review the tool with `mainspring tools`, and start a new execution.",
    ),
    execution(
        "tool_gone",
        Policy,
        "The tool that the execution has used before no longer exists.",
        "Find the tool with `mainspring tools`, and start a new execution.",
    ),
    execution(
        "tool_task_cancelled",
        Failed,
        "The task of the call was canceled at the tool server.",
        "Find the reason at the server, and start the step again.",
    ),
    execution(
        "reports_need_upgrade",
        Unavailable,
        "A tool server asks for a form or begins a task, and the execution started while a node of an older release was running.",
        "Upgrade every node, and start the execution again.",
    ),
    execution(
        "tool_server_not_started",
        Unavailable,
        "The process of the tool server cannot be started.",
        "Correct `command`, `args` or `cwd` in `mcpServers`.",
    ),
    execution(
        "tool_server_not_connected",
        Unavailable,
        "There is no connection to the tool server, or its handshake failed.",
        "Check its address, its command and its last output.",
    ),
    execution(
        "tool_server_start_timeout",
        Timeout,
        "The tool server did not answer after its start.",
        "Start it once by hand; package runners download a server at its first start.",
    ),
    execution(
        "tool_connection_lost",
        Unavailable,
        "The connection to the tool server ended before the answer, so the call may have had an effect.",
        "Read the server's last output in the message.",
    ),
    execution(
        "tool_server_rate_limited",
        RateLimited,
        "The tool server answered with HTTP status 429.",
        "Lower `maxParallel`, or retry later.",
    ),
    execution(
        "tool_server_http_error",
        Transient,
        "The tool server answered with an HTTP status from 500 to 599.",
        "Check the server.",
    ),
    execution(
        "tool_server_not_authorized",
        Failed,
        "The tool server does not accept the credentials.",
        "Correct `headers` in `mcpServers`.",
    ),
    execution(
        "tool_server_busy",
        Unavailable,
        "Too many calls wait for the tool server.",
        "Lower `maxParallel`, or retry later.",
    ),
];
