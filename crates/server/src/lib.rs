//! The HTTP API of `mainspring up`: routes, authentication, authorization, and the services behind them. It contains no
//! SQL, and it decides nothing about executions; both belong to the store and the engine.
//!
//! Each route is described next to its handler, including the permission that it requires. This description is served
//! as the OpenAPI document, and the authentication middleware reads it: a route without a requirement is closed.

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
