"""Formulas over the fields of a device, as users write costs: `grid.cols * grid.rows * (1 + l1.bytes / 2**20)`.

Numbers, names of fields, `+ - * / **`, parentheses, `min(...)` and `max(...)`, and nothing else. A formula is parsed,
never run: what it says is worked out node by node, in floating point.
"""

import ast
import math
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from device.errors import ArgumentError, nearest, shown

GRAMMAR: Final = "numbers, fields, + - * / **, parentheses, min(...) and max(...)"
LONGEST: Final = 500  # characters
_OPERATORS: Final[Mapping[Any, Callable[[float, float], Any]]] = MappingProxyType(
    {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv, ast.Pow: pow}
)
_SIGNS: Final[Mapping[Any, Callable[[float], float]]] = MappingProxyType(
    {ast.UAdd: operator.pos, ast.USub: operator.neg}
)
_FUNCTIONS: Final[Mapping[str, Callable[..., float]]] = MappingProxyType({"min": min, "max": max})


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula that was checked."""

    text: str  # As it was written
    names: tuple[str, ...]  # Fields that it names, sorted
    tree: ast.expr  # The same, parsed

    def value(self, fields: Mapping[str, float]) -> float:
        """What it gives.

        Args:
            fields: The value of each field that it names.

        Raises:
            ArgumentError: That is no finite number: something is divided by zero, say.
        """
        try:
            found = _value(self.tree, fields)
        except (ArithmeticError, TypeError) as error:  # a root of a negative number is complex, and has no order
            raise ArgumentError(f"{shown(self.text)} cannot be worked out: {error}; {_given(self, fields)}") from error
        if not isinstance(found, float) or not math.isfinite(found):
            raise ArgumentError(f"{shown(self.text)} must be a finite number, not {found}; {_given(self, fields)}")
        return found


def formula(text: object, known: Collection[str]) -> Formula:
    """A formula of a text.

    Args:
        known: Names of the fields that it may name.

    Raises:
        ArgumentError: It says something else than numbers, fields, operators, min and max.
    """
    if isinstance(text, int | float) and not isinstance(text, bool):
        text = repr(text)
    if not isinstance(text, str) or not 0 < len(text.strip()) <= LONGEST:
        raise ArgumentError(f"a formula is a text of at most {LONGEST} characters, not {shown(text)}; use {GRAMMAR}")
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        names: set[str] = set()
        _check(tree, known, names)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        if isinstance(error, ArgumentError):
            raise
        raise ArgumentError(f"{shown(text)} is no formula ({type(error).__name__}); use {GRAMMAR}") from error
    return Formula(text.strip(), tuple(sorted(names)), tree)


def _check(node: ast.expr, known: Collection[str], names: set[str]) -> None:
    """Refuses what no formula has; gathers the names."""
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        _number(node)
    elif isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        _check(node.left, known, names)
        _check(node.right, known, names)
    elif isinstance(node, ast.UnaryOp) and type(node.op) in _SIGNS:
        _check(node.operand, known, names)
    elif isinstance(node, ast.Call) and _function(node) is not None and node.args and not node.keywords:
        for one in node.args:
            _check(one, known, names)
    elif isinstance(node, ast.Name | ast.Attribute | ast.Subscript):
        name = ast.unparse(node)
        if name not in known:
            raise ArgumentError(f"unknown field {shown(name)}{nearest(name, known)}; `ttsim devices NAME` prints all")
        names.add(name)
    else:
        raise ArgumentError(f"a formula must not have {shown(ast.unparse(node))}; use {GRAMMAR}")


def _value(node: ast.expr, fields: Mapping[str, float]) -> Any:
    """What a checked node gives."""
    if isinstance(node, ast.Constant):
        return _number(node)
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, fields), _value(node.right, fields))
    if isinstance(node, ast.UnaryOp):
        return _SIGNS[type(node.op)](_value(node.operand, fields))
    if isinstance(node, ast.Call):
        return _FUNCTIONS[str(_function(node))](_value(one, fields) for one in node.args)
    return float(fields[ast.unparse(node)])


def _function(node: ast.Call) -> str | None:
    """The function that is called; None if there is no such one."""
    return node.func.id if isinstance(node.func, ast.Name) and node.func.id in _FUNCTIONS else None


def _number(node: ast.Constant) -> float:
    """A number, as a float.

    Raises:
        ArgumentError: No float can hold it.
    """
    try:
        return float(str(node.value))
    except (OverflowError, ValueError) as error:
        raise ArgumentError(f"a number of a formula is too large ({error}); give a smaller one") from error


def _given(one: Formula, fields: Mapping[str, float]) -> str:
    """The values with which a formula failed."""
    return f"with {', '.join(f'{name} = {fields[name]:g}' for name in one.names)}" if one.names else "change it"
