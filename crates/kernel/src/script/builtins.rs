//! Rules for bash builtins. They apply to every script with references, even to commands without values: many builtins
//! evaluate their arguments a second time or change how bash parses the script.

use super::{
    flow::Flow,
    place::Place,
    syntax::{Piece, Word, is_digits, is_identifier},
    variables,
};

/// Builtins that no script with references may use: they run or evaluate their arguments, or change how bash parses the
/// script. Together with the builtins in [`judge`] and in `programs` this list covers all builtins of bash 5.2.
const REFUSED: [&[u8]; 41] = [
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
    b"source",
    b"suspend",
    b"typeset",
    b"unalias",
    b"coproc",
    b"select",
    b"function",
    b"time",
    b"in",
];

/// Builtins that are safe without values in their arguments.
const FREE: [&[u8]; 7] = [b"pwd", b"umask", b"ulimit", b"kill", b"times", b"type", b"command"];

/// Unary and binary operators of `[`.
const UNARY: [&[u8]; 11] = [b"-n", b"-z", b"-e", b"-f", b"-d", b"-s", b"-r", b"-w", b"-x", b"-L", b"-h"];
const BINARY: [&[u8]; 11] = [b"=", b"==", b"!=", b"-eq", b"-ne", b"-lt", b"-le", b"-gt", b"-ge", b"-nt", b"-ot"];

/// Checks a builtin with rules of its own, whether or not it receives values; `None` for other commands.
pub(super) fn judge(words: &[Word], flow: &Flow<'_>) -> Option<Result<(), Place>> {
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
        b"wait" => is(arguments.iter().all(|word| match word.pieces.as_slice() {
            [Piece::Variable(name)] => flow.is_number(name),
            pieces => matches!(pieces, [Piece::Count]),
        })),
        b"shopt" => Some(if chooses_files(arguments) { Ok(()) } else { Err(Place::Evaluates) }),
        b"trap" => Some(if clears(arguments, flow) { Ok(()) } else { Err(Place::Evaluates) }),
        b"set" => Some(if sets(arguments) { Ok(()) } else { Err(Place::Evaluates) }),
        b"read" => is(reads_names(arguments, flow)),
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

/// Checks `cd` with one folder.
fn enters(arguments: &[Word]) -> Result<(), Place> {
    match arguments {
        [] => Ok(()),
        [word] if word.literal().is_some() || !word.has_value => Ok(()),
        [word] if word.is_one() && word.prefix().first().is_some_and(|byte| *byte != b'-') => Ok(()),
        [dashes, word] if dashes.literal() == Some(b"--") && word.is_one() => Ok(()),
        _ => Err(Place::Option),
    }
}

/// Accepts `trap 'rm -f "$tmp"' EXIT`, which removes files of the author at the end, and no other handler. Bash parses
/// the handler again, so each variable in it must be one without a value.
fn clears(arguments: &[Word], flow: &Flow<'_>) -> bool {
    let Some((handler, signals)) = arguments.split_first() else { return false };
    let is_signal = |text: &[u8]| matches!(text, b"EXIT" | b"INT" | b"TERM" | b"HUP" | b"0");
    let Some(text) = handler.literal().and_then(|text| text.strip_prefix(b"rm ")) else { return false };
    let is_variable = |part: &[u8]| {
        let part = part.strip_prefix(b"\"").and_then(|part| part.strip_suffix(b"\"")).unwrap_or(part);
        let name = part.strip_prefix(b"$").unwrap_or_default();
        let name = name.strip_prefix(b"{").and_then(|name| name.strip_suffix(b"}")).unwrap_or(name);
        is_identifier(name) && flow.is_without_value(name)
    };
    let is_certain = |part: &[u8]| matches!(part, b"-f" | b"-r" | b"-rf" | b"-fr" | b"--") || is_variable(part);
    !signals.is_empty()
        && signals.iter().all(|word| word.literal().is_some_and(is_signal))
        && text.split(|byte| *byte == b' ').all(is_certain)
}

/// Accepts `shopt` for options that change the results of file patterns or the exit on errors.
fn chooses_files(arguments: &[Word]) -> bool {
    let Some((option, names)) = arguments.split_first() else { return false };
    let is_known =
        |text: &[u8]| matches!(text, b"nullglob" | b"failglob" | b"dotglob" | b"globstar" | b"inherit_errexit");
    matches!(option.literal(), Some(b"-s" | b"-u"))
        && !names.is_empty()
        && names.iter().all(|word| word.literal().is_some_and(is_known))
}

/// Accepts `set` for options such as `-euxo pipefail`.
fn sets(arguments: &[Word]) -> bool {
    let mut rest = arguments;
    while let [word, others @ ..] = rest {
        let Some([b'-' | b'+', letters @ ..]) = word.literal() else { return false };
        let has_name = letters.ends_with(b"o");
        let letters = letters.strip_suffix(b"o").unwrap_or(letters);
        // `-E` passes ERR traps on to functions; neither can occur in a script with references.
        if !letters.iter().all(|byte| b"eufxCE".contains(byte)) || (letters.is_empty() && !has_name) {
            return false;
        }
        rest = others;
        if has_name {
            let names = [b"pipefail".as_slice(), b"errexit", b"errtrace", b"nounset", b"xtrace", b"noglob"];
            let Some(name) = others.first().and_then(Word::literal) else { return false };
            if !names.contains(&name) {
                return false;
            }
            rest = &others[1..];
        }
    }
    !arguments.is_empty()
}

/// Accepts `read -r NAME …` if values may be assigned to all names.
fn reads_names(arguments: &[Word], flow: &Flow<'_>) -> bool {
    let mut rest = arguments;
    while let [word, others @ ..] = rest {
        rest = match word.literal() {
            Some(b"-r" | b"-s" | b"-rs") => others,
            Some(option) if takes_argument(option) => match others {
                [value, others @ ..] if value.literal().is_some() => others,
                _ => return false,
            },
            _ => break,
        };
    }
    !rest.is_empty() && rest.iter().all(|word| word.literal().is_some_and(|name| flow.takes_value(name)))
}

/// Returns the arguments of `read` that are not options.
pub(super) fn names_of_read(arguments: &[Word]) -> impl Iterator<Item = &Word> {
    let is_option = |word: &Word| word.prefix().starts_with(b"-");
    let mut is_argument = false;
    arguments.iter().filter(move |word| {
        let is_name = !is_argument && !is_option(word);
        is_argument = !is_argument && word.literal().is_some_and(takes_argument);
        is_name
    })
}

/// True if an option of `read` takes the next word as its argument.
fn takes_argument(option: &[u8]) -> bool {
    matches!(option, b"-d" | b"-n" | b"-N" | b"-t" | b"-p")
}

fn may_unset(name: &[u8]) -> bool {
    is_identifier(name) && !variables::is_shell_variable(name)
}

/// Accepts `printf` with a literal format whose conversions do not assign to variables.
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

/// Accepts `test` and `[` with one comparison. The number of words decides how bash interprets them.
fn condition(arguments: &[Word], flow: &Flow<'_>) -> Result<(), Place> {
    if is_authors_condition(arguments, flow) {
        return Ok(());
    }
    let is_number = |piece: &Piece| match piece {
        Piece::Variable(name) => flow.is_number(name),
        piece => matches!(piece, Piece::Count | Piece::Number(_)),
    };
    let is_one = |word: &Word| word.is_one() || (!word.is_glob && word.pieces.iter().all(is_number));
    if !arguments.iter().all(is_one) {
        return Err(Place::Argument);
    }
    let arguments = match arguments {
        [first, rest @ ..] if first.literal() == Some(b"!") && rest.len() > 1 => rest,
        all => all,
    };
    let is_certain = match arguments {
        [] | [_] => true,
        [operator, _] => operator.literal().is_some_and(|text| UNARY.contains(&text)),
        [_, operator, _] => operator.literal().is_some_and(|text| BINARY.contains(&text)),
        _ => false,
    };
    let joins = |word: &Word| matches!(word.literal(), Some(b"-a" | b"-o"));
    match is_certain {
        true => Ok(()),
        false => Err(if arguments.iter().any(joins) { Place::JoinedTest } else { Place::Argument }),
    }
}

/// True if a condition contains no value and no operator that evaluates a variable name (`-v`, `-R`), written or from
/// an expansion.
fn is_authors_condition(arguments: &[Word], flow: &Flow<'_>) -> bool {
    let is_text = |piece: &Piece| match piece {
        Piece::Variable(name) => flow.is_authors(name),
        Piece::Literal(_) | Piece::Home | Piece::Count | Piece::Number(_) => true,
        _ => false,
    };
    let is_certain = |word: &Word| {
        let is_whole = !word.is_split || word.pieces.iter().all(is_text);
        is_whole && !word.has_value && !word.is_glob && !matches!(word.literal(), Some(b"-v" | b"-R"))
    };
    let is_between =
        |word: &Word| word.literal().is_some_and(|text| BINARY.contains(&text) || matches!(text, b"-a" | b"-o"));
    let is_operand = |pair: &[Word]| pair[0].literal().is_some() || is_between(&pair[1]);
    arguments.iter().all(is_certain) && arguments.windows(2).all(is_operand)
}
