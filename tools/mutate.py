"""Change the sources at random places, one change at a time, and list the changes that no test notices.

usage: python -m tools.mutate [--seed N] [--count N] [--only TEXT] [--limit SECONDS] [--workers N] [--list]

A mutation swaps an operator, negates a condition, or changes a default, a constant or a returned value. Each mutation
is applied to a copy of this clone. The tests that mirror the file and those that import it run first; the wider tests
run after these if none fails, the nearest by imports first. A run ends at the first failure. A mutation that survives
is printed with its place: a test is missing there, or the mutation changes nothing that can be observed, which a reader
has to judge. Tests that do not end in time notice a mutation, too. --list prints the mutations without running tests.
The exit status is 1 if any mutation survives.
"""

import ast
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Any, Final, Literal

from tools.command import run_tool, tool_parser

ROOT: Final = Path(__file__).resolve().parents[1]
PACKAGES: Final = ("device", "ops", "ttsim")
WIDER: Final = ("tests/device", "tests/ops", "tests/ttsim", "tests/end_to_end", "tests/tools/validate")
APPROVED: Final = "tests/test_approved.py"  # runs nearly every line of planners, cycles and reports
LEFT_OUT: Final = shutil.ignore_patterns(".git", ".venv", ".*_cache", "*.egg-info", "build", "dist")  # tests read .ci
NEAR: Final = 1  # steps from a file over imports to the tests that run first
FAR: Final = 99  # of tests that reach a file in no way that imports tell
MOST_BYTES: Final = 16 << 30  # of memory that a run of tests may map
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
    """Different mutations of a clone, each kind as often as the others as long as there are any."""
    rng, kinds = random.Random(seed), defaultdict[str, list[Mutation]](list)
    for path in sorted(path for package in PACKAGES for path in (root / package).rglob("*.py")):
        name = path.relative_to(root).as_posix()
        for mutation in mutations_of(name, path.read_bytes()) if only in name else ():
            kinds[mutation.kind].append(mutation)
    if not kinds:
        raise ValueError(f"no file of {', '.join(PACKAGES)} with {only!r} in its path can be mutated")
    chosen: list[Mutation] = []
    while any(kinds.values()) and len(chosen) < count:
        places = kinds[rng.choice(sorted(kind for kind, left in kinds.items() if left))]
        chosen.append(places.pop(rng.randrange(len(places))))
    return chosen


def importers(root: Path) -> dict[str, set[str]]:
    """The files of the packages and tests that import each file, by paths from the root of a clone."""
    result = defaultdict[str, set[str]](set)
    for path in (path for folder in (*PACKAGES, "tests") for path in (root / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                modules = [f"{node.module}", *(f"{node.module}.{alias.name}" for alias in node.names)]
            for place in (module.replace(".", "/") for module in modules):
                for file in (f"{place}.py", f"{place}/__init__.py"):
                    result[file].add(path.relative_to(root).as_posix())
    return result


def runs_for(root: Path, path: str, wider: Sequence[str], imported_by: Mapping[str, set[str]]) -> list[list[str]]:
    """The tests that can see a change of a file: near tests, approved answers, and all others by their distance.

    Near are the test that mirrors the file, the other tests of the mirrored folder, and tests that import the file.
    """
    place = Path("tests", path).with_suffix("")
    folder = next((parent for parent in place.parents if (root / parent).is_dir()), place.parent)
    mirrored = [place.with_name(f"test_{place.name}.py").as_posix()]
    if folder.name not in (*PACKAGES, "tests"):
        mirrored += sorted(test.relative_to(root).as_posix() for test in (root / folder).rglob("test_*.py"))
    distances = {test: 0 for test in mirrored if (root / test).is_file()}
    seen, waiting = {path}, deque([(path, 1)])
    while waiting:
        file, steps = waiting.popleft()
        for importer in sorted(imported_by.get(file, set()) - seen):
            seen.add(importer)
            waiting.append((importer, steps + 1))
            if Path(importer).name.startswith("test_"):
                distances.setdefault(importer, steps)
    for tests in wider:
        files = [root / tests] if (root / tests).is_file() else sorted((root / tests).rglob("test_*.py"))
        for file_path in files:
            distances.setdefault(file_path.relative_to(root).as_posix(), FAR)
    ordered = sorted((test for test in distances if test != APPROVED), key=lambda test: distances[test])
    near, far = ([test for test in ordered if (distances[test] <= NEAR) == is_near] for is_near in (True, False))
    return [near, [APPROVED] if (root / APPROVED).is_file() else [], far]


def outcome(root: Path, mutation: Mutation, runs: Sequence[Sequence[str]], limit: float) -> Outcome:
    """Applies a mutation in a copy of a clone, runs the tests that can see it, and takes it back.

    ``runs`` are groups of test files; a run follows where the one before has no failure. ``limit`` is the seconds of a
    run.
    """
    path = root / mutation.path
    source, times = path.read_bytes(), path.stat()
    path.write_bytes(mutation.applied(source))
    try:
        for tests in filter(None, runs):
            code = _pytest(root, tests, limit, compiles=b"compiled" in source)
            if code is None:
                return "not ended"
            if code:
                return "caught"
    finally:
        path.write_bytes(source)
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))
    return "survived"


def _pytest(root: Path, tests: Sequence[str], limit: float, *, compiles: bool) -> int | None:
    """The exit status of a run of tests; None where it took longer than the limit, in seconds.

    ``compiles`` compiles loops anew: cached code does not notice changes in other files.
    """
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = os.environ | {"PYTHONDONTWRITEBYTECODE": "1"}  # a stale file of another mutation may look fresh
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder:
        environment |= {"NUMBA_CACHE_DIR": folder} if compiles else {}
        with subprocess.Popen(
            command,
            cwd=root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES)),
        ) as run:
            try:
                text, _ = run.communicate(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(run.pid, signal.SIGKILL)  # with the processes that the tests began
                return None
    if run.returncode not in (0, 1, 2):
        raise ValueError(f"pytest {' '.join(tests)} ended with {run.returncode}: {text.decode()[-300:]}")
    return run.returncode


def main(argv: list[str] | None = None, root: Path = ROOT) -> int:
    """Runs the command; returns its exit status."""
    parser = tool_parser("tools.mutate", __doc__)
    parser.add_argument("--seed", type=int, default=0, help="of the draw")
    parser.add_argument("--count", type=int, default=60, help="mutations")
    parser.add_argument("--only", default="", metavar="TEXT", help="files whose path contains this")
    parser.add_argument("--limit", type=float, default=600, metavar="SECONDS", help="of a run of tests")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1, help="mutations at a time")
    parser.add_argument("--list", action="store_true", help="print the mutations alone")
    options = parser.parse_args(argv)
    chosen = drawn(root, options.seed, options.count, options.only)
    if options.list:
        print("\n".join(map(str, chosen)))
        return 0
    imported_by = importers(root)
    outcomes: list[Outcome] = []
    copies: SimpleQueue[Path] = SimpleQueue()
    with tempfile.TemporaryDirectory(prefix="mutate-") as folder, ThreadPoolExecutor(options.workers) as workers:
        for number in range(options.workers):
            copies.put(shutil.copytree(root, Path(folder, f"{number}", "clone"), ignore=LEFT_OUT))

        def run(mutation: Mutation) -> Outcome:
            copy = copies.get()
            runs = runs_for(root, mutation.path, WIDER, imported_by)
            try:
                return outcome(copy, mutation, runs, options.limit)
            finally:
                copies.put(copy)

        for mutation, end in zip(chosen, workers.map(run, chosen), strict=True):
            outcomes.append(end)
            print(f"{end}: {mutation}", flush=True)
    survivors = [mutation for mutation, end in zip(chosen, outcomes, strict=True) if end == "survived"]
    not_ended = outcomes.count("not ended")
    print(
        f"{len(outcomes) - len(survivors)} of {len(outcomes)} noticed, {not_ended} of them as tests did not end in time"
    )
    return int(bool(survivors))


if __name__ == "__main__":
    sys.exit(run_tool("tools.mutate", main))
