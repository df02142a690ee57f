#!/usr/bin/env python3
"""Counts what a packet of the simulator costs: instructions, cache misses and mispredicted branches, by callgrind.

    bench/sim_instructions.py                    20 DCTCP flows, and 100 DCTCP and 100 CUBIC flows
    bench/sim_instructions.py NAME... FILE...    some of dctcp-20, dctcp-20-delayed, mixed-200, mixed-200-delayed,
                                                 flows-10000, hosts-10000, dcquic-20, fat-tree (some minutes),
                                                 and scenario files

Each case runs for a time and for twice that time; the difference is divided by the packets of the difference, so that
the setup counts for nothing. In the fat tree packets are hops: one more run without callgrind counts them.

The simulated caches have 32 KB in 8 ways for data and as much for instructions (L1), and 1 MB in 16 ways (L2);
branches have callgrind's predictor. The figures do not depend on what else the machine does.

BASE names the binary of another commit, to run beside ours. Build it with the same flag, in a directory of its own:

    RUSTFLAGS="--cfg=rustix_use_libc" CARGO_TARGET_DIR=target/valgrind \\
        cargo bench --locked -p weir-sim --bench speed --no-run

Without the flag, valgrind crashes in rustix's call of the vDSO's clock. MS is the time of the shorter run in
milliseconds, instead of 30; flows start within the first 10. In the fat tree everything is 250 times as fast.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = ROOT / "target" / "valgrind"
TWENTY = {
    "dctcp_hosts": 20,
    "cubic_hosts": 0,
    "flows_per_host": 1,
    "ack_every": 1,
    "buffer_mb": 1.8,
}
MIXED = {**TWENTY, "dctcp_hosts": 10, "cubic_hosts": 10, "flows_per_host": 10}
# The buffer holds the smallest windows of all flows.
FLOWS = {**TWENTY, "dctcp_hosts": 10, "flows_per_host": 1000, "buffer_mb": 100}
CASES = {
    "dctcp-20": TWENTY,
    "dctcp-20-delayed": {**TWENTY, "ack_every": 2},
    "mixed-200": MIXED,
    "mixed-200-delayed": {**MIXED, "ack_every": 2},
    "flows-10000": FLOWS,
    "hosts-10000": {**FLOWS, "dctcp_hosts": 10000, "flows_per_host": 1},
}
# Cases that are scenarios of the benchmark.
SCENARIOS = ("dcquic-20", "fat-tree")
CALLGRIND = [
    "valgrind",
    "--tool=callgrind",
    "--cache-sim=yes",
    "--branch-sim=yes",
    "--I1=32768,8,64",
    "--D1=32768,8,64",
    "--LL=1048576,16,64",
]
# The figures of a row, as sums of callgrind's events.
FIGURES = {
    "instructions": ["Ir"],
    "L1 misses, data": ["D1mr", "D1mw"],
    "L1 misses, instructions": ["I1mr"],
    "L2 misses": ["ILmr", "DLmr", "DLmw"],
    "mispredicted branches": ["Bcm", "Bim"],
}


class Refused(Exception):
    """A binary cannot run a case."""


def build():
    """Returns the path of our binary, built for valgrind."""
    environment = dict(os.environ, CARGO_TARGET_DIR=str(TARGET), RUSTFLAGS="--cfg=rustix_use_libc")
    command = [os.environ.get("CARGO", "cargo"), "bench", *os.environ.get("CARGO_FLAGS", "--locked").split()]
    command += ["-p", "weir-sim", "--bench", "speed", "--no-run", "--message-format=json-render-diagnostics"]
    built = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        sys.exit("the benchmark does not build")
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == "speed":
            return message["executable"]
    sys.exit("cargo did not say where the benchmark's binary is")


def arguments(case, milliseconds, ports):
    """Returns the arguments of a case; `ports` are those that a fat tree measures."""
    if case in CASES:
        return ["--run-case", json.dumps({**CASES[case], "duration_ms": milliseconds})]
    path = str(pathlib.Path(case).resolve())
    if pathlib.Path(case).name == "fat-tree.toml":
        return ["--run-scenario", path, f"duration={4 * milliseconds}us", f"measurements.ports={json.dumps(ports)}"]
    return ["--run-scenario", path, f"duration={milliseconds}ms", "warm_up=0s"]


def output(command):
    """Returns the packets that a run of a binary reports."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode < 0:
        raise Refused(f"it died of signal {-done.returncode}: is it built with --cfg=rustix_use_libc?")
    if done.returncode != 0:
        last = [line for line in done.stderr.splitlines() if line.strip()][-1:]
        raise Refused(f"exit status {done.returncode}: {''.join(last)}")
    if not done.stdout:
        raise Refused("this binary does not know such a case")
    return json.loads(done.stdout)["packets"]


def run(binary, case, milliseconds):
    """Returns the packets of one run and callgrind's counters by event."""
    with tempfile.TemporaryDirectory() as directory:
        counts = pathlib.Path(directory, "counts")
        # Measured ports cost instructions.
        timed = arguments(case, milliseconds, "edge-1-1->host-1-1-1")
        packets = output([*CALLGRIND, f"--callgrind-out-file={counts}", binary, *timed])
        counted = arguments(case, milliseconds, "*")
        if counted != timed:
            packets = output([binary, *counted])
        text = counts.read_text(encoding="utf-8")
    events = re.search(r"^events: (.*)$", text, re.MULTILINE)
    totals = re.search(r"^totals: (.*)$", text, re.MULTILINE)
    if not events or not totals:
        raise Refused("callgrind's output has no totals")
    values = [int(value) for value in totals[1].split()]
    names = events[1].split()
    # Trailing zeros are left out.
    values += [0] * (len(names) - len(values))
    return packets, dict(zip(names, values))


def per_packet(binary, case, milliseconds):
    """Returns the figures of a packet."""
    packets, counters = run(binary, case, milliseconds)
    more_packets, more_counters = run(binary, case, 2 * milliseconds)
    packets = more_packets - packets
    if packets <= 0:
        raise Refused("the longer run has no more packets")
    return {
        name: sum(more_counters[event] - counters[event] for event in events) / packets
        for name, events in FIGURES.items()
    }


def decimals(value):
    if value is None:
        return "–"
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.4f}"


def compare(ours, base, cases, milliseconds):
    """Prints the figures of all cases."""
    print(f"{'per packet':<44}{'ours':>10}{'base':>10}{'ratio':>10}")
    for case in cases:
        name = pathlib.Path(case).stem
        try:
            figures = per_packet(ours, case, milliseconds)
        except Refused as refusal:
            sys.exit(f"{name}: {refusal}")
        theirs = {}
        if base:
            try:
                theirs = per_packet(base, case, milliseconds)
            except Refused as refusal:
                print(f"{name}: the base is left out: {refusal}", file=sys.stderr)
        for figure, value in figures.items():
            other = theirs.get(figure)
            ratio = f"{value / other:.3f}" if other else "–"
            print(f"{name + ': ' + figure:<44}{decimals(value):>10}{decimals(other):>10}{ratio:>10}", flush=True)


def main():
    cases = sys.argv[1:] or ["dctcp-20", "mixed-200"]
    if any(case in ("-h", "--help") for case in cases):
        print(__doc__)
        return
    for case in cases:
        if case not in CASES and case not in SCENARIOS and not pathlib.Path(case).is_file():
            sys.exit(f"{case} is neither a file nor one of {', '.join([*CASES, *SCENARIOS])}")
    base = os.environ.get("BASE") or None
    if base and not pathlib.Path(base).is_file():
        sys.exit(f"BASE={base} is no file")
    try:
        milliseconds = int(os.environ.get("MS", "30"))
    except ValueError:
        sys.exit("MS is no number")
    if milliseconds < 1:
        sys.exit("MS is no positive number")
    if not shutil.which("valgrind"):
        print("SKIPPED: instructions of a packet: no valgrind (apt-get install valgrind)")
        return
    ours = build()
    with tempfile.TemporaryDirectory() as directory:
        for name in SCENARIOS:
            text = subprocess.run([ours, "--print-scenario", name], capture_output=True, check=True).stdout
            pathlib.Path(directory, f"{name}.toml").write_bytes(text)
        cases = [str(pathlib.Path(directory, f"{case}.toml")) if case in SCENARIOS else case for case in cases]
        compare(ours, base, cases, milliseconds)


if __name__ == "__main__":
    main()
