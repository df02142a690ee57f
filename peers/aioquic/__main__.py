"""Peers over aioquic, for tests of Weir's HTTP/3: see ../README.md."""

import argparse
import asyncio
import sys

import client
import hostile
import server


def main() -> int:
    parser = argparse.ArgumentParser(prog="aioquic", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    one = commands.add_parser("server", help="answers HTTP/3")
    one.add_argument("--listen", default="127.0.0.1:0")
    one.add_argument("--certificate", required=True)
    one.add_argument("--key", required=True)
    for name, text in (("client", "runs cases"), ("hostile", "breaks rules, and prints what the server does")):
        one = commands.add_parser(name, help=text)
        one.add_argument("--to", required=True)
        one.add_argument("--ca", required=True)
        one.add_argument("--name", default="localhost")
        one.add_argument("--case", required=True, help="names with commas between them, or all")
        if name == "hostile":
            one.add_argument("--at-once", type=int, default=1, help="how many cases run at the same time")
    commands.add_parser("cases", help="prints the names of all cases, and what the RFCs ask for in hostile ones")
    options = parser.parse_args()
    if options.command == "server":
        return asyncio.run(server.serve(options.listen, options.certificate, options.key))
    if options.command == "cases":
        print("\n".join([*client.CASES, *hostile.table()]))
        return 0
    names = options.case.split(",")
    if options.command == "client":
        return asyncio.run(client.run(options.to, options.ca, options.name, names))
    return asyncio.run(hostile.run(options.to, options.ca, options.name, names, options.at_once))


if __name__ == "__main__":
    sys.exit(main())
