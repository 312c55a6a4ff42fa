//! The HTTP API of `mainspring up`: routes, authentication, authorization, and the services behind them. It contains no
//! SQL, and it decides nothing about executions; both belong to the store and the engine.
//!
//! Each route is described next to its handler, including the permission that it requires. This description is served
//! as the OpenAPI document, and the authentication middleware reads it: a route without a requirement is closed.

pub mod app;
pub mod auth;
pub mod http;
pub mod resources;
mod routes;
pub mod services;

pub use app::{App, Configured, Outgoing, Settings};
pub use http::serve::serve;
pub use routes::{description, router};
pub use services::{concurrency_limits::StoredLimits, period_budgets::StoredBudgets};
