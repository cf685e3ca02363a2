"""Change the sources at random places, one change at a time, and list the changes that no test notices.

usage: python -m tools.mutate [--seed N] [--count N] [--only TEXT] [--limit SECONDS] [--wider TESTS ...] [--list]

A mutation swaps an operator, negates a condition, or changes a default, a constant or a returned value. Each mutation
is applied to a copy of this clone, in which the tests of the mirrored folder run first and the wider tests after these
if none fails. A mutation that survives is printed with its place: a test is missing there, or the mutation changes
nothing that can be observed, which a reader has to judge. --list prints the mutations without running tests. The exit
status is 1 if any mutation survives or its tests do not end in time.
"""

import argparse
import ast
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from tools.command import run_tool

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ("device", "ops", "ttsim")
WIDER: Final = ("tests/device", "tests/ops", "tests/ttsim", "tests/end_to_end")
LEFT_OUT: Final = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist")
OPERATORS: Final[dict[type[ast.AST], type[ast.AST]]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.LShift: ast.RShift, ast.RShift: ast.LShift, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip

Kind = Literal["arithmetic", "comparison", "condition", "default", "constant", "return"]
Outcome = Literal["caught", "survived", "not ended"]


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change of one expression."""

    path: str  # Of the file, from the root of the clone
    line: int
    kind: Kind
    span: tuple[int, int]  # Of the expression, in bytes of the file
    old: str  # The expression
    new: str  # What takes its place

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.kind}: {self.old} -> {self.new}"

    def applied(self, source: bytes) -> bytes:
        """The bytes of the changed file."""
        begin, end = self.span
        return source[:begin] + self.new.encode() + source[end:]


def mutations_of(path: str, source: bytes) -> Iterator[Mutation]:
    """All mutations of a file."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for kind, node, new in _changes(ast.parse(source)):
        last, end = node.end_lineno or node.lineno, node.end_col_offset or 0
        span = starts[node.lineno - 1] + node.col_offset, starts[last - 1] + end
        yield Mutation(path, node.lineno, kind, span, ast.unparse(node), new)


def _changes(node: ast.AST) -> Iterator[tuple[Kind, ast.expr, str]]:
    """Expressions at and below a node, and what may take their place."""
    match node:
        case ast.JoinedStr():  # whose parts have no places of their own before Python 3.12
            return
        case ast.BinOp(left, operator, right) if type(operator) in OPERATORS and not (
            _is_text(left) or _is_text(right)
        ):
            yield "arithmetic", node, _unparsed(ast.BinOp(left, _swapped(operator), right))
        case ast.Compare(left, [operator, *more], others) if type(operator) in OPERATORS:
            yield "comparison", node, _unparsed(ast.Compare(left, [_swapped(operator), *more], others))
        case ast.BoolOp(operator, values):
            yield "condition", node, _unparsed(ast.BoolOp(_swapped(operator), values))
        case ast.If(test) | ast.IfExp(test) | ast.While(test):
            yield "condition", test, f"(not ({ast.unparse(test)}))"
        case ast.Return(ast.expr() as value) if not (isinstance(value, ast.Constant) and value.value is None):
            yield "return", value, "None"
        case ast.arguments():
            for default in [*node.defaults, *(default for default in node.kw_defaults if default is not None)]:
                yield from (("default", default, new) for new in _another(default))
        case ast.AnnAssign(_, _, ast.expr() as value):  # a field of a class, as a rule
            yield from (("default", value, new) for new in _another(value))
        case ast.Constant():
            yield from (("constant", node, new) for new in _another(node))
    known = {"annotation", "returns"} | ({"defaults", "kw_defaults"} if isinstance(node, ast.arguments) else set())
    known |= {"value"} if isinstance(node, ast.AnnAssign) and isinstance(node.value, ast.Constant) else set()
    for name, value in ast.iter_fields(node):
        if name not in known:
            for child in value if isinstance(value, list) else [value]:
                yield from _changes(child) if isinstance(child, ast.AST) else ()


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _swapped(operator: ast.AST) -> Any:
    return OPERATORS[type(operator)]()


def _unparsed(node: ast.AST) -> str:
    return f"({ast.unparse(node)})"


def _another(node: ast.expr) -> Iterator[str]:
    """Another number or truth value in place of a constant; nothing for other expressions."""
    if isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield str(not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield f"{node.value + 1}"


def drawn(root: Path, seed: int, count: int, only: str = "") -> list[Mutation]:
    """Different mutations of a clone, each kind as often as the others as long as there are any.

    Raises:
        ValueError: No file of the packages has ``only`` in its path.
    """
    rng = random.Random(seed)
    kinds: dict[str, list[Mutation]] = {}
    for path in sorted(path for package in PACKAGES for path in (root / package).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        for mutation in mutations_of(name, path.read_bytes()) if only in name else ():
            kinds.setdefault(mutation.kind, []).append(mutation)
    if not kinds:
        raise ValueError(f"no file of {', '.join(PACKAGES)} with {only!r} in its path can be mutated")
    chosen: list[Mutation] = []
    while kinds and len(chosen) < count:
        kind = rng.choice(sorted(kinds))
        chosen.append(kinds[kind].pop(rng.randrange(len(kinds[kind]))))
        kinds = {kind: some for kind, some in kinds.items() if some}
    return chosen


def mirrored(root: Path, path: str) -> str:
    """The nearest existing folder or file of tests that mirrors a source file; the folder's, where it is a folder."""
    place = Path("tests", path).with_suffix("")
    test = place.with_name(f"test_{place.name}.py")
    if place.parent.name not in PACKAGES and (root / place.parent).is_dir():
        return place.parent.as_posix()
    if (root / test).is_file():
        return test.as_posix()
    return next(parent.as_posix() for parent in place.parents if (root / parent).is_dir())


def outcome(root: Path, mutation: Mutation, wider: Sequence[str], limit: float) -> Outcome:
    """Applies a mutation in a copy of a clone, runs the tests that can see it, and takes it back.

    Raises:
        ValueError: pytest did not run the tests.
    """
    path = root / mutation.path
    source = path.read_bytes()
    path.write_bytes(mutation.applied(source))
    try:
        for tests in ([mirrored(root, mutation.path)], list(wider)):
            code = _pytest(root, tests, limit)
            if code is None:
                return "not ended"
            if code:
                return "caught"
    finally:
        path.write_bytes(source)
    return "survived"


def _pytest(root: Path, tests: Sequence[str], limit: float) -> int | None:
    """The exit status of a run of tests; None where it took longer than the limit, in seconds."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}  # a stale file of another mutation may look fresh
    with subprocess.Popen(
        command, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    ) as run:
        try:
            text, _ = run.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            os.killpg(run.pid, signal.SIGKILL)  # with the processes that the tests began
            return None
    if run.returncode > 2:
        raise ValueError(f"pytest {' '.join(tests)} ended with {run.returncode}: {text.decode()[-300:]}")
    return run.returncode


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Runs the command; returns its exit status."""
    parser = argparse.ArgumentParser(
        prog="tools.mutate", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--count", type=int, default=60, help="mutations")
    parser.add_argument("--only", default="", metavar="TEXT", help="files whose path contains this")
    parser.add_argument("--limit", type=float, default=900, metavar="SECONDS", help="of a run of tests")
    parser.add_argument("--wider", nargs="+", default=WIDER, metavar="TESTS", help="run where the mirrored tests pass")
    parser.add_argument("--list", action="store_true", help="print the mutations alone")
    options = parser.parse_args(argv)
    chosen = drawn(root, options.seed, options.count, options.only)
    if options.list:
        print("\n".join(map(str, chosen)))
        return 0
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        copy = Path(folder, "clone")
        shutil.copytree(root, copy, ignore=LEFT_OUT)
        for mutation in chosen:
            outcomes.append(outcome(copy, mutation, options.wider, options.limit))
            print(f"{outcomes[-1]}: {mutation}", flush=True)
    caught = outcomes.count("caught")
    print(f"{caught} of {len(outcomes)} caught, {outcomes.count('not ended')} not ended in {options.limit:.0f} s")
    return int(caught < len(outcomes))


if __name__ == "__main__":
    sys.exit(run_tool("tools.mutate", main))
