//! Rules for `git`: the options before its subcommand, and the refspecs of fetch and push.

use super::syntax::{Piece, Word, is_name_byte};

/// The words between `git` and its subcommand.
#[derive(Debug, Default)]
pub(super) struct Globals {
    /// The number of words.
    pub(super) length: usize,
    /// True if one of them is `--literal-pathspecs`.
    pub(super) has_literal_paths: bool,
}

/// Reads the options before the subcommand that do not change the meaning of the words after it: `-C FOLDER` with a
/// literal folder, and `--literal-pathspecs`.
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

/// True if a value in an argument of `git push` or `git fetch` can name no more than one branch or tag of the kind that
/// the author wrote.
///
/// Git splits a refspec at its last colon, so a value with a colon moves the split: the text before it becomes the
/// source. A fetch rejects a source with a colon in it. A push accepts `HEAD:` as a tree and `HEAD:FOLDER` as the
/// content of a folder, so `refs/` must follow the author's colon. With a value on both sides, the value `*` would name
/// all branches. A push therefore needs `^{object}` after the first value, because git accepts no pattern with it, and
/// a fetch must not delete or overwrite anything.
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

/// True if `git checkout` or `git reset` takes no word before `--` for a path: without that, the value `*` in `v@x` is all
/// files that begin with `v`.
pub(super) fn takes_no_paths(arguments: &[Word]) -> bool {
    let refuses_paths: [&[u8]; 6] = [b"--", b"-b", b"-B", b"--detach", b"--hard", b"--soft"];
    arguments.iter().filter_map(Word::literal).any(|text| refuses_paths.contains(&text))
}
