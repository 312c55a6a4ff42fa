//! One simple command as a whole: builtins and programs that take an argument for a name, an option or code.
//!
//! A quoted expansion is one word and nothing else to the grammar, but some commands evaluate their words a second time.
//! The tables below are bash's builtins as its manual describes them, checked against bash 5.2 with
//! `a[$(touch PWNED)]` for a value.

use alloc::{collections::BTreeSet, vec::Vec};
use core::ops::Range;

use super::{
    Place,
    commands::is_code_variable,
    external,
    interpreters::{self, Wrapper},
    lexer::Lexer,
    nesting::{Redirect, Word},
};

/// Commands that run or evaluate their arguments, all of them or ones that are hard to tell.
const EVALUATING_COMMANDS: [&[u8]; 14] = [
    b"jobs",
    b"eval",
    b"let",
    b"trap",
    b"alias",
    b"complete",
    b"compgen",
    b"compopt",
    b"bind",
    b"mapfile",
    b"readarray",
    b"enable",
    b"fc",
    b"hash",
];

/// Commands that declare variables: `name` is evaluated, `=value` depends on the variable.
const DECLARING_COMMANDS: [&[u8]; 5] = [b"declare", b"typeset", b"local", b"readonly", b"export"];

/// Commands that take names of variables, and evaluate the subscripts in them.
const NAMING_COMMANDS: [&[u8]; 4] = [b"unset", b"read", b"wait", b"getopts"];

/// Commands whose words are judged one by one.
const JUDGED_COMMANDS: [&[u8]; 14] = [
    b"declare",
    b"typeset",
    b"local",
    b"readonly",
    b"export",
    b"read",
    b"printf",
    b"test",
    b"[",
    b"env",
    b"exec",
    b"command",
    b"builtin",
    b"xargs",
];

/// Variables that are integers from the start: bash evaluates what is assigned to them.
const INTEGER_VARIABLES: [&[u8]; 4] = [b"HISTCMD", b"OPTIND", b"RANDOM", b"SRANDOM"];

/// Variables that are arrays from the start: `declare` takes `(…)` for a list that is still to be expanded.
const ARRAY_VARIABLES: [&[u8]; 7] =
    [b"DIRSTACK", b"GROUPS", b"FUNCNAME", b"PIPESTATUS", b"BASH_ARGV", b"BASH_ARGC", b"BASH_VERSINFO"];

/// What a script says about its variables, in any order: a function may be called before it is written down.
#[derive(Debug, Default)]
pub(super) struct Variables {
    /// Names with an attribute that makes bash evaluate every assignment.
    evaluated: BTreeSet<Vec<u8>>,
    /// Names of arrays.
    arrays: BTreeSet<Vec<u8>>,
    /// What references are assigned to, and whether a declaring command does it.
    assigned: Vec<(Vec<u8>, bool, Range<usize>)>,
}

impl Variables {
    pub(super) fn new() -> Self {
        let names = |table: &[&[u8]]| table.iter().map(|name| name.to_vec()).collect();
        Self { evaluated: names(&INTEGER_VARIABLES), arrays: names(&ARRAY_VARIABLES), assigned: Vec::new() }
    }

    /// References reach a variable.
    pub(super) fn set(&mut self, name: &[u8], marks: Range<usize>) {
        if !marks.is_empty() {
            self.assigned.push((name.to_vec(), false, marks));
        }
    }

    /// A variable is an array.
    pub(super) fn set_array(&mut self, name: &[u8]) {
        self.arrays.insert(name.to_vec());
    }

    /// The references that reach any variable.
    pub(super) fn assigned_marks(&self) -> impl Iterator<Item = Range<usize>> {
        self.assigned.iter().map(|(_, _, marks)| marks.clone())
    }

    /// The references that reach variables of some names.
    pub(super) fn assigned_where(&self, is_named: impl Fn(&[u8]) -> bool) -> impl Iterator<Item = Range<usize>> {
        let named = self.assigned.iter().filter(move |(name, ..)| is_named(name));
        named.map(|(_, _, marks)| marks.clone())
    }

    /// The references that reach a variable that is evaluated.
    pub(super) fn evaluated(self) -> impl Iterator<Item = (Range<usize>, Place)> {
        let Self { evaluated, arrays, assigned } = self;
        let is_bad = move |(name, is_declared, marks): (Vec<u8>, bool, Range<usize>)| {
            let is_evaluated =
                evaluated.contains(&name) || is_code_variable(&name) || (is_declared && arrays.contains(&name));
            is_evaluated.then_some((marks, Place::EvaluatedVariable))
        };
        assigned.into_iter().filter_map(is_bad)
    }
}

/// What reaches a standard input anywhere in a script, which is code if anything reads its code from there: a function,
/// a group or the script itself may have been given that input further out.
#[derive(Debug, Default)]
pub(super) struct Inputs {
    /// Whether something reads code.
    pub(super) is_code: bool,
    /// The references that reach a standard input.
    pub(super) marks: Vec<Range<usize>>,
}

impl Lexer<'_> {
    /// Refuses what cannot stand in a simple command, given its words.
    pub(super) fn judge(&mut self, words: &[Word]) {
        let inputs = words.iter().filter(|word| word.redirect == Some(Redirect::Input) && word.has_marks());
        self.inputs.marks.extend(inputs.map(|word| word.marks.clone()));
        let arguments: Vec<&Word> = words.iter().filter(|word| word.redirect.is_none()).collect();
        for word in &arguments {
            self.judge_assignment(word);
        }
        let prefix = arguments.iter().take_while(|word| word.assigns).count();
        let (assignments, command) = arguments.split_at(prefix);
        for word in assignments {
            if word.is_compound {
                self.variables.set_array(word.name());
            }
            self.variables.set(word.name(), word.marks.clone());
        }
        self.judge_patterns(command);
        self.judge_name(command);
        let unwrapped = interpreters::unwrap(command);
        if let Some((name, rest)) = unwrapped.split_first() {
            self.judge_builtin(name, rest, words);
        }
        self.judge_interpreters(command, words);
        self.judge_arguments(command, words);
        self.judge_files(command, words);
        for word in words.iter().filter(|word| word.has_process) {
            // What is written into `>( )` is what a command inside reads.
            self.inputs.marks.push(words[0].marks.start.min(word.marks.start)..self.marks_met());
        }
        let inner = external::inner_command(command);
        self.evaluates_expansions |= evaluates_expansions(unwrapped) || evaluates_expansions(inner);
    }

    /// A word that sets a variable that bash or another bash runs, be it before a command or an argument of `env`.
    fn judge_assignment(&mut self, word: &Word) {
        if word.equals_mark.is_some() && word.name() == b"BASH_ALIASES" {
            return self.lose(Place::Unclear);
        }
        if word.equals_mark.is_some() && is_code_variable(word.name()) {
            self.refuse(word.marks.clone(), Place::EvaluatedVariable);
        }
    }

    /// Patterns that can give other words than they look like, where words matter one by one: `{eval,a}`, `bash {-c,…}`.
    fn judge_patterns(&mut self, command: &[&Word]) {
        let (Some(first), Some(last)) = (command.first(), command.last()) else { return };
        let matters = |word: &&Word| JUDGED_COMMANDS.contains(&&word.text[..]) || interpreters::is_interpreter(word);
        let is_pattern = first.is_braced || first.text.iter().any(|byte| matches!(byte, b'*' | b'?'));
        if is_pattern || (command.iter().any(|word| word.is_braced) && command.iter().any(matters)) {
            self.refuse(first.marks.start..last.marks.end, Place::Unclear);
        }
    }

    /// The value of a reference may choose neither the command nor, behind a wrapper, where its name begins.
    fn judge_name(&mut self, command: &[&Word]) {
        let vanishing = command.iter().take_while(|word| word.vanishes()).count();
        let Some(name) = command.get(vanishing) else { return };
        if name.has_marks() {
            return self.refuse(name.marks.clone(), Place::CommandName);
        }
        let Some(wrapper) = Wrapper::of(name) else { return };
        if name.text.ends_with(b"env") && command.iter().any(|word| splits_words(&word.text)) {
            return self.refuse(name.marks.start..self.marks_met(), Place::InnerScript);
        }
        match wrapper.operands {
            Some(operands) => self.judge_wrapped_name(&command[vanishing + 1..], wrapper, operands),
            None => {
                for pair in
                    command.windows(2).filter(|pair| pair[0].text.starts_with(b"-exec") || pair[0].text == b"-ok")
                {
                    self.refuse(pair[1].marks.clone(), Place::CommandName);
                }
            }
        }
    }

    /// The words after a command that runs a command, as far as the name.
    fn judge_wrapped_name(&mut self, words: &[&Word], mut wrapper: Wrapper, mut operands: usize) {
        let mut before: &[u8] = b"";
        for word in words {
            let takes_value = wrapper.takes_value(before);
            before = &word.text;
            if !takes_value && word.text.starts_with(b"-") && word.equals_mark.is_none() {
                self.refuse(word.marks.clone(), Place::Option);
            }
            if takes_value || word.vanishes() || word.text.starts_with(b"-") {
                continue;
            }
            if operands > 0 {
                operands -= 1;
                continue;
            }
            if word.begins_dynamic && word.has_marks() {
                self.refuse(word.marks.clone(), Place::CommandName);
            }
            match Wrapper::of(word) {
                Some(next) => {
                    wrapper = next;
                    operands = next.operands.unwrap_or_default();
                }
                None if word.equals_mark.is_some() => {}
                None => return,
            }
        }
    }

    fn judge_builtin(&mut self, name: &Word, arguments: &[&Word], words: &[Word]) {
        let marks = |words: &[&Word]| match (words.first(), words.last()) {
            (Some(first), Some(last)) => first.marks.start..last.marks.end,
            _ => 0..0,
        };
        match &name.text[..] {
            b"alias" if !arguments.is_empty() => self.lose(Place::Unclear),
            b"mapfile" | b"readarray" => {
                self.refuse(marks(arguments), Place::EvaluatedArgument);
                self.variables.set_array(b"MAPFILE");
                self.judge_names(arguments, words, true);
            }
            text if EVALUATING_COMMANDS.contains(&text) => {
                self.refuse(marks(arguments), Place::EvaluatedArgument);
            }
            b"." | b"source" => self.judge_source(arguments, words),
            text if DECLARING_COMMANDS.contains(&text) => self.judge_declaration(text, arguments),
            text if NAMING_COMMANDS.contains(&text) => {
                for word in arguments {
                    self.refuse(word.name_marks(), Place::VariableName);
                }
                if text == b"read" {
                    self.judge_names(arguments, words, arguments.iter().any(|word| word.text.starts_with(b"-")));
                }
            }
            b"printf" => self.judge_printf(arguments),
            b"test" | b"[" => self.judge_test(arguments),
            _ => {}
        }
    }

    /// Arguments that may be the names of variables, into which the command reads.
    fn judge_names(&mut self, arguments: &[&Word], words: &[Word], may_be_arrays: bool) {
        for word in arguments {
            if may_be_arrays {
                self.variables.set_array(word.name());
            }
            let redirects = words.iter().filter(|word| word.redirect.is_some() && word.has_marks());
            for redirect in redirects {
                self.variables.set(word.name(), redirect.marks.clone());
            }
            if let Some(first) = self.top().pipeline.input_from() {
                let fed = first..self.marks_met();
                self.variables.set(word.name(), fed);
            }
        }
    }

    /// `source FILE ARGUMENT…`: the file is code, the arguments are not.
    fn judge_source(&mut self, arguments: &[&Word], words: &[Word]) {
        let file = arguments.iter().position(|word| word.text != b"--" && !word.vanishes()).unwrap_or(0);
        for word in arguments.iter().take(file + 1).chain(arguments.iter().filter(|word| word.has_process)) {
            self.refuse(word.marks.clone(), Place::InnerScript);
        }
        if arguments.get(file).is_some_and(|word| interpreters::is_descriptor(&word.text)) {
            self.refuse_input(words);
            self.inputs.is_code = true;
        }
    }

    /// `declare` and its kind. With some attributes the value is evaluated again, whatever its quotes.
    fn judge_declaration(&mut self, command: &[u8], arguments: &[&Word]) {
        let is_option = |word: &&&Word| matches!(word.text.first(), Some(b'-' | b'+'));
        let has = |letters: &[u8]| {
            arguments.iter().filter(is_option).any(|word| word.text.iter().any(|byte| letters.contains(byte)))
        };
        let evaluates = has(b"in");
        let lists = has(b"aA");
        let is_unknown = !matches!(command, b"export" | b"readonly")
            && arguments.iter().any(|word| word.is_dynamic && word.equals_mark.is_none());
        for word in arguments {
            self.refuse(word.name_marks(), Place::VariableName);
            if evaluates || is_unknown || (lists && !word.is_compound) {
                self.refuse(word.marks.clone(), Place::EvaluatedVariable);
            }
            if evaluates {
                self.variables.evaluated.insert(word.name().to_vec());
            }
            if lists || word.is_compound {
                self.variables.set_array(word.name());
            }
            if word.has_marks() {
                self.variables.assigned.push((word.name().to_vec(), !word.is_compound, word.marks.clone()));
            }
        }
    }

    /// `printf -v NAME` evaluates a subscript in the name, and a value can be `-v`.
    fn judge_printf(&mut self, arguments: &[&Word]) {
        let vanishing = arguments.iter().take_while(|word| word.vanishes()).count();
        let arguments = &arguments[vanishing..];
        let Some(first) = arguments.first() else { return };
        let names_variable = first.text.starts_with(b"-v");
        if names_variable && let Some(name) = arguments.get(1) {
            self.refuse(name.marks.clone(), Place::VariableName);
            for word in &arguments[2..] {
                self.variables.set(name.name(), word.marks.clone());
            }
        }
        if first.begins_dynamic || first.text.starts_with(b"-") {
            self.refuse(first.marks.clone(), Place::Option);
        }
    }

    /// `test -v NAME` evaluates a subscript in the name; two values side by side can be an operator and a name.
    fn judge_test(&mut self, arguments: &[&Word]) {
        let (Some(first), Some(last)) = (arguments.first(), arguments.last()) else { return };
        if arguments.iter().any(|word| matches!(&word.text[..], b"-v" | b"-R")) {
            self.refuse(first.marks.start..last.marks.end, Place::VariableName);
        }
        for pair in arguments.windows(2) {
            if pair[0].is_dynamic && pair[1].is_dynamic {
                self.refuse(pair[0].marks.start..pair[1].marks.end, Place::Option);
            }
        }
        for word in arguments.iter().filter(|word| word.is_spread) {
            self.refuse(word.marks.clone(), Place::Option);
        }
    }
}

/// Whether a command runs or evaluates what an expansion gives.
fn evaluates_expansions(command: &[&Word]) -> bool {
    let Some((name, arguments)) = command.split_first() else { return false };
    let is_dynamic = |words: &[&Word]| words.iter().any(|word| word.is_dynamic);
    match &name.text[..] {
        b"eval" | b"let" | b"trap" => is_dynamic(arguments),
        _ if interpreters::is_interpreter(name) => interpreters::code_is_dynamic(name, arguments),
        _ => false,
    }
}

/// Whether a word is the option with which `env` makes several words of its value.
fn splits_words(text: &[u8]) -> bool {
    let is_short = text.starts_with(b"-") && !text.starts_with(b"--");
    (is_short && text.contains(&b'S')) || text.starts_with(b"--split")
}
