//! SQL statements: named ones in the `.sql` files, optional conditions, and numbers of databases.
//!
//! A file has the statements of one area. A statement begins after a line `-- name: NAME` and ends before the next one.

/// Expands to a statement of a file in the folder `sql` beside the calling file. A missing name is a compile error.
macro_rules! sql {
    ($file:literal, $name:literal) => {
        const { $crate::sql::named(include_str!(concat!("sql/", $file)), $name) }
    };
}

const NAME: &[u8] = b"-- name: ";

/// Returns the statement with a name, including its comments.
pub(crate) const fn named(file: &'static str, name: &str) -> &'static str {
    let mut at = 0;
    while at < file.len() {
        let end = line_end(file.as_bytes(), at);
        if is_name(file.as_bytes(), at, end, name.as_bytes()) {
            return until_next(file.split_at(end).1);
        }
        at = end;
    }
    panic!("the file has no statement of this name")
}

/// Returns the part of a text before the next name, without line breaks around it.
const fn until_next(text: &'static str) -> &'static str {
    let bytes = text.as_bytes();
    let mut end = 0;
    while end < bytes.len() && !starts_with(bytes, end, NAME) {
        end = line_end(bytes, end);
    }
    while end > 0 && bytes[end - 1] == b'\n' {
        end -= 1;
    }
    text.split_at(end).0
}

/// Returns the position after the line break that follows a position.
const fn line_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] != b'\n' {
        at += 1;
    }
    if at < bytes.len() { at + 1 } else { at }
}

const fn is_name(bytes: &[u8], at: usize, end: usize, name: &[u8]) -> bool {
    let begins = at + NAME.len();
    starts_with(bytes, at, NAME) && starts_with(bytes, begins, name) && end == begins + name.len() + 1
}

const fn starts_with(bytes: &[u8], at: usize, prefix: &[u8]) -> bool {
    if bytes.len() - at < prefix.len() {
        return false;
    }
    let mut number = 0;
    while number < prefix.len() {
        if bytes[at + number] != prefix[number] {
            return false;
        }
        number += 1;
    }
    true
}

/// Removes the lines of optional conditions that are not requested: each is on its own line, which names its
/// parameter in braces. The other parameters get numbers after the first `fixed`, in the order of `asked`; `mark` is
/// the database's character before the number.
pub(crate) fn only(sql: &str, mark: char, fixed: usize, asked: &[&str]) -> String {
    let mut statement = String::new();
    for line in sql.lines() {
        let Some((before, rest)) = line.split_once('{') else {
            statement.push_str(line);
            statement.push('\n');
            continue;
        };
        let (name, after) = rest.split_once('}').expect("a brace that is opened is closed");
        if let Some(at) = asked.iter().position(|asked| *asked == name) {
            statement.push_str(&format!("{before}{mark}{}{after}\n", fixed + at + 1));
        }
    }
    statement
}

/// Converts to the signed numbers of databases; 2^63-1 for anything larger.
pub(crate) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Converts back. Columns that are read this way are never negative.
pub(crate) fn natural(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_is_found_by_its_name() {
        const FILE: &str =
            "-- Two statements.\n\n-- name: one\n-- With a comment.\nSELECT 1\n\n-- name: one_more\nSELECT 2\n";
        assert_eq!(named(FILE, "one"), "-- With a comment.\nSELECT 1");
        assert_eq!(named(FILE, "one_more"), "SELECT 2");
        let missing = |name| std::panic::catch_unwind(|| named(FILE, name)).is_err();
        assert!(missing("on") && missing("one_") && missing("") && missing("two"));
    }

    #[test]
    fn a_line_is_included_with_its_parameter() {
        let sql = "a < $1\n  AND b = {b}\n  AND c = ({c})\nLIMIT $2\n";
        assert_eq!(only(sql, '$', 2, &[]), "a < $1\nLIMIT $2\n");
        assert_eq!(only(sql, '$', 2, &["c", "b"]), "a < $1\n  AND b = $4\n  AND c = ($3)\nLIMIT $2\n");
        assert_eq!(only(sql, '?', 2, &["c"]), "a < $1\n  AND c = (?3)\nLIMIT $2\n");
    }
}
