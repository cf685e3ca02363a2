"""Torch tensors of unknown numbers, which a device with ``values="off"`` returns when a script reads a tensor.

Shapes and types are right, and operations of torch return tensors of unknown numbers. An operation that reads a number,
or whose result shape depends on a number, raises DeviceError.
"""

from collections.abc import Callable, Iterable
from typing import Any, Never

import torch
from torch.utils._pytree import tree_flatten, tree_map

from device.errors import DeviceError

_DECIDING = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}


class UnknownTensor(torch.Tensor):
    """A tensor whose numbers are unknown."""

    stand_in: torch.Tensor  # Of the same shape, strides and type; its numbers mean nothing

    @staticmethod
    def __new__(cls, model: torch.Tensor) -> "UnknownTensor":
        """A tensor of the shape and type of another."""
        tensor: UnknownTensor = torch.Tensor._make_wrapper_subclass(
            cls, model.size(), strides=model.stride(), dtype=model.dtype
        )
        tensor.stand_in = model
        return tensor

    def described(self, **options: object) -> str:
        """Shape and type."""
        return f"tensor(<unknown, because values are off>, size={tuple(self.shape)}, dtype={self.dtype})"

    __repr__: Any = described

    def __format__(self, spec: str) -> str:
        return repr(self) if self.dim() else "<unknown>"

    def numpy(self, **options: object) -> Never:
        """Raises DeviceError."""
        raise refused("numpy()")

    def tolist(self) -> Never:
        """Raises DeviceError."""
        raise refused("tolist()")

    def __array__(self, dtype: object = None) -> Never:
        """Raises DeviceError."""
        raise refused("a conversion to numpy")

    def __reduce_ex__(self, protocol: object) -> Never:
        """Raises DeviceError."""
        raise refused("a file")

    __torch_function__: Any = torch._C._disabled_torch_function_impl  # so that no frame of torch is in errors
    __torch_dispatch__: Any  # `_carried_out`


def _name(func: Any) -> str:
    """The user's name of a torch operation."""
    name = str(func._schema.name).removeprefix("aten::")
    return "a Python number or condition" if name == "_local_scalar_dense" else f"torch's {name}"


def _mapped(change: Callable[[Any], Any], kind: type, tree: Any) -> Any:
    """Nested arguments with each tensor of a kind changed."""
    return tree_map(lambda leaf: change(leaf) if isinstance(leaf, kind) else leaf, tree)


def refused(what: str) -> DeviceError:
    """The error for an operation that needs a number."""
    return DeviceError(
        f"values are off, so the numbers of this tensor are unknown, but {what} needs them; compute them with "
        "values='fast' (--values fast, TTSIM_VALUES=fast)"
    )


def _carried_out(
    cls: type[UnknownTensor],
    func: Any,
    types: Iterable[type],
    args: tuple[Any, ...] = (),
    kwargs: dict[Any, Any] | None = None,
) -> Any:
    """Runs an operation on the tensors' contents and marks its results unknown; raises DeviceError for others."""
    kwargs, schema = kwargs or {}, func._schema.arguments
    arguments = dict(zip((argument.name for argument in schema), args, strict=False)) | kwargs
    writes = [
        arguments.get(argument.name) for argument in schema if argument.alias_info and argument.alias_info.is_write
    ]
    if any(isinstance(leaf, torch.Tensor) and not isinstance(leaf, cls) for leaf in tree_flatten(writes)[0]):
        raise refused(f"the tensor of known numbers that {_name(func)} writes")
    chosen = arguments.get("indices") if func is torch.ops.aten.index.Tensor else None
    by_numbers = chosen is None or any(part is not None and part.dtype in (torch.bool, torch.uint8) for part in chosen)
    if by_numbers and _DECIDING.intersection(func.tags):
        raise refused(_name(func))
    args, kwargs = _mapped(lambda tensor: tensor.stand_in, cls, (args, kwargs))
    return _mapped(cls, torch.Tensor, func(*args, **kwargs))


UnknownTensor.__torch_dispatch__ = classmethod(_carried_out)
