//! Stored forms of the server's resources, one file per resource, with the fields by which they are indexed, and the
//! repository that stores them.

mod identity;
mod member;
mod organization;
mod proposal;
mod removed_member;
pub mod repository;
mod reserved_name;
mod revoked_token;
mod token;
mod version;
mod version_number;
mod version_return;
mod workflow;

pub use identity::Identity;
pub use member::Member;
pub use organization::{FEATURES, FOUR_EYES_FEATURE, Limits, Organization, RUNTIME_FEATURE};
pub use proposal::{Applied, Author, Proposal, ProposalStatus, ProposedChange, Review, proposal_key};
pub use removed_member::RemovedMember;
pub use reserved_name::ReservedName;
pub use revoked_token::RevokedToken;
pub use token::{SignIn, Token};
pub use version::{Source, Version, version_id};
pub use version_number::{VersionNumber, version_number_id};
pub use version_return::VersionReturn;
pub use workflow::Workflow;
