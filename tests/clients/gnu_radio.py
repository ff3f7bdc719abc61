"""Sends a tone through driver=kaflow-testbed with gr-soapy's sink and source, and changes settings while it runs. Prints "ok" when everything is as it should be."""

import time

import numpy as np
from gnuradio import analog, blocks, gr, soapy

RATE = 1e6
TONE = 37e3
CHANNEL = "pace=fast,taps=0,snr_db=inf,amplifier=none,delay=32"


def settings_have_types():
    source = soapy.source("driver=kaflow-testbed", "fc32", 1, "", "", [""], [""])
    infos = source.get_setting_info()
    assert len(infos) > 30
    for info in infos:
        source.read_setting(info.key)
    for key, value in (("half_duplex", True), ("doppler_hz", 7.5), ("taps", 3), ("adc_bits", 12), ("amplifier", "saleh"), ("rician_k_db", 6.0)):
        source.write_setting(key, value)
        assert source.read_setting(key) == value, (key, source.read_setting(key))
    # Two words for one frequency.
    source.set_sample_rate(0, 2e6)
    source.write_setting("carrier_offset", 0.001)
    assert source.read_setting("carrier_offset_hz") == 2000
    source.write_setting("linewidth_hz", 20.0)
    assert abs(source.read_setting("linewidth") - 1e-5) < 1e-15
    for key in source.list_sensors():
        source.read_sensor(key)
    assert source.read_sensor("gap_samples") == 0 and "taps_tx0" in source.list_sensors(0)


def loopback(**settings):
    """What comes back of a tone, from its first sample on."""
    top = gr.top_block()
    sink = soapy.sink("driver=kaflow-testbed", "fc32", 1, CHANNEL, "", [""], ["DRIVER=20,PA=20"])
    source = soapy.source("driver=kaflow-testbed", "fc32", 1, CHANNEL, "bufflen=4096", [""], ["LNA=20,PGA=20"])
    for end in (sink, source):
        end.set_sample_rate(0, RATE)
        end.set_frequency(0, 433e6)
        end.set_bandwidth(0, 0)
        assert end.get_gain(0) == 40 and end.get_sample_rate(0) == RATE
    for key, value in settings.items():
        # One device: a setting of one end holds at the other.
        sink.write_setting(key, value)
        assert source.read_setting(key) == value
    heard = blocks.vector_sink_c()
    top.connect(analog.sig_source_c(RATE, analog.GR_COS_WAVE, TONE, 0.5), sink)
    top.connect(source, blocks.head(gr.sizeof_gr_complex, 400_000), heard)
    top.start()
    while len(heard.data()) < 400_000:
        time.sleep(0.05)
    top.stop()
    top.wait()
    samples = np.array(heard.data())
    return samples[np.argmax(np.abs(samples) > 0.25) :]


def frequency(samples):
    turns = np.unwrap(np.angle(samples[:300_000]))
    return np.polyfit(np.arange(len(turns)), turns, 1)[0] / (2 * np.pi) * RATE


settings_have_types()
plain = loopback()
assert abs(frequency(plain) - TONE) < 0.01 and np.allclose(np.abs(plain[100:300_000]), 0.5, atol=1e-3)
assert abs(frequency(loopback(carrier_offset_hz=1500.0)) - TONE - 1500) < 0.01
print("ok")
