"""The part `throughput` of enforce.py: one kernel-TCP flow over a veth pair, with and without the programs in turn.

The flow goes on while the programs are off, and they follow it again afterwards. A turn is short, because they give a
flow up that has sent 1 GiB without them.
"""

import contextlib
import os
import random
import signal
import socket
import statistics
import time
from pathlib import Path

from namespaces import Enforcer, Namespaces
from program_switch import ProgramSwitch
from small_requests import CLIENT, CUBIC, PASS, SERVER, interval

PAIRS = int(os.environ.get("BULK_PAIRS", "60"))
TURN, SETTLING = 0.2, 0.06
STATS = Path("/proc/sys/kernel/bpf_stats_enabled")


def send_for_ever(out):
    """Sends until the connection fails, then ends this process."""
    data = bytes(1 << 18)
    with contextlib.suppress(OSError):
        while True:
            out.sendall(data)
    os._exit(0)


@contextlib.contextmanager
def bulk(spaces, sender, receiver, address):
    """The receiving socket of a bulk connection. A separate process sends, because two Python threads would wait
    for each other."""
    with spaces.inside(receiver):
        listener = socket.create_server((address, 0))
    with spaces.inside(sender):
        out = socket.create_connection(listener.getsockname())
    into, _ = listener.accept()
    child = os.fork()
    if child == 0:
        into.close()
        send_for_ever(out)
    out.close()
    into.settimeout(10)
    try:
        yield into
    finally:
        into.close()
        listener.close()
        os.waitpid(child, 0)


def receive(into, seconds):
    """Gbit/s in a time that begins now."""
    buffer, received, begun = bytearray(1 << 18), 0, time.monotonic()
    while True:
        received += into.recv_into(buffer)
        now = time.monotonic()
        if now - begun > seconds:
            return received * 8 / (now - begun) / 1e9


def transfer(spaces, sender, receiver, address, seconds):
    """Goodput in Gbit/s of one bulk connection."""
    with bulk(spaces, sender, receiver, address) as into:
        receive(into, 0.5)
        return receive(into, seconds)


def turns(into, running):
    """Rates with the programs off and on, in pairs of random order."""
    switch, rates = ProgramSwitch(running.process.pid), {False: [], True: []}
    for _ in range(PAIRS):
        for is_on in random.choice([(False, True), (True, False)]):
            switch.set(is_on)
            # A process that does nothing is stopped: it would still read reports.
            running.process.send_signal(signal.SIGCONT if is_on else signal.SIGSTOP)
            receive(into, SETTLING)
            rates[is_on].append(receive(into, TURN))
    switch.set(True)
    running.process.send_signal(signal.SIGCONT)
    return rates[False], rates[True]


def costs(into, running):
    """What programs and process take for each GB."""
    before, cpu, delivered = running.programs(), running.cpu(), running.status()["totals"]["delivered"]
    receive(into, 2)
    cpu, totals = running.cpu() - cpu, running.status()["totals"]
    sent = (totals["delivered"] - delivered) / 1e9
    runs = [(after[0] - first[0], after[1] - first[1]) for first, after in zip(before, running.programs())]
    runs = [(count, nanos) for count, nanos in runs if count]
    each = ", ".join(f"{nanos / count:.0f} ns" for count, nanos in runs)
    nanos = sum(nanos for _, nanos in runs)
    print(
        f"    a run of a program takes {each} (wanted: below 1000), measuring included; for each GB"
        f" {nanos / sent / 1e6:.1f} ms in the programs and {1e3 * cpu / sent:.1f} ms in user space"
    )


def throughput(weir):
    print(f"\nOne kernel-TCP flow over a veth pair, at the sender's interface (eBPF): {PAIRS} pairs of {TURN} s")
    for name, policy in (("all pass", PASS), ("cubic", CUBIC)):
        with Namespaces("server", "client") as spaces:
            spaces.join("server", "eth0", "client", "eth0")
            spaces.address("server", "eth0", f"{SERVER}/16")
            spaces.address("client", "eth0", f"{CLIENT}/16")
            running = Enforcer(weir, spaces, "server", policy, ["-i", "eth0"])
            with bulk(spaces, "server", "client", CLIENT) as into:
                receive(into, 1)
                off, on = turns(into, running)
                changes = [100 * (one / other - 1) for one, other in zip(on, off)]
                low, high = interval(changes)
                print(
                    f"  {name:10} {statistics.median(on):6.2f} Gbit/s, {statistics.median(off):.2f} without:"
                    f" {statistics.median(changes):+.1f} % ({low:+.1f} to {high:+.1f})",
                    flush=True,
                )
                if policy == CUBIC:
                    before = STATS.read_text()
                    STATS.write_text("1")
                    costs(into, running)
                    STATS.write_text(before)
            running.stop()
    print("wanted: within 5 %; medians of the pairs with their 95 % intervals")
