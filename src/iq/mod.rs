//! Recordings: SigMF, raw IQ and WAV files, pairs of them, and their alignment.
