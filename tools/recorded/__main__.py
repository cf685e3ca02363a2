"""Repeat recorded runs of the real ttnn.conv_transpose2d on the simulated device and count what agrees.

usage: python -m tools.recorded [DIR] [--only SUBSTRING] [--show N]

DIR (default: tests/data) holds the records and their outputs; tests/data/README.md explains the fields.
"""

import sys
from collections import Counter
from pathlib import Path

from tools.command import run_tool, tool_parser
from tools.recorded.compare import ASPECTS, compare
from tools.recorded.records import DATA, Outputs, read_records, run


def main() -> None:
    """Print how many runs agree, per aspect."""
    parser = tool_parser("tools.recorded", __doc__)
    parser.add_argument("directory", nargs="?", type=Path, default=DATA)
    parser.add_argument("--only", default="", help="runs whose name contains this")
    parser.add_argument("--show", type=int, default=0, help="print the first N differences of each aspect")
    options = parser.parse_args()
    equal, total = Counter[str](), Counter[str]()
    outputs = Outputs(options.directory)
    for record in (record for record in read_records(options.directory) if options.only in record["name"]):
        for aspect, wrong in compare(record, run(record), outputs.of(record)).items():
            total[aspect] += 1
            equal[aspect] += wrong is None
            if wrong is not None and total[aspect] - equal[aspect] <= options.show:
                print(f"{record['set']}/{record['name']} {aspect}: {wrong}")
    print(", ".join(f"{aspect} {equal[aspect]}/{total[aspect]}" for aspect in ASPECTS if total[aspect]))


if __name__ == "__main__":
    sys.exit(run_tool("tools.recorded", main))
