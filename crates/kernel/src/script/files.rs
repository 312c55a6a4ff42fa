//! Rules for file names: the files to which values may be written, and the paths that are streams.

use super::syntax::{Piece, Word};

/// Names and extensions of files that programs execute or read as configuration. This list protects later steps that
/// use the file; the rules for the same script do not depend on it.
const CODE_NAMES: &[&str] = &[
    "makefile",
    "gnumakefile",
    "dockerfile",
    "containerfile",
    "jenkinsfile",
    "justfile",
    "rakefile",
    "gemfile",
    "vagrantfile",
    "procfile",
    "brewfile",
    "package.json",
    "composer.json",
    "cmakelists.txt",
    "requirements.txt",
    "constraints.txt",
    "crontab",
    "config.toml",
    "pyproject.toml",
    "cargo.toml",
    "authorized_keys",
    "ssh_config",
    "profile",
    "build",
    "workspace",
    "tasks.json",
    "launch.json",
    "tsconfig.json",
    "config",
    "environment",
    // Git treats a folder with these files as a repository or as a part of one.
    "head",
    "commondir",
    "gitdir",
    "config.worktree",
    "packed-refs",
    "attributes",
    "alternates",
    "pom.xml",
    "build.xml",
    "meson.build",
    "meson_options.txt",
    "sconstruct",
    "sconscript",
    "snakefile",
    "pipfile",
    "podfile",
    "cartfile",
    "fastfile",
    "appfile",
    "dangerfile",
    "guardfile",
    "capfile",
    "berksfile",
    "tiltfile",
    "earthfile",
    "taskfile",
    "bakefile",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "deno.json",
    "nx.json",
    "turbo.json",
    "angular.json",
    "devcontainer.json",
    "nuget.config",
    "lefthook.json",
    "lefthook-local.json",
    "lerna.json",
    "nodemon.json",
    "project.json",
    "rebar.config",
    "go.mod",
    "go.work",
    "configure",
    "autogen",
    "bootstrap",
    "manage",
];

/// Git hooks, which run from any folder that `core.hooksPath` names.
const HOOKS: &[&str] = &[
    "applypatch-msg",
    "pre-applypatch",
    "post-applypatch",
    "pre-commit",
    "pre-merge-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "pre-rebase",
    "post-checkout",
    "post-merge",
    "pre-push",
    "pre-receive",
    "update",
    "proc-receive",
    "post-receive",
    "post-update",
    "reference-transaction",
    "push-to-checkout",
    "pre-auto-gc",
    "post-rewrite",
    "sendemail-validate",
    "fsmonitor-watchman",
    "post-index-change",
];
const CODE_ENDINGS: &[&str] = &[
    ".sh", ".bash", ".zsh", ".fish", ".ksh", ".csh", ".py", ".pyw", ".pth", ".pl", ".pm", ".rb", ".js", ".mjs", ".cjs",
    ".ts", ".tsx", ".jsx", ".php", ".lua", ".tcl", ".awk", ".sed", ".jq", ".mk", ".cmake", ".gradle", ".groovy",
    ".sql", ".vim", ".el", ".r", ".service", ".timer", ".rs", ".go", ".c", ".h", ".cc", ".cpp", ".java", ".kt",
    ".swift", ".cs", ".ps1", ".bat", ".cmd", ".exe", ".so", ".dll", ".jar", ".whl", ".env", ".cfg", ".conf", ".ini",
    ".toml", ".bzl", ".yml", ".yaml", ".tf", ".nix", ".ninja", ".in", ".ac", ".am", ".desktop", ".xsl", ".xslt",
    ".ipynb", ".svg", ".html", ".rc", ".exs", ".csproj", ".fsproj", ".vbproj", ".props", ".targets", ".gemspec",
    ".podspec", ".cabal", ".bazel", ".star", ".mod",
];

/// True if a path is a standard stream of the script, not a file.
pub(super) fn is_stream(path: &[u8]) -> bool {
    matches!(path, b"/dev/null" | b"/dev/stdout" | b"/dev/stderr")
}

/// Devices below `/dev` that contain no data of this script. They may be used anywhere.
const HARMLESS: [&[u8]; 4] = [b"null", b"zero", b"random", b"urandom"];

/// Names of streams below a folder `dev`. They are rejected even if that folder may not be `/dev`.
const STREAMS: [&[u8]; 8] = [b"stdin", b"stdout", b"stderr", b"fd", b"tcp", b"udp", b"tty", b"pts"];

/// Returns the number of leading parts of a word that give a path from the root, or a pattern for all files, where all of
/// them are empty: `"@x"/*`. `None` if text of the author comes first.
pub(super) fn parts_before_root(word: &Word) -> Option<usize> {
    for (at, piece) in word.pieces.iter().enumerate() {
        match piece {
            Piece::Literal(text) => {
                let is_root = |byte: &u8| *byte == b'/' || word.is_glob && b"*?[".contains(byte);
                match text.first() {
                    Some(first) => return (at > 0 && is_root(first)).then_some(at),
                    None => continue,
                }
            }
            Piece::Home | Piece::Number(_) | Piece::Count => return None,
            Piece::Mark(_) | Piece::Variable(_) | Piece::Output(_) | Piece::Opaque => {}
        }
    }
    None
}

/// True if a word may be the path of a stream or a process (`/dev/stdin`, `/proc/self/fd/0`). A script could read a
/// value there although no redirection shows it.
pub(super) fn names_stream(word: &Word) -> bool {
    let is_last = |at: usize| at + 1 == word.pieces.len();
    let literals = word.pieces.iter().enumerate().filter_map(|(at, piece)| match piece {
        Piece::Literal(text) => Some((text, at == 0, is_last(at))),
        _ => None,
    });
    literals.into_iter().any(|(text, is_first, is_last)| {
        let is_pattern = word.is_glob && is_first && is_rooted_pattern(text);
        let mut places = 0..text.len();
        is_pattern || places.any(|at| is_stream_at(text, at, is_first, is_last))
    })
}

/// True if a word may be a path in which git stores its arguments (`.git/COMMIT_EDITMSG`, `.git/refs`).
pub(super) fn is_kept_by_git(word: &Word) -> bool {
    let is_inside = |text: &[u8]| text.split(|byte| *byte == b'/').any(|part| part == b".git");
    word.pieces.iter().any(|piece| matches!(piece, Piece::Literal(text) if is_inside(text)))
}

/// True if a file pattern matches folders in the root, among them `/dev` and `/proc`.
fn is_rooted_pattern(text: &[u8]) -> bool {
    let first = text.strip_prefix(b"/").and_then(|rest| rest.split(|byte| *byte == b'/').find(|part| !part.is_empty()));
    first.is_some_and(|part| part.iter().any(|byte| b"*?[".contains(byte)) && text.len() > part.len() + 1)
}

/// True if the path component at an offset leads to a stream or a process.
fn is_stream_at(text: &[u8], at: usize, is_first: bool, is_last: bool) -> bool {
    let is_path_byte = |byte: u8| byte.is_ascii_alphanumeric() || byte >= 0x80 || b"._-".contains(&byte);
    if at > 0 && is_path_byte(text[at - 1]) {
        return false;
    }
    let length = text[at..].iter().position(|byte| !is_path_byte(*byte)).unwrap_or(text.len() - at);
    let (name, rest) = text[at..].split_at(length);
    // A variable may hold the components before these.
    if matches!(name, b"fd" | b"environ" | b"cmdline") {
        return text[..at].ends_with(b"/") && (name != b"fd" || rest.starts_with(b"/"));
    }
    if !matches!(name, b"dev" | b"proc") {
        return false;
    }
    // Repeated slashes and `.` components do not change a path.
    let is_skipped = |byte: &u8| b"/.".contains(byte);
    let skipped = text[..at].iter().rev().take_while(|byte| is_skipped(byte)).count();
    let is_rooted = text[at - skipped..at].starts_with(b"/")
        && match text[..at - skipped].last() {
            None => is_first,
            Some(byte) => !is_path_byte(*byte),
        };
    let below = rest.iter().position(|byte| !is_skipped(byte)).map_or(&b""[..], |at| &rest[at..]);
    let length = below.iter().position(|byte| !is_path_byte(*byte)).unwrap_or(below.len());
    let below = if rest.starts_with(b"/") { &below[..length] } else { b"" };
    match name {
        b"proc" => {
            is_rooted || below.first().is_some_and(u8::is_ascii_digit) || leads_on(rest, is_last) || is_self(below)
        }
        _ => STREAMS.contains(&below) || (is_rooted && !HARMLESS.contains(&below)),
    }
}

/// True if a path ends in a slash and an expansion follows it.
fn leads_on(rest: &[u8], is_last: bool) -> bool {
    !is_last && !rest.is_empty() && rest.iter().all(|byte| *byte == b'/')
}

fn is_self(name: &[u8]) -> bool {
    matches!(name, b"self" | b"thread-self")
}

/// True if values may be written to a path: no program reads the file as code or configuration because of its name. The
/// path is below the working folder or `/tmp`, and is neither hidden nor a hook.
pub(super) fn is_plain(path: &[u8]) -> bool {
    let path = path.strip_prefix(b"/tmp/").or_else(|| path.strip_prefix(b"./")).unwrap_or(path);
    is_plain_folder(path) && {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_ascii_lowercase();
        let is_code = CODE_NAMES.iter().chain(HOOKS).any(|code| name == code.as_bytes())
            || CODE_ENDINGS.iter().any(|ending| name.ends_with(ending.as_bytes()));
        !is_code && name.first().is_some_and(u8::is_ascii_alphanumeric)
    }
}

/// True if no program looks for code in a folder below the working folder.
pub(super) fn is_plain_folder(path: &[u8]) -> bool {
    let is_plain = |part: &[u8]| {
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        part.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            && part.iter().all(is_letter)
            && !matches!(part, b"hooks" | b"bin" | b"sbin" | b"etc" | b"lib")
    };
    path.split(|byte| *byte == b'/').all(is_plain)
}
