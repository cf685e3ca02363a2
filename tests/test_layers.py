"""The borders between packages and their rooms, read from the source: who may import whom; and some habits."""

import ast
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from graphlib import TopologicalSorter
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
        "study": {"__init__", "api", "diagnose", "recording", "report", "runtime"},
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
LOADERS = {ROOT / "device" / "host" / "compiling.py", ROOT / "tools" / "machine.py"}  # what they are told to
LOADING = ("import_module", "worth_loading")
FACE = ROOT / "ttsim" / "__init__.py"  # loads its names when they are asked for; its stub says what it imports
WRITERS = {ROOT / "ttsim" / "report" / "exports.py", ROOT / "ttsim" / "report" / "writers"}  # a file, and a folder
MAY_PRINT = {"ttsim/__main__.py"}
WRITERS_WITH_RICH = ("table", "terminal")
RICH_IS_WELCOME = {"ttsim/__main__.py", *(f"ttsim/report/writers/{name}.py" for name in WRITERS_WITH_RICH)}
DEVICE_NAMES = {path.stem for path in (ROOT / "device" / "spec" / "catalog").glob("*.toml")}
ARCHITECTURES = {"wormhole", "wormhole_b0", "blackhole", "grayskull", "wh", "bh"}
SMALL = (ast.expr_context, ast.operator, ast.unaryop, ast.boolop)


@lru_cache(maxsize=1)  # the trees of all files would be a million objects, which every collection of garbage looks at
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All that the syntax tree of a file holds, but for operators and contexts; `ast.walk` takes twice as long."""
    found: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"), filename=str(path))]
    for node in found:
        for value in vars(node).values():
            if isinstance(value, list):
                found += (inner for inner in value if isinstance(inner, ast.AST))
            elif isinstance(value, ast.AST) and not isinstance(value, SMALL):
                found.append(value)
    return tuple(found)


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


Complaints = Iterator[tuple[int, str]]  # lines, and what is wrong there


def against_the_arrows(path: Path) -> Complaints:
    own, home, name = package(path), room(module_name(path)), module_name(path)
    allowed = ROOMS.get(own, {}).get(home, set()) | {home}
    for line, target in imported(path):
        top = target.split(".")[0]
        if top in set(ARROWS) | OUTSIDE and top not in ARROWS[own]:
            yield line, f"{own} imports {target}; allowed are {sorted(ARROWS[own])}"
        elif own in ROOMS and top == own and target in MODULES and room(target) not in allowed:
            yield line, f"{name} imports {target}; allowed of {own} are {sorted(allowed)}"


def relative_inside_or_hidden_imports(path: Path) -> Complaints:
    indented = any(isinstance(node, ast.Import | ast.ImportFrom) and node.col_offset for node in nodes(path))
    named = "TYPE_CHECKING" in path.read_text(encoding="utf-8")
    for node in nodes(path):
        if isinstance(node, ast.ImportFrom) and node.level:
            yield node.lineno, "relative import"
        if indented and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Import | ast.ImportFrom):
                    yield inner.lineno, f"import inside {node.name}"
        if named and "TYPE_CHECKING" in (getattr(node, name, "") for name in ("id", "attr", "name")):
            yield node.lineno, "TYPE_CHECKING hides an import; move the type down instead"


def prints_and_rich_off_the_edges(path: Path) -> Complaints:
    where = str(path.relative_to(ROOT))
    if package(path) != "tools" and where not in MAY_PRINT:
        yield from ((n.lineno, "print") for n in nodes(path) if isinstance(n, ast.Name) and n.id == "print")
    if package(path) != "tools" and where not in RICH_IS_WELCOME:
        yield from ((line, "imports rich") for line, name in imported(path) if name.split(".")[0] == "rich")


def figures_that_writers_compute(path: Path) -> Complaints:
    """Writers choose figures and turn their units; what two figures make is a figure that belongs to the report."""
    if WRITERS & {path, *path.parents}:
        for node in nodes(path):
            sums = isinstance(node, ast.Call) and called(node) == "sum"
            constants = [isinstance(getattr(node, side, None), ast.Constant) for side in ("left", "right")]
            if sums or (isinstance(node, ast.BinOp) and not any(constants)):
                yield node.lineno, ast.unparse(node)


def decisions_by_device_names(path: Path) -> Complaints:
    if package(path) != "tools" and (ROOT / "device" / "spec" / "catalog") not in path.parents:
        for value in (value for node in nodes(path) for value in names_decided_on(node)):
            if isinstance(value, ast.Constant) and value.value in DEVICE_NAMES | ARCHITECTURES:
                yield value.lineno, f"decides by {value.value!r}; a difference between devices is a field of the spec"


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


HABITS: tuple[Callable[[Path], Complaints], ...] = (
    against_the_arrows,
    relative_inside_or_hidden_imports,
    prints_and_rich_off_the_edges,
    figures_that_writers_compute,
    decisions_by_device_names,
)


@cache
def complaints() -> dict[str, list[str]]:
    """What is wrong in all files, by habit; each file is parsed once."""
    found: dict[str, list[str]] = {habit.__name__: [] for habit in HABITS}
    for path in FILES:
        for habit in HABITS:
            found[habit.__name__] += [f"{path.relative_to(ROOT)}:{line}: {text}" for line, text in habit(path)]
    return found


@pytest.mark.parametrize("habit", [habit.__name__ for habit in HABITS])
def test_no_file_has(habit: str) -> None:
    assert not complaints()[habit], "\n".join(complaints()[habit])


def test_every_package_and_room_has_sources():
    assert {package(path) for path in FILES} == set(ARROWS)
    for name, rooms in ROOMS.items():
        assert {room(module) for module in MODULES if module.startswith(f"{name}.")} == set(rooms) - {"__init__"}
        assert all(allowed <= set(rooms) for allowed in rooms.values())


@pytest.mark.parametrize("folder", [None, "", *(name for name, path in MODULES.items() if path.name == "__init__.py")])
def test_no_imports_go_round_in_a_circle(folder):
    """Of files (None), and of what stands in one folder; "" is the folder of the packages."""
    depth = len(folder.split(".")) if folder else 0
    inside = {name for name in MODULES if not folder or name.startswith(f"{folder}.")}

    def node(name: str) -> str:
        return name if folder is None else name.split(".")[depth]

    edges: dict[str, set[str]] = {}
    for name in inside:
        targets = {node(target) for _, target in imported(MODULES[name]) if target in inside}
        edges.setdefault(node(name), set()).update(targets - {node(name)})
    TopologicalSorter(edges).prepare()  # which raises a CycleError that shows the circle


def test_no_package_hides_behind_the_tests():
    assert not list((ROOT / "tests").rglob("__init__.py")), "tests/device/__init__.py would hide the package device"
