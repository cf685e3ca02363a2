"""The borders between packages and their rooms, read from the source: who may import whom; and some habits."""

import ast
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import pairwise
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
# What stands directly in a package, and what of the same package it may import.
ROOMS: dict[str, dict[str, set[str]]] = {
    "device": {
        "errors": set(),
        "host": set(),
        "cores": {"errors"},
        "spec": {"errors"},
        "numbers": {"errors", "host"},
        "matrix_unit": {"host", "numbers", "spec"},
        "memory": {"cores", "errors", "numbers", "spec"},
        "time": {"cores", "errors", "spec"},
        "machine": {"errors", "memory", "plan", "spec"},
        "plan": {"cores", "memory", "numbers", "spec"},
    },
    "ops": {
        "builder": set(),
        "launch": set(),
        "op_model": set(),
        "reference": set(),
        "window": set(),
        "op_models": {"launch", "op_model", "programs"},
        "passes": {"launch", "op_model", "op_models"},
        "programs": {"builder", "op_model", "window"},
        "planners": {"builder", "op_models", "programs", "reference", "window"},
        "sensitivity": {"launch", "op_models", "passes", "planners", "programs", "reference"},
    },
    "ttsim": {
        "errors": set(),
        "diagnose": {"runtime"},
        "report": {"runtime"},
        "runtime": set(),
        "onednn": {"runtime"},
        "torch": {"onednn", "runtime"},
        "api": {"diagnose", "runtime"},
        "dropin": {"__init__", "recording", "runtime", "study"},
        "graph": {"recording", "runtime"},
        "model_preprocessing": {"api", "runtime"},
        "recording": {"report", "runtime"},
        "__main__": {"dropin", "recording", "report", "runtime", "study"},
        "study": {"api", "diagnose", "recording", "report", "runtime"},
        "__init__": {
            "api",
            "errors",
            "graph",
            "model_preprocessing",
            "onednn",
            "recording",
            "report",
            "runtime",
            "study",
        },
    },
}
FILES = sorted(path for package in ARROWS for path in (ROOT / package).rglob("*.py"))


def over(paths: Iterable[Path]) -> Callable[[Callable[[Path], None]], Callable[[], None]]:
    """Makes one test out of a test of one file: it fails with what every file fails with."""

    def decorate(test: Callable[[Path], None]) -> Callable[[], None]:
        def whole() -> None:
            failures = []
            for path in paths:
                try:
                    test(path)
                except AssertionError as error:
                    failures.append(str(error))
            assert not failures, "\n".join(failures)

        return whole

    return decorate


LOADERS = {ROOT / "device" / "host" / "compiling.py", ROOT / "tools" / "machine.py"}  # what they are told to
LOADING = ("import_module", "worth_loading")
FACE = ROOT / "ttsim" / "__init__.py"  # loads its names when they are asked for; its stub says what it imports
WRITERS = sorted([ROOT / "ttsim" / "report" / "exports.py", *(ROOT / "ttsim" / "report" / "writers").rglob("*.py")])
MAY_PRINT = {"ttsim/__main__.py"}
WRITERS_WITH_RICH = ("table", "terminal")
RICH_IS_WELCOME = {"ttsim/__main__.py", *(f"ttsim/report/writers/{name}.py" for name in WRITERS_WITH_RICH)}
DEVICE_NAMES = {path.stem for path in (ROOT / "device" / "spec" / "catalog").glob("*.toml")}
ARCHITECTURES = {"wormhole", "wormhole_b0", "blackhole", "grayskull", "wh", "bh"}


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All that the syntax tree of a file holds."""
    return tuple(ast.walk(ast.parse(path.read_text(encoding="utf-8"), filename=str(path))))


def package(path: Path) -> str:
    return path.relative_to(ROOT).parts[0]


def module_name(path: Path) -> str:
    parts = list(path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in FILES}


def room(module: str) -> str:
    """What a module of a package belongs to: the folder or file directly in the package."""
    return [*module.split("."), "__init__"][1]


@cache
def imported(path: Path) -> tuple[tuple[int, str], ...]:
    """(line, module) of every import; `from a import b` names a.b where that is a module of the project."""
    return tuple(_imports(path))


def called(node: ast.Call) -> str:
    """The last name of what is called."""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _imports(path: Path) -> Iterator[tuple[int, str]]:
    for node in nodes(FACE.with_suffix(".pyi") if path == FACE else path):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield node.lineno, inner if inner in MODULES else node.module
        elif isinstance(node, ast.Call) and path not in LOADERS and called(node).endswith(LOADING):
            target = node.args[0] if node.args else None
            assert isinstance(target, ast.Constant), f"{path}:{node.lineno}: import of a name that is computed"
            yield node.lineno, str(target.value)


def complain(path: Path, lines: list[str]) -> None:
    where = path.relative_to(ROOT)
    assert not lines, "\n".join(f"{where}:{line}" for line in lines)


def test_every_package_has_sources():
    assert {package(path) for path in FILES} == set(ARROWS)


@over(FILES)
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


@pytest.mark.parametrize("name", ROOMS)
def test_every_room_has_its_arrows(name):
    rooms = {room(module) for module in MODULES if module.startswith(f"{name}.")}
    assert rooms == set(ROOMS[name]) - {"__init__"}
    assert all(allowed <= set(ROOMS[name]) for allowed in ROOMS[name].values())


@over(FILES)
def test_imports_follow_the_arrows_between_rooms(path):
    arrows = ROOMS.get(package(path))
    if arrows is None:
        return
    home = room(module_name(path))
    allowed = arrows.get(home, set()) | {home}
    complain(
        path,
        [
            f"{line}: {package(path)}/{home} imports {name}; allowed of {package(path)} are {sorted(allowed)}"
            for line, name in imported(path)
            if name.split(".")[0] == package(path) and name in MODULES and room(name) not in allowed
        ],
    )


@over(FILES)
def test_imports_are_absolute_and_at_the_top(path):
    found = []
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.level:
            found.append(f"{node.lineno}: relative import")
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            inner = (n for n in ast.walk(node) if isinstance(n, ast.Import | ast.ImportFrom))
            found += [f"{n.lineno}: import inside {getattr(node, 'name', 'lambda')}" for n in inner]
        if "TYPE_CHECKING" in (getattr(node, name, "") for name in ("id", "attr", "name")):
            found.append(f"{node.lineno}: TYPE_CHECKING hides an import; move the type down instead")
    complain(path, found)


def test_no_import_cycle():
    edges = {name: {target for _, target in imported(path) if target in MODULES} for name, path in MODULES.items()}
    circle = circle_of(edges)
    assert not circle, "import cycle: " + " -> ".join([*circle, circle[0]])


def test_no_circle_of_folders():
    for folder in ["", *(name for name, path in MODULES.items() if path.name == "__init__.py")]:
        check_folder(folder)


def check_folder(folder: str) -> None:
    """What stands in one folder, files and folders, imports in one direction; "" is the folder of the packages."""
    depth = len(folder.split(".")) if folder else 0
    inside = {name: path for name, path in MODULES.items() if not folder or name.startswith(f"{folder}.")}
    edges: dict[str, dict[str, str]] = {}
    for name, path in inside.items():
        for line, target in imported(path):
            if target in inside and name.split(".")[depth] != (other := target.split(".")[depth]):
                found = edges.setdefault(name.split(".")[depth], {})
                found.setdefault(other, f"{path.relative_to(ROOT)}:{line}: imports {target}")
    circle = circle_of(edges)
    assert not circle, "\n".join(edges[one][other] for one, other in pairwise([*circle, circle[0]]))


def circle_of(edges: Mapping[str, Iterable[str]]) -> list[str]:
    """Nodes that lead round in a circle; none if there is no circle."""
    done: set[str] = set()

    def visit(node: str, trail: tuple[str, ...]) -> list[str]:
        if node in trail:
            return list(trail[trail.index(node) :])
        if node not in done:
            for target in sorted(edges.get(node, ())):
                if lines := visit(target, (*trail, node)):
                    return lines
            done.add(node)
        return []

    return next((lines for node in sorted(edges) if (lines := visit(node, ()))), [])


def test_a_circle_is_found():
    assert circle_of({"a": ["b"], "b": ["c", "d"], "d": ["e"], "e": ["b"]}) == ["b", "d", "e"]
    assert circle_of({"a": ["b", "c"], "b": ["c"], "c": []}) == []


@over(FILES)
def test_only_the_edges_print(path):
    where = str(path.relative_to(ROOT))
    if package(path) == "tools" or where in MAY_PRINT:
        return
    complain(path, [f"{n.lineno}: print" for n in nodes(path) if isinstance(n, ast.Name) and n.id == "print"])


@over(FILES)
def test_rich_stays_in_its_writer(path):
    where = str(path.relative_to(ROOT))
    if package(path) == "tools" or where in RICH_IS_WELCOME:
        return
    complain(path, [f"{line}: imports rich" for line, name in imported(path) if name.split(".")[0] == "rich"])


@over(WRITERS)
def test_no_writer_computes_a_figure(path):
    """Writers choose figures and turn their units; what two figures make is a figure that belongs to the report."""
    computed = [
        f"{node.lineno}: {ast.unparse(node)}"
        for node in nodes(path)
        if (isinstance(node, ast.BinOp) and not any(isinstance(one, ast.Constant) for one in (node.left, node.right)))
        or (isinstance(node, ast.Call) and called(node) == "sum")
    ]
    complain(path, computed)


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


@over(FILES)
def test_no_decision_by_a_device_name(path):
    if package(path) == "tools" or (ROOT / "device" / "spec" / "catalog") in path.parents:
        return
    names = DEVICE_NAMES | ARCHITECTURES
    complain(
        path,
        [
            f"{value.lineno}: decides by {value.value!r}; a difference between devices is a field of the spec"
            for node in nodes(path)
            for value in names_decided_on(node)
            if isinstance(value, ast.Constant) and value.value in names
        ],
    )


def test_no_package_hides_behind_the_tests():
    assert not list((ROOT / "tests").rglob("__init__.py")), "tests/device/__init__.py would hide the package device"
