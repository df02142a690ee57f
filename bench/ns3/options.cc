#include "options.h"

#include "ns3/command-line.h"

#include <cmath>
#include <cstdlib>
#include <iostream>
#include <map>

namespace weir
{

namespace
{

[[noreturn]] void
Refuse(const std::string& option, const std::string& reason)
{
    std::cerr << "dumbbell: --" << option << ": " << reason << std::endl;
    std::exit(2);
}

void
Require(bool condition, const std::string& option, const std::string& reason)
{
    if (!condition)
    {
        Refuse(option, reason);
    }
}

// "1.8MB", "64KiB" or "1500B": powers of 1000 and 1024 as in Weir's scenario files.
uint64_t
ParseBytes(const std::string& option, const std::string& text)
{
    static const std::map<std::string, double> UNITS = {{"B", 1},
                                                        {"KB", 1e3},
                                                        {"MB", 1e6},
                                                        {"GB", 1e9},
                                                        {"KiB", 1024},
                                                        {"MiB", 1024.0 * 1024},
                                                        {"GiB", 1024.0 * 1024 * 1024}};
    // ns-3 writes sizes into 32-bit attributes.
    constexpr double LARGEST = 4e9;
    const std::size_t unitStart = text.find_first_not_of("0123456789.");
    if (unitStart == 0 || unitStart == std::string::npos || UNITS.count(text.substr(unitStart)) == 0)
    {
        Refuse(option, "\"" + text + "\" is not a size such as 1.8MB (B, KB, MB, GB, KiB, MiB, GiB)");
    }
    const double bytes =
        std::strtod(text.c_str(), nullptr) * UNITS.find(text.substr(unitStart))->second;
    Require(bytes <= LARGEST, option, "\"" + text + "\" is more than 4GB");
    return static_cast<uint64_t>(std::llround(bytes));
}

void
Check(const Options& options)
{
    Require(options.lineRate.GetBitRate() > 0, "line-rate", "must be more than zero");
    Require(options.senderRate.GetBitRate() > 0, "sender-rate", "must be more than zero");
    Require(options.dctcpRtt.IsPositive(), "dctcp-rtt", "must not be negative");
    Require(options.cubicRtt * 2 >= options.dctcpRtt,
            "cubic-rtt",
            "must be at least half of --dctcp-rtt: the bottleneck's delay is a quarter of that");
    Require(options.dctcpSenders + options.cubicSenders > 0, "dctcp-senders", "no sender at all");
    Require(options.dctcpSenders <= 60000 && options.cubicSenders <= 60000,
            "cubic-senders",
            "at most 60000 senders in each group");
    Require(options.flowsPerSender > 0, "flows-per-sender", "must be more than zero");
    Require(options.segmentSize > 0 && options.segmentSize <= 1448,
            "segment-size",
            "must be 1 to 1448: 52 bytes of headers and options go into the MTU of 1500");
    Require(options.buffer >= 1500, "buffer", "must hold at least one packet of 1500 bytes");
    Require(options.redMin <= options.redMax, "red-min", "must not be above --red-max");
    Require(options.redProbability >= 0 && options.redProbability <= 1,
            "red-probability",
            "must be between 0 and 1");
    Require(options.warmUp.IsPositive() && options.warmUp < options.duration,
            "warm-up",
            "must be less than --duration");
    Require(options.startWindow.IsPositive(), "start-window", "must not be negative");
    Require(options.seed > 0, "seed", "must be more than zero");
    Require(options.initialWindow > 0, "initial-window", "must be more than zero");
    Require(options.delayedAcks > 0, "delayed-acks", "must be 1 (every segment) or more");
    Require(options.minRto.IsStrictlyPositive(), "min-rto", "must be more than zero");
    Require(options.socketBuffer >= options.segmentSize,
            "socket-buffer",
            "must hold at least one segment");
    Require(options.recovery == "prr" || options.recovery == "classic",
            "recovery",
            "must be prr or classic");
}

} // namespace

Options
ParseOptions(int argc, char* argv[])
{
    Options options;
    // Sizes and the sender rate, which follows the line rate, come as text.
    std::map<std::string, std::string> sizes = {{"ecn-threshold", "100KB"},
                                                {"red-min", "800KB"},
                                                {"red-max", "800KB"},
                                                {"buffer", "1.8MB"},
                                                {"socket-buffer", "8MB"}};
    std::string senderRate;

    ns3::CommandLine line;
    line.Usage("DCTCP and CUBIC flows over one shared queue. Prints one JSON object.");
    line.AddValue("line-rate", "rate of the bottleneck link", options.lineRate);
    line.AddValue("sender-rate", "rate of each sender's link (default: --line-rate)", senderRate);
    line.AddValue("dctcp-rtt", "base round trip of the DCTCP senders", options.dctcpRtt);
    line.AddValue("cubic-rtt", "base round trip of the CUBIC senders", options.cubicRtt);
    line.AddValue("dctcp-senders", "DCTCP sender nodes", options.dctcpSenders);
    line.AddValue("cubic-senders", "CUBIC sender nodes", options.cubicSenders);
    line.AddValue("flows-per-sender", "BulkSend flows of each sender", options.flowsPerSender);
    line.AddValue("ecn-threshold", "ECT packets are marked above it", sizes["ecn-threshold"]);
    line.AddValue("red-min", "Not-ECT packets pass up to it", sizes["red-min"]);
    line.AddValue("red-max", "Not-ECT packets are dropped above it", sizes["red-max"]);
    line.AddValue("red-probability", "drop probability at --red-max", options.redProbability);
    line.AddValue("buffer", "every packet is dropped above it", sizes["buffer"]);
    line.AddValue("duration", "simulated time", options.duration);
    line.AddValue("warm-up", "left out of the averages", options.warmUp);
    line.AddValue("start-window", "flows start at random within it", options.startWindow);
    line.AddValue("seed", "decides start times and RED's drops", options.seed);
    line.AddValue("segment-size", "payload bytes of a full segment", options.segmentSize);
    line.AddValue("initial-window", "segments", options.initialWindow);
    line.AddValue("delayed-acks", "segments for one ACK; 1: none is delayed", options.delayedAcks);
    line.AddValue("delayed-ack-timeout", "an ACK waits no longer", options.delayedAckTimeout);
    line.AddValue("min-rto", "smallest retransmission timeout", options.minRto);
    line.AddValue("syn-timeout", "timeout of the first SYN", options.synTimeout);
    line.AddValue("socket-buffer", "send and receive buffers", sizes["socket-buffer"]);
    line.AddValue("sack", "selective acknowledgements", options.sack);
    line.AddValue("timestamps", "the time-stamp option (12 bytes)", options.timestamps);
    line.AddValue("pacing", "pace segments", options.pacing);
    line.AddValue("recovery", "prr or classic", options.recovery);
    line.AddValue("dctcp-g", "DCTCP's gain", options.dctcpG);
    line.AddValue("dctcp-alpha", "DCTCP's first estimate of the marked fraction", options.dctcpAlpha);
    line.AddValue("hystart", "CUBIC's hybrid slow start", options.hystart);
    line.AddValue("fast-convergence", "CUBIC's fast convergence", options.fastConvergence);
    line.AddValue("cubic-ecn", "CUBIC negotiates ECN (RFC 3168)", options.cubicEcn);
    line.Parse(argc, argv);

    options.senderRate = senderRate.empty() ? options.lineRate : ns3::DataRate(senderRate);
    options.ecnThreshold = ParseBytes("ecn-threshold", sizes["ecn-threshold"]);
    options.redMin = ParseBytes("red-min", sizes["red-min"]);
    options.redMax = ParseBytes("red-max", sizes["red-max"]);
    options.buffer = ParseBytes("buffer", sizes["buffer"]);
    options.socketBuffer = ParseBytes("socket-buffer", sizes["socket-buffer"]);
    Check(options);
    return options;
}

} // namespace weir
