"""The borders between the packages, read from the source: who may import whom, and habits a linter does not know."""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ARROWS = {
    "device": {"device"},
    "ops": {"ops", "device"},
    "ttsim": {"ttsim", "ops", "device"},
    "tools": {"tools", "ttsim", "ops", "device"},
}
OUTSIDE = {"tests"}  # nothing of the project imports these
FILES = sorted(path for package in ARROWS for path in (ROOT / package).rglob("*.py"))
IDS = [str(path.relative_to(ROOT)) for path in FILES]
each_file = pytest.mark.parametrize("path", FILES, ids=IDS)

FACE = ROOT / "ttsim" / "__init__.py"  # loads its names when they are asked for; its stub says what it imports
MAY_PRINT = {"ttsim/__main__.py"}
RICH_IS_WELCOME = {"ttsim/__main__.py", "ttsim/report/writers/table.py", "ttsim/report/writers/cycle_table.py"}
DEVICE_NAMES = {path.stem for path in (ROOT / "device" / "spec" / "catalog").glob("*.toml")}
ARCHITECTURES = {"wormhole", "wormhole_b0", "blackhole", "grayskull", "wh", "bh"}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def package(path: Path) -> str:
    return path.relative_to(ROOT).parts[0]


def module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


def imported(path: Path) -> Iterator[tuple[int, str]]:
    """(line, module) of every import; `from a import b` names a.b where that is a module of the project."""
    for node in ast.walk(tree(FACE.with_suffix(".pyi") if path == FACE else path)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield node.lineno, inner if inner in MODULES else node.module
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            target = node.args[0] if node.args else None
            assert isinstance(target, ast.Constant), f"{path}:{node.lineno}: import_module of a name that is computed"
            yield node.lineno, str(target.value)


def complain(path: Path, lines: list[str]) -> None:
    where = path.relative_to(ROOT)
    assert not lines, "\n".join(f"{where}:{line}" for line in lines)


def test_every_package_has_sources():
    assert {package(path) for path in FILES} == set(ARROWS)


@each_file
def test_imports_follow_the_arrows(path):
    ours = set(ARROWS) | OUTSIDE
    complain(
        path,
        [
            f"{line}: {package(path)} imports {name}; allowed are {sorted(ARROWS[package(path)])}"
            for line, name in imported(path)
            if (top := name.split(".")[0]) in ours and top not in ARROWS[package(path)]
        ],
    )


@each_file
def test_imports_are_absolute_and_at_the_top(path):
    found = []
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            found.append(f"{node.lineno}: relative import")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            inner = (n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom))
            found += [f"{n.lineno}: import inside {getattr(node, 'name', 'lambda')}" for n in inner]
        if isinstance(node, ast.Name | ast.Attribute | ast.alias) and "TYPE_CHECKING" in ast.unparse(node):
            found.append(f"{node.lineno}: TYPE_CHECKING hides an import; move the type down instead")
    complain(path, found)


def test_no_import_cycle():
    edges = {name: {target for _, target in imported(path) if target in MODULES} for name, path in MODULES.items()}
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        assert name not in trail, "import cycle: " + " -> ".join([*trail[trail.index(name) :], name])
        if name not in done:
            for target in sorted(edges[name]):
                visit(target, (*trail, name))
            done.add(name)

    for name in sorted(edges):
        visit(name, ())


@each_file
def test_only_the_edges_print(path):
    where = str(path.relative_to(ROOT))
    if package(path) == "tools" or where in MAY_PRINT:
        return
    complain(path, [f"{n.lineno}: print" for n in ast.walk(tree(path)) if isinstance(n, ast.Name) and n.id == "print"])


@each_file
def test_rich_stays_in_its_writer(path):
    where = str(path.relative_to(ROOT))
    if package(path) == "tools" or where in RICH_IS_WELCOME:
        return
    complain(path, [f"{line}: imports rich" for line, name in imported(path) if name.split(".")[0] == "rich"])


def names_decided_on(node: ast.AST) -> Iterator[ast.expr]:
    """Expressions a decision hangs on: operands of a comparison, keys of a mapping, values of a match."""
    if isinstance(node, ast.Compare):
        for operand in (node.left, *node.comparators):
            yield from operand.elts if isinstance(operand, ast.Tuple | ast.Set | ast.List) else (operand,)
    elif isinstance(node, ast.Dict):
        yield from (key for key in node.keys if key is not None)
    elif isinstance(node, ast.MatchValue):
        yield node.value
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "startswith":
        yield from node.args


@each_file
def test_no_decision_by_a_device_name(path):
    if package(path) == "tools" or (ROOT / "device" / "spec" / "catalog") in path.parents:
        return
    names = DEVICE_NAMES | ARCHITECTURES
    complain(
        path,
        [
            f"{value.lineno}: decides by {value.value!r}; a difference between devices is a field of the spec"
            for node in ast.walk(tree(path))
            for value in names_decided_on(node)
            if isinstance(value, ast.Constant) and value.value in names
        ],
    )


def test_no_package_hides_behind_the_tests():
    assert not list((ROOT / "tests").rglob("__init__.py")), "tests/device/__init__.py would hide the package device"
