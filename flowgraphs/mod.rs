//! Flowgraphs to run and to copy from.
