"""Uses driver=kaflow-testbed with SoapySDR's own Python module, as any program would, and looks at how it behaves.

Prints "ok" when everything is as it should be.
"""


import numpy as np
import SoapySDR
from SoapySDR import SOAPY_SDR_CF32, SOAPY_SDR_END_BURST, SOAPY_SDR_HAS_TIME, SOAPY_SDR_RX, SOAPY_SDR_TX

SoapySDR.setLogLevel(SoapySDR.SOAPY_SDR_ERROR)
BOTH = (SOAPY_SDR_TX, SOAPY_SDR_RX)


def device(rate=5e6, **arguments):
    plain = dict(driver="kaflow-testbed", pace="fast", taps="0", snr_db="60", amplifier="none", delay="32")
    opened = SoapySDR.Device({**plain, **arguments})
    for direction in BOTH:
        opened.setSampleRate(direction, 0, rate)
        opened.setGain(direction, 0, 40.0)
        opened.setFrequency(direction, 0, 5.4e9)
    return opened


def write(opened, stream, samples, start=None):
    sent = 0
    while sent < len(samples):
        flags = SOAPY_SDR_END_BURST | (SOAPY_SDR_HAS_TIME if sent == 0 and start is not None else 0)
        result = opened.writeStream(stream, [samples[sent:]], len(samples) - sent, flags, start or 0)
        assert result.ret > 0, result
        sent += result.ret


def read(opened, stream, count):
    heard, reads = np.empty(0, np.complex64), []
    while len(heard) < count:
        buffer = np.empty(4096, np.complex64)
        result = opened.readStream(stream, [buffer], min(4096, count - len(heard)), timeoutUs=1000000)
        assert result.ret > 0, result
        reads.append(result)
        heard = np.concatenate([heard, buffer[: result.ret]])
    return heard, reads


def found_without_being_named():
    """A program that only enumerates finds the plug-in, and other labels and serials filter."""
    found = [dict(f) for f in SoapySDR.Device.enumerate()]
    assert any(f.get("driver") == "kaflow-testbed" for f in found), found
    assert not SoapySDR.Device.enumerate("label=another")


def foreign_arguments_are_ignored():
    """What SoapyRemote and gr-osmosdr pass on."""
    for foreign in (dict(soapy="0"), dict(remote="tcp://127.0.0.1:1", soapy_remote_no_deeper="")):
        assert device(**foreign).getDriverKey() == "kaflow-testbed"
    try:
        device(snr_db="loud")
    except RuntimeError as error:
        assert "snr_db must be a number" in str(error), error
    else:
        raise AssertionError("a wrong value was taken")


def settings_are_listed_with_type_unit_and_range():
    opened = device()
    infos = {info.key: info for info in opened.getSettingInfo()}
    assert len(infos) > 30, infos.keys()
    assert infos["doppler_hz"].units == "Hz" and infos["doppler_hz"].type == SoapySDR.ArgInfo.FLOAT
    assert (infos["taps"].range.minimum(), infos["taps"].range.maximum(), infos["taps"].type) == (0, 64, SoapySDR.ArgInfo.INT)
    assert list(infos["pace"].options) == ["real", "fast"] and infos["half_duplex"].type == SoapySDR.ArgInfo.BOOL
    for key, info in infos.items():
        assert info.description and opened.readSetting(key) == info.value, key
        # A frequency in cycles per sample takes the place of the one in Hz.
        if info.value and key + "_hz" not in infos:
            opened.writeSetting(key, info.value)
    opened.writeSetting("doppler_hz", "123")
    assert opened.readSetting("doppler_hz") == "123"


def ranges_answer():
    opened = device()
    for direction in BOTH:
        assert opened.getStreamArgsInfo(direction, 0)[0].key == "bufflen"
        assert opened.getFrequencyArgsInfo(direction, 0)[0].key == "OFFSET"
        assert 1e5 <= opened.listSampleRates(direction, 0)[0] <= 5e6
        assert len(opened.listBandwidths(direction, 0)) > 2
        opened.setBandwidth(direction, 0, 1e9)
        assert opened.getBandwidth(direction, 0) == 56e6
        opened.setBandwidth(direction, 0, 0)
        assert opened.getBandwidth(direction, 0) == 5e6, "automatic: as wide as the rate"
        opened.setGain(direction, 0, 99)
        assert opened.getGain(direction, 0) == 60
        opened.setFrequencyCorrection(direction, 0, 1.5)
        assert opened.getFrequencyCorrection(direction, 0) == 1.5 and opened.hasFrequencyCorrection(direction, 0)
    for has, put, get in (("hasGainMode", "setGainMode", "getGainMode"), ("hasDCOffsetMode", "setDCOffsetMode", "getDCOffsetMode")):
        assert getattr(opened, has)(SOAPY_SDR_RX, 0) and not getattr(opened, get)(SOAPY_SDR_RX, 0)
        getattr(opened, put)(SOAPY_SDR_RX, 0, True)
        assert getattr(opened, get)(SOAPY_SDR_RX, 0)
    assert not device(half_duplex="true").getFullDuplex(SOAPY_SDR_RX, 0)
    assert not device(time_stamps="none").hasHardwareTime()


def a_tone_has_its_frequency_and_its_delay():
    for arguments, offset in ((dict(), 0.0), (dict(carrier_offset_hz="1234"), 1234.0), (dict(delay="77"), 0.0)):
        opened = device(**arguments)
        rx, tx = opened.setupStream(SOAPY_SDR_RX, SOAPY_SDR_CF32, [0]), opened.setupStream(SOAPY_SDR_TX, SOAPY_SDR_CF32, [0])
        start = opened.getHardwareTime() + 1_000_000
        opened.activateStream(tx)
        opened.activateStream(rx, SOAPY_SDR_HAS_TIME, start)
        n = np.arange(40000)
        frequency = 37e3
        write(opened, tx, (0.5 * np.exp(2j * np.pi * frequency / 5e6 * n)).astype(np.complex64), start)
        heard, reads = read(opened, rx, 40000)
        assert reads[0].flags & SOAPY_SDR_HAS_TIME and reads[0].timeNs == start
        first = int(np.argmax(np.abs(heard) > 0.25))
        assert first == int(arguments.get("delay", 32)), first
        turns = np.unwrap(np.angle(heard[first:]))
        measured = np.polyfit(np.arange(len(turns)), turns, 1)[0] / (2 * np.pi) * 5e6
        assert abs(measured - frequency - offset) < 1, measured
        opened.closeStream(rx)
        opened.closeStream(tx)


def a_receiver_ends_after_the_burst_that_was_asked_for():
    opened = device()
    rx = opened.setupStream(SOAPY_SDR_RX, SOAPY_SDR_CF32, [0], dict(bufflen="1000"))
    assert opened.getStreamMTU(rx) == 1000
    opened.activateStream(rx, SOAPY_SDR_END_BURST, 0, 2500)
    _, reads = read(opened, rx, 2500)
    assert [r.ret for r in reads] == [1000, 1000, 500]
    assert [bool(r.flags & SOAPY_SDR_END_BURST) for r in reads] == [False, False, True]
    assert opened.readStream(rx, [np.empty(100, np.complex64)], 100, timeoutUs=1000).ret == SoapySDR.SOAPY_SDR_TIMEOUT
    opened.closeStream(rx)


def the_rate_changes_while_streaming():
    opened = device(carrier_offset_hz="1000")
    rx, tx = opened.setupStream(SOAPY_SDR_RX, SOAPY_SDR_CF32, [0]), opened.setupStream(SOAPY_SDR_TX, SOAPY_SDR_CF32, [0])
    opened.activateStream(tx)
    opened.activateStream(rx)
    for rate in (5e6, 2e6):
        for direction in (SOAPY_SDR_RX, SOAPY_SDR_TX):
            opened.setSampleRate(direction, 0, rate)
            assert opened.getSampleRate(direction, 0) == rate
        write(opened, tx, np.full(20000, 0.5, np.complex64))
        heard, reads = read(opened, rx, 20000)
        turns = np.unwrap(np.angle(heard[200:]))
        assert abs(np.polyfit(np.arange(len(turns)), turns, 1)[0] / (2 * np.pi) * rate - 1000) < 2
        steps = np.diff([r.timeNs for r in reads]) - np.array([r.ret for r in reads[:-1]]) * 1e9 / rate
        assert np.all(np.abs(steps) <= 1), steps
    opened.closeStream(rx)
    opened.closeStream(tx)


def status_tells_when_a_burst_was_late_and_a_paced_radio_takes_samples_that_nobody_hears():
    opened = device(rate=1e6, pace="real")
    rx, tx = opened.setupStream(SOAPY_SDR_RX, SOAPY_SDR_CF32, [0]), opened.setupStream(SOAPY_SDR_TX, SOAPY_SDR_CF32, [0])
    opened.activateStream(tx)
    opened.activateStream(rx)
    # Active and never read: transmitting goes on all the same.
    for _ in range(40):
        write(opened, tx, np.zeros(16384, np.complex64))
    asked = opened.getHardwareTime() - 10_000_000
    write(opened, tx, np.zeros(100, np.complex64), asked)
    while True:
        status = opened.readStreamStatus(tx, timeoutUs=1000000)
        assert status.ret != SoapySDR.SOAPY_SDR_TIMEOUT
        if status.ret == SoapySDR.SOAPY_SDR_TIME_ERROR:
            break
    assert status.flags & SOAPY_SDR_HAS_TIME and abs(status.timeNs - asked) <= 1000, (status.timeNs, asked)
    # It is told once that it has missed some.
    buffer = np.empty(1000, np.complex64)
    assert opened.readStream(rx, [buffer], 1000, timeoutUs=1000000).ret == SoapySDR.SOAPY_SDR_OVERFLOW
    assert opened.readStream(rx, [buffer], 1000, timeoutUs=1000000).ret > 0
    assert int(opened.readSensor("gap_samples")) > 100_000 and int(opened.readSensor("overflows")) == 1
    opened.closeStream(rx)
    opened.closeStream(tx)


def sensors_tell_the_true_taps():
    opened = device(taps="3", doppler_hz="0", snr_db="inf")
    rx, tx = opened.setupStream(SOAPY_SDR_RX, SOAPY_SDR_CF32, [0]), opened.setupStream(SOAPY_SDR_TX, SOAPY_SDR_CF32, [0])
    opened.activateStream(tx)
    opened.activateStream(rx)
    pulse = np.zeros(1000, np.complex64)
    pulse[500] = 0.5
    write(opened, tx, pulse)
    heard, _ = read(opened, rx, 900)
    taps = [complex(t) for t in opened.readSensor(SOAPY_SDR_RX, 0, "taps_tx0").split()]
    assert "taps_tx0" in opened.listSensors(SOAPY_SDR_RX, 0) and len(taps) == 3
    assert np.allclose(heard[532:535], 0.5 * np.array(taps), atol=1e-5), (heard[532:535], taps)
    opened.closeStream(rx)
    opened.closeStream(tx)


def gain_follows_the_signal_when_told_to():
    opened = device()
    rx, tx = opened.setupStream(SOAPY_SDR_RX, SOAPY_SDR_CF32, [0]), opened.setupStream(SOAPY_SDR_TX, SOAPY_SDR_CF32, [0])
    opened.setGain(SOAPY_SDR_RX, 0, 10)
    opened.setGainMode(SOAPY_SDR_RX, 0, True)
    opened.activateStream(tx)
    opened.activateStream(rx)
    write(opened, tx, np.full(250_000, 0.5, np.complex64))
    heard, _ = read(opened, rx, 240_000)
    assert 0.4 < np.max(np.abs(heard[-4000:])) < 0.95, np.max(np.abs(heard[-4000:]))
    opened.closeStream(rx)
    opened.closeStream(tx)


for check in [value for value in list(globals().values()) if callable(value) and getattr(value, "__module__", "") == "__main__"]:
    if check.__name__ not in ("device", "write", "read"):
        check()
        print(check.__name__.replace("_", " "))
print("ok")
