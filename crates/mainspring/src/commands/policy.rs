//! `mainspring policy`: shows the rules for calls of workflows, and sets those of an organization of a server.

use clap::{Args, Subcommand};
use mainspring_kernel::{
    json::{compact, pretty},
    value::{Map, Value},
};

use crate::{
    client::address::route,
    context::{Context, block_on},
    error::{CliError, Exit},
    output::{
        terminal::{dim, print_out},
        text::{counted, lines_shown, shown},
    },
    server_settings::object_settings,
};

/// Rules for the calls of workflows: which run, which ask a person, and which fail
#[derive(Debug, Args)]
pub(crate) struct Policy {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show the rules that apply: those of the server for your organization, or of the settings file without a server
    Show,
    /// Set the rules of your organization at a server, in place of its previous ones. They can tighten those of the server
    Set {
        /// CLASS=VERDICT or PATTERN=VERDICT, as `payment=deny` or `github.delete_*=ask`; none removes all rules
        #[arg(value_name = "RULE=VERDICT")]
        rules: Vec<String>,
    },
}

/// Runs the command.
pub(crate) fn policy(policy: &Policy, context: &Context) -> Result<Exit, CliError> {
    match &policy.action {
        Action::Show if context.global.server()?.is_none() => {
            let settings = object_settings()?;
            match (context.global.json, settings.policy == Value::Null) {
                (true, _) => print_out!("{}", compact(&settings.policy)),
                (false, false) => print_out!("{}", lines_shown(&pretty(&settings.policy))),
                (false, true) => print_out!("{}", dim(&format!("no `policy` in {}", settings.path.display()))),
            }
        }
        Action::Show => {
            let client = context.global.client_of("policy show")?;
            let body = block_on(async { Ok(client.get(&route(&["api", "policy"], &[])).await?) })?;
            match context.global.json {
                true => print_out!("{}", compact(&body)),
                false => print_out!("{}", lines_shown(&pretty(body.get("effective").unwrap_or(&Value::Null)))),
            }
        }
        Action::Set { rules } => set(rules, context)?,
    }
    Ok(Exit::Fine)
}

fn set(rules: &[String], context: &Context) -> Result<(), CliError> {
    let mut verdicts = Map::new();
    for rule in rules {
        let refused = |why: &str| CliError::bad_input("bad_input", format!("`{}`: {why}", shown(rule)));
        let (key, verdict) = rule.rsplit_once('=').ok_or_else(|| refused("write RULE=VERDICT, as `payment=ask`"))?;
        if verdicts.insert(key.to_owned(), verdict.into()).is_some() {
            return Err(refused("the rule is given twice"));
        }
    }
    let client = context.global.client_of("policy set")?;
    let body = Value::map([("verdicts", Value::Map(verdicts))]);
    let body = block_on(async { Ok(client.put(&route(&["api", "policy"], &[]), &body).await?) })?;
    match context.global.json {
        true => print_out!("{}", compact(&body)),
        false => context.terminal.note(&format!(
            "{} set; executions that start from now on have them",
            counted(rules.len() as u64, "rule is", "rules are")
        )),
    }
    Ok(())
}
