//! Taint analysis: finds the words, variables, outputs and files of a script that may contain a value.
//!
//! The analysis ignores the order of commands, because a loop may run an earlier line after a later one. It repeats
//! passes over the script until nothing changes. After [`PASSES_MAX`] passes it assumes that values are everywhere.

use alloc::{collections::BTreeSet, vec::Vec};

use super::{
    Surroundings, builtins, files,
    programs::{self, Effect},
    syntax::{Assignment, Command, Kind, List, Parsed, Piece, Redirect, Word, is_digits, is_name_byte},
    variables,
};

/// The maximum number of passes. A chain of assignments in text order takes two.
const PASSES_MAX: usize = 8;

/// The places outside of words that values reach, in increasing order of danger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) enum Reach {
    /// None.
    #[default]
    Words,
    /// Data that a program stores (a tag, an image). The output of any later command may then contain a value.
    Outputs,
    /// Files that no listed program executes because of their name or content.
    Texts,
    /// Any file, or the names of files.
    Files,
}

/// The kind of data that is assigned to a variable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Given {
    /// Decimal digits only.
    Number,
    /// The output of `mktemp`.
    Temporary,
    /// Anything else.
    Text,
}

/// The result of the analysis.
#[derive(Debug, Default)]
pub(super) struct Flow<'a> {
    /// The context of the script.
    surroundings: Surroundings<'a>,
    /// Variables that may contain a value.
    values: BTreeSet<Vec<u8>>,
    /// All variables that are assigned to; those that may be something other than a number (`others`); those that may
    /// be something other than the path of a new file (`permanent`).
    assigned: BTreeSet<Vec<u8>>,
    others: BTreeSet<Vec<u8>>,
    permanent: BTreeSet<Vec<u8>>,
    pub(super) reach: Reach,
    /// True if a value determines the name of a file, which may then be the configuration file of a program in the home
    /// folder.
    pub(super) names_files: bool,
    /// True if the analysis was stopped and treats all variables as values.
    is_given_up: bool,
    has_changed: bool,
}

impl<'a> Flow<'a> {
    /// Analyzes a script and sets the `flow` fields in its syntax tree.
    pub(super) fn of(parsed: &mut Parsed, surroundings: Surroundings<'a>) -> Self {
        // In a folder that a value selects, any file may be code.
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

    /// True if a variable can only be a number: it is a number in bash, or the script assigned only numbers.
    pub(super) fn is_number(&self, name: &[u8]) -> bool {
        let is_own = self.assigned.contains(name) && !self.surroundings.gives(name);
        if variables::is_number(name) && !self.surroundings.gives(name) {
            return true;
        }
        is_own && !self.others.contains(name) && !self.has_value(name)
    }

    /// True if a variable can only be the path of a file that the script created with `mktemp`.
    fn is_temporary(&self, name: &[u8]) -> bool {
        let is_own = self.assigned.contains(name) && !self.surroundings.gives(name);
        is_own && !self.permanent.contains(name) && !self.has_value(name)
    }

    /// True if a value may be assigned to a variable. Variables of the step's `env` are excluded because they are
    /// exported.
    pub(super) fn takes_value(&self, name: &[u8]) -> bool {
        variables::takes_value(name) && !self.surroundings.gives(name)
    }

    /// True if a variable holds text of the author or of the operator: no value, no variable of `env` with a reference,
    /// and nothing that the script assigned.
    pub(super) fn is_authors(&self, name: &[u8]) -> bool {
        !self.has_value(name) && !self.assigned.contains(name) && !self.surroundings.gives_value(name)
    }

    /// True if a variable contains no value, neither directly nor through a variable of `env` with a reference.
    pub(super) fn is_without_value(&self, name: &[u8]) -> bool {
        !self.has_value(name) && !self.surroundings.gives_value(name)
    }

    /// True if a reference selects the folder of the script.
    pub(super) fn is_folder_named(&self) -> bool {
        self.surroundings.is_folder_named
    }

    /// Returns the variables to which values are assigned, in alphabetical order.
    pub(super) fn variables_with_values(&self) -> impl Iterator<Item = &[u8]> {
        self.values.iter().map(Vec::as_slice)
    }

    /// True if a variable may contain a value.
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

    /// Analyzes one command; returns true if its output may contain a value.
    fn command(&mut self, command: &mut Command, input: bool, documents: &[Word]) -> bool {
        let mut input = input;
        for redirect in &mut command.redirects {
            match redirect {
                Redirect::Output(word) => drop(self.word(word, input, documents)),
                // A redirection does not remove the original input: programs can still open it by its path.
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
            // `set -x` prints the words of these constructs as well.
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
        // No short circuit: every list is analyzed, even after one with a value.
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
                // The assignment applies to this program only.
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

    /// Records the effects of a command besides its output.
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
                Piece::Mark(_) => true,
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
            // A file in a folder that `mktemp -d` created.
            [Piece::Variable(name), Piece::Literal(text)] => {
                let file = text.strip_prefix(b"/").filter(|file| !file.contains(&b'/'));
                self.is_temporary(name) && file.is_some_and(files::is_plain)
            }
            _ => false,
        };
        word.has_value = found;
        found
    }

    /// Records an assignment that lasts for the rest of the script.
    fn assign(&mut self, name: &[u8], has_value: bool, given: Given) {
        self.has_changed |= self.assigned.insert(name.to_vec());
        self.note(name, has_value, given);
    }

    /// Records the kind of data that a variable may contain.
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

/// Returns the kind of output if a list is one command with known output: a path from `mktemp`, or a number.
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

/// Returns the length of the variable name at the start of a text, in bytes.
fn name_length(text: &[u8]) -> usize {
    text.iter().position(|byte| !is_name_byte(*byte)).unwrap_or(text.len())
}
