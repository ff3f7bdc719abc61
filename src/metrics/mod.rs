//! Numbers that judge a run: NMSE, EVM, BER, ACPR, AM/AM.
