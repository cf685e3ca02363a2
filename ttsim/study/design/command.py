"""`ttsim design`: its flags, what it does, and what it prints."""

import argparse
import sys
from pathlib import Path
from typing import Any

from ttsim.report.writers.progress import progress
from ttsim.study.design.run import design


def add_design(commands: Any) -> None:
    """Adds the command to what `add_subparsers` gave."""
    parser = commands.add_parser(
        "design",
        help="vary fields of a device against costs",
        description="Works out what layers take on every machine of a space, and what each machine costs, and prints "
        "the machines of which no other is better in time and all costs (docs/design-a-machine.md).",
    )
    parser.add_argument("space", type=Path, metavar="FILE", help="TOML file of a device, a space, costs and layers")
    parser.add_argument(
        "--processes", type=int, metavar="N", help="how many (default: one on each core, where there is much to do)"
    )
    parser.add_argument("--csv", type=Path, metavar="FILE", help="write a table of all machines")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures as JSON")


def design_command(options: argparse.Namespace) -> int:
    """Designs a machine. Returns the exit code: 1 if no machine runs all layers.

    Raises:
        TTSimError: As of `ttsim.design`.
        OSError: A file cannot be read or written.
    """
    with progress("layers") as begin:
        found = design(options.space, processes=options.processes, watch=begin)
    for path, made in ((options.csv, found.to_csv), (options.json, found.to_json)):
        if path is not None:
            path.write_text(made(), encoding="utf-8", newline="")
    sys.stdout.write(f"{found}\n")
    return int(not found.front)
