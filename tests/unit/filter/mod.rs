//! The filters: laws between them, reference vectors, fast paths against the plain ones, what they say of themselves.

mod any_stream;
mod fast_path;
mod hammerstein;
mod laws;
mod portrait;
mod textbook;
mod vectors;

use crate::common;
