#!/usr/bin/env python3
"""Redis under redis-benchmark, by `weir tunnel` and by plain TCP, while the client's network interface fails.

make bench-tunnel-failover runs it (root; half a minute). Two network namespaces are joined by two veth pairs; the
server's address, which is of neither, is reached by both. redis-benchmark runs at the client with 8 connections,
through the tunnel, whose client has both interfaces, and then directly; after two seconds the first interface is set
down, and two seconds later up again. The server's count of commands is read each 5 ms, by its Unix socket: that gives
the requests per second, and the longest time without one. Prints both, and writes a plot (SVG). Needs Python's
standard library, `ip`, redis-server, redis-benchmark and a `weir`.
"""

import contextlib
import json
import math
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from namespaces import Namespaces, ip

FAR, PORT, LISTEN = "10.74.9.1", 6379, 6380
DOWN, UP, END = 2.0, 4.0, 6.0
PAUSE, BIN, CONNECTIONS = 0.005, 0.05, 8
# What the connection may pause at most, in seconds: the larger of this and 3 PTO + 2 RTT.
REQUIRED = 0.3


class Redis:
    """The count of commands of a server, but for those that ask for it."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(path)
        self.asked = 0

    def commands(self):
        self.socket.sendall(b"INFO stats\r\n")
        text = b""
        while b"total_commands_processed:" not in text or not text.endswith(b"\r\n"):
            text += self.socket.recv(65536)
        self.asked += 1
        field = text.split(b"total_commands_processed:")[1].split(b"\r\n")[0]
        return int(field) - self.asked


def wait_for(path):
    while True:
        with contextlib.suppress(OSError):
            return Redis(path)
        time.sleep(0.02)


def measure(spaces, redis, host, port):
    """The times and counts of commands while redis-benchmark runs and the interface fails, and its exit code."""
    near = spaces.names["near"]
    command = f"ip netns exec {near} redis-benchmark -h {host} -p {port} -c {CONNECTIONS} -n 100000000 -t get -q"
    benchmark = subprocess.Popen(command.split(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    begun = redis.commands()
    while redis.commands() < begun + 1000:
        time.sleep(PAUSE)
    first, samples, steps = time.monotonic(), [], [(DOWN, "down"), (UP, "up")]
    while (now := time.monotonic() - first) < END:
        if steps and now >= steps[0][0]:
            ip(f"-n {near} link set a0 {steps.pop(0)[1]}")
            if not steps:
                routes(spaces, ["a"])
        samples.append((time.monotonic() - first, redis.commands()))
        time.sleep(PAUSE)
    has_ended = benchmark.poll() is not None
    benchmark.kill()
    benchmark.wait()
    return samples, has_ended


def longest_pause(samples):
    """The longest time without a command, between the failure and the end."""
    longest, last_time, last_count = 0.0, None, None
    for at, count in samples:
        if at >= DOWN - 0.1 and count != last_count:
            if last_time is not None:
                longest = max(longest, at - last_time)
            last_time, last_count = at, count
    return max(longest, samples[-1][0] - (last_time or 0.0))


def rates(samples):
    """Thousands of requests per second in each bin."""
    found, begin = [], 0
    for index, (at, count) in enumerate(samples):
        span = at - samples[begin][0]
        if span >= BIN:
            found.append((at, (count - samples[begin][1]) / span / 1e3))
            begin = index
    return found


def routes(spaces, names):
    """Routes to the server's address by each interface; the first is preferred."""
    for metric, name in enumerate(names, 1 if "a" in names else 2):
        number = 1 if name == "a" else 2
        near = spaces.names["near"]
        words = f"{FAR} via 10.74.{number}.2 dev {name}0 metric {metric}"
        subprocess.run(["ip", "-n", near, "route", "replace", *words.split()], check=True)


def topology(spaces):
    for number, name in enumerate("ab", 1):
        spaces.join("near", f"{name}0", "far", f"{name}1")
        spaces.address("near", f"{name}0", f"10.74.{number}.1/24")
        spaces.address("far", f"{name}1", f"10.74.{number}.2/24")
    spaces.address("far", "lo", f"{FAR}/32")
    routes(spaces, ["a", "b"])


def start(spaces, where, weir, words):
    """Starts `weir tunnel`, and returns the process and what it says."""
    command = ["ip", "netns", "exec", spaces.names[where], weir, "tunnel", *words.split(), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return process, json.loads(process.stdout.readline())


def plot(series, path):
    """Writes lines of requests per second as SVG: what ran, its colour, and its rates."""
    width, height, left, bottom, top = 760, 320, 60, 40, 30
    most = math.ceil(max(rate for _, _, found in series for _, rate in found) / 4) * 4

    def place(at, rate):
        x = left + at / END * (width - left - 20)
        return f"{x:.1f},{height - bottom - rate / most * (height - bottom - top):.1f}"

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
    ]
    begin, end = place(DOWN, 0).split(",")[0], place(UP, 0).split(",")[0]
    parts.append(
        f'<rect x="{begin}" y="{top}" width="{float(end) - float(begin):.1f}" '
        f'height="{height - bottom - top}" fill="#eee"/>'
        f'<text x="{float(begin) + 6:.1f}" y="{top + 16}" fill="#555">the first interface is down</text>'
    )
    for step in range(5):
        rate = most * step / 4
        x, y = place(0, rate).split(",")
        parts.append(f'<line x1="{x}" y1="{y}" x2="{width - 20}" y2="{y}" stroke="#ccc"/>')
        parts.append(f'<text x="{left - 6}" y="{float(y) + 4:.1f}" text-anchor="end">{rate:.0f}</text>')
    for second in range(int(END) + 1):
        x = place(second, 0).split(",")[0]
        parts.append(f'<text x="{x}" y="{height - bottom + 18}" text-anchor="middle">{second}</text>')
    parts.append(f'<text x="{width / 2}" y="{height - 6}" text-anchor="middle">seconds</text>')
    parts.append(f'<text x="8" y="{top - 12}">thousands of requests per second</text>')
    for index, (name, colour, found) in enumerate(series):
        points = " ".join(place(at, rate) for at, rate in found if at <= END)
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        parts.append(f'<text x="{width - 200 + 110 * index}" y="{top - 12}" fill="{colour}">{name}</text>')
    Path(path).write_text("\n".join([*parts, "</svg>\n"]))


def main():
    if len(sys.argv) != 3 or os.geteuid() != 0:
        raise SystemExit("usage, as root: tunnel_failover.py WEIR PLOT.svg")
    weir, image = sys.argv[1:]
    with contextlib.ExitStack() as stack:
        spaces = stack.enter_context(Namespaces("near", "far"))
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        topology(spaces)
        path = f"{folder}/redis.sock"
        command = f"ip netns exec {spaces.names['far']} redis-server --bind {FAR} --port {PORT} --save --unixsocket {path}"
        server = subprocess.Popen([*command.split(), "--protected-mode", "no"], stdout=subprocess.DEVNULL)
        stack.callback(server.wait)
        stack.callback(server.kill)
        redis = wait_for(path)
        gate, said = start(spaces, "far", weir, f"server --bind {FAR} --allow {FAR}:{PORT}")
        stack.callback(gate.kill)
        local = "--local 10.74.1.1%a0 --local 10.74.2.1%b0"
        words = f"client --listen {LISTEN} --to {FAR}:{PORT} --via {FAR} --pin {said['fingerprint']} --no-fallback {local}"
        client, _ = start(spaces, "near", weir, f"{words} --control {folder}/client.sock")
        stack.callback(client.kill)
        status = [weir, "tunnel", "status", f"{folder}/client.sock", "--json"]
        series = []
        for name, colour, host, port in (
            ("weir tunnel", "#1f6f8b", "127.0.0.1", LISTEN),
            ("plain TCP", "#c0392b", FAR, PORT),
        ):
            samples, has_ended = measure(spaces, redis, host, port)
            pause = longest_pause(samples)
            series.append((name, colour, rates(samples)))
            before = [rate for at, rate in series[-1][2] if at < DOWN]
            print(
                f"{name}: {sum(before) / len(before):.1f} thousand requests per second before the failure; "
                f"longest pause {pause * 1e3:.0f} ms"
                + ("; redis-benchmark ended early" if has_ended else "")
            )
            if name == "weir tunnel":
                found = json.loads(subprocess.run(status, check=True, capture_output=True).stdout)
                lost = sum(tunnel["lost"] for tunnel in found["tunnels"])
                rtts = [link["rtt_us"] or 0 for link in found["peers"][0]["connections"]]
                print(f"connections lost: {lost}; RTT of the connections {max(rtts) / 1e3:.2f} ms")
                if pause > REQUIRED or lost:
                    print(f"worse than required: no connection lost, and at most {REQUIRED * 1e3:.0f} ms")
        plot(series, image)


if __name__ == "__main__":
    main()
