//! Programs that run code they are given: as an argument, as a file, on their standard input.
//!
//! A reference in such code would put the value into the code, quotes or not: to the inner interpreter it is text. The
//! tables are of what people write in scripts; programs with languages of their own for their arguments (`awk`, `ssh`)
//! stand in `commands`.

use super::{
    Place,
    lexer::Lexer,
    nesting::{Redirect, WORD_BYTES_MAX, Word},
};

/// A command that runs another command.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wrapper {
    /// Operands of its own that come before the command; `None` where the command cannot be told from them.
    pub(super) operands: Option<usize>,
    /// Letters of its options that take the next word for their value.
    valued: &'static [u8],
    /// Whether what it reads becomes arguments of the command.
    pub(super) reads_arguments: bool,
}

impl Wrapper {
    /// What a word is, as the name of a command.
    pub(super) fn of(word: &Word) -> Option<Self> {
        let local = |operands, valued| Some(Self { operands: Some(operands), valued, reads_arguments: false });
        match base_name(&word.text) {
            b"command" | b"builtin" | b"nohup" | b"setsid" | b"tini" | b"unbuffer" => local(0, b""),
            b"exec" => local(0, b"a"),
            b"env" => local(0, b"uC"),
            b"sudo" | b"doas" => local(0, b"ugpChrtTUD"),
            b"nice" => local(0, b"n"),
            b"ionice" => local(0, b"cnp"),
            b"stdbuf" => local(0, b"ioe"),
            b"time" => local(0, b"fo"),
            b"strace" | b"ltrace" => local(0, b"aeopsuESP"),
            b"timeout" => local(1, b"ks"),
            b"chroot" | b"gosu" | b"taskset" | b"chrt" => local(1, b""),
            b"flock" => local(1, b"wE"),
            b"xargs" => Some(Self { operands: Some(0), valued: b"adEILnPs", reads_arguments: true }),
            b"parallel" => Some(Self { operands: None, valued: b"", reads_arguments: true }),
            b"unshare" | b"nsenter" | b"ssh" | b"docker" | b"podman" | b"kubectl" | b"busybox" | b"find" | b"watch"
            | b"systemd-run" | b"bwrap" | b"firejail" => {
                Some(Self { operands: None, valued: b"", reads_arguments: false })
            }
            _ => None,
        }
    }

    /// Whether an option takes the word after it for its value.
    pub(super) fn takes_value(&self, option: &[u8]) -> bool {
        matches!(option, [b'-', letter] if self.valued.contains(letter))
    }
}

/// Interpreters in one command that are judged one by one; a command with more of them is refused as a whole.
const INTERPRETERS_MAX: usize = 16;

/// How a program is given code.
struct Interpreter {
    /// Letters of its options after which code comes.
    code: &'static [u8],
    /// Long options, or a word, after which code comes.
    code_words: &'static [&'static [u8]],
    /// Letters of its options that take the next word for their value.
    valued: &'static [u8],
    /// Letters of its options that take none. A word after any other option may be its value or an operand.
    flags: &'static [u8],
    /// What it does with the words that are neither options nor code.
    operands: Operands,
}

/// What an interpreter does with its operands.
#[derive(PartialEq, Eq)]
enum Operands {
    /// The first is a file with code, without one it is the standard input; all after that or after code is data.
    Code,
    /// The same, but options can still come after code that was an option's.
    CodeThenOptions,
    /// Nothing that matters here.
    Other,
}

impl Interpreter {
    const SHELL: Self = Self {
        code: b"c",
        code_words: &[b"--command"],
        valued: b"oO",
        flags: b"abefhiklmnprstuvxBCDEHPT",
        operands: Operands::Code,
    };

    /// One that may be any program, or that runs a shell among other things.
    const OTHER: Self = Self {
        code: b"c",
        code_words: &[b"--command", b"--session-command"],
        valued: b"",
        flags: b"",
        operands: Operands::Other,
    };

    /// A language's, whose options can be given more than once.
    const fn language(code: &'static [u8], code_words: &'static [&'static [u8]], flags: &'static [u8]) -> Self {
        Self { code, code_words, valued: b"", flags, operands: Operands::CodeThenOptions }
    }

    /// The interpreter of a name, with whatever version it ends in.
    fn of(word: &Word) -> Option<Self> {
        if word.is_dynamic {
            return None;
        }
        let name = base_name(&word.text);
        let version = name.iter().rev().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-')).count();
        let found = match &name[..name.len() - version] {
            b"bash" | b"sh" | b"dash" | b"zsh" | b"ksh" | b"ash" | b"mksh" | b"rbash" | b"fish" => Self::SHELL,
            b"su" | b"runuser" | b"script" | b"flock" => Self::OTHER,
            b"python" | b"pypy" => Self {
                code: b"c",
                code_words: &[],
                valued: b"WX",
                flags: b"bBdEhiImOPqsSuvVx",
                operands: Operands::Code,
            },
            b"perl" => Self::language(b"eE", &[], b"acfhnpsStTuUvwWX"),
            b"ruby" | b"lua" | b"luajit" | b"julia" | b"Rscript" | b"osascript" | b"elixir" => {
                Self::language(b"e", &[], b"achilnpsSvwy")
            }
            b"node" | b"nodejs" | b"bun" | b"tsx" => Self::language(b"ep", &[b"--eval", b"--print"], b"chiv"),
            b"deno" => Self::language(b"", &[b"eval"], b""),
            b"php" => Self::language(b"rBRE", &[], b"aCefhimnqsvw"),
            b"pwsh" | b"powershell" => Self::language(b"cC", &[], b""),
            _ => return None,
        };
        Some(found)
    }

    /// Whether code comes in the word after this one, or in it.
    fn takes_code(&self, word: &Word) -> bool {
        let text = &word.text[..];
        let is_short = text.starts_with(b"-") && !text.starts_with(b"--");
        let long = text.split(|byte| *byte == b'=').next().unwrap_or_default();
        (is_short && text.iter().any(|byte| self.code.contains(byte))) || self.code_words.contains(&long)
    }

    /// Whether the word after this option may be its value.
    fn may_take_value(&self, option: &[u8]) -> bool {
        match option.strip_prefix(b"--") {
            Some(long) => !long.contains(&b'='),
            None => !option[1..].iter().all(|letter| self.flags.contains(letter)),
        }
    }

    /// How many words after this option are values of it: one for each letter that takes one.
    fn values(&self, option: &[u8]) -> usize {
        let is_short = !option.starts_with(b"--");
        option.iter().filter(|letter| is_short && self.valued.contains(letter)).count()
    }
}

/// What was found in the words after an interpreter's name.
#[derive(Default)]
struct Reading {
    /// An option said that code follows.
    is_code_due: bool,
    /// How many words are still values of an option before.
    values_due: usize,
    /// The option before may do so.
    may_be_value: bool,
    /// Options have ended.
    is_past_options: bool,
    /// There was code, or a file with code.
    has_code: bool,
    /// It was told to read code from its standard input.
    reads_input: bool,
    /// What follows is data.
    is_done: bool,
}

/// Whether a word is the name of a program that runs code.
pub(super) fn is_interpreter(word: &Word) -> bool {
    Interpreter::of(word).is_some()
}

/// The place of the file with code among the words after an interpreter's name; none where code is an argument.
pub(super) fn file_operand(name: &Word, arguments: &[&Word]) -> Option<usize> {
    let interpreter = Interpreter::of(name).filter(|found| found.operands != Operands::Other)?;
    let (mut at, mut is_past_options) = (0, false);
    while let Some(word) = arguments.get(at) {
        let text = &word.text[..];
        if is_past_options || !(text.len() > 1 && matches!(text[0], b'-' | b'+')) {
            return Some(at);
        }
        if interpreter.takes_code(word) {
            return None;
        }
        is_past_options = text == b"--";
        at += 1 + interpreter.values(text);
    }
    None
}

/// What makes a shell evaluate its positional parameters. Words by themselves, signs anywhere.
const EVALUATING_WORDS: [&[u8]; 7] = [b"eval", b"let", b"declare", b"typeset", b"trap", b"source", b"unset"];
const EVALUATING_SIGNS: [&[u8]; 13] =
    [b"((", b"$[", b"-eq", b"-ne", b"-lt", b"-le", b"-gt", b"-ge", b" -v ", b"${!", b"@P", b"[$", b". "];

/// Whether a shell's code, given as an argument, may evaluate the arguments after it once more. It is looked at and not
/// read: code that is too long to be looked at may.
pub(super) fn code_evaluates(name: &Word, arguments: &[&Word]) -> bool {
    let Some(interpreter) = Interpreter::of(name).filter(|found| found.valued == Interpreter::SHELL.valued) else {
        return false;
    };
    let codes = arguments.windows(2).filter(|pair| interpreter.takes_code(pair[0])).map(|pair| pair[1]);
    let evaluates = |code: &[u8]| {
        let mut words = code.split(|byte| !byte.is_ascii_alphabetic());
        words.any(|word| EVALUATING_WORDS.contains(&word))
            || EVALUATING_SIGNS.iter().any(|sign| code.windows(sign.len()).any(|part| part == *sign))
    };
    codes.into_iter().any(|code| code.text.len() >= WORD_BYTES_MAX || evaluates(&code.text))
}

/// Whether an interpreter that is given code as an argument may run its operands, or take them for options.
pub(super) fn opens_operands(name: &Word) -> bool {
    Interpreter::of(name).is_some_and(|found| found.operands != Operands::Code)
}

/// Whether the code that an interpreter is given as an argument has an expansion in it.
pub(super) fn code_is_dynamic(name: &Word, arguments: &[&Word]) -> bool {
    let Some(interpreter) = Interpreter::of(name) else { return false };
    let options = arguments.windows(2).filter(|pair| interpreter.takes_code(pair[0]));
    options.into_iter().any(|pair| pair[0].is_dynamic || pair[1].is_dynamic)
}

/// The command inside `command` and `builtin`, with its arguments. An expansion of nothing leaves the name to the next
/// word.
pub(super) fn unwrap<'a, 'b>(command: &'a [&'b Word]) -> &'a [&'b Word] {
    let mut rest = command;
    while let Some((name, arguments)) = rest.split_first()
        && (matches!(&name.text[..], b"command" | b"builtin" | b"time") || name.can_vanish())
    {
        let options = arguments.iter().take_while(|word| word.text.starts_with(b"-")).count();
        rest = &arguments[options..];
    }
    rest
}

impl Lexer<'_> {
    /// Refuses references in code that a command gives to interpreters. `words` are those of the command with its
    /// redirections.
    pub(super) fn judge_interpreters(&mut self, command: &[&Word], words: &[Word]) {
        let Some(name) = command.first() else { return };
        let wrapper = Wrapper::of(name);
        if name.is_dynamic {
            self.judge_interpreter(&Interpreter::OTHER, &command[1..], words, true);
        }
        if let [first, .., last] = command
            && Wrapper::of(first).is_some_and(|wrapper| wrapper.reads_arguments)
            && Wrapper::of(last).is_some()
        {
            // `xargs env`: the command itself is read.
            self.refuse_input(words);
        }
        let mut count = 0;
        for (at, word) in command.iter().enumerate() {
            let Some(interpreter) = Interpreter::of(word) else { continue };
            count += 1;
            if count > INTERPRETERS_MAX {
                return self.refuse(words[0].marks.start..self.marks_met(), Place::InnerScript);
            }
            let is_command = at == 0 || wrapper.is_some() || name.can_vanish();
            let reading = self.judge_interpreter(&interpreter, &command[at + 1..], words, is_command);
            let replaces = |word: &&Word| {
                word.text.starts_with(b"-I") || word.text.starts_with(b"-i") || word.text.starts_with(b"--repl")
            };
            let is_replacing = name.text.ends_with(b"parallel") || command[..at].iter().any(replaces);
            // What `xargs` reads is code if the code is still missing, or if it is put into the code.
            let reads_arguments = wrapper.is_some_and(|wrapper| wrapper.reads_arguments);
            if reads_arguments && (reading.is_code_due || (is_replacing && reading.has_code)) {
                self.refuse_input(words);
            }
            let is_run = at == 0 || wrapper.is_some_and(|wrapper| wrapper.operands.is_some());
            if is_run && reading.reads_inherited_input(&command[..at], &command[at + 1..]) {
                self.inputs.is_code = true;
            }
        }
    }

    fn judge_interpreter(&mut self, found: &Interpreter, rest: &[&Word], words: &[Word], is_command: bool) -> Reading {
        let mut reading = Reading::default();
        for word in rest {
            if let Some(place) = reading.take(word, found, is_command) {
                self.refuse(word.marks.clone(), place);
            }
            if reading.is_done {
                break;
            }
        }
        reading.reads_input |= found.operands != Operands::Other && !reading.has_code;
        if is_command && reading.reads_input {
            self.refuse_input(words);
        }
        reading
    }

    /// Refuses what reaches the standard input of a command.
    pub(super) fn refuse_input(&mut self, words: &[Word]) {
        for word in words.iter().filter(|word| word.redirect == Some(Redirect::Input)) {
            self.refuse(word.marks.clone(), Place::InnerScript);
        }
        if let Some(first) = self.top().pipeline.input_from() {
            self.refuse(first..self.marks_met(), Place::InnerScript);
        }
    }
}

impl Reading {
    /// Whether the interpreter reads code from whatever was made its standard input further out. Asking for a version or
    /// for where a program is reads nothing.
    fn reads_inherited_input(&self, before: &[&Word], rest: &[&Word]) -> bool {
        let asks = |word: &&Word| matches!(&word.text[..], b"-v" | b"-V" | b"-h" | b"--version" | b"--help");
        self.reads_input && !before.iter().chain(rest).any(asks)
    }

    /// Takes the next word, and says why no reference can stand in it.
    fn take(&mut self, word: &Word, interpreter: &Interpreter, is_command: bool) -> Option<Place> {
        let text = &word.text[..];
        let runs_operand = interpreter.operands != Operands::Other;
        if let Some(left) = self.values_due.checked_sub(1) {
            self.values_due = left;
            return Some(Place::Option);
        }
        if text == b"--" {
            self.is_past_options = true;
            self.may_be_value = false;
            return None;
        }
        if interpreter.takes_code(word) {
            self.is_code_due = true;
            self.values_due = interpreter.values(text);
            return Some(Place::InnerScript);
        }
        if text.len() > 1 && matches!(text[0], b'-' | b'+') {
            self.values_due = interpreter.values(text);
            self.may_be_value = interpreter.may_take_value(text);
            let is_short = !text.starts_with(b"--");
            self.reads_input |= is_short && interpreter.valued.contains(&b'o') && text.contains(&b's');
            let is_bad = runs_operand && is_command && (is_short || word.equals_mark.is_none());
            return is_bad.then_some(Place::Option);
        }
        if self.is_code_due && word.vanishes() {
            return None;
        }
        if core::mem::take(&mut self.is_code_due) {
            self.has_code = true;
            self.is_done = interpreter.operands == Operands::Code;
            return Some(Place::InnerScript);
        }
        if !runs_operand {
            return None;
        }
        self.take_operand(word).filter(|_| is_command)
    }

    /// Takes a word that is no option: a file with code, or the value of an option before it.
    fn take_operand(&mut self, word: &Word) -> Option<Place> {
        let is_sure = !core::mem::take(&mut self.may_be_value) && !word.vanishes();
        let is_data = self.has_code;
        self.is_done = is_sure;
        self.has_code |= is_sure;
        self.reads_input |= word.text == b"-" || is_descriptor(&word.text);
        match () {
            () if is_data => None,
            () if word.has_process => Some(Place::InnerScript),
            () if word.begins_dynamic && !self.is_past_options => Some(Place::Option),
            () => None,
        }
    }
}

/// Whether a path may lead to what a process has open.
pub(super) fn is_descriptor(path: &[u8]) -> bool {
    path.starts_with(b"/dev/") || path.starts_with(b"/proc/")
}

/// A program's name without its folder.
pub(super) fn base_name(text: &[u8]) -> &[u8] {
    text.rsplit(|byte| *byte == b'/').next().unwrap_or_default()
}
