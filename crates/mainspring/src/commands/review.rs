//! `mainspring review`: compares two versions of a definition, and rates the risk of the change.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum, ValueHint};
use mainspring_kernel::{definition::Compiled, json::compact};
use mainspring_review::{Risk, Version, review as compare};

use crate::{
    context::Context,
    definitions::compiled,
    error::{CliError, Exit},
    output::{review::print, terminal::print_out},
    read_limited,
};

/// Compare two versions of a definition.
#[derive(Debug, Args)]
pub(crate) struct Review {
    /// The old version, YAML or JSON
    #[arg(value_hint = ValueHint::FilePath)]
    old: PathBuf,
    /// The new version
    #[arg(value_hint = ValueHint::FilePath)]
    new: PathBuf,
    /// Exit with 1 if the risk is at least this high
    #[arg(long, value_enum, value_name = "RISK")]
    fail_on: Option<Bound>,
}

/// The lowest risk that fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Bound {
    /// Any finding
    Low,
    /// Findings that need a reader
    Medium,
    /// New capabilities and lost safeguards
    High,
}

impl Bound {
    fn risk(self) -> Risk {
        match self {
            Self::Low => Risk::Low,
            Self::Medium => Risk::Medium,
            Self::High => Risk::High,
        }
    }
}

pub(crate) fn review(review: &Review, context: &Context) -> Result<Exit, CliError> {
    let (Some((old, old_text)), Some((new, new_text))) = (read(&review.old, context)?, read(&review.new, context)?)
    else {
        return Ok(Exit::BadInput);
    };
    let report = compare(
        Version { compiled: &old, source: Some(&old_text) },
        Version { compiled: &new, source: Some(&new_text) },
    );
    if context.global.json {
        print_out!("{}", compact(&report.to_value()));
    } else {
        print(&report.to_value());
    }
    // Without findings there is nothing to fail on, although the risk is low.
    let fails = review.fail_on.is_some_and(|bound| report.findings_total > 0 && report.risk >= bound.risk());
    Ok(if fails { Exit::NotSo } else { Exit::Fine })
}

fn read(file: &Path, context: &Context) -> Result<Option<(Compiled, String)>, CliError> {
    let Some(compiled) = compiled(file, context)? else { return Ok(None) };
    let text = read_limited::file(file).map_err(|why| CliError::bad_input("unreadable", why))?;
    Ok(Some((compiled, String::from_utf8_lossy(&text).into_owned())))
}
