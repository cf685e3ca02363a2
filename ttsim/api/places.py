"""ttnn.argmax, topk and sort."""

from dataclasses import replace

from device.cores import CoreRangeSet
from device.memory.memory_config import MemoryConfig
from ops.planners.argmax import ArgMaxArguments, is_of_images, plan_argmax
from ops.planners.ordered import TARGETS
from ops.planners.sort import SortArguments, has_order, plan_sort
from ops.planners.topk import TopKArguments, plan_topk, require_kept_numbers
from ttsim.api.conversions import to_layout
from ttsim.api.copies import clone, copy
from ttsim.api.creation import zeros
from ttsim.api.device_calls import (
    cached_plan,
    carried_out,
    converted,
    named_targets,
    operation,
    pair_of,
    required_device,
)
from ttsim.api.without_elements import is_empty, made, reduced
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.tensor_copies import copy_host_to_device_tensor
from ttsim.runtime.types.call import required_integer
from ttsim.runtime.types.tensors import DataType


@operation
def argmax(
    input_tensor: Tensor,
    dim: object = None,
    keepdim: bool = False,
    *,
    sub_core_grids: CoreRangeSet | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
    enable_secondary_dm: bool | None = None,
) -> Tensor:
    """The index of the largest element along an axis; the first index if several elements are equal.

    Several cores search the rows of ROW_MAJOR tensors, one core searches the rows and columns of tiles; other axes are
    compared tile by tile. Values were never compared with recordings of the real kernels.

    Args:
        input_tensor: An interleaved tensor on the device.
        dim: The axis; negative numbers count from the last. None searches the flattened ROW_MAJOR tensor.
        keepdim: Keep the axis, or all axes, with length 1.
        sub_core_grids: Cores that share rows (one or two rectangles) or images; None for all. One core searches tiles.
        memory_config: Memory of the result, interleaved; None for that of the tensor.
        output_tensor: A tensor that receives the indices and is returned; the result has its memory.
        enable_secondary_dm: Whether both data movement processors of a core read rows of a ROW_MAJOR tensor, which
            needs several rows per page of the result; None enables it where possible.

    Returns:
        Indices from 0, uint32 in ROW_MAJOR layout.

    Examples:
        >>> tensor = ttnn.Tensor(np.array([[1.0, 5.0, 2.0]]), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
        >>> ttnn.argmax(tensor, dim=-1).to_list()
        [1]
    """
    axis = None if dim is None else required_integer("argmax", "dim", dim)
    call = ArgMaxArguments(dim=axis, keeps=keepdim, place=memory_config, cores=sub_core_grids, both=enable_secondary_dm)
    device, source = required_device("argmax", input_tensor), input_tensor.spec
    axes = call.axes(source)
    if not source.shape:
        return made(input_tensor, (), memory_config, dtype=DataType.UINT32)
    if is_empty(input_tensor):
        return reduced(input_tensor, axes, memory_config, keeps=keepdim, value=None, dtype=DataType.UINT32)
    if output_tensor is None:
        return converted("argmax", plan_argmax, input_tensor, call)
    required_device("argmax", output_tensor)
    if is_of_images(source, call):
        return copy(converted("argmax", plan_argmax, input_tensor, call), output_tensor)
    plan = cached_plan(plan_argmax, device, source, replace(call, target=output_tensor.spec))
    return carried_out("argmax", plan, input_tensor, device, target=output_tensor)


@operation
def topk(
    input_tensor: Tensor,
    k: object = 32,
    dim: object = -1,
    largest: bool = True,
    sorted: bool = True,
    *,
    memory_config: MemoryConfig | None = None,
    sub_core_grids: CoreRangeSet | None = None,
    indices_tensor: Tensor | None = None,
    output_tensor: object = None,
    stable: bool = False,
) -> tuple[Tensor, Tensor]:
    """The largest or smallest elements along an axis in order, and their indices.

    Equal elements keep their order. Values were never compared with recordings of the real kernels.

    Args:
        input_tensor: A tensor on the device in TILE layout.
        k: Number of elements; more than 64 bfloat16 elements on Blackhole are not simulated.
        dim: The axis; negative numbers count from the last.
        largest: True for the largest elements in descending order, False for the smallest in ascending order.
        sorted: Accepted as in ttnn; elements are always in order.
        memory_config: Memory of the results, interleaved; None for that of the tensor.
        sub_core_grids: Cores that may be used, for wide rows a rectangle whose cores share each row; None for all.
        indices_tensor: A number for every element, returned instead of its index: uint16, uint32 or int32 in TILE
            layout (not uint16 with float32); for fewer than 64 columns, of rank 4 or more.
        output_tensor: Two tensors that receive the results and are returned, if ``dim`` is the last axis; for other
            axes, as in ttnn, the results are new tensors.
        stable: Accepted as in ttnn; equal elements always keep their order.

    Returns:
        The elements, and their indices from 0: uint16, or uint32 for float32 and more than 65,536 columns.

    Examples:
        >>> tensor = ttnn.Tensor(np.arange(64.0).reshape(1, 64), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
        >>> values, places = ttnn.topk(tensor, 2)
        >>> values.to_list(), places.to_list()
        ([[63.0, 62.0]], [[63, 62]])
    """
    targets = pair_of("topk", "output_tensor", output_tensor)
    device = required_device("topk", input_tensor)
    call = TopKArguments(
        count=required_integer("topk", "k", k),
        dim=required_integer("topk", "dim", dim),
        largest=largest,
        stable=stable,
        place=memory_config,
        cores=sub_core_grids,
        targets=None if targets is None else (targets[0].spec, targets[1].spec),
        labels=None if indices_tensor is None else indices_tensor.spec,
    )
    plan = cached_plan(plan_topk, device, input_tensor.spec, call)
    if device.strict:
        require_kept_numbers(input_tensor.spec, call)
    labels = {} if indices_tensor is None else {"labels": indices_tensor}
    with device.function("ttnn.topk"):
        results = run(plan, {"input": input_tensor, **labels, **named_targets(TARGETS, targets)}, device)
    return results["values"], results["indices"]


@operation
def sort(
    input_tensor: Tensor,
    dim: object = -1,
    descending: bool = False,
    stable: bool = False,
    *,
    memory_config: MemoryConfig | None = None,
    out: object = None,
) -> tuple[Tensor, Tensor]:
    """The sorted elements along an axis, and their indices.

    Equal elements keep their order. Values were never compared with recordings of the real kernels.

    Args:
        input_tensor: A tensor on the device; in ROW_MAJOR layout, its axis has more than 16 elements.
        dim: The axis, of at most 2,048 elements; negative numbers count from the last.
        descending: The largest elements come first.
        stable: Accepted as in ttnn; equal elements always keep their order.
        out: Two tensors that receive the results. They keep their buffers if ``dim`` is the last axis, its padded
            length is a power of two and at least 64, and their layout is that of ``input_tensor``. Otherwise, as in
            ttnn, they get new buffers in the memory of the results.

    Returns:
        The elements, and their indices from 0: uint16, or uint32 for float32 and uint16. If the tensor is sharded and
        ``dim`` is not the last axis, both are in the memory of the tensor, and ``memory_config`` has no effect.

    Examples:
        >>> tensor = ttnn.Tensor(np.array([[3.0, 1.0, 2.0]]), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
        >>> values, places = ttnn.sort(tensor)
        >>> values.to_list(), places.to_list()
        ([[1.0, 2.0, 3.0]], [[1, 2, 0]])
    """
    targets = pair_of("sort", "out", out)
    device = required_device("sort", input_tensor)
    call = SortArguments(
        dim=required_integer("sort", "dim", dim),
        descending=descending,
        place=memory_config,
        targets=None if targets is None else (targets[0].spec, targets[1].spec),
    )
    if has_order(input_tensor.spec, call):
        if targets is not None:
            copy_host_to_device_tensor(zeros(targets[1].shape, targets[1].dtype, targets[1].layout), targets[1])
            return copy(to_layout(input_tensor, targets[0].layout), targets[0]), targets[1]
        return clone(input_tensor, memory_config=memory_config), _places_in_order(input_tensor, memory_config)
    plan = cached_plan(plan_sort, device, input_tensor.spec, call)
    with device.function("ttnn.sort"):
        results = run(plan, {"input": input_tensor, **named_targets(TARGETS, targets)}, device)
    pair = results["values"], results["indices"]
    for target, result in zip(targets or (), pair, strict=False):
        target.take_buffer(result)
    return pair


def _places_in_order(tensor: Tensor, place: MemoryConfig | None) -> Tensor:
    """Zeros with the shape of a tensor, created on the host."""
    wide = tensor.dtype in (DataType.FLOAT32, DataType.UINT16)
    dtype = DataType.UINT32 if wide else DataType.UINT16
    return zeros(tensor.shape, dtype, tensor.layout, tensor.device(), place or tensor.memory_config())
