//! Statements with optional conditions: each stands on its own line, which names its parameter in braces.

/// Removes the lines whose parameter is not requested. The other parameters get numbers after the first `fixed`, in the
/// order of `asked`; `mark` is the database's character before the number.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_there_if_its_parameter_is_asked_for() {
        let sql = "a < $1\n  AND b = {b}\n  AND c = ({c})\nLIMIT $2\n";
        assert_eq!(only(sql, '$', 2, &[]), "a < $1\nLIMIT $2\n");
        assert_eq!(only(sql, '$', 2, &["c", "b"]), "a < $1\n  AND b = $4\n  AND c = ($3)\nLIMIT $2\n");
        assert_eq!(only(sql, '?', 2, &["c"]), "a < $1\n  AND c = (?3)\nLIMIT $2\n");
    }
}
