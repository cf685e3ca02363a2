"""Nested parameters of a model, which can be reached by name: ``parameters.encoder[0].weight``."""

from collections.abc import Mapping
from typing import Any

from ttsim.runtime.tensor import Tensor


class DotDict(dict[Any, Any]):
    """A dict whose items are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        """The item of this name; raises AttributeError where there is none."""
        try:
            return self[name]
        except KeyError:
            known = ", ".join(map(str, self))
            raise AttributeError(f"{type(self).__name__} has no {name!r}; it has {known}") from None


class ModuleArgs(DotDict):
    """What a layer of a model was called with, for a function of ttnn that stands for it."""


class Conv2dArgs(ModuleArgs):
    """Of a Conv2d."""


class ConvTranspose2dArgs(ModuleArgs):
    """Of a ConvTranspose2d."""


class MaxPool2dArgs(ModuleArgs):
    """Of a MaxPool2d."""


class GroupNormArgs(ModuleArgs):
    """Of a GroupNorm."""


class ParameterDict(DotDict):
    """Parameters by name; printed with shapes in place of values."""

    def __repr__(self) -> str:
        """One line for each parameter."""
        return drawn(self)


class ParameterList(list[Any]):
    """Parameters of a list of modules; printed as a ParameterDict."""

    def __contains__(self, index: object) -> bool:
        """Whether there is an item of this number, as in ttnn."""
        return isinstance(index, int) and index < len(self)

    def __repr__(self) -> str:
        """One line for each parameter."""
        return drawn(self)


def make_parameter_dict(dictionary: Mapping[Any, Any]) -> ParameterDict:
    """A dict, and those in it, as ParameterDicts; what layers were called with stays as it is."""
    if isinstance(dictionary, ParameterDict):
        return dictionary
    return ParameterDict(
        {
            name: make_parameter_dict(value) if isinstance(value, dict) and not isinstance(value, ModuleArgs) else value
            for name, value in dictionary.items()
        }
    )


def drawn(parameters: Any, indent: str = "") -> str:
    """Parameters as text, nested ones further in."""
    inner = indent + "  "
    if isinstance(parameters, ParameterDict):
        lines, brackets = [f"{name}: {drawn(value, inner)}" for name, value in parameters.items()], "{}"
    elif isinstance(parameters, ParameterList):
        lines, brackets = [drawn(value, inner) for value in parameters], "[]"
    elif isinstance(parameters, ModuleArgs):
        lines, brackets = [f"{name}: {value}" for name, value in parameters.items()], "{}"
    elif isinstance(parameters, Tensor):
        shown = f"shape={parameters.shape}, layout={parameters.layout}, dtype={parameters.dtype}"
        return f"ttnn.Tensor({shown})"
    elif hasattr(parameters, "shape") and hasattr(parameters, "dtype"):
        return f"torch.Tensor(shape={parameters.shape}, dtype={parameters.dtype})"
    else:
        return repr(parameters)
    if not lines:
        return brackets
    body = ",\n".join(f"{inner}{line}" for line in lines)
    return f"{brackets[0]}\n{body}\n{indent}{brackets[1]}"
