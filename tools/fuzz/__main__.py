"""Make random calls on strict devices, and list those of which something does not hold.

usage: python -m tools.fuzz [--seed N] [--count N] [--first N] [--values fast|exact]

Every fault is printed with its seed, its index and a call that can be pasted; exit status 1 if there is any.
"""

import argparse
import sys
from collections import Counter

from tools.command import run_tool
from tools.fuzz.calls import draw
from tools.fuzz.making import pasteable
from tools.fuzz.oracles import judge


def main(argv: list[str] | None = None) -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="tools.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--first", type=int, default=0, help="index of the first call")
    parser.add_argument("--values", choices=("fast", "exact"), default="fast")
    options = parser.parse_args(argv)
    outcomes: Counter[str] = Counter()
    slowest = 0.0
    for index in range(options.first, options.first + options.count):
        call = draw(options.seed, index)
        verdict = judge(call, values=options.values)
        outcomes[verdict.outcome] += 1
        slowest = max(slowest, verdict.seconds)
        if verdict.outcome == "fault":
            print(f"seed {options.seed}, index {index}: {verdict.text}\n  {pasteable(call)}")
    told = ", ".join(f"{name} {outcomes[name]}" for name in ("right", "refused", "does not fit", "fault"))
    print(f"seed {options.seed}: {options.count} calls: {told}; the slowest took {slowest:.1f} s")
    return int(outcomes["fault"] > 0)


if __name__ == "__main__":
    sys.exit(run_tool("tools.fuzz", main))
