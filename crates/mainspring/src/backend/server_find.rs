//! Resolves the name of an execution at a server: its id, a prefix of the id, or `last`.

use mainspring_kernel::value::Value;

use crate::{
    client::{Client, ClientError, address::route, execution::Listed, response::Response},
    error::CliError,
};

/// Number of newest executions that are searched for a prefix.
const ROWS_SEARCHED: usize = 10_000;

/// Executions per page, at most.
pub(super) const PAGE_ROWS: usize = 200;

/// Pages of executions, newest first.
pub(super) struct Pages<'a> {
    client: &'a Client,
    query: Vec<(&'static str, String)>,
    cursor: Option<String>,
    left: usize,
    is_over: bool,
}

impl<'a> Pages<'a> {
    /// Returns at most `rows_max` of the executions that match the query.
    pub(super) fn new(client: &'a Client, query: Vec<(&'static str, String)>, rows_max: usize) -> Self {
        Self { client, query, cursor: None, left: rows_max, is_over: false }
    }

    /// Returns the next page, which is empty after the last one.
    pub(super) async fn next(&mut self) -> Result<Vec<Listed>, ClientError> {
        if self.is_over || self.left == 0 {
            return Ok(Vec::new());
        }
        let limit = self.left.min(PAGE_ROWS).to_string();
        let mut query: Vec<(&str, &str)> = self.query.iter().map(|(name, value)| (*name, value.as_str())).collect();
        query.push(("limit", &limit));
        query.extend(self.cursor.iter().map(|cursor| ("cursor", cursor.as_str())));
        let page = self.client.get(&route(&["api", "executions"], &query)).await?;
        let answer = Response::new(self.client, "a page of executions", &page);
        let rows = answer.objects("executions", "an execution")?.into_iter().map(Listed::read);
        let mut rows = rows.collect::<Result<Vec<_>, _>>()?;
        rows.truncate(self.left);
        self.left -= rows.len();
        let next = answer.maybe_text("nextCursor")?;
        // Ends the loop if a faulty server repeats a cursor.
        self.is_over = next.is_none() || next == self.cursor || rows.is_empty();
        self.cursor = next;
        Ok(rows)
    }
}

/// Resolves a name to the id of an execution.
pub(super) async fn find(client: &Client, name: &str) -> Result<String, CliError> {
    if name == "last" {
        return last(client).await;
    }
    if !name.is_empty() {
        match client.get(&route(&["api", "executions", name], &[])).await {
            Ok(value) => return Ok(Response::new(client, "an execution", &value).text("id")?),
            Err(error) if error.is("NOT_FOUND") => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut pages = Pages::new(client, Vec::new(), ROWS_SEARCHED);
    let mut found: Option<String> = None;
    loop {
        let page = pages.next().await?;
        if page.is_empty() {
            return found.ok_or_else(|| unknown(client, name));
        }
        for row in page.into_iter().filter(|row| !name.is_empty() && row.id.starts_with(name)) {
            if found.is_some() {
                let message =
                    format!("several executions start with `{name}`; use more characters (`mainspring list`)");
                return Err(CliError::bad_input("ambiguous_execution", message));
            }
            found = Some(row.id);
        }
    }
}

/// Finds the last execution that the caller has started. Executions of other users are excluded, so `mainspring cancel
/// last` never cancels one of those.
async fn last(client: &Client) -> Result<String, CliError> {
    let me = user(client).await?;
    let mut pages = Pages::new(client, Vec::new(), ROWS_SEARCHED);
    loop {
        let page = pages.next().await?;
        if page.is_empty() {
            let message = format!(
                "`{me}` has started nothing at {} yet; `mainspring list` shows those of others",
                client.address()
            );
            return Err(CliError::bad_input("no_such_execution", message));
        }
        if let Some(row) = page.into_iter().find(|row| !row.is_child && row.started_by.as_deref() == Some(&me)) {
            return Ok(row.id);
        }
    }
}

/// Returns the name of the user of the token.
pub(super) async fn user(client: &Client) -> Result<String, ClientError> {
    let me: Value = client.get("/api/me").await?;
    Response::new(client, "who asks", &me).text("userId")
}

fn unknown(client: &Client, name: &str) -> CliError {
    let message = format!("there is no execution `{name}` at {}; `mainspring list` shows all", client.address());
    CliError::bad_input("no_such_execution", message)
}
