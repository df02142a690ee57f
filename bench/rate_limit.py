"""The part `rate` of enforce.py: `max_rate` of a policy against the rate that is measured.

One flow at 1, 10, 100 Mbps and 1 Gbps, and 20 flows at 1 to 50 Mbps, each for ten seconds from its first byte:
from sockets of the machine, forwarded by a router, and in line.
"""

import os
import select
import socket
import time

from namespaces import Enforcer, Namespaces

SERVER, CLIENT = "10.67.0.1", "10.68.0.2"
MEGABIT = 1_000_000
SINGLE = [1, 10, 100, 1000]
MANY = [1 + round(49 * number / 19) for number in range(20)]
SECONDS = float(os.environ.get("RATE_SECONDS", "10"))
FIRST_PORT = 7000


def policy(rates):
    """A policy with a rule for each rate, by the port that the data comes from."""
    rules = (
        f"[[rules]]\nfrom_port = {FIRST_PORT + number}\n"
        f'congestion = {{ name = "cubic", max_rate = "{rate}Mbps" }}\n'
        for number, rate in enumerate(rates)
    )
    return "\n".join(rules)


def send_all(listeners):
    """Accepts a connection from each listener and sends to all of them until it is killed."""
    poll, sockets = select.epoll(), {}
    for listener in listeners:
        taken, _ = listener.accept()
        taken.setblocking(False)
        sockets[taken.fileno()] = taken
    for number in sockets:
        poll.register(number, select.EPOLLOUT)
    data = bytes(1 << 16)
    while sockets:
        for number, _ in poll.poll():
            try:
                sockets[number].send(data)
            except BlockingIOError:
                pass
            except OSError:
                poll.unregister(number)
                sockets.pop(number).close()


def receive(connections, seconds):
    """Reads from all connections; returns the rate of each in Mbit/s, from its opening."""
    poll, by_number = select.epoll(), {}
    for connection in connections:
        connection.setblocking(False)
        by_number[connection.fileno()] = connection
        poll.register(connection, select.EPOLLIN)
    received, buffer = dict.fromkeys(by_number, 0), bytearray(1 << 18)
    begun = time.monotonic()
    while (left := begun + seconds - time.monotonic()) > 0:
        for number, _ in poll.poll(left):
            received[number] += by_number[number].recv_into(buffer)
    spent = time.monotonic() - begun
    return [received[connection.fileno()] * 8 / spent / MEGABIT for connection in connections]


def measure(spaces, running, rates):
    """The rates that the client measures, and those of `weir enforce status`, for flows from the server."""
    with spaces.inside("server"):
        listeners = [socket.create_server((SERVER, FIRST_PORT + number)) for number in range(len(rates))]
    child = os.fork()
    if child == 0:
        send_all(listeners)
        os._exit(0)
    for listener in listeners:
        listener.close()
    with spaces.inside("client"):
        connections = [socket.create_connection((SERVER, FIRST_PORT + number)) for number in range(len(rates))]
    measured = receive(connections, SECONDS)
    shown = {flow["from"]: flow["measured_rate"] for flow in running.status()["flows"]}
    for connection in connections:
        connection.close()
    os.waitpid(child, 0)
    own = [shown[f"{SERVER}:{FIRST_PORT + number}"] / MEGABIT for number in range(len(rates))]
    return measured, own


def topology(spaces):
    """server - router - client."""
    spaces.join("server", "eth0", "router", "lan0")
    spaces.join("router", "wan0", "client", "eth0")
    spaces.address("server", "eth0", f"{SERVER}/24")
    spaces.address("client", "eth0", f"{CLIENT}/24")


def routed(spaces):
    topology(spaces)
    spaces.address("router", "lan0", "10.67.0.254/24")
    spaces.address("router", "wan0", "10.68.0.254/24")
    spaces.route("server", "10.67.0.254")
    spaces.route("client", "10.68.0.254")
    spaces.run("router", "sysctl -qw net.ipv4.ip_forward=1")


def cabled(spaces):
    spaces.join("server", "eth0", "router", "lan0")
    spaces.join("router", "wan0", "client", "eth0")
    spaces.address("server", "eth0", f"{SERVER}/8")
    spaces.address("client", "eth0", f"{CLIENT}/8")


PLACES = {
    "sockets of the machine": ("server", routed, ["-i", "eth0"]),
    "forwarded": ("router", routed, ["-i", "wan0"]),
    "in line": ("router", cabled, ["--inline", "lan0", "wan0"]),
}


def rate(weir):
    print(f"\n`max_rate` for {SECONDS:.0f} s from the first byte: Mbit/s of payload, and the difference")
    for place, (where, build, arguments) in PLACES.items():
        print(f"  {place}", flush=True)
        for rates in [[rate] for rate in SINGLE] + [MANY]:
            with Namespaces("server", "router", "client") as spaces:
                build(spaces)
                running = Enforcer(weir, spaces, where, policy(rates), arguments)
                try:
                    measured, own = measure(spaces, running, rates)
                finally:
                    running.stop()
            report(rates, measured, own)
    print("wanted: within 5 %, never above by more")


def report(rates, measured, own):
    def errors(found):
        return [100 * (got / rate - 1) for got, rate in zip(found, rates)]

    if len(rates) == 1:
        print(f"    {rates[0]:5} Mbps: {measured[0]:8.3f} ({errors(measured)[0]:+.1f} %), status {own[0]:8.3f}"
              f" ({errors(own)[0]:+.1f} %)", flush=True)
        return
    low, high = min(errors(measured)), max(errors(measured))
    print(f"    {len(rates)} flows at {rates[0]} to {rates[-1]} Mbps: {low:+.1f} to {high:+.1f} %,"
          f" status {min(errors(own)):+.1f} to {max(errors(own)):+.1f} %", flush=True)
