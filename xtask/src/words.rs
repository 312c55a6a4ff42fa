//! Words of text and of identifiers: in lower case, split at a change of case and at every character that is not
//! alphanumeric.

/// Returns the words of a text in order. Identifiers are split: `RetryPolicy` and `retry_policy` are two words each.
pub(crate) fn of_text(text: &str) -> impl Iterator<Item = String> + '_ {
    of_text_with_places(text).map(|(_, word)| word.to_lowercase())
}

/// Returns the same words as written, each with its byte offset.
pub(crate) fn of_text_with_places(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = &text[start..];
        let begin = start + rest.find(char::is_alphanumeric)?;
        let end = begin + end_of_word(&text[begin..]);
        start = end;
        Some((begin, &text[begin..end]))
    })
}

/// A word ends before a sign, before a capital after a lowercase letter, and before the last of several capitals:
/// `HTTPServer`.
fn end_of_word(text: &str) -> usize {
    let mut letters = text.char_indices().peekable();
    let mut before: Option<char> = None;
    while let Some((at, letter)) = letters.next() {
        let next_is_small = letters.peek().is_some_and(|(_, next)| next.is_lowercase());
        let begins_word = letter.is_uppercase() && before.is_some_and(|before| !before.is_uppercase() || next_is_small);
        if !letter.is_alphanumeric() || begins_word {
            return at;
        }
        before = Some(letter);
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::{of_text, of_text_with_places};

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        assert_eq!(of_text(text).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn identifiers_are_split() {
        check(
            "The RetryPolicy's `until_ms`, HTTPServer2 and MAX_SIZE.",
            &["the", "retry", "policy", "s", "until", "ms", "http", "server2", "and", "max", "size"],
        );
        check("naïve Über-größe", &["naïve", "über", "größe"]);
        check(" .. ", &[]);
    }

    #[test]
    fn places_are_bytes() {
        assert_eq!(of_text_with_places("ü aB").collect::<Vec<_>>(), [(0, "ü"), (3, "a"), (4, "B")]);
    }
}
