#!/usr/bin/env python3
"""Simulates the paper's observations on buffer sharing and writes their tables into docs/validation.md.

    bench/buffer_sharing.py            print the tables (ten minutes on two cores)
    bench/buffer_sharing.py --write    also write them between the markers of the page

Each figure is the median of three seeds. It needs a release build.
"""

import argparse
import concurrent.futures
import json
import os
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
WEIR = ROOT / "target" / "release" / "weir"
PAGE = ROOT / "docs" / "validation.md"
BEGIN = "<!-- Written by bench/buffer_sharing.py. -->"
END = "<!-- End of what bench/buffer_sharing.py writes. -->"
SEEDS = (1, 2, 3)
# Line rate: the start, which averages leave out, and the end.
SPANS = {"1Gbps": ("10s", "30s"), "5Gbps": ("6s", "20s"), "25Gbps": ("4s", "12s")}
ECN_THRESHOLDS_KB = (20, 100, 400, 800)
DROP_THRESHOLDS_KB = (200, 600, 1000, 1800)
USUAL = {"ecn": 100, "low": 1000, "high": 1000}
# Rate, flows of each kind, DCTCP's minimum window in segments, segments of an ACK.
ROWS = [
    (rate, flows, window, every)
    for rate in SPANS
    for flows in (100, 10)
    for window, every in ((2, 2), (1, 2), (1, 1))
    if flows == 100 or (every == 2 and rate != "25Gbps")
]


def simulate(case):
    """Returns CUBIC's share, drops, the mean queue in bytes and the utilization of one run."""
    (rate, flows, window, every), ecn, low, high, seed = case
    begin, end = SPANS[rate]
    settings = {
        "parameters.line_rate": rate,
        "parameters.cubic_rtt": "25ms",
        "parameters.flows_per_sender": flows // 10,
        "parameters.ecn_threshold": f"{ecn}KB",
        "parameters.red_min": f"{low}KB",
        "parameters.red_max": f"{high}KB",
        "groups.dctcp.congestion.min_window": window,
        "groups.dctcp.tcp.ack_every": every,
        "warm_up": begin,
        "duration": end,
    }
    command = [WEIR, "run", "buffer-sharing", "--json", "--no-variants", "--seed", str(seed)]
    for key, value in settings.items():
        command += ["--set", f"{key}={value}"]
    output = subprocess.run(command, check=True, capture_output=True, cwd=ROOT).stdout
    summary = json.loads(output)
    port = summary["ports"]["bottleneck"]
    share = summary["groups"]["cubic"]["share"]
    return share, sum(port["drops"].values()), port["queue_mean_bytes"], port["utilization"]


def cases():
    for row in ROWS:
        for ecn in ECN_THRESHOLDS_KB:
            yield row, ecn, 1000, 1000
        for drop in DROP_THRESHOLDS_KB:
            yield row, 100, drop, drop
        yield row, 100, 200, 1000


def medians():
    """Returns the medians of all cases over the seeds."""
    every = list(dict.fromkeys(cases()))
    runs = [(*case, seed) for case in every for seed in SEEDS]
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = dict(zip(runs, pool.map(simulate, runs)))
    found = {}
    for case in every:
        per_seed = [results[(*case, seed)] for seed in SEEDS]
        found[case] = tuple(statistics.median(values) for values in zip(*per_seed))
    spread = {case: [results[(*case, seed)][0] for seed in SEEDS] for case in every}
    return found, spread


def head(row):
    rate, flows, window, every = row
    acks = "each" if every == 1 else "delayed"
    return f"| {rate[:-4]} Gbps | {flows} + {flows} | {window} | {acks} |"


def tables(found):
    lines = [
        "**CUBIC's share in percent, over the ECN threshold K** (drop-tail at 1000 KB):",
        "",
        "| rate | flows | w | acks | K = 20 | 100 | 400 | 800 KB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in ROWS:
        shares = [found[row, ecn, 1000, 1000][0] for ecn in ECN_THRESHOLDS_KB]
        lines.append(head(row) + "".join(f" {share * 100:.1f} |" for share in shares))
    lines += [
        "",
        "**CUBIC's share in percent, over the drop-tail threshold** (K = 100 KB; drops and mean queue in KB",
        "in brackets):",
        "",
        "| rate | flows | w | acks | 200 KB | 600 KB | 1000 KB | 1800 KB |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in ROWS:
        cells = [found[row, 100, drop, drop] for drop in DROP_THRESHOLDS_KB]
        texts = [f" {share * 100:.1f} ({drops:.0f}; {queue / 1000:.0f}) |" for share, drops, queue, _ in cells]
        lines.append(head(row) + "".join(texts))
    lines += [
        "",
        "**RED from 200 to 1000 KB beside drop-tail at 1000 KB** (K = 100 KB):",
        "",
        "| rate | flows | w | acks | drops: tail → RED | mean queue: tail → RED | CUBIC: tail → RED | utilization: tail → RED |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in ROWS:
        tail, red = found[row, 100, 1000, 1000], found[row, 100, 200, 1000]
        lines.append(
            head(row) + f" {tail[1]:.0f} → {red[1]:.0f} | {tail[2] / 1000:.0f} → {red[2] / 1000:.0f} KB |"
            f" {tail[0] * 100:.1f} → {red[0] * 100:.1f} % | {tail[3]:.3f} → {red[3]:.3f} |"
        )
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true")
    arguments = parser.parse_args()
    if not WEIR.is_file():
        sys.exit(f"{WEIR} is missing: run `cargo build --locked --release -p weir` first")
    found, spread = medians()
    text = tables(found)
    print(text)
    print("\nCUBIC's share differs by more than two points between seeds:")
    for case, shares in spread.items():
        if max(shares) - min(shares) > 0.02:
            print(case, " ".join(f"{share * 100:.1f}" for share in sorted(shares)))
    if arguments.write:
        page = PAGE.read_text()
        before, rest = page.split(BEGIN)
        after = rest.split(END)[1]
        PAGE.write_text(f"{before}{BEGIN}\n\n{text}\n\n{END}{after}")


if __name__ == "__main__":
    main()
