//! The table of seeded bugs, which documents them and is compared with the results.

/// The folder of the patches and the path of their table.
pub(crate) const FOLDER: &str = "crates/sim/bugs/";
pub(crate) const TABLE: &str = "crates/sim/bugs/README.md";
pub(crate) const PATCH: &str = ".patch";

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Row {
    /// Name of the patch, without the extension.
    pub(crate) name: String,
    /// The first seed that finds the bug.
    pub(crate) seed: u64,
    /// Part of the message of that seed.
    pub(crate) rule: String,
    /// Counted from 1.
    pub(crate) line: usize,
}

/// Parses the rows of the table: a name in backticks, a description, a seed, part of a message. Other lines are
/// skipped.
pub(crate) fn rows(text: &str) -> Vec<Row> {
    let row = |(line, number): (&str, usize)| {
        let cells: Vec<&str> = line.trim().strip_prefix('|')?.strip_suffix('|')?.split('|').map(str::trim).collect();
        let [name, _, seed, rule] = cells[..] else { return None };
        let name = name.strip_prefix('`')?.strip_suffix('`')?;
        Some(Row { name: name.to_owned(), seed: seed.parse().ok()?, rule: rule.to_owned(), line: number })
    };
    text.lines().zip(1..).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::{Row, rows};

    #[test]
    fn only_rows_are_bugs() {
        let text = "# Bugs\n\n| bug | what | seed | rule |\n|---|---|---|---|\n| `a-b` | It is. | 7 | made before |\n| `c` | x | y | z |\n";
        let expected = Row { name: "a-b".to_owned(), seed: 7, rule: "made before".to_owned(), line: 5 };
        assert_eq!(rows(text), [expected]);
    }
}
