// DCTCP and CUBIC senders, a switch, a receiver: the dumbbell of Vargas et al. (sections 5 and 6) in
// ns-3, as the reference for Weir's own simulator. Prints one JSON object; see README.md.

#include "group.h"
#include "json-object.h"
#include "options.h"
#include "shared-queue-disc.h"

#include "ns3/abort.h"
#include "ns3/boolean.h"
#include "ns3/config.h"
#include "ns3/double.h"
#include "ns3/enum.h"
#include "ns3/internet-stack-helper.h"
#include "ns3/ipv4-address-helper.h"
#include "ns3/ipv4-static-routing-helper.h"
#include "ns3/log.h"
#include "ns3/node-container.h"
#include "ns3/point-to-point-helper.h"
#include "ns3/queue-size.h"
#include "ns3/rng-seed-manager.h"
#include "ns3/simulator.h"
#include "ns3/string.h"
#include "ns3/tcp-socket-state.h"
#include "ns3/traffic-control-helper.h"
#include "ns3/traffic-control-layer.h"
#include "ns3/version-defines.h"

#include <sys/resource.h>

#include <iostream>

namespace weir
{

namespace
{

// Streams of ns-3's generator; the run's seed is common to both.
constexpr int64_t STARTS_STREAM = 1;
constexpr int64_t RED_STREAM = 2;

constexpr uint16_t DCTCP_PORT = 5000;
constexpr uint16_t CUBIC_PORT = 5001;

// ns-3 gives up after 6 timeouts in a row, which flows with a small window do reach here.
constexpr uint32_t DATA_RETRIES = 1000;

double
CpuSeconds()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& time) { return time.tv_sec + time.tv_usec * 1e-6; };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

uint64_t
PeakResidentBytes()
{
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<uint64_t>(usage.ru_maxrss) * 1024;
}

void
SetTcpDefaults(const Options& options)
{
    using namespace ns3;
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(options.segmentSize));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(options.initialWindow));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(options.delayedAcks));
    Config::SetDefault("ns3::TcpSocket::DelAckTimeout", TimeValue(options.delayedAckTimeout));
    Config::SetDefault("ns3::TcpSocket::ConnTimeout", TimeValue(options.synTimeout));
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(DATA_RETRIES));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(options.socketBuffer));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(options.socketBuffer));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(options.minRto));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(options.sack));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(options.timestamps));
    // TcpDctcp turns ECN on by itself.
    Config::SetDefault(
        "ns3::TcpSocketBase::UseEcn",
        EnumValue(options.cubicEcn ? TcpSocketState::On : TcpSocketState::Off));
    Config::SetDefault("ns3::TcpSocketState::EnablePacing", BooleanValue(options.pacing));
    Config::SetDefault("ns3::TcpL4Protocol::RecoveryType",
                       TypeIdValue(TypeId::LookupByName(options.recovery == "prr"
                                                            ? "ns3::TcpPrrRecovery"
                                                            : "ns3::TcpClassicRecovery")));
    Config::SetDefault("ns3::TcpDctcp::DctcpShiftG", DoubleValue(options.dctcpG));
    Config::SetDefault("ns3::TcpDctcp::DctcpAlphaOnInit", DoubleValue(options.dctcpAlpha));
    Config::SetDefault("ns3::TcpCubic::HyStart", BooleanValue(options.hystart));
    Config::SetDefault("ns3::TcpCubic::FastConvergence", BooleanValue(options.fastConvergence));
}

class Dumbbell
{
  public:
    explicit Dumbbell(const Options& options);
    // Runs the simulation and returns its results.
    JsonObject Run();

  private:
    void ConnectReceiver();
    void ConnectSenders(Group& group, uint32_t count, ns3::Time rtt);
    void EndWarmUp();
    JsonObject PortReport(double measuredSeconds);
    JsonObject SettingsReport() const;
    uint64_t EdgeDrops() const;
    // Whether the shared queue's counters cover every packet.
    bool Balances() const;

    const Options m_options;
    ns3::Ptr<ns3::Node> m_switch;
    ns3::Ptr<ns3::Node> m_receiver;
    ns3::Ipv4Address m_receiverAddress;
    ns3::Ipv4AddressHelper m_networks{"10.0.0.0", "255.255.255.252"};
    ns3::InternetStackHelper m_stack;
    ns3::Ptr<ns3::UniformRandomVariable> m_starts;
    ns3::Ptr<SharedQueueDisc> m_queue;
    QueueCounters m_queueInWarmUp;
    // Every queue but the shared one; none of them may drop a packet.
    ns3::QueueDiscContainer m_edgeQueues;
    Group m_dctcp{"dctcp", "ns3::TcpDctcp", DCTCP_PORT};
    Group m_cubic{"cubic", "ns3::TcpCubic", CUBIC_PORT};
};

ns3::TrafficControlHelper
EdgeQueue()
{
    // Without a queue disc of our own ns-3 would install FqCoDel, which drops.
    ns3::TrafficControlHelper helper;
    helper.SetRootQueueDisc("ns3::FifoQueueDisc", "MaxSize", ns3::StringValue("10000000p"));
    return helper;
}

Dumbbell::Dumbbell(const Options& options)
    : m_options(options),
      m_switch(ns3::CreateObject<ns3::Node>()),
      m_receiver(ns3::CreateObject<ns3::Node>()),
      m_starts(ns3::CreateObject<ns3::UniformRandomVariable>()),
      m_queue(ns3::CreateObject<SharedQueueDisc>())
{
    m_starts->SetStream(STARTS_STREAM);
    auto draws = ns3::CreateObject<ns3::UniformRandomVariable>();
    draws->SetStream(RED_STREAM);
    m_queue->Configure({options.ecnThreshold,
                        options.redMin,
                        options.redMax,
                        options.redProbability,
                        options.buffer},
                       draws);
    m_stack.SetIpv6StackInstall(false);
    m_stack.Install(m_switch);
    m_stack.Install(m_receiver);
    ConnectReceiver();
    m_dctcp.Listen(m_receiver);
    m_cubic.Listen(m_receiver);
    ConnectSenders(m_dctcp, options.dctcpSenders, options.dctcpRtt);
    ConnectSenders(m_cubic, options.cubicSenders, options.cubicRtt);
}

void
Dumbbell::ConnectReceiver()
{
    ns3::PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", ns3::DataRateValue(m_options.lineRate));
    link.SetChannelAttribute("Delay", ns3::TimeValue(m_options.dctcpRtt / 4));
    // One packet, so that all others wait in the shared queue: the device's default of 100 packets
    // would hide 150 KB from it.
    link.SetQueue("ns3::DropTailQueue", "MaxSize", ns3::StringValue("1p"));
    ns3::NetDeviceContainer devices = link.Install(m_switch, m_receiver);

    m_switch->GetObject<ns3::TrafficControlLayer>()->SetRootQueueDiscOnDevice(devices.Get(0),
                                                                              m_queue);
    m_edgeQueues.Add(EdgeQueue().Install(devices.Get(1)));
    ns3::Ipv4InterfaceContainer addresses = m_networks.Assign(devices);
    m_receiverAddress = addresses.GetAddress(1);
    ns3::Ipv4StaticRoutingHelper()
        .GetStaticRouting(m_receiver->GetObject<ns3::Ipv4>())
        ->SetDefaultRoute(addresses.GetAddress(0), addresses.Get(1).second);
}

void
Dumbbell::ConnectSenders(Group& group, uint32_t count, ns3::Time rtt)
{
    ns3::PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", ns3::DataRateValue(m_options.senderRate));
    link.SetChannelAttribute("Delay", ns3::TimeValue(rtt / 2 - m_options.dctcpRtt / 4));
    for (uint32_t i = 0; i < count; i++)
    {
        ns3::Ptr<ns3::Node> sender = ns3::CreateObject<ns3::Node>();
        m_stack.Install(sender);
        ns3::NetDeviceContainer devices = link.Install(sender, m_switch);
        m_edgeQueues.Add(EdgeQueue().Install(devices));
        m_networks.NewNetwork();
        ns3::Ipv4InterfaceContainer addresses = m_networks.Assign(devices);
        ns3::Ipv4StaticRoutingHelper()
            .GetStaticRouting(sender->GetObject<ns3::Ipv4>())
            ->SetDefaultRoute(addresses.GetAddress(1), addresses.Get(0).second);
        group.AddFlows(sender, m_receiverAddress, m_options, m_starts);
    }
}

void
Dumbbell::EndWarmUp()
{
    m_dctcp.EndWarmUp();
    m_cubic.EndWarmUp();
    m_queueInWarmUp = m_queue->Counters();
    m_queue->RestartLengthStatistics();
}

uint64_t
Dumbbell::EdgeDrops() const
{
    uint64_t drops = 0;
    for (uint32_t i = 0; i < m_edgeQueues.GetN(); i++)
    {
        drops += m_edgeQueues.Get(i)->GetStats().nTotalDroppedPackets;
    }
    return drops;
}

bool
Dumbbell::Balances() const
{
    const QueueCounters& counters = m_queue->Counters();
    return m_queue->GetStats().nTotalReceivedPackets ==
           counters.departedPackets + counters.Drops() + m_queue->GetNPackets();
}

JsonObject
CountersReport(const QueueCounters& counters)
{
    JsonObject drops;
    drops.Number("red", counters.redDrops)
        .Number("tail", counters.tailDrops)
        .Number("buffer", counters.bufferDrops);
    JsonObject report;
    report.Number("packets", counters.departedPackets)
        .Number("bytes", counters.departedBytes)
        .Number("marks", counters.marks)
        .Object("drops", drops);
    return report;
}

JsonObject
Dumbbell::PortReport(double measuredSeconds)
{
    const QueueCounters measured = m_queue->Counters() - m_queueInWarmUp;
    JsonObject report = CountersReport(measured);
    report.Number("drops_per_s", static_cast<double>(measured.Drops()) / measuredSeconds)
        .Number("queue_mean_bytes", m_queue->MeanBytes())
        .Number("queue_p99_bytes", m_queue->PercentileBytes(0.99))
        .Number("queue_max_bytes", m_queue->MaxBytes())
        .Object("whole_run", CountersReport(m_queue->Counters()));
    return report;
}

JsonObject
Dumbbell::SettingsReport() const
{
    const Options& options = m_options;
    JsonObject report;
    report.Number("line_rate_bps", options.lineRate.GetBitRate())
        .Number("sender_rate_bps", options.senderRate.GetBitRate())
        .Number("dctcp_rtt_ns", options.dctcpRtt.GetNanoSeconds())
        .Number("cubic_rtt_ns", options.cubicRtt.GetNanoSeconds())
        .Number("dctcp_senders", options.dctcpSenders)
        .Number("cubic_senders", options.cubicSenders)
        .Number("flows_per_sender", options.flowsPerSender)
        .Number("ecn_threshold_bytes", options.ecnThreshold)
        .Number("red_min_bytes", options.redMin)
        .Number("red_max_bytes", options.redMax)
        .Number("red_probability", options.redProbability)
        .Number("buffer_bytes", options.buffer)
        .Number("duration_ns", options.duration.GetNanoSeconds())
        .Number("warm_up_ns", options.warmUp.GetNanoSeconds())
        .Number("start_window_ns", options.startWindow.GetNanoSeconds())
        .Number("seed", options.seed)
        .Number("segment_size_bytes", options.segmentSize)
        .Number("initial_window_segments", options.initialWindow)
        .Number("delayed_acks", options.delayedAcks)
        .Number("delayed_ack_timeout_ns", options.delayedAckTimeout.GetNanoSeconds())
        .Number("min_rto_ns", options.minRto.GetNanoSeconds())
        .Number("syn_timeout_ns", options.synTimeout.GetNanoSeconds())
        .Number("socket_buffer_bytes", options.socketBuffer)
        .Boolean("sack", options.sack)
        .Boolean("timestamps", options.timestamps)
        .Boolean("pacing", options.pacing)
        .Word("recovery", options.recovery)
        .Number("dctcp_g", options.dctcpG)
        .Number("dctcp_alpha", options.dctcpAlpha)
        .Boolean("hystart", options.hystart)
        .Boolean("fast_convergence", options.fastConvergence)
        .Boolean("cubic_ecn", options.cubicEcn);
    return report;
}

JsonObject
SimulatorReport()
{
    JsonObject report;
    report
        .Word("version",
              std::to_string(NS3_VERSION_MAJOR) + "." + std::to_string(NS3_VERSION_MINOR))
        .Word("build_profile", NS3_VERSION_BUILD_PROFILE)
        // A library without logging registers no component.
        .Boolean("logging_compiled_in", !ns3::LogComponent::GetComponentList()->empty());
    return report;
}

JsonObject
Dumbbell::Run()
{
    ns3::Simulator::Schedule(m_options.warmUp, &Dumbbell::EndWarmUp, this);
    ns3::Simulator::Stop(m_options.duration);
    const double cpuBefore = CpuSeconds();
    ns3::Simulator::Run();
    const double cpu = CpuSeconds() - cpuBefore;
    NS_ABORT_MSG_UNLESS(Balances(), "the shared queue's counters do not balance");

    const double measuredSeconds = (m_options.duration - m_options.warmUp).GetSeconds();
    const uint64_t received = m_dctcp.Received() + m_cubic.Received();
    JsonObject groups;
    groups.Object("dctcp", m_dctcp.Report(measuredSeconds, received))
        .Object("cubic", m_cubic.Report(measuredSeconds, received));
    JsonObject ports;
    ports.Object("bottleneck", PortReport(measuredSeconds));
    JsonObject report;
    report.Object("groups", groups)
        .Object("ports", ports)
        .Number("edge_drops", EdgeDrops())
        .Number("simulated_s", m_options.duration.GetSeconds())
        .Number("measured_s", measuredSeconds)
        .Number("cpu_s", cpu)
        .Number("packets_per_cpu_s", m_queue->Counters().departedPackets / cpu)
        .Number("events", ns3::Simulator::GetEventCount())
        .Number("peak_rss_bytes", PeakResidentBytes())
        .Object("ns3", SimulatorReport())
        .Object("settings", SettingsReport());
    return report;
}

} // namespace

} // namespace weir

int
main(int argc, char* argv[])
{
    const weir::Options options = weir::ParseOptions(argc, argv);
    ns3::RngSeedManager::SetSeed(options.seed);
    weir::SetTcpDefaults(options);
    weir::Dumbbell dumbbell(options);
    std::cout << dumbbell.Run().Text() << std::endl;
    ns3::Simulator::Destroy();
    return 0;
}
