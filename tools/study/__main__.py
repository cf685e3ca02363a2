"""The worked study of docs/study.md: eight layers of two U-Nets, tuned, on two cards and an invented device.

usage: python -m tools.study [--write] [--processes N]

Prints the tables; with --write they go into the document, and its charts beside it. Takes some minutes.
"""

import sys
from pathlib import Path
from typing import Final

from tools.command import run_tool, tool_parser
from tools.study.measure import study
from tools.study.written import charts, tables
from tools.zeros import updated

DOCUMENT: Final = Path(__file__).resolve().parents[2] / "docs" / "study.md"
BEGIN: Final = "<!-- python -m tools.study --write -->\n"


def main() -> None:
    """Print the tables, or write them and the charts."""
    parser = tool_parser("tools.study", __doc__)
    parser.add_argument("--write", action="store_true", help=f"renew {DOCUMENT.name} and its charts")
    parser.add_argument("--processes", type=int, metavar="N", help="how many (default: one on each core)")
    options = parser.parse_args()
    results = study(processes=options.processes)
    if not options.write:
        print(tables(results), end="")
        return
    text = updated(DOCUMENT.read_text(encoding="utf-8"), f"\n{tables(results)}\n", BEGIN)
    DOCUMENT.write_text(text, encoding="utf-8")
    for name, picture in charts(results).items():
        (DOCUMENT.parent / name).write_text(picture, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(run_tool("tools.study", main))
