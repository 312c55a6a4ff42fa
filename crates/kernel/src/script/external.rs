//! The arguments of programs: a value may be an operand, and neither an option nor a part of anything that is run.
//!
//! A program that is not known gets a value in two places only: after `--`, or behind letters of the author that are
//! neither an option nor code, as in `v@vars.version` or `./@vars.file`. What comes directly after an option may be its
//! value, which may be a command (`-e`, `-c`, `--exec`), so that it is refused unless the option is known.

use alloc::{collections::BTreeSet, vec::Vec};

use super::{
    Place,
    commands::{Class, class_of, is_flag, is_safe_option},
    interpreters::{self, Wrapper},
    lexer::Lexer,
    nesting::{WORD_BYTES_MAX, Word},
};

/// Commands of bash that are judged by themselves.
const BUILTINS: &[&[u8]] = &[
    b"declare",
    b"typeset",
    b"local",
    b"readonly",
    b"export",
    b"unset",
    b"read",
    b"wait",
    b"getopts",
    b"printf",
    b"test",
    b"[",
    b".",
    b"source",
    b"mapfile",
    b"readarray",
    b"exec",
    b"shift",
];

/// Calls of what may be a function of the script: known at its end.
#[derive(Debug, Default)]
pub(super) struct Calls {
    /// The functions that the script defines.
    pub(super) functions: BTreeSet<Vec<u8>>,
    /// What is refused unless the name is that of a function.
    pending: Vec<(Vec<u8>, core::ops::Range<usize>, Place)>,
    /// References that reach functions, and positional parameters by `set`.
    pub(super) parameters: Vec<(Option<Vec<u8>>, core::ops::Range<usize>)>,
}

impl Calls {
    /// The references that reach positional parameters.
    pub(super) fn positional(&self) -> impl Iterator<Item = core::ops::Range<usize>> {
        let is_call = |name: &Option<Vec<u8>>| name.as_ref().is_none_or(|name| self.functions.contains(name));
        self.parameters.iter().filter(move |(name, _)| is_call(name)).map(|(_, marks)| marks.clone())
    }

    /// The references that no function takes.
    pub(super) fn refused(self) -> impl Iterator<Item = (core::ops::Range<usize>, Place)> {
        let functions = self.functions;
        let is_call = move |name: &[u8]| functions.contains(name);
        self.pending.into_iter().filter(move |(name, ..)| !is_call(name)).map(|(_, marks, place)| (marks, place))
    }
}

impl Lexer<'_> {
    /// Judges the references among the arguments of a command, as far as it may be a program.
    pub(super) fn judge_arguments(&mut self, command: &[&Word], words: &[Word]) {
        if let Some((first, rest)) = command.split_first()
            && first.can_vanish()
        {
            self.judge_operands(first, rest, true);
        }
        let outer = command;
        let command = inner_command(command);
        let Some((name, arguments)) = command.split_first() else { return };
        let wrappers = &outer[..outer.len() - command.len()];
        if wrappers.iter().any(|word| Wrapper::of(word).is_some_and(|wrapper| wrapper.reads_arguments)) {
            self.judge_read_arguments(name, arguments, words);
        }
        if BUILTINS.contains(&&name.text[..]) && !name.is_dynamic {
            return;
        }
        if &name.text[..] == b"set" {
            return self.judge_set(arguments);
        }
        if interpreters::is_interpreter(name) {
            return self.judge_script_arguments(name, arguments);
        }
        let class = match name.is_dynamic {
            true => Class::Unknown,
            false => class_of(&name.text, arguments.iter().map(|word| &word.text[..])),
        };
        self.judge_fed(class, arguments, words);
        match class {
            Class::Data => {}
            Class::Files => self.judge_operands(name, arguments, false),
            Class::Unknown => self.judge_operands(name, arguments, true),
            Class::Code | Class::Filter => self.judge_code(name, arguments),
        }
    }

    /// `echo @vars.x | xargs git fetch`: what is read becomes arguments, wherever its words begin.
    fn judge_read_arguments(&mut self, name: &Word, arguments: &[&Word], words: &[Word]) {
        let class = match name.is_dynamic {
            true => Class::Unknown,
            false => class_of(&name.text, arguments.iter().map(|word| &word.text[..])),
        };
        let is_past_options = arguments.last().is_some_and(|word| &word.text[..] == b"--");
        let is_data = match class {
            Class::Data => true,
            Class::Files => is_past_options,
            Class::Unknown => is_past_options || interpreters::is_interpreter(name),
            Class::Code | Class::Filter => false,
        };
        if !is_data {
            self.refuse_input(words);
        }
    }

    /// What reaches the standard input of a program that takes it for code.
    fn judge_fed(&mut self, class: Class, arguments: &[&Word], words: &[Word]) {
        let reads_input = |word: &&Word| word.text.ends_with(b"-") || interpreters::is_descriptor(&word.text);
        let is_code = match class {
            Class::Code => true,
            Class::Filter => arguments.iter().any(|word| reads_input(word) || word.text.starts_with(b"-f")),
            Class::Data | Class::Files | Class::Unknown => false,
        };
        if is_code {
            self.refuse_input(words);
            self.inputs.is_code = true;
        }
    }

    /// Arguments that are code or may be: nothing but the values of options that are known to be data.
    fn judge_code(&mut self, name: &Word, arguments: &[&Word]) {
        for (at, word) in arguments.iter().enumerate().filter(|(_, word)| word.has_marks()) {
            let before = |back: usize| at.checked_sub(back).map_or(&b""[..], |at| &arguments[at].text[..]);
            let is_named = word.equals_mark.is_some_and(|mark| mark == word.marks.start) && word.assigns;
            let is_data = is_safe_option(&name.text, before(1))
                || (interpreters::base_name(&name.text).ends_with(b"awk") && before(1) == b"-v" && is_named)
                || (interpreters::base_name(&name.text) == b"jq" && matches!(before(2), b"--arg"));
            if !is_data || word.has_process || word.is_spread {
                self.refuse(word.marks.clone(), Place::InnerScript);
            }
        }
    }

    /// `set @vars.x` sets options of the shell; after `--` it sets the positional parameters.
    fn judge_set(&mut self, arguments: &[&Word]) {
        let end = arguments.iter().position(|word| &word.text[..] == b"--").unwrap_or(arguments.len());
        for word in &arguments[..end] {
            self.refuse(word.marks.clone(), Place::Option);
        }
        self.calls.parameters.extend(arguments[end..].iter().map(|word| (None, word.marks.clone())));
    }

    /// What comes after a file with code is for that code, which is a program like any other. After code in an argument
    /// it is data.
    fn judge_script_arguments(&mut self, name: &Word, arguments: &[&Word]) {
        match interpreters::file_operand(name, arguments) {
            Some(at) => {
                self.refuse(arguments[at].marks.clone(), Place::InnerScript);
                if &arguments[at].text[..] != b"-" {
                    self.judge_operands(name, &arguments[at + 1..], true);
                }
            }
            None if interpreters::opens_operands(name) => {
                // `perl -ne` runs the operand `command|`; others go on to read options.
                for word in arguments {
                    self.refuse(word.marks.clone(), Place::InnerScript);
                }
            }
            None if interpreters::code_evaluates(name, arguments) => {
                for word in arguments {
                    self.refuse(word.marks.clone(), Place::EvaluatedArgument);
                }
            }
            None => {}
        }
    }

    /// Operands of a program. `may_run` says whether words that are none may be code.
    fn judge_operands(&mut self, name: &Word, arguments: &[&Word], may_run: bool) {
        let mut is_past_options = false;
        let mut option: Option<&Word> = None;
        for word in arguments {
            let before = option.take();
            let is_option = word.text.len() > 1 && word.text.starts_with(b"-") && !is_past_options;
            if !word.has_marks() {
                is_past_options |= &word.text[..] == b"--" && !word.is_dynamic;
                let may_take_value = is_option && !word.text.contains(&b'=') && !is_flag(&name.text, &word.text);
                option = (may_take_value && !is_past_options).then_some(*word);
                continue;
            }
            let is_safe_value = |option: &[u8]| is_safe_option(&name.text, option);
            let place = match before {
                _ if may_run && word.has_process => Some(Place::InnerScript),
                Some(option) if is_safe_value(&option.text) && !word.is_spread => None,
                _ if word.may_begin_with_value() && !is_past_options => Some(Place::Option),
                _ if is_option => {
                    let end = word.text.iter().position(|byte| *byte == b'=').unwrap_or(word.text.len());
                    (!is_safe_value(&word.text[..end])).then_some(Place::Option)
                }
                Some(_) if may_run && !is_address(word) => Some(Place::Option),
                _ if may_run && !is_plain(word) => Some(Place::InnerScript),
                _ => None,
            };
            if let Some(place) = place {
                self.refuse_unless_function(name, word.marks.clone(), place);
            }
        }
        if class_is_unknown(name) {
            let marked = arguments.iter().filter(|word| word.has_marks());
            self.calls.parameters.extend(marked.map(|word| (Some(name.text.clone()), word.marks.clone())));
        }
    }

    fn refuse_unless_function(&mut self, name: &Word, marks: core::ops::Range<usize>, place: Place) {
        if class_is_unknown(name) {
            self.calls.pending.push((name.text.clone(), marks, place));
        } else {
            self.refuse(marks, place);
        }
    }
}

/// Whether only the end of the script tells what a name stands for.
fn class_is_unknown(name: &Word) -> bool {
    !name.is_dynamic
        && !name.text.contains(&b'/')
        && !interpreters::is_interpreter(name)
        && class_of(&name.text, core::iter::empty()) == Class::Unknown
}

/// Whether the literal letters of a word can be nothing but a part of a name, a path, a version or a list of those.
fn is_plain(word: &Word) -> bool {
    let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || *byte >= 0x80 || b"_./:=,+%@-".contains(byte);
    word.text.len() < WORD_BYTES_MAX && word.text.iter().all(is_letter)
}

/// Whether a word is the address of something on the network, which nothing runs by itself.
fn is_address(word: &Word) -> bool {
    word.text.starts_with(b"https://") || word.text.starts_with(b"http://")
}

/// The command that wrappers (`sudo`, `timeout`, `env`, `xargs`) run, with its arguments.
pub(super) fn inner_command<'a, 'b>(command: &'a [&'b Word]) -> &'a [&'b Word] {
    let mut rest = command;
    loop {
        while rest.first().is_some_and(|word| word.can_vanish()) && rest.len() > 1 {
            rest = &rest[1..];
        }
        let Some((name, arguments)) = rest.split_first() else { return rest };
        let Some((wrapper, operands)) =
            Wrapper::of(name).filter(|_| !name.is_dynamic).and_then(|wrapper| Some((wrapper, wrapper.operands?)))
        else {
            return rest;
        };
        let (mut at, mut left) = (0, operands);
        while let Some(word) = arguments.get(at) {
            let text = &word.text[..];
            if text == b"--" {
                // Options have ended.
            } else if text.starts_with(b"-") {
                at += usize::from(wrapper.takes_value(text));
            } else if word.assigns {
                // A variable for the command.
            } else if left > 0 {
                left -= 1;
            } else {
                break;
            }
            at += 1;
        }
        if at >= arguments.len() {
            return &[];
        }
        rest = &arguments[at..];
    }
}
