//! Every parser and the streams under garbage: nothing panics, nothing hangs, what is said is short, and how a stream is cut changes nothing.

#[path = "../../common/fuzz.rs"]
mod common;
mod recordings;
mod streams;

use common::{corpus, decent, mutate, rounds};
