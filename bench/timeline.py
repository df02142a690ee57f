"""The system calls of one request on both sides, in the order of time.

    python3 bench/timeline.py target/release/weir-peers [--transport dcquic] [--phase established] [--size 10000]

The program's own benchmark runs; strace is attached to its client and its server for a moment. Tracing makes
every call slower, so the times say what happens in which order, not how long it takes untraced.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

# Calls per run, enough for some seconds.
ITERATIONS = 400_000
# The client's sends that are shown: a request on an open connection is one.
SENDS = {"established": 1, "handshake": 3, "fresh": 4, "resumed": 4}
# Seconds until both processes measure, and of tracing.
START, TRACE = 3.0, 1.0

CALL = re.compile(r"^(\d+\.\d+) (\w+)\((.*)\)\s+= (-?\w+).*<(\d+\.\d+)>$")


def workers(parent: int) -> list[int]:
    """Returns the worker processes of the benchmark, in the order of their start."""
    children = pathlib.Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
    return [int(child) for child in children]


def trace(processes: list[int], directory: pathlib.Path) -> list[list[tuple[float, str, str, float]]]:
    """Returns the system calls of each process: start in seconds, name, result, duration in seconds."""
    outputs = [directory / str(process) for process in processes]
    tracers = [
        subprocess.Popen(
            ["strace", "-q", "-ttt", "-T", "-s", "0", "-o", output, "-p", str(process)],
            stderr=subprocess.DEVNULL,
        )
        for process, output in zip(processes, outputs)
    ]
    time.sleep(TRACE)
    for tracer in tracers:
        tracer.terminate()
        tracer.wait()
    return [calls(output.read_text()) for output in outputs]


def calls(text: str) -> list[tuple[float, str, str, float]]:
    found = []
    for line in text.splitlines():
        match = CALL.match(line)
        if match:
            start, name, _, result, duration = match.groups()
            found.append((float(start), name, result, float(duration)))
    return found


def one_request(
    sides: dict[str, list[tuple[float, str, str, float]]], count: int
) -> list[tuple[float, str, str, str, float]]:
    """Returns the calls from one send of the client to the one `count` later."""
    client = sides["client"]
    sends = [start for start, name, _, _ in client if name in ("sendmsg", "sendmmsg", "sendto", "writev", "write")]
    if len(sends) < 2 * count + 2:
        sys.exit("error: too few calls were traced; is strace allowed to attach?")
    begin, end = sends[len(sends) // 2], sends[len(sends) // 2 + count]
    merged = [
        (start, side, name, result, duration)
        for side, found in sides.items()
        for start, name, result, duration in found
        if begin <= start < end
    ]
    return sorted(merged)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", help="target/release/weir-peers")
    parser.add_argument("--transport", default="dcquic")
    parser.add_argument("--phase", default="established", choices=["handshake", "fresh", "resumed", "established"])
    parser.add_argument("--size", default="10000", help="bytes of the reply")
    arguments = parser.parse_args()
    if not shutil.which("strace"):
        sys.exit("error: this needs strace: apt-get install strace")
    command = [arguments.program, "latency", "--transports", arguments.transport, "--phases", arguments.phase]
    command += ["--sizes", arguments.size, "--placements", "one", "--iterations", str(ITERATIONS)]
    benchmark = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        time.sleep(START)
        processes = workers(benchmark.pid)
        if len(processes) < 2:
            sys.exit(f"error: {arguments.program} does not measure: try the command itself: {' '.join(command)}")
        with tempfile.TemporaryDirectory() as directory:
            # The servers start first; the last of them is the one for resumed connections.
            server, client = processes[-2], processes[-1]
            traced = trace([client, server], pathlib.Path(directory))
    finally:
        benchmark.terminate()
        benchmark.wait()
    events = one_request({"client": traced[0], "server": traced[1]}, SENDS[arguments.phase])
    begin = events[0][0]
    print(f"{arguments.transport}, {arguments.phase}, {arguments.size} bytes, traced")
    print(f"{'µs':>8}  {'side':6}  {'call':16}  {'result':>8}  {'within µs':>9}")
    for start, side, name, result, duration in events:
        print(f"{(start - begin) * 1e6:8.0f}  {side:6}  {name:16}  {result:>8}  {duration * 1e6:9.0f}")


if __name__ == "__main__":
    main()
