//! Shortening of texts to a bound.

/// Marks omitted text.
const ELLIPSIS: char = '…';

/// Returns the text, or its beginning with an ellipsis, in at most `bytes_max` bytes.
pub(crate) fn shortened(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let mut kept = beginning(text, bytes_max.saturating_sub(ELLIPSIS.len_utf8())).to_owned();
    kept.push(ELLIPSIS);
    kept
}

/// Returns the longest prefix of at most `bytes_max` bytes that splits no character.
pub(crate) fn beginning(text: &str, bytes_max: usize) -> &str {
    &text[..text.floor_char_boundary(bytes_max)]
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[track_caller]
    fn check(text: &str, bytes_max: usize, expected: &str) {
        assert_eq!(shortened(text, bytes_max), expected);
    }

    #[test]
    fn text_stays_within_its_bound_and_splits_no_character() {
        check("four", 4, "four");
        check("fiver", 4, "f…");
        check("äää", 6, "äää");
        check("äääx", 6, "ä…");
        check("", 0, "");
    }
}
