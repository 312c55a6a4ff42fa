//! Escapes, measures and cuts text for one line of a terminal.

use std::fmt::Write;

use mainspring_kernel::diagnostic::is_obeyed;

/// Returns a number with the singular or plural of a word: `1 receipt`, `2 receipts`.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// Characters per column of a cut text. Combining marks take no column, so without this bound a text of nothing
/// else would never be cut.
const CHARS_PER_COLUMN_MAX: usize = 4;

/// Blocks of Unicode that contain only combining marks, by first and last character.
const COMBINING: [(char, char); 7] = [
    ('\u{300}', '\u{36f}'),
    ('\u{483}', '\u{489}'),
    ('\u{591}', '\u{5bd}'),
    ('\u{1ab0}', '\u{1aff}'),
    ('\u{1dc0}', '\u{1dff}'),
    ('\u{20d0}', '\u{20ff}'),
    ('\u{fe00}', '\u{fe0f}'),
];

/// Blocks of wide characters in Unicode Standard Annex 11, by first and last character, without the few wide
/// characters in narrow blocks. A wrong width shifts the layout, and never changes a word.
const WIDE: [(char, char); 12] = [
    ('\u{1100}', '\u{115f}'),
    ('\u{2e80}', '\u{303e}'),
    ('\u{3041}', '\u{33ff}'),
    ('\u{3400}', '\u{4dbf}'),
    ('\u{4e00}', '\u{9fff}'),
    ('\u{a000}', '\u{a4cf}'),
    ('\u{a960}', '\u{a97f}'),
    ('\u{ac00}', '\u{d7a3}'),
    ('\u{f900}', '\u{faff}'),
    ('\u{fe30}', '\u{fe6f}'),
    ('\u{ff00}', '\u{ff60}'),
    ('\u{1f300}', '\u{3fffd}'),
];

fn is_in(letter: char, ranges: &[(char, char)]) -> bool {
    ranges.iter().any(|(first, last)| (*first..=*last).contains(&letter))
}

/// Escapes every character that a terminal would interpret, line ends included, so the text stays one line.
pub fn shown(text: &str) -> String {
    escaped(text, is_obeyed)
}

/// Escapes every character that is not printable ASCII.
pub fn shown_in_ascii(text: &str) -> String {
    escaped(text, |letter| letter.is_control() || !letter.is_ascii())
}

/// Joins the lines of a text with spaces and escapes them.
pub fn one_line(text: &str) -> String {
    shown(&text.lines().collect::<Vec<_>>().join(" "))
}

/// Escapes each line of a text that Mainspring has laid out itself, such as pretty-printed JSON.
pub fn lines_shown(text: &str) -> String {
    text.lines().map(shown).collect::<Vec<_>>().join("\n")
}

/// Escapes a text of several lines and marks each line after the first, so that none resembles output of
/// Mainspring.
pub fn paragraph(text: &str) -> String {
    let lines = text.trim_end().lines().map(|line| shown(line.trim_end_matches(' ')));
    lines.enumerate().fold(String::new(), |mut all, (place, line)| {
        all.push_str(match (place, line.is_empty()) {
            (0, _) => "",
            (_, true) => "\n    │",
            (_, false) => "\n    │ ",
        });
        all + &line
    })
}

fn escaped(text: &str, is_escaped: impl Fn(char) -> bool) -> String {
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' => shown.push_str("\\n"),
            '\r' => shown.push_str("\\r"),
            '\t' => shown.push_str("\\t"),
            // Writing to a String cannot fail.
            _ if is_escaped(letter) => drop(write!(shown, "\\u{{{:x}}}", u32::from(letter))),
            _ => shown.push(letter),
        }
    }
    shown
}

fn columns_of(letter: char) -> usize {
    match letter {
        _ if letter.is_ascii() => 1,
        _ if is_in(letter, &COMBINING) => 0,
        _ if is_in(letter, &WIDE) => 2,
        _ => 1,
    }
}

/// Columns of an escaped text.
pub fn columns(text: &str) -> usize {
    text.chars().map(columns_of).sum()
}

/// The text if it fits into the width, and otherwise its beginning and the ellipsis.
pub fn cut(text: &str, width: usize, ellipsis: &str) -> String {
    let fits = |width: usize| {
        let mut columns = 0;
        let bound = width.saturating_mul(CHARS_PER_COLUMN_MAX);
        let end = text.char_indices().enumerate().find(|(count, (_, letter))| {
            columns += columns_of(*letter);
            columns > width || *count >= bound
        });
        end.map(|(_, (at, _))| at)
    };
    if fits(width).is_none() {
        return text.to_string();
    }
    let end = fits(width.saturating_sub(columns(ellipsis))).unwrap_or(text.len());
    format!("{}{ellipsis}", text[..end].trim_end())
}

/// The end of a text, as far as it fits into the width.
pub fn ending(text: &str, width: usize) -> &str {
    let (mut columns, bound) = (0, width.saturating_mul(CHARS_PER_COLUMN_MAX));
    let before = text.char_indices().rev().enumerate().find(|(count, (_, letter))| {
        columns += columns_of(*letter);
        columns > width || *count >= bound
    });
    before.map_or(text, |(_, (at, letter))| &text[at + letter.len_utf8()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        for (text, unicode, ascii) in [
            ("plain é", "plain é", "plain \\u{e9}"),
            ("a\u{1b}[31mb", "a\\u{1b}[31mb", "a\\u{1b}[31mb"),
            ("a\nb\r\tc\0", "a\\nb\\r\\tc\\u{0}", "a\\nb\\r\\tc\\u{0}"),
            ("\u{7f}\u{9b}2J", "\\u{7f}\\u{9b}2J", "\\u{7f}\\u{9b}2J"),
            ("a\u{202e}b\u{200b}\u{feff}", "a\\u{202e}b\\u{200b}\\u{feff}", "a\\u{202e}b\\u{200b}\\u{feff}"),
            ("\u{e0041}", "\\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(shown(text), unicode);
            assert_eq!(shown_in_ascii(text), ascii);
            assert_eq!(shown(unicode), unicode, "what is shown is not escaped again");
        }
    }

    #[test]
    fn foreign_text_cannot_imitate_output_lines() {
        for (text, expected) in [
            ("", ""),
            ("one", "one"),
            ("one\n", "one"),
            ("one  \ntwo  ", "one\n    │ two"),
            ("Go?\n  ✓ checks\r\n\nlast", "Go?\n    │   ✓ checks\n    │\n    │ last"),
            ("a\u{2028}b\rc\u{85}d", "a\\u{2028}b\\rc\\u{85}d"),
        ] {
            assert_eq!(paragraph(text), expected);
        }
        assert_eq!(lines_shown("{\n  \u{202e}\n}"), "{\n  \\u{202e}\n}");
    }

    #[test]
    fn columns_and_cuts() {
        for (text, width, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("ab cd", 4, "ab…"),
            ("abc", 1, "…"),
            ("日本語", 6, "日本語"),
            ("日本語", 5, "日本…"),
            ("日本語", 4, "日…"),
            ("e\u{301}e\u{301}", 2, "e\u{301}e\u{301}"),
            ("", 0, ""),
        ] {
            let cut = cut(text, width, "…");
            assert_eq!(cut, expected);
            assert!(columns(&cut) <= width);
        }
        for (text, width, expected) in
            [("abc", 3, "abc"), ("abcd", 3, "bcd"), ("日本語", 5, "本語"), ("", 0, ""), ("a", 0, "")]
        {
            assert_eq!(ending(text, width), expected);
        }
        let marks = format!("e{}", "\u{301}".repeat(1000));
        assert_eq!(ending(&marks, 5).chars().count(), 20);
        assert_eq!(cut(&marks, 5, "…").chars().count(), 17, "marks without end are cut as well");
    }
}
