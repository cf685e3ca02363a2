"""The plan of ttnn.concat.

Rules: ttnn 0.81.1, compared with recorded plans.
"""

from collections.abc import Sequence

from device.errors import ArgumentError, DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import DRAM_MEMORY_CONFIG, Layout, MemoryConfig, ShardSpec, TensorMemoryLayout
from device.memory.tiles import TILE
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.calls.relaying.places import placed
from ops.meanings import MEANINGS
from ops.programs.concat.buffers import page_buffers, ragged_buffers, shard_views, turned_buffers
from ops.programs.concat.work import Concatenate
from ops.programs.tiling.plan import in_other_layout, rows_of, untilized_by

CONCAT = "ConcatDeviceOperation"
ALIGNMENT_BYTES = 16  # of rows that are put side by side where they lie


def plan_concat(
    sources: Sequence[TensorSpec], axis: int, spec: DeviceSpec, *, place: MemoryConfig | None = None, groups: int = 1
) -> Plan:
    """Plan a concatenation of the tensors "input_0", "input_1" and so on.

    Args:
        sources: The tensors.
        axis: Along which, counted from the first axis.
        spec: The device.
        place: Where the result goes; None for DRAM.
        groups: Parts that each is cut into along the axis.

    Raises:
        ArgumentError: The library takes programs that are not simulated.
        DeviceError: The tensors do not go together.
    """
    _validate(sources, axis)
    builder = PlanBuilder(spec, {f"input_{number}": one for number, one in enumerate(sources)})
    inputs = [builder.tensor(f"input_{number}") for number in range(len(sources))]
    where = DRAM_MEMORY_CONFIG if place is None else place
    if sources[0].memory_config.is_sharded():
        result = _of_shards(builder, inputs, axis, where, groups)
    else:
        result = _interleaved(builder, inputs, axis, where, groups)
    return builder.finish({"output": result.name}, known_works=MEANINGS)


def _validate(sources: Sequence[TensorSpec], axis: int) -> None:
    first = sources[0]
    for other in sources[1:]:
        if len(other.shape) != len(first.shape) or other.layout is not first.layout:
            raise DeviceError(
                "All input tensors must have the same rank and layout\nconcat: bring them to one layout and rank first"
            )
        if any(a != b for n, (a, b) in enumerate(zip(first.shape, other.shape, strict=True)) if n != axis):
            raise DeviceError(
                "All dimensions must be the same size except for the dimension along which the contenation is taking "
                f"place.\nconcat: {list(first.shape)} and {list(other.shape)} differ beyond axis {axis}"
            )
        if other.memory_config.is_sharded() is not first.memory_config.is_sharded():
            raise DeviceError("All tensors must be sharded or all must be interleaved\nconcat: move them to one place")


def _joined(inputs: Sequence[PlanTensor], axis: int, place: MemoryConfig) -> TensorSpec:
    first = inputs[0].spec
    shape = list(first.shape)
    shape[axis] = sum(one.spec.shape[axis] for one in inputs)
    return TensorSpec(shape, first.data_format, first.layout, place)


def _work(inputs: Sequence[PlanTensor], axis: int, groups: int) -> Concatenate:
    return Concatenate(axis=axis, shapes=tuple(one.spec.shape for one in inputs), groups=groups)


def _of_shards(
    builder: PlanBuilder, inputs: list[PlanTensor], axis: int, place: MemoryConfig, groups: int
) -> PlanTensor:
    """Shards are joined on their cores; an interleaved result is dealt by a program of its own."""
    last = len(inputs[0].spec.shape) - 1
    sharded = place if place.is_sharded() else _shards_of_result(inputs, axis == last)
    made = PlanTensor("output" if place.is_sharded() else "output.sharded", _joined(inputs, axis, sharded))
    by_height = sharded.memory_layout is TensorMemoryLayout.HEIGHT_SHARDED
    pair = len(inputs) == 2 and by_height and axis == last
    tiled = made.spec.layout is Layout.TILE
    buffers = turned_buffers(inputs, made) if pair and tiled else shard_views([*inputs, made])
    builder.run(
        CONCAT, _work(inputs, axis, groups), inputs, output=made, circular_buffers=buffers, dataflow=pair,
        key=("concat", axis, groups, tuple(one.spec for one in inputs), made.spec),
    )  # fmt: skip
    if place.is_sharded():
        return made
    result = placed(builder, made, place, "output")
    builder.free(made)
    return result


def _shards_of_result(inputs: Sequence[PlanTensor], by_columns: bool) -> MemoryConfig:
    """The cores of the first tensor, with all columns (or rows) side by side."""
    first = inputs[0].spec.memory_config
    shapes = [one.spec.memory_config.shard_spec for one in inputs]
    rows = [0 if one is None else one.shape[0] for one in shapes]
    columns = [0 if one is None else one.shape[1] for one in shapes]
    shape = (rows[0], sum(columns)) if by_columns else (sum(rows), columns[0])
    if first.shard_spec is None:
        raise AssertionError("a sharded tensor has shards")
    return MemoryConfig(
        first.memory_layout, first.buffer_type, ShardSpec(first.shard_spec.grid, shape, first.shard_spec.orientation)
    )


def _interleaved(
    builder: PlanBuilder, inputs: list[PlanTensor], axis: int, place: MemoryConfig, groups: int
) -> PlanTensor:
    """Pages are joined as they are; what is ragged goes through rows."""
    rank = len(inputs[0].spec.shape)
    tiled = inputs[0].spec.layout is Layout.TILE
    ragged = tiled and axis >= rank - 2 and any(one.spec.shape[axis] % TILE for one in inputs)
    if ragged and axis == rank - 2:
        rows = []
        for one in inputs:
            made = rows_of(one.spec, one.spec.shape, one.spec.memory_config)
            rows.append(untilized_by(builder, one, made, f"{one.name}.rows", whole=False))
        joined = _paged(builder, rows, axis, place, groups, "output.rows")
        result = in_other_layout(builder, joined, Layout.TILE, "output")
        builder.free(joined, *rows)
        return result
    element_bytes = inputs[0].spec.data_format.element_bytes or 0
    if not tiled and axis == rank - 1 and any(one.spec.shape[-1] * element_bytes % ALIGNMENT_BYTES for one in inputs):
        raise ArgumentError(
            f"concat: rows that are no whole multiple of {ALIGNMENT_BYTES} bytes are not simulated; "
            "the library permutes them there and back; give tiles, or pad the channels"
        )
    return _paged(builder, inputs, axis, place, groups, "output", ragged=ragged)


def _paged(
    builder: PlanBuilder,
    inputs: list[PlanTensor],
    axis: int,
    place: MemoryConfig,
    groups: int,
    name: str,
    *,
    ragged: bool = False,
) -> PlanTensor:
    made = PlanTensor(name, _joined(inputs, axis, place))
    spec = builder.device_spec
    specs = [one.spec for one in inputs]
    buffers = ragged_buffers(specs, made.spec, spec) if ragged else page_buffers(made.spec, spec)
    return builder.run(
        CONCAT,
        _work(inputs, axis, groups),
        inputs,
        output=made,
        circular_buffers=buffers,
        dataflow=not ragged,
        key=("concat", axis, groups, tuple(specs), made.spec),
    )
