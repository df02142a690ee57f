#!/usr/bin/env python3
"""Measures DCUDP live, beside the kernel's CUBIC on networks that do not mark, and with unequal round trips.

make bench-dcudp runs it (root; half an hour): parts `lab`, `kernel` and `round-trips`, or the parts named.
`lab` is the emulated network of `weir run --live`, with round trips of 0.2 to 20 ms. `kernel` has no emulation:
veth pairs and a token bucket with a byte limit, without any delay. Needs only Python's standard library, `ip`,
`tc` and a `weir`.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

from namespaces import Namespaces, ip

ROOT = Path(__file__).resolve().parent.parent
SECONDS = int(os.environ.get("DCUDP_SECONDS", "10"))
RATES = ["10Mbps", "100Mbps", "200Mbps"]
ROUND_TRIPS = ["200us", "5ms", "20ms"]
BUFFERS = ["32KB", "256KB"]
SERVER = "10.71.2.1"
FIRST_PORT = 9401
HEADER = (f"  {'rate':>7} {'RTT':>5} {'buffer':>6} |{'Mbit/s: DCUDP':>14} {'CUBIC':>7} |{'lost %: DCUDP':>14} {'CUBIC':>6} |"
          f"{'both, share: DCUDP':>19} {'CUBIC':>6} |")


def megabits(rate):
    return float(rate.removesuffix("Mbps"))


def row(rate, rtt, buffer, dcudp, cubic, both, remarks):
    """Prints a row: each flow alone as (Mbit/s, lost in percent), and both together in Mbit/s."""
    shares = [flow / megabits(rate) for flow in both]
    print(f"  {rate:>7} {rtt:>5} {buffer:>6} |{dcudp[0]:14.2f} {cubic[0]:7.2f} |{dcudp[1]:14.2f} {cubic[1]:6.2f} |"
          f"{shares[0]:19.2f} {shares[1]:6.2f} | {remarks}", flush=True)


def run(weir, scenario, settings, *options):
    """The summary of a run."""
    command = [weir, "run", *options, "--json", "--no-variants", ROOT / "scenarios" / f"{scenario}.toml"]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def lab(weir):
    print(f"\nDCUDP and the kernel's CUBIC, alone and beside each other, for {SECONDS} s through the lab's switch"
          f" (drop-tail)\n{HEADER}")
    never = f"{SECONDS - 0.001:.3f}s"
    for rate in RATES:
        for rtt in ROUND_TRIPS:
            for buffer in BUFFERS:
                found, unfaithful = {}, 0
                for alone in ("dcudp", "cubic", "neither"):
                    summary = run(weir, "dcudp-unmarked", {
                        "duration": f"{SECONDS}s",
                        "parameters.rate": rate,
                        "parameters.rtt": rtt,
                        "parameters.buffer": buffer,
                        "parameters.dcudp_start": never if alone == "cubic" else "0s",
                        "parameters.cubic_start": never if alone == "dcudp" else "0s",
                    }, "--live")
                    port, groups = summary["ports"]["bottleneck"], summary["groups"]
                    dropped = sum(port["drops"].values())
                    lost = 100 * dropped / max(1, port["packets"] + dropped)
                    found[alone] = {name: groups[name]["goodput_bps"] / 1e6 for name in groups} | {"lost": lost}
                    unfaithful += not summary["emulation"]["faithful"]
                both = found["neither"]
                row(rate, rtt, buffer,
                    (found["dcudp"]["dcudp"], found["dcudp"]["lost"]),
                    (found["cubic"]["cubic"], found["cubic"]["lost"]),
                    (both["dcudp"], both["cubic"]),
                    f"{unfaithful} of 3 runs NOT FAITHFUL" if unfaithful else "faithful")


class Bottleneck:
    """client - router - server, with a token bucket where the router sends to the server."""

    def __init__(self, spaces, rate, buffer):
        self.spaces = spaces
        spaces.join("client", "eth0", "router", "lan0")
        spaces.join("router", "wan0", "server", "eth0")
        spaces.address("client", "eth0", "10.71.1.1/24")
        spaces.address("router", "lan0", "10.71.1.254/24")
        spaces.address("router", "wan0", "10.71.2.254/24")
        spaces.address("server", "eth0", f"{SERVER}/24")
        spaces.route("client", "10.71.1.254")
        spaces.route("server", "10.71.2.254")
        spaces.run("router", "sysctl -qw net.ipv4.ip_forward=1")
        # The queue counts packets, not what the sender's kernel hands over at once.
        ip(f"-n {spaces.names['client']} link set eth0 gso_max_segs 1")
        size = int(buffer.removesuffix("KB")) * 1000
        spaces.run("router", f"tc qdisc add dev wan0 root tbf rate {megabits(rate):.0f}mbit burst 5kb limit {size}")

    def dropped(self):
        """The packets that the queue has dropped and sent."""
        command = ["ip", "netns", "exec", self.spaces.names["router"], "tc", "-s", "-j", "qdisc", "show", "dev", "wan0"]
        found = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)[0]
        return found["drops"], found["packets"]

    def inside(self, name):
        return ["ip", "netns", "exec", self.spaces.names[name]]


def flows(weir, rate, buffer, transports):
    """Goodput of each transport in Mbit/s, and what the queue dropped of all in percent."""
    with Namespaces("client", "router", "server") as spaces:
        path = Bottleneck(spaces, rate, buffer)
        servers, clients = [], []
        try:
            for number, _ in enumerate(transports):
                command = [*path.inside("server"), weir, "perf", "server", "--one-off", "--json", "--bind", SERVER,
                           "--port", str(FIRST_PORT + number)]
                servers.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True))
                servers[-1].stdout.readline()
            for number, transport in enumerate(transports):
                command = [*path.inside("client"), weir, "perf", "client", SERVER, "--port", str(FIRST_PORT + number),
                           "--transport", transport, "--time", f"{SECONDS}s", "--interval", "0", "--json"]
                command += ["--congestion", "cubic"]
                clients.append(subprocess.Popen(command, stdout=subprocess.PIPE))
            reports = [json.loads(client.communicate()[0]) for client in clients]
            dropped, sent = path.dropped()
        finally:
            for process in clients + servers:
                process.terminate()
                process.wait()
        rates = [report["end"]["sum_received"]["bits_per_second"] / 1e6 for report in reports]
        return rates, 100 * dropped / max(1, dropped + sent)


def kernel(weir):
    print(f"\nThe same for {SECONDS} s through the kernel's token bucket (TBF), `weir perf`, no delay\n{HEADER}")
    for rate in RATES:
        for buffer in BUFFERS:
            (dcudp,), lost = flows(weir, rate, buffer, ["dcudp"])
            (cubic,), lost_by_cubic = flows(weir, rate, buffer, ["tcp"])
            both, _ = flows(weir, rate, buffer, ["dcudp", "tcp"])
            row(rate, "none", buffer, (dcudp, lost), (cubic, lost_by_cubic), both, "")


# Round trips 20 times as long and a tenth of the rate, with thresholds above the batches of live senders.
SLOW = {
    "dumbbell.rate": "100Mbps",
    "dumbbell.queue.ecn_min": "15KB",
    "dumbbell.queue.ecn_max": "60KB",
    "groups.flows.dcudp.rate": "160Mbps",
    "warm_up": "15s",
    "duration": "30s",
} | {f"dumbbell.senders.at{micros}us.rtt": f"{micros * 20}us" for micros in (50, 100, 200, 400, 800)}


def round_trips(weir):
    print("\nFive DCUDP flows with unequal round trips: Jain's index of their goodput, and their share of the link")
    for name, scale, reference in (("1 Gbit/s, 50 to 800 us", {}, "1ms"), ("100 Mbit/s, 1 to 16 ms", SLOW, "20ms")):
        print(f"  {name}")
        for congestion in (f"dcudp-rtt-fair,reference={reference}", "dcudp-proportional"):
            for world in ([], ["--live"]):
                summary = run(weir, "dcudp-rtts", scale | {"parameters.congestion": congestion}, *world)
                found = summary["groups"]["flows"]
                reasons = summary["emulation"]["reasons"] if world else []
                print(f"    {congestion:30} {'live' if world else 'simulated':9} {found['fairness']:.3f}"
                      f" {found['link_share']:.3f} {'; '.join(['NOT FAITHFUL', *reasons]) if reasons else ''}", flush=True)


PARTS = {"lab": lab, "kernel": kernel, "round-trips": round_trips}


def main():
    if len(sys.argv) < 2 or os.geteuid() != 0:
        raise SystemExit(f"usage, as root: {sys.argv[0]} WEIR [{'] ['.join(PARTS)}]")
    weir, *parts = sys.argv[1:]
    unknown = [part for part in parts if part not in PARTS]
    if unknown:
        raise SystemExit(f"there is no part {unknown[0]}; there are {', '.join(PARTS)}")
    for part in parts or PARTS:
        PARTS[part](str(Path(weir).resolve()))


if __name__ == "__main__":
    main()
