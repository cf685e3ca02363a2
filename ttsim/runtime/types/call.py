"""Calls as tables: the parameters of a function stand once, as fields of a `Call`, and the function is made from them.

A field has a kind (its annotation), a text and perhaps a default. From the fields come the function's signature, its
docstring and the checks of its arguments; other modules read flags, files and texts of calls from them.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import Enum
from functools import wraps
from inspect import Parameter, Signature as PythonSignature, cleandoc, signature
from operator import index
from textwrap import fill
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
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

from device.errors import ArgumentTypeError, shown

P = ParamSpec("P")
R = TypeVar("R")
REQUIRED = object()
DOC_COLUMNS = 116  # of a line of a docstring that is made
# Operations of the bindings that ask for the types of their arguments one by one.
BOUND = frozenset({"deallocate", "from_device", "to_device", "to_dtype", "to_layout", "to_memory_config", "typecast"})
OPERATIONS = "ttnn."  # what the real library's names of operations begin with


@dataclass(frozen=True, slots=True)
class Kind:
    """The values that an argument may have."""

    text: str  # How a message names it
    convert: Callable[[Any], Any]  # Gives the value in its plain form; raises TypeError when it is not of this kind
    # What would make a value of this kind of one that is not; empty where that is not known
    hint: Callable[[object], str] = lambda value: ""


@dataclass(frozen=True, slots=True)
class Argument:
    """One keyword: its kind and its default (REQUIRED if it has none)."""

    kind: Kind
    default: object = REQUIRED


@dataclass(frozen=True, slots=True)
class Param:
    """A parameter of a call: what it means, and its default."""

    text: str
    default: object = REQUIRED
    kw_only: bool = True  # Whether it must be given by its name


def param(text: str, *, default: Any = REQUIRED, kw_only: bool = True) -> Any:
    """A field of a `Call`; required without a default."""
    return Param(text, default, kw_only)


def documented(doc: str, heading: str, params: Mapping[str, Param]) -> str:
    """A docstring with the texts of parameters, which stand before what a function returns or raises."""
    texts = (
        fill(f"{name}: {param.text}", DOC_COLUMNS, initial_indent="    ", subsequent_indent="        ")
        for name, param in params.items()
    )
    text = cleandoc(doc)
    at = min(
        (place for place in (text.find("\nReturns:\n"), text.find("\nRaises:\n")) if place >= 0), default=len(text)
    )
    return f"{text[:at].rstrip()}\n\n{heading}:\n" + "\n".join(texts) + f"\n{text[at:]}"


def _integer(value: Any) -> int:
    number = index(value)
    if not 0 <= number < 1 << 32:
        raise TypeError("not an unsigned 32-bit integer")
    return number


def _boolean(value: Any) -> bool:
    if not isinstance(value, bool | np.bool_):
        raise TypeError("not a bool")
    return bool(value)


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
        single = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        return f"; write {(value,) * lengths[0]}" if single else ""

    return Kind(f"{' or '.join(map(str, lengths))} non-negative integers", convert, hint)


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

    return Kind(wanted.__name__, convert, _conversion if wanted.__name__ == "Tensor" else lambda value: "")


def _conversion(value: object) -> str:
    """The function that converts a tensor of another library."""
    array = isinstance(value, np.ndarray) or type(value).__module__.partition(".")[0] == "torch"
    return "; ttsim.from_torch makes one of it" if array else ""


def _either(kinds: list[Kind], *, optional: bool) -> Kind:
    def convert(value: Any) -> Any:
        if optional and value is None:
            return None
        for kind in kinds:
            try:
                return kind.convert(value)
            except TypeError:
                continue
        raise TypeError("none of these")

    def hint(value: object) -> str:
        return next((text for text in (kind.hint(value) for kind in kinds) if text), "")

    return Kind(" or ".join(kind.text for kind in kinds), convert, hint)


def kind_of(hint: Any) -> Kind:
    """The kind that an annotation stands for."""
    if get_origin(hint) is Annotated:
        return next(extra for extra in get_args(hint) if isinstance(extra, Kind))
    if get_origin(hint) in (Union, UnionType):
        options = get_args(hint)
        return _either([kind_of(option) for option in options], optional=NoneType in options)
    if hint is int:
        return Kind("non-negative int", _integer)
    if hint is bool:
        return Kind("bool", _boolean)
    if hint is NoneType:
        return Kind("None", _instance(NoneType).convert)
    return _instance(hint)


@dataclass(frozen=True, slots=True)
class Signature:
    """Keyword-only arguments of a function or a config."""

    # What the real library calls it in an error: "ttnn.conv2d" of an operation, or the name of a function of the
    # bindings ("__init__")
    entry: str
    name: str  # What the user calls it
    arguments: Mapping[str, Argument]  # By name, in order
    # Names that older versions had, with what to do instead: accepted with a warning, and ignored
    retired: Mapping[str, str] = field(default_factory=dict)

    def bind(
        self, args: tuple[object, ...], arguments: Mapping[str, object], by_position: Sequence[str] = ()
    ) -> dict[str, Any]:
        """Every argument in its plain form, with defaults; ``by_position`` are the names of positional arguments.

        Raises:
            ArgumentTypeError: An argument is unknown, missing, given twice or of the wrong type; or one too many has no
                name.
        """
        named = dict(zip(by_position, args, strict=False))
        for name in named:
            if name in arguments:
                raise ArgumentTypeError(self.refusal(arguments, f"{name} is given twice, by position and by name"))
        args, arguments = args[len(named) :], {**named, **arguments}
        if args:
            raise ArgumentTypeError(
                self.refusal(arguments, f"arguments are keyword-only, but {len(args)} came without a name")
            )
        for name in arguments:
            if name not in self.arguments and not self.known(name, stack_level=4):
                raise ArgumentTypeError(self.refusal(arguments, f"there is no {name!r}{self.nearest(name)}"))
        bound = {}
        for name, argument in self.arguments.items():
            value = arguments.get(name, argument.default)
            if value is REQUIRED:
                raise ArgumentTypeError(self.refusal(arguments, f"{name} is missing; it must be {argument.kind.text}"))
            bound[name] = self.convert(name, value, arguments) if name in arguments else value
        return bound

    def convert(self, name: str, value: object, arguments: Mapping[str, object] | None = None) -> Any:
        """One argument in its plain form; raises ArgumentTypeError if it is of the wrong type."""
        kind = self.arguments[name].kind
        try:
            return kind.convert(value)
        except (TypeError, ValueError):
            what = f"{name} must be {kind.text}, not {shown(value)}{kind.hint(value)}"
            raise ArgumentTypeError(self.refusal(arguments or {name: value}, what)) from None

    def known(self, name: str, *, stack_level: int) -> bool:
        """Whether a name means something; warns if it is a retired one."""
        if name in self.retired:
            text = f"{self.name}: {name} is gone from the library and ignored here; {self.retired[name]}"
            warnings.warn(text, FutureWarning, stacklevel=stack_level)
        return name in self.arguments or name in self.retired

    def nearest(self, name: str) -> str:
        """A question about the nearest right spelling, if one is near."""
        close = get_close_matches(name, self.arguments, n=1)
        return f"; did you mean {close[0]!r}?" if close else ""

    def refusal(self, arguments: Mapping[str, object], what: str) -> str:
        """The first line of the real library, what is wrong in our words, and the rest of the library's text."""
        wanted = ", ".join(
            f"{name}: {argument.kind.text}" + ("" if argument.default is REQUIRED else f" = {argument.default}")
            for name, argument in self.arguments.items()
        )
        first = incompatible(self.entry)
        if self.entry.startswith(OPERATIONS):
            received = ", ".join(f"{name}={shown(value)}" for name, value in arguments.items())
            short = self.entry.rpartition(".")[2]
            return (
                f"{first}\n{self.name}: {what}\n\nCalled with:\n  {short}({received})\n\n"
                f"Available signatures:\n  {short}(*, {wanted})"
            )
        received = ", ".join(f"{name}: {type(value).__name__}" for name, value in arguments.items())
        return (
            f"{first}\n"
            f"{self.name}: {what}\n"
            f"    1. {self.entry}(*, {wanted})\n\n"
            f"Invoked with types: kwargs = {{ {received} }}"
        )


def incompatible(entry: str) -> str:
    """The real library's first line for arguments that do not fit, by the name that the library gives a function."""
    line = f"{entry}(): incompatible function arguments."
    return line if entry.startswith(OPERATIONS) else f"{line} The following argument types are supported:"


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """Checks the arguments of an operation by its annotations before calling it.

    All are keyword arguments, but for those that the function itself takes by position. Errors name the function as it
    is named at the time of the call.
    """
    return checked_as(OPERATIONS)(function)


def checked_as(prefix: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`checked`, for a function before whose name the real library's errors put a prefix.

    The prefix is "ttnn." and the modules of an operation; a function of the bindings that is no operation has none.
    """

    def check(function: Callable[P, R]) -> Callable[P, R]:
        hints = get_type_hints(function, include_extras=True)
        arguments = {
            name: Argument(
                kind_of(hints[name]), REQUIRED if parameter.default is Parameter.empty else parameter.default
            )
            for name, parameter in signature(function).parameters.items()
        }
        expected = Signature(prefix + function.__name__, function.__name__, arguments)
        by_position = [
            name
            for name, parameter in signature(function).parameters.items()
            if parameter.kind is not Parameter.KEYWORD_ONLY
        ]

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            name = call.__name__
            wanted = expected if name == expected.name else replace(expected, entry=prefix + name, name=name)
            return function(**wanted.bind(args, kwargs, by_position))  # type: ignore[call-arg]

        return call

    return check


def require_type(owner: str, kind: type, **arguments: object) -> None:
    """Raises ArgumentTypeError, naming function and argument, for the first that is of another type."""
    first = f"{incompatible(OPERATIONS + owner)}\n" if owner in BOUND else ""
    for name, value in arguments.items():
        if not isinstance(value, kind):
            raise ArgumentTypeError(f"{first}{owner}: {name} must be a {kind.__name__}, not {shown(value)}")


def require_type_or_none(owner: str, kind: type, **arguments: object) -> None:
    """Checks the types of arguments that may be None, as `require_type` does."""
    require_type(owner, kind, **{name: value for name, value in arguments.items() if value is not None})


def required_integer(owner: str, name: str, value: object) -> int:
    """A plain integer of any kind of integer but a bool; raises ArgumentTypeError for anything else."""
    try:
        if isinstance(value, bool | np.bool_ | np.ndarray):
            raise TypeError("no integer")
        return index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ArgumentTypeError(f"{owner}: {name} must be an integer, not {shown(value)}") from None


@dataclass_transform(kw_only_default=True, field_specifiers=(param,))
class CheckedRecord:
    """A config: fields given by keyword, checked then and at every later assignment.

    A subclass annotates its fields and gives their texts (`param`) and defaults; fields without a default are required.
    ``_retired`` names fields of older versions, with what to do instead.
    """

    _signature: ClassVar[Signature]
    _retired: ClassVar[Mapping[str, str]] = {}

    def __init_subclass__(cls) -> None:
        """Reads the fields of the subclass; their defaults stay its attributes."""
        if params := {name: parameter for name, parameter in vars(cls).items() if isinstance(parameter, Param)}:
            cls.__doc__ = documented(cls.__doc__ or "", "Attributes", params)
        for name, parameter in params.items():
            if parameter.default is REQUIRED:
                delattr(cls, name)
            else:
                setattr(cls, name, parameter.default)
        arguments = {
            name: Argument(kind_of(hint), getattr(cls, name, REQUIRED))
            for name, hint in get_type_hints(cls, include_extras=True).items()
            if get_origin(hint) is not ClassVar
        }
        cls._signature = Signature("__init__", cls.__name__, arguments, cls._retired)

    def __init__(self, *args: object, **fields: object) -> None:
        """Takes the fields by keyword; raises ArgumentTypeError for a wrong, unknown or missing one."""
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
        """Another config of the same fields, which were checked."""
        twin = object.__new__(type(self))
        vars(twin).update(vars(self))
        return twin

    def __eq__(self, other: object) -> bool:
        """Whether the other is the same kind of config with equal fields."""
        return type(other) is type(self) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # fields can be assigned

    def __repr__(self) -> str:
        """Fields by name, as the real library prints configs."""
        return f"{type(self).__name__}({','.join(f'{name}={_cpp(value)}' for name, value in vars(self).items())})"


def _cpp(value: object) -> str:
    """A field as the real library prints it: C++ names, and bools as digits."""
    if value is None:
        return "std::nullopt"
    if isinstance(value, bool):
        return str(int(value))
    return str(value).replace(".", "::") if isinstance(value, Enum) else str(value)


R_co = TypeVar("R_co", covariant=True)


@dataclass_transform(kw_only_default=True, field_specifiers=(param,))
class Call:
    """A call of a function, its arguments checked and in their plain form.

    A subclass has the parameters as fields, the function's docstring without the arguments, and a method ``run``.
    Fields are inherited; a subclass with a name is a function.
    """

    _name: ClassVar[str] = ""
    _by_position: ClassVar[tuple[str, ...]] = ()
    _params: ClassVar[Mapping[str, Param]] = {}
    _signature: ClassVar[Signature]

    def __init_subclass__(cls, *, name: str = "", parameters: str = "", prefix: str = OPERATIONS) -> None:
        """Reads the fields of the subclass.

        ``parameters`` are the names of all fields in the order of the function's signature (default: inherited fields
        first); ``prefix`` is what the real library's errors put before the name.
        """
        params = {
            key: parameter
            for base in reversed(cls.__mro__)
            for key, parameter in vars(base).items()
            if isinstance(parameter, Param)
        }
        if name:
            cls._name, order = name, parameters.split() or list(params)
            assert set(order) == set(params), set(order) ^ set(params)
            cls._params = {key: params[key] for key in order}
            cls._by_position = tuple(key for key, parameter in cls._params.items() if not parameter.kw_only)
            hints = get_type_hints(cls, include_extras=True)
            arguments = {
                key: Argument(kind_of(hints[key]), parameter.default) for key, parameter in cls._params.items()
            }
            cls._signature = Signature(prefix + name, name, arguments)

    @classmethod
    def parameters(cls) -> tuple[str, ...]:
        """Names of the function's parameters, in order."""
        return tuple(cls._params)

    def __init__(self, *args: object, **fields: object) -> None:
        """Takes the fields; raises ArgumentTypeError for a wrong, unknown, missing or doubled one."""
        vars(self).update(self._signature.bind(args, fields, self._by_position))


class Runs(Protocol[R_co]):
    """A call that can be carried out."""

    def run(self) -> R_co:
        """Carries the call out."""
        ...


def function_of(call: Callable[P, Runs[R]]) -> Callable[P, R]:
    """The function that makes and carries out calls of one kind."""
    kind: Any = call

    def function(*args: P.args, **kwargs: P.kwargs) -> R:
        return call(*args, **kwargs).run()

    hints = get_type_hints(kind, include_extras=True)
    parameters = [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY if parameter.kw_only else Parameter.POSITIONAL_OR_KEYWORD,
            default=Parameter.empty if parameter.default is REQUIRED else parameter.default,
            annotation=hints[name],
        )
        for name, parameter in kind._params.items()
    ]
    returns = get_type_hints(kind.run)["return"]
    function.__name__ = function.__qualname__ = kind._name
    function.__module__ = kind.__module__
    docs = (base.__doc__ or "" for base in kind.__mro__)  # errors are those of what it inherits from, if not its own
    raises = next((doc[doc.index("\n    Raises:") :] for doc in docs if "\n    Raises:" in doc), "")
    text = kind.__doc__ if "Raises:" in kind.__doc__ else f"{kind.__doc__.rstrip()}\n{raises}"
    function.__doc__ = documented(text, "Args", kind._params)
    function.__signature__ = PythonSignature(parameters, return_annotation=returns)  # type: ignore[attr-defined]
    return function
