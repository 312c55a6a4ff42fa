//! The programs that the tests need, and how to install a missing one.

use std::path::PathBuf;

/// A program from outside of this repository.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Need {
    pub(crate) what: &'static str,
    pub(crate) why: &'static str,
    /// Alternative programs; one of them is sufficient.
    programs: &'static [&'static str],
    /// The command that installs it on Debian and Ubuntu, or on any system if apt has no package for it.
    pub(crate) remedy: &'static str,
}

const RUSTUP: &str = "install Rust from https://rustup.rs; `rust-version` in Cargo.toml has the version";

/// Everything that `cargo xtask test` needs.
const NEEDS: [Need; 8] = [
    Need { what: "bash", why: "shell steps run in it", programs: &["bash"], remedy: "apt-get install bash" },
    Need {
        what: "bubblewrap",
        why: "scripts of servers run in it",
        programs: &["bwrap"],
        remedy: "apt-get install bubblewrap",
    },
    Need { what: "git", why: "it applies patches", programs: &["git"], remedy: "apt-get install git" },
    Need { what: "cargo", why: "it builds", programs: &["cargo"], remedy: RUSTUP },
    Need { what: "a C compiler", why: "it builds SQLite", programs: &["cc"], remedy: "apt-get install gcc libc6-dev" },
    Need {
        what: "rustfmt",
        why: "the first step uses it",
        programs: &["cargo-fmt"],
        remedy: "rustup component add rustfmt",
    },
    Need {
        what: "a PostgreSQL server",
        why: "tests start one of their own",
        programs: &["initdb"],
        remedy: "apt-get install postgresql",
    },
    Need { what: "clippy", why: "a step uses it", programs: &["cargo-clippy"], remedy: "rustup component add clippy" },
];

/// Returns one sentence for each missing program.
pub(crate) fn missing() -> Vec<String> {
    let mut folders: Vec<PathBuf> =
        std::env::var_os("PATH").map(|path| std::env::split_paths(&path).collect()).unwrap_or_default();
    folders.extend(postgres_folders());
    missing_where(&|program| folders.iter().any(|folder| folder.join(program).is_file()))
}

/// Debian's folders of PostgreSQL programs, one per version.
fn postgres_folders() -> Vec<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    versions.map(|version| version.path().join("bin")).collect()
}

fn missing_where(is_there: &dyn Fn(&str) -> bool) -> Vec<String> {
    let lacking = NEEDS.iter().filter(|need| !need.programs.iter().any(|program| is_there(program)));
    lacking.map(|need| format!("{} is missing ({}): {}", need.what, need.why, need.remedy)).collect()
}

#[cfg(test)]
mod tests {
    use super::{NEEDS, missing_where};

    #[test]
    fn each_missing_program_is_named_with_its_remedy() {
        assert_eq!(missing_where(&|_| true), Vec::<String>::new());
        for need in &NEEDS {
            let said = missing_where(&|program| !need.programs.contains(&program));
            assert_eq!(said.len(), 1, "{said:?}");
            assert!(said[0].contains(need.what) && said[0].contains(need.remedy), "{said:?}");
        }
    }
}
