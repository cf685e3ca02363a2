"""ttnn.embedding, gather and nonzero: elements and rows selected by indices."""

from device.cores import CoreRangeSet, PlainEnum
from device.errors import DeviceError
from device.memory.memory_config import Layout, MemoryConfig
from ops.planners.attention.embedding import EmbeddingArguments, EmbeddingKind, plan_embedding, require_two_axes
from ops.planners.gather import GatherArguments, plan_gather, require_rows
from ops.planners.nonzero import plan_nonzero, require_elements
from ttsim.api.device_calls import cached_plan, format_of, free_l1, operation, required_device
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.attention import Integer
from ttsim.runtime.types.call import required_integer
from ttsim.runtime.types.tensors import DataType


class EmbeddingsType(PlainEnum):
    """Which rows of a table a core caches; member values are ttnn's.

    Examples:
        >>> ttnn.EmbeddingsType.GENERIC.value
        0
    """

    GENERIC, PADDED, BINARY = range(3)


@operation
def embedding(
    input_tensor: Tensor,
    weight: Tensor,
    *,
    padding_idx: Integer | None = None,
    layout: Layout | None = None,
    embeddings_type: EmbeddingsType = EmbeddingsType.GENERIC,
    dtype: DataType | None = None,
    memory_config: MemoryConfig | None = None,
    output_tensor: Tensor | None = None,
) -> Tensor:
    """The rows of a table at given indices.

    Args:
        input_tensor: Indices [batch, count] or [count] on the device, uint32 (or whole numbers in bfloat16).
        weight: The table [rows, columns], bfloat16, interleaved; a table in TILE layout is untilized first.
        padding_idx: The index of padding, whose row each core caches; values do not depend on it.
        layout: Layout of the result; None for that of the table.
        embeddings_type: Which rows each core caches; values do not depend on it.
        dtype: Data type of a result in TILE layout; None for that of the table.
        memory_config: Memory of the result; None for that of the indices.
        output_tensor: A tensor that receives the rows and is returned with the shape of the result; if its layout or
            data type differs from the result's, a new tensor is returned.

    Returns:
        [batch, count, columns] or [count, columns].

    Examples:
        >>> indices = ttnn.from_numpy(np.array([[2, 0]]), ttnn.uint32, device=device)
        >>> table = ttnn.from_numpy(np.arange(6).reshape(3, 2), ttnn.bfloat16, device=device)
        >>> ttnn.embedding(indices, table).to_list()
        [[[4.0, 5.0], [0.0, 1.0]]]
    """
    device = required_device("embedding", input_tensor)
    if weight.device() is None:
        raise DeviceError("Operands to Embedding need to be on device!\nweight: give it to the device")
    required_device("embedding", weight)
    call = EmbeddingArguments(
        indices=input_tensor.spec,
        table=weight.spec,
        kind=EmbeddingKind.PADDED if padding_idx is not None else EmbeddingKind(embeddings_type.value),
        pad_token=padding_idx,
        layout=layout,
        data_format=format_of(dtype),
        place=memory_config,
        target=None if output_tensor is None else output_tensor.spec,
    )
    plan = cached_plan(plan_embedding, device, call)
    if device.strict and not plan.refused:
        require_two_axes(call)
    tensors = {"input": input_tensor, "weight": weight} | ({} if output_tensor is None else {"target": output_tensor})
    with device.function("ttnn.embedding"):
        return run(plan, tensors, device)["output"]


@operation
def gather(
    input: Tensor,
    dim: object,
    index: Tensor,
    *,
    sparse_grad: bool = False,
    memory_config: MemoryConfig | None = None,
    out: Tensor | None = None,
    sub_core_grids: CoreRangeSet | None = None,
) -> Tensor:
    """The elements along an axis at given indices.

    Args:
        input: A tensor on the device.
        dim: The axis; negative numbers count from the last.
        index: Indices on the device, uint16 or uint32, of the layout and rank of ``input``; only side ``dim`` may be
            longer than that of ``input``.
        sparse_grad: False; the real library refuses sparse gradients.
        out: A tensor that receives the result and is returned, if ``dim`` is the last axis; for other axes, as in ttnn,
            the result is a new tensor and ``out`` stays unchanged.
        sub_core_grids: Cores that may be used; None for all.

    Returns:
        A tensor of the shape of ``index``.

    Raises:
        ArgumentError: The device is strict, and an index lies beyond the rows of ``input``, where the real library
            reads padding.

    Examples:
        >>> tensor = ttnn.Tensor(np.array([[1.0, 2.0], [3.0, 4.0]]), ttnn.bfloat16, device, ttnn.TILE_LAYOUT)
        >>> places = ttnn.Tensor(np.array([[1], [0]]), ttnn.uint32, device, ttnn.TILE_LAYOUT)
        >>> ttnn.gather(tensor, 1, places).to_list()
        [[2.0], [3.0]]
    """
    device = required_device("gather", input)
    required_device("gather", index)
    call = GatherArguments(
        source=input.spec,
        indices=index.spec,
        dim=required_integer("gather", "dim", dim),
        place=memory_config,
        cores=sub_core_grids,
        target=None if out is None else out.spec,
        sparse=sparse_grad,
    )
    plan = cached_plan(plan_gather, device, call, l1_bytes=free_l1(device).before_bytes)
    if device.strict and not plan.refused:
        require_rows(call)
    with device.function("ttnn.gather"):
        tensors = {"input": input, "index": index} | ({} if out is None else {"target": out})
        return run(plan, tensors, device)["output"]


@operation
def nonzero(input_tensor: Tensor, *, memory_config: MemoryConfig | None = None) -> list[Tensor]:
    """The indices of the elements of a tensor that are not zero.

    Args:
        input_tensor: [A, B, C, D] on the device.
        memory_config: Memory of the results, interleaved; None for DRAM.

    Returns:
        Two uint32 tensors: [1, 1, 1, 8], whose first element is the number N of nonzero elements, and
        [1, 1, 1, 4 A B C D], whose first 4 N elements are the four indices of each nonzero element in turn. The other
        elements are zero here, and unspecified in the real library.

    Raises:
        ArgumentError: The device is strict, and the tensor has block floats, whose bytes the real library compares.

    Examples:
        >>> tensor = ttnn.from_numpy(np.array([[[[0.0, 3.0, 0.0, 4.0]]]]), ttnn.bfloat16, device=device)
        >>> count, places = ttnn.nonzero(tensor)
        >>> count.to_numpy()[0, 0, 0, 0].item(), places.to_numpy()[0, 0, 0, :8].tolist()
        (2, [0, 0, 0, 1, 0, 0, 0, 3])
    """
    device = required_device("nonzero", input_tensor)
    plan = cached_plan(plan_nonzero, device, input_tensor.spec, place=memory_config)
    if device.strict:
        require_elements(input_tensor.spec)
    with device.function("ttnn.nonzero"):
        results = run(plan, {"input": input_tensor}, device)
    return [results["count"], results["places"]]
