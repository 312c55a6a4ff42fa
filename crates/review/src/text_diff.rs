//! The difference of two texts by lines, in the unified format of `diff -u`.

use imara_diff::{Algorithm, BasicLineDiffPrinter, Diff, InternedInput, UnifiedDiffConfig};

use crate::limits::{TEXT_BYTES_MAX, TEXT_DIFF_BYTES_MAX};

/// Returns the difference of two texts; empty for equal ones. Texts that are too large to compare give a line with that
/// remark.
pub fn unified(old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    if old.len() + new.len() > TEXT_BYTES_MAX {
        return format!("The texts have {} bytes together, more than {TEXT_BYTES_MAX}.\n", old.len() + new.len());
    }
    let input = InternedInput::new(old, new);
    let mut diff = Diff::compute(Algorithm::Histogram, &input);
    diff.postprocess_lines(&input);
    let printer = BasicLineDiffPrinter(&input.interner);
    let mut text = format!("--- old\n+++ new\n{}", diff.unified_diff(&printer, UnifiedDiffConfig::default(), &input));
    if text.len() > TEXT_DIFF_BYTES_MAX {
        let end = (0..=TEXT_DIFF_BYTES_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        text.truncate(end);
        text.push_str("\n… (cut)\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_bounds() {
        assert_eq!(unified("a\n", "a\n"), "");
        let text = unified("a\nb\nc\n", "a\nx\nc\n");
        assert_eq!(text, "--- old\n+++ new\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n");
        let long = "x\n".repeat(TEXT_BYTES_MAX / 2);
        assert!(unified(&long, "y").starts_with("The texts have"));
    }
}
