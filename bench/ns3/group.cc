#include "group.h"

#include "ns3/inet-socket-address.h"
#include "ns3/simulator.h"
#include "ns3/tcp-l4-protocol.h"
#include "ns3/tcp-socket-factory.h"
#include "ns3/type-id.h"
#include "ns3/uinteger.h"

namespace weir
{

Group::Group(const std::string& name, const std::string& congestionControl, uint16_t port)
    : m_name(name),
      m_congestionControl(ns3::TypeId::LookupByName(congestionControl)),
      m_port(port)
{
}

void
Group::Listen(ns3::Ptr<ns3::Node> receiver)
{
    // The receiver's socket needs the group's congestion control too: ns-3's DCTCP echoes CE there.
    m_listening = receiver->GetObject<ns3::TcpL4Protocol>()->CreateSocket(m_congestionControl);
    m_listening->Bind(ns3::InetSocketAddress(ns3::Ipv4Address::GetAny(), m_port));
    m_listening->SetAcceptCallback(
        ns3::MakeNullCallback<bool, ns3::Ptr<ns3::Socket>, const ns3::Address&>(),
        ns3::MakeCallback(&Group::OnAccept, this));
    m_listening->Listen();
}

void
Group::AddFlows(ns3::Ptr<ns3::Node> sender,
                ns3::Ipv4Address receiver,
                const Options& options,
                ns3::Ptr<ns3::UniformRandomVariable> starts)
{
    sender->GetObject<ns3::TcpL4Protocol>()->SetAttribute("SocketType",
                                                          ns3::TypeIdValue(m_congestionControl));
    for (uint32_t flow = 0; flow < options.flowsPerSender; flow++)
    {
        auto application = ns3::CreateObjectWithAttributes<ns3::BulkSendApplication>(
            "Protocol",
            ns3::TypeIdValue(ns3::TcpSocketFactory::GetTypeId()),
            "Remote",
            ns3::AddressValue(ns3::InetSocketAddress(receiver, m_port)),
            "MaxBytes",
            ns3::UintegerValue(0),
            "SendSize",
            ns3::UintegerValue(options.segmentSize));
        const ns3::Time start =
            ns3::Seconds(starts->GetValue(0.0, options.startWindow.GetSeconds()));
        application->SetStartTime(start);
        sender->AddApplication(application);
        m_senders.push_back({application});
        // The application has its socket once it has started.
        ns3::Simulator::Schedule(start + ns3::NanoSeconds(1), &Group::Observe, &m_senders.back());
    }
}

void
Group::Observe(Sender* sender)
{
    ns3::Ptr<ns3::Socket> socket = sender->application->GetSocket();
    socket->TraceConnectWithoutContext("Tx", ns3::MakeBoundCallback(&Group::OnTransmit, sender));
    socket->TraceConnectWithoutContext("CongState",
                                       ns3::MakeBoundCallback(&Group::OnCongestionState, sender));
}

void
Group::OnTransmit(Sender* sender,
                  ns3::Ptr<const ns3::Packet> packet,
                  const ns3::TcpHeader& header,
                  ns3::Ptr<const ns3::TcpSocketBase>)
{
    if (packet->GetSize() == 0)
    {
        return;
    }
    sender->segments++;
    const ns3::SequenceNumber32 end = header.GetSequenceNumber() + packet->GetSize();
    if (sender->segments > 1 && end <= sender->highestSent)
    {
        sender->retransmits++;
    }
    else
    {
        sender->highestSent = end;
    }
}

void
Group::OnCongestionState(Sender* sender,
                         ns3::TcpSocketState::TcpCongState_t,
                         ns3::TcpSocketState::TcpCongState_t now)
{
    if (now == ns3::TcpSocketState::CA_LOSS)
    {
        sender->timeouts++;
    }
}

void
Group::OnAccept(ns3::Ptr<ns3::Socket> socket, const ns3::Address&)
{
    m_receivers.emplace_back();
    socket->SetRecvCallback(ns3::MakeBoundCallback(&Group::OnReceive, &m_receivers.back()));
}

void
Group::OnReceive(Receiver* receiver, ns3::Ptr<ns3::Socket> socket)
{
    while (ns3::Ptr<ns3::Packet> data = socket->Recv())
    {
        if (data->GetSize() == 0)
        {
            break;
        }
        receiver->bytes += data->GetSize();
    }
}

void
Group::EndWarmUp()
{
    for (Receiver& receiver : m_receivers)
    {
        receiver.bytesInWarmUp = receiver.bytes;
    }
    for (Sender& sender : m_senders)
    {
        sender.retransmits = 0;
        sender.timeouts = 0;
    }
}

uint64_t
Group::Received() const
{
    uint64_t received = 0;
    for (const Receiver& receiver : m_receivers)
    {
        received += receiver.bytes - receiver.bytesInWarmUp;
    }
    return received;
}

double
Group::JainIndex() const
{
    double sum = 0;
    double sumOfSquares = 0;
    for (const Receiver& receiver : m_receivers)
    {
        const double received = static_cast<double>(receiver.bytes - receiver.bytesInWarmUp);
        sum += received;
        sumOfSquares += received * received;
    }
    return sum * sum / (static_cast<double>(m_senders.size()) * sumOfSquares);
}

JsonObject
Group::Report(double measuredSeconds, uint64_t receivedByAll) const
{
    uint64_t retransmits = 0;
    uint64_t timeouts = 0;
    for (const Sender& sender : m_senders)
    {
        retransmits += sender.retransmits;
        timeouts += sender.timeouts;
    }
    JsonObject report;
    report.Number("goodput_bps", static_cast<double>(Received()) * 8 / measuredSeconds)
        .Number("share", static_cast<double>(Received()) / static_cast<double>(receivedByAll))
        .Number("flows", m_senders.size())
        .Number("connected_flows", m_receivers.size())
        .Number("jain_index", JainIndex())
        .Number("retransmits", retransmits)
        .Number("timeouts", timeouts);
    return report;
}

} // namespace weir
