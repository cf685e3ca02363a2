"""Functions from tables: the fields of a `Call` declare the parameters of a function once.

A field has a kind (its annotation), a text and optionally a default. The function's signature, docstring and argument
checks are derived from the fields; other modules derive command-line flags, files and source text from them.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import Enum
from functools import wraps
from inspect import Parameter, Signature as PythonSignature, signature
from math import prod
from numbers import Real
from operator import index
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Final,
    ParamSpec,
    Protocol,
    Self,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

import numpy as np

from device.errors import ArgumentError, ArgumentTypeError, shown
from ttsim.runtime.types.docs import RAISES, documented

P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
REQUIRED = object()
MOST_ELEMENTS: Final = 1 << 48  # of a tensor: numpy refuses larger arrays in words of its own
# Operations of the bindings that ask for the types of their arguments one by one.
BOUND = frozenset({"deallocate", "from_device", "to_device", "to_dtype", "to_layout", "to_memory_config", "typecast"})
OPERATIONS = "ttnn."  # what the real library's names of operations begin with


@dataclass(frozen=True, slots=True)
class Kind:
    """The accepted values of an argument."""

    text: str  # How a message names it
    convert: Callable[[Any], Any]  # Gives the value in its plain form; raises TypeError when it is not of this kind
    # What would make a value of this kind of one that is not; empty where that is not known
    hint: Callable[[object], str] = lambda value: ""


ANYTHING = Kind("anything", lambda value: value)


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a call, or a field of a config."""

    text: str  # What it means
    default: object = REQUIRED
    kw_only: bool = True  # Whether it must be given by its name
    kind: Kind = ANYTHING  # That of its annotation


def param(text: str, *, default: Any = REQUIRED, kw_only: bool = True) -> Any:
    """Declares a field of a `Call` or a `CheckedRecord`; without a default, the field is required."""
    return Param(text, default, kw_only)


def _signed(value: Any) -> int:
    number = index(value)
    if not -(1 << 31) <= number < 1 << 31:
        raise TypeError("not a signed 32-bit integer")
    return number


def _integer(value: Any) -> int:
    number = index(value)
    if not 0 <= number < 1 << 32:
        raise TypeError("not an unsigned 32-bit integer")
    return number


def _wide_hint(value: object) -> str:
    """An explanation for an integer that does not fit 32 bits; empty for all other values."""
    wide = isinstance(value, int) and value >= 1 << 32
    return f"; it has 32 bits, at most {(1 << 32) - 1:,}" if wide else ""


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError("not a bool")
    return bool(value)


def _real(value: Any) -> float:
    if not isinstance(value, Real | np.bool_):  # the bindings turn each of them into a float
        raise TypeError("not a number")
    return float(value)


def integers(*lengths: int) -> Kind:
    """The kind of sequences of non-negative integers with one of the given lengths."""

    def convert(value: Any) -> tuple[int, ...]:
        ordered = type(value) is tuple or (
            isinstance(value, Sequence | np.ndarray) and not isinstance(value, str | bytes)
        )
        if not ordered or len(value) not in lengths:
            raise TypeError("no sequence of such a length")
        return tuple(map(_integer, value))

    def hint(value: object) -> str:
        if isinstance(value, tuple | list):
            return next(filter(None, map(_wide_hint, value)), "")
        single = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return f"; write {(value,) * lengths[0]}" if single else ""

    return Kind(f"{' or '.join(map(str, lengths))} non-negative integers", convert, hint)


Integer = Annotated[int, Kind("int", _signed)]  # of either sign, of 32 bits
LongInteger = Annotated[int, Kind("int", index)]  # of any size
Pair = Annotated[Sequence[int], integers(2)]  # down, across
Padding = Annotated[Sequence[int], integers(2, 4)]  # (height, width) or (top, bottom, left, right)


def two(pair: Sequence[int]) -> tuple[int, int]:
    """A checked Pair as a tuple."""
    return pair[0], pair[1]


def four(padding: Sequence[int]) -> tuple[int, int, int, int]:
    """A checked Padding as (top, bottom, left, right)."""
    if len(padding) == 2:
        return padding[0], padding[0], padding[1], padding[1]
    return padding[0], padding[1], padding[2], padding[3]


def _instance(wanted: type) -> Kind:
    def convert(value: Any) -> Any:
        if not isinstance(value, wanted):
            raise TypeError("wrong type")
        return value

    return Kind(wanted.__name__, convert, lambda value: _way_out(wanted, value))


def _way_out(wanted: type, value: object) -> str:
    """A hint how to convert a value to the expected type; empty if none is known."""
    if wanted.__name__ == "Device":
        return "; ttnn.open_device returns one"
    if wanted.__name__ == "Tensor":
        array = isinstance(value, np.ndarray) or type(value).__module__.partition(".")[0] == "torch"
        return "; ttnn.from_torch makes one of it" if array else ""
    name = str(value).rpartition(".")[2].rstrip("'>").upper()  # of torch.bfloat16, numpy.float32 or "bfloat16"
    if not issubclass(wanted, Enum) or name not in wanted.__members__:
        return ""
    return f"; write ttnn.{name.lower() if wanted.__name__ == 'DataType' else f'{wanted.__name__}.{name}'}"


_PLAIN = {
    int: Kind("non-negative int", _integer, _wide_hint),
    bool: Kind("bool", _boolean),
    float: Kind("float", _real),
    NoneType: Kind("None", _instance(NoneType).convert),
}


def _either(kinds: Sequence[Kind]) -> Kind:
    def convert(value: Any) -> Any:
        for kind in kinds:
            with suppress(TypeError):
                return kind.convert(value)
        raise TypeError("none of these")

    def hint(value: object) -> str:
        return next((text for text in (kind.hint(value) for kind in kinds) if text), "")

    return Kind(" or ".join(kind.text for kind in kinds), convert, hint)


def kind_of(hint: Any) -> Kind:
    """The kind of an annotation."""
    if get_origin(hint) is Annotated:
        return next(extra for extra in get_args(hint) if isinstance(extra, Kind))
    if get_origin(hint) in (Union, UnionType):
        return _either(tuple(map(kind_of, get_args(hint))))
    plain = _PLAIN.get(NoneType if hint is None else hint)
    return plain or _instance(get_origin(hint) or hint)  # isinstance takes no Sequence[int]


@dataclass(frozen=True, slots=True)
class Signature:
    """Keyword-only arguments of a function or a config."""

    # What the real library calls it in an error: "ttnn.conv2d" of an operation, or the name of a function of the
    # bindings ("__init__")
    entry: str
    name: str  # What the user calls it
    arguments: Mapping[str, Param]  # By name, in order
    # Names that older versions had, with what to do instead: accepted with a warning, and ignored
    retired: Mapping[str, str] = field(default_factory=dict)
    # Names that other forms of the real library's function have, each with the parameters here that it may stand for:
    # it is the first of them that is not given
    others: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def bind(self, args: tuple[object, ...], arguments: Mapping[str, object]) -> dict[str, Any]:
        """All arguments in canonical form, with defaults; raises ArgumentTypeError for the first wrong argument."""
        if self.others:
            self._require_names_of_forms(arguments)
        by_position = (name for name, argument in self.arguments.items() if not argument.kw_only)
        named = dict(zip(by_position, args, strict=False))
        for name in named:
            if name in arguments:
                raise self.error(arguments, f"{name} is given twice, by position and by name")
        args, arguments = args[len(named) :], {**named, **arguments}
        if not self.others.keys().isdisjoint(arguments):
            arguments = self._by_own_names(arguments)
        if args:
            raise self.error(arguments, f"arguments are keyword-only, but {len(args)} came without a name")
        for name in arguments:
            if name not in self.arguments and not self.known(name, stack_level=4):
                raise self.error(arguments, f"there is no {name!r}{self.nearest(name)}")
        bound = {}
        for name, argument in self.arguments.items():
            value = arguments.get(name, argument.default)
            if value is REQUIRED:
                kind = argument.kind
                raise self.error(arguments, f"{name} is missing; it must be {kind.text}{kind.hint(value)}")
            bound[name] = self.convert(name, value, arguments) if name in arguments else value
        return bound

    def _require_names_of_forms(self, arguments: Mapping[str, object]) -> None:
        """Raises ArgumentTypeError for a number under a tensor's name, or a tensor under a number's name."""
        for other, own in self.others.items():
            for name in own:
                if isinstance(arguments.get(name), Real):
                    raise self.error(arguments, f"{name} is a tensor; a number has the name {other}")
            if type(arguments.get(other)).__name__ == "Tensor":
                raise self.error(arguments, f"{other} is no tensor; a tensor has the name {own[0]}")

    def _by_own_names(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """Arguments of another overload of the function under the names of this overload."""
        own = {name: value for name, value in arguments.items() if name not in self.others}
        for name, value in arguments.items():
            if name in self.others:
                free = next((one for one in self.others[name] if one not in own), None)
                if free is None:
                    what = f"{name} is another name of {self.others[name][0]}, which is given, too"
                    raise self.error(arguments, what)
                own[free] = value
        return own

    def convert(self, name: str, value: object, arguments: Mapping[str, object] | None = None) -> Any:
        """One argument in canonical form; raises ArgumentTypeError if it has the wrong type."""
        kind = self.arguments[name].kind
        try:
            return kind.convert(value)
        except (TypeError, ValueError, OverflowError):
            what = f"{name} must be {kind.text}, not {shown(value)}{kind.hint(value)}"
            raise self.error(arguments or {name: value}, what) from None

    def known(self, name: str, *, stack_level: int) -> bool:
        """Whether a name is a parameter; warns about a retired name."""
        if name in self.retired:
            text = f"{self.name}: {name} is gone from the library and ignored here; {self.retired[name]}"
            warnings.warn(text, FutureWarning, stacklevel=stack_level)
        return name in self.arguments or name in self.retired

    def nearest(self, name: str) -> str:
        """A "did you mean" question with the one parameter that begins so, or else the nearest, if one is similar."""
        longer = [known for known in self.arguments if known.startswith(name)]
        close = longer if len(longer) == 1 else get_close_matches(name, self.arguments, n=1)
        return f"; did you mean {close[0]!r}?" if close else ""

    def error(self, arguments: Mapping[str, object], what: str) -> ArgumentTypeError:
        """An error with the real library's first line, our explanation, and the rest of the library's text."""
        forms = {
            name: f"{name}: {argument.kind.text}" + ("" if argument.default is REQUIRED else f" = {argument.default}")
            for name, argument in self.arguments.items()
        }
        placed = [forms.pop(name) for name, argument in self.arguments.items() if not argument.kw_only]
        wanted = ", ".join([*placed, *(["*"] if forms else []), *forms.values()])
        if self.entry.startswith(OPERATIONS):
            received = ", ".join(f"{name}={shown(value)}" for name, value in arguments.items())
            short = self.entry.rpartition(".")[2]
            rest = f"\nCalled with:\n  {short}({received})\n\nAvailable signatures:\n  {short}({wanted})"
        else:
            received = ", ".join(f"{name}: {type(value).__name__}" for name, value in arguments.items())
            rest = f"    1. {self.entry}({wanted})\n\nInvoked with types: kwargs = {{ {received} }}"
        return ArgumentTypeError(f"{incompatible(self.entry)}\n{self.name}: {what}\n{rest}")


def incompatible(entry: str) -> str:
    """The real library's first line for incompatible arguments of a function, given by the library's name."""
    line = f"{entry}(): incompatible function arguments."
    return line if entry.startswith(OPERATIONS) else f"{line} The following argument types are supported:"


def wrong(owner: str, text: str) -> ArgumentTypeError:
    """The error for arguments that match no overload: the real library's first line, then a sentence."""
    return ArgumentTypeError(f"{incompatible(OPERATIONS + owner)}\n{owner.rpartition('.')[2]}: {text}")


def checked_as(
    prefix: str = OPERATIONS, name: str = "", others: Mapping[str, Sequence[str]] | None = None
) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """A decorator that checks a function's arguments by their annotations before calling it.

    Args:
        prefix: Prefix of the name in the real library's errors: "ttnn." and the modules of an operation; empty for a
            function of the bindings that is not an operation.
        name: Name of the function in errors; its own name by default.
        others: As in `Signature`.
    """

    def check(function: Callable[P, R]) -> Callable[P, R]:
        wanted = replace(signature_of(function, prefix, name), others=others or {})

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return function(**wanted.bind(args, kwargs))  # type: ignore[call-arg]

        return call

    return check


def signature_of(function: Callable[..., object], prefix: str = OPERATIONS, name: str = "") -> Signature:
    """The signature of a function from its annotations; for `prefix` and `name`, see `checked_as`."""
    called = name or function.__name__
    arguments = {
        parameter.name: Param(
            "",
            REQUIRED if parameter.default is Parameter.empty else parameter.default,
            parameter.kind is Parameter.KEYWORD_ONLY,
            kind_of(parameter.annotation),
        )
        for parameter in signature(function).parameters.values()
    }
    return Signature(prefix + called, called, arguments)


checked = checked_as()


def python_signature(arguments: Mapping[str, Param], hints: Mapping[str, Any], returns: Any) -> PythonSignature:
    """A Signature as Python's `inspect.Signature`."""
    parameters = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY if argument.kw_only else Parameter.POSITIONAL_OR_KEYWORD,
            default=Parameter.empty if argument.default is REQUIRED else argument.default,
            annotation=hints[name],
        )
        for name, argument in arguments.items()
    ]
    return PythonSignature(parameters, return_annotation=returns)


def require_type(owner: str, kind: type, **arguments: object) -> None:
    """Raises ArgumentTypeError for the first argument of another type; the error names function and argument."""
    first = f"{incompatible(OPERATIONS + owner)}\n" if owner in BOUND else ""
    for name, value in arguments.items():
        if not isinstance(value, kind):
            text = f"{name} must be a {kind.__name__}, not {shown(value)}{_way_out(kind, value)}"
            raise ArgumentTypeError(f"{first}{owner}: {text}")


def require_type_or_none(owner: str, kind: type, **arguments: object) -> None:
    """Checks the types of arguments that may be None, like `require_type`."""
    require_type(owner, kind, **{name: value for name, value in arguments.items() if value is not None})


def required_integer(owner: str, name: str, value: object) -> int:
    """A Python int from any integer type except bool; raises ArgumentTypeError for anything else."""
    try:
        if isinstance(value, bool | np.bool_ | np.ndarray):
            raise TypeError("no integer")
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(f"{owner}: {name} must be an integer, not {shown(value)}") from None


def required_sides(owner: str, shape: object) -> tuple[int, ...]:
    """The sides of a shape, integers of at least 0.

    Raises ArgumentTypeError for anything else, ArgumentError for more elements than any array has.
    """
    if isinstance(shape, str | bytes) or not isinstance(shape, Sequence):
        raise ArgumentTypeError(f"{owner}: shape must be integers, not {shown(shape)}")
    sides = tuple(required_integer(owner, "every side of shape", side) for side in shape)
    if any(side < 0 for side in sides):
        raise ArgumentTypeError(f"{owner}: no side of shape may be negative, as in {shown(shape)}")
    if prod(sides) > MOST_ELEMENTS:
        raise ArgumentError(f"{owner}: shape must have at most {MOST_ELEMENTS:,} elements, not {prod(sides):,}")
    return sides


@dataclass_transform(kw_only_default=True, field_specifiers=(param,))
class CheckedRecord:
    """A config: fields are keyword arguments, checked at construction and at every later assignment.

    A subclass declares its fields with texts (`param`) and defaults; fields without a default are required.
    ``_retired`` maps fields of older versions to their replacement.
    """

    _signature: ClassVar[Signature]
    _retired: ClassVar[Mapping[str, str]] = {}
    __signature__: ClassVar[PythonSignature]

    def __init_subclass__(cls) -> None:
        """Reads the fields of the subclass; their defaults become class attributes."""
        if params := {name: parameter for name, parameter in vars(cls).items() if isinstance(parameter, Param)}:
            texts = {name: parameter.text for name, parameter in params.items()}
            cls.__doc__ = documented(cls.__doc__ or "", {"Attributes": texts})
        for name, parameter in params.items():
            if parameter.default is REQUIRED:
                delattr(cls, name)
            else:
                setattr(cls, name, parameter.default)
        hints = get_type_hints(cls, include_extras=True)
        arguments = {
            name: Param("", getattr(cls, name, REQUIRED), kind=kind_of(hint))
            for name, hint in hints.items()
            if get_origin(hint) is not ClassVar
        }
        cls.__signature__ = python_signature(arguments, hints, None)
        cls._signature = Signature("__init__", cls.__name__, arguments, cls._retired)

    def __init__(self, *args: object, **fields: object) -> None:
        """Sets the fields by keyword; raises ArgumentTypeError for a wrong, unknown or missing field."""
        for name, value in self._signature.bind(args, fields).items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        """Assigns a field; raises ArgumentTypeError for a wrong type, AttributeError for an unknown field."""
        if not self._signature.known(name, stack_level=3):
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}{self._signature.nearest(name)}"
            )
        if name in self._signature.arguments:
            object.__setattr__(self, name, self._signature.convert(name, value))

    def __copy__(self) -> Self:
        """A copy of the config, without checking its fields again."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # fields can be assigned

    def __repr__(self) -> str:
        return f"{type(self).__name__}({','.join(f'{name}={_cpp(value)}' for name, value in vars(self).items())})"


def _cpp(value: object) -> str:
    """A field as the real library prints it: C++ names, and bools as digits."""
    if value is None:
        return "std::nullopt"
    if isinstance(value, bool):
        return str(int(value))
    return str(value).replace(".", "::") if isinstance(value, Enum) else str(value)


@dataclass_transform(kw_only_default=True, field_specifiers=(param,))
class Call:
    """A call of a function, with checked arguments in canonical form.

    A subclass declares the parameters as fields, has the function's docstring without the arguments, and a method
    ``run``. Fields are inherited; a subclass with a name becomes a function.
    """

    _name: ClassVar[str] = ""
    _order: ClassVar[Sequence[str]] = ()
    _others: ClassVar[Mapping[str, Sequence[str]]] = {}  # as in `Signature`
    _called: ClassVar[Mapping[str, str]] = {}  # what callers call fields that have other names in the class
    _signature: ClassVar[Signature]

    def __init_subclass__(cls, *, name: str = "", parameters: str = "", prefix: str = OPERATIONS) -> None:
        """Reads the fields of the subclass.

        ``parameters`` are the names of all fields in the order of the function's signature (default: inherited fields
        first); they may include names of subclasses' fields. ``prefix`` precedes the name in the real library's errors.
        """
        cls._order = parameters.split() or cls._order
        if name:
            fields = {key: value for base in reversed(cls.__mro__) for key, value in vars(base).items()}
            params = {key: value for key, value in fields.items() if isinstance(value, Param)}
            order = [key for key in cls._order or params if key in params]
            assert set(order) == set(params), set(order) ^ set(params)
            hints = get_type_hints(cls, include_extras=True)
            arguments = {cls._called.get(key, key): replace(params[key], kind=kind_of(hints[key])) for key in order}
            cls._name, cls._signature = name, Signature(prefix + name, name, arguments, others=cls._others)

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        """Names of the function's parameters, in order."""
        return tuple(cls._signature.arguments)

    def __init__(self, *args: object, **fields: object) -> None:
        """Sets the fields; raises ArgumentTypeError for a wrong, unknown, missing or repeated field."""
        vars(self).update(self._signature.bind(args, fields))
        for field_name, name in self._called.items():
            vars(self)[field_name] = vars(self).pop(name)


class Runs(Protocol[R_co]):
    """A call that can run."""

    def run(self) -> R_co:
        """Runs the call."""
        ...


def function_of(call: Callable[P, Runs[R]], module: str = "") -> Callable[P, R]:
    """The public function that creates and runs calls of one kind; its module defaults to that of the call."""
    kind: Any = call

    def function(*args: P.args, **kwargs: P.kwargs) -> R:
        return call(*args, **kwargs).run()

    hints, params = get_type_hints(kind, include_extras=True), kind._signature.arguments
    hints |= {name: hints[field_name] for field_name, name in kind._called.items()}
    function.__name__ = function.__qualname__ = kind._name
    function.__module__ = module or kind.__module__
    texts = {name: parameter.text for name, parameter in params.items()}
    function.__doc__ = documented(kind.__doc__ or "", {"Args": texts, "Raises": RAISES})
    returns = get_type_hints(kind.run)["return"]
    function.__signature__ = python_signature(params, hints, returns)  # type: ignore[attr-defined]
    return function
