//! Reasons why a repository cannot be used, each with its code and a remedy.

use mainspring_kernel::failure::{Class, Failure};

use super::limits::QUOTED_BYTES_MAX;

/// A reason why a repository cannot be used. No message contains a credential.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum GitError {
    /// This server uses no repositories, for the given reason.
    Off(String),
    /// The repository, the ref or the commit does not exist, or the credential does not show it.
    NotFound(String),
    /// The host, the repository or its content is not accepted.
    Refused(String),
    /// The remote or this machine cannot serve it at present.
    Unavailable(String),
    /// It took longer than the given number of seconds.
    TimedOut(u64),
    /// As many refs as permitted are being resolved already.
    Busy,
    /// The attempt is canceled.
    Stopped,
    /// A failure with a code of its own: an HTTP request, a secret.
    Other(Box<Failure>),
}

impl GitError {
    /// The error of a remote whose answer is not what the protocol defines.
    pub(super) fn protocol(why: &str) -> Self {
        Self::Refused(format!("the remote does not speak version 2 of Git's protocol over HTTP: {why}"))
    }

    /// A message of a remote or of Git in one line, for an error.
    pub(super) fn quoting(text: &[u8]) -> String {
        let text = String::from_utf8_lossy(text);
        let shown: String = text.trim().chars().map(|shown| if shown.is_control() { ' ' } else { shown }).collect();
        shown[..shown.floor_char_boundary(QUOTED_BYTES_MAX)].to_owned()
    }
}

impl From<Failure> for GitError {
    fn from(failure: Failure) -> Self {
        Self::Other(Box::new(failure))
    }
}

impl From<GitError> for Failure {
    fn from(error: GitError) -> Self {
        let (class, code, message) = match error {
            GitError::Off(why) => {
                (Class::Policy, "repositories_off", format!("this server uses no repositories: {why}"))
            }
            GitError::NotFound(why) => (Class::Invalid, "repository_not_found", why),
            GitError::Refused(why) => (Class::Policy, "repository_refused", why),
            GitError::Unavailable(why) => (Class::Unavailable, "repository_unavailable", why),
            GitError::TimedOut(seconds) => {
                let message = format!("the repository took longer than {seconds} s: try again, or raise `timeoutMs`");
                (Class::Timeout, "repository_timeout", message)
            }
            GitError::Busy => {
                let message = "the organization resolves too many refs at the same time: try again";
                (Class::RateLimited, "repository_busy", message.into())
            }
            GitError::Stopped => (Class::Unavailable, "repository_unavailable", "the attempt was canceled".into()),
            GitError::Other(failure) => return *failure,
        };
        Failure::new(class, code, message)
    }
}
