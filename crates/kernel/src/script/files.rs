//! Files by their names: those that values may be written to.

/// Names of files that programs run or are configured by, and endings of such names. The list is a help for authors
/// whose later steps run the file; what the same script may do with a file does not depend on it.
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
];
const CODE_ENDINGS: &[&str] = &[
    ".sh", ".bash", ".zsh", ".fish", ".ksh", ".csh", ".py", ".pyw", ".pth", ".pl", ".pm", ".rb", ".js", ".mjs", ".cjs",
    ".ts", ".tsx", ".jsx", ".php", ".lua", ".tcl", ".awk", ".sed", ".jq", ".mk", ".cmake", ".gradle", ".groovy",
    ".sql", ".vim", ".el", ".r", ".service", ".timer", ".rs", ".go", ".c", ".h", ".cc", ".cpp", ".java", ".kt",
    ".swift", ".cs", ".ps1", ".bat", ".cmd", ".exe", ".so", ".dll", ".jar", ".whl", ".env", ".cfg", ".conf", ".ini",
    ".toml", ".bzl", ".yml", ".yaml", ".tf", ".nix", ".ninja", ".in", ".ac", ".am", ".desktop", ".xsl", ".xslt",
    ".ipynb", ".svg", ".html", ".rc",
];

/// Whether a path is a stream of the script and no file.
pub(super) fn is_stream(path: &[u8]) -> bool {
    matches!(path, b"/dev/null" | b"/dev/stdout" | b"/dev/stderr")
}

/// Whether a path is a file, or nothing, and not a stream that the script was given.
pub(super) fn is_no_stream(path: &[u8]) -> bool {
    path == b"/dev/null"
        || !(path.starts_with(b"/dev") || path.starts_with(b"/proc") || path.windows(2).any(|part| part == b".."))
}

/// Whether values may be written to a path: no program takes the file for code or configuration because of where it
/// lies. It is below the working folder or `/tmp`, and neither hidden nor a hook.
pub(super) fn is_plain(path: &[u8]) -> bool {
    let path = path.strip_prefix(b"/tmp/").or_else(|| path.strip_prefix(b"./")).unwrap_or(path);
    is_plain_folder(path) && {
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().to_ascii_lowercase();
        let is_code = CODE_NAMES.iter().any(|code| name == code.as_bytes())
            || CODE_ENDINGS.iter().any(|ending| name.ends_with(ending.as_bytes()));
        !is_code && name.first().is_some_and(u8::is_ascii_alphanumeric)
    }
}

/// Whether a folder below the working folder is one that programs do not look for code in.
pub(super) fn is_plain_folder(path: &[u8]) -> bool {
    let is_plain = |part: &[u8]| {
        let is_letter = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
        part.first().is_some_and(|byte| byte.is_ascii_alphanumeric() || *byte == b'_')
            && part.iter().all(is_letter)
            && !matches!(part, b"hooks" | b"bin" | b"sbin" | b"etc" | b"lib")
    };
    path.split(|byte| *byte == b'/').all(is_plain)
}
