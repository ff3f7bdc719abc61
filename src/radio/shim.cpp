// SoapySDR registers drivers through C++ classes only: this one hands every call that has state on to Rust (ffi.rs) and answers what never changes itself.

#include <SoapySDR/Constants.h>
#include <SoapySDR/Device.hpp>
#include <SoapySDR/Errors.h>
#include <SoapySDR/Formats.h>
#include <SoapySDR/Logger.hpp>
#include <SoapySDR/Modules.hpp>
#include <SoapySDR/Registry.hpp>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <stdexcept>

namespace {

struct Text {
    const char *start;
    size_t length;
    Text(const std::string &text) : start(text.data()), length(text.size()) {}
};

struct Answer {
    std::string *out;
    void (*put)(std::string *, const char *, size_t);
    explicit Answer(std::string &text) : out(&text), put([](std::string *out, const char *text, size_t length) { out->append(text, length); }) {}
};

}  // namespace

extern "C" {
void *kaflow_radio_make(Text arguments, Answer answer);
void kaflow_radio_free(void *radio);
int kaflow_radio_ask(void *radio, Text verb, int direction, size_t channel, Text name, Text value, Answer answer);
long long kaflow_radio_time(void *radio);
void kaflow_radio_set_time(void *radio, long long time_ns);
int kaflow_radio_activate(void *radio, int direction, int flags, long long time_ns, size_t length);
int kaflow_radio_deactivate(void *radio, int direction);
int kaflow_radio_read(void *radio, void *const *buffers, size_t count, int *flags, long long *time_ns, long timeout_us);
int kaflow_radio_write(void *radio, const void *const *buffers, size_t count, int flags, long long time_ns, long timeout_us);
int kaflow_radio_status(void *radio, int direction, int *flags, long long *time_ns, long timeout_us);
}

namespace {

const char *const DRIVER = "kaflow-testbed";
const char *const LABEL = "kaflow simulated test bed";

std::vector<std::string> split(const std::string &text, char mark) {
    std::vector<std::string> parts;
    std::istringstream stream(text);
    for (std::string part; std::getline(stream, part, mark);) parts.push_back(part);
    return parts;
}

std::string exact(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
}

SoapySDR::ArgInfo argument(const char *key, const char *description, const char *unit, double low, double high) {
    SoapySDR::ArgInfo info;
    info.key = info.name = key;
    info.description = description;
    info.units = unit;
    info.type = SoapySDR::ArgInfo::FLOAT;
    info.range = SoapySDR::Range(low, high);
    return info;
}

class Testbed : public SoapySDR::Device {
  public:
    explicit Testbed(const SoapySDR::Kwargs &args) {
        std::string answer;
        radio = kaflow_radio_make(SoapySDR::KwargsToString(args), Answer(answer));
        if (radio == nullptr) throw std::runtime_error(answer);
        for (const auto &line : split(answer, '\n')) SoapySDR::log(SOAPY_SDR_WARNING, std::string(DRIVER) + ": " + line);
    }
    ~Testbed() override { kaflow_radio_free(radio); }

    std::string getDriverKey() const override { return DRIVER; }
    std::string getHardwareKey() const override { return "simulated test bed"; }
    SoapySDR::Kwargs getHardwareInfo() const override {
        const bool one = std::strtod(readSetting("sample_offset_ppm").c_str(), nullptr) == 0;
        return {{"origin", "kaflow"}, {"channel", "between its own TX and RX"}, {"clocks", one ? "1" : "2"}};
    }
    size_t getNumChannels(const int) const override { return std::strtoul(ask("channels").c_str(), nullptr, 10); }
    bool getFullDuplex(const int, const size_t) const override { return ask("full duplex") == "1"; }

    std::vector<std::string> getStreamFormats(const int, const size_t) const override { return split(ask("formats"), '\n'); }
    std::string getNativeStreamFormat(const int, const size_t, double &fullScale) const override {
        // That of most converters, so that SoapyRemote sends half of what floats would need.
        fullScale = 32768.0;
        return SOAPY_SDR_CS16;
    }
    SoapySDR::ArgInfoList getStreamArgsInfo(const int, const size_t) const override {
        auto info = argument("bufflen", "samples that a read brings at most", "samples", 1, 8192);
        info.type = SoapySDR::ArgInfo::INT;
        info.value = "8192";
        return {info};
    }

    // One stream for each direction: the handle is the direction, plus one because null means failure.
    SoapySDR::Stream *setupStream(const int direction, const std::string &format, const std::vector<size_t> &channels,
                                  const SoapySDR::Kwargs &args) override {
        std::string value;
        for (const size_t channel : channels) value += std::to_string(channel) + " ";
        const auto length = args.find("bufflen");
        if (length != args.end()) value += "/" + length->second;
        ask("setup", direction, 0, format, value);
        return reinterpret_cast<SoapySDR::Stream *>(static_cast<size_t>(direction + 1));
    }
    static int direction(SoapySDR::Stream *stream) { return static_cast<int>(reinterpret_cast<size_t>(stream)) - 1; }
    static void switched(SoapySDR::Stream *stream, const char *to) {
        SoapySDR::logf(SOAPY_SDR_DEBUG, "%s: %s %s", DRIVER, direction(stream) == SOAPY_SDR_TX ? "transmitter" : "receiver", to);
    }
    void closeStream(SoapySDR::Stream *stream) override { ask("close", direction(stream)); }
    size_t getStreamMTU(SoapySDR::Stream *stream) const override { return std::strtoul(ask("mtu", direction(stream)).c_str(), nullptr, 10); }
    int activateStream(SoapySDR::Stream *stream, const int flags, const long long timeNs, const size_t numElems) override {
        switched(stream, "on");
        return kaflow_radio_activate(radio, direction(stream), flags, timeNs, numElems);
    }
    int deactivateStream(SoapySDR::Stream *stream, const int, const long long) override {
        switched(stream, "off");
        return kaflow_radio_deactivate(radio, direction(stream));
    }
    int readStream(SoapySDR::Stream *stream, void *const *buffs, const size_t numElems, int &flags, long long &timeNs,
                   const long timeoutUs) override {
        if (direction(stream) != SOAPY_SDR_RX) return SOAPY_SDR_NOT_SUPPORTED;
        return kaflow_radio_read(radio, buffs, numElems, &flags, &timeNs, timeoutUs);
    }
    int writeStream(SoapySDR::Stream *stream, const void *const *buffs, const size_t numElems, int &flags, const long long timeNs,
                    const long timeoutUs) override {
        if (direction(stream) != SOAPY_SDR_TX) return SOAPY_SDR_NOT_SUPPORTED;
        return kaflow_radio_write(radio, buffs, numElems, flags, timeNs, timeoutUs);
    }
    int readStreamStatus(SoapySDR::Stream *stream, size_t &chanMask, int &flags, long long &timeNs, const long timeoutUs) override {
        chanMask = 1;
        return kaflow_radio_status(radio, direction(stream), &flags, &timeNs, timeoutUs);
    }

    std::vector<std::string> listAntennas(const int direction, const size_t) const override {
        return {direction == SOAPY_SDR_TX ? "TX" : "RX"};
    }
    void setAntenna(const int direction, const size_t channel, const std::string &name) override {
        if (name != getAntenna(direction, channel)) throw std::runtime_error("antenna must be " + getAntenna(direction, channel) + ", got " + name);
    }
    std::string getAntenna(const int direction, const size_t channel) const override { return listAntennas(direction, channel).front(); }

    bool hasDCOffsetMode(const int direction, const size_t) const override { return direction == SOAPY_SDR_RX; }
    void setDCOffsetMode(const int direction, const size_t channel, const bool automatic) override { set(direction, channel, "dc_mode", automatic); }
    bool getDCOffsetMode(const int direction, const size_t channel) const override { return get(direction, channel, "dc_mode") != 0; }
    bool hasFrequencyCorrection(const int, const size_t) const override { return true; }
    void setFrequencyCorrection(const int direction, const size_t channel, const double ppm) override { set(direction, channel, "correction", ppm); }
    double getFrequencyCorrection(const int direction, const size_t channel) const override { return get(direction, channel, "correction"); }

    std::vector<std::string> listGains(const int direction, const size_t) const override { return split(ask("gains", direction), '\n'); }
    bool hasGainMode(const int direction, const size_t) const override { return direction == SOAPY_SDR_RX; }
    void setGainMode(const int direction, const size_t channel, const bool automatic) override { set(direction, channel, "gain_mode", automatic); }
    bool getGainMode(const int direction, const size_t channel) const override { return get(direction, channel, "gain_mode") != 0; }
    using SoapySDR::Device::getGain;
    using SoapySDR::Device::getGainRange;
    using SoapySDR::Device::setGain;
    void setGain(const int direction, const size_t channel, const std::string &name, const double value) override {
        if (direction == SOAPY_SDR_TX) SoapySDR::logf(SOAPY_SDR_DEBUG, "%s: transmit gain %s %g dB", DRIVER, name.c_str(), value);
        set(direction, channel, "gain:" + name, value);
    }
    double getGain(const int direction, const size_t channel, const std::string &name) const override {
        return get(direction, channel, "gain:" + name);
    }
    SoapySDR::Range getGainRange(const int direction, const size_t, const std::string &name) const override {
        return range(direction, "gain:" + name).front();
    }

    void setFrequency(const int direction, const size_t channel, const double frequency, const SoapySDR::Kwargs &) override {
        set(direction, channel, "frequency", frequency);
    }
    void setFrequency(const int direction, const size_t channel, const std::string &, const double frequency, const SoapySDR::Kwargs &) override {
        set(direction, channel, "frequency", frequency);
    }
    double getFrequency(const int direction, const size_t channel) const override { return get(direction, channel, "frequency"); }
    double getFrequency(const int direction, const size_t channel, const std::string &) const override { return getFrequency(direction, channel); }
    std::vector<std::string> listFrequencies(const int, const size_t) const override { return {"RF"}; }
    SoapySDR::RangeList getFrequencyRange(const int direction, const size_t) const override { return range(direction, "frequency"); }
    SoapySDR::RangeList getFrequencyRange(const int direction, const size_t, const std::string &) const override {
        return range(direction, "frequency");
    }
    SoapySDR::ArgInfoList getFrequencyArgsInfo(const int, const size_t) const override {
        return {argument("OFFSET", "distance of the oscillator from the centre; the simulated one leaks nothing, so it changes nothing", "Hz", -30e6, 30e6)};
    }

    void setSampleRate(const int direction, const size_t channel, const double rate) override { set(direction, channel, "rate", rate); }
    double getSampleRate(const int direction, const size_t channel) const override { return get(direction, channel, "rate"); }
    SoapySDR::RangeList getSampleRateRange(const int direction, const size_t) const override { return range(direction, "rate"); }
    // The first is what programs take that do not ask.
    std::vector<double> listSampleRates(const int, const size_t) const override { return {1e6, 2e6, 4e6, 5e6, 10e6, 20e6, 40e6, 61.44e6, 500e3, 250e3}; }
    void setBandwidth(const int direction, const size_t channel, const double bw) override { set(direction, channel, "bandwidth", bw); }
    double getBandwidth(const int direction, const size_t channel) const override { return get(direction, channel, "bandwidth"); }
    std::vector<double> listBandwidths(const int, const size_t) const override { return {200e3, 1e6, 2e6, 5e6, 10e6, 20e6, 40e6, 56e6}; }
    SoapySDR::RangeList getBandwidthRange(const int direction, const size_t) const override { return range(direction, "bandwidth"); }

    std::vector<std::string> listClockSources() const override { return split(ask("sources"), '\n'); }
    void setClockSource(const std::string &source) override { ask("set source", SOAPY_SDR_RX, 0, "clock", source); }
    std::string getClockSource() const override { return ask("source", SOAPY_SDR_RX, 0, "clock"); }
    std::vector<std::string> listTimeSources() const override { return split(ask("sources"), '\n'); }
    void setTimeSource(const std::string &source) override { ask("set source", SOAPY_SDR_RX, 0, "time", source); }
    std::string getTimeSource() const override { return ask("source", SOAPY_SDR_RX, 0, "time"); }
    // As SoapyUHD has it: "PPS" is the time at the last pulse, and what is set then holds from the next one on.
    bool hasHardwareTime(const std::string &what) const override { return (what.empty() || what == "PPS") && ask("has time") == "1"; }
    long long getHardwareTime(const std::string &what) const override {
        return what == "PPS" ? std::strtoll(ask("pulse").c_str(), nullptr, 10) : kaflow_radio_time(radio);
    }
    void setHardwareTime(const long long timeNs, const std::string &what) override {
        if (what == "PPS") ask("set at pulse", SOAPY_SDR_RX, 0, "", std::to_string(timeNs));
        else kaflow_radio_set_time(radio, timeNs);
    }

    std::vector<std::string> listSensors() const override { return split(ask("sensors"), '\n'); }
    SoapySDR::ArgInfo getSensorInfo(const std::string &key) const override {
        return sensor(key, key == "ref_locked" ? SoapySDR::ArgInfo::BOOL : SoapySDR::ArgInfo::INT, readSensor(key));
    }
    std::string readSensor(const std::string &key) const override { return ask("sensor", SOAPY_SDR_RX, 0, key); }
    std::vector<std::string> listSensors(const int direction, const size_t) const override { return split(ask("channel sensors", direction), '\n'); }
    SoapySDR::ArgInfo getSensorInfo(const int direction, const size_t channel, const std::string &key) const override {
        return sensor(key, SoapySDR::ArgInfo::STRING, readSensor(direction, channel, key));
    }
    std::string readSensor(const int direction, const size_t channel, const std::string &key) const override {
        return ask("sensor", direction, channel, key);
    }

    SoapySDR::ArgInfoList getSettingInfo() const override {
        SoapySDR::ArgInfoList list;
        for (const auto &line : split(ask("settings"), '\n')) {
            const auto field = split(line, '\t');
            SoapySDR::ArgInfo info;
            info.key = info.name = field[0];
            info.value = field[1];
            info.units = field[3];
            info.options = split(field[6], '|');
            // SoapySDR's C interface counts the options by their names.
            info.optionNames = info.options;
            info.description = field[7];
            if (field[2] == "bool") info.type = SoapySDR::ArgInfo::BOOL;
            else if (field[2] == "string") info.type = SoapySDR::ArgInfo::STRING;
            else info.type = field[2] == "int" ? SoapySDR::ArgInfo::INT : SoapySDR::ArgInfo::FLOAT;
            if (info.type == SoapySDR::ArgInfo::INT || info.type == SoapySDR::ArgInfo::FLOAT)
                info.range = SoapySDR::Range(std::strtod(field[4].c_str(), nullptr), std::strtod(field[5].c_str(), nullptr));
            list.push_back(info);
        }
        return list;
    }
    void writeSetting(const std::string &key, const std::string &value) override { ask("write setting", SOAPY_SDR_RX, 0, key, value); }
    std::string readSetting(const std::string &key) const override { return ask("read setting", SOAPY_SDR_RX, 0, key); }

  private:
    std::string ask(const char *verb, int direction = 0, size_t channel = 0, const std::string &name = "", const std::string &value = "") const {
        std::string answer;
        const std::string words(verb);
        if (kaflow_radio_ask(radio, words, direction, channel, name, value, Answer(answer)) != 0) throw std::runtime_error(answer);
        return answer;
    }
    void set(int direction, size_t channel, const std::string &name, double value) { ask("set", direction, channel, name, exact(value)); }
    double get(int direction, size_t channel, const std::string &name) const {
        return std::strtod(ask("get", direction, channel, name).c_str(), nullptr);
    }
    SoapySDR::RangeList range(int direction, const std::string &name) const {
        const auto ends = split(ask("range", direction, 0, name), '\n');
        return {SoapySDR::Range(std::strtod(ends[0].c_str(), nullptr), std::strtod(ends[1].c_str(), nullptr), std::strtod(ends[2].c_str(), nullptr))};
    }
    // With what it reads: GNU Radio takes it from here.
    static SoapySDR::ArgInfo sensor(const std::string &key, SoapySDR::ArgInfo::Type type, const std::string &value) {
        SoapySDR::ArgInfo info;
        info.value = value;
        info.key = info.name = key;
        info.type = type;
        return info;
    }

    void *radio;
};

// Whether this driver came as a plug-in: then somebody wants it found.
bool plugged_in() {
    for (const auto &path : SoapySDR::listModules()) {
        const auto loaded = SoapySDR::getLoaderResult(path);
        const auto result = loaded.find(DRIVER);
        if (result != loaded.end() && result->second.empty()) return true;
    }
    return false;
}

SoapySDR::KwargsList find(const SoapySDR::Kwargs &args) {
    // In a program that it is linked into, found only when asked for: a simulation must not turn up in a search for radios.
    const auto driver = args.find("driver");
    const auto label = args.find("label");
    if (driver == args.end() ? !plugged_in() : driver->second != DRIVER) return {};
    if (label != args.end() && label->second != LABEL) return {};
    // SoapySDR keeps one device for each set of arguments that is found: all of them belong to its identity.
    SoapySDR::Kwargs found = args;
    found["label"] = LABEL;
    return {found};
}

SoapySDR::Device *make(const SoapySDR::Kwargs &args) { return new Testbed(args); }

// A program that it is linked into, kaflow itself, needs no plug-in beside it.
const bool known = SoapySDR::Registry::listFindFunctions().count(DRIVER) != 0;
const std::unique_ptr<SoapySDR::Registry> registration(known ? nullptr : new SoapySDR::Registry(DRIVER, &find, &make, SOAPY_SDR_ABI_VERSION));

}  // namespace
