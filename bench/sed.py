"""Missed deadlines with and without SED, over the mixes of scenarios/sed-mixes.toml, live and simulated.

`make bench-sed` calls it with the weir binary. RUNS live runs of each of MIXES (all of them), with the controller
and without in turns. SED_OPTIONS are added to the controller's; SHOW=1 prints each live run, with its timeouts. Live,
nginx answers curl beside iperf3, and the agent is between them; the optimum and the simulated counts are of RUNS
seeds. One mix is live only: its endless senders ignore their windows, which the agent has to answer by drops.
"""

import datetime
import json
import os
import subprocess
import sys
import tomllib
from dataclasses import dataclass, replace
from pathlib import Path

import sed_network
from sed_network import Network

ROOT = Path(__file__).resolve().parent.parent
SCENARIO = ROOT / "scenarios" / "sed-mixes.toml"
RUNS = int(os.environ.get("RUNS") or 10)
IGNORING = "-ignoring"
UNITS = {"KB": 1_000, "MB": 1_000_000, "ms": 1, "s": 1_000}


def number(text):
    """A size in bytes, or a time in milliseconds."""
    unit = text.lstrip("0123456789.")
    return round(float(text.removesuffix(unit)) * UNITS[unit])


@dataclass
class Transfers:
    port: int
    count: int
    size: int
    deadline: int
    start: float


@dataclass
class Mix:
    name: str
    congestion: str
    transfers: list
    forth: int
    back: int
    is_ruled: bool
    # Whether the endless flows in the direction of the transfers ignore their windows; the simulator's never do.
    is_ignoring: bool = False

    @property
    def count(self):
        return sum(transfers.count for transfers in self.transfers)

    @property
    def optimum(self):
        """The simulated mix with the same optimum."""
        return self.name.removesuffix(IGNORING)


def mixes():
    """The mixes of the scenario file: its own values, and its variants."""
    document = tomllib.loads(SCENARIO.read_text())
    for name, variant in [("one", {}), *document["variants"].items()]:
        changed = {key.removeprefix("parameters."): value for key, value in variant.items()}
        value = {**document["parameters"], **changed}
        groups = [
            Transfers(sed_network.TRANSFERS, value["flows"], number(value["size"]), number(value["deadline"]),
                      number(value["start"]) / 1000),
            Transfers(sed_network.OTHERS, value["others"], number(value["others_size"]),
                      number(value["others_deadline"]), number(value["others_start"]) / 1000),
        ]
        endless = [value[way] * (number(value[f"{way}_start"]) == 0) for way in ("forth", "back")]
        # What a mix has none of begins when all is over.
        mix = Mix(name, value["congestion"], [group for group in groups if group.start < 4], *endless,
                  any(key.startswith("groups.") for key in variant))
        yield mix
        if name == "five-forth-4":
            yield replace(mix, name=name + IGNORING, is_ignoring=True)


def simulated(weir, is_controlled):
    """Missed deadlines, and the fewest possible, of each mix over RUNS seeds."""
    missed, fewest = {}, {}
    for seed in range(1, RUNS + 1):
        words = [weir, "run", SCENARIO, "--json", "--seed", str(seed)]
        words += ["--set", "sed.rtt=200us"] if is_controlled else []
        summary = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
        for name, run in [("one", summary), *summary["variants"].items()]:
            deadlines = run["deadlines"]
            missed[name] = missed.get(name, 0) + deadlines["missed"]
            fewest[name] = fewest.get(name, 0) + deadlines["fewest_missed"]
    return missed, fewest


def live(weir, chosen, dctcp):
    """Missed deadlines of each of these mixes, without a controller and with one, and the load of this machine meanwhile."""
    totals = {mix.name: [0, 0, 0.0] for mix in chosen}
    if not chosen:
        return totals
    with Network(weir, False, dctcp) as bare, Network(weir, True, dctcp) as controlled:
        for mix in chosen:
            for network in (bare, controlled):
                network.prepare(mix)
            policed = controlled.policed()
            for _ in range(RUNS):
                for index, network in enumerate((bare, controlled)):
                    before = network.waits()
                    missed, slowest = network.run(mix)
                    waits = ", ".join(f"{count - before[name]} {name}" for name, count in network.waits().items())
                    totals[mix.name][index] += missed
                    totals[mix.name][2] = max(totals[mix.name][2], os.getloadavg()[0])
                    if os.environ.get("SHOW"):
                        kind = "SED " if index else "bare"
                        print(f"  {mix.name:<26} {kind} {missed:>3} missed, the last after {slowest:.3f} s; {waits}", flush=True)
            if mix.is_ignoring and controlled.policed() == policed:
                raise SystemExit(f"{mix.name}: no packet was policed: the senders have not ignored their windows")
    return totals


def live_with_both(weir, dctcp, chosen):
    """The same with CUBIC and with Weir's DCTCP at the ends, as the mixes say."""
    totals = live(weir, [mix for mix in chosen if mix.congestion == "cubic"], None)
    others = [mix for mix in chosen if mix.congestion == "dctcp"]
    if others:
        name = f"dctcp{os.getpid() % 100_000}"
        with subprocess.Popen([dctcp, name], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as registered:
            if registered.stderr.readline().strip() != name:
                raise SystemExit("Weir's DCTCP cannot be loaded: build with --features weir-enforce/bpf, run as root")
            totals |= live(weir, others, name)
            registered.stdin.close()
    return totals


def main():
    weir, dctcp = (str(Path(argument).resolve()) for argument in sys.argv[1:3])
    wanted = os.environ.get("MIXES", "").split()
    chosen = [mix for mix in mixes() if not wanted or mix.name in wanted]
    if not chosen:
        raise SystemExit(f"MIXES: there are {' '.join(mix.name for mix in mixes())}")
    print(f"missed deadlines, sums of {RUNS} runs, {datetime.datetime.now():%Y-%m-%d %H:%M}; load: the largest average of a minute")
    print(f"{'':<26} {'':>5} | {'live':^25} | {'simulated':^19}")
    print(f"{'mix':<26} {'flows':>5} | {'without':>7} {'SED':>4} {'most':>6} {'load':>5} | {'without':>7} {'SED':>4} {'optimum':>7}")
    without, fewest = simulated(weir, False)
    controlled, _ = simulated(weir, True)
    totals = {mix.name: None for mix in chosen}
    if os.geteuid() == 0 and os.environ.get("LIVE", "1") != "0":
        totals = live_with_both(weir, dctcp, chosen)
    failures = 0
    for mix in chosen:
        all_flows = mix.count * RUNS
        most = fewest[mix.optimum] + all_flows // 10
        line = f"{mix.name:<26} {all_flows:>5} | "
        bounds = []
        if mix.name in controlled:
            bounds.append((without[mix.name], controlled[mix.name]))
        if totals[mix.name] is not None:
            bare, sed, load = totals[mix.name]
            line += f"{bare:>7} {sed:>4} {min(most, bare):>6} {load:>5.1f}"
            bounds.append((bare, sed))
        else:
            line += f"{'-':>7} {'-':>4} {most:>6} {'-':>5}"
        line += f" | {without.get(mix.name, '-'):>7} {controlled.get(mix.name, '-'):>4} {fewest[mix.optimum]:>7}"
        exceeded = any(sed > min(most, bare) for bare, sed in bounds)
        failures += exceeded
        print(line + ("  too many" if exceeded else ""))
    print(f"{failures} of {len(chosen)} mixes have more than without SED, or than the optimum and a tenth of the flows")
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
