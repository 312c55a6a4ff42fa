//! Stored forms of the server's resources, one file per resource, with the fields by which they are indexed.

mod departed;
mod given;
mod identity;
mod member;
mod numbered;
mod organization;
mod revoked;
mod token;
mod version;
mod workflow;

pub use departed::Departed;
pub use given::Given;
pub use identity::Identity;
pub use member::Member;
pub use numbered::{Numbered, numbered_id};
pub use organization::{Limits, Organization, RUNTIME_FEATURE};
pub use revoked::Revoked;
pub use token::{SignIn, Token};
pub use version::{Source, Version, version_id};
pub use workflow::Workflow;
