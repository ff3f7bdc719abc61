"""Sends a tone through driver=kaflow-testbed with SoapySDR's own Python module and looks at what comes back.

Prints "ok" when everything is as it should be.
"""

import numpy as np
import SoapySDR
from SoapySDR import SOAPY_SDR_CF32, SOAPY_SDR_CS16, SOAPY_SDR_END_BURST, SOAPY_SDR_HAS_TIME, SOAPY_SDR_RX, SOAPY_SDR_TX


def loopback(rx_frequency, format, scale):
    device = SoapySDR.Device(dict(driver="kaflow-testbed", pace="fast", taps="0", snr_db="60", amplifier="none", delay="32"))
    for direction in (SOAPY_SDR_TX, SOAPY_SDR_RX):
        device.setSampleRate(direction, 0, 5e6)
        device.setGain(direction, 0, 40.0)
        assert device.getGain(direction, 0) == 40.0
    device.setFrequency(SOAPY_SDR_TX, 0, 5.4e9)
    device.setFrequency(SOAPY_SDR_RX, 0, rx_frequency)
    rx = device.setupStream(SOAPY_SDR_RX, format, [0])
    tx = device.setupStream(SOAPY_SDR_TX, format, [0])
    start = device.getHardwareTime() + 1_000_000
    device.activateStream(tx)
    device.activateStream(rx, SOAPY_SDR_HAS_TIME, start)

    n = np.arange(20000)
    tone = 0.5 * np.exp(2j * np.pi * 0.01 * n)
    if format == SOAPY_SDR_CS16:
        samples = np.empty((len(tone), 2), np.int16)
        samples[:, 0], samples[:, 1] = np.round(tone.real * scale), np.round(tone.imag * scale)
    else:
        samples = tone.astype(np.complex64)
    sent = 0
    while sent < len(tone):
        flags = SOAPY_SDR_HAS_TIME if sent == 0 else 0
        flags |= SOAPY_SDR_END_BURST
        result = device.writeStream(tx, [samples[sent:]], len(tone) - sent, flags, start)
        assert result.ret > 0, result
        sent += result.ret

    heard = np.empty(0, np.complex128)
    while len(heard) < len(tone):
        buffer = np.empty((4096, 2), np.int16) if format == SOAPY_SDR_CS16 else np.empty(4096, np.complex64)
        result = device.readStream(rx, [buffer], 4096, timeoutUs=1000000)
        assert result.ret > 0, result
        assert result.flags & SOAPY_SDR_HAS_TIME
        assert abs(result.timeNs - start - len(heard) * 200) <= 1, (result.timeNs, start, len(heard))
        buffer = buffer[: result.ret]
        if format == SOAPY_SDR_CS16:
            buffer = (buffer[:, 0] + 1j * buffer[:, 1]) / scale
        heard = np.concatenate([heard, buffer])
    device.deactivateStream(rx)
    device.deactivateStream(tx)
    device.closeStream(rx)
    device.closeStream(tx)
    late = heard[32 : len(tone)]
    return np.sqrt(np.mean(np.abs(late - tone[: len(late)]) ** 2)), np.sqrt(np.mean(np.abs(late) ** 2))


for format, scale in ((SOAPY_SDR_CF32, 1.0), (SOAPY_SDR_CS16, 32768.0)):
    error, level = loopback(5.4e9, format, scale)
    assert error < 2e-3, error
    assert 0.49 < level < 0.51, level
error, level = loopback(5.3e9, SOAPY_SDR_CF32, 1.0)
assert level < 2e-3, f"a receiver tuned elsewhere hears {level}"
print("ok")
