"""Write a record of all that users can see, and compare two records.

usage: python -m tools.golden write DIR [--part PART,...] [--only TEXT] [--count N] [--recorded DIR] [--calls-of RECORD]
       python -m tools.golden compare BEFORE AFTER [--part PART,...] [--only TEXT] [--most N]
       python -m tools.golden show NAME [--calls-of RECORD] [--device NAME] [--no-strict]

write     asks this clone's ttsim about recorded and random calls, on two devices, strict and not (plans), about hashes
          of values (values), files for other tools (exports), its command line (commands), sweeps, tunings and designs
          (experiments) and its public names (names), and writes compressed text into a folder. --calls-of takes the
          calls of another record, so that two versions are asked about the same calls whatever their generators draw.
compare   lists differences in classes, with the smallest example of each; exit status 1 if there is any.
show      prints a call, and what ttsim says to it now, to look into a difference in two clones.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

from tools.command import run_tool, tool_parser
from tools.golden.answers import ROOT, answers
from tools.golden.calls import DEVICES, Call, read_calls, recorded_calls
from tools.golden.drawn import ALL, drawn_calls
from tools.golden.record import PARTS, write_record
from tools.golden.store import compare_records, summary

DATA = ROOT / "tests" / "data"


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    options = _parser().parse_args(argv)
    run = {"write": _write, "compare": _compare, "show": _show}[options.command]
    return run(options)


def _parser() -> argparse.ArgumentParser:
    parser = tool_parser("tools.golden", __doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    write = commands.add_parser("write", help="write a record")
    write.add_argument("folder", type=Path, metavar="DIR")
    write.add_argument("--processes", type=int, help="at a time; default: one a core")
    compare = commands.add_parser("compare", help="compare two records")
    compare.add_argument("before", type=Path, metavar="BEFORE")
    compare.add_argument("after", type=Path, metavar="AFTER")
    compare.add_argument("--most", type=int, default=40, help="classes of a part that are shown")
    compare.add_argument("--processes", type=int, help="at a time; default: one a core")
    show = commands.add_parser("show", help="print a call and what ttsim says to it now")
    show.add_argument("name", metavar="NAME", help="such as conv2d/0017")
    show.add_argument("--device", default=DEVICES[0], choices=DEVICES)
    show.add_argument("--no-strict", action="store_true")
    for command in (write, compare):
        command.add_argument("--part", type=_part_names, default=list(PARTS), metavar="PART,...", help=", ".join(PARTS))
        command.add_argument("--only", default="", metavar="TEXT", help="files whose path contains this: conv2d-003")
    for command in (write, show):
        command.add_argument("--count", type=int, default=ALL, help="random calls, about")
        command.add_argument("--recorded", type=Path, default=DATA, metavar="DIR", help="folder of recorded calls")
        command.add_argument("--calls-of", type=Path, metavar="RECORD", help="take the calls of another record")
    return parser


def _part_names(text: str) -> list[str]:
    chosen = text.split(",")
    unknown = [part for part in chosen if part not in PARTS]
    if unknown:
        raise argparse.ArgumentTypeError(f"no part is called {unknown[0]!r}; there are {', '.join(PARTS)}")
    return chosen


def _calls(options: argparse.Namespace) -> list[Call]:
    """The calls of the record."""
    if options.calls_of is not None:
        return read_calls(options.calls_of)
    return [*recorded_calls(options.recorded), *drawn_calls(options.count)]


def _write(options: argparse.Namespace) -> int:
    calls = _calls(options)
    seconds = write_record(options.folder, calls, options.part, only=options.only, processes=options.processes)
    size = sum(path.stat().st_size for path in options.folder.rglob("*") if path.is_file())
    print(f"{len(calls)} calls, {', '.join(options.part)}: {size / 1e6:.1f} MB in {options.folder}, {seconds:.0f} s")
    return 0


def _compare(options: argparse.Namespace) -> int:
    how = {"parts": options.part, "only": options.only, "processes": options.processes}
    differences = compare_records(options.before, options.after, **how)
    for line in summary(differences, most=options.most):
        print(line)
    counts = Counter(difference.part for difference in differences)
    text = ", ".join(f"{part} {counts[part]}" for part in options.part)
    print(f"{len(differences)} differences: {text}")
    return int(bool(differences))


def _show(options: argparse.Namespace) -> int:
    call = next((call for call in _calls(options) if call.name == options.name), None)
    if call is None:
        raise ValueError(f"no call is named {options.name!r}; calls.jsonl of a record has them all")
    strict = not options.no_strict
    print(f"{call.given}\n{call.text}")
    for aspect, text in answers(call, options.device, strict=strict).items():
        print(f"\n== {aspect}\n{text}")
    return 0


if __name__ == "__main__":
    sys.exit(run_tool("tools.golden", main))
