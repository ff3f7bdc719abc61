//! CP-OFDM: modulator, demodulator, preamble and pilots, as pure functions on slices.
