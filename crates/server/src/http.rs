//! HTTP without the API's resources: connections, request bodies, limits, errors, pagination, and HTML pages.

pub(crate) mod api_docs;
pub(crate) mod api_text;
pub mod body;
pub(crate) mod client_address;
pub(crate) mod connections;
pub(crate) mod description_texts;
pub(crate) mod extract;
pub(crate) mod html;
pub(crate) mod open_requests;
pub(crate) mod pagination;
pub mod problem;
pub mod rate_limit;
pub(crate) mod readiness;
pub(crate) mod request_bodies;
pub(crate) mod request_slots;
pub(crate) mod response_memory;
pub(crate) mod serve;
pub(crate) mod timestamps;
