//! Checks the arguments of programs: accepted scripts run with programs that record their arguments and input.
//!
//! A run with a hostile value must produce the records of a run with a harmless value, except for the value itself. The
//! value was then neither split nor expanded nor parsed by bash; it is one argument, or a part of one whose start is
//! the author's text.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, symlink},
    path::Path,
    process::{Command, Stdio},
};

use mainspring_kernel::script::{Surroundings, VARIABLE_PREFIX, prepare};

use super::{Folder, is_known};

/// A value without special characters.
const HARMLESS: &str = "QZQ";

const VALUES: [&str; 10] = [
    "$(touch PWNED)`touch PWNED`",
    "-oPWNED",
    "@/etc/passwd",
    "two\nlines\nE\n\tE\ntouch PWNED",
    "'; touch PWNED #",
    "\"; touch PWNED #",
    "/*",
    "~",
    "  %s  %n\\",
    "a[$(touch PWNED)]",
];

/// Commands. `{}` is the value, quoted or as a whole word.
const COMMANDS: [&str; 46] = [
    "docker build -t app:{} --build-arg VERSION={} .",
    "docker build -q --tag {} --build-arg A=1 --build-arg B=b{} -f Dockerfile .",
    "docker tag app:{} registry/app:{}",
    "docker push registry/app:{}",
    "docker push registry.example/{}",
    "gh release create v{} --title {} --notes {} --target {} a.tgz",
    "gh pr create -B main --title {} --body {}",
    "gh issue comment 1 --body={}",
    "curl -gsS https://h.example/{}",
    "curl -sS -d a={} --data-raw {} --data-binary x{} --json 1{} https://h.example/",
    "curl -sS -G --data-urlencode q={} https://h.example/",
    "timeout 5 curl -sS --data name={} -o out.txt https://h.example/",
    "jq -n --arg v {} --argjson w {} '$v'",
    "jq -R --arg v {} . f.json",
    "git push origin HEAD:refs/heads/{}",
    "git push -q origin -- main:refs/tags/v{}",
    "git fetch --depth 1 origin refs/heads/{}:refs/remotes/origin/{}",
    "git clone -q --depth 1 --branch {} https://h.example/r.git d",
    "git tag -a v{} -m {}",
    "git -C d tag -- {}",
    "git commit -q -m {} --author {} --date={}",
    "git --literal-pathspecs add -- {} d/{}",
    "git checkout -q -b {}",
    "git switch -c {} main",
    "git log --oneline -n 3 -- {}",
    "git diff --stat v{}..v{} -- {}",
    "git rev-parse --verify v{}",
    "grep -q -e {} -- f",
    "grep -c -- {} f d/{}",
    "find . -type f -name {} -print",
    "date -d {} +%F",
    "cp -r -- {} d/{}",
    "mkdir -p -- {}",
    "mv -f d/{} -- {}",
    "rm -rf -- {} x{}",
    "chmod -R 644 -- {}",
    "sort -u -- {}",
    "head -n 1 -- {}",
    "ls -l {}",
    "basename -- {} .txt",
    "curl -gsSo out.txt --url https://h.example/{}",
    "grep -oP --ignore-case -e {} -- f",
    "find \"$HOME\" -name {} -not -path {}",
    "git log --grep {} --author={}",
    "jq -r --arg v {} . \"$HOME\"",
    "d=dist; mkdir -p \"$HOME\"/{} \"$d\"/{}",
];

/// Commands that run in each frame.
const FRAMED: [&str; 3] =
    ["git push origin HEAD:refs/heads/{}", "curl -gsS -d a={} https://h.example/{}", "jq -n --arg v {} '$v'"];

/// Constructs around a command `C`, each with the text in place of the value.
const FRAMES: [[&str; 2]; 26] = [
    ["C", "'@vars.a'"],
    ["C", "\"@vars.a\""],
    ["VERSION=@vars.a; C", "\"$VERSION\""],
    ["NAME_2=\"@vars.a\"\nexport OTHER=1\nC", "\"${NAME_2}\""],
    ["X='@vars.a'; Y=$X; C", "\"${Y:-none}\""],
    ["x=; x+=@vars.a; C", "\"$x\""],
    ["C", "\"$(printf %s @vars.a)\""],
    ["x=$(printf %s. @vars.a)\nC", "\"${x%.}\""],
    ["for F in @vars.a; do C; done", "\"$F\""],
    ["if [ -n x@vars.a ] && [[ x@vars.a != y ]]; then C; else sort none; fi", "@vars.a"],
    ["case @vars.a in a@vars.a) sort none ;; *) C ;; esac", "@vars.a"],
    ["IFS= read -r -d '' L <<< @vars.a; L=${L%?}; C", "\"$L\""],
    ["cat <<E | sort\n@vars.a '@vars.a' \"@vars.a\" \\$x \\\\ \\` $HOME\nE\nC", "@vars.a"],
    ["cat <<-E | sort -r; C\n\t@vars.a\n\tE", "@vars.a"],
    ["V=@vars.a\nsort <<END\n$V ${V} $V.\nEND\nC", "\"$V\""],
    ["sort <<'E'; C\n$(touch PWNED) `touch PWNED` ' \" \\\nE", "@vars.a"],
    ["sort <<\"E-1.x\"\n$V ${\nE-1.x\nC", "@vars.a"],
    ["cat <<A <<B | sort; C\n@vars.a\nA\nb @vars.a\nB", "@vars.a"],
    ["{ sort; head; } <<E\n@vars.a\nE\nC", "@vars.a"],
    ["while IFS= read -r l; do sort -c -- \"$l\"; done <<E\nx\nE\nC", "@vars.a"],
    ["tmp=$(mktemp); printf %s @vars.a > \"$tmp\"; cat \"$tmp\" | sort; rm \"$tmp\"; C", "@vars.a"],
    ["TMP=\"$(mktemp)\"\ncat > \"$TMP\" <<E\n@vars.a\nE\nsort -- \"$TMP\" < \"$TMP\"; C", "@vars.a"],
    ["printf %s @vars.a | tee out.txt | sort; cat out.txt | tac; C", "@vars.a"],
    [
        "d=$(mktemp -d)\nprintf %s @vars.a > \"$d/a.txt\"\nmv \"$d/a.txt\" b.txt; cat b.txt | sort; trap 'rm \"$d\"' EXIT; C",
        "@vars.a",
    ],
    ["d=dist; for i in {1..2}; do C; done; read -r _ x <<< a@vars.a; sort -- \"$d/$i\"", "@vars.a"],
    ["(C) & wait; ! C || C 2>&1 | cat", "@vars.a"],
];

/// A program that records its arguments and input. It does not print the value, so the rest of the script does not
/// depend on it.
const RECORDER: &str = "#!/bin/sh\n\
    { printf '%s\\0' \"${0##*/}\" \"$@\"; printf '<'; /bin/cat; printf '>\\0END\\0'; } > \"$RECORDS/$$\"\necho out\n";

/// A `mktemp` that always returns the same file, or the working folder.
const MKTEMP: &str =
    "#!/bin/sh\n: > \"$RECORDS/../tmp.1\"; case $1 in -d) echo \"$PWD\" ;; *) echo \"$RECORDS/../tmp.1\" ;; esac\n";

/// Runs the script once for each value and prints the records of each run.
const EACH: &str = "all=$PATH; for value in \"$@\"; do \
    (export REF0=\"$value\" PATH=\"$PROGRAMS\"; eval \"$SCRIPT\") > /dev/null 2>&1; \
    cat \"$RECORDS\"/*; printf '==\\0'; find . -name PWNED; rm -rf ./* \"$RECORDS\"; mkdir \"$RECORDS\"; done";

/// A folder with the programs, their records, and a working folder for scripts.
struct Stage(Folder);

impl Stage {
    fn new(name: &str) -> Self {
        let folder = Folder::new(name);
        for name in ["programs", "records", "work"] {
            fs::create_dir_all(folder.0.join(name)).expect("the folder of tests is writable");
        }
        let stage = Self(folder);
        stage.program("recorder", RECORDER);
        stage.program("mktemp", MKTEMP);
        let names: Vec<_> = COMMANDS.iter().filter_map(|command| command.split(' ').next()).collect();
        for name in names.into_iter().chain(["tac"]) {
            // Some names occur more than once.
            let _ = symlink("recorder", stage.path("programs").join(name));
        }
        for name in ["cat", "tee"] {
            let _ = symlink(Path::new("/bin").join(name), stage.path("programs").join(name));
        }
        stage
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.0.0.join(name)
    }

    fn program(&self, name: &str, text: &str) {
        let path = self.path("programs").join(name);
        fs::write(&path, text).expect("the folder of tests is writable");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it was made");
    }

    /// Runs a script once for each value. Returns the records of each run, sorted to be independent of timing.
    fn run(&self, text: &str, values: &[&str]) -> Vec<Vec<String>> {
        let mut bash = Command::new("bash");
        bash.args(["--norc", "--noprofile", "-c", &EACH.replace("REF", VARIABLE_PREFIX), "bash"]).args(values);
        bash.current_dir(self.path("work")).stdin(Stdio::null()).stderr(Stdio::null());
        bash.env("SCRIPT", text).env("HOME", "/nowhere");
        bash.env("PROGRAMS", self.path("programs")).env("RECORDS", self.path("records"));
        let output = bash.output().expect("bash is there");
        let output = String::from_utf8_lossy(&output.stdout).into_owned();
        let runs = output.split("==\0").map(|run| {
            let mut records: Vec<_> = run.split("END\0").map(str::to_owned).collect();
            records.sort();
            records
        });
        runs.collect()
    }

    /// Checks that the programs of a command receive the same arguments with all values; `None` if the command is
    /// rejected.
    fn check(&self, command: &str) -> Option<()> {
        let script = prepare(command, Surroundings::default(), is_known).ok()?;
        let values: Vec<_> = std::iter::once(HARMLESS).chain(VALUES).collect();
        let runs = self.run(&script.text, &values);
        assert_eq!(runs.len(), values.len() + 1, "{command}");
        assert!(runs[0].len() > 1 && runs[0].concat().contains(HARMLESS), "{command} records {:?}", runs[0]);
        for (value, records) in values.iter().zip(&runs) {
            let mut expected: Vec<_> = runs[0].iter().map(|record| record.replace(HARMLESS, value)).collect();
            expected.sort();
            assert_eq!(*records, expected, "{command}\nwith {value:?}");
        }
        Some(())
    }
}

fn framed([frame, value]: [&str; 2], command: &str) -> String {
    frame.replace('C', &command.replace("{}", value))
}

#[test]
fn programs_receive_only_the_value() {
    let stage = Stage::new("recorded");
    for command in COMMANDS {
        for value in ["@vars.a", "\"@vars.a\""] {
            let text = command.replace("{}", value);
            assert!(stage.check(&text).is_some(), "refused: {text}");
        }
    }
}

#[test]
fn programs_receive_the_value_in_every_syntax() {
    let stage = Stage::new("framed");
    for frame in FRAMES {
        let accepted = FRAMED.iter().filter(|command| stage.check(&framed(frame, command)).is_some()).count();
        assert!(accepted > 0, "refused: {frame:?}");
    }
}
