"""Calls as tables: the parameters of a function stand once, as fields of a `Call`, and the function is made from them.

A field has a kind (its annotation), a text and perhaps a default. From the fields come the function's signature, its
docstring and the checks of its arguments; other modules read flags, files and texts of calls from them.
"""

from collections.abc import Callable, Mapping
from inspect import Parameter, Signature as PythonSignature
from typing import Any, ClassVar, ParamSpec, Protocol, TypeVar, dataclass_transform, get_type_hints

from ttsim.types.signature import OPERATIONS, REQUIRED, Argument, Param, Signature, documented, kind_of, param

P = ParamSpec("P")
R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")


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

        Args:
            parameters: Names of all fields in the order of the function's signature; inherited fields come first
                without it.
            prefix: What the real library's errors put before the name.
        """
        found = {
            key: one for base in reversed(cls.__mro__) for key, one in vars(base).items() if isinstance(one, Param)
        }
        if name:
            cls._name, order = name, parameters.split() or list(found)
            assert set(order) == set(found), set(order) ^ set(found)
            cls._params = {key: found[key] for key in order}
            cls._by_position = tuple(key for key, one in cls._params.items() if not one.kw_only)
            hints = get_type_hints(cls, include_extras=True)
            arguments = {key: Argument(kind_of(hints[key]), one.default) for key, one in cls._params.items()}
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
            Parameter.KEYWORD_ONLY if one.kw_only else Parameter.POSITIONAL_OR_KEYWORD,
            default=Parameter.empty if one.default is REQUIRED else one.default,
            annotation=hints[name],
        )
        for name, one in kind._params.items()
    ]
    returns = get_type_hints(kind.run)["return"]
    function.__name__ = function.__qualname__ = kind._name
    function.__module__ = kind.__module__
    docs = (base.__doc__ or "" for base in kind.__mro__)  # errors are those of what it inherits from, if not its own
    raises = next((doc[doc.index("\n    Raises:") :] for doc in docs if "\n    Raises:" in doc), "")
    told = kind.__doc__ if "Raises:" in kind.__doc__ else f"{kind.__doc__.rstrip()}\n{raises}"
    function.__doc__ = documented(told, "Args", kind._params)
    function.__signature__ = PythonSignature(parameters, return_annotation=returns)  # type: ignore[attr-defined]
    return function
