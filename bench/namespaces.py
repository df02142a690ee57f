"""Network namespaces, and a `weir enforce` that runs in one."""

import contextlib
import ctypes
import json
import os
import signal
import subprocess
import tempfile
from pathlib import Path

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

    def route(self, name, gateway):
        ip(f"-n {self.names[name]} route add default via {gateway}")

    def run(self, name, words):
        subprocess.run(["ip", "netns", "exec", self.names[name], *words.split()], check=True)

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
        # `ip netns exec` would hide the control groups, which weir needs to pace sockets.
        command = ["nsenter", f"--net=/run/netns/{spaces.names[where]}", weir, "enforce", *arguments]
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
