//! Parses the parts of a scenario file and collects the errors, each with its position and help.

use mainspring_kernel::{
    definition::nearest,
    diagnostic::{self, Diagnostic, Severity},
    document::{Document, Path},
    fix::Fix,
    plan::Decision,
    value::{Map, Value},
};

/// Words of other tools and of earlier guesses, with the keys of scenarios that they mean.
const SYNONYMS: [(&str, &str); 34] = [
    ("answer", "return"),
    ("answers", "effects"),
    ("approval", "decide"),
    ("approve", "decide"),
    ("arguments", "args"),
    ("context", "variables"),
    ("decision", "decide"),
    ("delay", "after"),
    ("deny", "decide"),
    ("description", "why"),
    ("err", "error"),
    ("error_code", "error_contains"),
    ("errors", "error_contains"),
    ("events", "inbox"),
    ("expected", "expect"),
    ("expects", "expect"),
    ("fail", "error"),
    ("failure", "error"),
    ("file", "definition"),
    ("inputs", "input"),
    ("mocks", "effects"),
    ("not_started", "absent_steps"),
    ("outputs", "output"),
    ("result", "return"),
    ("results", "effects"),
    ("returns", "return"),
    ("skipped_steps", "steps"),
    ("state", "status"),
    ("stubs", "effects"),
    ("title", "name"),
    ("user", "by"),
    ("value", "return"),
    ("vars", "variables"),
    ("workflow", "definition"),
];

/// Words that authors try for values, with the words of scenarios.
const WORDS: [(&str, &str); 16] = [
    ("accept", "approve"),
    ("approved", "approve"),
    ("canceled", "cancelled"),
    ("denied", "deny"),
    ("done", "completed"),
    ("error", "failed"),
    ("failure", "failed"),
    ("finished", "completed"),
    ("needs_approval", "waiting_approval"),
    ("ok", "completed"),
    ("passed", "completed"),
    ("reject", "deny"),
    ("rejected", "deny"),
    ("succeeded", "completed"),
    ("success", "completed"),
    ("successful", "completed"),
];

/// Returns the help for an unknown key: the key that was meant, and all known ones.
fn meant_instead(key: &str, keys: &[&str]) -> String {
    let synonym = SYNONYMS.iter().find(|(word, own)| word.eq_ignore_ascii_case(key) && keys.contains(own));
    let meant = synonym.map(|(_, own)| *own).or_else(|| nearest(key, keys.iter().copied()));
    let known = format!("known here: {}", keys.join(", "));
    match meant {
        Some(own) => format!("write `{own}`; {known}"),
        None => format!("{known} (`mainspring explain scenario`)"),
    }
}

/// The parser of one document: it collects errors up to a number instead of stopping at the first, and counts the others.
pub(super) struct Reader<'a> {
    document: &'a Document,
    problems_max: usize,
    pub(super) problems: Vec<Diagnostic>,
    pub(super) more_problems: usize,
}

/// A part of the document with its path.
#[derive(Clone)]
pub(super) struct Part<'a> {
    pub(super) value: &'a Value,
    pub(super) path: Path,
}

impl<'a> Part<'a> {
    pub(super) fn field(&self, key: &str) -> Option<Part<'a>> {
        Some(Part { value: self.value.get(key)?, path: self.path.key(key) })
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.value.get(key).is_some()
    }
}

impl<'a> Reader<'a> {
    pub(super) fn new(document: &'a Document, problems_max: usize) -> Self {
        Self { document, problems_max, problems: Vec::new(), more_problems: 0 }
    }

    pub(super) fn whole_document(&self) -> Part<'a> {
        Part { value: &self.document.value, path: Path::root() }
    }

    /// Returns a part as a separate document, with positions in the original file.
    pub(super) fn cut_out(&self, part: &Part<'a>) -> Document {
        let mut spot = self.document.spot.as_ref();
        for segment in part.path.segments() {
            spot = spot.and_then(|spot| spot.inside(segment)).map(|(_, spot)| spot);
        }
        Document { value: part.value.clone(), spot: spot.cloned() }
    }

    pub(super) fn problem(
        &mut self,
        code: &'static str,
        path: &Path,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        if self.is_full() {
            self.more_problems += 1;
            return;
        }
        let place = match code {
            diagnostic::UNKNOWN_KEY => self.document.key_place(path),
            _ => self.document.place(path),
        };
        let (severity, path, message, help) = (Severity::Error, path.clone(), message.into(), help.into());
        self.problems.push(Diagnostic { severity, code, path, place, message, help, fix: Fix::default() });
    }

    /// True if further errors are only counted.
    fn is_full(&self) -> bool {
        self.problems.len() >= self.problems_max
    }

    pub(super) fn wrong_kind(&mut self, part: &Part<'_>, wanted: &str) {
        let message = format!("this must be {wanted}, not {}", part.value.kind());
        self.problem(diagnostic::WRONG_KIND, &part.path, message, format!("write {wanted}"));
    }

    /// Returns the fields of an object that may have these keys and no other.
    pub(super) fn object(&mut self, part: &Part<'a>, keys: &[&str]) -> Option<&'a Map> {
        let Some(map) = part.value.as_map() else {
            self.wrong_kind(part, "an object");
            return None;
        };
        for key in map.keys().filter(|key| !keys.contains(&key.as_str())) {
            let message = format!("the key {key:?} means nothing here");
            // A help text that is not shown is not searched.
            let help = if self.is_full() { String::new() } else { meant_instead(key, keys) };
            self.problem(diagnostic::UNKNOWN_KEY, &part.path.key(key), message, help);
        }
        Some(map)
    }

    pub(super) fn missing(&mut self, part: &Part<'_>, key: &str, help: &str) {
        self.problem(diagnostic::MISSING_KEY, &part.path, format!("`{key}` is missing"), help);
    }

    pub(super) fn items(&mut self, part: &Part<'a>) -> Vec<Part<'a>> {
        let Some(items) = part.value.as_list() else {
            self.wrong_kind(part, "a list");
            return Vec::new();
        };
        items.iter().enumerate().map(|(at, value)| Part { value, path: part.path.index(at) }).collect()
    }

    pub(super) fn text(&mut self, part: &Part<'a>) -> Option<String> {
        let text = part.value.as_text().map(String::from);
        if text.is_none() {
            self.wrong_kind(part, "text");
        }
        text
    }

    pub(super) fn bool(&mut self, part: &Part<'a>) -> Option<bool> {
        let bool = part.value.as_bool();
        if bool.is_none() {
            self.wrong_kind(part, "true or false");
        }
        bool
    }

    /// Checks a key whose only permitted value is true.
    pub(super) fn only_true(&mut self, part: &Part<'a>) {
        if part.value.as_bool() != Some(true) {
            let message = format!("this can only be true, not {}", part.value.kind());
            self.problem(diagnostic::WRONG_VALUE, &part.path, message, "write true, or leave the key out");
        }
    }

    pub(super) fn whole(&mut self, part: &Part<'a>) -> Option<u64> {
        let whole = part.value.as_u64();
        if whole.is_none() {
            self.wrong_kind(part, "a whole number from 0");
        }
        whole
    }

    /// Parses a whole number from 1 that fits 32 bits: counts of steps and branches.
    pub(super) fn count(&mut self, part: &Part<'a>) -> Option<u32> {
        let count = self.whole(part)?;
        match u32::try_from(count) {
            Ok(count) if count > 0 => Some(count),
            _ => {
                let message = format!("{count} is out of range");
                self.problem(diagnostic::WRONG_VALUE, &part.path, message, format!("write 1 to {}", u32::MAX));
                None
            }
        }
    }

    pub(super) fn texts(&mut self, part: &Part<'a>) -> Vec<String> {
        self.items(part).iter().filter_map(|item| self.text(item)).collect()
    }

    /// Parses one word of a closed set.
    pub(super) fn word<T: Clone>(&mut self, part: &Part<'a>, words: &[(&str, T)]) -> Option<T> {
        let text = self.text(part)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, meaning)| meaning.clone());
        if found.is_none() {
            let known: Vec<_> = words.iter().map(|(word, _)| *word).collect();
            let meant = WORDS.iter().find(|(word, own)| word.eq_ignore_ascii_case(&text) && known.contains(own));
            let meant = meant.map(|(_, own)| *own).or_else(|| nearest(&text, known.iter().copied()));
            let meant = meant.map(|own| format!("write `{own}`; ")).unwrap_or_default();
            let help = format!("{meant}known here: {}", known.join(", "));
            self.problem(diagnostic::WRONG_VALUE, &part.path, format!("{text:?} is not known here"), help);
        }
        found
    }

    pub(super) fn decision(&mut self, part: &Part<'a>) -> Option<Decision> {
        self.word(part, &[Decision::Approve, Decision::Deny].map(|decision| (decision.name(), decision)))
    }

    /// Parses milliseconds, written with a unit: `1234ms`, `10s`, `5m`, `1h30m`, `3d`.
    pub(super) fn duration_ms(&mut self, part: &Part<'a>) -> Option<u64> {
        let text = self.text(part)?;
        let duration = duration_ms(&text);
        if duration.is_none() {
            let message = format!("{text:?} is no duration");
            self.problem(diagnostic::WRONG_VALUE, &part.path, message, "write it as 1234ms, 10s, 5m, 1h30m or 3d");
        }
        duration
    }
}

/// The units of durations, in milliseconds.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// Parses a duration of one or several parts, as `90s` and `1h30m`: each unit is smaller than the one before.
fn duration_ms(text: &str) -> Option<u64> {
    let (mut rest, mut sum_ms, mut unit_ms_before) = (text, 0u64, u64::MAX);
    while !rest.is_empty() || unit_ms_before == u64::MAX {
        let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        let unit = &rest[digits..];
        let unit = &unit[..unit.find(|character: char| !character.is_ascii_alphabetic()).unwrap_or(unit.len())];
        let unit_ms = UNITS.iter().find(|(name, _)| *name == unit)?.1;
        if unit_ms >= unit_ms_before {
            return None;
        }
        sum_ms = sum_ms.checked_add(rest[..digits].parse::<u64>().ok()?.checked_mul(unit_ms)?)?;
        (rest, unit_ms_before) = (&rest[digits + unit.len()..], unit_ms);
    }
    Some(sum_ms)
}

/// Formats milliseconds as scenarios write them, in the largest unit that is exact.
pub(crate) fn duration_text(ms: u64) -> String {
    match UNITS.into_iter().find(|(_, unit_ms)| ms > 0 && ms.is_multiple_of(*unit_ms)) {
        Some((unit, unit_ms)) => format!("{}{unit}", ms / unit_ms),
        None => format!("{ms}ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, ms) in
            [("0s", 0), ("1234ms", 1234), ("10s", 10_000), ("5m", 300_000), ("20h", 72_000_000), ("3d", 259_200_000)]
        {
            assert_eq!(duration_ms(text), Some(ms), "{text}");
            assert!(ms == 0 || duration_text(ms) == text, "{text}");
        }
        for (text, ms) in [("1h30m", 5_400_000), ("1m0s", 60_000), ("2h1m", 7_260_000)] {
            assert_eq!(duration_ms(text), Some(ms), "{text}");
        }
        let wrong = ["", "s", "10", "10 s", "-1s", "1.5s", "1w", "99999999999999999999s", "213503982335d"];
        for text in wrong.into_iter().chain(["1m1h", "1s1s", "1h30", "h1m"]) {
            assert_eq!(duration_ms(text), None, "{text}");
        }
        assert_eq!(duration_text(90_000), "90s");
        assert_eq!(duration_text(0), "0ms");
    }
}
