//! Programs by what a value among their arguments can become.
//!
//! The tables are an allow list: a program that stands in none of them gets a value only where it can be nothing but an
//! operand (see `external`). What is listed was looked up in the manual of each program, option by option.

use super::interpreters::base_name;

/// What a value among the arguments of a program can become.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Text and nothing else: no option of the program runs or writes anything.
    Data,
    /// A file's name: no option runs anything, but one could change which files are meant.
    Files,
    /// Code, in any argument.
    Code,
    /// Code in arguments and data on the standard input.
    Filter,
    /// Nobody knows: options may run anything.
    Unknown,
}

/// Programs that print or compare what they are given or read.
const DATA: &[&[u8]] = &[
    b"echo",
    b"printf",
    b"true",
    b"false",
    b":",
    b"test",
    b"[",
    b"cat",
    b"tac",
    b"head",
    b"tail",
    b"wc",
    b"nl",
    b"rev",
    b"fold",
    b"cut",
    b"tr",
    b"paste",
    b"join",
    b"comm",
    b"cmp",
    b"diff",
    b"uniq",
    b"basename",
    b"dirname",
    b"realpath",
    b"readlink",
    b"ls",
    b"stat",
    b"sleep",
    b"seq",
    b"date",
    b"du",
    b"df",
    b"md5sum",
    b"sha1sum",
    b"sha224sum",
    b"sha256sum",
    b"sha384sum",
    b"sha512sum",
    b"b2sum",
    b"cksum",
    b"base64",
    b"base32",
    b"od",
    b"xxd",
    b"hexdump",
    b"id",
    b"expr",
    b"grep",
    b"egrep",
    b"fgrep",
    b"exit",
    b"return",
    b"cd",
    b"pwd",
    b"kill",
    b"type",
    b"which",
];

/// Programs that change files.
const FILES: &[&[u8]] = &[
    b"cp",
    b"mv",
    b"rm",
    b"ln",
    b"mkdir",
    b"rmdir",
    b"touch",
    b"chmod",
    b"chown",
    b"chgrp",
    b"tee",
    b"truncate",
    b"mktemp",
    b"unlink",
    b"gzip",
    b"gunzip",
    b"xz",
    b"unxz",
    b"bzip2",
    b"bunzip2",
    b"zstd",
    b"unzip",
];

/// Programs whose arguments, or what they read, are programs, queries or the names of either.
const CODE: &[&[u8]] = &[
    b"ssh",
    b"mosh",
    b"sftp",
    b"ftp",
    b"lftp",
    b"telnet",
    b"psql",
    b"pgbench",
    b"mysql",
    b"mariadb",
    b"sqlite3",
    b"sqlite",
    b"duckdb",
    b"mongo",
    b"mongosh",
    b"redis-cli",
    b"clickhouse-client",
    b"cqlsh",
    b"sqlplus",
    b"vim",
    b"vi",
    b"view",
    b"nvim",
    b"ex",
    b"ed",
    b"emacs",
    b"nano",
    b"gdb",
    b"lldb",
    b"at",
    b"batch",
    b"crontab",
    b"make",
    b"gmake",
    b"bmake",
    b"ninja",
    b"just",
    b"cmake",
    b"dc",
    b"m4",
    b"gnuplot",
    b"expect",
    b"tclsh",
    b"wish",
    b"csh",
    b"tcsh",
    b"rc",
    b"elvish",
    b"nu",
    b"xonsh",
    b"octave",
    b"R",
    b"ghci",
    b"irb",
    b"erl",
    b"iex",
    b"scala",
    b"groovy",
    b"java",
    b"jshell",
    b"clojure",
    b"guile",
    b"racket",
    b"sbcl",
    b"ocaml",
    b"swift",
    b"dotnet",
    b"mail",
    b"mailx",
    b"mutt",
    b"patch",
    b"parallel",
    b"watch",
    b"entr",
    b"screen",
    b"tmux",
    b"systemd-run",
    b"bwrap",
    b"firejail",
    b"unshare",
    b"nsenter",
    b"busybox",
    b"toybox",
    b"man",
    b"less",
    b"more",
    b"git-shell",
    b"npx",
    b"pip",
    b"pip3",
    b"pipx",
    b"uvx",
    b"gem",
    b"brew",
    b"apt",
    b"apt-get",
    b"dnf",
    b"yum",
    b"apk",
    b"dpkg",
    b"rpm",
    b"snap",
    b"nix",
    b"nix-shell",
    b"conda",
    b"ansible",
    b"ansible-playbook",
    b"gcc",
    b"cc",
    b"g++",
    b"c++",
    b"clang",
    b"ld",
    b"rustc",
    b"socat",
    b"ncat",
    b"nc",
    b"run-parts",
    b"start-stop-daemon",
    b"daemonize",
    b"pkexec",
    b"xterm",
    b"perf",
    b"bpftrace",
    b"ldd",
];

/// Programs with a language of their own, which read data.
const FILTERS: &[&[u8]] =
    &[b"sed", b"gsed", b"awk", b"gawk", b"mawk", b"nawk", b"jq", b"yq", b"gojq", b"jaq", b"xmlstarlet", b"xsltproc"];

/// Programs of which only some subcommands take values that cannot become code.
const SUBCOMMANDS: &[(&[u8], &[&[u8]])] = &[
    (
        b"git",
        &[
            b"add",
            b"am",
            b"apply",
            b"branch",
            b"checkout",
            b"cherry-pick",
            b"clone",
            b"commit",
            b"describe",
            b"diff",
            b"fetch",
            b"log",
            b"ls-files",
            b"ls-remote",
            b"ls-tree",
            b"merge",
            b"mv",
            b"notes",
            b"pull",
            b"push",
            b"remote",
            b"reset",
            b"restore",
            b"rev-list",
            b"rev-parse",
            b"revert",
            b"rm",
            b"show",
            b"show-ref",
            b"stash",
            b"status",
            b"switch",
            b"tag",
            b"update-ref",
            b"worktree",
        ],
    ),
    (
        b"docker",
        &[
            b"build",
            b"image",
            b"images",
            b"inspect",
            b"login",
            b"logout",
            b"logs",
            b"manifest",
            b"pull",
            b"push",
            b"rm",
            b"rmi",
            b"stop",
            b"tag",
        ],
    ),
    (
        b"podman",
        &[
            b"build",
            b"image",
            b"images",
            b"inspect",
            b"login",
            b"logout",
            b"logs",
            b"manifest",
            b"pull",
            b"push",
            b"rm",
            b"rmi",
            b"stop",
            b"tag",
        ],
    ),
    (
        b"kubectl",
        &[b"annotate", b"delete", b"describe", b"get", b"label", b"logs", b"rollout", b"scale", b"set", b"wait"],
    ),
    (b"npm", &[b"version", b"publish", b"pack", b"view", b"dist-tag", b"deprecate"]),
    (b"pnpm", &[b"version", b"publish", b"pack"]),
    (b"yarn", &[b"version", b"publish", b"pack"]),
    (b"cargo", &[b"publish", b"package", b"set-version", b"yank", b"owner", b"pkgid"]),
    (b"go", &[b"list", b"version"]),
    (b"uv", &[b"version", b"publish"]),
    (b"helm", &[b"package", b"push", b"upgrade", b"rollback", b"status", b"uninstall"]),
];

/// Options whose value is text or a name and never code, by program.
const SAFE_OPTIONS: &[(&[u8], &[&[u8]])] = &[
    (
        b"git",
        &[
            b"-m",
            b"--message",
            b"--author",
            b"--date",
            b"-b",
            b"--branch",
            b"--grep",
            b"--since",
            b"--until",
            b"--depth",
        ],
    ),
    (
        b"gh",
        &[b"-t", b"--title", b"-b", b"--body", b"-n", b"--notes", b"-R", b"--repo", b"-l", b"--label", b"--target"],
    ),
    (b"docker", &[b"-t", b"--tag", b"--name", b"--label"]),
    (b"podman", &[b"-t", b"--tag", b"--name", b"--label"]),
    (b"kubectl", &[b"-n", b"--namespace", b"-l", b"--selector", b"--replicas", b"--timeout"]),
    (b"helm", &[b"-n", b"--namespace", b"--version", b"--app-version", b"--set-string", b"--timeout"]),
    (
        b"curl",
        &[
            b"-H",
            b"--header",
            b"-d",
            b"--data",
            b"--data-raw",
            b"--data-urlencode",
            b"-F",
            b"--form-string",
            b"--url",
            b"-X",
            b"--request",
            b"-A",
            b"--user-agent",
        ],
    ),
    (
        b"find",
        &[
            b"-name",
            b"-iname",
            b"-path",
            b"-ipath",
            b"-regex",
            b"-iregex",
            b"-newer",
            b"-user",
            b"-group",
            b"-mtime",
            b"-mmin",
            b"-size",
            b"-maxdepth",
            b"-mindepth",
        ],
    ),
    (b"sort", &[b"-k", b"-t"]),
    (b"npm", &[b"--tag"]),
];

/// Options that take no value, by program: a word after them is an operand.
const FLAGS: &[(&[u8], &[&[u8]])] = &[
    (
        b"git",
        &[
            b"-a",
            b"-f",
            b"-s",
            b"-q",
            b"-v",
            b"-d",
            b"-D",
            b"--force",
            b"--tags",
            b"--quiet",
            b"--annotate",
            b"--sign",
            b"--verbose",
            b"--no-verify",
            b"--all",
            b"--amend",
            b"--hard",
            b"--detach",
            b"--prune",
        ],
    ),
    (b"docker", &[b"-q", b"--quiet", b"--no-cache", b"--pull", b"--push"]),
    (b"podman", &[b"-q", b"--quiet", b"--no-cache"]),
    (b"gh", &[b"--draft", b"--prerelease", b"--generate-notes"]),
    (b"zip", &[b"-r", b"-q"]),
    (
        b"curl",
        &[b"-f", b"-s", b"-S", b"-L", b"-fsSL", b"-sSfL", b"-fsS", b"-sSL", b"--fail", b"--silent", b"--location"],
    ),
];

/// Whether an option takes no value.
pub(super) fn is_flag(name: &[u8], option: &[u8]) -> bool {
    let name = unversioned(base_name(name));
    FLAGS.iter().any(|(program, flags)| *program == name && flags.contains(&option))
}

/// The class of a program, given the words after its name.
pub(super) fn class_of<'w>(name: &[u8], arguments: impl Iterator<Item = &'w [u8]>) -> Class {
    let name = unversioned(base_name(name));
    let holds = |table: &[&[u8]]| table.contains(&name);
    match () {
        () if holds(DATA) => Class::Data,
        () if holds(FILES) => Class::Files,
        () if holds(CODE) => Class::Code,
        () if holds(FILTERS) => Class::Filter,
        () if name == b"find" => Class::Code,
        () => match SUBCOMMANDS.iter().find(|(program, _)| *program == name) {
            Some((_, allowed)) => subcommand_class(name, allowed, arguments),
            None => Class::Unknown,
        },
    }
}

/// A subcommand comes first: options before it may choose what runs (`git -c`), but for those that are known.
fn subcommand_class<'w>(name: &[u8], allowed: &[&[u8]], mut arguments: impl Iterator<Item = &'w [u8]>) -> Class {
    let mut first = arguments.next().unwrap_or_default();
    while is_safe_option(name, first) {
        first = arguments.nth(1).unwrap_or_default();
    }
    if allowed.contains(&first) { Class::Unknown } else { Class::Code }
}

/// Whether the value of an option is never code. Options are written with two dashes and a name, or one and a letter.
pub(super) fn is_safe_option(name: &[u8], option: &[u8]) -> bool {
    let name = unversioned(base_name(name));
    SAFE_OPTIONS.iter().any(|(program, options)| *program == name && options.contains(&option))
}

fn unversioned(name: &[u8]) -> &[u8] {
    let version = name.iter().rev().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-')).count();
    let is_listed = [b"sqlite3".as_slice(), b"pip3", b"base64", b"base32", b"bzip2", b"bunzip2"].contains(&name)
        || name.ends_with(b"sum");
    if is_listed || version == name.len() { name } else { &name[..name.len() - version] }
}

/// Variables that make a program run or load what they name.
const CODE_VARIABLES: &[&[u8]] = &[
    b"PS0",
    b"PS1",
    b"PS2",
    b"PS4",
    b"PROMPT_COMMAND",
    b"BASH_ENV",
    b"ENV",
    b"BASH_ALIASES",
    b"BASH_CMDS",
    b"BASHOPTS",
    b"SHELLOPTS",
    b"BASH_LOADABLES_PATH",
    b"PATH",
    b"HOME",
    b"SHELL",
    b"IFS",
    b"EDITOR",
    b"VISUAL",
    b"PAGER",
    b"MANPAGER",
    b"BROWSER",
    b"LESSOPEN",
    b"LESSCLOSE",
    b"GIT_SSH",
    b"GIT_SSH_COMMAND",
    b"GIT_EDITOR",
    b"GIT_SEQUENCE_EDITOR",
    b"GIT_PAGER",
    b"GIT_ASKPASS",
    b"GIT_PROXY_COMMAND",
    b"GIT_EXTERNAL_DIFF",
    b"GIT_EXEC_PATH",
    b"GIT_TEMPLATE_DIR",
    b"GIT_DIR",
    b"SSH_ASKPASS",
    b"SUDO_ASKPASS",
    b"RSYNC_RSH",
    b"RSYNC_CONNECT_PROG",
    b"TAR_OPTIONS",
    b"MAKEFLAGS",
    b"MAKEFILES",
    b"GNUMAKEFLAGS",
    b"CC",
    b"CXX",
    b"LD",
    b"CFLAGS",
    b"CXXFLAGS",
    b"LDFLAGS",
    b"RUSTC",
    b"RUSTFLAGS",
    b"RUSTC_WRAPPER",
    b"PERL5OPT",
    b"PERL5LIB",
    b"PERLLIB",
    b"PERL5DB",
    b"PYTHONPATH",
    b"PYTHONHOME",
    b"PYTHONSTARTUP",
    b"PYTHONINSPECT",
    b"PYTHONBREAKPOINT",
    b"RUBYOPT",
    b"RUBYLIB",
    b"NODE_OPTIONS",
    b"NODE_PATH",
    b"NPM_CONFIG_SCRIPT_SHELL",
    b"JAVA_TOOL_OPTIONS",
    b"_JAVA_OPTIONS",
    b"JDK_JAVA_OPTIONS",
    b"CLASSPATH",
    b"MAVEN_OPTS",
    b"GRADLE_OPTS",
    b"PHPRC",
    b"PHP_INI_SCAN_DIR",
    b"LUA_INIT",
    b"LUA_PATH",
    b"LUA_CPATH",
    b"AWKPATH",
    b"AWKLIBPATH",
    b"GOFLAGS",
    b"PSQLRC",
    b"PSQL_EDITOR",
    b"PSQL_PAGER",
    b"MYSQL_PAGER",
    b"EXINIT",
    b"VIMINIT",
    b"INPUTRC",
    b"XDG_CONFIG_HOME",
    b"DOCKER_HOST",
    b"KUBECONFIG",
    b"TERMINFO",
    b"OPENSSL_CONF",
    b"GCONV_PATH",
    b"HOSTALIASES",
];

/// What the names of such variables begin with.
const CODE_VARIABLE_PREFIXES: &[&[u8]] =
    &[b"LD_", b"DYLD_", b"GIT_CONFIG", b"BASH_FUNC_", b"CARGO_TARGET_", b"npm_config_"];

/// Whether a variable's value is code to the shell or to programs that it starts, or says where their code is.
pub(super) fn is_code_variable(name: &[u8]) -> bool {
    CODE_VARIABLES.contains(&name) || CODE_VARIABLE_PREFIXES.iter().any(|prefix| name.starts_with(prefix))
}

/// Names of files that programs run or are configured by, and endings of such names.
const CODE_FILES: &[&[u8]] = &[
    b"Makefile",
    b"makefile",
    b"GNUmakefile",
    b"Dockerfile",
    b"Containerfile",
    b"Jenkinsfile",
    b"Justfile",
    b"justfile",
    b"Rakefile",
    b"Gemfile",
    b"Vagrantfile",
    b"Procfile",
    b"Brewfile",
    b"package.json",
    b"CMakeLists.txt",
    b"crontab",
    b"config.toml",
    b"authorized_keys",
    b"ssh_config",
    b"profile",
];
const CODE_ENDINGS: &[&[u8]] = &[
    b".sh",
    b".bash",
    b".zsh",
    b".fish",
    b".ksh",
    b".csh",
    b".py",
    b".pyw",
    b".pth",
    b".pl",
    b".pm",
    b".rb",
    b".js",
    b".mjs",
    b".cjs",
    b".ts",
    b".php",
    b".lua",
    b".tcl",
    b".awk",
    b".sed",
    b".jq",
    b".mk",
    b".cmake",
    b".gradle",
    b".groovy",
    b".sql",
    b".vim",
    b".el",
    b".R",
    b".service",
    b".timer",
    b".rs",
    b".go",
    b".c",
    b".java",
];

/// Whether a file's name says that its content is code, or steers programs.
pub(super) fn is_code_file(path: &[u8]) -> bool {
    let name = base_name(path);
    let is_hidden = name.len() > 1
        && name.starts_with(b".")
        && (name.ends_with(b"rc")
            || name.ends_with(b"profile")
            || name.ends_with(b"login")
            || name.ends_with(b"logout")
            || name.ends_with(b"config"));
    let is_hook = path.windows(7).any(|part| part == b"/hooks/")
        || path.starts_with(b"hooks/")
        || path.windows(5).any(|part| part == b"/cron")
        || path.windows(5).any(|part| part == b".git/")
        || path.windows(5).any(|part| part == b".ssh/");
    CODE_FILES.contains(&name)
        || CODE_ENDINGS.iter().any(|ending| name.len() > ending.len() && name.ends_with(ending))
        || is_hidden
        || is_hook
}
