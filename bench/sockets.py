"""The part `cgroup` of enforce.py: nginx and wrk, responses of 1 KB, with and without `weir enforce --cgroup`.

nginx is in a control group of its own. Both cases end up with one algorithm (see `ALGORITHM`): without weir it is the
namespace's own; with weir that is Reno, and a rule sets it and an initial window in each socket. In a third case the
rule sets a highest rate too, beyond what the link carries: then the kernel paces each connection by timers, which takes
time of its own. A round measures all three, in an order of its own. Then the kernel counts the time that the programs
take per connection (kernel.bpf_stats_enabled).
"""

import contextlib
import os
import shutil
import tempfile
from functools import partial
from pathlib import Path

import small_requests
from namespaces import Enforcer, Namespaces

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
            small_requests.compare(spaces, cases)
            cost(weir, spaces, group, RULES, "1 rule")
            cost(weir, spaces, group, PACED, "1 rule with `max_rate`")
            cost(weir, spaces, group, rules(100), "the last of 100 rules")
            owner = RULES + 'user = "root"\n'
            cost(weir, spaces, group, owner, "1 rule with `user`")
    print("wanted: kept connections within the interval, at most 2 % fewer new ones, below 3000 ns")
