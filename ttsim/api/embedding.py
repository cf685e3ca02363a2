"""ttnn.embedding."""

from device.cores import PlainEnum
from device.errors import DeviceError
from device.memory.memory_config import Layout, MemoryConfig
from ops.planners.attention.embedding import EmbeddingArguments, EmbeddingKind, plan_embedding, require_two_axes
from ttsim.api.device_calls import cached_plan, format_of, operation, require_left_out, required_device
from ttsim.runtime.execution import run
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.types.attention import Integer
from ttsim.runtime.types.tensors import DataType


class EmbeddingsType(PlainEnum):
    """Which rows of a table a core keeps; the numbers are ttnn's.

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
    """The rows of a table that indices name.

    Args:
        input_tensor: Indices [batch, count] or [count] on the device, uint32 (or whole numbers in bfloat16).
        weight: The table [rows, columns] of bfloat16, interleaved; tiles are untilized first.
        padding_idx: The index of padding, whose row a core keeps; it changes no number.
        layout: Layout of the result; None for that of the table.
        embeddings_type: Which rows a core keeps; it changes no number.
        dtype: Data type of a result in TILE layout; None for that of the table.
        memory_config: Memory of the result; None for that of the indices.
        output_tensor: Not simulated; None creates a new tensor.

    Returns:
        [batch, count, columns] or [count, columns].

    Examples:
        >>> indices = ttnn.from_numpy(np.array([[2, 0]]), ttnn.uint32, device=device)
        >>> table = ttnn.from_numpy(np.arange(6).reshape(3, 2), ttnn.bfloat16, device=device)
        >>> ttnn.embedding(indices, table).to_list()
        [[[4.0, 5.0], [0.0, 1.0]]]
    """
    require_left_out("embedding", output_tensor=output_tensor)
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
    )
    plan = cached_plan(plan_embedding, device, call)
    if device.strict and not plan.refused:
        require_two_axes(call)
    with device.function("ttnn.embedding"):
        return run(plan, {"input": input_tensor, "weight": weight}, device)["output"]
