// The shared queue of Vargas et al., "Analyzing DCTCP and CUBIC Buffer Sharing under Diverse Router
// Configurations", section 5.3, as an ns-3 queue disc: one FIFO in which ECT packets are CE-marked
// above a threshold and Not-ECT packets meet RED on the instantaneous queue.

#ifndef WEIR_SHARED_QUEUE_DISC_H
#define WEIR_SHARED_QUEUE_DISC_H

#include "ns3/nstime.h"
#include "ns3/queue-disc.h"
#include "ns3/random-variable-stream.h"

#include <cstdint>
#include <vector>

namespace weir
{

// Lengths are IP bytes (IP header, TCP header, payload), which is what an ns-3 queue disc sees: the
// two bytes of PPP framing are added by the device below it.
struct SharedQueueLimits
{
    uint64_t ecnThreshold;
    uint64_t redMin;
    uint64_t redMax;
    double redProbability;
    uint64_t buffer;
};

struct QueueCounters
{
    uint64_t departedPackets = 0;
    uint64_t departedBytes = 0;
    uint64_t marks = 0;
    // Not-ECT packets dropped by chance between redMin and redMax.
    uint64_t redDrops = 0;
    // Not-ECT packets dropped because the queue was above redMax.
    uint64_t tailDrops = 0;
    // Packets of either kind that did not fit into the buffer.
    uint64_t bufferDrops = 0;

    uint64_t Drops() const
    {
        return redDrops + tailDrops + bufferDrops;
    }
};

QueueCounters operator-(const QueueCounters& later, const QueueCounters& earlier);

class SharedQueueDisc : public ns3::QueueDisc
{
  public:
    static ns3::TypeId GetTypeId();
    SharedQueueDisc();

    // `draws` decides RED's drops; its stream is assigned by the caller.
    void Configure(const SharedQueueLimits& limits, ns3::Ptr<ns3::UniformRandomVariable> draws);

    const QueueCounters& Counters() const
    {
        return m_counters;
    }

    // Restarts the mean, percentiles and maximum of the queue length.
    void RestartLengthStatistics();
    double MeanBytes();
    uint64_t PercentileBytes(double fraction);
    uint64_t MaxBytes() const;

  private:
    bool DoEnqueue(ns3::Ptr<ns3::QueueDiscItem> item) override;
    ns3::Ptr<ns3::QueueDiscItem> DoDequeue() override;
    bool CheckConfig() override;
    void InitializeParams() override;

    // Whether a Not-ECT packet is admitted; counts the drop if it is not.
    bool AdmitByRed();
    // Adds the time since the last change of the length to the statistics.
    void AccountForLength();

    SharedQueueLimits m_limits{};
    ns3::Ptr<ns3::UniformRandomVariable> m_draws;
    QueueCounters m_counters;

    uint64_t m_bytes = 0;
    uint64_t m_maxBytes = 0;
    ns3::Time m_statisticsStart;
    ns3::Time m_lastChange;
    // The integral of the length over time, in byte nanoseconds.
    long double m_byteNanoseconds = 0;
    // Nanoseconds spent at each length, in steps of LENGTH_STEP bytes.
    std::vector<int64_t> m_nanosecondsAtLength;
};

} // namespace weir

#endif
