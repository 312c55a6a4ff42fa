//! The files of a commit in a workspace, written by Git in a container.

use std::{fs::File, io, path::Path, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::unix::pipe::Sender,
    time::timeout,
};

use super::{Pinned, cache::parts_of, error::GitError, limits::OUTPUT_BYTES_MAX};
use crate::{
    CancelSignal,
    shell::program::{Program, Programs, StartedProgram},
};

/// Reads a pack on standard input and writes the files of its commit.
///
/// The new repository has no template, so it has no hooks, and no configuration but its own, so no filters, monitors and
/// helpers that a commit could name. `--strict` refuses objects that Git would not have made: paths with `.git`, links in
/// place of Git's own files, broken trees. Git never writes through a link. Submodules stay empty folders, and pointers of
/// Git LFS stay pointers.
const SCRIPT: &str = r#"set -eu
git init --quiet --template= .
printf '%s\n' "$COMMIT" > .git/shallow
git -c pack.threads=1 index-pack --stdin --strict "--max-input-size=$BYTES_MAX" > /dev/null
test "$(git cat-file -t "$COMMIT")" = commit
git -c advice.detachedHead=false -c core.hooksPath=/dev/null -c core.fsmonitor=false -c core.symlinks=true \
  -c core.protectHFS=true -c core.protectNTFS=true -c submodule.recurse=false -c protocol.allow=never \
  checkout --quiet --force --detach --no-recurse-submodules "$COMMIT"
git config remote.origin.url "$URL"
echo "checked out $(git rev-parse --verify HEAD)"
"#;

/// A checkout to perform.
pub(super) struct Checkout<'a> {
    pub(super) programs: &'a Programs,
    pub(super) workspace: &'a Path,
    pub(super) pinned: &'a Pinned,
    pub(super) organization: Option<&'a str>,
    /// The largest pack.
    pub(super) bytes_max: u64,
    pub(super) within: Duration,
}

impl Checkout<'_> {
    /// Writes the files of a commit from its pack. The workspace is empty before, and may have anything after an error.
    pub(super) async fn run(&self, pack: File, stop: &mut CancelSignal) -> Result<(), GitError> {
        let started = self.programs.start(self.program()).await.map_err(GitError::Unavailable)?;
        let StartedProgram { input, output, errors, running } = started;
        let exchange = async { tokio::join!(send(pack, input), text(output), text(errors)) };
        let exchanged = tokio::select! {
            biased;
            () = stop.requested() => Err(GitError::Stopped),
            said = timeout(self.within, exchange) => said.map_err(|_| GitError::TimedOut(self.within.as_secs())),
        };
        let excess = running.finish(Duration::ZERO).await;
        let (sent, output, errors) = exchanged?;
        if let Some(why) = excess {
            return Err(GitError::Refused(format!("the files of the commit were removed, because {why}")));
        }
        if output.trim_end() == format!("checked out {}", self.pinned.commit) {
            return Ok(());
        }
        let said = GitError::quoting(errors.as_bytes());
        match sent {
            Err(error) if said.is_empty() => Err(GitError::Unavailable(format!("the pack cannot be read: {error}"))),
            _ if said.is_empty() => Err(GitError::Unavailable("Git ended without a message: try again".into())),
            _ => Err(GitError::Refused(format!("Git refuses the commit {}: {said}", self.pinned.commit))),
        }
    }

    fn program(&self) -> Program {
        let own = [
            ("COMMIT", self.pinned.commit.clone()),
            ("URL", self.pinned.location.url().to_owned()),
            ("BYTES_MAX", self.bytes_max.to_string()),
            ("GIT_CONFIG_NOSYSTEM", "1".into()),
            ("GIT_CONFIG_GLOBAL", "/dev/null".into()),
            ("GIT_ATTR_NOSYSTEM", "1".into()),
            ("GIT_TERMINAL_PROMPT", "0".into()),
            ("GIT_OPTIONAL_LOCKS", "0".into()),
            ("GIT_CEILING_DIRECTORIES", "/".into()),
            ("LC_ALL", "C.UTF-8".into()),
        ];
        Program {
            program: "bash".into(),
            arguments: vec!["-c".into(), SCRIPT.into()],
            variables: own.map(|(name, value)| (name.to_owned(), value)).into(),
            workspace: self.workspace.to_owned(),
            folder: Some(self.workspace.to_owned()),
            organization: self.organization.map(Into::into),
        }
    }
}

/// Sends a pack to Git. A broken pipe is no error here: Git has said why it ended.
async fn send(pack: File, mut input: Sender) -> io::Result<()> {
    let mut parts = parts_of(pack);
    while let Some(part) = parts.recv().await {
        if input.write_all(&part?).await.is_err() {
            return Ok(());
        }
    }
    Ok(())
}

/// The first bytes of an output, which is read to its end.
async fn text(mut output: impl AsyncRead + Unpin) -> String {
    let (mut kept, mut buffer) = (Vec::new(), [0; 4096]);
    while let Ok(count @ 1..) = output.read(&mut buffer).await {
        let room = OUTPUT_BYTES_MAX - kept.len();
        kept.extend_from_slice(&buffer[..count.min(room)]);
    }
    String::from_utf8_lossy(&kept).into_owned()
}
