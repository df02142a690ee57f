// The dumbbell of `make bench-sim` in htsim: DCTCP senders, and others with TCP, whose packets one port takes
// to one receiver. See README.md.

#include <sys/resource.h>
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <deque>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include "config.h"
#include "dctcp.h"
#include "ecnqueue.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

namespace {

[[noreturn]] void fail(const std::string& message) {
    std::fprintf(stderr, "dumbbell: %s\n", message.c_str());
    std::exit(1);
}

// The number in a text such as 25Gbps, 100KB or 50us: in bits per second, bytes or seconds.
double number(const std::string& text) {
    static const std::map<std::string, double> factors = {
        {"", 1},    {"Gbps", 1e9}, {"Mbps", 1e6}, {"KB", 1e3}, {"MB", 1e6},
        {"B", 1},   {"s", 1},      {"ms", 1e-3},  {"us", 1e-6}};
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    const auto factor = factors.find(end);
    if (end == text.c_str() || factor == factors.end()) fail("cannot read " + text);
    return value * factor->second;
}

// The port to the receiver. It marks above the ECN threshold when a packet leaves, as htsim does, drops TCP's
// packets above another threshold, and counts the packets that leave.
class Bottleneck : public ECNQueue {
public:
    Bottleneck(double rate, double size, EventList& events, double mark, double drop)
        : ECNQueue(static_cast<linkspeed_bps>(rate), static_cast<mem_b>(size), events, nullptr,
                   static_cast<mem_b>(mark)),
          _drop(static_cast<mem_b>(drop)) {}

    void drop_early(flowid_t flow) {
        if (_drops_early.size() <= flow) _drops_early.resize(flow + 1);
        _drops_early[flow] = true;
    }

    void receivePacket(Packet& packet) override {
        const flowid_t flow = packet.flow_id();
        if (_queuesize > _drop && flow < _drops_early.size() && _drops_early[flow]) {
            packet.free();
            return;
        }
        ECNQueue::receivePacket(packet);
    }

    void completeService() override {
        ++packets;
        ECNQueue::completeService();
    }

    uint64_t packets = 0;

private:
    mem_b _drop;
    std::vector<bool> _drops_early;
};

double cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace

int main(int argc, char** argv) {
    std::map<std::string, double> options = {
        {"line-rate", 25e9},        {"dctcp-rtt", 50e-6},   {"cubic-rtt", 25e-3},
        {"ecn-threshold", 100e3},   {"red-min", 800e3},     {"red-max", 800e3},
        {"buffer", 1.8e6},          {"dctcp-senders", 20},  {"cubic-senders", 0},
        {"flows-per-sender", 1},    {"delayed-acks", 1},    {"socket-buffer", 2e6},
        {"start-window", 10e-3},    {"duration", 1},        {"warm-up", 0}};
    for (int i = 1; i < argc; ++i) {
        const std::string argument = argv[i];
        const size_t equals = argument.find('=');
        if (argument.compare(0, 2, "--") != 0 || equals == std::string::npos) fail("no --name=value: " + argument);
        const auto option = options.find(argument.substr(2, equals - 2));
        if (option == options.end()) fail("no such option: " + argument);
        option->second = number(argument.substr(equals + 1));
    }
    if (options["delayed-acks"] != 1) fail("htsim's receivers acknowledge every packet");
    if (options["red-min"] != options["red-max"]) fail("there is no RED: --red-min must be --red-max");
    if (options["warm-up"] != 0) fail("there is no warm-up");

    // htsim's sources talk on standard output, which is for the result.
    std::cout.setstate(std::ios_base::failbit);
    srand(1);
    EventList& events = EventList::getTheEventList();
    EventList::setEndtime(timeFromSec(options["duration"]));
    Packet::set_packet_size(1500);

    const double rate = options["line-rate"];
    const double delay = 12.5e-6;
    const auto speed = static_cast<linkspeed_bps>(rate);
    const mem_b unlimited = mem_b{1} << 40;
    Bottleneck bottleneck(rate, options["buffer"], events, options["ecn-threshold"], options["red-max"]);
    Pipe to_receiver(timeFromSec(delay), events);
    Queue of_receiver(speed, unlimited, events, nullptr);
    Pipe from_receiver(timeFromSec(delay), events);
    TcpRtxTimerScanner timers(timeFromMs(10.0), events);
    std::deque<Queue> queues;
    std::deque<Pipe> pipes;
    std::deque<Route> routes;

    const auto add = [&](bool dctcp, double rtt) {
        // As in the other simulators: a link of its own there, and one back.
        const simtime_picosec own = timeFromSec(rtt / 2 - delay);
        Queue& there = queues.emplace_back(speed, unlimited, events, nullptr);
        Queue& back = queues.emplace_back(speed, unlimited, events, nullptr);
        Pipe& pipe_there = pipes.emplace_back(own, events);
        Pipe& pipe_back = pipes.emplace_back(own, events);
        for (int flow = 0; flow < options["flows-per-sender"]; ++flow) {
            TcpSrc* source = dctcp ? new DCTCPSrc(nullptr, nullptr, events) : new TcpSrc(nullptr, nullptr, events);
            auto* sink = new TcpSink();
            source->_maxcwnd = static_cast<uint32_t>(options["socket-buffer"]);
            timers.registerTcp(*source);
            if (!dctcp) bottleneck.drop_early(source->getFlowId());
            Route& out = routes.emplace_back();
            for (PacketSink* hop : {static_cast<PacketSink*>(&there), static_cast<PacketSink*>(&pipe_there),
                                    static_cast<PacketSink*>(&bottleneck), static_cast<PacketSink*>(&to_receiver),
                                    static_cast<PacketSink*>(sink)})
                out.push_back(hop);
            Route& in = routes.emplace_back();
            for (PacketSink* hop : {static_cast<PacketSink*>(&of_receiver), static_cast<PacketSink*>(&from_receiver),
                                    static_cast<PacketSink*>(&back), static_cast<PacketSink*>(&pipe_back),
                                    static_cast<PacketSink*>(source)})
                in.push_back(hop);
            source->connect(out, in, *sink, timeFromSec(drand() * options["start-window"]));
        }
    };
    for (int sender = 0; sender < options["dctcp-senders"]; ++sender) add(true, options["dctcp-rtt"]);
    for (int sender = 0; sender < options["cubic-senders"]; ++sender) add(false, options["cubic-rtt"]);

    const double before = cpu_seconds();
    while (EventList::doNextEvent()) {
    }
    const double after = cpu_seconds();
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf("{\"packets\":%llu,\"simulated_s\":%.9f,\"cpu_s\":%.9f,\"peak_rss_bytes\":%llu}\n",
                static_cast<unsigned long long>(bottleneck.packets), options["duration"], after - before,
                static_cast<unsigned long long>(usage.ru_maxrss) * 1024);
}
