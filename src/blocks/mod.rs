//! FutureSDR adapters: slices in, one call, slices out.
