//! Rules for the arguments of `curl`.
//!
//! A word without a value is the author's choice, be it a URL or a header. A value may be request data or the part of a
//! URL after the host. It may not be a header, because `curl` sends newlines in headers unchanged.

use super::{place::Place, programs, syntax::Word};

/// Short options without an argument, which may be combined.
const LETTERS: &[u8] = b"fsSLgiIvkG46";
/// Short options with an argument in the next word; one may end a combination.
const LAST_LETTERS: &[u8] = b"oXHdwuAm";
const FLAGS: &[&[u8]] = &[
    b"--fail",
    b"--fail-with-body",
    b"--silent",
    b"--show-error",
    b"--location",
    b"--compressed",
    b"--globoff",
    b"--get",
    b"--include",
    b"--head",
    b"--verbose",
    b"--insecure",
    b"--no-progress-meter",
    b"--retry-connrefused",
    b"--retry-all-errors",
];

/// Options whose argument, the next word, may not contain a value.
const OWN: &[&[u8]] = &[
    b"-H",
    b"--header",
    b"-X",
    b"--request",
    b"-u",
    b"--user",
    b"-A",
    b"--user-agent",
    b"--retry",
    b"--retry-delay",
    b"-m",
    b"--max-time",
    b"--connect-timeout",
];

/// Options whose argument is data, or a file if it starts with `@`.
const DATA: &[&[u8]] = &[b"-d", b"--data", b"--data-ascii", b"--data-binary", b"--json"];

/// Checks the arguments of `curl`.
pub(super) fn judge(words: &[Word]) -> Result<(), Place> {
    let (is_get, takes_brackets) = (has(words, b'G', b"--get"), has(words, b'g', b"--globoff"));
    let mut rest = words;
    while let [word, others @ ..] = rest {
        rest = others;
        match word.literal() {
            Some(text) if FLAGS.contains(&text) => {}
            Some([b'-', b'X', method @ ..]) if !method.is_empty() => {}
            Some(text) if text.starts_with(b"-") => {
                let name = match letters(text) {
                    Some((_, None)) => continue,
                    Some((_, Some(last))) => [b'-', last].to_vec(),
                    None => text.to_vec(),
                };
                let (value, others) = others.split_first().ok_or(Place::Option)?;
                rest = others;
                match &name[..] {
                    b"--url" => address(value, takes_brackets)?,
                    name => option(name, value, is_get)?,
                }
            }
            _ => address(word, takes_brackets)?,
        }
    }
    Ok(())
}

/// Returns the short options of a word, with the last one apart if it takes an argument.
fn letters(text: &[u8]) -> Option<(&[u8], Option<u8>)> {
    let letters = text.strip_prefix(b"-").filter(|letters| !letters.is_empty() && letters[0] != b'-')?;
    let (last, others) = letters.split_last()?;
    let are_free = |letters: &[u8]| letters.iter().all(|byte| LETTERS.contains(byte));
    match LAST_LETTERS.contains(last) {
        true if are_free(others) => Some((others, Some(*last))),
        false if are_free(letters) => Some((letters, None)),
        _ => None,
    }
}

/// True if a word may be the option that sets the output file.
pub(super) fn may_be_output(word: &Word) -> bool {
    let text = word.prefix();
    text.starts_with(b"--output") || (text.starts_with(b"-") && !text.starts_with(b"--") && text.contains(&b'o'))
}

/// True if the words include an option without an argument.
fn has(words: &[Word], letter: u8, name: &[u8]) -> bool {
    let is = |text: &[u8]| text == name || letters(text).is_some_and(|(letters, _)| letters.contains(&letter));
    words.iter().any(|word| word.literal().is_some_and(is))
}

/// True if `curl` reads its standard input once, as request data.
pub(super) fn sends_input(words: &[Word]) -> bool {
    let is_input = |word: &Word| word.literal() == Some(b"@-");
    let is_data = |pair: &[Word]| is_input(&pair[1]) && pair[0].literal().is_some_and(|name| DATA.contains(&name));
    !has(words, b'G', b"--get")
        && words.windows(2).any(is_data)
        && words.iter().filter(|word| is_input(word)).count() == 1
}

/// Checks an option and its argument.
fn option(name: &[u8], value: &Word, is_get: bool) -> Result<(), Place> {
    if !value.is_one() {
        return Err(Place::Option);
    }
    let is_certain = match name {
        b"-o" | b"--output" => {
            let is_nothing = value.literal() == Some(b"/dev/null");
            return if is_nothing || programs::may_write(value) { Ok(()) } else { Err(Place::Written) };
        }
        b"-w" | b"--write-out" => value.literal().is_some_and(|text| {
            let writes = text.windows(7).any(|part| part == b"%output");
            !writes && !text.starts_with(b"@")
        }),
        _ if OWN.contains(&name) && value.has_value => return Err(Place::Header),
        _ if OWN.contains(&name) => true,
        // `-G` would append it to the URL unescaped.
        b"--data-raw" => !(is_get && value.has_value),
        b"--data-urlencode" => !value.has_value || is_named(value.prefix()),
        _ if DATA.contains(&name) && value.has_value && !is_get => {
            let is_text = value.prefix().first().is_some_and(|byte| *byte != b'@');
            return if is_text { Ok(()) } else { Err(Place::Data) };
        }
        _ if DATA.contains(&name) => !value.has_value,
        _ => false,
    };
    if is_certain { Ok(()) } else { Err(Place::Option) }
}

/// True if `--data-urlencode` treats the rest of its argument as text: the prefix has a `=` before any `@`.
fn is_named(prefix: &[u8]) -> bool {
    let sign = prefix.iter().position(|byte| b"=@".contains(byte));
    sign.is_some_and(|at| prefix[at] == b'=')
}

/// Checks a URL: one of the author, or one with a value after the host.
fn address(word: &Word, takes_brackets: bool) -> Result<(), Place> {
    if !word.has_value {
        return if word.is_one() { Ok(()) } else { Err(Place::Option) };
    }
    let front = word.front();
    match word.is_one() && has_host(&front) {
        true if takes_brackets => Ok(()),
        true => Err(Place::Globbing),
        false => Err(if front.is_empty() { Place::Option } else { Place::Argument }),
    }
}

/// True if the literal start of a URL extends past the host. A variable of the author may be empty, so the host is the
/// first non-empty component.
fn has_host(front: &[u8]) -> bool {
    let rest = front.strip_prefix(b"https:").or_else(|| front.strip_prefix(b"http:"));
    let Some(rest) = rest.filter(|rest| rest.starts_with(b"//")) else { return false };
    let slashes = rest.iter().take_while(|byte| **byte == b'/').count();
    rest[slashes..].iter().position(|byte| *byte == b'/').is_some_and(|at| at > 0)
}
