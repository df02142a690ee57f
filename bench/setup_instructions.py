#!/usr/bin/env python3
"""Counts the instructions of a DCQUIC connection with one call in the engine, on both sides together, by callgrind.

    bench/setup_instructions.py                 a handshake and a known peer
    bench/setup_instructions.py FUNCTIONS       the same, with so many functions that take most

Each case runs twice, the second time with more connections; the difference is divided by their number, so that the
start counts for nothing. The figures do not depend on what else the machine does. Valgrind has no instructions for
SHA-256: cryptography costs more here than it does.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
KINDS = ("handshake", "known-peer")
# Connections of the longer run beyond those of the shorter one.
FEWER, MORE = 20, 120
# What functions are for: the first pattern that matches "file:function" counts.
GROUPS = {
    "benchmark": r"allocation.counter|setup::|benches/setup|std::time|unix::time",
    "allocator": r"malloc|calloc|realloc|\bfree\b|_int_|unlink_chunk|alloc_perturb|__rust_(de)?alloc"
    r"|__rdl_|tcache|sysmalloc|systrim|brk\b",
    "copies": r"memcpy|memmove|memset|memcmp|bcmp",
    "cryptography": r"aws.lc|AWS_LC|rustls|webpki|sha2|hmac|hkdf|x25519|gcm|aesni|aes_hw|curve25519|bignum|OPENSSL"
    r"|CRYPTO_|EVP_|EC_|BN_|p256|ecdsa|zeroize|chacha|digest-|inout-|block-buffer|known_peers/hkdf|fipsmodule",
}


def build():
    """Returns the path of the benchmark."""
    command = [os.environ.get("CARGO", "cargo"), "bench", *os.environ.get("CARGO_FLAGS", "--locked").split()]
    command += ["-p", "weir-quic", "--bench", "setup", "--no-run", "--message-format=json-render-diagnostics"]
    built = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        sys.exit("the benchmark does not build")
    for line in built.stdout.splitlines():
        message = json.loads(line)
        if message.get("executable") and message["target"]["name"] == "setup":
            return message["executable"]
    sys.exit("cargo did not say where the benchmark's binary is")


def count(binary, kind, connections):
    """Returns the instructions of a run by "file:function"."""
    with tempfile.TemporaryDirectory() as directory:
        counts = pathlib.Path(directory, "counts")
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={counts}", binary, "--bench"]
        command += ["--lives", kind, str(connections)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(done.stderr)
        return parse(counts)


def parse(path):
    """Sums the self cost of each function in callgrind's output."""
    names = {"fl": {}, "fn": {}}
    function, file, sums = "", "", {}
    skip = False
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        if named := re.match(r"(fl|fi|fe|fn)=\((\d+)\)(?: (.*))?$", line):
            kind = "fn" if named[1] == "fn" else "fl"
            if named[3] is not None:
                names[kind][named[2]] = named[3]
            name = names[kind][named[2]]
            if named[1] == "fn":
                function = name
            elif named[1] == "fl":
                file = name
        elif named := re.match(r"c(fn|fi|fl)=\((\d+)\)(?: (.*))?$", line):
            if named[3] is not None:
                names["fn" if named[1] == "fn" else "fl"][named[2]] = named[3]
        elif line.startswith("calls="):
            # The next line is the cost of the callee.
            skip = True
        elif re.match(r"[+*\-\d]", line):
            if not skip:
                cost = line.split()
                key = f"{file}:{function}"
                sums[key] = sums.get(key, 0) + int(cost[1] if len(cost) > 1 else 0)
            skip = False
    return sums


def group_of(name):
    return next((group for group, pattern in GROUPS.items() if re.search(pattern, name)), "weir")


def main():
    most = int(sys.argv[1]) if len(sys.argv) > 1 else 0
    binary = build()
    columns = [*GROUPS, "weir"]
    print("thousands of instructions per connection, both sides")
    print(f"{'':12}" + "".join(f"{column:>14}" for column in columns) + f"{'all':>14}")
    for kind in KINDS:
        fewer, more = count(binary, kind, FEWER), count(binary, kind, MORE)
        each = {name: (cost - fewer.get(name, 0)) / (MORE - FEWER) for name, cost in more.items()}
        sums = {column: sum(cost for name, cost in each.items() if group_of(name) == column) for column in columns}
        row = [*sums.values(), sum(sums.values())]
        print(f"{kind:12}" + "".join(f"{figure / 1000:14.1f}" for figure in row))
        for name in sorted(each, key=each.get, reverse=True)[:most]:
            print(f"    {each[name]:10.0f}  {group_of(name):12}  {name}")


if __name__ == "__main__":
    main()
