//! The lookup of tools by name.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::mpsc,
    time::{Instant, timeout_at},
};

use crate::{
    config::ServerConfig,
    connection::Scope,
    error::ToolError,
    limits::LOOKUP_SERVERS_MAX,
    pool::{Lease, Pool},
    tool::ToolList,
};

/// The lists of tools to search.
#[derive(Debug, Clone, Copy)]
enum Lists {
    Kept,
    Fresh,
}

/// Finds the server of a tool: by the full name `SERVER.TOOL`, or by a name that only one server has. All servers must
/// answer within `wait` for the latter.
pub(crate) async fn find(
    pool: &Arc<Pool>,
    name: &str,
    scope: &Scope,
    wait: Duration,
) -> Result<(Lease, String), ToolError> {
    if let Some((server, tool)) = by_full_name(pool, name) {
        let connection = pool.connection(server, scope).await?;
        return Ok((connection, tool.to_owned()));
    }
    let count = pool.servers().len();
    if count > LOOKUP_SERVERS_MAX {
        return Err(ToolError::TooManyServers { tool: name.to_owned(), count });
    }
    // A notification of a new tool may still be on its way, so an unknown name is looked up in fresh lists.
    match among(pool, name, scope, Lists::Kept, wait).await {
        Err(ToolError::UnknownTool { .. }) => among(pool, name, scope, Lists::Fresh, wait).await,
        found => found,
    }
}

fn by_full_name<'a>(pool: &'a Pool, name: &'a str) -> Option<(&'a ServerConfig, &'a str)> {
    let (server, tool) = name.split_once('.')?;
    let server = pool.servers().iter().find(|config| config.name == server)?;
    Some((server, tool))
}

async fn among(
    pool: &Arc<Pool>,
    name: &str,
    scope: &Scope,
    lists: Lists,
    wait: Duration,
) -> Result<(Lease, String), ToolError> {
    let (mut found, mut all, mut failed) = (Vec::new(), Vec::new(), Vec::new());
    for (server, answer) in lists_of_all(pool, scope, lists, wait).await {
        match answer {
            Some(Ok((connection, tools))) => match tools.get(name) {
                Some(_) => found.push((format!("{server}.{name}"), connection)),
                None => all.extend(tools.tools().iter().map(|tool| format!("{server}.{}", tool.name))),
            },
            Some(Err(error)) => failed.push(error.to_string()),
            None => {
                failed.push(format!("the tool server `{server}` did not list its tools within {} s", wait.as_secs()));
            }
        }
    }
    match (found.pop(), failed.is_empty()) {
        (Some(last), _) if !found.is_empty() => {
            let candidates = found.into_iter().chain([last]).map(|(name, _)| name).collect();
            Err(ToolError::AmbiguousTool { tool: name.to_owned(), candidates })
        }
        (Some((_, connection)), true) => Ok((connection, name.to_owned())),
        (None, true) => Err(unknown(name, &all)),
        // A server that cannot be reached may have a tool of this name as well.
        (found, false) => {
            let found = found.map(|(full_name, _)| full_name);
            Err(ToolError::IncompleteLookup { tool: name.to_owned(), found, failed })
        }
    }
}

type Answer = Result<(Lease, Arc<ToolList>), ToolError>;

/// Asks all servers at once. `None` for a server that did not answer in time; its connection opens for the next lookup.
async fn lists_of_all(pool: &Arc<Pool>, scope: &Scope, lists: Lists, wait: Duration) -> Vec<(String, Option<Answer>)> {
    let mut answers: Vec<_> = pool.servers().iter().map(|server| (server.name.clone(), None)).collect();
    let (sender, mut receiver) = mpsc::channel(answers.len().max(1));
    for (position, server) in pool.servers().iter().enumerate() {
        let (pool, server, scope, sender) = (pool.clone(), server.clone(), scope.clone(), sender.clone());
        tokio::spawn(async move {
            let answer = list_of(&pool, &server, &scope, lists).await;
            // The lookup may have ended; then the connection is released.
            let _ = sender.send((position, answer)).await;
        });
    }
    drop(sender);
    let end = Instant::now() + wait;
    while let Ok(Some((position, answer))) = timeout_at(end, receiver.recv()).await {
        if let Some((_, place)) = answers.get_mut(position) {
            *place = Some(answer);
        }
    }
    answers
}

async fn list_of(pool: &Arc<Pool>, server: &ServerConfig, scope: &Scope, lists: Lists) -> Answer {
    let connection = pool.connection(server, scope).await?;
    let tools = match lists {
        Lists::Kept => connection.tools().await?,
        Lists::Fresh => connection.tools_now().await?,
    };
    Ok((connection, tools))
}

/// The error of an unknown tool, with the names that differ least.
fn unknown(name: &str, all: &[String]) -> ToolError {
    let wanted = name.to_lowercase();
    let nearest = all.iter().filter(|full| {
        let tool = full.split_once('.').map_or(full.as_str(), |(_, tool)| tool).to_lowercase();
        tool.contains(&wanted) || wanted.contains(&tool)
    });
    ToolError::UnknownTool { tool: name.to_owned(), nearest: nearest.take(5).cloned().collect() }
}
