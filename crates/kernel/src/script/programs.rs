//! The table of programs that may receive values, with their options and operands.
//!
//! The table is an allowlist: no value may reach a program, a subcommand or an option that is not listed. Each entry
//! was checked against the manual of the program. An entry asserts that the listed options alone keep a value data.

use alloc::vec::Vec;

use super::{
    files,
    flow::Reach,
    git,
    place::Place,
    syntax::{Check, Word, is_digits, is_identifier},
    transfer, variables,
};

/// A program or one of its subcommands.
struct Program {
    /// The name of the program, followed by those of its subcommands.
    command: &'static [&'static str],
    /// Short options without an argument, which may be combined.
    letters: &'static str,
    /// Other options without an argument.
    flags: &'static [&'static str],
    /// Options whose argument, the next word, must be literal.
    literal: &'static [&'static str],
    /// Prefixes of literal options that contain their argument.
    attached: &'static [&'static str],
    /// Options whose argument, the next word, is text even if it starts with a dash. Long options also accept it after
    /// `=`.
    text: &'static [&'static str],
    /// Options whose argument, the next word, is text after a literal `NAME=`.
    named: &'static [&'static str],
    operands: Operands,
    /// True if the program treats its standard input as data.
    reads: bool,
    /// The furthest reach of values in the script with which the program may run. A program that reads configuration,
    /// hooks or instructions from files must not run if files contain values.
    reach: Reach,
    effect: Effect,
}

/// The operands of a program that may be values.
#[derive(Clone, Copy)]
enum Operands {
    /// All arguments may be values: no option of the program executes or writes anything.
    Anything,
    /// Values come after `--` or after a literal prefix. The first operands must be literal.
    Values { literal: usize, max: usize },
    /// Like [`Values`](Self::Values) with one literal operand, the remote. The module `git` checks the values, which
    /// are parts of refspecs.
    Refspecs,
    /// Like [`Values`](Self::Values), but `git` interprets the operands as patterns by default: all of them, or those
    /// after `--`.
    Pathspecs { all: bool },
    /// No operand may be a value.
    Literal,
}

/// The effect of a program on the values that it receives, besides its output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// No effect; the values may be in the output.
    None,
    /// Stores them where another program may read them.
    Keeps,
    /// Creates files whose names come from them.
    Names,
    /// Writes them to files with literal names.
    Writes,
    /// Renames, copies or links files.
    Moves,
    /// Changes the working folder. True if the new folder is literal, below the current one, and not searched for code.
    Enters(bool),
}

const ANY: usize = usize::MAX;

/// A program that prints its arguments or the files that they name.
const fn prints(command: &'static [&'static str]) -> Program {
    Program { operands: Operands::Anything, ..reads(command, "") }
}

/// A program that reads files or its standard input and prints.
const fn reads(command: &'static [&'static str], letters: &'static str) -> Program {
    Program {
        command,
        letters,
        flags: &[],
        literal: &[],
        attached: &[],
        text: &[],
        named: &[],
        operands: Operands::Values { literal: 0, max: ANY },
        reads: true,
        reach: Reach::Files,
        effect: Effect::None,
    }
}

/// A program that changes files and reads no more than a confirmation from its standard input.
const fn changes(command: &'static [&'static str], letters: &'static str, effect: Effect) -> Program {
    Program { effect, ..reads(command, letters) }
}

/// A subcommand of a program that stores its arguments and has configuration and hooks.
const fn keeps(command: &'static [&'static str], letters: &'static str) -> Program {
    Program { reads: false, reach: Reach::Texts, effect: Effect::Keeps, ..reads(command, letters) }
}

const PROGRAMS: &[Program] = &[
    prints(&["echo"]),
    prints(&["true"]),
    prints(&["false"]),
    prints(&[":"]),
    prints(&["cat"]),
    prints(&["ls"]),
    prints(&["sleep"]),
    reads(&["which"], "a"),
    Program { literal: &["-d"], attached: &["-d"], ..reads(&["paste"], "s") },
    Program { literal: &["-s"], ..reads(&["basename"], "a") },
    reads(&["dirname"], ""),
    reads(&["md5sum"], "bt"),
    reads(&["sha1sum"], "bt"),
    reads(&["sha256sum"], "bt"),
    reads(&["sha512sum"], "bt"),
    // Prints the path of a new file.
    Program { operands: Operands::Literal, ..reads(&["mktemp"], "dq") },
    Program { literal: &["-n", "-c"], attached: &["-n", "-c"], ..reads(&["head"], "qvz0123456789") },
    Program { literal: &["-n", "-c"], attached: &["-n", "-c"], ..reads(&["tail"], "qvz0123456789") },
    reads(&["wc"], "lwcmL"),
    Program { literal: &["-k", "-t"], attached: &["-k", "-t"], ..reads(&["sort"], "nrufhVbdgiMsz") },
    // The second operand is an output file.
    Program { operands: Operands::Values { literal: 0, max: 1 }, ..reads(&["uniq"], "cdiu") },
    Program { literal: &["-d", "-f", "-c", "-b"], attached: &["-d", "-f", "-c", "-b"], ..reads(&["cut"], "sz") },
    reads(&["tr"], "cdst"),
    reads(&["tac"], ""),
    reads(&["rev"], ""),
    Program { flags: &["--decode"], literal: &["-w"], attached: &["-w"], ..reads(&["base64"], "di") },
    Program {
        literal: &["-m", "-A", "-B", "-C"],
        attached: &["-m", "-A", "-B", "-C"],
        flags: &[
            "--quiet",
            "--ignore-case",
            "--invert-match",
            "--count",
            "--line-number",
            "--only-matching",
            "--extended-regexp",
            "--fixed-strings",
            "--line-regexp",
            "--word-regexp",
        ],
        text: &["-e"],
        ..reads(&["grep"], "qivcnoEFGPxwlLsHhar")
    },
    Program { operands: Operands::Values { literal: 0, max: 2 }, ..reads(&["cmp"], "sbl") },
    Program { operands: Operands::Values { literal: 0, max: 2 }, ..reads(&["diff"], "uqrwbBisaN") },
    Program { literal: &["-c", "--format"], attached: &["-c", "--format="], ..reads(&["stat"], "L") },
    reads(&["realpath"], "emsz"),
    reads(&["readlink"], "efmnz"),
    Program { text: &["-d", "--date"], attached: &["-I"], operands: Operands::Literal, ..reads(&["date"], "u") },
    Program {
        flags: &["-print", "-print0", "-not", "-o", "-a", "-or", "-and"],
        literal: &["-type", "-maxdepth", "-mindepth", "-mtime", "-mmin", "-size"],
        text: &["-name", "-iname", "-path", "-ipath"],
        operands: Operands::Literal,
        ..reads(&["find"], "")
    },
    Program { literal: &["-m"], ..changes(&["mkdir"], "pv", Effect::Names) },
    changes(&["touch"], "acm", Effect::Names),
    changes(&["rm"], "rfvd", Effect::None),
    changes(&["rmdir"], "pv", Effect::None),
    Program { reads: false, ..changes(&["cp"], "aRrfpnvuLPT", Effect::Moves) },
    Program { reads: false, ..changes(&["mv"], "fnvuT", Effect::Moves) },
    Program { reads: false, ..changes(&["ln"], "sfnvT", Effect::Moves) },
    Program { operands: Operands::Values { literal: 1, max: ANY }, ..changes(&["chmod"], "Rvcf", Effect::None) },
    Program { operands: Operands::Literal, reach: Reach::Texts, ..changes(&["tee"], "ai", Effect::Writes) },
    Program { operands: Operands::Pathspecs { all: true }, ..keeps(&["git", "add"], "Afuv") },
    Program { flags: &["--delete"], ..keeps(&["git", "branch"], "dDfqv") },
    Program {
        flags: &["--detach", "--quiet"],
        text: &["-b", "-B"],
        operands: Operands::Pathspecs { all: false },
        ..keeps(&["git", "checkout"], "qf")
    },
    Program {
        flags: &["--quiet", "--single-branch", "--no-tags", "--bare"],
        literal: &["--depth"],
        attached: &["--depth="],
        text: &["-b", "--branch"],
        operands: Operands::Literal,
        ..keeps(&["git", "clone"], "qv")
    },
    Program {
        flags: &["--amend", "--no-verify", "--allow-empty", "--no-edit", "--signoff", "--quiet", "--all"],
        literal: &["-F"],
        text: &["-m", "-am", "-sm", "-qm", "--message", "--author", "--date"],
        operands: Operands::Pathspecs { all: true },
        ..keeps(&["git", "commit"], "asqnv")
    },
    Program { flags: &["--stat", "--name-only", "--quiet", "--cached", "--exit-code"], ..keeps(&["git", "diff"], "") },
    Program {
        flags: &["--tags", "--prune", "--force", "--quiet", "--unshallow"],
        literal: &["--depth"],
        attached: &["--depth="],
        operands: Operands::Refspecs,
        ..keeps(&["git", "fetch"], "fpqtv")
    },
    Program {
        flags: &["--oneline", "--no-decorate", "--reverse"],
        literal: &["-n"],
        attached: &["-n", "--format=", "--pretty="],
        text: &["--author", "--grep", "--since", "--until"],
        ..keeps(&["git", "log"], "0123456789")
    },
    Program {
        flags: &["--tags", "--force", "--force-with-lease", "--follow-tags", "--set-upstream", "--delete", "--quiet"],
        operands: Operands::Refspecs,
        ..keeps(&["git", "push"], "dfquv")
    },
    Program { flags: &["--verify", "--short", "--quiet"], ..keeps(&["git", "rev-parse"], "q") },
    Program { flags: &["--verify", "--quiet", "--exists"], ..keeps(&["git", "show-ref"], "q") },
    Program {
        flags: &["--exit-code", "--heads", "--tags", "--refs", "--quiet"],
        operands: Operands::Values { literal: 1, max: ANY },
        ..keeps(&["git", "ls-remote"], "q")
    },
    Program { flags: &["--is-ancestor"], ..keeps(&["git", "merge-base"], "") },
    Program {
        flags: &["--hard", "--soft", "--mixed", "--quiet"],
        operands: Operands::Pathspecs { all: false },
        ..keeps(&["git", "reset"], "q")
    },
    Program {
        flags: &["--stat", "--name-only", "--no-patch", "--oneline"],
        attached: &["--format=", "--pretty="],
        ..keeps(&["git", "show"], "s")
    },
    Program { flags: &["--short", "--porcelain"], operands: Operands::Literal, ..keeps(&["git", "status"], "sb") },
    Program { flags: &["--detach", "--quiet"], text: &["-c", "-C"], ..keeps(&["git", "switch"], "q") },
    Program {
        flags: &["--annotate", "--force", "--delete"],
        text: &["-m", "-am", "--message"],
        ..keeps(&["git", "tag"], "adf")
    },
    Program {
        flags: &["--draft", "--prerelease", "--generate-notes"],
        text: &["-t", "--title", "-n", "--notes", "--target"],
        ..keeps(&["gh", "release", "create"], "dp")
    },
    Program {
        flags: &["--draft"],
        literal: &["-B", "--base", "-l", "--label"],
        text: &["-t", "--title", "-b", "--body"],
        operands: Operands::Literal,
        ..keeps(&["gh", "pr", "create"], "d")
    },
    Program {
        literal: &["-l", "--label"],
        text: &["-t", "--title", "-b", "--body"],
        operands: Operands::Literal,
        ..keeps(&["gh", "issue", "create"], "")
    },
    Program { text: &["-b", "--body"], operands: Operands::Literal, ..keeps(&["gh", "issue", "comment"], "") },
    Program { text: &["-b", "--body"], operands: Operands::Literal, ..keeps(&["gh", "pr", "comment"], "") },
    Program {
        flags: &["--no-cache", "--pull", "--push", "--quiet"],
        literal: &["-f", "--file", "--platform", "--target"],
        text: &["-t", "--tag"],
        named: &["--build-arg"],
        operands: Operands::Literal,
        reach: Reach::Outputs,
        ..keeps(&["docker", "build"], "q")
    },
    Program { reach: Reach::Outputs, ..keeps(&["docker", "tag"], "") },
    Program { reach: Reach::Outputs, ..keeps(&["docker", "push"], "q") },
    Program { reach: Reach::Outputs, ..keeps(&["docker", "pull"], "q") },
    // `transfer` checks the arguments of `curl`.
    Program { reads: false, reach: Reach::Texts, ..reads(&["curl"], "") },
];

/// The table entry of a command, with its arguments.
struct Found<'a> {
    program: &'static Program,
    arguments: &'a [Word],
    /// True if `git` takes paths literally.
    has_literal_paths: bool,
}

/// Returns the table entry of a command.
fn find(words: &[Word]) -> Option<Found<'_>> {
    let (name, rest) = words.split_first()?;
    let is = |word: &Word, text: &str| word.literal() == Some(text.as_bytes());
    let globals = if is(name, "git") { git::globals(rest) } else { git::Globals::default() };
    let rest = &rest[globals.length..];
    let is_named = |program: &&Program| {
        let (first, others) = program.command.split_first().expect("a command has a name");
        others.len() <= rest.len() && is(name, first) && others.iter().zip(rest).all(|(text, word)| is(word, text))
    };
    let program = PROGRAMS.iter().find(is_named)?;
    let arguments = &rest[program.command.len() - 1..];
    Some(Found { program, arguments, has_literal_paths: globals.has_literal_paths })
}

/// Removes `timeout SECONDS` from the start of a command.
fn behind_timeout(words: &[Word]) -> &[Word] {
    match words {
        [name, time, rest @ ..] if name.literal() == Some(b"timeout") && is_time(time) && !rest.is_empty() => rest,
        _ => words,
    }
}

fn is_time(word: &Word) -> bool {
    word.literal().is_some_and(|text| is_digits(text.strip_suffix(b"s").or(text.strip_suffix(b"m")).unwrap_or(text)))
}

/// Returns the effect of a command on values.
pub(super) fn effect(words: &[Word]) -> Effect {
    let words = behind_timeout(words);
    match words.first().and_then(Word::literal) {
        Some(b"cd") => Effect::Enters(words[1..].iter().all(|word| word.literal().is_some_and(files::is_plain_folder))),
        Some(b"curl") if words.iter().any(transfer::may_be_output) => Effect::Writes,
        Some(b"cp" | b"mv") if keeps_text(words) => Effect::Writes,
        _ => find(words).map_or(Effect::None, |found| found.program.effect),
    }
}

/// True if `cp` or `mv` has one source and one target, and values may be written to files of both names.
fn keeps_text(words: &[Word]) -> bool {
    let is_option = |word: &&Word| word.literal().is_some_and(|text| text.starts_with(b"-"));
    let files: Vec<_> = words[1..].iter().filter(|word| !is_option(word)).collect();
    matches!(files[..], [from, to] if may_write(from) && to.literal().is_some_and(files::is_plain))
}

/// Checks that a command treats all values that reach it as data. `input` is true if a value reaches its standard
/// input.
pub(super) fn judge(words: &[Word], input: bool, reach: Reach) -> Result<(), Place> {
    let words = behind_timeout(words);
    match words.first().and_then(Word::literal) {
        Some(b"sed") => return filter(words, "nEr", is_edit),
        Some(b"awk") => return filter(words, "", is_print),
        Some(b"jq") => return query(words),
        _ => {}
    }
    let Some(found) = find(words) else { return Err(Place::Argument) };
    if reach > found.program.reach {
        return Err(Place::Argument);
    }
    let sends_input = || found.program.command[0] == "curl" && transfer::sends_input(found.arguments);
    if input && !found.program.reads && !sends_input() {
        return Err(Place::Input);
    }
    match found.program.command[0] {
        "curl" => transfer::judge(found.arguments),
        // `find` parses expressions after `--` too.
        "find" if found.arguments.iter().any(|word| word.literal() == Some(b"--")) => Err(Place::Option),
        "docker" => {
            arguments(&found)?;
            names_registry(&found).then_some(()).ok_or(Place::Registry)
        }
        "tee" => {
            arguments(&found)?;
            let is_option = |word: &Word| word.literal().is_some_and(|text| text.starts_with(b"-"));
            let is_written = |word: &Word| is_option(word) || may_write(word);
            found.arguments.iter().all(is_written).then_some(()).ok_or(Place::Written)
        }
        _ => arguments(&found),
    }
}

/// True if values may be written to the file that a word names.
pub(super) fn may_write(word: &Word) -> bool {
    let is_new = word.is_temporary && word.is_one();
    is_new || word.literal().is_some_and(|path| files::is_stream(path) || files::is_plain(path))
}

/// Programs and builtins that change what a path names, or enter it.
const CHANGES_PATHS: [&[u8]; 9] = [b"rm", b"rmdir", b"cp", b"mv", b"ln", b"chmod", b"mkdir", b"touch", b"cd"];

/// Returns the check that values in an argument of an accepted command need, and the number of leading parts of the word
/// that they are in.
pub(super) fn check_of(words: &[Word], word: &Word) -> Option<(Check, usize)> {
    let words = behind_timeout(words);
    if !word.has_value {
        return None;
    }
    let name = words.first().and_then(Word::literal)?;
    if CHANGES_PATHS.contains(&name) {
        return Some((Check::Filled, files::parts_before_root(word)?));
    }
    let is_refspec = find(words).is_some_and(|found| matches!(found.program.operands, Operands::Refspecs));
    is_refspec.then_some((Check::WithoutColon, word.pieces.len()))
}

/// True if the output of a command may show the arguments of other processes, and thereby values.
pub(super) fn shows_processes(words: &[Word]) -> bool {
    let is = |word: &Word, names: &[&[u8]]| {
        let name = word.literal().and_then(|text| text.rsplit(|byte| *byte == b'/').next());
        name.is_some_and(|name| names.contains(&name))
    };
    let shows = [b"ps".as_slice(), b"top", b"htop", b"pstree", b"lsof", b"pgrep"];
    words.iter().any(|word| is(word, &shows)) || words.first().is_some_and(|word| is(word, &[b"w", b"systemctl"]))
}

/// True if the author selects the registry for the images that values name. `docker` interprets the text before the
/// first slash as a host, so a slash of the author must come before the value: `app:@x` can be port 5000 of a host `app`.
fn names_registry(found: &Found<'_>) -> bool {
    let is_named = |word: &Word| !word.has_value || word.front().contains(&b'/');
    let is = |word: &Word, names: &[&[u8]]| word.literal().is_some_and(|text| names.contains(&text));
    match found.program.command[1] {
        "push" | "pull" => found.arguments.iter().all(is_named),
        "build" if found.arguments.iter().any(|word| is(word, &[b"--push"])) => {
            let is_tag = |word: &&Word| word.prefix().starts_with(b"--tag=");
            let attached = found.arguments.iter().filter(is_tag);
            let pairs = found.arguments.windows(2).filter(|pair| is(&pair[0], &[b"-t", b"--tag"]));
            attached.chain(pairs.map(|pair| &pair[1])).all(is_named)
        }
        _ => true,
    }
}

/// Checks the arguments of a program against its table entry.
fn arguments(found: &Found<'_>) -> Result<(), Place> {
    let program = found.program;
    if matches!(program.operands, Operands::Anything) {
        return Ok(());
    }
    let is_in = |list: &[&str], text: &[u8]| list.iter().any(|entry| entry.as_bytes() == text);
    let (mut operands, mut is_past_options, mut at) = (0, false, 0);
    while let Some(word) = found.arguments.get(at) {
        at += 1;
        let next = found.arguments.get(at);
        let is_option = !is_past_options && word.prefix().len() > 1 && word.prefix().starts_with(b"-");
        match word.literal() {
            Some(b"--") if !is_past_options => is_past_options = true,
            Some(text) if is_option && is_flag(program, text) => {}
            Some(text) if is_option && is_in(program.literal, text) => {
                next.and_then(Word::literal).ok_or(Place::Option)?;
                at += 1;
            }
            Some(text) if is_option && is_in(program.text, text) => {
                next.filter(|word| word.is_one()).ok_or(Place::Option)?;
                at += 1;
            }
            Some(text) if is_option && is_in(program.named, text) => {
                next.filter(|word| is_setting(word)).ok_or(Place::Option)?;
                at += 1;
            }
            _ if is_option && word.is_one() && has_text(program, word) => {}
            _ if is_option => return Err(Place::Option),
            _ => {
                operand(found, word, is_past_options, operands)?;
                operands += 1;
            }
        }
    }
    Ok(())
}

/// Checks one operand; `before` is the number of operands before it.
fn operand(found: &Found<'_>, word: &Word, is_past_options: bool, before: usize) -> Result<(), Place> {
    let is_grep = found.program.command[0] == "grep";
    let begins = |text: &[u8]| {
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"./_".contains(byte);
        text.first().is_some_and(|byte| is_letter(byte) || (is_grep && *byte == b'^'))
    };
    let (literal, max) = match found.program.operands {
        Operands::Values { literal, max } => (literal, max),
        Operands::Refspecs => (1, ANY),
        Operands::Anything | Operands::Pathspecs { .. } => (0, ANY),
        Operands::Literal => {
            // A program may interpret a dash as its standard input, and `find` interprets words after `--` as its
            // expression.
            let is_certain = |text: &[u8]| begins(text) || text.starts_with(b"+") || matches!(text, b"!" | b"(" | b")");
            return match word.literal() {
                Some(text) if is_certain(text) => Ok(()),
                None if word.is_temporary && word.is_one() => Ok(()),
                None if word.is_without_values() => Ok(()),
                _ => Err(Place::Argument),
            };
        }
    };
    if before >= max {
        return Err(Place::Argument);
    }
    if word.literal().is_some() {
        return Ok(());
    }
    // The word may expand to several words, but each of them starts with the author's text.
    let has_front = is_past_options || (!word.has_value && begins(&word.front()));
    let is_pattern = has_front && word.is_glob && !word.is_split && max == ANY;
    if before < literal || !(word.is_one() || is_pattern) {
        return Err(Place::Argument);
    }
    if !(is_past_options || word.is_temporary || begins(&word.front())) {
        return Err(Place::Option);
    }
    match found.program.operands {
        _ if !word.has_value => Ok(()),
        Operands::Refspecs if !git::is_refspec(word, found.arguments, found.program.command[1] == "push") => {
            Err(Place::Refspec)
        }
        Operands::Pathspecs { all } if (all || is_past_options) && !found.has_literal_paths => Err(Place::Pathspec),
        Operands::Pathspecs { all: false } if !is_past_options && !git::takes_no_paths(found.arguments) => {
            Err(Place::Revision)
        }
        _ => Ok(()),
    }
}

fn is_flag(program: &Program, text: &[u8]) -> bool {
    let is_letter = |byte: &u8| program.letters.as_bytes().contains(byte);
    let is_attached = |text: &[u8]| {
        program.attached.iter().any(|option| text.len() > option.len() && text.starts_with(option.as_bytes()))
    };
    // Combined short options may end with one that contains its argument.
    let is_mixed = || {
        let letters = text.iter().skip(1).take_while(|byte| byte.is_ascii_alphabetic() && is_letter(byte)).count();
        letters > 0 && is_attached(&[b"-", &text[1 + letters..]].concat())
    };
    program.flags.iter().any(|flag| flag.as_bytes() == text)
        || is_attached(text)
        || text.strip_prefix(b"-").is_some_and(|letters| !letters.is_empty() && letters.iter().all(is_letter))
        || (!text.starts_with(b"--") && is_mixed())
}

/// True for `NAME=VALUE` with a literal name that no program treats as code.
fn is_setting(word: &Word) -> bool {
    let mut parts = word.prefix().splitn(2, |byte| *byte == b'=');
    let (name, text) = (parts.next().unwrap_or_default(), parts.next());
    word.is_one() && text.is_some() && is_identifier(name) && !variables::is_code_variable(name)
}

/// True for a long option with a text argument, such as `--message=VALUE`.
fn has_text(program: &Program, word: &Word) -> bool {
    let has = |option: &&str| {
        option.starts_with("--")
            && word.prefix().strip_prefix(option.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
    };
    program.text.iter().any(has)
}

/// Checks `sed` and `awk`: one literal program that only prints, or several of them after `sed -e`, and no files.
fn filter(words: &[Word], letters: &str, is_known: fn(&[u8]) -> bool) -> Result<(), Place> {
    let is_letter = |byte: &u8| letters.as_bytes().contains(byte);
    let is_option = |text: &[u8]| text.len() > 1 && text[0] == b'-' && text[1..].iter().all(is_letter);
    let is_code = |word: Option<&Word>| word.and_then(Word::literal).is_some_and(is_known);
    let is_sed = !letters.is_empty();
    let (mut codes, mut at) = (0, 1);
    while let Some(word) = words.get(at) {
        let is_certain = match word.literal() {
            Some(b"-e") if is_sed => {
                at += 1;
                codes += 1;
                is_code(words.get(at))
            }
            // The field separator.
            Some(b"-F") if !is_sed => {
                at += 1;
                words.get(at).is_some_and(|word| word.literal().is_some())
            }
            Some([b'-', b'F', ..]) if !is_sed => true,
            Some(text) if is_option(text) => true,
            _ => {
                codes += 1;
                at + 1 == words.len() && codes == 1 && is_code(Some(word))
            }
        };
        if !is_certain {
            return Err(Place::InnerScript);
        }
        at += 1;
    }
    if codes > 0 { Ok(()) } else { Err(Place::InnerScript) }
}

/// True for a `sed` substitution, and for `p`, `d` or `q` after line numbers or a plain regular expression.
fn is_edit(code: &[u8]) -> bool {
    let Some((command, address)) = code.split_last() else { return false };
    let is_line = |text: &[u8]| text == b"$" || is_digits(text);
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b" ^$#.*_:=-".contains(byte);
    let is_address = match address.strip_prefix(b"/").and_then(|text| text.strip_suffix(b"/")) {
        Some(text) => text.iter().all(is_plain),
        None => address.is_empty() || address.splitn(2, |byte| *byte == b',').all(is_line),
    };
    is_substitution(code) || (matches!(command, b'p' | b'd' | b'q') && is_address)
}

/// True for `s/A/B/` with flags that neither execute nor write anything.
fn is_substitution(code: &[u8]) -> bool {
    let [b's', delimiter @ (b'/' | b'|' | b','), rest @ ..] = code else { return false };
    if rest.iter().any(|byte| b"\n;{}".contains(byte)) {
        return false;
    }
    let mut parts = rest.split(|byte| byte == delimiter);
    let escapes = |part: &[u8]| part.ends_with(b"\\") || part.contains(&b'[');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(from), Some(to), Some(flags), None) => {
            // A bracket expression may contain the delimiter, and a backslash may escape it.
            let is_whole = !from.ends_with(b"\\") && !to.ends_with(b"\\") && (!escapes(from) || from.contains(&b']'));
            is_whole && flags.iter().all(|byte| b"gpiI123456789".contains(byte))
        }
        _ => false,
    }
}

/// True for `{print $1, $2}`; `$NF` is accepted as well.
fn is_print(code: &[u8]) -> bool {
    let Some(inner) = code.strip_prefix(b"{").and_then(|code| code.strip_suffix(b"}")) else { return false };
    let Some(fields) = inner.trim_ascii().strip_prefix(b"print") else { return false };
    let is_field = |field: &[u8]| {
        let name = field.trim_ascii().strip_prefix(b"$");
        name.is_some_and(|name| name == b"NF" || is_digits(name))
    };
    fields.is_empty() || (fields[0] == b' ' && fields.split(|byte| *byte == b',').all(is_field))
}

/// Long options of `jq` without an argument.
const QUERY_FLAGS: &[&[u8]] = &[
    b"--raw-output",
    b"--raw-input",
    b"--compact-output",
    b"--null-input",
    b"--slurp",
    b"--exit-status",
    b"--join-output",
    b"--sort-keys",
    b"--tab",
];

/// Checks `jq`: `--arg NAME VALUE`, `--argjson NAME VALUE`, one literal filter and one literal file.
fn query(words: &[Word]) -> Result<(), Place> {
    let mut operands = 0;
    let mut rest = &words[1..];
    while let [word, others @ ..] = rest {
        rest = others;
        match word.literal() {
            Some(b"--arg" | b"--argjson") => {
                let [name, value, others @ ..] = others else { return Err(Place::Argument) };
                if !name.literal().is_some_and(is_identifier) || !value.is_one() {
                    return Err(Place::Argument);
                }
                rest = others;
            }
            Some(text) if QUERY_FLAGS.contains(&text) => {}
            Some(text) if text.starts_with(b"-") => {
                if text.len() < 2 || !text[1..].iter().all(|byte| b"rRcnseSjM".contains(byte)) {
                    return Err(Place::Argument);
                }
            }
            Some(_) if operands < 2 => operands += 1,
            None if operands == 1 && word.is_temporary && word.is_one() => operands += 1,
            None if operands == 1 && word.is_without_values() => operands += 1,
            _ => return Err(Place::InnerScript),
        }
    }
    Ok(())
}
