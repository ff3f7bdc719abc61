//! Alignment.
