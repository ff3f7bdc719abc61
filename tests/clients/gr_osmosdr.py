"""Opens driver=kaflow-testbed with gr-osmosdr, as Gqrx does, and receives. Prints "ok" when everything is as it should be."""

import numpy as np
import osmosdr
from gnuradio import blocks, gr

assert any("kaflow-testbed" in device.to_string() for device in osmosdr.device.find())
top = gr.top_block()
source = osmosdr.source(args="soapy=0,driver=kaflow-testbed,snr_db=20")
source.set_sample_rate(1e6)
source.set_center_freq(433e6, 0)
source.set_gain_mode(False, 0)
source.set_gain(40, 0)
source.set_bandwidth(0, 0)
source.set_freq_corr(1.5, 0)
assert source.get_num_channels() == 1 and source.get_sample_rate() == 1e6 and source.get_center_freq(0) == 433e6
assert list(source.get_gain_names(0)) == ["LNA", "PGA"] and source.get_gain(0) == 40 and source.get_freq_corr(0) == 1.5
assert source.get_freq_range(0).start() == 70e6 and source.get_freq_range(0).stop() == 6e9
sink = blocks.vector_sink_c()
top.connect(source, blocks.head(gr.sizeof_gr_complex, 200_000), sink)
top.run()
# Nothing is transmitted: what is left is noise, 20 dB below a saturated amplifier.
power = np.mean(np.abs(np.array(sink.data())) ** 2)
assert abs(10 * np.log10(power) + 20) < 0.2, power
print("ok")
