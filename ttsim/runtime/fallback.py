"""With TTSIM_FALLBACK=host, torch computes functions that ttsim does not simulate, on the host in float32.

`ttsim.runtime.torch_functions` has the functions of torch. The result has the data type, layout and memory of the
call's arguments, or else of the first tensor (the memory only if the shape fits its shards).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from device.errors import TTSimError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig
from device.numbers.formats import Array, quantize
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.host_fallback import NAME, HostFallback
from ttsim.runtime.device import Device
from ttsim.runtime.execution import locked_on, run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.torch_functions import TorchFunction, TorchTensor, called, torch_function
from ttsim.runtime.types.tensors import DataType


def stand_in(module: str, name: str) -> Callable[..., Any] | None:
    """A host function for a name that ttsim does not have; None if torch has no such function."""
    found = torch_function(name) if name.islower() and not name.startswith("_") else None
    if found is None:
        return None

    def function(*args: Any, **kwargs: Any) -> Any:
        return instead(name, args, kwargs)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{module}.{name}, which ttsim does not simulate, on the host in float32 by {found[0]}."
    return function


def instead(name: str, args: Sequence[Any], kwargs: Mapping[str, Any], refusal: Exception | None = None) -> Any:
    """The result of a function of ttnn, computed on the host.

    Args:
        name: The function's name in ttnn, without its module.
        args: Positional arguments; lists may contain tensors.
        kwargs: Keyword arguments.
        refusal: The error of the function itself, which is raised if the host cannot compute the call.

    Raises TypeError if torch does not accept the arguments, unless ``refusal`` is given.
    """
    found = torch_function(name)
    tensors: list[Tensor] = []
    _slots([list(args), dict(kwargs)], tensors)
    device = next((home for tensor in tensors if (home := tensor.device()) is not None), None)
    if found is None or device is None or name.endswith("_"):
        raise refusal or TypeError(
            f"{name}: the host computes calls that have a tensor on a device and return a tensor"
        )
    try:
        spec_of = partial(_spec_of, first=tensors[0], kwargs=kwargs)
        results = computed_on_host(f"ttnn.{name}", found, args, kwargs, device, spec_of)
    except TTSimError:
        raise
    except (IndexError, RuntimeError, TypeError, ValueError) as error:  # what torch says of arguments it does not take
        if refusal is not None:
            refusal.add_note(f"fallback: {found[0]} does not take these arguments: {str(error).splitlines()[0]}")
        raise refusal or error from error
    return results if len(results) > 1 else results[0]


def computed_on_host(
    name: str,
    found: tuple[str, TorchFunction],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    device: Device,
    spec_of: Callable[[TorchTensor], TensorSpec],
) -> tuple[Tensor, ...]:
    """Computes a function of torch on the host, and records it as one operation of the device.

    Args:
        name: The name of the function in reports.
        found: The full name of the function, and the function. It also runs on torch's meta tensors for shapes.
        args: Positional arguments; lists may contain tensors of the device.
        kwargs: Keyword arguments with ttnn's names.
        device: The device of all tensors.
        spec_of: Gives the shape, type and memory of a result of torch.
    """
    return locked_on(device, lambda: _on_host(name, found, args, kwargs, device, spec_of))


def _on_host(
    name: str,
    found: tuple[str, TorchFunction],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    device: Device,
    spec_of: Callable[[TorchTensor], TensorSpec],
) -> tuple[Tensor, ...]:
    torch, (computed_by, function) = import_module("torch"), found
    tensors: list[Tensor] = []
    call = [_slots(list(args), tensors), _slots(dict(kwargs), tensors)]

    def computed(operands: Sequence[TorchTensor]) -> list[TorchTensor]:
        positional, named = (_filled(part, operands) for part in call)
        with torch.no_grad():
            result = called(function, positional, named)
        return list(result) if isinstance(result, tuple | list) else [result]

    shapes = computed([torch.empty(tensor.spec.shape, device="meta", dtype=_torch_type(tensor)) for tensor in tensors])
    specs = [spec_of(shape) for shape in shapes]

    def compute(arrays: Sequence[Array]) -> tuple[Array, ...]:
        pairs = zip(arrays, tensors, strict=True)
        operands = [torch.from_numpy(array.astype(np.float32)).to(_torch_type(tensor)) for array, tensor in pairs]
        results = zip(computed(operands), specs, strict=True)
        return tuple(quantize(result.float().numpy(), spec.data_format) for result, spec in results)

    named = {f"input{number}": tensor for number, tensor in enumerate(tensors)}
    builder = PlanBuilder(device.spec, {key: tensor.spec for key, tensor in named.items()})
    outputs = [PlanTensor(f"output{number}", spec) for number, spec in enumerate(specs)]
    op = HostFallback(computed_by=computed_by, compute=compute)
    builder.run(NAME, op, [builder.tensor(key) for key in named], outputs[0], more_outputs=outputs[1:])
    plan = builder.finish({output.name: output for output in outputs})
    with device.function(name):
        made = run(plan, named, device)
    return tuple(made[output.name] for output in outputs)


def _slots(value: Any, tensors: list[Tensor]) -> Any:
    """Arguments in which each tensor is replaced by a function of the operands; appends the tensors to ``tensors``."""
    if isinstance(value, Tensor):
        tensors.append(value)
        number = len(tensors) - 1
        return lambda operands: operands[number]
    if isinstance(value, dict):
        return {key: _slots(item, tensors) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_slots(item, tensors) for item in value]
    return value


def _filled(value: Any, operands: Sequence[TorchTensor]) -> Any:
    """Arguments in which operands replace the functions of `_slots`."""
    if isinstance(value, dict):
        return {key: _filled(item, operands) for key, item in value.items()}
    if isinstance(value, list):
        return [_filled(item, operands) for item in value]
    return value(operands) if callable(value) else value


def _torch_type(tensor: Tensor) -> Any:
    torch = import_module("torch")
    return torch.float32 if tensor.spec.data_format.is_float else torch.int64


def _spec_of(result: TorchTensor, first: Tensor, kwargs: Mapping[str, Any]) -> TensorSpec:
    """The spec of a result: from the call's arguments, or else the first tensor; in DRAM if the shards do not fit."""
    torch, own = import_module("torch"), first.spec
    integers = not result.dtype.is_floating_point and result.dtype is not torch.bool
    usual = DataType.UINT32 if integers else DataType.BFLOAT16 if not own.data_format.is_float else first.dtype
    dtype = next((value for value in kwargs.values() if isinstance(value, DataType)), usual)
    layout = next((value for value in kwargs.values() if isinstance(value, Layout)), own.layout)
    memory = next((value for value in kwargs.values() if isinstance(value, MemoryConfig)), own.memory_config)
    shape = tuple(result.shape) or (1,)
    if memory.is_sharded() and (memory.shard_spec is None or shape != own.shape):
        memory = DRAM_MEMORY_CONFIG
    return TensorSpec(shape, dtype.format, layout, memory)
