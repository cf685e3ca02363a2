"""Names of tt_lib.fallback_ops, a package that comes with ttnn: torch's functions and layers, always on the host.

A result has rank 4 or more. It is bfloat16, or uint32 if torch returns integers; in TILE layout if its last two sides
are whole tiles, else ROW_MAJOR; and in DRAM, except ROW_MAJOR results of odd width, which stay on the host.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import cache, partial
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

from device.errors import ArgumentError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, TILE, Layout
from ttsim.runtime.device import Device
from ttsim.runtime.fallback import computed_on_host
from ttsim.runtime.system import GetDefaultDevice
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.torch_functions import TorchFunction, TorchTensor, function_of_torch
from ttsim.runtime.types.tensors import DataType

PARAMETERS: Final = MappingProxyType({"weights": "weight", "biases": "bias"})
STATISTICS: Final = MappingProxyType({name: name for name in ("running_mean", "running_var", "num_batches_tracked")})
# Layers, with the tensors that come first among the arguments: names here -> names in torch's layer
LAYERS: Final[Mapping[str, Mapping[str, str]]] = MappingProxyType(
    {
        "AdaptiveAvgPool2d": {},
        "BatchNorm2d": {**PARAMETERS, **STATISTICS},
        "Conv2d": PARAMETERS,
        "GroupNorm": PARAMETERS,
        "LayerNorm": PARAMETERS,
        "MaxPool2d": {},
    }
)
PREFIXES: Final = ("unary_", "binary_", "torch_")  # of names here that torch has without them


def find(name: str) -> Callable[..., Any] | None:
    """A function or a class of tt_lib.fallback_ops; None for an unknown name."""
    if name in LAYERS:
        return layer_of(name)
    for prefix in ("", *PREFIXES) if name.islower() and not name.startswith("_") else ():
        found = ("a formula of torch", ADAPTERS[name]) if name in ADAPTERS else None
        found = found or (function_of_torch(name.removeprefix(prefix)) if name.startswith(prefix) else None)
        if found is not None:
            function = partial(_called, name, found)
            function.__doc__ = f"tt_lib.fallback_ops.{name}, on the host in float32 by {found[0]}."
            return function
    return None


def __getattr__(name: str) -> Callable[..., Any]:
    """Like `find`; raises AttributeError if torch does not have the name."""
    function = find(name)
    if function is None:
        raise AttributeError(name)
    return function


@cache
def layer_of(name: str) -> type:
    """A layer of torch whose forward pass takes and returns tensors of a device."""
    torch, names = import_module("torch"), LAYERS[name]

    class HostLayer(torch.nn.Module):  # type: ignore[name-defined, misc]
        def __init__(self, *args: Any, channels_last: bool = False, reshape_2d: bool = False, **kwargs: Any) -> None:
            super().__init__()
            by_place = dict(zip(names, args, strict=False))
            values = by_place | {key: kwargs.pop(key) for key in names if key in kwargs}
            self.channels_last, self.reshape_2d = channels_last, reshape_2d
            self.pt_fallback = getattr(torch.nn, name)(*args[len(by_place) :], **kwargs)
            for key, value in values.items():
                _set(self.pt_fallback, names[key], value)

        def forward(self, input: Tensor) -> Any:
            return _called(name, (f"torch.nn.{name}", self.images), input)

        def images(self, input: TorchTensor) -> TorchTensor:
            layer = deepcopy(self.pt_fallback).to("meta") if input.is_meta else self.pt_fallback
            if not self.channels_last:
                return layer(input)
            result = layer(input.permute(0, 3, 1, 2)).permute(0, 2, 3, 1)
            return result.reshape(1, 1, -1, result.shape[3]) if self.reshape_2d else result

    HostLayer.__name__ = HostLayer.__qualname__ = name
    return HostLayer


def _set(layer: Any, name: str, value: Tensor | TorchTensor | None) -> None:
    """Sets a parameter or a statistic of a layer; without values, the layer keeps the numbers of its constructor."""
    own = getattr(layer, name)
    if value is None or own is None:
        setattr(layer, name, None)
        return
    values = value.to_torch() if isinstance(value, Tensor) else value
    if not hasattr(values, "stand_in"):  # an unknown tensor
        own.data = values.to(own.dtype).reshape(own.shape)


def _called(name: str, found: tuple[str, TorchFunction], *args: Any, **kwargs: Any) -> Any:
    """The result of a function of torch in the memory that tt_lib uses. Raises ArgumentError if no device is known."""
    layout, back = kwargs.pop("output_layout", Layout.TILE), kwargs.pop("output_on_device", True)
    values = [each for value in (*args, *kwargs.values()) for each in (value if isinstance(value, list) else [value])]
    homes = [value.device() for value in values if isinstance(value, Tensor)]
    device = next((home for home in homes if home is not None), GetDefaultDevice())
    if device is None:
        raise ArgumentError(f"{name}: no tensor is on a device\nput one there, or call ttnn.SetDefaultDevice")
    args, kwargs = _placed(args, device), _placed(kwargs, device)
    computed_by, function = found
    shaped = (computed_by, lambda *args, **kwargs: _four_axes(function(*args, **kwargs)))
    results = computed_on_host(f"tt_lib.{name}", shaped, args, kwargs, device, partial(_spec_of, layout=layout))
    here = [result if back and _goes_back(result.spec) else result.cpu() for result in results]
    return here if len(here) > 1 else here[0]


def _placed(value: Any, device: Device) -> Any:
    """Arguments with all tensors on a device."""
    if isinstance(value, Tensor):
        return value.to(device) if value.device() is None else value
    if isinstance(value, dict):
        return {key: _placed(item, device) for key, item in value.items()}
    return type(value)(_placed(item, device) for item in value) if isinstance(value, list | tuple) else value


def _four_axes(result: Any) -> Any:
    if isinstance(result, tuple | list):
        return [_four_axes(each) for each in result]
    return result.reshape((1,) * (4 - result.dim()) + tuple(result.shape))


def _spec_of(result: TorchTensor, layout: Layout) -> TensorSpec:
    whole = all(side % TILE == 0 for side in result.shape[-2:])
    dtype = DataType.BFLOAT16 if result.dtype.is_floating_point else DataType.UINT32
    given = layout if whole else Layout.ROW_MAJOR
    return TensorSpec(tuple(result.shape), dtype.format, given, DRAM_MEMORY_CONFIG)


def _goes_back(spec: TensorSpec) -> bool:
    return spec.layout is Layout.TILE or spec.shape[-1] % 2 == 0


def _conv2d(input: TorchTensor, weight: TorchTensor, bias: Any = None, *args: Any, **kwargs: Any) -> TorchTensor:
    flat = None if bias is None else bias.reshape(-1)
    return import_module("torch.nn.functional").conv2d(input, weight, flat, *args, **kwargs)


def _group_norm(input: TorchTensor, num_groups: int, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> Any:
    """Of images [N, C, H, W], with weights of any shape."""
    weight, bias = (None if values is None else values.reshape(input.shape[1]) for values in (weight, bias))
    return import_module("torch.nn.functional").group_norm(input, num_groups, weight, bias, eps)


def _layer_norm(
    input: TorchTensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5
) -> TorchTensor:
    """With weights of any shape."""
    shape = [normalized_shape] if isinstance(normalized_shape, int) else list(normalized_shape)
    weight, bias = (None if values is None else values.reshape(shape) for values in (weight, bias))
    return import_module("torch.nn.functional").layer_norm(input, shape, weight, bias, eps)


def _reshape(input: TorchTensor, *shape: int) -> TorchTensor:
    return input.reshape(shape)


def _slice(input: TorchTensor, slices: Any) -> TorchTensor:
    return input[tuple(slices)]


ADAPTERS: Final[Mapping[str, TorchFunction]] = MappingProxyType(
    {
        "conv2d": _conv2d,
        "group_norm": _group_norm,
        "layer_norm": _layer_norm,
        "reshape": _reshape,
        "tensor_slice": _slice,
    }
)
