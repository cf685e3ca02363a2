"""Parameters of a model and arguments of its layers, by name; items are also attributes."""

from collections.abc import Mapping
from typing import Any, TypeAlias

from ttsim.runtime.tensor import Tensor


class DotDict(dict[Any, Any]):
    """A dict whose items are also attributes."""

    def __getattr__(self, name: str) -> Any:
        """The item of this name; raises AttributeError if there is none."""
        try:
            return self[name]
        except KeyError:
            raise self._missing(name) from None

    def __delattr__(self, name: str) -> None:
        """Deletes the item of this name; raises AttributeError if there is none."""
        try:
            del self[name]
        except KeyError:
            raise self._missing(name) from None

    def _missing(self, name: str) -> AttributeError:
        known = ", ".join(map(str, self))
        return AttributeError(f"{type(self).__name__} has no {name!r}; it has {known}")


class ModuleArgs(DotDict):
    """The arguments of a layer, for a ttnn function that replaces the layer; items are also attributes.

    Examples:
        >>> ttnn.model_preprocessing.ModuleArgs(stride=2).stride
        2
    """


class Conv2dArgs(ModuleArgs):
    """The arguments of a Conv2d.

    Examples:
        >>> ttnn.model_preprocessing.Conv2dArgs(in_channels=4).in_channels
        4
    """


class ConvTranspose2dArgs(ModuleArgs):
    """The arguments of a ConvTranspose2d.

    Examples:
        >>> ttnn.model_preprocessing.ConvTranspose2dArgs(in_channels=4).in_channels
        4
    """


class MaxPool2dArgs(ModuleArgs):
    """The arguments of a MaxPool2d.

    Examples:
        >>> ttnn.model_preprocessing.MaxPool2dArgs(kernel_size=2).kernel_size
        2
    """


class GroupNormArgs(ModuleArgs):
    """The arguments of a GroupNorm.

    Examples:
        >>> ttnn.model_preprocessing.GroupNormArgs(num_groups=2).num_groups
        2
    """


class ParameterDict(DotDict):
    """Parameters by name, possibly nested: ``parameters.encoder[0].weight``; prints shapes instead of values.

    Examples:
        >>> ttnn.model_preprocessing.ParameterDict(weight=ttnn.zeros((2, 4)))
        {
          weight: ttnn.Tensor(shape=Shape([2, 4]), layout=Layout.ROW_MAJOR, dtype=DataType.BFLOAT16)
        }
    """

    def __repr__(self) -> str:
        """One line for each parameter."""
        return _drawn(self)


class ParameterList(list[Any]):
    """Parameters of a list of modules; printed like a ParameterDict.

    Examples:
        >>> 0 in ttnn.model_preprocessing.ParameterList(["first"])
        True
    """

    def __contains__(self, index: object) -> bool:
        """Whether there is an item of this number, as in ttnn."""
        return isinstance(index, int) and index < len(self)

    def __repr__(self) -> str:
        """One line for each parameter."""
        return _drawn(self)


Parameters: TypeAlias = ParameterDict | ParameterList


def make_parameter_dict(dictionary: Mapping[Any, Any]) -> ParameterDict:
    """Converts a dict and its nested dicts to ParameterDicts; a ModuleArgs is not converted.

    Args:
        dictionary: Values by name.

    Returns:
        The nested ParameterDict.

    Raises:
        AttributeError: The argument is not a mapping.

    Examples:
        >>> ttnn.model_preprocessing.make_parameter_dict({"conv": {"weight": 1}}).conv.weight
        1
    """
    if isinstance(dictionary, ParameterDict):
        return dictionary
    nested = {key for key, value in dictionary.items() if isinstance(value, dict) and not isinstance(value, ModuleArgs)}
    return ParameterDict(
        {key: make_parameter_dict(value) if key in nested else value for key, value in dictionary.items()}
    )


def _drawn(parameters: Any, indent: str = "") -> str:
    """Parameters as text; nested parameters are indented."""
    inner = indent + "  "
    if isinstance(parameters, ParameterDict):
        lines, brackets = [f"{name}: {_drawn(value, inner)}" for name, value in parameters.items()], "{}"
    elif isinstance(parameters, ParameterList):
        lines, brackets = [_drawn(value, inner) for value in parameters], "[]"
    elif isinstance(parameters, ModuleArgs):
        lines, brackets = [f"{name}: {value}" for name, value in parameters.items()], "{}"
    elif isinstance(parameters, Tensor):
        return f"ttnn.Tensor(shape={parameters.shape}, layout={parameters.layout}, dtype={parameters.dtype})"
    elif hasattr(parameters, "shape") and hasattr(parameters, "dtype"):
        return f"torch.Tensor(shape={parameters.shape}, dtype={parameters.dtype})"
    else:
        return repr(parameters)
    body = ",\n".join(f"{inner}{line}" for line in lines)
    return f"{brackets[0]}\n{body}\n{indent}{brackets[1]}" if lines else brackets
