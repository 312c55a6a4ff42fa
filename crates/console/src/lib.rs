//! The web console: its files, embedded in the binary, and the routes that serve them.
//!
//! `web/dist` has each file of the console compressed with Brotli and with gzip, and no uncompressed one, so a build of
//! this crate needs no Node. `npm run build` in `web/` writes the folder.
//!
//! | file | content |
//! |---|---|
//! | `files` | the embedded files, and which form of a file a client accepts |
//! | `routes` | the routes, with caching and the content security policy |

mod files;
mod routes;

pub use routes::{PAGES, router};
