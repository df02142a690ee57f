#!/usr/bin/env python3
"""Measures `weir copy` over DCQUIC and DCUDP beside scp and rsync on the same path, between two network namespaces.

make bench-copy runs it (root; some minutes). One path has no limit, the other a token bucket of 200 Mbit/s with 256 KB.
Each tool copies one large file, and a directory of small ones, to an empty directory; files are in memory
(/dev/shm), so that no disk is measured. Needs Python's standard library, `ip`, `tc`, a `weir`, openssh-server,
openssh-client, rsync and openssl. sshd and its keys are this script's own.
"""

import contextlib
import filecmp
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from namespaces import Namespaces

ROUNDS = int(os.environ.get("COPY_ROUNDS", "5"))
LARGE = int(os.environ.get("COPY_MEGABYTES", "1000"))
SMALL_FILES, SMALL_SIZE = 1000, 50_000
SERVER, SSH_PORT = "10.72.0.1", 2222
LIMITED = "tbf rate 200mbit burst 5kb limit 256000"


def quiet(command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Server:
    """A server that runs in a namespace, and is ended on exit."""

    def __init__(self, inside, command, **options):
        self.process = subprocess.Popen([*inside, *command], **options)

    def __enter__(self):
        return self.process

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()


@contextlib.contextmanager
def sshd(inside, folder):
    """Yields the options of ssh for an sshd with keys of its own."""
    for name in ("host", "client"):
        quiet(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name])
    (folder / "sshd_config").write_text(
        f"ListenAddress {SERVER}\nPort {SSH_PORT}\nHostKey {folder}/host\nPidFile none\nUsePAM no\n"
        f"AuthorizedKeysFile {folder}/client.pub\nStrictModes no\nPermitRootLogin prohibit-password\n"
        "PasswordAuthentication no\nSubsystem sftp internal-sftp\n"
    )
    # Where no sshd runs as a service nothing has made the directory that it needs.
    Path("/run/sshd").mkdir(exist_ok=True)
    with Server(inside, [shutil.which("sshd"), "-D", "-f", folder / "sshd_config"], stderr=subprocess.DEVNULL):
        time.sleep(0.5)
        yield ["-i", str(folder / "client"), "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=no",
               "-o", f"UserKnownHostsFile={folder}/known_hosts", "-o", "LogLevel=ERROR"]


@contextlib.contextmanager
def weir_server(weir, inside, target, log, more):
    """Yields when the server listens: then it prints its address."""
    command = [weir, "copy", "serve", str(target), "--bind", SERVER, *more]
    with open(log, "w") as output, Server(inside, command, stdout=output, stderr=subprocess.DEVNULL) as process:
        while not log.stat().st_size:
            if process.poll() is not None:
                raise SystemExit(f"{' '.join(command)} ended")
            time.sleep(0.01)
        yield


@contextlib.contextmanager
def tools(weir, spaces, folder, target):
    """Yields the command of each tool, without the sources."""
    inside = ["ip", "netns", "exec", spaces.names["server"]]
    key = folder / "key"
    key.write_text(subprocess.run(["openssl", "rand", "-hex", "32"], check=True, capture_output=True, text=True).stdout)
    pin = folder / "fingerprint.pem"
    quiet(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
           "-keyout", folder / "private.pem", "-out", pin, "-subj", "/CN=weir", "-days", "2"])
    shown = subprocess.run(["openssl", "x509", "-in", pin, "-noout", "-fingerprint", "-sha256"], check=True,
                           capture_output=True, text=True).stdout
    fingerprint = shown.split("=")[1].strip().replace(":", "").lower()
    with (
        sshd(inside, folder) as options,
        weir_server(weir, inside, target, folder / "dcquic.log",
                    ["--certificate", str(pin), "--key", str(folder / "private.pem")]),
        weir_server(weir, inside, target, folder / "dcudp.log",
                    ["--transport", "dcudp", "--key-file", str(key), "--port", "5204"]),
    ):
        ssh = " ".join(["ssh", "-p", str(SSH_PORT), *options])
        yield {
            "weir copy, DCQUIC": lambda source: [weir, "copy", source, f"{SERVER}:", "--pin", fingerprint],
            "weir copy, DCUDP with a key": lambda source: [
                weir, "copy", source, f"{SERVER}:", "--transport", "dcudp", "--key-file", str(key), "--port", "5204"],
            "scp": lambda source: ["scp", "-q", "-r", "-P", str(SSH_PORT), *options, source, f"root@{SERVER}:{target}"],
            "rsync over ssh": lambda source: ["rsync", "-a", "-e", ssh, source, f"root@{SERVER}:{target}"],
        }


def sources(folder):
    """Files that do not compress: one large, and many small ones."""
    large, small = folder / "large", folder / "small"
    small.mkdir()
    with open(large, "wb") as file:
        for _ in range(LARGE):
            file.write(os.urandom(1_000_000))
    for number in range(SMALL_FILES):
        (small / f"{number:04}").write_bytes(os.urandom(SMALL_SIZE))
    return {
        f"one file of {LARGE} MB": (large, LARGE * 1e6),
        f"{SMALL_FILES} files of {SMALL_SIZE // 1000} KB": (small, SMALL_FILES * SMALL_SIZE),
    }


def is_same(source, copy):
    if source.is_file():
        return filecmp.cmp(source, copy, shallow=False)
    names = sorted(path.name for path in source.iterdir())
    same, _, _ = filecmp.cmpfiles(source, copy, names, shallow=False)
    return len(same) == len(names)


def measure(spaces, command, source, target):
    """The seconds of one copy, after which the files are compared."""
    inside = ["ip", "netns", "exec", spaces.names["client"]]
    begun = time.monotonic()
    quiet([*inside, *command(str(source))])
    spent = time.monotonic() - begun
    copy = target / source.name
    if not is_same(source, copy):
        raise SystemExit(f"{command(str(source))[0]} has copied something else")
    shutil.rmtree(copy) if copy.is_dir() else copy.unlink()
    return spent


def compare(weir, limit, folder):
    target = folder / "in"
    target.mkdir()
    with Namespaces("client", "server") as spaces:
        spaces.join("client", "eth0", "server", "eth0")
        spaces.address("client", "eth0", "10.72.0.2/24")
        spaces.address("server", "eth0", f"{SERVER}/24")
        if limit:
            spaces.run("client", f"tc qdisc add dev eth0 root {limit}")
        with tools(weir, spaces, folder, target) as commands:
            for name, (source, size) in sources(folder).items():
                spent = {tool: [] for tool in commands}
                for _ in range(ROUNDS):
                    for tool, command in commands.items():
                        spent[tool].append(measure(spaces, command, source, target))
                print(f"  {name}")
                for tool, seconds in spent.items():
                    median = statistics.median(seconds)
                    print(f"    {tool:28} {median:7.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
                          f" {size * 8 / median / 1e6:8.0f} Mbit/s", flush=True)


def main():
    if len(sys.argv) != 2 or os.geteuid() != 0:
        raise SystemExit(f"usage, as root: {sys.argv[0]} WEIR")
    weir = str(Path(sys.argv[1]).resolve())
    for title, limit in (("no limit", None), ("200 Mbit/s, 256 KB", LIMITED)):
        print(f"\nveth, {title}: medians of {ROUNDS} interleaved rounds (least and most)")
        with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
            compare(weir, limit, Path(folder))


if __name__ == "__main__":
    main()
