//! Attacks on commands of real programs.
//!
//! Commands are combined from programs, options, argument positions, ways in which a value reaches the position, and
//! surrounding constructs. Each accepted command runs with values that are dangerous for its program, in a folder with
//! a file `f` and a git repository. No run may create the file `PWNED`.

use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
};

use super::{Dice, Folder, is_known};
use mainspring_kernel::script::{Surroundings, VARIABLE_PREFIX, prepare};

/// A program with the options before its operands, and values that are dangerous for it.
struct Target {
    program: &'static str,
    options: &'static [&'static str],
    values: &'static [&'static str],
}

/// Values that are dangerous for a shell.
const SHELL: &[&str] = &[
    "touch PWNED",
    "; touch PWNED",
    "$(touch PWNED)",
    "`touch PWNED`",
    "a[$(touch PWNED)]",
    "x\ntouch PWNED\n",
    "x\" ; touch PWNED ; \"",
    "-v a[$(touch PWNED)]",
    "-c touch PWNED",
    "() { touch PWNED; }",
];
const SED: &[&str] = &["x/e;s/^.*$/touch PWNED/e;#", "x/w PWNED", "1e touch PWNED", "w PWNED", "--expression=w PWNED"];
const AWK: &[&str] =
    &["\"; system(\"touch PWNED\"); print \"", "BEGIN{system(\"touch PWNED\")}", "BEGIN{print > \"PWNED\"}"];
const GIT: &[&str] = &[
    "--upload-pack=touch PWNED; git-upload-pack",
    "--receive-pack=touch PWNED; git-receive-pack",
    "--exec=touch PWNED",
    "--output=PWNED",
    "ext::sh -c touch% PWNED",
    "--extcmd=touch PWNED;",
    "alias.x=!touch PWNED",
    "core.pager=touch PWNED",
];
const FILES: &[&str] = &[
    "--compress-program=touch PWNED",
    "--output=PWNED",
    "-oPWNED",
    "--to-command=touch PWNED",
    "--target-directory=PWNED",
    "-exec=touch PWNED",
];
const OTHERS: &[&str] = &["touch PWNED|", "'); import os; os.system('touch PWNED'); ('", "--config=PWNED", "-oPWNED"];

const TARGETS: &[Target] = &[
    Target { program: "echo", options: &["", "-n", "-e"], values: SHELL },
    Target { program: "printf", options: &["", "'%s\\n'", "-v n", "--"], values: SHELL },
    Target { program: "[", options: &["", "-n", "-v", "a ="], values: SHELL },
    Target { program: "test", options: &["", "-z", "-v", "a -eq"], values: SHELL },
    Target { program: "read", options: &["", "-r", "n <<<"], values: SHELL },
    Target { program: "cat", options: &["", "-n"], values: SHELL },
    Target { program: "let", options: &["", "n="], values: SHELL },
    Target { program: "eval", options: &["", "echo"], values: SHELL },
    Target { program: "declare", options: &["", "-i n="], values: SHELL },
    Target { program: "export", options: &["", "n="], values: SHELL },
    Target { program: "unset", options: &["", "-v"], values: SHELL },
    Target { program: "cd", options: &["", "-P"], values: SHELL },
    Target { program: "set", options: &["", "--"], values: SHELL },
    Target { program: "command", options: &["", "-v"], values: SHELL },
    Target { program: "trap", options: &["", "-p"], values: SHELL },
    Target { program: "sh", options: &["", "-c", "-c 'echo \"$1\"' _", "-s"], values: SHELL },
    Target { program: "bash", options: &["", "-c", "-c '$1' _", "-O extglob"], values: SHELL },
    Target { program: "sed", options: &["", "-n", "-e", "-E", "'s/a/b/'"], values: SED },
    Target { program: "awk", options: &["", "-v n=", "'{print $1}'", "-f"], values: AWK },
    Target { program: "git fetch", options: &["", "origin", "--tags origin", "-m", "--depth 1 origin"], values: GIT },
    Target { program: "git ls-remote", options: &["", "origin"], values: GIT },
    Target { program: "git push", options: &["", "origin", "-u origin", "-o"], values: GIT },
    Target { program: "git clone", options: &["", "--depth 1"], values: GIT },
    Target { program: "git tag", options: &["", "-a", "-m", "-d", "-am"], values: GIT },
    Target { program: "git commit", options: &["", "-m", "-am", "--allow-empty -m", "-F"], values: GIT },
    Target { program: "git checkout", options: &["", "-b", "-q", "--detach"], values: GIT },
    Target { program: "git diff", options: &["", "--stat", "-b"], values: GIT },
    Target { program: "git log", options: &["", "--oneline", "-n", "-1"], values: GIT },
    Target { program: "git show", options: &["", "-s", "-m"], values: GIT },
    Target { program: "git rebase", options: &["", "-m"], values: GIT },
    Target { program: "git config", options: &["", "alias.x"], values: GIT },
    Target { program: "git -c", options: &["", "core.pager="], values: GIT },
    Target { program: "git add", options: &["", "-f"], values: GIT },
    Target { program: "git branch", options: &["", "-f"], values: GIT },
    Target { program: "find", options: &[".", ". -name", ". -exec", ". -name x -fprint"], values: FILES },
    Target { program: "sort", options: &["", "-u", "-o", "-k 1"], values: FILES },
    Target { program: "uniq", options: &["", "-c", "f"], values: FILES },
    Target { program: "tee", options: &["", "-a"], values: FILES },
    Target { program: "tar", options: &["cf out", "xf"], values: FILES },
    Target { program: "cp", options: &["f", "-r f"], values: FILES },
    Target { program: "grep", options: &["", "-q", "-e", "-f"], values: FILES },
    Target { program: "head", options: &["", "-n 1"], values: FILES },
    Target { program: "cut", options: &["-f1", "-d"], values: FILES },
    Target { program: "date", options: &["", "-d", "-f"], values: FILES },
    Target { program: "ls", options: &["", "-l"], values: FILES },
    Target { program: "rm", options: &["", "-f"], values: FILES },
    Target { program: "xargs", options: &["", "sh -c"], values: SHELL },
    Target { program: "jq", options: &["-n", "-n --arg v", "-R ."], values: OTHERS },
    Target { program: "perl", options: &["-ne print", "-e"], values: OTHERS },
    Target { program: "python3", options: &["-c", "-"], values: OTHERS },
    Target { program: "curl -s -m 1", options: &["", "-o", "-H", "http://127.0.0.1:1/a"], values: OTHERS },
    Target { program: "make", options: &["", "-f"], values: SHELL },
    Target { program: "./f", options: &["", "-x"], values: SHELL },
];

/// Argument positions. `{}` is the value, `P` the program with its options.
const PLACES: &[&str] = &[
    "P {}",
    "P \"{}\"",
    "P -- {}",
    "P -- \"{}\" f",
    "P f {}",
    "P v{}",
    "P -{}",
    "P --x={}",
    "P{}",
    "P \"s/X/{}/\" f",
    "P '{print \"{}\"}' f",
    "P f -- {}",
    "P {} ]",
    "P = {} ]",
    "P . {}",
    "P HEAD {}",
    "P <<< {}",
    "echo {} | P",
    "printf '%s\\n' {} | P -",
    "P \"X: {}\"",
    "P {} '$v'",
    "P < {}",
    "P f > {}",
];

/// Ways in which a value reaches its position: the text before the command, and the text in place of the value.
const WAYS: &[[&str; 2]] = &[
    ["", "@vars.a"],
    ["x=@vars.a; ", "$x"],
    ["x=@vars.a; ", "${x#v}"],
    ["", "$(printf %s @vars.a)"],
    ["x=$(echo @vars.a)\n", "\"$x\""],
    ["read -r x <<< @vars.a; ", "\"$x\""],
    ["for x in @vars.a; do :; done; ", "\"$x\""],
    ["echo @vars.a > n.txt; ", "\"$(cat n.txt)\""],
    ["true @vars.a; ", "\"$_\""],
    ["y=@vars.a; x=y; ", "\"${!x}\""],
    ["set -- @vars.a; ", "\"$1\""],
    ["x=(@vars.a); ", "\"${x[0]}\""],
];

/// Constructs around a command.
const AROUND: &[&str] = &[
    "C",
    "timeout 5 C",
    "env C",
    "env --chdir . C",
    "timeout --signal KILL 5 C",
    "nice C",
    "run() { \"$@\"; }; run C",
    "if true; then C; fi",
    "for i in 1 2; do C; done",
    "y=$(C)",
    "(C) | cat",
    "{ C; } > o.txt; sh o.txt",
    "C > o.txt; . ./o.txt",
    "C > o.txt; git add o.txt; git commit -qm a",
    "C > .git/hooks/pre-commit; git commit -qm a",
    "cp f .git/hooks/pre-commit; C | tee .git/hooks/pre-commit; git commit -qm a",
    "C | sh",
    "C | while read -r l; do $l; done",
    "C | while read -r l; do echo $((l + 1)); done",
    "n=$(C); echo $((n))",
    "n=$(C); [[ $n -gt 1 ]]",
    "n=$(C); eval \"echo $n\"",
    "PS4='$(C)'; set -x; true",
    "cat <<E\n$(C)\nE",
    "command C",
    "exec C",
];

/// A folder with the file `f` and a git repository, restored when a command may have changed it.
struct Repository {
    folder: Folder,
    /// A copy of the initial repository.
    seed: Folder,
    is_fresh: bool,
}

const SEED: &str = "echo X > f; chmod +x f; git init -q . && git add f && git commit -qm a \
                    && git init -q --bare origin.git && git remote add origin ./origin.git && git push -q origin HEAD \
                    && rm .git/hooks/*";

impl Repository {
    fn new(name: &str) -> Self {
        let repository =
            Self { folder: Folder::new(name), seed: Folder::new(&format!("{name}-seed")), is_fresh: false };
        run(&repository.seed.0, SEED, &[""]);
        repository
    }

    /// Runs a script once with each value; returns true if the file `PWNED` exists afterwards.
    fn attack(&mut self, text: &str, values: &[&str]) -> bool {
        if !self.is_fresh {
            let _ = fs::remove_dir_all(&self.folder.0);
            copy(&self.seed.0, &self.folder.0);
        }
        run(&self.folder.0, text, values);
        self.is_fresh = !changes(text);
        has_marker(&self.folder.0, 3)
    }
}

/// Runs the script once for each argument, which is the value of all references.
const EACH: &str = "for value in \"$@\"; do export REF0=\"$value\" REF1=\"$value\" REF2=\"$value\" REF3=\"$value\"; \
                    (eval \"$SCRIPT\"); done";

/// Runs a script once with each value for all of its references.
fn run(folder: &Path, text: &str, values: &[&str]) {
    let mut bash = Command::new("bash");
    bash.args(["--norc", "--noprofile", "-c", &EACH.replace("REF", VARIABLE_PREFIX), "bash"]).args(values);
    bash.env("SCRIPT", text).current_dir(folder);
    bash.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    bash.env("HOME", folder).env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_TERMINAL_PROMPT", "0");
    bash.env("GIT_CEILING_DIRECTORIES", folder.parent().expect("it is in a folder"));
    for name in ["AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL"] {
        bash.env(format!("GIT_{name}"), "a");
    }
    bash.status().expect("bash is there");
}

impl Drop for Repository {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder.0);
        let _ = fs::remove_dir_all(&self.seed.0);
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("the folder of tests is writable");
    for entry in fs::read_dir(from).expect("it was made").flatten() {
        let target = to.join(entry.file_name());
        match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            true => copy(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target)),
        }
    }
}

/// True if a script may change the folder.
fn changes(text: &str) -> bool {
    ["git", ">", "tee", "rm", "cp", "mv", "touch", "mkdir"].iter().any(|word| text.contains(word))
}

fn has_marker(folder: &Path, depth: usize) -> bool {
    let Ok(entries) = fs::read_dir(folder) else { return false };
    entries.flatten().any(|entry| {
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        entry.file_name() == "PWNED" || (depth > 0 && is_folder && has_marker(&entry.path(), depth - 1))
    })
}

/// Builds the command of a program with the value in a position.
fn command(target: &Target, option: &str, place: &str, way: [&str; 2]) -> String {
    let program = format!("{} {option}", target.program);
    let words = place.replacen('P', program.trim_end(), 1);
    format!("{}{}", way[0], words.replace("{}", way[1]))
}

/// Runs every combination of program, option and position with every value that is dangerous for the program.
#[test]
fn no_program_executes_a_value() {
    let mut repository = Repository::new("programs");
    let (mut accepted, mut refused) = (0, 0);
    for target in TARGETS {
        for option in target.options {
            for place in PLACES {
                let text = command(target, option, place, WAYS[0]);
                let Ok(script) = prepare(&text, Surroundings::default(), is_known) else {
                    refused += 1;
                    continue;
                };
                accepted += 1;
                assert!(!repository.attack(&script.text, target.values), "{text}\nwith one of {:?}", target.values);
            }
        }
    }
    assert!(accepted > 150 && refused > accepted, "{accepted} accepted, {refused} refused");
}

/// Runs random combinations of programs, ways and surrounding constructs.
#[test]
fn no_expansion_executes_a_value() {
    let mut repository = Repository::new("ways");
    let mut accepted = 0;
    for seed in 0..DRAWS {
        let mut dice = Dice(seed);
        let target = &TARGETS[dice.below(TARGETS.len())];
        let option = target.options[dice.below(target.options.len())];
        let way = WAYS[dice.below(WAYS.len())];
        let inner = command(target, option, PLACES[dice.below(PLACES.len())], ["", way[1]]);
        let text = format!("{}{}", way[0], AROUND[dice.below(AROUND.len())].replacen('C', &inner, 1));
        let Ok(script) = prepare(&text, Surroundings::default(), is_known) else { continue };
        accepted += 1;
        assert!(
            !repository.attack(&script.text, target.values),
            "seed {seed}: {text}\nwith one of {:?}",
            target.values
        );
    }
    assert!(accepted > 100, "{accepted} accepted");
}

/// The number of random combinations.
const DRAWS: u64 = 6_000;

/// Combines every way into a variable, an output or a file with every construct that evaluates its content.
#[test]
fn no_value_is_evaluated_later() {
    let mut repository = Repository::new("later");
    for way in WAYS {
        for later in LATER {
            let text = format!("{}{}", way[0], later.replace("{}", way[1]));
            let Ok(script) = prepare(&text, Surroundings::default(), is_known) else { continue };
            assert!(!repository.attack(&script.text, SHELL), "{text}\nwith one of {SHELL:?}");
        }
    }
}

/// Constructs that evaluate a value. `{}` is the value or the expansion that contains it.
const LATER: &[&str] = &[
    "n={}; echo $((n + 1))",
    "n={}; m=n; echo $((m))",
    "n={}; (( n > 1 ))",
    "n={}; [[ $n -eq 1 ]]",
    "n={}; [[ -v $n ]]",
    "n={}; [ -v \"$n\" ]",
    "n={}; [ \"$n\" -eq 1 ]",
    "n={}; let n=n+1",
    "n={}; m=`echo $((n+1))`",
    "n={}; declare -i m=$n",
    "n={}; a[$n]=1",
    "n={}; echo ${a[$n]}",
    "n={}; echo ${n@P}",
    "n={}; echo ${!n}",
    "n={}; unset \"a[$n]\"",
    "n={}; printf -v \"$n\" x",
    "n={}; printf \"$n\"",
    "n={}; read \"$n\" <<< a",
    "n={}\ncat <<E\n$((n+1))\nE",
    "n={}\ncat <<E\n$n\nE",
    "n={}\nbash <<E\necho $n\nE",
    "n={}; eval \"echo $n\"",
    "n={}; sh -c \"echo $n\"",
    "n={}; $n",
    "n={}; \"$n\"",
    "n={}; trap \"$n\" EXIT",
    "n={}; PS4=$n; set -x; true",
    "n={}; PS4='$(eval \"$n\")'; set -x; true",
    "while read -r n; do echo $((n+1)); done <<< {}",
    "while read -r c; do eval \"$c\"; done <<< {}",
    "{ read n; echo $((n)); } <<< {}",
    "read <<< {}; echo $((REPLY+1))",
    "mapfile -t a <<< {}; eval \"${a[0]}\"",
    "f() { eval \"$1\"; }; f {}",
    "f() { echo $(( $1 )); }; f {}",
    "echo() { eval \"$1\"; }; echo {}",
    "[[ {} =~ (.*) ]]; eval \"${BASH_REMATCH[1]}\"",
    "echo {} > s.txt; bash s.txt",
    "echo {} > s.txt; bash < s.txt",
    "echo {} > s.txt; cat s.txt | sh",
    "echo {} > s.txt; n=$(cat s.txt); echo $((n))",
    "echo {} > s.txt; read -r n < s.txt; (( n ))",
    "echo {} > s.txt; eval \"$(< s.txt)\"",
    "echo {} > tmp; cp tmp Makefile; make",
    "echo {} | sh",
    "echo {} | \"$BASH\"",
    "echo {} | tee s.txt; sh s.txt",
    "echo {} | { read -r n; echo $((n)); }",
    "sh <<< {}",
    "echo \"${n:-{}}\" | cat",
    "for n in {}; do echo $((n)); done",
    "case {} in *) echo $((1)) ;; esac",
    "n={}; echo \"${n:0:3}\" \"${n//a/b}\" \"${#n}\"",
    "n={}; echo \"$n\" $n > o.txt; cat o.txt",
];

/// Commands that an earlier version of the checker accepted and that executed a value.
const REVIEWED: &[&str] = &[
    "n=@vars.x; let n=n+1",
    "while read -r n; do echo $((n+1)); done <<< @vars.x",
    "while read -r c; do eval \"$c\"; done <<< @vars.x",
    "read <<< @vars.x; echo $((REPLY+1))",
    "n=@vars.x\ncat <<E\n$((n+1))\nE",
    "n=@vars.x; m=`echo $((n+1))`",
    "n=@vars.x\nbash <<E\necho $n\nE",
    "run() { echo \"+ $*\"; \"$@\"; }; git init -q r 2>/dev/null; cd r; run git ls-remote @vars.x . ; ls PWNED && mv PWNED ..",
    "run() { \"$@\"; }; echo X > f; run sed \"s/X/@vars.x/\" f",
    "echo() { eval \"$1\"; }; echo @vars.x",
    "bash -c '$1' _ @vars.x",
    "bash -c 'sh -c \"$1\"' _ @vars.x",
    "echo @vars.x > s.txt; bash < s.txt",
    "echo @vars.x > s.txt; cat s.txt | sh",
    "echo @vars.x > s.txt; awk -f s.txt",
    "echo X > f; echo @vars.x > s.txt; sed -f s.txt f",
    "echo @vars.x > tmp; cp tmp Makefile; make; rm Makefile",
    "echo X > notes; timeout --signal KILL 5 sed \"s/X/@vars.x/\" notes",
    "echo X > notes; env --chdir . sed \"s/X/@vars.x/\" notes",
    "echo X > notes; S=sed; \"$S\" \"s/X/@vars.x/\" notes",
    "echo @vars.x | \"$SHELL\"",
    "echo @vars.x | \"$BASH\"",
    "echo @vars.x | su - root -s /bin/sh; ls PWNED ~/PWNED && mv ~/PWNED .",
    "echo @vars.x | chroot /",
    "SECONDS=@vars.x",
    "x=@vars.x; declare -i n=$x",
    "i=@vars.x; a=(1); unset \"a[$i]\"",
    "i=@vars.x; test -v \"a[$i]\"",
    "git init -q r 2>/dev/null; cd r; git -c user.name=a -c user.email=a@b commit -q --allow-empty -m a; git branch -q u 2>/dev/null; git branch -q -u u; git rebase -m @vars.x; ls PWNED && mv PWNED ..",
];

#[test]
fn scripts_exploited_in_a_review_are_refused() {
    let taken: Vec<_> =
        REVIEWED.iter().filter(|text| prepare(text, Surroundings::default(), is_known).is_ok()).collect();
    assert!(taken.is_empty(), "{taken:#?}");
}
