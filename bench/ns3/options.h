// The command line of the dumbbell, parsed and checked.

#ifndef WEIR_OPTIONS_H
#define WEIR_OPTIONS_H

#include "ns3/data-rate.h"
#include "ns3/nstime.h"

#include <cstdint>
#include <string>

namespace weir
{

struct Options
{
    // The dumbbell.
    ns3::DataRate lineRate{"1Gbps"};
    ns3::DataRate senderRate{"1Gbps"};
    ns3::Time dctcpRtt = ns3::MicroSeconds(50);
    ns3::Time cubicRtt = ns3::MilliSeconds(50);
    uint32_t dctcpSenders = 10;
    uint32_t cubicSenders = 10;
    uint32_t flowsPerSender = 10;

    // The shared queue, in IP bytes.
    uint64_t ecnThreshold = 100'000;
    uint64_t redMin = 800'000;
    uint64_t redMax = 800'000;
    double redProbability = 0.05;
    uint64_t buffer = 1'800'000;

    // The run.
    ns3::Time duration = ns3::Seconds(20);
    ns3::Time warmUp = ns3::Seconds(5);
    ns3::Time startWindow = ns3::Seconds(1);
    uint32_t seed = 1;

    // TCP.
    uint32_t segmentSize = 1448;
    uint32_t initialWindow = 10;
    uint32_t delayedAcks = 2;
    ns3::Time delayedAckTimeout = ns3::MilliSeconds(40);
    ns3::Time minRto = ns3::MilliSeconds(200);
    ns3::Time synTimeout = ns3::Seconds(1);
    uint64_t socketBuffer = 8'000'000;
    bool sack = true;
    bool timestamps = true;
    bool pacing = false;
    std::string recovery = "prr";
    double dctcpG = 0.0625;
    double dctcpAlpha = 1.0;
    bool hystart = true;
    bool fastConvergence = true;
    bool cubicEcn = false;
};

// Exits with a message that names the option if one is wrong.
Options ParseOptions(int argc, char* argv[]);

} // namespace weir

#endif
