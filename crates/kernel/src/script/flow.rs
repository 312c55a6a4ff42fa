//! Where values can be: in which words, variables, outputs and files of a script.
//!
//! The order of commands does not count, as loops run a line again after a later one. The script is gone through until
//! nothing more is found; a script that takes more than [`PASSES_MAX`] passes is taken to have values everywhere.

use alloc::{collections::BTreeSet, vec::Vec};

use super::{
    files,
    programs::{self, Effect},
    syntax::{Assignment, Command, Kind, List, Parsed, Piece, Redirect, Word},
    variables,
};

/// Passes over a script. A chain of assignments in the order of the text takes two.
const PASSES_MAX: usize = 8;

/// How far values leave the words that they stand in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Reach {
    /// Not at all.
    #[default]
    Words,
    /// Into what a program keeps (a tag, an image): any output may have a value in it.
    Outputs,
    /// Into files whose names and contents no listed program runs.
    Texts,
    /// Into files anywhere, or into the names of files.
    Files,
}

/// What is known of a script.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// Variables that may hold a value.
    values: BTreeSet<Vec<u8>>,
    /// Variables that are assigned to, and those of them that may be something other than a number.
    assigned: BTreeSet<Vec<u8>>,
    others: BTreeSet<Vec<u8>>,
    pub(super) reach: Reach,
    /// Whether all variables are taken to hold values.
    is_given_up: bool,
    has_changed: bool,
}

impl Flow {
    /// Follows the values of a script and notes in it where they are.
    pub(super) fn of(parsed: &mut Parsed) -> Self {
        let mut flow = Self::default();
        for pass in 0..=PASSES_MAX {
            if pass == PASSES_MAX {
                flow.is_given_up = true;
                flow.reach = Reach::Files;
            }
            flow.has_changed = false;
            let mut documents = core::mem::take(&mut parsed.documents);
            for word in &mut documents {
                flow.word(word, false, &[]);
            }
            flow.list(&mut parsed.list, false, &documents);
            parsed.documents = documents;
            if !flow.has_changed {
                break;
            }
        }
        flow
    }

    /// Whether a variable can hold nothing but a number that the script has put there.
    pub(super) fn is_number(&self, name: &[u8]) -> bool {
        self.assigned.contains(name) && !self.others.contains(name) && !self.has_value(name)
    }

    /// Whether a variable may hold a value.
    pub(super) fn has_value(&self, name: &[u8]) -> bool {
        let is_folder = self.reach == Reach::Files && matches!(name, b"PWD" | b"OLDPWD");
        self.is_given_up || is_folder || self.values.contains(name) || variables::may_hold_value(name)
    }

    fn list(&mut self, list: &mut List, input: bool, documents: &[Word]) -> bool {
        let mut has_output = false;
        for pipeline in list {
            let mut input = input;
            for command in pipeline {
                input = self.command(command, input, documents);
                has_output |= input;
            }
        }
        has_output
    }

    /// Follows the values of one command; whether one can be in its output.
    fn command(&mut self, command: &mut Command, input: bool, documents: &[Word]) -> bool {
        let mut input = input;
        for redirect in &mut command.redirects {
            match redirect {
                Redirect::Output(word) => drop(self.word(word, input, documents)),
                Redirect::Input(word) => {
                    let is_file = word.literal().is_some_and(files::is_no_stream);
                    let has_value = self.word(word, input, documents) || self.reach >= Reach::Texts;
                    input = has_value || (input && !is_file);
                }
                Redirect::Text(word) => input = self.word(word, input, documents),
                Redirect::Document(number) => input = documents.get(*number).is_some_and(|word| word.has_value),
            }
        }
        command.has_input = input;
        let has_output = match &mut command.kind {
            Kind::Simple { assignments, words } => self.simple(assignments, words, input, documents),
            Kind::Group(lists) => self.lists(lists, input, documents),
            Kind::Loop { name, words, body } => {
                let is_number = |word: &Word| word.literal().is_some_and(is_digits);
                let are_numbers = words.iter().all(is_number);
                let has_value = self.words(words, input, documents);
                self.assign(name, has_value, are_numbers);
                self.list(body, input, documents)
            }
            Kind::Case { words, bodies } => {
                self.words(words, input, documents);
                self.lists(bodies, input, documents)
            }
            Kind::Test { words, numbers } => {
                self.words(words, input, documents);
                self.words(numbers, input, documents);
                false
            }
            Kind::Arithmetic(_) => false,
        };
        command.has_output = has_output || input || self.reach >= Reach::Outputs;
        if command.has_output && command.redirects.iter().any(is_written) {
            self.extend(Reach::Texts);
        }
        command.has_output
    }

    fn lists(&mut self, lists: &mut [List], input: bool, documents: &[Word]) -> bool {
        // Each is followed, also behind one in which a value was found.
        let mut has_output = false;
        for list in lists {
            has_output |= self.list(list, input, documents);
        }
        has_output
    }

    fn simple(&mut self, assignments: &mut [Assignment], words: &mut [Word], input: bool, documents: &[Word]) -> bool {
        let mut has_value = false;
        for assignment in assignments {
            let found = self.word(&mut assignment.value, input, documents);
            let is_number = match assignment.value.pieces.as_slice() {
                [Piece::Literal(bytes)] => is_digits(bytes),
                [Piece::Number(_)] => true,
                _ => false,
            };
            self.assign(&assignment.name, found, is_number && !assignment.appends);
            has_value |= found;
        }
        has_value |= self.words(words, input, documents);
        if words.first().and_then(Word::literal) == Some(b"read") {
            for name in words.iter().skip(1).filter_map(Word::literal) {
                self.assign(name, true, false);
            }
        }
        match programs::effect(words) {
            Effect::None => {}
            Effect::Keeps if has_value => self.extend(Reach::Outputs),
            Effect::Names if has_value => self.extend(Reach::Files),
            Effect::Writes if has_value || input => self.extend(Reach::Texts),
            Effect::Moves if has_value || self.reach >= Reach::Texts => self.extend(Reach::Files),
            Effect::Enters(is_plain) if has_value || (!is_plain && self.reach >= Reach::Texts) => {
                self.extend(Reach::Files);
            }
            _ => {}
        }
        has_value
    }

    fn words(&mut self, words: &mut [Word], input: bool, documents: &[Word]) -> bool {
        let mut has_value = false;
        for word in words {
            has_value |= self.word(word, input, documents);
        }
        has_value
    }

    fn word(&mut self, word: &mut Word, input: bool, documents: &[Word]) -> bool {
        let mut found = word.is_glob && self.reach == Reach::Files;
        for piece in &mut word.pieces {
            found |= match piece {
                Piece::Mark => true,
                Piece::Variable(name) => self.has_value(name),
                Piece::Output(list) => self.list(list, input, documents) || self.reach >= Reach::Outputs,
                Piece::Literal(_) | Piece::Number(_) | Piece::Count | Piece::Opaque => false,
            };
        }
        word.has_value = found;
        found
    }

    fn assign(&mut self, name: &[u8], has_value: bool, is_number: bool) {
        self.has_changed |= self.assigned.insert(name.to_vec());
        self.has_changed |= has_value && self.values.insert(name.to_vec());
        self.has_changed |= !is_number && self.others.insert(name.to_vec());
    }

    fn extend(&mut self, reach: Reach) {
        self.has_changed |= self.reach < reach;
        self.reach = self.reach.max(reach);
    }
}

fn is_written(redirect: &Redirect) -> bool {
    matches!(redirect, Redirect::Output(word) if !word.literal().is_some_and(files::is_stream))
}

/// Whether bytes are a decimal number.
pub(super) fn is_digits(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit)
}
