#!/usr/bin/env python3
"""Measures `weir tunnel` beside a direct TCP connection, stunnel (TLS 1.3) and HAProxy (TCP in TLS 1.3).

make bench-tunnel runs it (root; about two minutes). Client and server of each tunnel run in two network namespaces, with
a veth pair of 1500 or 9000 bytes between them. All have the same certificate (P-256). A round measures all four in turn,
in an order of its own, and the table has the medians of the rounds, and their ratios to stunnel's. CPU time is that of
both tunnel processes together, without the applications'. Needs Python's standard library, `ip`, openssl, stunnel4,
haproxy and a `weir`.
"""

import contextlib
import os
import random
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from namespaces import Namespaces

ROUNDS = int(os.environ.get("TUNNEL_ROUNDS", "3"))
SECONDS = float(os.environ.get("TUNNEL_SECONDS", "1.0"))
REQUESTS, SETUPS, IDLE, SIZE = 3000, 150, 400, 100
NEAR, FAR = "10.73.0.1", "10.73.0.2"
APPLICATION, LISTEN, TUNNEL = 7000, 7001, 7002
TICK = os.sysconf("SC_CLK_TCK")


def serve(listener):
    """The application: a connection's first byte asks for echoes of requests, or to count what comes."""
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def answer(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with contextlib.suppress(OSError), connection:
        if connection.recv(1) == b"e":
            while request := connection.recv(SIZE):
                connection.sendall(request)
            return
        buffer, total = bytearray(1 << 20), 0
        while count := connection.recv_into(buffer):
            total += count
        connection.sendall(total.to_bytes(8, "big"))


def connect(address):
    connection = socket.create_connection(address)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return connection


def exchange(connection, request=bytes(SIZE)):
    connection.sendall(request)
    left = SIZE
    while left:
        received = connection.recv(left)
        if not received:
            raise SystemExit("a connection ended early")
        left -= len(received)


def latencies(address):
    """Seconds of each request and reply of one connection."""
    with connect(address) as connection:
        connection.sendall(b"e")
        for _ in range(200):
            exchange(connection)
        found = []
        for _ in range(REQUESTS):
            began = time.perf_counter()
            exchange(connection)
            found.append(time.perf_counter() - began)
        return found


def setups(address):
    """Seconds of a connection with its first reply each."""
    found = []
    for _ in range(SETUPS):
        began = time.perf_counter()
        with connect(address) as connection:
            exchange(connection, b"e" + bytes(SIZE))
            found.append(time.perf_counter() - began)
    return found


def bulk(address, count):
    """Bytes and seconds of some connections that send as fast as they can."""
    totals, data, began = [], bytes(1 << 18), time.perf_counter()

    def send():
        with connect(address) as connection:
            connection.sendall(b"s")
            while time.perf_counter() - began < SECONDS:
                connection.sendall(data)
            connection.shutdown(socket.SHUT_WR)
            totals.append(int.from_bytes(connection.recv(8), "big"))

    threads = [threading.Thread(target=send) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if len(totals) != count:
        raise SystemExit("a connection was lost")
    return sum(totals), time.perf_counter() - began


class Tunnel:
    """Processes that carry connections; none for a direct connection."""

    def __init__(self, name, address, processes=()):
        self.name, self.address, self.processes = name, address, processes

    def cpu(self):
        """CPU seconds, of threads that have ended too."""
        total = 0
        for process in self.processes:
            fields = Path(f"/proc/{process.pid}/stat").read_text().rsplit(")", 1)[1].split()
            total += int(fields[11]) + int(fields[12])
        return total / TICK

    def memory(self):
        """Proportional set sizes in bytes."""
        found = []
        for process in self.processes:
            text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
            found.append(1024 * int(text.split("Pss:", 1)[1].split()[0]))
        return found


def ready(address):
    for _ in range(500):
        with contextlib.suppress(OSError), connect(address) as connection:
            connection.settimeout(2)
            connection.sendall(b"e" + bytes(SIZE))
            if connection.recv(1):
                return
        time.sleep(0.02)
    raise SystemExit(f"nothing answers at {address}")


@contextlib.contextmanager
def started(spaces, folder, weir, kind):
    """Yields a tunnel that is ready."""
    near = ["nsenter", f"--net=/run/netns/{spaces.names['near']}"]
    far = ["nsenter", f"--net=/run/netns/{spaces.names['far']}"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if kind == "direct":
        yield Tunnel(kind, (FAR, APPLICATION))
        return
    if kind == "weir":
        pin = fingerprint(folder)
        server = [weir, "tunnel", "server", "--bind", FAR, "--port", str(TUNNEL), "--no-fallback"]
        server += ["--allow", f"{FAR}:{APPLICATION}", "--certificate", folder / "c.pem", "--key", folder / "k.pem"]
        client = [weir, "tunnel", "client", "--listen", f"{NEAR}:{LISTEN}", "--to", f"{FAR}:{APPLICATION}"]
        client += ["--via", f"{FAR}:{TUNNEL}", "--pin", pin, "--no-fallback", "--local", NEAR]
        client += os.environ.get("TUNNEL_CLIENT", "").split()
        server += os.environ.get("TUNNEL_SERVER", "").split()
    elif kind == "stunnel":
        common = "foreground = yes\npid =\nsslVersion = TLSv1.3\nsocket = l:TCP_NODELAY=1\nsocket = r:TCP_NODELAY=1\n"
        (folder / "stunnel-far").write_text(
            f"{common}[far]\naccept = {FAR}:{TUNNEL}\nconnect = {FAR}:{APPLICATION}\n"
            f"cert = {folder}/c.pem\nkey = {folder}/k.pem\n"
        )
        (folder / "stunnel-near").write_text(
            f"{common}[near]\nclient = yes\naccept = {NEAR}:{LISTEN}\nconnect = {FAR}:{TUNNEL}\n"
            f"verifyPeer = yes\nCAfile = {folder}/c.pem\n"
        )
        server, client = ["stunnel", folder / "stunnel-far"], ["stunnel", folder / "stunnel-near"]
    else:
        common = "global\n maxconn 4000\ndefaults\n mode tcp\n timeout connect 5s\n timeout client 1m\n timeout server 1m\n"
        (folder / "both.pem").write_text((folder / "c.pem").read_text() + (folder / "k.pem").read_text())
        (folder / "haproxy-far").write_text(
            f"{common}listen far\n bind {FAR}:{TUNNEL} ssl crt {folder}/both.pem ssl-min-ver TLSv1.3\n"
            f" server a {FAR}:{APPLICATION}\n"
        )
        (folder / "haproxy-near").write_text(
            f"{common}listen near\n bind {NEAR}:{LISTEN}\n"
            f" server a {FAR}:{TUNNEL} ssl verify required ca-file {folder}/c.pem\n"
        )
        server, client = (["haproxy", "-db", "-f", folder / f"haproxy-{side}"] for side in ("far", "near"))
    processes = [subprocess.Popen([*far, *server], **quiet)]
    try:
        time.sleep(0.3)
        processes.append(subprocess.Popen([*near, *client], **quiet))
        ready((NEAR, LISTEN))
        yield Tunnel(kind, (NEAR, LISTEN), processes)
    finally:
        for process in processes:
            process.kill()
            process.wait()


def fingerprint(folder):
    command = ["openssl", "x509", "-in", folder / "c.pem", "-noout", "-fingerprint", "-sha256"]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return text.split("=", 1)[1].strip()


def measured(tunnel, size, found):
    def note(what, value):
        found.setdefault((what, tunnel.name), []).append(value)

    if size == 1500:
        before = tunnel.cpu()
        note("request and reply of 100 B, p50, µs", 1e6 * statistics.median(latencies(tunnel.address)))
        note("CPU per 1,000 requests, ms", 1e6 * (tunnel.cpu() - before) / (REQUESTS + 200))
        note("new connection and first reply, p50, µs", 1e6 * statistics.median(setups(tunnel.address)))
    for count in (1, 16) if size == 1500 else (1,):
        before = tunnel.cpu()
        total, seconds = bulk(tunnel.address, count)
        connections = "1 connection" if count == 1 else f"{count} connections"
        note(f"{connections}, MTU {size}, Gbit/s", 8e-9 * total / seconds)
        note(f"CPU per GB, {connections}, MTU {size}, s", 1e9 * (tunnel.cpu() - before) / total)


def idle(tunnel, found):
    """Notes the memory of connections without traffic, at the side that takes more."""
    before, connections = tunnel.memory(), []
    for _ in range(IDLE):
        connections.append(connect(tunnel.address))
        exchange(connections[-1], b"e" + bytes(SIZE))
    time.sleep(1)
    grown = max((after - was for after, was in zip(tunnel.memory(), before)), default=0)
    found[("idle connection, the larger side, KB", tunnel.name)] = [grown / IDLE / 1000]
    for connection in connections:
        connection.close()


def table(found):
    kinds = ["direct", "weir", "stunnel", "haproxy"]
    rows = dict.fromkeys(what for what, _ in found)
    print(f"| | {' | '.join(kinds)} | weir / stunnel |\n|---|{'---|' * (len(kinds) + 1)}")
    for what in rows:
        medians = [statistics.median(found.get((what, kind), [0])) for kind in kinds]
        cells = [f"{value:.4g}" if value else "–" for value in medians]
        if what.startswith("request"):
            direct = medians[0]
            ratio = (medians[1] - direct) / max(medians[2] - direct, 1e-9)
            ratio = f"{ratio:.2f} of what is added"
        else:
            ratio = f"{medians[1] / medians[2]:.2f}" if medians[2] else "–"
        print(f"| {what} | {' | '.join(cells)} | {ratio} |")


def main():
    weir = sys.argv[1] if len(sys.argv) > 1 else "target/release/weir"
    kinds = ["direct", "weir", "stunnel", "haproxy"]
    missing = [name for name in ("stunnel", "haproxy", "openssl") if not shutil.which(name)]
    if missing:
        raise SystemExit(f"missing: {', '.join(missing)}")
    found = {}
    with tempfile.TemporaryDirectory() as folder, Namespaces("near", "far") as spaces:
        folder = Path(folder)
        command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=tunnel"
        command = [*command.split(), "-addext", f"subjectAltName=IP:{FAR}", "-keyout", folder / "k.pem", "-out", folder / "c.pem"]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        spaces.join("near", "eth0", "far", "eth0")
        spaces.address("near", "eth0", f"{NEAR}/24")
        spaces.address("far", "eth0", f"{FAR}/24")
        with spaces.inside("far"):
            listener = socket.create_server((FAR, APPLICATION), backlog=1024)
        threading.Thread(target=serve, args=(listener,), daemon=True).start()

        def in_near(work):
            """Threads keep the namespace that they begin in."""
            with spaces.inside("near"):
                work()

        def all_measured():
            for size in (1500, 9000):
                for name in ("near", "far"):
                    spaces.run(name, f"ip link set eth0 mtu {size}")
                for _ in range(ROUNDS):
                    for kind in random.sample(kinds, len(kinds)):
                        with started(spaces, folder, weir, kind) as tunnel:
                            measured(tunnel, size, found)
            for kind in kinds[1:]:
                with started(spaces, folder, weir, kind) as tunnel:
                    idle(tunnel, found)

        in_near(all_measured)
        table(found)


main()
