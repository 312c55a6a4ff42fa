//! Programs that values may be given to, each with the words that it is certain about.
//!
//! The tables are complete for what is accepted: a program, a subcommand or an option that stands in none of them takes
//! no value. Every entry was looked up in the manual of its program; an entry is a promise that nothing beside the
//! listed options is needed to keep the value data.

use super::{
    Place, files,
    flow::{Reach, is_digits},
    syntax::Word,
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
        operands: Operands::Values { literal: 0, max: ANY },
        reads: true,
        reach: Reach::Files,
        effect: Effect::None,
    }
}

/// A program that changes files.
const fn changes(command: &'static [&'static str], letters: &'static str, effect: Effect) -> Program {
    Program { effect, ..reads(command, letters) }
}

/// A subcommand of a program that keeps what it is given, and has configuration and hooks.
const fn keeps(command: &'static [&'static str], letters: &'static str) -> Program {
    Program { reads: false, reach: Reach::Texts, effect: Effect::Keeps, ..reads(command, letters) }
}

const REMOTE: Operands = Operands::Values { literal: 1, max: ANY };

const PROGRAMS: &[Program] = &[
    prints(&["echo"]),
    prints(&["true"]),
    prints(&["false"]),
    prints(&[":"]),
    prints(&["cat"]),
    prints(&["ls"]),
    prints(&["sleep"]),
    prints(&["which"]),
    prints(&["paste"]),
    prints(&["basename"]),
    prints(&["dirname"]),
    prints(&["md5sum"]),
    prints(&["sha1sum"]),
    prints(&["sha256sum"]),
    prints(&["sha512sum"]),
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
    Program { literal: &["-w"], attached: &["-w"], ..reads(&["base64"], "di") },
    Program {
        literal: &["-m", "-A", "-B", "-C"],
        attached: &["-m", "-A", "-B", "-C"],
        text: &["-e"],
        ..reads(&["grep"], "qivcnoEFGxwlLsHhar")
    },
    Program { operands: Operands::Values { literal: 0, max: 2 }, ..reads(&["cmp"], "sbl") },
    Program { operands: Operands::Values { literal: 0, max: 2 }, ..reads(&["diff"], "uqrwbBisaN") },
    Program { literal: &["-c", "--format"], ..reads(&["stat"], "L") },
    reads(&["realpath"], "emsz"),
    reads(&["readlink"], "efmnz"),
    Program { text: &["-d"], attached: &["-I"], operands: Operands::Literal, ..reads(&["date"], "u") },
    Program {
        flags: &["-print", "-print0"],
        literal: &["-type", "-maxdepth", "-mindepth", "-mtime", "-mmin", "-size"],
        text: &["-name", "-iname", "-path", "-ipath"],
        operands: Operands::Literal,
        ..reads(&["find"], "")
    },
    Program { literal: &["-m"], ..changes(&["mkdir"], "pv", Effect::Names) },
    changes(&["touch"], "acm", Effect::Names),
    changes(&["rm"], "rfvd", Effect::None),
    changes(&["rmdir"], "pv", Effect::None),
    changes(&["cp"], "aRrfpnvuLPT", Effect::Moves),
    changes(&["mv"], "fnvuT", Effect::Moves),
    changes(&["ln"], "sfnvT", Effect::Moves),
    Program { operands: Operands::Literal, reach: Reach::Texts, ..changes(&["tee"], "ai", Effect::Writes) },
    keeps(&["git", "add"], "Afuv"),
    Program { flags: &["--delete"], ..keeps(&["git", "branch"], "dDfqv") },
    Program { flags: &["--detach", "--quiet"], text: &["-b", "-B"], ..keeps(&["git", "checkout"], "qf") },
    Program {
        flags: &["--amend", "--no-verify", "--allow-empty", "--no-edit", "--signoff", "--quiet", "--all"],
        literal: &["-F"],
        text: &["-m", "-am", "-sm", "-qm", "--message", "--author", "--date"],
        ..keeps(&["git", "commit"], "asqnv")
    },
    Program { flags: &["--stat", "--name-only", "--quiet", "--cached", "--exit-code"], ..keeps(&["git", "diff"], "") },
    Program {
        flags: &["--tags", "--prune", "--force", "--quiet", "--unshallow"],
        literal: &["--depth"],
        attached: &["--depth="],
        operands: REMOTE,
        ..keeps(&["git", "fetch"], "fpqtv")
    },
    Program {
        flags: &["--oneline", "--no-decorate", "--reverse"],
        literal: &["-n"],
        attached: &["--format=", "--pretty="],
        ..keeps(&["git", "log"], "0123456789")
    },
    Program {
        flags: &["--tags", "--force", "--force-with-lease", "--follow-tags", "--set-upstream", "--delete", "--quiet"],
        operands: REMOTE,
        ..keeps(&["git", "push"], "dfquv")
    },
    Program { flags: &["--verify", "--short", "--quiet"], ..keeps(&["git", "rev-parse"], "q") },
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
        flags: &["--no-cache", "--pull", "--push", "--quiet"],
        literal: &["-f", "--file", "--platform", "--target", "--build-arg"],
        text: &["-t", "--tag"],
        operands: Operands::Literal,
        reach: Reach::Outputs,
        ..keeps(&["docker", "build"], "q")
    },
    Program { reach: Reach::Outputs, ..keeps(&["docker", "tag"], "") },
    Program { reach: Reach::Outputs, ..keeps(&["docker", "push"], "q") },
    Program {
        flags: &["--fail", "--silent", "--show-error", "--location", "--fail-with-body", "--compressed"],
        literal: &["-o", "--output", "-X", "--request", "--retry", "--max-time", "-m", "--connect-timeout", "-w"],
        text: &["--data-raw"],
        reads: false,
        reach: Reach::Texts,
        ..reads(&["curl"], "fsSLgiIv46")
    },
];

/// Finds the entry of a command, and how many words its name takes.
fn find(words: &[Word]) -> Option<&'static Program> {
    let is_named = |program: &&Program| {
        program.command.len() <= words.len()
            && program.command.iter().zip(words).all(|(name, word)| word.literal() == Some(name.as_bytes()))
    };
    PROGRAMS.iter().find(is_named)
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
        Some(b"curl") if words.iter().any(|word| matches!(word.prefix(), b"-o" | b"--output")) => Effect::Writes,
        _ => find(words).map_or(Effect::None, |program| program.effect),
    }
}

/// Whether the values that reach a command can be nothing but data to it. `input` says whether one reaches its standard
/// input.
pub(super) fn judge(words: &[Word], input: bool, reach: Reach) -> Result<(), Place> {
    let words = behind_timeout(words);
    match words.first().and_then(Word::literal) {
        Some(b"sed") => return filter(words, "nEr", is_substitution),
        Some(b"awk") => return filter(words, "", is_print),
        Some(b"jq") => return query(words),
        _ => {}
    }
    let Some(program) = find(words) else { return Err(Place::Argument) };
    if reach > program.reach {
        return Err(Place::Argument);
    }
    if input && !program.reads {
        return Err(Place::Input);
    }
    let words = &words[program.command.len()..];
    match program.command[0] {
        "curl" => transfer(program, words),
        "tee" => {
            arguments(program, words)?;
            let is_written = |word: &Word| word.literal().is_some_and(|text| text.starts_with(b"-") || may_write(text));
            words.iter().all(is_written).then_some(()).ok_or(Place::Written)
        }
        _ => arguments(program, words),
    }
}

/// Whether values may be written to a path.
pub(super) fn may_write(path: &[u8]) -> bool {
    files::is_stream(path) || files::is_plain(path)
}

/// Goes through the arguments of a program.
fn arguments(program: &Program, words: &[Word]) -> Result<(), Place> {
    if matches!(program.operands, Operands::Anything) {
        return Ok(());
    }
    let is_in = |list: &[&str], text: &[u8]| list.iter().any(|entry| entry.as_bytes() == text);
    let (mut operands, mut is_past_options, mut at) = (0, false, 0);
    while let Some(word) = words.get(at) {
        at += 1;
        let is_option = !is_past_options && word.prefix().len() > 1 && word.prefix().starts_with(b"-");
        match word.literal() {
            Some(b"--") if !is_past_options => is_past_options = true,
            Some(text) if is_option && is_flag(program, text) => {}
            Some(text) if is_option && is_in(program.literal, text) => {
                words.get(at).and_then(Word::literal).ok_or(Place::Option)?;
                at += 1;
            }
            Some(text) if is_option && is_in(program.text, text) => {
                words.get(at).filter(|word| is_one_word(word)).ok_or(Place::Option)?;
                at += 1;
            }
            _ if is_option && is_one_word(word) && has_text(program, word) => {}
            _ if is_option => return Err(Place::Option),
            text => {
                operand(program, word, text, is_past_options, operands)?;
                operands += 1;
            }
        }
    }
    Ok(())
}

/// One operand, which comes after `before` others.
fn operand(
    program: &Program,
    word: &Word,
    text: Option<&[u8]>,
    is_past_options: bool,
    before: usize,
) -> Result<(), Place> {
    let Operands::Values { literal, max } = program.operands else {
        return match text {
            // A program may take the dash for its standard input.
            Some(text) if text != b"-" => Ok(()),
            _ => Err(Place::Argument),
        };
    };
    if before >= max {
        return Err(Place::Argument);
    }
    if text.is_some() {
        return Ok(());
    }
    let is_pattern = is_past_options && word.is_glob && !word.is_split;
    if before < literal || !(is_one_word(word) || is_pattern) {
        return Err(Place::Argument);
    }
    let begins = word.prefix().first().is_some_and(|byte| byte.is_ascii_alphanumeric() || b"./_".contains(byte));
    let is_certain = is_past_options || begins;
    if is_certain { Ok(()) } else { Err(Place::Option) }
}

fn is_flag(program: &Program, text: &[u8]) -> bool {
    let is_letter = |byte: &u8| program.letters.as_bytes().contains(byte);
    program.flags.iter().any(|flag| flag.as_bytes() == text)
        || program.attached.iter().any(|option| text.len() > option.len() && text.starts_with(option.as_bytes()))
        || text.strip_prefix(b"-").is_some_and(|letters| !letters.is_empty() && letters.iter().all(is_letter))
}

/// `--message=VALUE`.
fn has_text(program: &Program, word: &Word) -> bool {
    let has = |option: &&str| {
        option.starts_with("--")
            && word.prefix().strip_prefix(option.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
    };
    program.text.iter().any(has)
}

/// Whether a word stays one word whatever its expansions give.
pub(super) fn is_one_word(word: &Word) -> bool {
    !word.is_split && !word.is_glob
}

/// `curl`: headers with a literal name, addresses with a literal host.
fn transfer(program: &Program, words: &[Word]) -> Result<(), Place> {
    let mut rest = words;
    while let [word, others @ ..] = rest {
        let next = others.first();
        let length = match word.literal() {
            Some(b"-H" | b"--header") => {
                let header = next.filter(|next| is_one_word(next)).ok_or(Place::Option)?;
                let is_named = header.prefix().iter().position(|byte| *byte == b':').is_some_and(|at| at > 0);
                if !is_named || !header.prefix().first().is_some_and(u8::is_ascii_alphabetic) {
                    return Err(Place::Argument);
                }
                2
            }
            Some(b"-o" | b"--output") => {
                let path = next.and_then(Word::literal).ok_or(Place::Option)?;
                if !may_write(path) {
                    return Err(Place::Written);
                }
                2
            }
            Some(text) if program.literal.iter().chain(program.text).any(|option| option.as_bytes() == text) => {
                arguments(program, &rest[..rest.len().min(2)])?;
                2
            }
            Some(text) if text.starts_with(b"-") => {
                arguments(program, &rest[..1])?;
                1
            }
            Some(_) => 1,
            None if is_one_word(word) && has_host(word.prefix()) => 1,
            None => return Err(if word.prefix().is_empty() { Place::Option } else { Place::Argument }),
        };
        rest = rest.get(length..).ok_or(Place::Argument)?;
    }
    Ok(())
}

/// Whether a literal beginning of an address goes beyond its host.
fn has_host(prefix: &[u8]) -> bool {
    let rest = prefix.strip_prefix(b"https://").or_else(|| prefix.strip_prefix(b"http://"));
    let slash = rest.and_then(|rest| rest.iter().position(|byte| *byte == b'/'));
    slash.is_some_and(|at| at > 0)
}

/// `sed` and `awk`: a literal program that only prints, and nothing else.
fn filter(words: &[Word], letters: &str, is_known: fn(&[u8]) -> bool) -> Result<(), Place> {
    let [_, options @ .., code] = words else { return Err(Place::Argument) };
    let is_letter = |byte: &u8| letters.as_bytes().contains(byte);
    let is_option = |word: &Word| {
        let text = word.literal().and_then(|text| text.strip_prefix(b"-"));
        text.is_some_and(|text| !text.is_empty() && text.iter().all(is_letter))
    };
    let is_certain = options.iter().all(is_option) && code.literal().is_some_and(is_known);
    if is_certain { Ok(()) } else { Err(Place::InnerScript) }
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

/// `{print $1, $2}`.
fn is_print(code: &[u8]) -> bool {
    let Some(inner) = code.strip_prefix(b"{").and_then(|code| code.strip_suffix(b"}")) else { return false };
    let Some(fields) = inner.trim_ascii().strip_prefix(b"print") else { return false };
    fields.is_empty() || (fields[0] == b' ' && fields.iter().all(|byte| byte.is_ascii_digit() || b" $,".contains(byte)))
}

/// `jq`: `--arg NAME VALUE` and one literal filter. What it reads comes from its standard input.
fn query(words: &[Word]) -> Result<(), Place> {
    let mut filters = 0;
    let mut rest = &words[1..];
    while let [word, others @ ..] = rest {
        rest = others;
        match word.literal() {
            Some(b"--arg") => {
                let [name, value, others @ ..] = others else { return Err(Place::Argument) };
                if name.literal().is_none() || !is_one_word(value) {
                    return Err(Place::Argument);
                }
                rest = others;
            }
            Some(text) if text.len() > 1 && text.starts_with(b"-") => {
                if !text[1..].iter().all(|byte| b"rRcnseSjM".contains(byte)) {
                    return Err(Place::Argument);
                }
            }
            Some(_) if filters == 0 => filters = 1,
            _ => return Err(Place::InnerScript),
        }
    }
    Ok(())
}
