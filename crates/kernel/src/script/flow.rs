//! Where values can be: in which words, variables, outputs and files of a script.
//!
//! The order of commands does not count, as loops run a line again after a later one. The script is gone through until
//! nothing more is found; a script that takes more than [`PASSES_MAX`] passes is taken to have values everywhere.

use alloc::{collections::BTreeSet, vec::Vec};

use super::{
    Surroundings, builtins, files,
    programs::{self, Effect},
    syntax::{Assignment, Command, Kind, List, Parsed, Piece, Redirect, Word, is_name_byte},
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

/// What a variable is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    /// A number.
    Number,
    /// What `mktemp` has printed.
    Temporary,
    /// Anything else.
    Text,
}

/// What is known of a script.
#[derive(Debug, Default)]
pub(super) struct Flow<'a> {
    /// What is around it.
    surroundings: Surroundings<'a>,
    /// Variables that may hold a value.
    values: BTreeSet<Vec<u8>>,
    /// Variables that are assigned to, those of them that may be something other than a number, and those that may be
    /// something other than the path of a new file.
    assigned: BTreeSet<Vec<u8>>,
    others: BTreeSet<Vec<u8>>,
    permanent: BTreeSet<Vec<u8>>,
    pub(super) reach: Reach,
    /// Whether a value says under which name a file is put, which may be that of a program's configuration in the user's
    /// folder.
    pub(super) names_files: bool,
    /// Whether all variables are taken to hold values.
    is_given_up: bool,
    has_changed: bool,
}

impl<'a> Flow<'a> {
    /// Follows the values of a script and notes in it where they are.
    pub(super) fn of(parsed: &mut Parsed, surroundings: Surroundings<'a>) -> Self {
        // In a folder that a value has named anything may be code.
        let reach = if surroundings.is_folder_named { Reach::Files } else { Reach::Words };
        let mut flow = Self { surroundings, reach, ..Self::default() };
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
        let is_own = self.assigned.contains(name) && !self.surroundings.gives(name);
        if variables::is_number(name) && !self.surroundings.gives(name) {
            return true;
        }
        is_own && !self.others.contains(name) && !self.has_value(name)
    }

    /// Whether a variable can hold nothing but the path of a file that the script has made with `mktemp`.
    fn is_temporary(&self, name: &[u8]) -> bool {
        let is_own = self.assigned.contains(name) && !self.surroundings.gives(name);
        is_own && !self.permanent.contains(name) && !self.has_value(name)
    }

    /// Whether a value may be assigned to a variable. One that the step gives in `env` is exported.
    pub(super) fn takes_value(&self, name: &[u8]) -> bool {
        variables::takes_value(name) && !self.surroundings.gives(name)
    }

    /// Whether a variable holds a text of the author, or of who runs the script: neither a value, nor what the step's
    /// `env` has made of one, nor anything that the script has put there.
    pub(super) fn is_authors(&self, name: &[u8]) -> bool {
        !self.has_value(name) && !self.assigned.contains(name) && !self.surroundings.gives_value(name)
    }

    /// Whether a variable holds neither a value nor what the step's `env` has made of one.
    pub(super) fn is_without_value(&self, name: &[u8]) -> bool {
        !self.has_value(name) && !self.surroundings.gives_value(name)
    }

    /// The variables that values are assigned to, in the order of their names.
    pub(super) fn variables_with_values(&self) -> impl Iterator<Item = &[u8]> {
        self.values.iter().map(Vec::as_slice)
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
                // What a redirection replaces is still there for programs that know its path.
                Redirect::Input(word) => {
                    let is_kept = self.reach >= Reach::Outputs && files::is_kept_by_git(word);
                    input |= self.word(word, input, documents) || is_kept || self.reach >= Reach::Texts;
                }
                Redirect::Text(word) => input |= self.word(word, input, documents),
                Redirect::Document(number) => input |= documents.get(*number).is_some_and(|word| word.has_value),
            }
        }
        command.has_input = input;
        let has_output = match &mut command.kind {
            Kind::Simple { assignments, words } => self.simple(assignments, words, input, documents),
            Kind::Group(lists) => self.lists(lists, input, documents),
            Kind::Loop { name, words, body } => {
                let is_range = |word: &Word| matches!(&word.pieces[..], [Piece::Count]);
                let is_number = |word: &Word| word.literal().is_some_and(is_digits) || is_range(word);
                let given = if words.iter().all(is_number) { Given::Number } else { Given::Text };
                let has_value = self.words(words, input, documents);
                self.assign(name, has_value, given);
                self.list(body, input, documents) || has_value
            }
            // `set -x` prints the words of these as well.
            Kind::Case { words, bodies } => {
                let has_value = self.words(words, input, documents);
                self.lists(bodies, input, documents) || has_value
            }
            Kind::Test(test) => {
                let groups = [&mut test.words, &mut test.patterns, &mut test.numbers];
                let mut found = false;
                for words in groups {
                    found |= self.words(words, input, documents);
                }
                found
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
            let given = match assignment.value.pieces.as_slice() {
                _ if assignment.appends => Given::Text,
                [Piece::Literal(bytes)] if is_digits(bytes) => Given::Number,
                [Piece::Number(_) | Piece::Count] if !assignment.value.is_glob => Given::Number,
                [Piece::Output(list)] => known(list).unwrap_or(Given::Text),
                _ => Given::Text,
            };
            match words.is_empty() {
                true => self.assign(&assignment.name, found, given),
                // It holds for the program alone.
                false => self.note(&assignment.name, found, given),
            }
            has_value |= found;
        }
        has_value |= self.words(words, input, documents);
        match words.first().and_then(Word::literal) {
            Some(b"read") => {
                for name in builtins::names_of_read(&words[1..]).filter_map(Word::literal) {
                    self.assign(name, input, Given::Text);
                }
            }
            Some(b"export") => {
                for word in &words[1..] {
                    let (name, text) = word.prefix().split_at(name_length(word.prefix()));
                    if text.starts_with(b"=") {
                        self.assign(name, word.has_value, Given::Text);
                    }
                }
            }
            _ => {}
        }
        self.follow(words, has_value, input);
        has_value || programs::shows_processes(words)
    }

    /// What a command does with values beyond its output.
    fn follow(&mut self, words: &[Word], has_value: bool, input: bool) {
        let effect = programs::effect(words);
        self.names_files |= effect == Effect::Moves && has_value;
        match effect {
            Effect::None => {}
            Effect::Keeps if has_value => self.extend(Reach::Outputs),
            Effect::Names if has_value => self.extend(Reach::Files),
            Effect::Writes if has_value || input => self.extend(Reach::Texts),
            Effect::Moves if has_value || input || self.reach >= Reach::Texts => self.extend(Reach::Files),
            Effect::Enters(_) if self.reach >= Reach::Outputs && words.iter().any(files::is_kept_by_git) => {
                self.extend(Reach::Files);
            }
            Effect::Enters(is_plain) if has_value || (!is_plain && self.reach >= Reach::Texts) => {
                self.extend(Reach::Files);
            }
            _ => {}
        }
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
        let mut certain = None;
        for (at, piece) in word.pieces.iter_mut().enumerate() {
            let has_value = match piece {
                Piece::Mark => true,
                Piece::Variable(name) => self.has_value(name),
                Piece::Output(list) => {
                    let is_found = self.list(list, input, documents) || self.reach >= Reach::Outputs;
                    is_found && known(list).is_none()
                }
                Piece::Literal(_) | Piece::Home | Piece::Number(_) | Piece::Count | Piece::Opaque => false,
            };
            let is_certain = match piece {
                Piece::Literal(_) | Piece::Home => true,
                Piece::Variable(name) => self.is_without_value(name),
                _ => false,
            };
            if !is_certain {
                certain.get_or_insert(at);
            }
            found |= has_value;
        }
        word.certain = certain.unwrap_or(word.pieces.len());
        word.is_temporary = match &word.pieces[..] {
            [Piece::Variable(name)] => self.is_temporary(name),
            // A file in a folder that `mktemp -d` has made.
            [Piece::Variable(name), Piece::Literal(text)] => {
                let file = text.strip_prefix(b"/").filter(|file| !file.contains(&b'/'));
                self.is_temporary(name) && file.is_some_and(files::is_plain)
            }
            _ => false,
        };
        word.has_value = found;
        found
    }

    /// A variable that keeps what it is given.
    fn assign(&mut self, name: &[u8], has_value: bool, given: Given) {
        self.has_changed |= self.assigned.insert(name.to_vec());
        self.note(name, has_value, given);
    }

    /// What a variable may hold.
    fn note(&mut self, name: &[u8], has_value: bool, given: Given) {
        self.has_changed |= has_value && self.values.insert(name.to_vec());
        self.has_changed |= given != Given::Number && self.others.insert(name.to_vec());
        self.has_changed |= given != Given::Temporary && self.permanent.insert(name.to_vec());
    }

    fn extend(&mut self, reach: Reach) {
        self.has_changed |= self.reach < reach;
        self.reach = self.reach.max(reach);
    }
}

fn is_written(redirect: &Redirect) -> bool {
    matches!(redirect, Redirect::Output(word) if !word.literal().is_some_and(files::is_stream))
}

/// What a list prints that is one command of those whose output is known: a path of `mktemp` or a number.
fn known(list: &List) -> Option<Given> {
    let [pipeline] = list.as_slice() else { return None };
    let [Command { kind: Kind::Simple { assignments, words }, redirects, .. }] = pipeline.as_slice() else {
        return None;
    };
    if !assignments.is_empty() || !redirects.is_empty() {
        return None;
    }
    let texts: Vec<_> = words.iter().map(|word| word.literal().unwrap_or_default()).collect();
    match texts[..] {
        [b"mktemp"] | [b"mktemp", b"-d"] => Some(Given::Temporary),
        [b"date", b"+%s" | b"+%s%N"] | [b"nproc"] => Some(Given::Number),
        _ => None,
    }
}

/// How many bytes at the front can be those of a variable's name.
fn name_length(text: &[u8]) -> usize {
    text.iter().position(|byte| !is_name_byte(*byte)).unwrap_or(text.len())
}

/// Whether bytes are a decimal number.
pub(super) fn is_digits(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit)
}
