//! The table of executions: one line per execution, with columns as wide as their contents.

use mainspring_kernel::time::rfc3339;

use super::{
    terminal::{Terminal, bold, dim, duration, print_out, status},
    text::{columns, cut, shown},
};

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    /// The execution id.
    pub(crate) id: String,
    pub(crate) status: String,
    /// The name of the workflow.
    pub(crate) workflow: Option<String>,
    /// Milliseconds since the epoch.
    pub(crate) started_at: u64,
    /// Milliseconds since the epoch, if it has ended.
    pub(crate) completed_at: Option<u64>,
    /// The outcome, such as `with_failures`.
    pub(crate) outcome: Option<String>,
    /// The code of its failure.
    pub(crate) error: Option<String>,
    /// The parent execution, if there is one.
    pub(crate) parent: Option<String>,
}

pub(crate) fn print(rows: &[Row], terminal: &Terminal) {
    if rows.is_empty() {
        print_out!("{}", dim("none"));
    }
    let room = terminal.is_live.then_some(terminal.width);
    table(rows, room).iter().for_each(|line| print_out!("{line}"));
}

/// The gap between two columns.
const GAP: &str = "  ";

/// Columns that a cut name keeps at least. The first 13 characters of an execution key are unique in practice.
const NAME_COLUMNS_MIN: usize = 16;

/// Formats one line per row, with columns as wide as their contents. If the lines are wider than `room`, execution
/// ids are cut, and then workflow names; commands accept the beginning of a name. Without `room` nothing is cut.
fn table(rows: &[Row], room: Option<usize>) -> Vec<String> {
    let mut cells: Vec<[String; 6]> = rows.iter().map(cells).collect();
    let mut widths = widths(&cells);
    for column in [ID, WORKFLOW] {
        let Some(room) = room else { break };
        let used = widths.iter().filter(|width| **width > 0);
        let all = used.map(|width| width + GAP.len()).sum::<usize>().saturating_sub(GAP.len());
        let width = widths[column].saturating_sub(all.saturating_sub(room)).max(NAME_COLUMNS_MIN);
        widths[column] = widths[column].min(width);
        cells.iter_mut().for_each(|cells| cells[column] = cut(&cells[column], width, "…"));
    }
    cells.iter().map(|cells| line(cells, &widths)).collect()
}

const ID: usize = 0;
const STATUS: usize = 1;
const WORKFLOW: usize = 2;
const STARTED: usize = 3;

/// The cells: id, status, workflow, start, duration, note.
fn cells(row: &Row) -> [String; 6] {
    let parent = row.parent.as_ref().map(|parent| format!("child of {parent}"));
    let note = [&row.outcome, &row.error, &parent].into_iter().flatten().map(|word| shown(word)).collect::<Vec<_>>();
    [
        shown(&row.id),
        row.status.clone(),
        shown(row.workflow.as_deref().unwrap_or("-")),
        rfc3339(row.started_at),
        row.completed_at.map(|at| duration(at.saturating_sub(row.started_at))).unwrap_or_default(),
        note.join(" "),
    ]
}

fn widths(rows: &[[String; 6]]) -> [usize; 6] {
    std::array::from_fn(|column| rows.iter().map(|cells| columns(&cells[column])).max().unwrap_or(0))
}

/// Trailing empty cells are omitted, and an empty column takes no room.
fn line(cells: &[String; 6], widths: &[usize; 6]) -> String {
    let end = cells.iter().rposition(|cell| !cell.is_empty()).map_or(0, |last| last + 1);
    let mut line = String::new();
    for (column, cell) in cells[..end].iter().enumerate().filter(|(column, _)| widths[*column] > 0) {
        let painted = match column {
            ID => bold(cell),
            STATUS => status(cell),
            STARTED => dim(cell),
            _ => cell.clone(),
        };
        line.push_str(&painted);
        if column + 1 < end {
            line.push_str(&" ".repeat(widths[column].saturating_sub(columns(cell))));
            line.push_str(GAP);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, workflow: &str, status: &str, error: Option<&str>, took: Option<u64>) -> Row {
        Row {
            id: id.into(),
            status: status.into(),
            workflow: Some(workflow.into()),
            started_at: 0,
            completed_at: took,
            outcome: None,
            error: error.map(Into::into),
            parent: None,
        }
    }

    #[track_caller]
    fn check(rows: &[Row], room: Option<usize>, expected: &[&str]) {
        let lines: Vec<_> =
            table(rows, room).iter().map(|line| anstream::adapter::strip_str(line).to_string()).collect();
        assert_eq!(lines, expected);
        let longest = lines.iter().map(|line| columns(line)).max().unwrap_or(0);
        assert!(room.is_none_or(|room| longest <= room.max(90)), "{lines:?}");
    }

    #[test]
    fn columns_are_aligned_without_trailing_spaces() {
        let rows = [
            row("a", "ship", "completed", None, Some(1500)),
            row("日本", "-", "waiting_approval", None, None),
            row("ccc", "a\nb", "failed", Some("exit"), Some(0)),
        ];
        check(
            &rows,
            None,
            &[
                "a     completed         ship  1970-01-01T00:00:00.000Z  1.5 s",
                "日本  waiting_approval  -     1970-01-01T00:00:00.000Z",
                "ccc   failed            a\\nb  1970-01-01T00:00:00.000Z  0 ms   exit",
            ],
        );
        let child = Row { parent: Some("mother".into()), ..row("d", "ship", "failed", Some("exit"), Some(0)) };
        check(&[child], None, &["d  failed  ship  1970-01-01T00:00:00.000Z  0 ms  exit child of mother"]);
        check(&[], None, &[]);
    }

    #[test]
    fn long_names_are_cut_only_if_the_width_requires_it() {
        let long = "release-of-the-first-of-january-with-everything-in-it-and-more";
        let rows = [row(long, "ship", "failed", None, None), row("b", "ship", "failed", None, None)];
        let (whole, rest) = (long.to_string(), "  failed  ship  1970-01-01T00:00:00.000Z");
        check(&rows, None, &[&(whole.clone() + rest), &format!("{:<62}{rest}", "b")]);
        check(&rows, Some(200), &[&(whole + rest), &format!("{:<62}{rest}", "b")]);
        check(&rows, Some(70), &[&format!("release-of-the-first-of-janua…{rest}"), &format!("{:<30}{rest}", "b")]);
        let cut = "release-of-the-…";
        check(&rows, Some(10), &[&format!("{cut}{rest}"), &format!("{:<16}{rest}", "b")]);
        let rows = [row(long, long, "failed", None, None)];
        let workflow = "release-of-the-first-of…";
        check(&rows, Some(76), &[&format!("{cut}  failed  {workflow}  1970-01-01T00:00:00.000Z")]);
    }
}
