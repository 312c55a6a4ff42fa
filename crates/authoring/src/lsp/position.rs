//! Positions: bytes of a text, lines and UTF-16 columns of the protocol, lines and characters of the compiler.

use std::ops::Range;

use lsp_types::{Position, Range as LspRange};
use mainspring_kernel::document::Place;

/// Returns the byte of a position; the end of the line if the column is beyond it.
pub(super) fn offset(text: &str, position: Position) -> usize {
    let start = line_start(text, position.line);
    let line = text[start..].split('\n').next().unwrap_or_default();
    let mut units = 0;
    for (at, letter) in line.char_indices() {
        if units >= position.character {
            return start + at;
        }
        units += letter.len_utf16() as u32;
    }
    start + line.len()
}

/// Returns the position of a byte.
pub(super) fn position(text: &str, offset: usize) -> Position {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.bytes().filter(|byte| *byte == b'\n').count() as u32;
    let column = before.rsplit('\n').next().unwrap_or_default();
    Position::new(line, column.encode_utf16().count() as u32)
}

/// Returns the range of some bytes.
pub(super) fn range(text: &str, bytes: &Range<usize>) -> LspRange {
    LspRange::new(position(text, bytes.start), position(text, bytes.end))
}

/// Returns the byte of a place of the compiler.
pub(super) fn offset_of_place(text: &str, place: Place) -> usize {
    let start = line_start(text, place.line.saturating_sub(1));
    let line = text[start..].split('\n').next().unwrap_or_default();
    let column = place.column.saturating_sub(1) as usize;
    start + line.char_indices().nth(column).map_or(line.len(), |(at, _)| at)
}

/// Returns the range of a place of the compiler: from there to the end of the word, or of the line.
pub(super) fn of_place(text: &str, place: Place) -> LspRange {
    let start = line_start(text, place.line.saturating_sub(1));
    let line = text[start..].split('\n').next().unwrap_or_default();
    let from = offset_of_place(text, place) - start;
    let word = line[from..].find([' ', ',', '}', ']']).filter(|length| *length > 0);
    let until = word.map_or(line.trim_end().len().max(from), |length| from + length);
    range(text, &(start + from..start + until))
}

fn line_start(text: &str, line: u32) -> usize {
    if line == 0 {
        return 0;
    }
    text.match_indices('\n').nth(line as usize - 1).map_or(text.len(), |(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn utf_16_columns() {
        let text = "a\n€𝄞b\n";
        for (line, character, expected) in
            [(0, 0, 0), (0, 9, 1), (1, 0, 2), (1, 1, 5), (1, 3, 9), (1, 9, 10), (7, 0, 11)]
        {
            assert_eq!(offset(text, Position::new(line, character)), expected, "{line} {character}");
        }
        for at in [0, 1, 2, 5, 9, 10, 11] {
            assert_eq!(offset(text, position(text, at)), at);
        }
        assert_eq!(
            of_place(text, Place { line: 2, column: 3 }),
            LspRange::new(Position::new(1, 3), Position::new(1, 4))
        );
    }
}
