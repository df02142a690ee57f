// The flows of one congestion control: endless BulkSend flows from their sender nodes to one
// listening socket at the receiver, and their results.

#ifndef WEIR_GROUP_H
#define WEIR_GROUP_H

#include "json-object.h"
#include "options.h"

#include "ns3/address.h"
#include "ns3/bulk-send-application.h"
#include "ns3/ipv4-address.h"
#include "ns3/node.h"
#include "ns3/packet.h"
#include "ns3/random-variable-stream.h"
#include "ns3/sequence-number.h"
#include "ns3/socket.h"
#include "ns3/tcp-header.h"
#include "ns3/tcp-socket-base.h"

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace weir
{

class Group
{
  public:
    Group(const std::string& name, const std::string& congestionControl, uint16_t port);

    // ns-3 takes the congestion control of a node's sockets from the node's TCP.
    void Listen(ns3::Ptr<ns3::Node> receiver);
    void AddFlows(ns3::Ptr<ns3::Node> sender,
                  ns3::Ipv4Address receiver,
                  const Options& options,
                  ns3::Ptr<ns3::UniformRandomVariable> starts);

    // Excludes the bytes, retransmits and timeouts so far from the report.
    void EndWarmUp();

    // Bytes of payload delivered in order since the warm-up.
    uint64_t Received() const;
    JsonObject Report(double measuredSeconds, uint64_t receivedByAll) const;

  private:
    struct Sender
    {
        ns3::Ptr<ns3::BulkSendApplication> application;
        ns3::SequenceNumber32 highestSent{0};
        uint64_t segments = 0;
        uint64_t retransmits = 0;
        uint64_t timeouts = 0;
    };

    struct Receiver
    {
        uint64_t bytes = 0;
        uint64_t bytesInWarmUp = 0;
    };

    void OnAccept(ns3::Ptr<ns3::Socket> socket, const ns3::Address& from);
    static void OnReceive(Receiver* receiver, ns3::Ptr<ns3::Socket> socket);
    static void Observe(Sender* sender);
    static void OnTransmit(Sender* sender,
                           ns3::Ptr<const ns3::Packet> packet,
                           const ns3::TcpHeader& header,
                           ns3::Ptr<const ns3::TcpSocketBase> socket);
    static void OnCongestionState(Sender* sender,
                                  ns3::TcpSocketState::TcpCongState_t before,
                                  ns3::TcpSocketState::TcpCongState_t now);
    double JainIndex() const;

    std::string m_name;
    ns3::TypeId m_congestionControl;
    uint16_t m_port;
    ns3::Ptr<ns3::Socket> m_listening;
    // Deques: the callbacks hold on to their elements.
    std::deque<Sender> m_senders;
    std::deque<Receiver> m_receivers;
};

} // namespace weir

#endif
