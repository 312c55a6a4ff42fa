//! Who asks: the routes of `mainspring up`, what they take and answer, and who may call them.
//!
//! Every route is described where it is answered, with the permission that it asks for. The description is the OpenAPI
//! file, and it is also what the door reads: a route that says nothing is closed.

pub mod app;
mod approvers;
pub mod body;
mod budget;
mod bus;
mod clock;
mod compiling;
mod connections;
pub mod deciders;
mod documentation;
mod door;
pub mod export;
mod extract;
mod feed;
pub mod first;
mod html;
pub mod identity;
mod known;
mod limits;
pub mod marks;
pub mod nouns;
pub mod oidc;
mod page;
pub mod problem;
pub mod rate;
mod receiving;
mod refusals;
mod responses;
mod routes;
mod saving;
mod sending;
mod serving;
pub mod shelf;
pub mod signing_in;
mod slots;
mod starting;
pub mod tokens;
mod versions;
mod view;
mod waiting;
pub mod workspaces;

pub use app::{App, Settings};
pub use limits::InForce;
pub use routes::{description, router};
pub use serving::serve;
