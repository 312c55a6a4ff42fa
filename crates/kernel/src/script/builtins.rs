//! Builtins of bash, which are judged in every script with references, with values or without: many of them evaluate
//! what an expansion gives, or change how the script is read.

use super::{
    Place,
    flow::{Flow, is_digits},
    programs::is_one_word,
    syntax::{Piece, Word, is_identifier},
    variables,
};

/// Builtins that no script with references may use: they run or evaluate what they are given, or change how the
/// script is read. With those of [`judge`] and of `programs` these are all that bash 5.2 has.
const REFUSED: [&[u8]; 43] = [
    b".",
    b"alias",
    b"bg",
    b"bind",
    b"builtin",
    b"caller",
    b"compgen",
    b"complete",
    b"compopt",
    b"declare",
    b"dirs",
    b"disown",
    b"enable",
    b"eval",
    b"exec",
    b"fc",
    b"fg",
    b"getopts",
    b"hash",
    b"help",
    b"history",
    b"jobs",
    b"let",
    b"local",
    b"logout",
    b"mapfile",
    b"popd",
    b"pushd",
    b"readarray",
    b"readonly",
    b"return",
    b"shift",
    b"shopt",
    b"source",
    b"suspend",
    b"trap",
    b"typeset",
    b"unalias",
    b"coproc",
    b"select",
    b"function",
    b"time",
    b"in",
];

/// Builtins that evaluate nothing, and take no values.
const FREE: [&[u8]; 7] = [b"pwd", b"umask", b"ulimit", b"kill", b"times", b"type", b"command"];

/// Judges a builtin that has rules of its own, with values or without; `None` if the command is none.
pub(super) fn judge(words: &[Word], flow: &Flow) -> Option<Result<(), Place>> {
    let (name, arguments) = words.split_first()?;
    let name = name.literal()?;
    let is = |is_right: bool| Some(if is_right { Ok(()) } else { Err(Place::Argument) });
    match name {
        _ if REFUSED.contains(&name) => Some(Err(Place::Evaluates)),
        b"command" => Some(match arguments.first().and_then(Word::literal) {
            Some(b"-v" | b"-V") if !arguments.iter().any(|word| word.has_value) => Ok(()),
            _ => Err(Place::Evaluates),
        }),
        _ if FREE.contains(&name) => is(!arguments.iter().any(|word| word.has_value)),
        b"exit" => is(arguments.len() < 2),
        b"break" | b"continue" => is(arguments.iter().all(|word| word.literal().is_some_and(is_digits))),
        b"wait" => is(arguments.iter().all(|word| matches!(word.pieces.as_slice(), [Piece::Count]))),
        b"set" => is(sets(arguments)),
        b"read" => is(reads_names(arguments)),
        b"unset" => is(arguments.iter().all(|word| word.literal().is_some_and(may_unset))),
        b"printf" => Some(format(arguments)),
        b"test" => Some(condition(arguments, flow)),
        b"[" => Some(match arguments.split_last() {
            Some((last, arguments)) if last.literal() == Some(b"]") => condition(arguments, flow),
            _ => Err(Place::Argument),
        }),
        b"cd" => Some(enters(arguments)),
        _ => None,
    }
}

/// `cd`: one folder.
fn enters(arguments: &[Word]) -> Result<(), Place> {
    match arguments {
        [] => Ok(()),
        [word] if word.literal().is_some() || !word.has_value => Ok(()),
        [word] if is_one_word(word) && word.prefix().first().is_some_and(|byte| *byte != b'-') => Ok(()),
        [dashes, word] if dashes.literal() == Some(b"--") && is_one_word(word) => Ok(()),
        _ => Err(Place::Option),
    }
}

/// `set -euxo pipefail`.
fn sets(arguments: &[Word]) -> bool {
    let mut rest = arguments;
    while let [word, others @ ..] = rest {
        let Some([b'-' | b'+', letters @ ..]) = word.literal() else { return false };
        let has_name = letters.ends_with(b"o");
        let letters = letters.strip_suffix(b"o").unwrap_or(letters);
        if !letters.iter().all(|byte| b"eufxC".contains(byte)) || (letters.is_empty() && !has_name) {
            return false;
        }
        rest = others;
        if has_name {
            let names = [b"pipefail".as_slice(), b"errexit", b"nounset", b"xtrace", b"noglob"];
            let Some(name) = others.first().and_then(Word::literal) else { return false };
            if !names.contains(&name) {
                return false;
            }
            rest = &others[1..];
        }
    }
    !arguments.is_empty()
}

/// `read -r NAME …`.
fn reads_names(arguments: &[Word]) -> bool {
    let (mut names, mut rest) = (0, arguments);
    while let [word, others @ ..] = rest {
        rest = others;
        match word.literal() {
            Some(b"-d" | b"-n" | b"-N" | b"-t" | b"-p") => match others {
                [value, others @ ..] if value.literal().is_some() => rest = others,
                _ => return false,
            },
            Some(b"-r" | b"-s" | b"-rs") => {}
            Some(name) if variables::takes_value(name) => names += 1,
            _ => return false,
        }
    }
    names > 0
}

fn may_unset(name: &[u8]) -> bool {
    is_identifier(name) && !variables::is_shell_variable(name)
}

/// `printf` with a literal format, whose conversions assign to nothing.
fn format(arguments: &[Word]) -> Result<(), Place> {
    let arguments = match arguments {
        [first, rest @ ..] if first.literal() == Some(b"--") => rest,
        all => all,
    };
    let Some(format) = arguments.first() else { return Ok(()) };
    let Some(format) = format.literal() else { return Err(Place::Format) };
    if format.starts_with(b"-") {
        return Err(Place::Option);
    }
    let mut rest = format;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        let conversion = &rest[at + 1..];
        let is_modifier = |byte: &u8| b"-+ #.0123456789".contains(byte);
        let length = conversion.iter().take_while(|byte| is_modifier(byte)).count();
        match conversion.get(length) {
            Some(byte) if b"sdiuxXofFeEgGcbq%".contains(byte) => rest = &conversion[length + 1..],
            _ => return Err(Place::Format),
        }
    }
    Ok(())
}

/// `test` and `[` with one comparison, which the number of words decides.
fn condition(arguments: &[Word], flow: &Flow) -> Result<(), Place> {
    let is_number = |piece: &Piece| match piece {
        Piece::Variable(name) => flow.is_number(name),
        piece => matches!(piece, Piece::Count | Piece::Number(_)),
    };
    let is_one = |word: &Word| is_one_word(word) || (!word.is_glob && word.pieces.iter().all(is_number));
    if !arguments.iter().all(is_one) {
        return Err(Place::Argument);
    }
    let arguments = match arguments {
        [first, rest @ ..] if first.literal() == Some(b"!") && rest.len() > 1 => rest,
        all => all,
    };
    let unary: [&[u8]; 11] = [b"-n", b"-z", b"-e", b"-f", b"-d", b"-s", b"-r", b"-w", b"-x", b"-L", b"-h"];
    let binary: [&[u8]; 11] = [b"=", b"==", b"!=", b"-eq", b"-ne", b"-lt", b"-le", b"-gt", b"-ge", b"-nt", b"-ot"];
    let is_certain = match arguments {
        [] | [_] => true,
        [operator, _] => operator.literal().is_some_and(|text| unary.contains(&text)),
        [_, operator, _] => operator.literal().is_some_and(|text| binary.contains(&text)),
        _ => false,
    };
    if is_certain { Ok(()) } else { Err(Place::Argument) }
}
