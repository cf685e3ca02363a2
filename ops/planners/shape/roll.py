"""Plans that roll a tensor in its shards. Rules: ttnn 0.81.1, compared with plans of the real library."""

from functools import partial

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, Layout
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.shape.to_layout import in_other_layout
from ops.programs.buffer_shapes import is_uneven
from ops.programs.data_movement.roll import RollShards, roll_buffers


def rolls_shards(source: TensorSpec) -> bool:
    """Whether a program rolls a sharded tensor in place: the tensor must fill its shards, without padding."""
    return source.shape == source.padded_shape and not is_uneven(source)


def plan_roll(source: TensorSpec, shifts: tuple[tuple[int, int], ...], spec: DeviceSpec) -> Plan:
    """Plan the tensor "input" shifted in its shards by (places, axis), in sequence."""
    grid = source.shards.grid
    if grid.num_cores() != grid.bounding_box().num_cores():
        raise DeviceError(
            "Native sharded roll requires a single contiguous rectangular CoreRange\n"
            "roll: move the tensor to interleaved memory, or reshard it to a rectangle of cores"
        )
    return plan_of(source, spec, partial(_rolled, shifts=shifts))


def _rolled(builder: PlanBuilder, source: PlanTensor, shifts: tuple[tuple[int, int], ...]) -> PlanTensor:
    """The shifted tensor, by way of its rows if tiles would be cut."""
    rank, layout = len(source.spec.shape), source.spec.layout
    cuts = layout is Layout.TILE and any(places % TILE and axis >= rank - 2 for places, axis in shifts)
    current = rows = in_other_layout(builder, source, Layout.ROW_MAJOR, "rows") if cuts else source
    for number, (places, axis) in enumerate(shifts):
        last = number == len(shifts) - 1
        result = PlanTensor("output" if last and not cuts else f"rolled_{number}", current.spec)
        op = RollShards(shape=source.spec.shape, shift=places, axis=axis)
        builder.run("RollDeviceOperation", op, [current], result, roll_buffers(current, result, builder.device_spec))
        if number:
            builder.free(current)
        current = result
    if not cuts:
        return current
    tiles = in_other_layout(builder, current, layout, "output", data_format=source.spec.data_format)
    builder.free(current, rows)
    return tiles
