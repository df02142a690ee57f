#!/usr/bin/env python3
"""Measures the cost of `weir enforce`: kernel TCP between two network namespaces, with and without it.

make bench-enforce runs it (root; some minutes): parts `throughput`, `inline`, `ecn`, `crowd`, `rate`, `requests`,
`turns`, `cgroup` and `switch`, or the parts named.
Needs only Python's standard library, `ip` and a `weir` built with --features weir/bpf.
"""

import json
import os
import resource
import select
import signal
import socket
import statistics
import subprocess
import sys
import time
from pathlib import Path

from bulk import throughput, transfer
from marking_switch import switch
from namespaces import Enforcer, Namespaces
from rate_limit import rate
from request_turns import request_turns
from small_requests import requests
from sockets import sockets

SERVER, CLIENT = "10.67.0.1", "10.67.0.2"
CUBIC = '[[rules]]\ncongestion = "cubic"\n'
PASS = "[[rules]]\npass = true\n"
SECONDS = 2.0
FLOWS, ACTIVE = 20_000, 1_000
ROUNDS = int(os.environ.get("ECN_ROUNDS", "7"))


def pair(spaces):
    spaces.join("server", "eth0", "client", "eth0")
    spaces.address("server", "eth0", f"{SERVER}/16")
    spaces.address("client", "eth0", f"{CLIENT}/16")


def inline(weir):
    print("\nOne kernel-TCP flow through `weir enforce --inline` between two veth pairs")
    rows = (
        ("all pass", PASS, []),
        ("the same, --fail-closed", PASS, ["--fail-closed"]),
        ("cubic", CUBIC, []),
        ("bbr", CUBIC.replace("cubic", "bbr"), []),
    )
    for name, policy, more in rows:
        with Namespaces("server", "middle", "client") as spaces:
            spaces.join("server", "eth0", "middle", "lan0")
            spaces.join("middle", "wan0", "client", "eth0")
            spaces.address("server", "eth0", f"{SERVER}/16")
            spaces.address("client", "eth0", f"{CLIENT}/16")
            running = Enforcer(weir, spaces, "middle", policy, ["--inline", "lan0", "wan0", *more])
            rates = [transfer(spaces, "server", "client", CLIENT, SECONDS) for _ in range(3)]
            totals = running.status()["totals"]["in_line"]
            running.stop()
            kept = f"at most {totals['most_kept_packets']} packets ({totals['most_kept_bytes']} bytes) kept"
            print(
                f"  {name:24} {statistics.median(rates):6.2f} Gbit/s; {kept}, {totals['masked']} lost and mended,"
                f" {totals['full']} without room, {totals['overrun']} unread"
            )
    print("wanted: 5 Gbit/s; medians of 3 runs")


def ecn(weir):
    print(
        f"\nThe same with `net.ipv4.tcp_ecn` 0, 1 and 2 at both ends: medians of {ROUNDS} interleaved runs of 1 s"
    )
    listed = subprocess.run([weir, "algorithms", "--json"], check=True, capture_output=True).stdout
    names = os.environ.get("ECN_ALGORITHMS", "").split() or ["pass", *(one["name"] for one in json.loads(listed))]
    with Namespaces("server", "middle", "client") as spaces:
        spaces.join("server", "eth0", "middle", "lan0")
        spaces.join("middle", "wan0", "client", "eth0")
        spaces.address("server", "eth0", f"{SERVER}/16")
        spaces.address("client", "eth0", f"{CLIENT}/16")
        for name in names:
            policy = PASS if name == "pass" else CUBIC.replace("cubic", name)
            running = Enforcer(weir, spaces, "middle", policy, ["--inline", "lan0", "wan0"])
            rates, costs = ({mode: [] for mode in "012"} for _ in range(2))
            for _ in range(ROUNDS):
                for mode, found in rates.items():
                    for space in ("server", "client"):
                        with spaces.inside(space):
                            Path("/proc/sys/net/ipv4/tcp_ecn").write_text(mode)
                    cpu, begun = running.cpu(), time.monotonic()
                    found.append(transfer(spaces, "server", "client", CLIENT, 1.0))
                    sent = found[-1] * (time.monotonic() - begun)
                    costs[mode].append((running.cpu() - cpu) / sent)
            running.stop()
            rates, costs = ({mode: statistics.median(of[mode]) for mode in of} for of in (rates, costs))
            ratios = ", ".join(
                f"with {mode} {rates[mode] / rates['0']:.2f} of it (CPU time {costs[mode] / costs['0']:.2f})"
                for mode in "12"
            )
            print(f"  {name:18} {rates['0']:6.2f} Gbit/s without ECN; {ratios}", flush=True)
    print("wanted: 0.9 of the rate without ECN; CPU time is that of `weir` per bit, which other load disturbs less")


def receive_all(listeners):
    """Accepts all connections and reads all their data until it is killed."""
    poll, sockets = select.epoll(), {listener.fileno(): listener for listener in listeners}
    for listener in listeners:
        poll.register(listener, select.EPOLLIN)
    accepting = set(sockets)
    while True:
        for number, _ in poll.poll():
            if number in accepting:
                taken, _ = sockets[number].accept()
                sockets[taken.fileno()] = taken
                poll.register(taken, select.EPOLLIN)
            elif not sockets[number].recv(1 << 16):
                poll.unregister(number)


def crowd(weir):
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    flows = min(FLOWS, most - 100)
    print(f"\n{flows} flows, of which {ACTIVE} have traffic (eBPF)", flush=True)
    with Namespaces("server", "client") as spaces:
        pair(spaces)
        running = Enforcer(weir, spaces, "server", CUBIC, ["-i", "eth0"])
        with spaces.inside("client"):
            ports = range(7000, 7004)
            listeners = [socket.create_server((CLIENT, port), backlog=4096) for port in ports]
        receiver = os.fork()
        if receiver == 0:
            receive_all(listeners)
        for listener in listeners:
            listener.close()
        with spaces.inside("server"):
            to = [(CLIENT, port) for port in ports]
            senders = [socket.create_connection(to[number % 4]) for number in range(flows)]
        data = bytes(10_000)

        def send(seconds):
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                for sender in senders[:ACTIVE]:
                    sender.send(data)

        send(2)
        before, cpu, begun = running.status()["totals"], running.cpu(), time.monotonic()
        send(10)
        cpu, wall, after = running.cpu() - cpu, time.monotonic() - begun, running.status()["totals"]
        os.kill(receiver, signal.SIGKILL)
        os.waitpid(receiver, 0)
        running.stop()
        reports = (after["kernel"]["reports"] - before["kernel"]["reports"]) / wall
        rate = (after["delivered"] - before["delivered"]) * 8 / wall / 1e9
        print(
            f"  {after['controlled']} controlled, {rate:.2f} Gbit/s, {reports:.0f} reports/s:"
            f" user space takes {100 * cpu / wall:.1f} % of a core"
        )
    print("wanted: 5 % of a core")


PARTS = {
    "throughput": throughput,
    "inline": inline,
    "ecn": ecn,
    "crowd": crowd,
    "rate": rate,
    "requests": requests,
    "turns": request_turns,
    "cgroup": sockets,
    "switch": switch,
}


def main():
    if os.geteuid() != 0:
        print("SKIPPED: it takes root")
        return
    weir, *wanted = sys.argv[1:] or ["target/release/weir"]
    unknown = [word for word in wanted if word not in PARTS]
    if unknown:
        raise SystemExit(f"there is no part `{unknown[0]}`: {', '.join(PARTS)}")
    for name in wanted or PARTS:
        PARTS[name](os.path.abspath(weir))


main()
