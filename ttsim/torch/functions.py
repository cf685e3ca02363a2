"""torch.nn.functional's transposed convolutions on a simulated device, with gradients."""

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import signature
from operator import index
from typing import Any, Concatenate, Final, ParamSpec

import torch

from device.errors import ArgumentError, ArgumentTypeError, shown
from ttsim.runtime.device import Device
from ttsim.runtime.session import outside_graphs
from ttsim.torch.autograd import Layer, run

PRECISION: Final = "ieee"
LOWERING: Final = "zero_insertion"
TYPES: Final = (torch.float32, torch.float16, torch.bfloat16)
FLOAT64: Final = "float64"
LEAST: Final = {"stride": 1, "padding": 0, "output_padding": 0, "dilation": 1}

Sizes = int | Sequence[int]
P = ParamSpec("P")


def conv_transpose(
    rank: int,
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: Sizes = 1,
    padding: Sizes = 0,
    output_padding: Sizes = 0,
    groups: int = 1,
    dilation: Sizes = 1,
    *,
    device: Device | None = None,
    precision: str = PRECISION,
    lowering: str = LOWERING,
) -> torch.Tensor:
    """The transposed convolution with `rank` spatial axes."""
    name = f"conv_transpose{rank}d"
    tensors = {"input": input, "weight": weight} | ({} if bias is None else {"bias": bias})
    _check_tensors(name, rank, tensors, precision)
    sizes = (stride, padding, output_padding, dilation)
    strides, pads, more, dilations = (_each(name, rank, what, size) for what, size in zip(LEAST, sizes, strict=True))
    if any(extra >= max(step, gap) for extra, step, gap in zip(more, strides, dilations, strict=True)):
        raise ArgumentError(
            "output padding must be smaller than either stride or dilation\n"
            f"{name}: on every axis, and output_padding is {list(more)} with stride {list(strides)} and dilation "
            f"{list(dilations)}; use less of it"
        )
    batched = input if input.dim() == rank + 2 else input.unsqueeze(0)
    window = {"strides": strides, "pads_begin": pads, "pads_end": pads, "dilations": dilations}
    formats = {"data_format": "NCX", "weights_format": "IOX"}
    layer = Layer(
        function=name,
        attributes={**window, "output_padding": more, "groups": groups, **formats},
        source_shape=tuple(batched.shape),
        weight_shape=tuple(weight.shape),
        device=device,
        precision=precision,
        lowering=lowering,
    )
    result = run(batched, weight, bias, layer)
    return result if batched is input else result.squeeze(0)


def _function(
    shared: Callable[Concatenate[int, P], torch.Tensor], spatial: str, kernel: str, outputs: str
) -> Callable[P, torch.Tensor]:
    """The function with this number of spatial axes; the texts name the axes of input, weight and result."""
    rank = len(spatial.split(", "))
    name = f"conv_transpose{rank}d"

    @wraps(shared)
    def function(*args: P.args, **kwargs: P.kwargs) -> torch.Tensor:
        return shared(rank, *args, **kwargs)

    own = signature(shared)
    function.__signature__ = own.replace(parameters=[*own.parameters.values()][1:])  # type: ignore[attr-defined]
    function.__name__ = function.__qualname__ = name
    sides = ", ".join("2" * rank)
    function.__doc__ = f"""``torch.nn.functional.{name}`` on a simulated device, with gradients of any order.

    Args:
        input: [N, C, {spatial}] or [C, {spatial}]: float32, float16 or bfloat16.
        weight: [C, O / groups, {kernel}], of the type of input.
        bias: [O], of the type of input; None for no bias.
        stride: An integer, or one for each of ({spatial}); padding, output_padding and dilation likewise.
        padding: What is cut off at both ends of the full output.
        output_padding: What is added at the end of the output; smaller than stride or dilation.
        groups: Groups of channels.
        dilation: Distance between taps.
        device: The device; None for the default device, or a new one with ``values="fast"`` for each pass.
        precision: "ieee", "device" or, for tests, "float64", which accepts only float64; see `ttsim.onednn`.
        lowering: Lowering of the forward pass, "zero_insertion" or "phase".

    Returns:
        [N, O, {outputs}], without N if input has none.

    Raises:
        ArgumentTypeError: An argument is of the wrong type.
        ArgumentError: An argument breaks a rule.
        DeviceError: The call does not fit the device.

    Examples:
        >>> import torch
        >>> from ttsim.torch import {name}
        >>> {name}(torch.ones(1, 4, {sides}), torch.ones(4, 8, {sides}), stride=2).shape
        torch.Size([1, 8, {sides.replace("2", "4")}])
    """
    return outside_graphs(function)


conv_transpose1d = _function(conv_transpose, "L", "k", "OL")
conv_transpose2d = _function(conv_transpose, "H, W", "kh, kw", "OH, OW")
conv_transpose3d = _function(conv_transpose, "D, H, W", "kd, kh, kw", "OD, OH, OW")


def _check_tensors(name: str, rank: int, tensors: dict[str, Any], precision: str) -> None:
    """Raises an error for a non-tensor, wrong axes or a wrong type; the operation checks sizes."""
    for what, tensor in tensors.items():
        if not isinstance(tensor, torch.Tensor):
            raise ArgumentTypeError(f"{name}: {what} must be a torch.Tensor, not {type(tensor).__name__}")
    source, weight = tensors["input"], tensors["weight"]
    if source.dim() not in (rank + 1, rank + 2):
        raise ArgumentError(
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got input of size: "
            f"{list(source.shape)}"
        )
    if weight.dim() != rank + 2:
        raise ArgumentError(
            f"{name}: weight must have {rank + 2} axes, [C, O / groups, *kernel], not the shape {list(weight.shape)}"
        )
    types = (torch.float64,) if precision == FLOAT64 else TYPES
    if source.dtype not in types:
        raise ArgumentError(
            f"{name}: input must be of type {', '.join(map(str, types))} for precision {shown(precision)}, not "
            f"{source.dtype}; convert all tensors, or for gradcheck in float64 give precision {FLOAT64!r}"
        )
    for what, tensor in tensors.items():
        if tensor.dtype != source.dtype:
            raise ArgumentError(
                f"{name}: {what} must be of the type of input, {source.dtype}, not {tensor.dtype}; convert one of "
                "them with .to()"
            )


def _each(name: str, rank: int, what: str, sizes: Any) -> tuple[int, ...]:
    """An argument for every axis; a single integer, also in a sequence, applies to all axes."""
    try:
        several = tuple(sizes) if isinstance(sizes, Sequence) and not isinstance(sizes, str) else (sizes,)
        if any(isinstance(size, bool) for size in several):
            raise TypeError
        numbers = tuple(map(index, several))
    except TypeError:
        raise ArgumentTypeError(f"{name}: {what} must be an integer or {rank} of them, not {shown(sizes)}") from None
    if len(numbers) not in (1, rank):
        raise ArgumentError(
            f"expected {what} to be a single integer value or a list of {rank} values to match the convolution "
            f"dimensions, but got {what}={list(numbers)}"
        )
    if min(numbers) < LEAST[what]:
        raise ArgumentError(f"{name}: {what} must be at least {LEAST[what]} on every axis, not {shown(sizes)}")
    return numbers * rank if len(numbers) == 1 else numbers
