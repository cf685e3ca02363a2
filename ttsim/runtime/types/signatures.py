"""Signatures as ``help()`` shows them: types by their short names, without module paths and argument checks."""

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from inspect import Parameter, Signature, isclass, isfunction, signature
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import numpy as np

OWN = ("device", "ops", "ttsim")  # packages whose methods are shown like this


class ShortType(str):
    """The text of an annotation, which `inspect` prints without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def short_type(annotation: Any) -> ShortType:
    """An annotation as users write it: ``Sequence[int]``, ``DataType | None``."""
    return ShortType(_text(annotation))


def _text(annotation: Any) -> str:
    origin, args = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, str):
        return annotation
    if isinstance(annotation, list):  # the parameters of a Callable
        return f"[{', '.join(map(_text, annotation))}]"
    if annotation in (None, NoneType):
        return "None"
    if annotation is Ellipsis:
        return "..."
    if origin is Annotated:
        return _text(args[0])
    if origin in (Union, UnionType):
        return " | ".join(map(_text, args))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, args))}]"
    name: str = getattr(origin or annotation, "__name__", str(annotation))
    return f"{name}[{', '.join(map(_text, args))}]" if args and origin is not np.ndarray else name


def shorten(function: Callable[..., Any]) -> None:
    """Gives a function a signature of short types."""
    own = signature(function)
    parameters = [
        parameter.replace(annotation=short_type(parameter.annotation))
        if parameter.annotation is not Parameter.empty
        else parameter
        for parameter in own.parameters.values()
    ]
    returned = own.return_annotation
    shown = returned if returned is Signature.empty else short_type(returned)
    function.__signature__ = own.replace(parameters=parameters, return_annotation=shown)  # type: ignore[attr-defined]


@cache
def _shorten_methods(owner: type) -> None:
    if "__signature__" in vars(owner):
        shorten(owner)
    for member in list(vars(owner).values()):
        function = getattr(member, "__func__", member)
        if isfunction(function):
            shorten(function)


def shorten_all(values: Iterable[object]) -> None:
    """Shortens the signatures of functions and of the methods of classes among some values."""
    for value in values:
        if isfunction(value):
            shorten(value)
        elif isclass(value):
            for base in value.__mro__:
                if base.__module__.partition(".")[0] in OWN:
                    _shorten_methods(base)


def public(names: Mapping[str, Any]) -> Callable[[], list[str]]:
    """The ``__dir__`` of a module, by its namespace: ``__all__``, whose signatures are shortened."""
    shorten_all(names[name] for name in names["__all__"])
    return lambda: sorted(names["__all__"])
