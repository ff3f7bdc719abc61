// SoapySDR registers drivers through C++ classes only: this one hands every call that has state on to Rust (ffi.rs) and answers what never changes itself.

#include <SoapySDR/Constants.h>
#include <SoapySDR/Device.hpp>
#include <SoapySDR/Errors.h>
#include <SoapySDR/Formats.h>
#include <SoapySDR/Registry.hpp>
#include <stdexcept>

extern "C" {
void *kaflow_radio_make(const char *args, char *problem, size_t length);
void kaflow_radio_free(void *radio);
size_t kaflow_radio_channels(void);
// Numbers by name: frequency, rate, bandwidth, or a gain element.
int kaflow_radio_set(void *radio, int direction, size_t channel, const char *name, double value, char *problem, size_t length);
double kaflow_radio_get(void *radio, int direction, size_t channel, const char *name);
void kaflow_radio_range(int direction, const char *name, double *low, double *high, double *step);
int kaflow_radio_write_setting(void *radio, const char *key, const char *value, char *problem, size_t length);
int kaflow_radio_read_setting(void *radio, const char *key, char *value, size_t length);
long long kaflow_radio_time(void *radio);
void kaflow_radio_set_time(void *radio, long long time_ns);
int kaflow_radio_setup(void *radio, int direction, const char *format, const size_t *channels, size_t count, char *problem, size_t length);
void kaflow_radio_close(void *radio, int direction);
int kaflow_radio_activate(void *radio, int direction, int timed, long long time_ns);
int kaflow_radio_deactivate(void *radio, int direction);
int kaflow_radio_read(void *radio, void *const *buffers, size_t count, int *flags, long long *time_ns, long timeout_us);
int kaflow_radio_write(void *radio, const void *const *buffers, size_t count, int flags, long long time_ns, long timeout_us);
int kaflow_radio_status(void *radio, int direction, long long *time_ns, long timeout_us);
}

namespace {

const char *const DRIVER = "kaflow-testbed";

struct Problem {
    char text[512] = {0};
    void raise(bool failed) {
        if (failed) throw std::runtime_error(text);
    }
};

class Testbed : public SoapySDR::Device {
  public:
    explicit Testbed(const SoapySDR::Kwargs &args) {
        Problem p;
        radio = kaflow_radio_make(SoapySDR::KwargsToString(args).c_str(), p.text, sizeof p.text);
        p.raise(radio == nullptr);
    }
    ~Testbed() override { kaflow_radio_free(radio); }

    std::string getDriverKey() const override { return DRIVER; }
    std::string getHardwareKey() const override { return "simulated test bed"; }
    SoapySDR::Kwargs getHardwareInfo() const override { return {{"origin", "kaflow"}, {"channel", "between its own TX and RX"}}; }
    size_t getNumChannels(const int) const override { return kaflow_radio_channels(); }
    bool getFullDuplex(const int, const size_t) const override { return true; }
    std::vector<std::string> getStreamFormats(const int, const size_t) const override {
        return {SOAPY_SDR_CF32, SOAPY_SDR_CS16, SOAPY_SDR_CS8};
    }
    std::string getNativeStreamFormat(const int, const size_t, double &fullScale) const override {
        fullScale = 1.0;
        return SOAPY_SDR_CF32;
    }

    // One stream for each direction: the handle is the direction, plus one because null means failure.
    SoapySDR::Stream *setupStream(const int direction, const std::string &format, const std::vector<size_t> &channels,
                                  const SoapySDR::Kwargs &) override {
        Problem p;
        p.raise(kaflow_radio_setup(radio, direction, format.c_str(), channels.data(), channels.size(), p.text, sizeof p.text) != 0);
        return reinterpret_cast<SoapySDR::Stream *>(static_cast<size_t>(direction + 1));
    }
    static int direction(SoapySDR::Stream *stream) { return static_cast<int>(reinterpret_cast<size_t>(stream)) - 1; }
    void closeStream(SoapySDR::Stream *stream) override { kaflow_radio_close(radio, direction(stream)); }
    size_t getStreamMTU(SoapySDR::Stream *) const override { return 8192; }
    int activateStream(SoapySDR::Stream *stream, const int flags, const long long timeNs, const size_t) override {
        return kaflow_radio_activate(radio, direction(stream), (flags & SOAPY_SDR_HAS_TIME) != 0, timeNs);
    }
    int deactivateStream(SoapySDR::Stream *stream, const int, const long long) override {
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
        flags = SOAPY_SDR_HAS_TIME;
        return kaflow_radio_status(radio, direction(stream), &timeNs, timeoutUs);
    }

    std::vector<std::string> listAntennas(const int direction, const size_t) const override {
        return {direction == SOAPY_SDR_TX ? "TX" : "RX"};
    }
    void setAntenna(const int direction, const size_t channel, const std::string &name) override {
        if (name != getAntenna(direction, channel)) throw std::runtime_error("antenna must be " + getAntenna(direction, channel) + ", got " + name);
    }
    std::string getAntenna(const int direction, const size_t channel) const override { return listAntennas(direction, channel).front(); }

    std::vector<std::string> listGains(const int direction, const size_t) const override {
        return direction == SOAPY_SDR_TX ? std::vector<std::string>{"DRIVER", "PA"} : std::vector<std::string>{"LNA", "PGA"};
    }
    using SoapySDR::Device::setGain;
    using SoapySDR::Device::getGain;
    using SoapySDR::Device::getGainRange;
    void setGain(const int direction, const size_t channel, const std::string &name, const double value) override {
        set(direction, channel, name, value);
    }
    double getGain(const int direction, const size_t channel, const std::string &name) const override {
        return kaflow_radio_get(radio, direction, channel, name.c_str());
    }
    SoapySDR::Range getGainRange(const int direction, const size_t, const std::string &name) const override {
        return range(direction, name).front();
    }

    void setFrequency(const int direction, const size_t channel, const double frequency, const SoapySDR::Kwargs &) override {
        set(direction, channel, "frequency", frequency);
    }
    void setFrequency(const int direction, const size_t channel, const std::string &, const double frequency, const SoapySDR::Kwargs &) override {
        set(direction, channel, "frequency", frequency);
    }
    double getFrequency(const int direction, const size_t channel) const override {
        return kaflow_radio_get(radio, direction, channel, "frequency");
    }
    double getFrequency(const int direction, const size_t channel, const std::string &) const override { return getFrequency(direction, channel); }
    std::vector<std::string> listFrequencies(const int, const size_t) const override { return {"RF"}; }
    SoapySDR::RangeList getFrequencyRange(const int direction, const size_t) const override { return range(direction, "frequency"); }
    SoapySDR::RangeList getFrequencyRange(const int direction, const size_t, const std::string &) const override {
        return range(direction, "frequency");
    }

    void setSampleRate(const int direction, const size_t channel, const double rate) override { set(direction, channel, "rate", rate); }
    double getSampleRate(const int direction, const size_t channel) const override { return kaflow_radio_get(radio, direction, channel, "rate"); }
    SoapySDR::RangeList getSampleRateRange(const int direction, const size_t) const override { return range(direction, "rate"); }
    std::vector<double> listSampleRates(const int direction, const size_t) const override {
        const auto rates = range(direction, "rate").front();
        return {rates.minimum(), rates.maximum()};
    }
    void setBandwidth(const int direction, const size_t channel, const double bw) override { set(direction, channel, "bandwidth", bw); }
    double getBandwidth(const int direction, const size_t channel) const override {
        return kaflow_radio_get(radio, direction, channel, "bandwidth");
    }
    SoapySDR::RangeList getBandwidthRange(const int direction, const size_t) const override { return range(direction, "bandwidth"); }

    std::vector<std::string> listClockSources() const override { return {"internal"}; }
    void setClockSource(const std::string &source) override { internal("clock source", source); }
    std::string getClockSource() const override { return "internal"; }
    std::vector<std::string> listTimeSources() const override { return {"internal"}; }
    void setTimeSource(const std::string &source) override { internal("time source", source); }
    std::string getTimeSource() const override { return "internal"; }
    bool hasHardwareTime(const std::string &what) const override { return what.empty(); }
    long long getHardwareTime(const std::string &) const override { return kaflow_radio_time(radio); }
    void setHardwareTime(const long long timeNs, const std::string &) override { kaflow_radio_set_time(radio, timeNs); }

    void writeSetting(const std::string &key, const std::string &value) override {
        Problem p;
        p.raise(kaflow_radio_write_setting(radio, key.c_str(), value.c_str(), p.text, sizeof p.text) != 0);
    }
    std::string readSetting(const std::string &key) const override {
        char value[128];
        return kaflow_radio_read_setting(radio, key.c_str(), value, sizeof value) == 0 ? value : "";
    }

  private:
    void set(int direction, size_t channel, const std::string &name, double value) {
        Problem p;
        p.raise(kaflow_radio_set(radio, direction, channel, name.c_str(), value, p.text, sizeof p.text) != 0);
    }
    static SoapySDR::RangeList range(int direction, const std::string &name) {
        double low = 0, high = 0, step = 0;
        kaflow_radio_range(direction, name.c_str(), &low, &high, &step);
        return {SoapySDR::Range(low, high, step)};
    }
    static void internal(const char *what, const std::string &source) {
        if (source != "internal") throw std::runtime_error(std::string(what) + " must be internal, got " + source);
    }

    void *radio;
};

SoapySDR::KwargsList find(const SoapySDR::Kwargs &args) {
    // Found only when asked for: a simulation must not turn up in a search for radios.
    const auto driver = args.find("driver");
    if (driver == args.end() || driver->second != DRIVER) return {};
    // SoapySDR keeps one device for each set of arguments that is found: all of them belong to its identity.
    SoapySDR::Kwargs found = args;
    found["label"] = "kaflow simulated test bed";
    return {found};
}

SoapySDR::Device *make(const SoapySDR::Kwargs &args) { return new Testbed(args); }

SoapySDR::Registry registration(DRIVER, &find, &make, SOAPY_SDR_ABI_VERSION);

}  // namespace
