#include "shared-queue-disc.h"

#include "ns3/drop-tail-queue.h"
#include "ns3/simulator.h"

#include <algorithm>

namespace weir
{

namespace
{
constexpr uint64_t LENGTH_STEP = 1000;
constexpr uint8_t ECN_FIELD = 0x03;

bool
IsEct(ns3::Ptr<const ns3::QueueDiscItem> item)
{
    uint8_t dsField = 0;
    return item->GetUint8Value(ns3::QueueItem::IP_DSFIELD, dsField) && (dsField & ECN_FIELD) != 0;
}
} // namespace

NS_OBJECT_ENSURE_REGISTERED(SharedQueueDisc);

QueueCounters
operator-(const QueueCounters& later, const QueueCounters& earlier)
{
    QueueCounters difference = later;
    difference.departedPackets -= earlier.departedPackets;
    difference.departedBytes -= earlier.departedBytes;
    difference.marks -= earlier.marks;
    difference.redDrops -= earlier.redDrops;
    difference.tailDrops -= earlier.tailDrops;
    difference.bufferDrops -= earlier.bufferDrops;
    return difference;
}

ns3::TypeId
SharedQueueDisc::GetTypeId()
{
    static ns3::TypeId id = ns3::TypeId("weir::SharedQueueDisc")
                                .SetParent<ns3::QueueDisc>()
                                .AddConstructor<SharedQueueDisc>();
    return id;
}

SharedQueueDisc::SharedQueueDisc()
    : QueueDisc(ns3::QueueDiscSizePolicy::NO_LIMITS)
{
}

void
SharedQueueDisc::Configure(const SharedQueueLimits& limits,
                           ns3::Ptr<ns3::UniformRandomVariable> draws)
{
    m_limits = limits;
    m_draws = draws;
    m_nanosecondsAtLength.assign(limits.buffer / LENGTH_STEP + 1, 0);
}

bool
SharedQueueDisc::AdmitByRed()
{
    if (m_bytes > m_limits.redMax)
    {
        m_counters.tailDrops++;
        return false;
    }
    if (m_bytes <= m_limits.redMin)
    {
        return true;
    }
    // Here redMin < m_bytes <= redMax, so that the range is not empty.
    const double position = static_cast<double>(m_bytes - m_limits.redMin) /
                            static_cast<double>(m_limits.redMax - m_limits.redMin);
    if (m_draws->GetValue(0.0, 1.0) < position * m_limits.redProbability)
    {
        m_counters.redDrops++;
        return false;
    }
    return true;
}

bool
SharedQueueDisc::DoEnqueue(ns3::Ptr<ns3::QueueDiscItem> item)
{
    const uint64_t length = item->GetSize();
    if (m_bytes + length > m_limits.buffer)
    {
        m_counters.bufferDrops++;
        DropBeforeEnqueue(item, "buffer");
        return false;
    }
    if (IsEct(item))
    {
        if (m_bytes > m_limits.ecnThreshold && item->Mark())
        {
            m_counters.marks++;
        }
    }
    else if (!AdmitByRed())
    {
        DropBeforeEnqueue(item, "RED");
        return false;
    }
    AccountForLength();
    m_bytes += length;
    m_maxBytes = std::max(m_maxBytes, m_bytes);
    return GetInternalQueue(0)->Enqueue(item);
}

ns3::Ptr<ns3::QueueDiscItem>
SharedQueueDisc::DoDequeue()
{
    ns3::Ptr<ns3::QueueDiscItem> item = GetInternalQueue(0)->Dequeue();
    if (item)
    {
        AccountForLength();
        m_bytes -= item->GetSize();
        m_counters.departedPackets++;
        m_counters.departedBytes += item->GetSize();
    }
    return item;
}

bool
SharedQueueDisc::CheckConfig()
{
    if (!m_draws)
    {
        return false;
    }
    if (GetNInternalQueues() == 0)
    {
        // This queue disc enforces the limits; its internal queue must never refuse a packet.
        const ns3::QueueSize unlimited(ns3::QueueSizeUnit::PACKETS, UINT32_MAX);
        AddInternalQueue(
            ns3::CreateObjectWithAttributes<ns3::DropTailQueue<ns3::QueueDiscItem>>(
                "MaxSize",
                ns3::QueueSizeValue(unlimited)));
    }
    return GetNQueueDiscClasses() == 0 && GetNPacketFilters() == 0 && GetNInternalQueues() == 1;
}

void
SharedQueueDisc::InitializeParams()
{
    RestartLengthStatistics();
}

void
SharedQueueDisc::AccountForLength()
{
    const ns3::Time now = ns3::Simulator::Now();
    const int64_t elapsed = (now - m_lastChange).GetNanoSeconds();
    m_lastChange = now;
    m_byteNanoseconds += static_cast<long double>(m_bytes) * elapsed;
    m_nanosecondsAtLength[m_bytes / LENGTH_STEP] += elapsed;
}

void
SharedQueueDisc::RestartLengthStatistics()
{
    m_statisticsStart = ns3::Simulator::Now();
    m_lastChange = m_statisticsStart;
    m_byteNanoseconds = 0;
    m_maxBytes = m_bytes;
    std::fill(m_nanosecondsAtLength.begin(), m_nanosecondsAtLength.end(), 0);
}

double
SharedQueueDisc::MeanBytes()
{
    AccountForLength();
    const int64_t elapsed = (m_lastChange - m_statisticsStart).GetNanoSeconds();
    return elapsed == 0 ? 0.0 : static_cast<double>(m_byteNanoseconds / elapsed);
}

uint64_t
SharedQueueDisc::PercentileBytes(double fraction)
{
    AccountForLength();
    const double wanted = fraction * (m_lastChange - m_statisticsStart).GetNanoSeconds();
    int64_t below = 0;
    for (std::size_t step = 0; step < m_nanosecondsAtLength.size(); step++)
    {
        below += m_nanosecondsAtLength[step];
        if (below >= wanted)
        {
            return std::min((step + 1) * LENGTH_STEP, m_maxBytes);
        }
    }
    return m_maxBytes;
}

uint64_t
SharedQueueDisc::MaxBytes() const
{
    return m_maxBytes;
}

} // namespace weir
