//! Positions in a text: converts bytes to lines and columns, and positions in generated code to positions in its
//! source.
//!
//! Three ways of counting meet here: people count characters from 1, the interpreter counts bytes from 1, and source
//! maps count UTF-16 units from 0.

/// A line and a column, both from 1, the column in characters.
pub(crate) type Place = (u32, u32);

/// Returns the position of a byte.
pub(crate) fn place_of_byte(text: &str, offset: usize) -> Place {
    let before = &text[..text.floor_char_boundary(offset)];
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    let line = before.bytes().filter(|byte| *byte == b'\n').count();
    (number(line + 1), number(before[line_start..].chars().count() + 1))
}

/// Returns the position of a byte in a line, both from 1.
pub(crate) fn place_in_line(text: &str, line: u32, byte_column: u32) -> Place {
    let content = line_of(text, line);
    let before = &content[..content.floor_char_boundary(byte_column as usize - byte_column.min(1) as usize)];
    (line, number(before.chars().count() + 1))
}

/// One entry of a source map: a position in the generated code and its source, in lines and UTF-16 units from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mapping {
    pub(crate) printed: (u32, u32),
    pub(crate) written: (u32, u32),
}

/// Maps positions in generated code to the author's source.
#[derive(Debug)]
pub(crate) struct SourceMap {
    /// Sorted by position in the generated code.
    mappings: Vec<Mapping>,
    written: String,
}

impl SourceMap {
    pub(crate) fn new(mut mappings: Vec<Mapping>, written: String) -> SourceMap {
        mappings.sort();
        SourceMap { mappings, written }
    }

    /// Returns the source position of a byte in a line of the generated code, both from 1. It is given by the last
    /// entry before the byte on its line, else by the first one after it.
    pub(crate) fn written(&self, printed: &str, line: u32, byte_column: u32) -> Place {
        let content = line_of(printed, line);
        let before = &content[..content.floor_char_boundary(byte_column as usize - byte_column.min(1) as usize)];
        let wanted = (line - line.min(1), number(before.encode_utf16().count()));
        let after = self.mappings.partition_point(|mapping| mapping.printed <= wanted);
        let on_line = |mapping: &&Mapping| mapping.printed.0 == wanted.0;
        let found = after.checked_sub(1).map(|last| &self.mappings[last]).filter(on_line);
        let Some(mapping) = found.or_else(|| self.mappings.get(after).or(self.mappings.last())) else {
            return (line, byte_column);
        };
        let (line, units) = (mapping.written.0 + 1, mapping.written.1 as usize);
        let mut seen = 0;
        let characters = line_of(&self.written, line).chars().take_while(|character| {
            seen += character.len_utf16();
            seen <= units
        });
        (line, number(characters.count() + 1))
    }
}

/// Returns a line, counted from 1; empty beyond the end.
fn line_of(text: &str, line: u32) -> &str {
    text.split('\n').nth((line - line.min(1)) as usize).unwrap_or("")
}

/// Converts without loss, since sources are far shorter than the limit of the type.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Mapping, Place, SourceMap, place_in_line, place_of_byte};

    const TEXT: &str = "one\nzwölf 🦀 x\n\nlast";

    #[test]
    fn bytes_become_lines_and_characters() {
        let check = |needle: &str, expected: Place| {
            assert_eq!(place_of_byte(TEXT, TEXT.find(needle).unwrap()), expected, "{needle}");
        };
        check("one", (1, 1));
        check("zw", (2, 1));
        check("f 🦀", (2, 5));
        check(" x", (2, 8));
        check("last", (4, 1));
        assert_eq!(place_of_byte(TEXT, TEXT.len() + 100), (4, 5));
        assert_eq!(place_in_line(TEXT, 2, 7), (2, 6));
        assert_eq!(place_in_line(TEXT, 2, 0), (2, 1));
        assert_eq!(place_in_line(TEXT, 9, 9), (9, 1));
    }

    #[test]
    fn generated_positions_map_to_source_positions() {
        let mapping = |printed, written| Mapping { printed, written };
        // Units of UTF-16: the crab counts as two.
        let map = SourceMap::new(vec![mapping((1, 2), (1, 9)), mapping((0, 0), (0, 0))], TEXT.to_owned());
        let check = |line, byte_column, expected: Place| {
            assert_eq!(map.written("abc\nä🦀bc", line, byte_column), expected, "{line}:{byte_column}");
        };
        check(1, 1, (1, 1));
        check(1, 3, (1, 1));
        check(2, 7, (2, 9));
        check(2, 1, (2, 9));
        check(7, 1, (2, 9));
        assert_eq!(SourceMap::new(Vec::new(), String::new()).written("", 3, 4), (3, 4));
    }
}
