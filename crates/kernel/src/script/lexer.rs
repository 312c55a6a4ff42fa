//! The walk over a script, and what means the same in most places: quotes, `$`, backslashes, comments.
//!
//! One pass, left to right, with the open levels on a stack of our own. Each step consumes at least one byte, or closes
//! or finishes something; what is decided about marks that are already behind is decided by ranges.

use alloc::{collections::BTreeSet, vec, vec::Vec};
use core::ops::Range;

use super::{
    Place,
    command::{Inputs, Variables},
    external::Calls,
    here_document::HereDocument,
    marks::{Mark, Marked},
    nesting::{DEPTH_MAX, ExpressionEnd, Frame, Kind, Word},
    written::Written,
};

/// How a reference is written where it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Outside quotes.
    Bare,
    /// Inside double quotes.
    Double,
    /// Inside single quotes.
    Single,
}

/// What is decided about one mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It can stand there.
    Quoted(Form),
    /// It cannot.
    Refused(Place),
}

/// The walk.
pub(super) struct Lexer<'a> {
    pub(super) text: &'a [u8],
    marks: &'a [Mark],
    /// One for each mark that was met; so its length is the number of the next mark.
    verdicts: Vec<Verdict>,
    /// The largest range of marks that was refused as a whole, so that no mark is visited again and again.
    settled: Range<usize>,
    pub(super) at: usize,
    /// Never empty; the first is the script.
    pub(super) frames: Vec<Frame>,
    /// Here-documents whose lines come after this one.
    pub(super) pending: Vec<HereDocument>,
    pub(super) variables: Variables,
    pub(super) inputs: Inputs,
    pub(super) calls: Calls,
    /// Where arithmetic stands.
    computed: Vec<Range<usize>>,
    /// Whether the script runs or evaluates an expansion as code.
    pub(super) evaluates_expansions: bool,
    pub(super) written: Written,
}

impl<'a> Lexer<'a> {
    pub(super) fn new(marked: &'a Marked) -> Self {
        Self {
            text: marked.text.as_bytes(),
            marks: &marked.marks,
            verdicts: Vec::with_capacity(marked.marks.len()),
            settled: 0..0,
            at: 0,
            frames: vec![Frame::new(Kind::Script, None, 0, None)],
            pending: Vec::new(),
            variables: Variables::new(),
            inputs: Inputs::default(),
            calls: Calls::default(),
            computed: Vec::new(),
            evaluates_expansions: false,
            written: Written::default(),
        }
    }

    /// Reads the script to its end and gives one verdict for each mark.
    pub(super) fn run(mut self) -> Vec<Verdict> {
        if self.text.contains(&0) {
            // No shell can be given such a text whole.
            self.lose(Place::Unclear);
        }
        while self.at < self.text.len() {
            self.step();
        }
        self.finish();
        self.verdicts
    }

    fn finish(&mut self) {
        // The last word may close something (`esac`, `]]`).
        while self.top().word.is_some() && self.top().kind.has_words() {
            self.finish_word();
        }
        if let Some(open) = self.frames.get(1) {
            let first = open.first_mark;
            self.refuse(first..self.verdicts.len(), Place::Unterminated);
        }
        self.frames.truncate(1);
        self.finish_word();
        self.frames.truncate(1);
        self.end_command();
        let inputs = core::mem::take(&mut self.inputs);
        for marks in inputs.marks.into_iter().filter(|_| inputs.is_code) {
            self.refuse(marks, Place::InnerScript);
        }
        let calls = core::mem::take(&mut self.calls);
        let variables = core::mem::take(&mut self.variables);
        if self.evaluates_expansions {
            let reached: Vec<_> = calls.positional().chain(variables.assigned_marks()).collect();
            for marks in reached {
                self.refuse(marks, Place::EvaluatedArgument);
            }
        }
        let names = self.computed_names();
        let is_computed = |name: &[u8]| names.contains(name);
        let mut computed: Vec<_> = variables.assigned_where(is_computed).collect();
        if names.iter().any(|name| name.starts_with(b"$")) {
            computed.extend(calls.positional());
        }
        for marks in computed {
            self.refuse(marks, Place::EvaluatedVariable);
        }
        for (marks, place) in calls.refused() {
            self.refuse(marks, place);
        }
        for (marks, place) in variables.evaluated() {
            self.refuse(marks, place);
        }
        for marks in core::mem::take(&mut self.written).run(self.verdicts.len()) {
            self.refuse(marks, Place::WrittenCode);
        }
    }

    /// Names of variables that stand in arithmetic: bash evaluates their values as expressions. A name that begins with
    /// `$` is that of a positional parameter.
    fn computed_names(&self) -> BTreeSet<&'a [u8]> {
        let text = self.text;
        let mut names = BTreeSet::new();
        for range in &self.computed {
            let part = &text[range.start..range.end.min(text.len())];
            let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
            let words = part.split(move |byte| !is_letter(byte));
            names.extend(words.filter(|word| word.first().is_some_and(|byte| !byte.is_ascii_digit())));
            names.extend(part.windows(2).filter(|pair| pair[0] == b'$' && b"123456789@*".contains(&pair[1])));
            names
                .extend(part.windows(3).filter(|three| three.starts_with(b"${") && b"123456789@*".contains(&three[2])));
        }
        names
    }

    /// Notes that what stands between two places is evaluated as an expression.
    pub(super) fn compute(&mut self, range: Range<usize>) {
        self.computed.push(range);
    }

    fn step(&mut self) {
        match self.top().kind {
            Kind::Double => self.step_double(),
            Kind::Parameter { quoted } => self.step_parameter(quoted),
            Kind::Expression { end, open } => self.step_expression(end, open),
            kind => self.step_words(kind),
        }
    }

    /// A step where a word can stand, outside quotes.
    fn step_words(&mut self, kind: Kind) {
        if self.mark_at(self.at).is_some() {
            return self.meet(Form::Bare);
        }
        match self.text[self.at] {
            b'\\' => self.backslash(),
            b'\'' => self.single_quotes(),
            b'"' => self.double_quotes(None),
            b'`' => self.backquotes(),
            b'$' => self.dollar(false),
            byte => match kind {
                Kind::Case => self.step_case(byte),
                Kind::Conditional { parentheses } => self.step_conditional(byte, parentheses),
                Kind::Compound => self.step_compound(byte),
                Kind::Glob { parentheses } => self.step_glob(byte, parentheses),
                _ => self.step_list(byte),
            },
        }
    }

    fn step_double(&mut self) {
        if self.mark_at(self.at).is_some() {
            return self.meet(Form::Double);
        }
        match self.text[self.at] {
            b'"' => {
                self.at += 1;
                self.frames.pop();
            }
            b'\\' => self.escape(),
            b'`' => self.backquotes(),
            b'$' => self.dollar(true),
            byte => self.literal(byte),
        }
    }

    fn step_parameter(&mut self, quoted: bool) {
        if self.mark_at(self.at).is_some() {
            return self.meet(Form::Bare);
        }
        match self.text[self.at] {
            b'}' => self.close_parameter(),
            b'\\' => self.escape(),
            // Inside double quotes it depends on the operator whether it is a quote.
            b'\'' if quoted => self.lose(Place::Unclear),
            b'\'' => self.single_quotes(),
            b'"' => self.double_quotes(None),
            b'`' => self.backquotes(),
            b'$' if matches!(self.peek(1), Some(b'\'' | b'"')) && quoted => self.lose(Place::Unclear),
            b'$' => self.dollar(quoted),
            b'<' | b'>' if self.peek(1) == Some(b'(') => self.lose(Place::Unclear),
            _ => self.at += 1,
        }
    }

    /// `${a[x]}`, `${a:x}`, `${!x}` and `${x@P}` evaluate the value of `x`.
    fn close_parameter(&mut self) {
        let begin = self.top().begin;
        let text = &self.text[begin..self.at];
        let is_value = |pair: &[u8]| pair[0] == b':' && !b"-=?+".contains(&pair[1]);
        let part = match text.windows(2).position(|pair| pair[0] == b'[' || is_value(pair)) {
            _ if text.starts_with(b"!") || text.windows(2).any(|pair| pair == b"@P") => Some(0),
            found => found,
        };
        if let Some(part) = part {
            self.computed.push(begin + part..self.at);
        }
        self.at += 1;
        self.frames.pop();
    }

    fn step_expression(&mut self, end: ExpressionEnd, open: usize) {
        if self.mark_at(self.at).is_some() {
            return self.meet(Form::Bare);
        }
        let (opener, closer) = match end {
            ExpressionEnd::Command | ExpressionEnd::Expansion => (b'(', b')'),
            ExpressionEnd::Bracket | ExpressionEnd::Subscript => (b'[', b']'),
        };
        match self.text[self.at] {
            b'\\' => self.escape(),
            b'\'' if end == ExpressionEnd::Subscript => self.single_quotes(),
            // Shells differ in whether this is a quote in an expression.
            b'\'' => self.lose(Place::Unclear),
            b'"' => self.double_quotes(None),
            b'`' => self.backquotes(),
            b'$' if matches!(self.peek(1), Some(b'\'' | b'"')) => self.lose(Place::Unclear),
            b'$' => self.dollar(true),
            byte if byte == opener => {
                self.at += 1;
                self.set_kind(Kind::Expression { end, open: open + 1 });
            }
            byte if byte == closer && open > 0 => {
                self.at += 1;
                self.set_kind(Kind::Expression { end, open: open - 1 });
            }
            byte if byte == closer => self.close_expression(end),
            _ => self.at += 1,
        }
    }

    fn close_expression(&mut self, end: ExpressionEnd) {
        let is_double = matches!(end, ExpressionEnd::Command | ExpressionEnd::Expansion);
        if is_double && self.peek(1) != Some(b')') {
            // `((a); b)` is no expression but two subshells, and is to be read again from its start.
            return self.lose(Place::Unclear);
        }
        self.computed.push(self.top().begin..self.at);
        self.at += if is_double { 2 } else { 1 };
        self.frames.pop();
    }

    /// A backslash outside quotes.
    fn backslash(&mut self) {
        if self.peek(1) != Some(b'\n') {
            if let Some(word) = self.word() {
                word.is_quoted = true;
            }
            return self.escape();
        }
        let before = self.at.checked_sub(1).map(|at| self.text[at]);
        let after = self.peek(2);
        let is_space = |byte: Option<u8>| byte.is_none_or(|byte| matches!(byte, b' ' | b'\t' | b'\n'));
        let is_letter = |byte: Option<u8>| byte.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte >= 0x80);
        let is_operator = |byte: Option<u8>| byte.is_some_and(|byte| b"|&;()<>".contains(&byte));
        let joins_letters = is_letter(before) && is_letter(after);
        let joins_tokens = (is_operator(before) && is_letter(after)) || (is_letter(before) && is_operator(after));
        if is_space(before) || is_space(after) || joins_letters || joins_tokens {
            self.at += 2;
        } else {
            // The two sides may be one operator, which nobody writes in two lines.
            self.lose(Place::Unclear);
        }
    }

    /// A backslash and what follows it, which is literal.
    fn escape(&mut self) {
        self.at += 1;
        if let Some(mark) = self.mark_at(self.at) {
            return self.skip(mark.end, Place::AfterBackslash);
        }
        match self.peek(0) {
            None => {}
            Some(b'\n') => self.at += 1,
            Some(byte) => self.literal(byte),
        }
    }

    fn single_quotes(&mut self) {
        let first = self.verdicts.len();
        self.quote_word();
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            if self.mark_at(self.at).is_some() {
                self.meet(Form::Single);
                continue;
            }
            match byte {
                b'\'' => return self.at += 1,
                // It escapes nothing here, but who writes `\@` means something by it.
                b'\\' if self.mark_at(self.at + 1).is_some() => self.escape(),
                b'\\' if self.peek(1) == Some(b'\\') => {
                    self.literal(b'\\');
                    self.literal(b'\\');
                }
                byte => self.literal(byte),
            }
        }
        self.refuse(first..self.verdicts.len(), Place::Unterminated);
        self.lose(Place::Unterminated);
    }

    fn double_quotes(&mut self, refused: Option<Place>) {
        self.quote_word();
        self.at += 1;
        self.open(Kind::Double, refused);
    }

    /// Backquotes end at the next one without a backslash, whatever is between.
    fn backquotes(&mut self) {
        self.expand_word();
        self.raw_until(b'`', Place::Backquotes);
    }

    /// Skips from an opening byte to its closing one; a backslash takes the next byte with it.
    fn raw_until(&mut self, closer: u8, place: Place) {
        let mut end = self.at + 1;
        while let Some(byte) = self.text.get(end) {
            match *byte {
                b'\\' => end += 2,
                byte if byte == closer => return self.skip(end + 1, place),
                _ => end += 1,
            }
        }
        self.skip(self.text.len(), place);
        self.lose(Place::Unterminated);
    }

    /// `$` and what belongs to it. `quoted` says whether single and double quotes after it are literal or the end.
    fn dollar(&mut self, quoted: bool) {
        if let Some(mark) = self.mark_at(self.at + 1) {
            self.expand_word();
            return self.skip(mark.end, Place::AfterDollar);
        }
        let Some(next) = self.peek(1) else { return self.literal(b'$') };
        match next {
            b'\'' if !quoted => {
                self.expand_whole();
                self.at += 1;
                self.raw_until(b'\'', Place::EscapedString);
            }
            b'"' if !quoted => {
                self.expand_whole();
                self.at += 1;
                self.double_quotes(Some(Place::TranslatedString));
            }
            b'(' if self.peek(2) == Some(b'(') => self.open_expansion(3, expression(ExpressionEnd::Expansion)),
            b'(' => self.open_expansion(2, Kind::Substitution),
            b'[' => self.open_expansion(2, expression(ExpressionEnd::Bracket)),
            // Newer shells run commands in `${ …; }` and `${| …; }`.
            b'{' if self.peek(2).is_none_or(|byte| b" \t\n|(\\".contains(&byte)) => self.lose(Place::Unclear),
            b'{' => self.open_expansion(2, Kind::Parameter { quoted }),
            b'\\' if self.peek(2) == Some(b'\n') => self.lose(Place::Unclear),
            b'$' | b'!' | b'?' | b'#' | b'@' | b'*' | b'-' | b'0'..=b'9' => {
                self.expand_word();
                self.at += 2;
            }
            b'_' | b'a'..=b'z' | b'A'..=b'Z' => {
                self.expand_word();
                self.at += 2;
                while self.peek(0).is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
                    self.at += 1;
                }
            }
            _ => self.literal(b'$'),
        }
    }

    fn open_expansion(&mut self, length: usize, kind: Kind) {
        let is_spread = self.top().kind != Kind::Double;
        match self.word() {
            Some(word) if kind == Kind::Substitution => word.substitute(is_spread),
            Some(word) => word.expand(is_spread),
            None => {}
        }
        self.at += length;
        let place = match kind {
            Kind::Parameter { .. } => Some(Place::ParameterExpansion),
            Kind::Expression { .. } => Some(Place::Arithmetic),
            _ => None,
        };
        self.open(kind, place);
    }

    /// From `#` to the end of the line, which stays.
    pub(super) fn comment(&mut self) {
        let rest = &self.text[self.at..];
        let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
        self.skip(self.at + length, Place::Comment);
    }

    /// `<( )` and `>( )`, as a part of a word.
    pub(super) fn process_substitution(&mut self) {
        if self.peek(2) == Some(b'(') {
            // Bash tries an expression first, as after `$`.
            return self.lose(Place::Unclear);
        }
        self.expand_word();
        if let Some(word) = self.word() {
            word.has_process = true;
        }
        self.at += 2;
        self.open(Kind::Substitution, None);
    }

    /// Opens a level; `refused` says why no reference can stand in it.
    pub(super) fn open(&mut self, kind: Kind, refused: Option<Place>) {
        if self.frames.len() >= DEPTH_MAX {
            return self.lose(Place::TooDeep);
        }
        let top = self.top();
        let mut frame = Frame::new(kind, top.refused.or(refused), self.verdicts.len(), top.pipeline.input_from());
        frame.begin = self.at;
        self.frames.push(frame);
    }

    /// Gives up: refuses all that follows, and what stands in anything that is still open.
    pub(super) fn lose(&mut self, place: Place) {
        let script = &self.frames[0];
        let first = script.groups.first().unwrap_or(&script.pipeline).first_mark;
        self.refuse(first..self.verdicts.len(), place);
        self.skip(self.text.len(), place);
    }

    /// Refuses marks that were met already; the first reason given stays.
    pub(super) fn refuse(&mut self, marks: Range<usize>, place: Place) {
        let contains = marks.start <= self.settled.start && self.settled.end <= marks.end;
        let parts = if contains {
            [marks.start..self.settled.start, self.settled.end..marks.end]
        } else {
            [marks.clone(), 0..0]
        };
        for part in parts {
            for verdict in &mut self.verdicts[part] {
                if matches!(verdict, Verdict::Quoted(_)) {
                    *verdict = Verdict::Refused(place);
                }
            }
        }
        if marks.len() > self.settled.len() {
            self.settled = marks;
        }
    }

    /// Goes to a place and refuses the marks on the way.
    pub(super) fn skip(&mut self, end: usize, place: Place) {
        while let Some(mark) = self.marks.get(self.verdicts.len())
            && mark.offset < end
        {
            self.verdicts.push(Verdict::Refused(place));
        }
        self.at = end.min(self.text.len());
    }

    /// Takes the mark at the present place.
    fn meet(&mut self, form: Form) {
        let refused = self.top().refused;
        if let Some(word) = self.word() {
            word.refer();
        }
        if let Some(mark) = self.marks.get(self.verdicts.len()) {
            self.at = mark.end;
            self.verdicts.push(refused.map_or(Verdict::Quoted(form), Verdict::Refused));
        }
    }

    /// Takes one byte that stands for itself.
    pub(super) fn literal(&mut self, byte: u8) {
        let marks_met = self.verdicts.len();
        if let Some(word) = self.word() {
            word.push(byte, marks_met);
        }
        self.at += 1;
    }

    fn quote_word(&mut self) {
        if let Some(word) = self.word() {
            word.is_quoted = true;
        }
    }

    /// An expansion that is one word or a part of one, whatever it gives.
    fn expand_whole(&mut self) {
        if let Some(word) = self.word() {
            word.expand(false);
        }
    }

    fn expand_word(&mut self) {
        let is_spread = self.top().kind != Kind::Double;
        if let Some(word) = self.word() {
            word.expand(is_spread);
        }
    }

    /// The word that the present place is a part of; `None` inside what is opaque. Begins one if there is none.
    pub(super) fn word(&mut self) -> Option<&mut Word> {
        let marks_met = self.verdicts.len();
        let inside = |frame: &&mut Frame| matches!(frame.kind, Kind::Double | Kind::Glob { .. });
        let frame = self.frames.iter_mut().rev().find(|frame| !inside(frame))?;
        frame.kind.has_words().then(|| frame.word.get_or_insert_with(|| Word::new(marks_met)))
    }

    /// The next mark if it begins at this place.
    pub(super) fn mark_at(&self, at: usize) -> Option<Mark> {
        self.marks.get(self.verdicts.len()).copied().filter(|mark| mark.offset == at)
    }

    /// How many marks were met.
    pub(super) fn marks_met(&self) -> usize {
        self.verdicts.len()
    }

    /// The byte that is `ahead` of the present one.
    pub(super) fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.get(self.at + ahead).copied()
    }

    pub(super) fn top(&self) -> &Frame {
        &self.frames[self.frames.len() - 1]
    }

    pub(super) fn top_mut(&mut self) -> &mut Frame {
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    pub(super) fn set_kind(&mut self, kind: Kind) {
        self.top_mut().kind = kind;
    }
}

/// An expression that was just opened.
pub(super) fn expression(end: ExpressionEnd) -> Kind {
    Kind::Expression { end, open: 0 }
}
