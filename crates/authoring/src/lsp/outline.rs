//! A tolerant reader of YAML and JSON with positions, for text that is being typed.
//!
//! It recognizes keys, items and scalars of block and flow style. Text that it does not understand is skipped, so a
//! mistake in one line does not hide the others. The compiler's own parser decides about correctness.

use std::ops::Range;

/// Maximum nesting. Deeper text is read as if it were on this level.
const DEPTH_MAX: usize = 100;

/// A key with its value, an item of a list, or a lone scalar.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    /// The number of the entry around it; `None` at the root.
    pub(super) parent: Option<usize>,
    /// The key; `None` for an item.
    pub(super) key: Option<String>,
    /// Bytes of the key; for an item, of its first byte.
    pub(super) key_at: Range<usize>,
    /// The scalar; `None` for objects and lists.
    pub(super) scalar: Option<String>,
    /// Bytes of the value, without quotes for a scalar. Empty if there is none.
    pub(super) value_at: Range<usize>,
}

/// All entries of a text, in its order.
#[derive(Debug, Clone, Default)]
pub(super) struct Outline {
    pub(super) entries: Vec<Entry>,
}

impl Outline {
    pub(super) fn read(text: &str) -> Self {
        let mut reader = Reader { text, entries: Vec::new() };
        let first = text.len() - text.trim_start().len();
        match text.as_bytes().get(first) {
            Some(b'{' | b'[') => {
                reader.flow(first, None, 0);
            }
            _ => reader.block(),
        }
        Self { entries: reader.entries }
    }

    /// Returns the entries directly inside of another one.
    pub(super) fn inside(&self, parent: Option<usize>) -> impl Iterator<Item = (usize, &Entry)> {
        // Entries follow their parents.
        let from = parent.map_or(0, |parent| parent + 1);
        self.entries.iter().enumerate().skip(from).filter(move |(_, entry)| entry.parent == parent)
    }

    /// Returns the key of the entry, or for an item that of its list.
    pub(super) fn key_of(&self, entry: Option<usize>) -> Option<&str> {
        let entry = self.entries.get(entry?)?;
        match &entry.key {
            Some(key) => Some(key),
            None => self.key_of(entry.parent),
        }
    }

    /// Returns the scalar of a field of an object.
    pub(super) fn field(&self, object: Option<usize>, key: &str) -> Option<&Entry> {
        self.siblings(object).into_iter().map(|at| &self.entries[at]).find(|entry| entry.key.as_deref() == Some(key))
    }

    /// Returns the fields of an object. They follow it, and the first entry of another object at a lower level ends them.
    fn siblings(&self, object: Option<usize>) -> Vec<usize> {
        let from = object.map_or(0, |object| object + 1);
        let mut found = Vec::new();
        for at in from..self.entries.len() {
            let parent = self.entries[at].parent;
            if parent == object {
                found.push(at);
            } else if object.is_some() && parent < object {
                break;
            }
        }
        found
    }

    /// Returns the entry whose key or value has the byte, the innermost first.
    pub(super) fn at(&self, offset: usize) -> Option<(usize, &Entry)> {
        let has = |range: &Range<usize>| range.start <= offset && offset <= range.end && !range.is_empty();
        let entries = self.entries.iter().enumerate();
        entries.rev().find(|(_, entry)| {
            has(&entry.key_at) && entry.key.is_some() || entry.scalar.is_some() && has(&entry.value_at)
        })
    }
}

struct Reader<'t> {
    text: &'t str,
    entries: Vec<Entry>,
}

impl Reader<'_> {
    fn push(&mut self, parent: Option<usize>, key: Option<String>, key_at: Range<usize>) -> usize {
        let value_at = key_at.end..key_at.end;
        self.entries.push(Entry { parent, key, key_at, scalar: None, value_at });
        self.entries.len() - 1
    }

    /// Reads block style, line by line, with a stack of columns.
    fn block(&mut self) {
        let mut stack: Vec<(usize, usize)> = Vec::new();
        let mut offset = 0;
        while offset < self.text.len() {
            let end = self.text[offset..].find('\n').map_or(self.text.len(), |length| offset + length);
            let line = &self.text[offset..end];
            let mut column = line.len() - line.trim_start_matches(' ').len();
            let mut next = end + 1;
            if !line.trim().is_empty() && !line.trim_start().starts_with('#') && line.trim() != "---" {
                loop {
                    let rest = &line[column..];
                    while stack.last().is_some_and(|(other, _)| {
                        *other > column || *other == column && !is_item_of(rest, &self.entries, stack.last())
                    }) {
                        stack.pop();
                    }
                    let parent = stack.last().map(|(_, entry)| *entry);
                    let at = offset + column;
                    if rest == "-" || rest.starts_with("- ") {
                        let entry = self.push(parent, None, at..at + 1);
                        stack.push((column, entry));
                        let skipped = 1 + rest[1..].len() - rest[1..].trim_start_matches(' ').len();
                        column += skipped;
                        if column >= line.len() {
                            break;
                        }
                        continue;
                    }
                    next = self.content(at, end, parent, column, &mut stack).max(next);
                    break;
                }
            }
            offset = next;
        }
    }

    /// Reads the rest of a line after its dashes. Returns the offset of the next line.
    fn content(
        &mut self,
        at: usize,
        end: usize,
        parent: Option<usize>,
        column: usize,
        stack: &mut Vec<(usize, usize)>,
    ) -> usize {
        let rest = &self.text[at..end];
        if rest.starts_with(['{', '[']) {
            let after = self.flow(at, parent, 0);
            return self.line_after(after);
        }
        let Some((key, length)) = key_of(rest) else {
            self.scalar(parent, at, end);
            return end + 1;
        };
        let entry = self.push(parent, Some(key), at..at + length);
        stack.push((column, entry));
        let colon = at + rest[length..].find(':').map_or(length, |colon| length + colon) + 1;
        let value = &self.text[colon..end];
        let start = colon + value.len() - value.trim_start().len();
        let value = self.text[start.min(end)..end].trim_end();
        let margin = self.text[..at].rfind('\n').map_or(at, |line| at - line - 1);
        match value.as_bytes().first() {
            None | Some(b'#') => {
                self.entries[entry].value_at = colon..colon;
                end + 1
            }
            Some(b'{' | b'[') => {
                let after = self.flow(start, Some(entry), 0);
                self.entries[entry].value_at = start..after;
                self.line_after(after)
            }
            Some(b'|' | b'>') => {
                let after = self.block_scalar(end + 1, margin);
                self.entries[entry].value_at = start..after;
                after
            }
            Some(_) => {
                let (scalar, range) = plain(value, start);
                self.entries[entry].scalar = Some(scalar);
                self.entries[entry].value_at = range;
                end + 1
            }
        }
    }

    fn scalar(&mut self, parent: Option<usize>, at: usize, end: usize) {
        let (scalar, range) = plain(self.text[at..end].trim_end(), at);
        // The scalar of an item is the value of the item itself.
        if let Some(item) = parent.filter(|parent| self.entries[*parent].key.is_none()) {
            self.entries[item].scalar = Some(scalar);
            self.entries[item].value_at = range;
        }
    }

    fn line_after(&self, offset: usize) -> usize {
        self.text[offset..].find('\n').map_or(self.text.len(), |length| offset + length + 1)
    }

    /// Skips the lines of a block scalar: those that are empty or further right than its key.
    fn block_scalar(&self, mut offset: usize, margin: usize) -> usize {
        while offset < self.text.len() {
            let next = self.line_after(offset);
            let line = &self.text[offset..next];
            let column = line.len() - line.trim_start_matches(' ').len();
            if !line.trim().is_empty() && column <= margin {
                break;
            }
            offset = next;
        }
        offset
    }

    /// Reads flow style from a bracket. Returns the offset after the closing one, or that of the end of the text.
    fn flow(&mut self, at: usize, parent: Option<usize>, depth: usize) -> usize {
        let bytes = self.text.as_bytes();
        let is_object = bytes[at] == b'{';
        let mut offset = at + 1;
        loop {
            offset = self.skip_blank(offset);
            let Some(byte) = bytes.get(offset) else { return self.text.len() };
            match byte {
                b'}' | b']' => return offset + 1,
                b',' | b':' => offset += 1,
                b'{' | b'[' => {
                    let entry = self.push(parent, None, offset..offset + 1);
                    offset = if depth < DEPTH_MAX { self.flow(offset, Some(entry), depth + 1) } else { offset + 1 };
                }
                _ => {
                    let (scalar, range, after) = self.token(offset);
                    let colon = self.skip_blank(after);
                    let is_key = is_object && bytes.get(colon) == Some(&b':');
                    if is_key {
                        let entry = self.push(parent, Some(scalar), range);
                        offset = self.flow_value(colon + 1, entry, depth);
                    } else {
                        let entry = self.push(parent, None, range.start..range.start);
                        self.entries[entry].scalar = Some(scalar);
                        self.entries[entry].value_at = range;
                        offset = after.max(offset + 1);
                    }
                }
            }
        }
    }

    fn flow_value(&mut self, from: usize, entry: usize, depth: usize) -> usize {
        let offset = self.skip_blank(from);
        match self.text.as_bytes().get(offset) {
            None | Some(b',' | b'}' | b']') => {
                self.entries[entry].value_at = from.min(offset)..from.min(offset);
                offset
            }
            Some(b'{' | b'[') if depth < DEPTH_MAX => {
                let after = self.flow(offset, Some(entry), depth + 1);
                self.entries[entry].value_at = offset..after;
                after
            }
            Some(_) => {
                let (scalar, range, after) = self.token(offset);
                self.entries[entry].scalar = Some(scalar);
                self.entries[entry].value_at = range;
                after.max(offset + 1)
            }
        }
    }

    fn skip_blank(&self, mut offset: usize) -> usize {
        let bytes = self.text.as_bytes();
        while let Some(byte) = bytes.get(offset) {
            match byte {
                b' ' | b'\t' | b'\n' | b'\r' => offset += 1,
                b'#' => offset = self.line_after(offset),
                _ => break,
            }
        }
        offset
    }

    /// Reads a scalar in flow style: its text, its bytes without quotes, and the offset after it.
    fn token(&self, at: usize) -> (String, Range<usize>, usize) {
        let bytes = self.text.as_bytes();
        if let quote @ (b'"' | b'\'') = bytes[at] {
            let end = quoted_end(bytes, at, quote);
            let inside = at + 1..end;
            return (self.text[inside.clone()].to_string(), inside, (end + 1).min(bytes.len()));
        }
        let mut end = at;
        while let Some(byte) = bytes.get(end) {
            let is_colon = *byte == b':' && bytes.get(end + 1).is_none_or(|next| b" \t\r\n,}]".contains(next));
            if matches!(byte, b',' | b'}' | b']' | b'\n' | b'\r') || is_colon {
                break;
            }
            end += 1;
        }
        let text = self.text[at..end].trim_end();
        (text.to_string(), at..at + text.len(), end)
    }
}

/// True for a dash at the column of a key whose list it continues, as YAML permits.
fn is_item_of(rest: &str, entries: &[Entry], top: Option<&(usize, usize)>) -> bool {
    let is_dash = rest == "-" || rest.starts_with("- ");
    is_dash && top.is_some_and(|(_, entry)| entries[*entry].key.is_some())
}

fn quoted_end(bytes: &[u8], at: usize, quote: u8) -> usize {
    let mut end = at + 1;
    while end < bytes.len() && bytes[end] != quote {
        end += if quote == b'"' && bytes[end] == b'\\' { 2 } else { 1 };
    }
    end.min(bytes.len())
}

/// Returns the key at the beginning of a line and its length with quotes.
fn key_of(rest: &str) -> Option<(String, usize)> {
    let bytes = rest.as_bytes();
    if let quote @ (b'"' | b'\'') = *bytes.first()? {
        let end = quoted_end(bytes, 0, quote);
        let is_key = rest.get(end + 1..)?.trim_start().starts_with(':');
        return is_key.then(|| (rest[1..end].to_string(), end + 1));
    }
    let colon = rest
        .match_indices(':')
        .map(|(at, _)| at)
        .find(|at| bytes.get(at + 1).is_none_or(|next| b" \t\r".contains(next)))?;
    let key = rest[..colon].trim_end();
    (!key.is_empty() && !key.contains(['{', '[', '"', '#'])).then(|| (key.to_string(), key.len()))
}

/// Returns a scalar in block style without quotes and without a comment, and its bytes.
fn plain(value: &str, at: usize) -> (String, Range<usize>) {
    let bytes = value.as_bytes();
    if let Some(quote @ (b'"' | b'\'')) = bytes.first().copied() {
        let end = quoted_end(bytes, 0, quote);
        return (value[1..end].to_string(), at + 1..at + end);
    }
    let end = value.find(" #").unwrap_or(value.len());
    let text = value[..end].trim_end();
    (text.to_string(), at..at + text.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let outline = Outline::read(text);
        let shown: Vec<String> = outline
            .entries
            .iter()
            .map(|entry| {
                let scalar = entry.scalar.as_ref().map(|scalar| format!("={scalar}")).unwrap_or_default();
                if let Some(scalar) = &entry.scalar {
                    assert_eq!(&text[entry.value_at.clone()], scalar);
                }
                let parent = entry.parent.map_or(String::new(), |parent| format!("{parent}/"));
                format!("{parent}{}{scalar}", entry.key.as_deref().unwrap_or("-"))
            })
            .collect();
        assert_eq!(shown.join(" "), expected, "{text}");
    }

    #[test]
    fn forms() {
        check("a: 1\nb:\n  c: x y # z\n", "a=1 b 1/c=x y");
        check(
            "steps:\n  - id: a\n    type: bash\n  - {id: b, type: \"tool\"}\n",
            "steps 0/- 1/id=a 1/type=bash 0/- 4/id=b 4/type=tool",
        );
        check("steps:\n- id: a\n- id: b\nname: x\n", "steps 0/- 1/id=a 0/- 3/id=b name=x");
        check("a:\n  command: |\n    b: 1\n\n    c: 2\n  d: 3\n", "a 0/command 0/d=3");
        check("{\"a\": [1, {\"b\": 2}], \"c\": \"x:y\"}", "a 0/-=1 0/- 2/b=2 c=x:y");
        check("steps:\n  - id: a\n    ty\nname: {", "steps 0/-=ty 1/id=a name");
        check("needs: [a, b]\nurl: http://x/y", "needs 0/-=a 0/-=b url=http://x/y");
        check("", "");
        check("- - a", "- 0/-=a");
    }

    #[test]
    fn hostile_text_causes_no_panic() {
        for text in ["{{{{", "[", "\"", "a: \"", "- -", "-", "{a: [}", "é: \"é\\", "}", "a: {b: 'c", ":", ": :", "{:}"]
        {
            Outline::read(text);
        }
        Outline::read(&"[".repeat(100_000));
        Outline::read(&"- ".repeat(10_000));
    }
}
