"""`weir tune`: the tuner on the command line."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from weir.errors import TuneError, WeirError
from weir.export import TARGETS, export
from weir.settings import Value
from weir.tuning import Condition, TuneResult, tune
from weir.tuning.objective import BUILT_IN
from weir.tuning.space import path
from weir.tuning.tuner import BATCH, BUDGET

EXAMPLES = """\
examples:
  weir tune --condition line_rate=25Gbps,cubic_rtt=50ms --objective target-share=0.5 --set duration=10s
  weir tune --condition line_rate=5Gbps,cubic_rtt=25ms --condition line_rate=25Gbps,cubic_rtt=50ms,weight=3 \\
      --objective delay --constraint 'share > 0.3' --constraint 'queue_mean < 200KB' --data study
  weir tune … --export sonic --queue 'Ethernet0|3' > config_db.json

Objectives are made small: a built-in one, or an expression over outputs such as 'abs(share - 0.5) +
queue_mean / 1MB'. Standard output has the result, or with --export what the switch loads."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the command line, and returns its exit code."""
    options = _parser().parse_args(arguments)
    try:
        result = _tune(options)
        _print(result, options)
    except WeirError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        return 0
    except KeyboardInterrupt:
        kept = f"; --out {options.out} has what was simulated" if options.out else ""
        print(f"interrupted{kept}", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="weir tune",
        description="Look for the ECN and RED thresholds that suit given traffic, verified by simulation.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--condition", action="append", required=True, metavar="KEY=VALUE,…",
        help="traffic and network that the thresholds have to suit, with weight=N; may be repeated")
    add("--objective", default="target-share=0.5", metavar="EXPRESSION",
        help=f"what is made small: {', '.join(BUILT_IN)}, or an expression over outputs")
    add("--constraint", action="append", default=[], metavar="EXPRESSION",
        help="what has to hold under each condition: 'queue_mean < 200KB'; may be repeated")
    add("--scenario", default="buffer-sharing", metavar="FILE", help="a scenario, a file or one that ships")
    add("--space", action="append", default=[], metavar="KEY=VALUE,…",
        help="values to choose from, instead of the paper's 1,155 settings; may be repeated")
    add("--set", action="append", default=[], metavar="PATH=VALUE", help="another value in all simulations")
    add("--data", metavar="DIR", help="a sweep's dataset to learn from")
    add("--any-version", action="store_true", help="take a dataset of another version of weir's code")
    add("--budget", type=int, default=BUDGET, metavar="N", help="simulations for each condition, at most (%(default)s)")
    add("--batch", type=int, default=BATCH, metavar="N", help="settings to verify in a round (%(default)s)")
    add("--seed", action="append", type=int, default=[], metavar="N", help="of the simulations; may be repeated (1)")
    add("--model", default="gaussian", help="the surrogate's model (%(default)s)")
    add("--early-stop", action="store_true", default=None, help="let simulations end when they are steady")
    add("--jobs", type=int, default=0, metavar="N", help="simulations at a time, instead of one for each core")
    add("--out", metavar="DIR", help="keep what was simulated here, and use it again")
    add("--report", metavar="FILE", help="write an HTML page with pictures")
    add("--json", action="store_true", help="print the result as JSON")
    add("--export", choices=sorted(TARGETS), help="print the thresholds as a switch loads them")
    add("--name", default="weir", help="what the exported profile is called")
    add("--queue", action="append", default=[], metavar="PORT|QUEUE", help="bind the profile to it; may be repeated")
    add("--dialect", choices=["2026", "shared"], help="of SONiC: marking by thresholds of its own, or by those of drops")
    add("--prefer", choices=["marking", "dropping"], help="which thresholds hold where the target has one pair")
    add("--cell", type=int, metavar="BYTES", help="round thresholds down to cells of the chip's buffer")
    add("--device", metavar="NAME", help="the interface for linux-tc")
    return parser


def _tune(options: argparse.Namespace) -> TuneResult:
    space = {path(key): _values(key, values) for key, values in map(_pair, options.space)}
    return tune(
        [_condition(text) for text in options.condition],
        options.objective,
        options.constraint,
        scenario=options.scenario,
        space=space or None,
        data=options.data,
        any_version=options.any_version,
        settings={path(key): value for key, value in map(_pair, options.set)},
        seeds=options.seed or (1,),
        budget=options.budget,
        batch=options.batch,
        model=options.model,
        out=options.out,
        jobs=options.jobs,
        early_stop=options.early_stop,
        progress=lambda text: print(text, file=sys.stderr),
    )


def _print(result: TuneResult, options: argparse.Namespace) -> None:
    if options.report:
        from weir.pictures import tuning_report

        Path(options.report).write_text(tuning_report(result), encoding="utf-8")
        print(f"written to {options.report}", file=sys.stderr)
    if options.export:
        keys = {"queue": "queues", "dialect": "dialect", "prefer": "prefer", "cell": "cell", "device": "device"}
        given = {name: getattr(options, key) for key, name in keys.items() if getattr(options, key)}
        exported = export(options.export, result.profile(options.name), **given)
        for warning in exported.warnings:
            print(f"warning: {warning}", file=sys.stderr)
        print(result.to_text(), file=sys.stderr)
        print(exported.text, end="")
    elif options.json:
        print(json.dumps(result.to_dict(), indent=2))
    else:
        print(result.to_text(), end="")


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip() or not value.strip():
        raise TuneError(f"`{text}` is no key=value: write for example line_rate=25Gbps")
    return key.strip(), value.strip()


def _condition(text: str) -> Condition:
    pairs = dict(map(_pair, text.split(",")))
    weight = pairs.pop("weight", "1")
    try:
        return Condition(pairs, float(weight))
    except ValueError as error:
        raise TuneError(f"weight={weight} is no number") from error


def _values(key: str, text: str) -> list[Value]:
    values: list[Value] = [value.strip() for value in text.split(",") if value.strip()]
    if not values:
        raise TuneError(f"{key}: write values with commas between them: {key}=20KB,40KB,65KB")
    return values


if __name__ == "__main__":
    sys.exit(main())
