"""The part `switch` of enforce.py: nginx under Weir's DCTCP in one control group, and under CUBIC in another, through a
switch of the live lab that marks.

Each group in turn fills the link with downloads, while wrk asks for responses of 1 KB. Both ends of its connections are
in the group, as DCTCP takes both. Printed are wrk's latencies, what the switch did, and what `ss -ti` says of a download.
"""

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from small_requests import NGINX
from sockets import cgroup_root

SECONDS = int(os.environ.get("SWITCH_SECONDS", "10"))
DOWNLOADS, CONNECTIONS = 4, 4
ALGORITHMS = ("dctcp", "cubic")

SCENARIO = """
title = "Two control groups behind a switch that marks"
source = "bench/marking_switch.py"
duration = "{seconds}s"

[dumbbell]
rate = "200Mbps"
queue = {{ kind = "step", ecn_threshold = "30KB", buffer = "2.4MB" }}

[dumbbell.senders.server]
rate = "1Gbps"
rtt = "200us"

[groups.idle]
from = "server"
to = "receiver"
workload = {{ kind = "request-response", request = "100B", response = "100B", pause = "1s" }}
"""


@contextlib.contextmanager
def lab(weir, folder, seconds):
    """A live run of the scenario; yields the processes of its hosts by name, and a function for its summary."""
    scenario = folder / "switch.toml"
    scenario.write_text(SCENARIO.format(seconds=seconds))
    run = subprocess.Popen(
        [weir, "run", "--live", "--json", str(scenario)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        yield hosts(weir, run), lambda: json.loads(run.communicate()[0])
    finally:
        if run.poll() is None:
            run.send_signal(signal.SIGINT)
            run.communicate()


def hosts(weir, run):
    until = time.monotonic() + 30
    while time.monotonic() < until and run.poll() is None:
        listed = subprocess.run([weir, "lab", "list", "--json"], check=True, capture_output=True).stdout
        for one in json.loads(listed):
            if one["director"] == run.pid and len(one["hosts"]) == 2:
                return {host["name"]: host["process"] for host in one["hosts"]}
        time.sleep(0.2)
    raise SystemExit(f"the live run did not start: {run.stderr.read()}")


@contextlib.contextmanager
def control_groups():
    """A control group for each algorithm, in one of their own."""
    parent = cgroup_root() / f"weir-bench-{os.getpid()}"
    groups = {name: parent / name for name in ALGORITHMS}
    parent.mkdir()
    try:
        for group in groups.values():
            group.mkdir()
        yield parent, groups
    finally:
        for group in (*groups.values(), parent):
            with contextlib.suppress(FileNotFoundError):
                group.rmdir()


@contextlib.contextmanager
def enforced(weir, parent, groups, folder):
    root = cgroup_root()
    rules = (f'[[rules]]\ncgroup = "/{group.relative_to(root)}"\ncongestion = "{name}"\n' for name, group in groups.items())
    (folder / "policy.toml").write_text("\n".join(rules))
    command = [weir, "enforce", "--cgroup", str(parent), "--policy", str(folder / "policy.toml")]
    process = subprocess.Popen([*command, "--control", str(folder / "weir.sock")], stdout=subprocess.PIPE, text=True)
    if not process.stdout.readline():
        raise SystemExit("weir enforce did not start; was it built with --features weir/bpf?")
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()


def command(host, group, *words):
    """A program in a host's network and in a control group."""
    inside = f'echo $$ >{group}/cgroup.procs && exec "$@"'
    return ["nsenter", f"--net=/proc/{host}/ns/net", "sh", "-c", inside, "sh", *words]


def address(host):
    listed = subprocess.run(
        ["nsenter", f"--net=/proc/{host}/ns/net", "ip", "-j", "-4", "address", "show", "scope", "global"],
        check=True, capture_output=True,
    ).stdout
    return json.loads(listed)[0]["addr_info"][0]["local"]


@contextlib.contextmanager
def running(*commands):
    processes = [subprocess.Popen(one, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) for one in commands]
    try:
        yield
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def measure(processes, group, folder):
    """wrk's output beside downloads, and `ss -ti` of a download."""
    server, client = processes["server"], processes["receiver"]
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, address=address(server)))
    url = f"http://{address(server)}"
    download = command(client, group, "curl", "-s", "-o", "/dev/null", f"{url}/large")
    with running(command(server, group, "nginx", "-c", str(folder / "nginx.conf"))):
        time.sleep(0.5)
        with running(*[download] * DOWNLOADS):
            time.sleep(2)
            ask = command(client, group, "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{SECONDS}s", "--latency", f"{url}/small")
            asked = subprocess.run(ask, check=True, capture_output=True, text=True).stdout
            told = subprocess.run(
                ["nsenter", f"--net=/proc/{server}/ns/net", "ss", "-tiH", "state", "established", "( sport = :80 )"],
                check=True, capture_output=True, text=True,
            ).stdout
    return asked, told


def report(name, asked, told, summary):
    latency = {part: re.search(rf"{part}%\s+(\S+)", asked).group(1) for part in ("50", "99")}
    queue = summary["ports"]["bottleneck"]
    largest = max(re.findall(r"^\s+(.*bytes_sent:(\d+).*)$", told, re.MULTILINE), key=lambda line: int(line[1]))[0]
    words = re.findall(r"^\S+|(?<=\s)(?:rtt|cwnd|retrans):\S+", largest)
    mean = queue["queue_mean_bytes"] / 1000
    print(f"  {name:6} 1 KB: {latency['50']} (median), {latency['99']} (p99); queue {mean:.0f} KB in the mean,"
          f" {queue['marks']} marks, {sum(queue['drops'].values())} drops; ss -ti: {' '.join(words)}", flush=True)


def switch(weir):
    missing = [program for program in ("nginx", "wrk", "curl", "ss") if shutil.which(program) is None]
    if cgroup_root() is None:
        missing.append("a mounted cgroup2")
    if missing:
        print(f"\nSKIPPED: the part switch needs {' and '.join(missing)}")
        return
    print(f"\n{CONNECTIONS} connections of wrk beside {DOWNLOADS} downloads from nginx, 200 Mbps, marks beyond 30 KB")
    with tempfile.TemporaryDirectory() as folder, control_groups() as (parent, groups):
        folder = Path(folder)
        folder.chmod(0o755)
        (folder / "small").write_bytes(bytes(1024))
        with (folder / "large").open("wb") as large:
            large.truncate(10_000_000_000)
        with enforced(weir, parent, groups, folder):
            for name, group in groups.items():
                with lab(weir, folder, SECONDS + 6) as (processes, summary):
                    asked, told = measure(processes, group, folder)
                    report(name, asked, told, summary())
    print("wanted: DCTCP keeps the queue at the threshold, and CUBIC fills the buffer")
