"""The part `cgroup` of enforce.py: nginx and wrk, responses of 1 KB, with and without `weir enforce --cgroup`.

nginx is in a control group of its own. Both cases end up with one algorithm (see `ALGORITHM`): without weir it is the
namespace's own; with weir that is Reno, and a rule sets it and an initial window in each socket. Requests on kept
connections are measured in rounds of all cases; in a third one the rule sets a highest rate too, beyond what the link
carries: then the kernel paces each connection by timers. New connections are counted in turns of a quarter of a second
with the programs and without, of one run of wrk (program_switch.py). Then the kernel counts the time that the programs
take per connection (kernel.bpf_stats_enabled).
"""

import contextlib
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from functools import partial
from pathlib import Path

import small_requests
from namespaces import Enforcer, Namespaces
from program_switch import ProgramSwitch

SERVER, CLIENT = small_requests.SERVER, small_requests.CLIENT

def allowed():
    """An algorithm besides Reno that a network namespace may have as its own."""
    names = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control").read_text().split()
    return next((name for name in ("cubic", "bbr") if name in names), None)


ALGORITHM = allowed()
RULES = (
    "[[rules]]\nfrom_port = 80\n"
    f'congestion = {{ name = "{ALGORITHM}", initial_window = 10 }}\n'
)
PACED = RULES.replace("= 10 }", '= 10, max_rate = "30Gbps" }')
SWITCH = Path("/proc/sys/kernel/bpf_stats_enabled")
PAIRS = int(os.environ.get("SOCKET_PAIRS", "150"))
TURN, SETTLING = 0.25, 0.05


def cgroup_root():
    for line in Path("/proc/self/mounts").read_text().splitlines():
        fields = line.split()
        if fields[2] == "cgroup2":
            return Path(fields[1])
    return None


@contextlib.contextmanager
def control_group():
    """A control group, as its directory."""
    directory = cgroup_root() / f"weir-bench-{os.getpid()}"
    directory.mkdir()
    try:
        yield directory
    finally:
        directory.rmdir()


@contextlib.contextmanager
def default(spaces, name):
    """The algorithm of the server's namespace."""
    with spaces.inside("server"):
        Path("/proc/sys/net/ipv4/tcp_congestion_control").write_text(name)
    yield


@contextlib.contextmanager
def by_policy(weir, spaces, group, policy):
    running = Enforcer(weir, spaces, "server", policy, ["--cgroup", str(group)])
    try:
        yield running
    finally:
        running.stop()


@contextlib.contextmanager
def enforced(weir, spaces, group, policy):
    with default(spaces, "reno"), by_policy(weir, spaces, group, policy):
        yield


def opened():
    """The connections that this thread's network namespace has accepted."""
    rows = [line.split() for line in Path("/proc/thread-self/net/snmp").read_text().splitlines()]
    names, values = (row for row in rows if row[0] == "Tcp:")
    return int(dict(zip(names, values))["PassiveOpens"])


def time_on_cpu(processes):
    """Nanoseconds of these processes on a CPU, with the interrupts that came meanwhile."""
    files = (file for process in processes for file in Path(f"/proc/{process}/task").glob("*/schedstat"))
    return sum(int(file.read_text().split()[0]) for file in files)


def turn(processes):
    """New connections per second, and the CPU time of each in nanoseconds."""
    time.sleep(SETTLING)
    first, cpu, begun = opened(), time_on_cpu(processes), time.monotonic()
    time.sleep(TURN)
    count, cpu, span = opened() - first, time_on_cpu(processes) - cpu, time.monotonic() - begun
    return count / span, cpu / count


def new_connections(weir, spaces, group, policy):
    """Prints what new connections cost, by turns with the programs and without."""
    seconds = int(PAIRS * 2 * (TURN + SETTLING + 0.02)) + 3
    found = {False: [], True: []}
    own = Path("/proc/sys/net/ipv4/tcp_congestion_control")
    with default(spaces, "reno"), by_policy(weir, spaces, group, policy) as running, spaces.inside("server"):
        switch = ProgramSwitch(running.process.pid)
        load = subprocess.Popen(small_requests.wrk_command(spaces, False, seconds), stdout=subprocess.DEVNULL)
        processes = [load.pid, *map(int, (group / "cgroup.procs").read_text().split())]
        time.sleep(1)
        for _ in range(PAIRS):
            for is_on in random.choice([(False, True), (True, False)]):
                switch.set(is_on)
                own.write_text("reno" if is_on else ALGORITHM)
                found[is_on].append(turn(processes))
        switch.set(True)
        own.write_text("reno")
        load.wait()
    print(f"  new connections, {PAIRS} pairs of {TURN} s")
    for at, name in enumerate(("per second", "CPU time of each in ns")):
        off, on = ([values[at] for values in found[is_on]] for is_on in (False, True))
        changes = [100 * (one / other - 1) for one, other in zip(on, off)]
        low, high = small_requests.interval(changes)
        print(
            f"    {name}: {statistics.median(off):.0f} without, {statistics.median(on):.0f} with:"
            f" {statistics.median(changes):+.1f} % ({low:+.1f} to {high:+.1f})",
            flush=True,
        )


def cost(weir, spaces, group, policy, name):
    """Prints the time of the programs per connection."""
    before = SWITCH.read_text()
    SWITCH.write_text("1")
    try:
        with default(spaces, "reno"), by_policy(weir, spaces, group, policy) as running:
            small_requests.wrk(spaces, False)
            matched = running.status()["sockets"]["rules"][-1]["matched"]
            nanos = sum(time for _, time in running.programs())
    finally:
        SWITCH.write_text(before)
    print(f"    {name}: {nanos / matched:.0f} ns per connection ({matched}), measuring included", flush=True)


def rules(count):
    """A policy whose last rule is the first that matches."""
    others = "".join(f'[[rules]]\nfrom_port = {port}\ncongestion = "bbr"\n' for port in range(9001, 9000 + count))
    return others + RULES


def sockets(weir):
    missing = [program for program in ("nginx", "wrk") if shutil.which(program) is None]
    if cgroup_root() is None:
        missing.append("a mounted cgroup2")
    if ALGORITHM is None:
        missing.append("CUBIC or BBR")
    if missing:
        print(f"\nSKIPPED: the part cgroup needs {' and '.join(missing)}")
        return
    rounds, seconds = small_requests.ROUNDS, small_requests.SECONDS
    print(f"\n1 KB by HTTP from nginx to wrk at sockets (--cgroup), {rounds} rounds of {seconds} s")
    with (
        Namespaces("server", "client") as spaces,
        tempfile.TemporaryDirectory() as folder,
        control_group() as group,
    ):
        spaces.join("server", "eth0", "client", "eth0")
        spaces.address("server", "eth0", f"{SERVER}/16")
        spaces.address("client", "eth0", f"{CLIENT}/16")
        with small_requests.nginx(spaces, folder, group):
            cases = {
                "without": partial(default, spaces, ALGORITHM),
                ALGORITHM: partial(enforced, weir, spaces, group, RULES),
                "paced": partial(enforced, weir, spaces, group, PACED),
            }
            small_requests.compare(spaces, cases, kinds=(True,))
            new_connections(weir, spaces, group, RULES)
            cost(weir, spaces, group, RULES, "1 rule")
            cost(weir, spaces, group, PACED, "1 rule with `max_rate`")
            cost(weir, spaces, group, rules(100), "the last of 100 rules")
            owner = RULES + 'user = "root"\n'
            cost(weir, spaces, group, owner, "1 rule with `user`")
    print("wanted: kept connections within the interval, at most 2 % fewer new ones, below 3000 ns")
