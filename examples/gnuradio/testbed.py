#!/usr/bin/env python3
"""GNU Radio transmits QPSK through kaflow's simulated radio and receives it again; kaflow tracks the two recordings.

    cargo build --release --features soapy --example kaflow_testbed_module
    export SOAPY_SDR_PLUGIN_PATH=$PWD/target/release/examples
    python3 examples/gnuradio/testbed.py
    kaflow track tx.cf32 rx.cf32 --format cf32_le --rate 1e6 --trim --filter nlms,ensemble

With driver=uhd or any other full-duplex radio in --device it is the same flowgraph on the air. testbed.grc is the same for GNU Radio Companion.
"""

import argparse

import numpy
from gnuradio import blocks, digital, filter, gr, soapy
from gnuradio.filter import firdes


class Testbed(gr.top_block):
    """Transmits, receives, and writes both down."""

    def __init__(self, device, arguments, rate, frequency, tx_gain, rx_gain, samples):
        super().__init__("Test bed")
        # QPSK, two samples a symbol, at a level that leaves the converter room for its peaks.
        symbols = numpy.random.default_rng(1).integers(0, 4, samples).tolist()
        bits = blocks.vector_source_b(symbols, True)
        points = digital.chunks_to_symbols_bc([1 + 1j, -1 + 1j, -1 - 1j, 1 - 1j])
        pulse = filter.interp_fir_filter_ccf(2, firdes.root_raised_cosine(2, 2, 1, 0.35, 63))
        level = blocks.multiply_const_cc(0.3)

        # The same arguments at both ends are one device: what its sink transmits, its source receives.
        sink = soapy.sink(device, "fc32", 1, arguments, "", [""], [""])
        source = soapy.source(device, "fc32", 1, arguments, "", [""], [""])
        for end, gain in ((sink, tx_gain), (source, rx_gain)):
            end.set_sample_rate(0, rate)
            end.set_frequency(0, frequency)
            end.set_gain(0, gain)

        self.connect(bits, points, pulse, level, sink)
        # A recording that is finished ends the transmission too: it is longer than what is received.
        self.connect(level, blocks.head(gr.sizeof_gr_complex, 2 * samples), blocks.file_sink(gr.sizeof_gr_complex, "tx.cf32"))
        self.connect(source, blocks.head(gr.sizeof_gr_complex, samples), blocks.file_sink(gr.sizeof_gr_complex, "rx.cf32"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="driver=kaflow-testbed")
    parser.add_argument("--arguments", default="snr_db=30,doppler_hz=20,taps=3", help="of the device: its channel")
    parser.add_argument("--rate", type=float, default=1e6)
    parser.add_argument("--freq", type=float, default=5.4e9)
    parser.add_argument("--tx-gain", type=float, default=50.0)
    parser.add_argument("--rx-gain", type=float, default=35.0)
    parser.add_argument("--samples", type=int, default=1_000_000)
    options = parser.parse_args()
    testbed = Testbed(options.device, options.arguments, options.rate, options.freq, options.tx_gain, options.rx_gain, options.samples)
    testbed.run()
