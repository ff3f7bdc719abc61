//! The filters: laws between them, reference vectors, fast paths against the plain ones, what they say of themselves.

#[allow(unreachable_pub, reason = "tests outside the crate share it")]
#[path = "../../common/mod.rs"]
mod common;

mod any_stream;
mod fast_path;
mod hammerstein;
mod laws;
mod portrait;
mod textbook;
mod vectors;
