//! What `git` takes before its subcommand, and the words by which it says what is fetched and pushed.

use super::syntax::{Piece, Word, is_name_byte};

/// The words between `git` and its subcommand.
#[derive(Debug, Default)]
pub(super) struct Globals {
    /// How many they are.
    pub(super) length: usize,
    /// Whether one of them is `--literal-pathspecs`.
    pub(super) has_literal_paths: bool,
}

/// Reads the options before the subcommand that change nothing about what its words mean: `-C FOLDER` with a literal
/// folder and `--literal-pathspecs`.
pub(super) fn globals(words: &[Word]) -> Globals {
    let mut globals = Globals::default();
    loop {
        match &words[globals.length..] {
            [option, folder, ..] if option.literal() == Some(b"-C") && is_folder(folder) => globals.length += 2,
            [option, ..] if option.literal() == Some(b"--literal-pathspecs") => {
                globals.length += 1;
                globals.has_literal_paths = true;
            }
            _ => return globals,
        }
    }
}

fn is_folder(word: &Word) -> bool {
    word.literal().is_some_and(|text| !text.is_empty() && !text.starts_with(b"-"))
}

/// Whether a value in a word for `git push` or `git fetch` can be no more than one branch or one tag of the author's kind.
///
/// Git divides at the last colon, so that a value can bring its own: then what comes before it is the source. A fetch
/// refuses a source with a colon in it. A push takes `HEAD:` for a tree and `HEAD:FOLDER` for what is there, so that
/// `refs/` has to follow the colon of the author. With a value on both sides `*` is all branches: a push asks for
/// `^{object}` behind the first, with which git takes no pattern, and a fetch must delete and replace nothing.
pub(super) fn is_refspec(word: &Word, arguments: &[Word], pushes: bool) -> bool {
    let front = word.front();
    if !word.is_one() || !front.first().is_some_and(|byte| is_name_byte(*byte)) {
        return false;
    }
    let has = |text: &[u8], part: &[u8]| text.windows(part.len()).any(|window| window == part);
    if front.contains(&b':') {
        return !pushes || has(&front, b":refs/");
    }
    let last = word.pieces.iter().rposition(|piece| !matches!(piece, Piece::Literal(_))).unwrap_or(0);
    let middle: &[u8] = if pushes { b"^{object}:refs/" } else { b":refs/" };
    let has_later = word.pieces[..last].iter().skip(word.certain).any(|piece| match piece {
        Piece::Literal(text) => has(text, middle),
        _ => false,
    });
    let changes_others = arguments.iter().filter_map(Word::literal).any(|text| {
        let has_letter = !text.starts_with(b"--") && text.iter().any(|byte| b"fp".contains(byte));
        matches!(text, b"--force" | b"--prune") || (text.starts_with(b"-") && has_letter)
    });
    front.starts_with(b"refs/") && has_later && (pushes || !changes_others)
}
