"""A server and a client, and between them SED's agent, with or without a controller: for sed.py."""

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from namespaces import Namespaces

SERVER, CLIENT = "10.67.0.1", "10.67.0.2"
RATE, BUFFER, MARKED_ABOVE = "200Mbps", "512KB", "256KB"
# The ports of the two groups of transfers, and of the endless flows; ignored_window.bpf.c has the last one too.
TRANSFERS, OTHERS, ENDLESS = 8001, 8002, 5201
# Where the agent serves its metrics.
METRICS = 9102

NGINX = """
daemon off; worker_processes 1; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ worker_connections 256; }}
http {{
  access_log off; sendfile on; tcp_nopush on;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen {server}:8001; listen {server}:8002; root {folder}/files; }}
}}
"""


class Network:
    """Three namespaces in a row, with nginx, iperf3's servers and the agent running in them.

    `dctcp` is the name of Weir's DCTCP in the kernel, for use at both ends instead of CUBIC.
    """

    def __init__(self, weir, is_controlled, dctcp):
        self.weir, self.is_controlled = weir, is_controlled
        self.folder = tempfile.TemporaryDirectory(prefix="weir-bench-sed-")
        self.path = Path(self.folder.name)
        self.spaces = Namespaces(*(f"{name}{int(is_controlled)}" for name in ("server", "middle", "client")))
        self.server, self.middle, self.client = self.spaces.names
        self.dctcp = dctcp
        self.is_ignoring = False
        self.processes = []

    def __enter__(self):
        self.spaces.__enter__()
        try:
            self.set_up()
        except BaseException:
            self.__exit__()
            raise
        return self

    def set_up(self):
        self.spaces.join(self.server, "eth0", self.middle, "lan0")
        self.spaces.join(self.middle, "wan0", self.client, "eth0")
        self.spaces.address(self.server, "eth0", f"{SERVER}/24")
        self.spaces.address(self.client, "eth0", f"{CLIENT}/24")
        for name in (self.server, self.client):
            # Super-packets of 64 KB are a good part of the queue.
            self.spaces.run(name, "ip link set eth0 gso_max_segs 4")
            self.spaces.run(name, "sysctl -qw net.ipv4.tcp_no_metrics_save=1")
            if self.dctcp:
                # A namespace begins with CUBIC, and is not allowed to go back to it.
                self.spaces.run(name, f"sysctl -qw net.ipv4.tcp_congestion_control={self.dctcp} net.ipv4.tcp_ecn=1")
        (self.path / "files").mkdir()
        os.chmod(self.path, 0o755)
        (self.path / "nginx.conf").write_text(NGINX.format(folder=self.path, server=SERVER))
        self.start(self.server, ["nginx", "-c", str(self.path / "nginx.conf"), "-p", str(self.path)])
        for name in (self.server, self.client):
            for port in range(ENDLESS, ENDLESS + 2):
                self.start(name, ["iperf3", "-s", "-p", str(port)])
        subprocess.run([self.weir, "sed", "certificates", self.path / "certificates", "--switch", "tor1"],
                       check=True, stdout=subprocess.DEVNULL)
        if self.is_controlled:
            self.rules = self.path / "deadlines.toml"
            self.rules.write_text("rules = []\n")
            options = os.environ.get("SED_OPTIONS", "").split()
            self.controller = self.start(self.middle, [
                self.weir, "sed", "controller", "--listen", "9600", "--certificates", self.path / "certificates",
                "--state", self.path / "state", "--rules", self.rules, *options])
        agent = [self.weir, "sed", "agent", "--inline", "lan0", "wan0", "--rate", RATE, "--buffer", BUFFER,
                 "--ecn-threshold", MARKED_ABOVE, "--name", "tor1", "--controllers", "127.0.0.1", "--fail-closed",
                 "--metrics", METRICS, "--certificates", self.path / "certificates"]
        self.start(self.middle, agent)
        self.wait_until(lambda: not self.is_controlled or self.is_attached())

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            process.wait()
        self.spaces.__exit__()
        self.folder.cleanup()

    def command(self, name, words):
        return ["ip", "netns", "exec", self.spaces.names[name], *map(str, words)]

    def start(self, name, words):
        with open(self.path / "log", "a") as log:
            process = subprocess.Popen(self.command(name, words), stdout=log, stderr=log)
        self.processes.append(process)
        return process

    def status(self):
        words = [self.weir, "sed", "status", "--json", "--controller", "127.0.0.1",
                 "--certificates", self.path / "certificates"]
        shown = subprocess.run(self.command(self.middle, words), capture_output=True, text=True)
        return json.loads(shown.stdout) if shown.returncode == 0 else None

    def is_attached(self):
        status = self.status()
        return status is not None and any(switch["attached"] for switch in status["switches"])

    def wait_until(self, condition):
        until = time.monotonic() + 20
        while not condition():
            if time.monotonic() > until:
                raise SystemExit(f"not ready in 20 s; {(self.path / 'log').read_text()}")
            time.sleep(0.05)

    def waits(self):
        """How often a sender of either end has waited for a timer: for a SYN, data, or the probe of a closed window."""
        counts = dict.fromkeys(("TCPSynRetrans", "TCPTimeouts", "TCPWinProbe"), 0)
        for name in (self.server, self.client):
            words = self.command(name, ["cat", "/proc/net/netstat"])
            shown = subprocess.run(words, check=True, capture_output=True, text=True).stdout
            names, values = (line.split() for line in shown.splitlines() if line.startswith("TcpExt:"))
            for key, value in zip(names, values):
                if key in counts:
                    counts[key] += int(value)
        return counts

    def policed(self):
        """How many packets the agent has dropped since their senders ignored their windows."""
        words = ["curl", "--silent", f"http://127.0.0.1:{METRICS}/metrics"]
        shown = subprocess.run(self.command(self.middle, words), check=True, capture_output=True, text=True)
        lines = (line.split() for line in shown.stdout.splitlines())
        return next(int(words[1]) for words in lines if words[0] == "weir_sed_agent_policed_packets_total")

    def ignore_windows(self, is_ignoring):
        """Has the server's kernel ignore the windows of the endless flows that it sends, or obey them."""
        if self.is_ignoring:
            self.spaces.run(self.server, "tc qdisc delete dev eth0 clsact")
        self.is_ignoring = is_ignoring
        if is_ignoring:
            program, source = self.path / "ignored_window.o", Path(__file__).with_name("ignored_window.bpf.c")
            include = f"-I/usr/include/{os.uname().machine}-linux-gnu"
            subprocess.run(["clang", "-O2", "-target", "bpf", include, "-c", source, "-o", program], check=True)
            self.spaces.run(self.server, "tc qdisc add dev eth0 clsact")
            self.spaces.run(self.server, f"tc filter add dev eth0 ingress bpf direct-action object-file {program} section tc")

    def prepare(self, mix):
        """Sets the files that nginx serves, the deadlines, and whether windows are ignored."""
        self.ignore_windows(mix.is_ignoring)
        rules = []
        for transfers in mix.transfers:
            with open(self.path / "files" / str(transfers.port), "wb") as file:
                file.truncate(transfers.size)
            rules.append(f'[[rules]]\nfrom_port = {transfers.port}\nsize = "{transfers.size}B"\n'
                         f'deadline = "{transfers.deadline}ms"\n')
        if mix.is_ruled:
            rules += [f'[[rules]]\nto_port = {ENDLESS}\nsize = "250MB"\ndeadline = "60s"\n']
        if self.is_controlled:
            self.rules.write_text("\n".join(rules))
            # `ip netns exec` replaces itself by the command.
            self.controller.send_signal(signal.SIGHUP)
            time.sleep(0.1)

    def endless(self, name, address, streams):
        if streams == 0:
            return []
        words = ["iperf3", "-c", address, "-p", ENDLESS, "-P", streams, "-t", 60]
        return [subprocess.Popen(self.command(name, words), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)]

    def run(self, mix):
        """Runs a mix once; returns how many transfers missed their deadline."""
        background = self.endless(self.server, CLIENT, mix.forth) + self.endless(self.client, SERVER, mix.back)
        begun = time.monotonic()
        clients = []
        for transfers in mix.transfers:
            time.sleep(max(0.0, begun + transfers.start - time.monotonic()))
            url = f"http://{SERVER}:{transfers.port}/{transfers.port}?[1-{transfers.count}]"
            words = ["curl", "--silent", "--output", "/dev/null", "--parallel", "--parallel-immediate",
                     "--parallel-max", 100, "--max-time", 20, "--write-out", "%{time_total} %{size_download}\n", url]
            clients.append((transfers, subprocess.Popen(self.command(self.client, words), stdout=subprocess.PIPE,
                                                        stderr=subprocess.DEVNULL, text=True)))
        missed, slowest = 0, 0.0
        for transfers, client in clients:
            lines = [line.split() for line in client.communicate()[0].splitlines()]
            times = [float(spent) for spent, size in lines if int(float(size)) == transfers.size]
            missed += transfers.count - sum(spent * 1000 <= transfers.deadline for spent in times)
            slowest = max([slowest, *times])
        for process in background:
            process.send_signal(signal.SIGINT)
        for process in background:
            process.wait()
        return missed, slowest
