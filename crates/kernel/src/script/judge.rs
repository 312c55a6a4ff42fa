//! Judges every command of a script that has references.
//!
//! A command without values is any program; a command that values reach has to stand in the tables of `programs`. Where
//! a command without a reference of its own is refused, all references of the script are, since any of them may be the
//! one that reaches it.

use alloc::vec::Vec;
use core::ops::Range;

use super::{
    Place, builtins, files,
    flow::{Flow, Reach, is_digits},
    programs,
    reader::{Lost, Verdict},
    syntax::{Assignment, Command, Kind, List, Parsed, Piece, Redirect, Word, is_identifier},
    variables,
};

/// The judge.
pub(super) struct Judge {
    verdicts: Vec<Verdict>,
    flow: Flow,
    /// The first thing that makes the whole script uncertain.
    lost: Option<Lost>,
    /// Where the present command begins.
    at: usize,
}

impl Judge {
    /// Gives a verdict for each mark, and what made the script as a whole uncertain.
    pub(super) fn run(parsed: &Parsed, flow: Flow, verdicts: Vec<Verdict>) -> (Vec<Verdict>, Option<Lost>) {
        let mut judge = Self { verdicts, flow, lost: None, at: 0 };
        judge.list(&parsed.list);
        (judge.verdicts, judge.lost)
    }

    fn list(&mut self, list: &List) {
        for command in list.iter().flatten() {
            let outer = core::mem::replace(&mut self.at, command.at);
            self.command(command);
            self.at = outer;
        }
    }

    fn command(&mut self, command: &Command) {
        for redirect in &command.redirects {
            self.redirect(redirect, command);
        }
        match &command.kind {
            Kind::Simple { assignments, words } => {
                self.assignments(assignments, words);
                self.words(words);
                if !words.is_empty() {
                    self.simple(words, command);
                }
            }
            Kind::Group(lists) => lists.iter().for_each(|list| self.list(list)),
            Kind::Loop { name, words, body } => {
                self.words(words);
                let has_value = words.iter().any(|word| word.has_value);
                self.assignment(name, has_value, marks_of(words));
                self.list(body);
            }
            Kind::Case { words, bodies } => {
                self.words(words);
                bodies.iter().for_each(|list| self.list(list));
            }
            Kind::Test { words, numbers } => {
                self.words(words);
                self.words(numbers);
                for word in numbers {
                    if !is_number(word, &self.flow) {
                        self.refuse(word.marks.clone(), Place::EvaluatingTest);
                    }
                }
            }
            Kind::Arithmetic(names) => self.arithmetic(names),
        }
    }

    fn redirect(&mut self, redirect: &Redirect, command: &Command) {
        let (Redirect::Output(word) | Redirect::Input(word) | Redirect::Text(word)) = redirect else { return };
        self.word(word);
        let is_file = !matches!(redirect, Redirect::Text(_));
        if is_file && word.has_value {
            self.refuse(word.marks.clone(), Place::Target);
        } else if matches!(redirect, Redirect::Output(_)) && command.has_output {
            // Where values name files, what is written may end up under a name that a value has chosen.
            let has_name = |path: &[u8]| self.flow.reach < Reach::Files && programs::may_write(path);
            let may_be_written = word.literal().is_some_and(|path| files::is_stream(path) || has_name(path));
            if !may_be_written {
                self.refuse(command.marks.clone(), Place::Written);
            }
        }
    }

    fn assignments(&mut self, assignments: &[Assignment], words: &[Word]) {
        for assignment in assignments {
            self.word(&assignment.value);
            let is_read = words.first().and_then(Word::literal) == Some(b"read") && assignment.name == b"IFS";
            if is_read && !assignment.value.has_value {
                continue;
            }
            if assignment.value.has_value && !words.is_empty() {
                // The program finds it in its environment.
                self.refuse(assignment.value.marks.clone(), Place::Assignment);
            }
            self.assignment(&assignment.name, assignment.value.has_value, assignment.value.marks.clone());
        }
    }

    /// A variable that is assigned to.
    fn assignment(&mut self, name: &[u8], has_value: bool, marks: Range<usize>) {
        let may_be_set = match has_value {
            true => variables::takes_value(name),
            // Where values are in files, a variable may say which of them is run.
            false => !variables::is_shell_variable(name) && self.may_configure(name),
        };
        if !may_be_set {
            self.refuse(marks, if has_value { Place::Assignment } else { Place::Evaluates });
        }
    }

    fn may_configure(&self, name: &[u8]) -> bool {
        self.flow.reach < Reach::Texts || variables::takes_value(name) || !variables::is_code_variable(name)
    }

    fn simple(&mut self, words: &[Word], command: &Command) {
        let Some(name) = words[0].literal().filter(|name| !name.is_empty()) else {
            return self.refuse(words[0].marks.clone(), Place::CommandName);
        };
        let has_value = words.iter().any(|word| word.has_value);
        let result = match builtins::judge(words, &self.flow) {
            Some(result) => result,
            None if name == b"export" => self.export(&words[1..]),
            None if has_value || command.has_input || self.flow.reach >= Reach::Texts => {
                programs::judge(words, command.has_input, self.flow.reach)
            }
            None => Ok(()),
        };
        if let Err(place) = result {
            let marks = if place == Place::Evaluates { 0..0 } else { command.marks.clone() };
            self.refuse(marks, place);
        }
    }

    /// `export NAME` and `export NAME=VALUE`, both without values: programs find the variable in their environment.
    fn export(&self, words: &[Word]) -> Result<(), Place> {
        for word in words {
            let name = word.prefix().split(|byte| *byte == b'=').next().unwrap_or_default();
            let has_name = name.len() < word.prefix().len() || word.literal().is_some();
            if word.has_value || !has_name || self.flow.has_value(name) {
                return Err(Place::Assignment);
            }
            let is_free = is_identifier(name) && !variables::is_shell_variable(name);
            if !is_free || word.is_glob || !self.may_configure(name) {
                return Err(Place::Evaluates);
            }
        }
        Ok(())
    }

    fn words(&mut self, words: &[Word]) {
        for word in words {
            self.word(word);
        }
    }

    /// What is inside a word.
    fn word(&mut self, word: &Word) {
        for piece in &word.pieces {
            match piece {
                Piece::Output(list) => self.list(list),
                Piece::Number(names) => self.arithmetic(names),
                Piece::Literal(_) | Piece::Mark | Piece::Variable(_) | Piece::Count | Piece::Opaque => {}
            }
        }
    }

    /// Bash evaluates the values of names in arithmetic, and the names in those values.
    fn arithmetic(&mut self, names: &[Vec<u8>]) {
        if !names.iter().all(|name| self.flow.is_number(name)) {
            self.refuse(0..0, Place::Arithmetic);
        }
    }

    /// Refuses some references, or all of them if none of those stands at the place itself.
    fn refuse(&mut self, marks: Range<usize>, place: Place) {
        if marks.is_empty() {
            self.lost.get_or_insert(Lost { at: self.at, place });
            return;
        }
        for verdict in &mut self.verdicts[marks] {
            if matches!(verdict, Verdict::Quoted(_)) {
                *verdict = Verdict::Refused(place);
            }
        }
    }
}

/// The marks of neighboring words.
fn marks_of(words: &[Word]) -> Range<usize> {
    match (words.first(), words.last()) {
        (Some(first), Some(last)) => first.marks.start..last.marks.end,
        _ => 0..0,
    }
}

/// Whether an operand of an arithmetic operator is a number.
fn is_number(word: &Word, flow: &Flow) -> bool {
    match word.pieces.as_slice() {
        [Piece::Literal(bytes)] => is_digits(bytes),
        [Piece::Number(_) | Piece::Count] => true,
        [Piece::Variable(name)] => flow.is_number(name),
        _ => false,
    }
}
