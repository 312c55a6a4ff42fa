//! Statements whose conditions are chosen: each stands on a line of its own that names its parameter in braces.

/// A statement with those lines left out whose parameter is not asked for. The others have theirs by number, behind the
/// first `fixed`, in the order of `asked`; `mark` is what a database writes before the number.
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
