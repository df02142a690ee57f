#!/usr/bin/env python3
"""Measures the cost of `weir enforce`: kernel TCP between two network namespaces, with and without it.

make bench-enforce runs it (root; some minutes): parts `throughput`, `inline` and `crowd`, or the parts named.
Needs only Python's standard library, `ip` and a `weir` built with --features weir/bpf.
"""

import contextlib
import ctypes
import json
import os
import resource
import select
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SERVER, CLIENT = "10.67.0.1", "10.67.0.2"
CUBIC = '[[rules]]\ncongestion = "cubic"\n'
PASS = "[[rules]]\npass = true\n"
RUNS, SECONDS = 10, 2.0
FLOWS, ACTIVE = 20_000, 1_000


CLONE_NEWNET = 0x4000_0000
LIBC = ctypes.CDLL(None, use_errno=True)


def enter(namespace):
    """Moves this thread to a network namespace (os.setns needs Python 3.12)."""
    if LIBC.setns(namespace, CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "setns")


def ip(words):
    subprocess.run(["ip", *words.split()], check=True)


class Namespaces:
    """Network namespaces with these names, deleted on exit."""

    def __init__(self, *names):
        self.names = {name: f"weir-bench-{os.getpid()}-{name}" for name in names}

    def __enter__(self):
        for name in self.names.values():
            ip(f"netns add {name}")
            ip(f"-n {name} link set lo up")
        return self

    def __exit__(self, *_):
        for name in self.names.values():
            subprocess.run(["ip", "netns", "delete", name], check=False)

    def join(self, one, its, other, theirs):
        one, other = self.names[one], self.names[other]
        ip(f"-n {one} link add {its} type veth peer name {theirs} netns {other}")
        ip(f"-n {one} link set {its} up")
        ip(f"-n {other} link set {theirs} up")

    def address(self, name, interface, address):
        ip(f"-n {self.names[name]} address add {address} dev {interface}")

    @contextlib.contextmanager
    def inside(self, name):
        """Within this context, sockets of this thread open in the namespace."""
        own = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
        there = os.open(f"/run/netns/{self.names[name]}", os.O_RDONLY)
        try:
            enter(there)
            yield
        finally:
            enter(own)
            os.close(own)
            os.close(there)


class Enforcer:
    """A running `weir enforce`."""

    def __init__(self, weir, spaces, where, policy, arguments):
        self.folder = tempfile.TemporaryDirectory()
        folder = Path(self.folder.name)
        (folder / "policy.toml").write_text(policy)
        self.weir, self.socket = weir, str(folder / "weir.sock")
        command = ["ip", "netns", "exec", spaces.names[where], weir, "enforce", *arguments]
        command += ["--policy", str(folder / "policy.toml"), "--control", self.socket]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        if not self.process.stdout.readline():
            raise SystemExit("weir enforce did not start; was it built with --features weir/bpf?")

    def status(self):
        command = [self.weir, "enforce", "status", "--json", "--control", self.socket]
        return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)

    def cpu(self):
        """CPU seconds of all its threads, user and system."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def programs(self):
        """Run count and run time in nanoseconds of each of its BPF programs."""
        found = {}
        for file in Path(f"/proc/{self.process.pid}/fdinfo").iterdir():
            lines = (line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)
            info = {key: value.strip() for key, value in lines}
            if "run_cnt" in info:
                found[int(info["prog_id"])] = (int(info["run_cnt"]), int(info["run_time_ns"]))
        return [found[key] for key in sorted(found)]

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        self.folder.cleanup()


def send_for_ever(out):
    """Sends until the connection fails, then ends this process."""
    data = bytes(1 << 18)
    with contextlib.suppress(OSError):
        while True:
            out.sendall(data)
    os._exit(0)


def transfer(spaces, sender, receiver, address, seconds):
    """Goodput in Gbit/s of one bulk connection. A separate process sends, because two Python threads would wait
    for each other."""
    with spaces.inside(receiver):
        listener = socket.create_server((address, 0))
    with spaces.inside(sender):
        out = socket.create_connection(listener.getsockname())
    into, _ = listener.accept()
    child = os.fork()
    if child == 0:
        into.close()
        send_for_ever(out)
    out.close()
    buffer, received, begun = bytearray(1 << 18), 0, None
    warm = time.monotonic() + 0.5
    while True:
        received += into.recv_into(buffer)
        now = time.monotonic()
        if begun is None and now > warm:
            begun, received = now, 0
        if begun is not None and now - begun > seconds:
            break
    into.close()
    listener.close()
    os.waitpid(child, 0)
    return received * 8 / (now - begun) / 1e9


def pair(spaces):
    spaces.join("server", "eth0", "client", "eth0")
    spaces.address("server", "eth0", f"{SERVER}/16")
    spaces.address("client", "eth0", f"{CLIENT}/16")


def throughput(weir):
    print("\nOne kernel-TCP flow over a veth pair, at the sender's interface (eBPF)")
    results = {"without": [], "all pass": [], "cubic": []}
    costs = [[0, 0], [0, 0]]
    switch = Path("/proc/sys/kernel/bpf_stats_enabled")
    with Namespaces("server", "client") as spaces:
        pair(spaces)
        for _ in range(RUNS):
            for name, policy in (("without", None), ("all pass", PASS), ("cubic", CUBIC)):
                running = policy and Enforcer(weir, spaces, "server", policy, ["-i", "eth0"])
                rate = transfer(spaces, "server", "client", CLIENT, SECONDS)
                results[name].append(rate)
                if running:
                    running.stop()
        before = switch.read_text()
        switch.write_text("1")
        running = Enforcer(weir, spaces, "server", CUBIC, ["-i", "eth0"])
        transfer(spaces, "server", "client", CLIENT, SECONDS)
        costs = running.programs()
        running.stop()
        switch.write_text(before)
    base = statistics.median(results["without"])
    for name, rates in results.items():
        rate = statistics.median(rates)
        low, high = min(rates), max(rates)
        print(f"  {name:10} {rate:6.2f} Gbit/s ({low:.2f} to {high:.2f}), {100 * (rate / base - 1):+.1f} %")
    for runs, nanos in costs:
        if runs:
            print(f"  a program of the two: {runs} runs, {nanos / runs:.0f} ns each, measuring included")
    print(f"wanted: within 5 %, below 1000 ns; medians of {RUNS} interleaved runs of {SECONDS} s")


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


PARTS = {"throughput": throughput, "inline": inline, "crowd": crowd}


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
