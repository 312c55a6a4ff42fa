//! Checks every command of a script with references.
//!
//! A command without values may be any program; a command that values reach must be in the tables of `programs`. If a
//! rejected command contains no reference itself, all references of the script are rejected, because any of them may be
//! the one that reaches it.

use alloc::vec::Vec;
use core::ops::Range;

use super::{
    builtins, files,
    flow::{Flow, Reach},
    place::Place,
    programs,
    reader::{Lost, Verdict},
    syntax::{Assignment, Check, Command, Kind, List, Parsed, Piece, Redirect, Word, is_digits, is_identifier},
    variables,
};

/// The state of the check.
pub(super) struct Judge<'a> {
    verdicts: Vec<Verdict>,
    flow: Flow<'a>,
    /// The first part that makes the whole script uncheckable.
    lost: Option<Lost>,
    /// Offset of the current command.
    at: usize,
}

impl<'a> Judge<'a> {
    /// Returns a verdict for each reference, and the part that makes the whole script uncheckable.
    pub(super) fn run(parsed: &Parsed, flow: Flow<'a>, verdicts: Vec<Verdict>) -> (Vec<Verdict>, Option<Lost>) {
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
                let is_tee = words.first().and_then(Word::literal) == Some(b"tee");
                for word in words {
                    match is_tee && word.literal().is_some_and(files::is_stream) {
                        true => self.inside(word),
                        false => self.word(word),
                    }
                }
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
                self.patterns(words.get(1..).unwrap_or_default());
                bodies.iter().for_each(|list| self.list(list));
            }
            Kind::Test(test) => {
                self.words(&test.words);
                self.words(&test.patterns);
                self.patterns(&test.patterns);
                self.words(&test.numbers);
                for word in &test.numbers {
                    if !is_number(word, &self.flow) {
                        self.refuse(word.marks.clone(), Place::EvaluatingTest);
                    }
                }
            }
            Kind::Arithmetic(names) => self.arithmetic(names),
        }
    }

    /// Rejects values in unquoted patterns: a value such as `*` would match everything.
    fn patterns(&mut self, words: &[Word]) {
        for word in words {
            if word.has_value && word.is_split {
                self.refuse(word.marks.clone(), Place::Pattern);
            }
        }
    }

    fn redirect(&mut self, redirect: &Redirect, command: &Command) {
        let (Redirect::Output(word) | Redirect::Input(word) | Redirect::Text(word)) = redirect else { return };
        let is_own_stream = matches!(redirect, Redirect::Output(_)) && word.literal().is_some_and(files::is_stream);
        match is_own_stream {
            true => self.inside(word),
            false => self.word(word),
        }
        let is_file = !matches!(redirect, Redirect::Text(_));
        if is_file && word.has_value {
            self.refuse(word.marks.clone(), Place::Target);
        } else if matches!(redirect, Redirect::Output(_)) && command.has_output {
            // If values name files, the written file may later get a name that a value selects.
            let has_name = self.flow.reach < Reach::Files && programs::may_write(word);
            let may_be_written = has_name || word.literal().is_some_and(files::is_stream);
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
            // Bash counts up from the assigned number, so the variable stays a number.
            if assignment.name == b"SECONDS" && assignment.value.literal().is_some_and(is_digits) && words.is_empty() {
                continue;
            }
            if assignment.value.has_value && !words.is_empty() {
                // The program would receive the value in its environment.
                self.refuse(assignment.value.marks.clone(), Place::Assignment);
            }
            self.assignment(&assignment.name, assignment.value.has_value, assignment.value.marks.clone());
        }
    }

    /// Checks an assignment to a variable.
    fn assignment(&mut self, name: &[u8], has_value: bool, marks: Range<usize>) {
        let may_be_set = match has_value {
            true => self.flow.takes_value(name),
            // If files contain values, a variable may select which of them is executed.
            false => name == b"_" || (!variables::is_shell_variable(name) && self.may_configure(name)),
        };
        if !may_be_set {
            self.refuse(marks, if has_value { Place::Assignment } else { Place::Evaluates });
        }
    }

    fn may_configure(&self, name: &[u8]) -> bool {
        self.flow.reach < Reach::Texts || variables::takes_value(name) || !variables::is_code_variable(name)
    }

    fn simple(&mut self, words: &[Word], command: &Command) {
        let name = match (words[0].literal(), words[0].pieces.as_slice()) {
            (Some(name), _) if !name.is_empty() => name,
            // A program in the home folder; it is in no table.
            (None, [Piece::Home, Piece::Literal(rest)]) if !words[0].is_glob => rest,
            _ => return self.refuse(words[0].marks.clone(), Place::CommandName),
        };
        let has_value = words.iter().any(|word| word.has_value);
        let reads_kept = self.flow.reach >= Reach::Outputs && words.iter().any(files::is_kept_by_git);
        let is_reached = has_value || command.has_input || reads_kept || self.flow.reach >= Reach::Texts;
        let result = match builtins::judge(words, &self.flow) {
            Some(result) => result,
            None if name == b"export" => self.export(&words[1..]),
            // `jq` reads `~/.jq`.
            None if name == b"jq" && self.flow.names_files => Err(Place::Argument),
            None if is_reached => programs::judge(words, command.has_input, self.flow.reach).map_err(|place| {
                let is_by_folder = place == Place::Argument && self.flow.is_folder_named();
                if is_by_folder { Place::Folder } else { place }
            }),
            None => Ok(()),
        };
        let result = result.and_then(|()| words[1..].iter().try_for_each(|word| self.check_values(words, word)));
        if let Err(place) = result {
            let is_specific = is_reached || matches!(place, Place::Evaluates | Place::Assignment);
            let place = if is_specific { place } else { Place::Unclear };
            let marks = if place == Place::Evaluates { 0..0 } else { command.marks.clone() };
            self.refuse(marks, place);
        }
    }

    /// Adds the check that the command needs to the references of a word, and rejects other values that have no such check.
    fn check_values(&mut self, words: &[Word], word: &Word) -> Result<(), Place> {
        let Some((check, parts)) = programs::check_of(words, word) else { return Ok(()) };
        let refused = if check == Check::Filled { Place::Root } else { Place::Refspec };
        for (at, piece) in word.pieces.iter().enumerate().take(parts) {
            match piece {
                Piece::Mark(number) => {
                    if let Verdict::Quoted(_, own) = &mut self.verdicts[*number] {
                        *own = Some(check);
                    }
                }
                Piece::Variable(name) if !self.flow.has_value(name) || word.checked.contains(&(at, check)) => {}
                Piece::Variable(_) | Piece::Output(_) => return Err(refused),
                Piece::Literal(_) | Piece::Home | Piece::Number(_) | Piece::Count | Piece::Opaque => {}
            }
        }
        Ok(())
    }

    /// Accepts `export NAME` and `export NAME=VALUE` without values: programs receive the variable in their
    /// environment.
    fn export(&self, words: &[Word]) -> Result<(), Place> {
        for word in words {
            let name = word.prefix().split(|byte| *byte == b'=').next().unwrap_or_default();
            let has_name = name.len() < word.prefix().len() || word.literal().is_some();
            if word.has_value || !has_name || self.flow.has_value(name) {
                return Err(Place::Assignment);
            }
            let is_free = is_identifier(name) && !variables::is_shell_variable(name) && !variables::is_own(name);
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

    fn word(&mut self, word: &Word) {
        if files::names_stream(word) {
            self.refuse(0..0, Place::Device);
        }
        self.inside(word);
    }

    /// Checks the substitutions inside a word.
    fn inside(&mut self, word: &Word) {
        for piece in &word.pieces {
            match piece {
                Piece::Output(list) => self.list(list),
                Piece::Number(names) => self.arithmetic(names),
                Piece::Literal(_)
                | Piece::Home
                | Piece::Mark(_)
                | Piece::Variable(_)
                | Piece::Count
                | Piece::Opaque => {}
            }
        }
    }

    /// Checks an arithmetic expression. Bash evaluates the contents of its variables as expressions, recursively.
    fn arithmetic(&mut self, names: &[Vec<u8>]) {
        if !names.iter().all(|name| self.flow.is_number(name)) {
            self.refuse(0..0, Place::Arithmetic);
        }
    }

    /// Rejects the given references. If there are none, rejects the script as a whole.
    fn refuse(&mut self, marks: Range<usize>, place: Place) {
        if marks.is_empty() {
            self.lost.get_or_insert(Lost { at: self.at, place });
            return;
        }
        for verdict in &mut self.verdicts[marks] {
            if matches!(verdict, Verdict::Quoted(..)) {
                *verdict = Verdict::Refused(place);
            }
        }
    }
}

/// Returns the references in adjacent words.
fn marks_of(words: &[Word]) -> Range<usize> {
    match (words.first(), words.last()) {
        (Some(first), Some(last)) => first.marks.start..last.marks.end,
        _ => 0..0,
    }
}

/// True if the operand of an arithmetic operator is a number.
fn is_number(word: &Word, flow: &Flow<'_>) -> bool {
    match word.pieces.as_slice() {
        [Piece::Literal(bytes)] => is_digits(bytes),
        [Piece::Number(_) | Piece::Count] => true,
        [Piece::Variable(name)] => flow.is_number(name),
        _ => false,
    }
}
