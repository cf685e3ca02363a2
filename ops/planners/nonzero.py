"""The plan of ttnn.nonzero. Rules: ttnn 0.81.1 (data_movement/non_zero_indices), compared with its plans."""

from collections.abc import Iterator
from math import prod

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig
from device.numbers.formats import UINT32, round_up
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.programs.buffer_shapes import BUFFERING
from ops.programs.data_movement.nonzero import AXES, COUNT_BYTES, NonZero, nonzero_buffers

WORD_BYTES = UINT32.storage.itemsize


def plan_nonzero(source: TensorSpec, spec: DeviceSpec, *, place: MemoryConfig | None = None) -> Plan:
    """Plan the "count" and the "places" of nonzero elements of "input"; raises DeviceError for a refused call."""
    where = DRAM_MEMORY_CONFIG if place is None else place
    for text in _refusals(source, where):
        raise DeviceError(text)
    builder = PlanBuilder(spec, {"input": source})
    sides = COUNT_BYTES // WORD_BYTES, AXES * prod(source.shape)
    count, places = (
        PlanTensor(name, TensorSpec((1, 1, 1, side), UINT32, Layout.ROW_MAJOR, where))
        for name, side in zip(("count", "places"), sides, strict=True)
    )
    buffers = nonzero_buffers(source, places.spec, spec)
    op = NonZero(shape=source.shape)
    builder.run(
        "NonZeroIndicesDeviceOperation",
        op,
        [builder.tensor("input")],
        count,
        buffers,
        more_outputs=[places],
        refused=_staging_refusal(source, spec),
    )
    return builder.finish({"count": count, "places": places})


def _refusals(source: TensorSpec, place: MemoryConfig) -> Iterator[str]:
    if len(source.shape) != AXES:
        yield (
            f"non_zero_indices: input must be rank-4, got rank {len(source.shape)}\ninput_tensor: reshape it to 4 axes"
        )
    if place.is_sharded():
        yield (
            "non_zero_indices: output_memory_config must be INTERLEAVED; variable-length output cannot be sharded\n"
            "memory_config: give interleaved memory"
        )
    if source.layout is Layout.ROW_MAJOR and source.padded_shape != source.shape:
        yield (
            f"non_zero_indices: ROW_MAJOR input has shape padding (padded_shape=Shape({list(source.padded_shape)}) vs "
            f"logical_shape=Shape({list(source.shape)})); padded rows/columns are not masked and would produce "
            "out-of-range indices\ninput_tensor: move it to interleaved memory"
        )


def _staging_refusal(source: TensorSpec, spec: DeviceSpec) -> str | None:
    """Why the buffer of indices exceeds L1, which the library says after it has allocated the results."""
    taken, most = BUFFERING * round_up(AXES * WORD_BYTES * prod(source.shape), COUNT_BYTES), spec.l1.bytes
    if taken <= most:
        return None
    return (
        f"non_zero_indices: indices staging buffer requires {taken} L1 bytes but per-core L1 is {most} bytes; "
        f"maximum supported volume is ~{most // (BUFFERING * AXES * WORD_BYTES)} elements\n"
        "input_tensor: list a part of it after the other"
    )


def require_elements(source: TensorSpec) -> None:
    """Raises ArgumentError for block floats, whose bytes the real library compares with zero."""
    if source.data_format.is_block:
        raise ArgumentError(
            f"nonzero: the real library takes bytes of {source.data_format} for elements; typecast the tensor"
        )
