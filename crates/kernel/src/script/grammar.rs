//! Lists of commands: the operators between words, and what ends a command.
//!
//! An operator that ends a word finishes the word first and is read again in the next step, because a finished word can
//! change the level that the operator belongs to (`esac` does).

use super::{
    Place,
    lexer::{Lexer, expression},
    nesting::{ExpressionEnd, Kind, Redirect, Stage, Word, is_identifier},
};

impl Lexer<'_> {
    /// One byte outside quotes in a list of commands.
    pub(super) fn step_list(&mut self, byte: u8) {
        let has_word = self.top().word.is_some();
        match byte {
            b' ' | b'\t' if !has_word => self.at += 1,
            b'<' | b'>' if self.peek(1) == Some(b'(') => self.process_substitution(),
            b'<' | b'>' => self.redirection(),
            b'(' if has_word => self.parenthesis_in_word(),
            b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' | b')' if has_word => self.finish_word(),
            b'\n' => self.newline(),
            b';' => self.semicolon(),
            b'&' => self.ampersand(),
            b'|' => self.pipe(),
            b'(' => self.open_parenthesis(),
            b')' => self.close_parenthesis(),
            b'#' if !has_word => self.comment(),
            b'[' if self.is_subscript() => {
                self.at += 1;
                self.open(expression(ExpressionEnd::Subscript), Some(Place::Subscript));
            }
            b'?' | b'*' | b'+' | b'@' | b'!' if self.peek(1) == Some(b'(') => self.open_glob(),
            b'{' if self.peek(1) != Some(b'}') => {
                if let Some(word) = self.word() {
                    word.is_braced = true;
                }
                self.literal(byte);
            }
            byte => self.literal(byte),
        }
    }

    /// Whether the next word can be an assignment or a command's name.
    fn begins_command(&self) -> bool {
        let frame = self.top();
        let stages = [Stage::Start, Stage::Timed, Stage::Prefix, Stage::Coprocess, Stage::CoprocessBody];
        frame.redirect.is_none() && stages.contains(&frame.stage)
    }

    /// Whether `[` begins a subscript: only after a name at the front of a command, where bash reads to the matching
    /// bracket, spaces included.
    fn is_subscript(&self) -> bool {
        let Some(word) = &self.top().word else { return false };
        self.begins_command() && word.bare().is_some_and(is_identifier)
    }

    /// An extended glob. At the front of a command it may as well be a function's name or a negated subshell.
    fn open_glob(&mut self) {
        if self.begins_command() || self.top().stage == Stage::FunctionName {
            return self.lose(Place::Unclear);
        }
        self.begin_glob();
    }

    pub(super) fn newline(&mut self) {
        let is_continued = self.top().pipeline.is_open;
        if !is_continued {
            self.end_command();
            self.end_pipeline();
        }
        self.at += 1;
        self.here_documents();
    }

    fn semicolon(&mut self) {
        let length = match (self.peek(1), self.peek(2)) {
            (Some(b';'), Some(b'&')) => 3,
            (Some(b';' | b'&'), _) => 2,
            _ => 1,
        };
        self.end_command();
        self.at += length;
        if length == 1 {
            return self.end_pipeline();
        }
        if self.top().kind != Kind::CaseBody {
            return self.lose(Place::Unclear);
        }
        self.frames.pop();
        self.top_mut().stage = Stage::CasePattern;
    }

    fn ampersand(&mut self) {
        let length = match (self.peek(1), self.peek(2)) {
            (Some(b'>'), Some(b'>')) => return self.begin_redirect(3, Redirect::Output),
            (Some(b'>'), _) => return self.begin_redirect(2, Redirect::Output),
            (Some(b'&'), _) => 2,
            _ => 1,
        };
        self.end_command();
        self.end_pipeline();
        self.at += length;
    }

    fn pipe(&mut self) {
        self.end_command();
        match self.peek(1) {
            Some(b'|') => {
                self.end_pipeline();
                self.at += 2;
            }
            next => {
                let fed = self.top().pipeline.first_mark..self.marks_met();
                if !fed.is_empty() {
                    self.inputs.marks.push(fed);
                }
                let pipeline = &mut self.top_mut().pipeline;
                pipeline.is_fed = true;
                pipeline.is_open = true;
                self.at += if next == Some(b'&') { 2 } else { 1 };
            }
        }
    }

    pub(super) fn end_pipeline(&mut self) {
        let first_mark = self.marks_met();
        let pipeline = &mut self.top_mut().pipeline;
        pipeline.first_mark = first_mark;
        pipeline.is_fed = false;
        pipeline.is_open = false;
    }

    /// `(` directly after a word: a compound assignment, or the end of the word.
    fn parenthesis_in_word(&mut self) {
        let equals = |word: &Word| word.text.iter().position(|byte| *byte == b'=') == word.text.len().checked_sub(1);
        match &mut self.top_mut().word {
            Some(word) if word.assigns && word.bare().is_some() && equals(word) => {
                word.is_compound = true;
                self.at += 1;
                self.open(Kind::Compound, None);
            }
            _ => self.finish_word(),
        }
    }

    /// `(` where a word could begin.
    fn open_parenthesis(&mut self) {
        let is_double = self.peek(1) == Some(b'(');
        let frame = self.top();
        let is_definition = frame.stage == Stage::FunctionBody
            || (frame.stage == Stage::Arguments && frame.command.len() == 1 && frame.command[0].redirect.is_none());
        if frame.redirect.is_some() {
            return self.lose(Place::Unclear);
        }
        if is_definition && let Some(length) = self.empty_parentheses() {
            self.at += length;
            return self.begin_function();
        }
        match self.top().stage {
            Stage::Start | Stage::Timed | Stage::FunctionBody | Stage::Coprocess | Stage::CoprocessBody => {
                self.begin_compound();
            }
            Stage::LoopName if is_double => self.begin_compound(),
            _ => return self.lose(Place::Unclear),
        }
        if is_double {
            self.at += 2;
            self.open(expression(ExpressionEnd::Command), Some(Place::Arithmetic));
        } else {
            self.at += 1;
            self.open(Kind::Subshell, None);
        }
    }

    /// The length of `()` with spaces between.
    fn empty_parentheses(&self) -> Option<usize> {
        let rest = &self.text[self.at + 1..];
        let spaces = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        (rest.get(spaces) == Some(&b')')).then_some(spaces + 2)
    }

    /// What stood before was a function's name and not a command.
    fn begin_function(&mut self) {
        if let Some(name) = self.top().command.first() {
            let (text, marks) = (name.text.clone(), name.marks.clone());
            self.calls.functions.insert(text);
            self.refuse(marks, Place::CommandName);
        }
        self.begin_compound();
    }

    /// A command of several commands begins or has ended; reserved words can follow.
    pub(super) fn begin_compound(&mut self) {
        let frame = self.top_mut();
        frame.command.clear();
        frame.stage = Stage::Start;
        frame.pipeline.is_open = false;
    }

    fn close_parenthesis(&mut self) {
        self.end_command();
        self.at += 1;
        match self.top().kind {
            // Shells differ in where the lines are of a here-document that is begun inside and not ended.
            Kind::Substitution if !self.pending.is_empty() => self.lose(Place::Unclear),
            Kind::Substitution | Kind::Subshell => {
                self.frames.pop();
            }
            _ => self.lose(Place::Unclear),
        }
    }

    /// `<` or `>`, and the descriptor before it.
    fn redirection(&mut self) {
        if let Some(word) = &self.top().word {
            let marks = word.marks.start..self.marks_met();
            let text = word.bare().unwrap_or_default();
            let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
            if word.text.first() == Some(&b'{') && word.text.last() == Some(&b'}') {
                // `{name}>` sets a variable, and evaluates a subscript in its name.
                self.refuse(marks, Place::VariableName);
            }
            if is_number {
                self.top_mut().word = None;
            } else {
                // The finished word may have changed the level; the operator is read in the next step.
                return self.finish_word();
            }
        }
        match (self.text[self.at], self.peek(1), self.peek(2)) {
            (b'<', Some(b'<'), Some(b'<')) => self.begin_redirect(3, Redirect::Input),
            (b'<', Some(b'<'), Some(b'-')) => self.begin_here_document(3, true),
            (b'<', Some(b'<'), _) => self.begin_here_document(2, false),
            (_, Some(b'&'), _) => self.begin_redirect(2, Redirect::Duplicate),
            (b'<', Some(b'>'), _) => self.begin_redirect(2, Redirect::Input),
            (b'<', _, _) => self.begin_redirect(1, Redirect::Input),
            (_, Some(b'>' | b'|'), _) => self.begin_redirect(2, Redirect::Output),
            (_, _, _) => self.begin_redirect(1, Redirect::Output),
        }
    }

    fn begin_redirect(&mut self, length: usize, redirect: Redirect) {
        if self.top().redirect.is_some() {
            return self.lose(Place::Unclear);
        }
        let frame = self.top_mut();
        frame.redirect = Some(redirect);
        frame.pipeline.is_open = false;
        self.at += length;
    }

    /// Judges the simple command that has ended, and is ready for the next.
    pub(super) fn end_command(&mut self) {
        let words = core::mem::take(&mut self.top_mut().command);
        if !words.is_empty() {
            self.judge(&words);
        }
        let frame = self.top_mut();
        frame.stage = Stage::Start;
        frame.redirect = None;
    }
}
