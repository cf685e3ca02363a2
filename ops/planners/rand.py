"""The plan of ttnn.rand. Rules: ttnn 0.81.1, compared with its plans.

Numbers are drawn in tiles of bfloat16 or float32; programs of their own cast and untilize them.
"""

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16, FLOAT32
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.shape.to_layout import in_other_layout
from ops.programs.data_movement.conversions import typecast_by
from ops.programs.rand import EvenlyDistributed, rand_buffers


def plan_rand(
    tensor: TensorSpec, spec: DeviceSpec, *, low: float, high: float, seed: int, layout: Layout = Layout.TILE
) -> Plan:
    """Plan a tensor of uniformly distributed numbers in tiles, untilized afterwards if requested."""
    place, drawn = tensor.memory_config, tensor.data_format if tensor.data_format in (BFLOAT16, FLOAT32) else FLOAT32
    tiles = PlanTensor("drawn", TensorSpec(tensor.shape, drawn, Layout.TILE, place))
    op = EvenlyDistributed(shape=tensor.shape, low=low, high=high, seed=seed, data_format=drawn)
    buffers = rand_buffers(tiles.spec, spec)

    def write(builder: PlanBuilder) -> PlanTensor:
        result = builder.run("RandDeviceOperation", op, [], tiles, buffers, key=("rand", tiles.spec))
        if drawn != tensor.data_format:
            result = typecast_by(builder, tiles, tensor.data_format, "cast", place=place)
            builder.free(tiles)
        rows = in_other_layout(builder, result, layout, "rows", place=place)
        builder.free_own(result, keep=[rows])
        return rows

    return plan_of({}, spec, write)
