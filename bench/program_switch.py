"""Switches the BPF programs of a running `weir enforce` off and on by turns, so that both cases share one run.

Rates of one run differ from those of the next by far more than what the programs cost, and drift within it. So short
turns with and without the programs follow each other, and each pair of neighbors is compared. Off, empty programs are
in the place of Weir's (BPF_LINK_UPDATE); the process stays.
"""

import ctypes
import os
import struct
from pathlib import Path

LIBC = ctypes.CDLL(None, use_errno=True)
SYSCALL = {"x86_64": 321, "aarch64": 280}[os.uname().machine]
# Commands of bpf(2), and the size of its attributes that is used here (linux/bpf.h).
PROG_LOAD, PROG_GET_FD_BY_ID, LINK_UPDATE, LINK_GET_FD_BY_ID = 5, 13, 29, 30
ATTRIBUTES = 144
# By the attach type of a link: the program type, and the value of an empty program, which lets all pass.
EMPTY = {46: (3, -1), 47: (3, -1), 3: (13, 1), 22: (25, 1), 2: (9, 1)}


def bpf(command, attributes):
    buffer = ctypes.create_string_buffer(attributes, ATTRIBUTES)
    result = LIBC.syscall(SYSCALL, command, buffer, ATTRIBUTES)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"bpf command {command}")
    return result


def empty_program(attach_type):
    kind, value = EMPTY[attach_type]
    # r0 = value; exit
    code = struct.pack("<BBhi", 0xB7, 0, 0, value) + struct.pack("<BBhi", 0x95, 0, 0, 0)
    code, license = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
    fields = (kind, 2, ctypes.addressof(code), ctypes.addressof(license), 0, 0, 0, 0, 0, b"empty", 0, attach_type)
    return bpf(PROG_LOAD, struct.pack("<IIQQIIQII16sII", *fields))


def fields_of(file):
    lines = (line.split(":", 1) for line in file.read_text().splitlines() if ":" in line)
    return {key: value.strip() for key, value in lines}


class ProgramSwitch:
    """The links of a process at interfaces (tcx) and control groups."""

    def __init__(self, process):
        self.links = []
        for file in Path(f"/proc/{process}/fdinfo").iterdir():
            info = fields_of(file)
            if info.get("link_type") in ("tcx", "cgroup"):
                link = bpf(LINK_GET_FD_BY_ID, struct.pack("<I", int(info["link_id"])))
                program = bpf(PROG_GET_FD_BY_ID, struct.pack("<I", int(info["prog_id"])))
                # `47 (egress)`, or the number alone.
                attach_type = int(info["attach_type"].split()[0])
                self.links.append((link, program, empty_program(attach_type)))
        if not self.links:
            raise SystemExit("no links of BPF programs: this takes tcx (Linux 6.6)")

    def set(self, is_on):
        for link, program, empty in self.links:
            bpf(LINK_UPDATE, struct.pack("<IIII", link, program if is_on else empty, 0, 0))
