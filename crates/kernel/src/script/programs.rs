//! Programs that values may be given to, each with the words that it is certain about.
//!
//! The tables are complete for what is accepted: a program, a subcommand or an option that stands in none of them takes
//! no value. Every entry was looked up in the manual of its program; an entry is a promise that nothing beside the
//! listed options is needed to keep the value data.

use alloc::vec::Vec;

use super::{
    Place, files,
    flow::{Reach, is_digits},
    git,
    syntax::{Word, is_identifier},
    transfer, variables,
};

/// A program, or one of its subcommands.
struct Program {
    /// Its name and those of the subcommand.
    command: &'static [&'static str],
    /// Options of one letter without a value, which may be written together.
    letters: &'static str,
    /// Other options without a value.
    flags: &'static [&'static str],
    /// Options whose value, the next word, has to be literal.
    literal: &'static [&'static str],
    /// Beginnings of literal options that have their value in the same word.
    attached: &'static [&'static str],
    /// Options whose value, the next word, is text whatever it begins with. The program takes it with `=` as well
    /// where the option begins with two dashes.
    text: &'static [&'static str],
    /// Options whose value, the next word, is text behind a literal `NAME=`.
    named: &'static [&'static str],
    operands: Operands,
    /// Whether a value on its standard input is data to it.
    reads: bool,
    /// How far values may have gone in the script: a program that reads configuration, hooks or instructions from files
    /// must not run where values are in files.
    reach: Reach,
    effect: Effect,
}

/// The operands of a program.
#[derive(Clone, Copy)]
enum Operands {
    /// All words may be values: no option of the program runs or writes anything.
    Anything,
    /// Values stand after `--` or behind a letter of the author. The first ones have to be literal.
    Values { literal: usize, max: usize },
    /// As [`Values`](Self::Values) with one literal, the remote; a value is a branch or a tag where the author has said
    /// so, which `git` judges.
    Refspecs,
    /// As [`Values`](Self::Values), which git takes for patterns unless it is told otherwise: all of them, or those after
    /// `--`.
    Pathspecs { all: bool },
    /// None is a value.
    Literal,
}

/// What a program does with values that it is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// It writes them to its output at most.
    None,
    /// It keeps them where another program may read them.
    Keeps,
    /// It makes files that are called as they say.
    Names,
    /// It writes them to files with literal names.
    Writes,
    /// It gives files other names.
    Moves,
    /// It changes the folder; whether to a literal one below that programs do not look for code in.
    Enters(bool),
}

const ANY: usize = usize::MAX;

/// A program that prints.
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

/// A program that changes files, and reads no more than an answer.
const fn changes(command: &'static [&'static str], letters: &'static str, effect: Effect) -> Program {
    Program { effect, ..reads(command, letters) }
}

/// A subcommand of a program that keeps what it is given, and has configuration and hooks.
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
    // It prints the path of a new file.
    Program { operands: Operands::Literal, ..reads(&["mktemp"], "dq") },
    Program { literal: &["-n", "-c"], attached: &["-n", "-c"], ..reads(&["head"], "qvz0123456789") },
    Program { literal: &["-n", "-c"], attached: &["-n", "-c"], ..reads(&["tail"], "qvz0123456789") },
    reads(&["wc"], "lwcmL"),
    Program { literal: &["-k", "-t"], attached: &["-k", "-t"], ..reads(&["sort"], "nrufhVbdgiMsz") },
    // The second operand is a file that it writes.
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
    // Its words are judged by `transfer`.
    Program { reads: false, reach: Reach::Texts, ..reads(&["curl"], "") },
];

/// An entry of the table with the words of a command that belong to it.
struct Found<'a> {
    program: &'static Program,
    arguments: &'a [Word],
    /// Whether git was told to take paths as they are.
    has_literal_paths: bool,
}

/// Finds the entry of a command.
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

/// The words of a command behind `timeout SECONDS`.
fn behind_timeout(words: &[Word]) -> &[Word] {
    match words {
        [name, time, rest @ ..] if name.literal() == Some(b"timeout") && is_time(time) && !rest.is_empty() => rest,
        _ => words,
    }
}

fn is_time(word: &Word) -> bool {
    word.literal().is_some_and(|text| is_digits(text.strip_suffix(b"s").or(text.strip_suffix(b"m")).unwrap_or(text)))
}

/// What a command does with values.
pub(super) fn effect(words: &[Word]) -> Effect {
    let words = behind_timeout(words);
    match words.first().and_then(Word::literal) {
        Some(b"cd") => Effect::Enters(words[1..].iter().all(|word| word.literal().is_some_and(files::is_plain_folder))),
        Some(b"curl") if words.iter().any(transfer::may_be_output) => Effect::Writes,
        Some(b"cp" | b"mv") if keeps_text(words) => Effect::Writes,
        _ => find(words).map_or(Effect::None, |found| found.program.effect),
    }
}

/// Whether `cp` and `mv` give a file that values may have been written to a name that they may be written to.
fn keeps_text(words: &[Word]) -> bool {
    let is_option = |word: &&Word| word.literal().is_some_and(|text| text.starts_with(b"-"));
    let files: Vec<_> = words[1..].iter().filter(|word| !is_option(word)).collect();
    matches!(files[..], [from, to] if may_write(from) && to.literal().is_some_and(files::is_plain))
}

/// Whether the values that reach a command can be nothing but data to it. `input` says whether one reaches its standard
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
        // It reads its expression behind `--` as well.
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

/// Whether values may be written to a file that a word names.
pub(super) fn may_write(word: &Word) -> bool {
    let is_new = word.is_temporary && word.is_one();
    is_new || word.literal().is_some_and(|path| files::is_stream(path) || files::is_plain(path))
}

/// Whether the output of a command tells of other processes, with the values among their arguments.
pub(super) fn shows_processes(words: &[Word]) -> bool {
    let is = |word: &Word, names: &[&[u8]]| {
        let name = word.literal().and_then(|text| text.rsplit(|byte| *byte == b'/').next());
        name.is_some_and(|name| names.contains(&name))
    };
    let shows = [b"ps".as_slice(), b"top", b"htop", b"pstree", b"lsof", b"pgrep"];
    words.iter().any(|word| is(word, &shows)) || words.first().is_some_and(|word| is(word, &[b"w", b"systemctl"]))
}

/// Whether the author says to and from which registry `docker` sends what a value names: docker takes what comes before the first
/// slash for a host, so that a slash or a colon of the author has to come before the value.
fn names_registry(found: &Found<'_>) -> bool {
    let is_named = |word: &Word| !word.has_value || word.front().iter().any(|byte| b":/".contains(byte));
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

/// Goes through the arguments of a program.
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

/// One operand, which comes after `before` others.
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
            // A program may take a dash for its standard input, and find takes words behind `--` for its expression.
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
    // It may become several words, none of which begins otherwise than the author has written.
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
        _ => Ok(()),
    }
}

fn is_flag(program: &Program, text: &[u8]) -> bool {
    let is_letter = |byte: &u8| program.letters.as_bytes().contains(byte);
    let is_attached = |text: &[u8]| {
        program.attached.iter().any(|option| text.len() > option.len() && text.starts_with(option.as_bytes()))
    };
    // Letters without a value may stand before one that has its value in the same word.
    let is_mixed = || {
        let letters = text.iter().skip(1).take_while(|byte| byte.is_ascii_alphabetic() && is_letter(byte)).count();
        letters > 0 && is_attached(&[b"-", &text[1 + letters..]].concat())
    };
    program.flags.iter().any(|flag| flag.as_bytes() == text)
        || is_attached(text)
        || text.strip_prefix(b"-").is_some_and(|letters| !letters.is_empty() && letters.iter().all(is_letter))
        || (!text.starts_with(b"--") && is_mixed())
}

/// `NAME=VALUE`, with a literal name that is not one of those that programs take for code.
fn is_setting(word: &Word) -> bool {
    let mut parts = word.prefix().splitn(2, |byte| *byte == b'=');
    let (name, text) = (parts.next().unwrap_or_default(), parts.next());
    word.is_one() && text.is_some() && is_identifier(name) && !variables::is_code_variable(name)
}

/// `--message=VALUE`.
fn has_text(program: &Program, word: &Word) -> bool {
    let has = |option: &&str| {
        option.starts_with("--")
            && word.prefix().strip_prefix(option.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
    };
    program.text.iter().any(has)
}

/// `sed` and `awk`: a literal program that only prints, several of them behind `sed -e`, and nothing else.
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
            // What fields are divided by.
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

/// A substitution, or `p`, `d` and `q` with line numbers or a plain expression before it.
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

/// `s/A/B/` with flags that run and write nothing.
fn is_substitution(code: &[u8]) -> bool {
    let [b's', delimiter @ (b'/' | b'|' | b','), rest @ ..] = code else { return false };
    if rest.iter().any(|byte| b"\n;{}".contains(byte)) {
        return false;
    }
    let mut parts = rest.split(|byte| byte == delimiter);
    let escapes = |part: &[u8]| part.ends_with(b"\\") || part.contains(&b'[');
    match (parts.next(), parts.next(), parts.next(), parts.next()) {
        (Some(from), Some(to), Some(flags), None) => {
            // A bracket expression may hold the delimiter, and a backslash makes one literal.
            let is_whole = !from.ends_with(b"\\") && !to.ends_with(b"\\") && (!escapes(from) || from.contains(&b']'));
            is_whole && flags.iter().all(|byte| b"gpiI123456789".contains(byte))
        }
        _ => false,
    }
}

/// `{print $1, $2}`, also with `$NF`.
fn is_print(code: &[u8]) -> bool {
    let Some(inner) = code.strip_prefix(b"{").and_then(|code| code.strip_suffix(b"}")) else { return false };
    let Some(fields) = inner.trim_ascii().strip_prefix(b"print") else { return false };
    let is_field = |field: &[u8]| {
        let name = field.trim_ascii().strip_prefix(b"$");
        name.is_some_and(|name| name == b"NF" || is_digits(name))
    };
    fields.is_empty() || (fields[0] == b' ' && fields.split(|byte| *byte == b',').all(is_field))
}

/// Options of `jq` without a value.
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

/// `jq`: `--arg NAME VALUE`, `--argjson NAME VALUE`, one literal filter and one literal file.
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
