//! Finished words: reserved words, and what each makes of the words after it.

use super::{
    Place,
    lexer::Lexer,
    nesting::{Kind, Redirect, Stage, Word},
};

impl Lexer<'_> {
    /// Ends the word that is being read, if there is one, and takes it for what its place makes of it.
    pub(super) fn finish_word(&mut self) {
        let marks_met = self.marks_met();
        let frame = self.top_mut();
        let Some(mut word) = frame.word.take() else { return };
        word.marks.end = marks_met;
        frame.pipeline.is_open = false;
        if frame.redirect.is_some() {
            word.redirect = frame.redirect.take();
            if matches!(frame.stage, Stage::Start | Stage::Timed) {
                frame.stage = Stage::Prefix;
            }
            if word.redirect == Some(Redirect::Duplicate) {
                self.refuse(word.marks.clone(), Place::Duplicate);
            }
            return self.top_mut().command.push(word);
        }
        match frame.kind {
            Kind::Case => self.finish_case_word(&word),
            Kind::Conditional { parentheses } => self.finish_conditional_word(word, parentheses),
            kind if kind.is_list() => self.finish_list_word(word),
            _ => {}
        }
    }

    fn finish_list_word(&mut self, word: Word) {
        match self.top().stage {
            Stage::Start | Stage::FunctionBody => self.start_word(word),
            Stage::Timed if matches!(word.bare(), Some(b"-p" | b"--")) => {}
            Stage::Timed => self.start_word(word),
            Stage::Prefix => self.push_word(word),
            Stage::LoopName => {
                self.refuse(word.marks, Place::VariableName);
                let frame = self.top_mut();
                frame.loop_variable = word.text;
                frame.stage = Stage::LoopIn;
            }
            Stage::LoopIn => match word.bare() {
                Some(b"in") => self.top_mut().stage = Stage::LoopWords,
                Some(b"do" | b"{") => self.start_word(word),
                _ => self.lose(Place::Unclear),
            },
            Stage::LoopWords => {
                let name = self.top().loop_variable.clone();
                self.variables.set(&name, word.marks);
            }
            Stage::FunctionName => {
                self.calls.functions.insert(word.text);
                self.refuse(word.marks, Place::CommandName);
                self.top_mut().stage = Stage::FunctionBody;
            }
            Stage::Coprocess => {
                self.variables.set_array(&word.text);
                self.start_word(word);
                if self.top().stage == Stage::Arguments {
                    self.top_mut().stage = Stage::CoprocessBody;
                }
            }
            Stage::CoprocessBody if is_reserved(&word) => {
                // The word before was the name.
                self.begin_compound();
                self.start_word(word);
            }
            Stage::MaybeTimed if is_reserved(&word) => self.lose(Place::Unclear),
            _ => {
                let frame = self.top_mut();
                frame.stage = Stage::Arguments;
                frame.command.push(word);
            }
        }
    }

    /// A word where reserved words are words of the grammar.
    fn start_word(&mut self, word: Word) {
        let frame = self.top_mut();
        // At the front of a substitution, after `|`, `function` or `coproc` some shells take `time` for a command.
        let is_sure_of_time = matches!(frame.stage, Stage::Start | Stage::Timed)
            && frame.kind != Kind::Substitution
            && !frame.pipeline.is_fed;
        frame.stage = Stage::Start;
        match word.bare() {
            Some(b"then" | b"do" | b"else" | b"elif" | b"!") => {}
            Some(b"if" | b"while" | b"until" | b"{") => self.open_group(),
            Some(b"}" | b"fi" | b"done") => self.close_group(),
            Some(b"for" | b"select") => {
                self.open_group();
                self.top_mut().stage = Stage::LoopName;
            }
            Some(b"esac") => self.close_case(),
            Some(b"case") => self.open(Kind::Case, None),
            Some(b"[[") => self.open(Kind::Conditional { parentheses: 0 }, None),
            Some(b"function") => self.top_mut().stage = Stage::FunctionName,
            Some(b"coproc") => {
                self.variables.set_array(b"COPROC");
                self.top_mut().stage = Stage::Coprocess;
            }
            Some(b"time") if is_sure_of_time => self.top_mut().stage = Stage::Timed,
            Some(b"time") => {
                self.push_word(word);
                self.top_mut().stage = Stage::MaybeTimed;
            }
            _ => self.push_word(word),
        }
    }

    /// A word at the front of a simple command.
    fn push_word(&mut self, word: Word) {
        let frame = self.top_mut();
        frame.stage = if word.assigns { Stage::Prefix } else { Stage::Arguments };
        frame.command.push(word);
    }

    fn open_group(&mut self) {
        let frame = self.top_mut();
        frame.groups.push(frame.pipeline);
        frame.pipeline.fed_from = frame.pipeline.input_from();
        self.end_pipeline();
    }

    /// What is inside a group writes into the pipe behind it, so the pipeline goes back to where the group began.
    fn close_group(&mut self) {
        let frame = self.top_mut();
        if let Some(pipeline) = frame.groups.pop() {
            frame.pipeline = pipeline;
            frame.pipeline.is_open = false;
        }
    }

    fn close_case(&mut self) {
        if self.top().kind != Kind::CaseBody {
            return self.lose(Place::Unclear);
        }
        self.frames.pop();
        self.frames.pop();
    }
}

/// Whether a word begins a command of several commands.
fn is_reserved(word: &Word) -> bool {
    let words: [&[u8]; 11] =
        [b"{", b"if", b"while", b"until", b"for", b"select", b"case", b"[[", b"time", b"!", b"function"];
    word.bare().is_some_and(|text| words.contains(&text))
}
