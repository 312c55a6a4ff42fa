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

/// Whether a value in a word for `git push` or `git fetch` can be no more than a branch or a tag of the author's kind: a
/// colon of the author comes before its last one. Git divides at the last colon, and a second one is an error to it;
/// without one the value could bring its own, and with it another branch to write, or one to delete.
pub(super) fn is_refspec(word: &Word) -> bool {
    let front = word.front();
    let has_colon = front.contains(&b':');
    let is_ref = front.starts_with(b"refs/");
    let last = word.pieces.iter().rposition(|piece| !matches!(piece, Piece::Literal(_))).unwrap_or(0);
    let has_later = word.pieces[..last].iter().skip(word.certain).any(|piece| match piece {
        Piece::Literal(text) => text.windows(6).any(|part| part == b":refs/"),
        _ => false,
    });
    let begins = front.first().is_some_and(|byte| is_name_byte(*byte));
    word.is_one() && begins && (has_colon || (is_ref && has_later))
}
