//! `mainspring tools`: lists the tools of the configured MCP servers, and calls one.

use clap::{Args, Subcommand};

/// List the tools of the configured MCP servers, or call one
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    action: Option<Action>,
    /// List the tools of this server only
    // Not `server`: the global flag has that name.
    #[arg(value_name = "SERVER")]
    only: Option<String>,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
enum Action {
    /// Call a tool once, and print its result
    Call(Call),
}

/// The tool to call.
#[derive(Debug, Args)]
struct Call {
    /// The tool: SERVER.TOOL, or its name if only one server has it
    name: String,
    /// The arguments: a JSON object, or @FILE, or - for standard input
    #[arg(long, value_name = "JSON")]
    input: Option<String>,
}

#[cfg(not(feature = "tools"))]
pub(crate) fn tools(
    tools: &ToolsArgs,
    _: &crate::context::Context,
) -> Result<crate::error::Exit, crate::error::CliError> {
    let ToolsArgs { action, only } = tools;
    let _ = (action.as_ref().map(|Action::Call(Call { name, input })| (name, input)), only);
    Err(crate::error::CliError::bad_input(
        "no_tools",
        "this build has no tool servers: build it with the feature `tools`",
    ))
}

#[cfg(feature = "tools")]
pub(crate) use enabled::tools;

#[cfg(feature = "tools")]
mod enabled {
    use std::sync::Arc;

    use mainspring_kernel::{
        effect::Outcome,
        hash::Hash,
        json::{compact, pretty},
        value::Value,
    };
    use mainspring_mcp::{pool::Pool, tool::ToolList};

    use super::{Action, Call, ToolsArgs};
    use crate::{
        backend::start::input,
        context::{Context, Global, block_on},
        error::{CliError, Exit},
        output::{
            terminal::{bold, dim, print_out},
            text::{lines_shown, shown},
        },
        tool_servers::{call_once, pool, scope},
    };

    /// Runs the command.
    pub(crate) fn tools(tools: &ToolsArgs, context: &Context) -> Result<Exit, CliError> {
        let pool = pool()?;
        block_on(async {
            let done = match &tools.action {
                Some(Action::Call(wanted)) => call(&pool, wanted, context).await,
                None => list(&pool, tools.only.as_deref(), &context.global).await,
            };
            pool.close_all().await;
            done
        })
    }

    /// Prints the tools of all servers, or of one. A server that fails does not hide the others.
    async fn list(pool: &Arc<Pool>, only: Option<&str>, global: &Global) -> Result<Exit, CliError> {
        let scope = scope()?;
        let names: Vec<_> = pool.servers().iter().map(|server| server.name.clone()).collect();
        if let Some(only) = only.filter(|only| !names.iter().any(|name| name == only)) {
            let message = format!("no tool server is named `{only}`; there are {}", names.join(", "));
            return Err(CliError::bad_input("unknown_tool_server", message));
        }
        let mut exit = Exit::Fine;
        for server in pool.servers().iter().filter(|server| only.is_none_or(|only| only == server.name)) {
            let listed = async { pool.connection(server, &scope).await?.tools().await }.await;
            match listed {
                Ok(tools) => print(&server.name, &tools, global),
                Err(error) => {
                    exit = Exit::Failed;
                    match global.json {
                        true => print_out!(
                            "{}",
                            compact(&Value::map([
                                ("server", server.name.as_str().into()),
                                ("error", error.to_failure("tools").to_value()),
                            ]))
                        ),
                        false => print_out!("{}  {}", bold(&server.name), shown(&error.to_string())),
                    }
                }
            }
        }
        Ok(exit)
    }

    fn print(server: &str, tools: &ToolList, global: &Global) {
        for tool in tools.tools() {
            let name = format!("{server}.{}", tool.name);
            if global.json {
                let Value::Map(mut value) = tool.to_value() else { continue };
                value.insert("name".into(), name.into());
                value.insert("digest".into(), tool.digest.prefixed().into());
                print_out!("{}", compact(&Value::Map(value)));
                continue;
            }
            let description = tool.title.as_ref().or(tool.description.as_ref()).map_or("", String::as_str);
            let first_line = description.lines().next().unwrap_or_default();
            print_out!("{}  {}", bold(&shown(&name)), dim(&shown(first_line)));
        }
    }

    /// Calls a tool through the executor of `tool` steps, so that a step behaves the same.
    async fn call(pool: &Arc<Pool>, wanted: &Call, context: &Context) -> Result<Exit, CliError> {
        let arguments = input(wanted.input.as_deref(), Some(&Value::map([("type", "object".into())])))?;
        let mut random = [0; 16];
        getrandom::fill(&mut random).map_err(|error| CliError::internal("no_randomness", error.to_string()))?;
        context.signals.install()?;
        let outcome = call_once(pool, &wanted.name, arguments, Hash::of(&random), context).await?;
        match outcome {
            Outcome::Done(value) if context.global.json => print_out!("{}", compact(&value)),
            Outcome::Done(value) => print_out!("{}", lines_shown(&pretty(&value))),
            Outcome::Failed(failure) => return Err(CliError { exit: Exit::Failed, failure }),
            _ => return Err(CliError::internal("cancelled", "the call was canceled; the tool may have had an effect")),
        }
        Ok(Exit::Fine)
    }
}
