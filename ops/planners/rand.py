"""The plan of ttnn.rand. Rules: ttnn 0.81.1, compared with its plans.

Numbers are drawn in tiles of bfloat16 or float32; programs of their own cast and untilize them.
"""

from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16, FLOAT32
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor
from ops.op_models import OP_MODELS
from ops.programs.data_movement.conversions import in_other_layout, typecast_by
from ops.programs.rand import EvenlyDistributed, rand_buffers


def plan_rand(tensor: TensorSpec, spec: DeviceSpec, *, low: float, high: float, seed: int) -> Plan:
    """Plan a tensor of evenly distributed numbers."""
    builder, place = PlanBuilder(spec, {}), tensor.memory_config
    drawn = tensor.data_format if tensor.data_format in (BFLOAT16, FLOAT32) else FLOAT32
    tiles = TensorSpec(tensor.shape, drawn, Layout.TILE, place)
    op = EvenlyDistributed(shape=tensor.shape, low=low, high=high, seed=seed, data_format=drawn)
    result = builder.run(
        "RandDeviceOperation",
        op,
        [],
        output=PlanTensor("drawn", tiles),
        circular_buffers=rand_buffers(tiles, spec),
        key=("rand", tiles),
    )
    if drawn != tensor.data_format:
        cast = typecast_by(builder, result, tensor.data_format, "cast", place=place)
        builder.free(result)
        result = cast
    if tensor.layout is Layout.ROW_MAJOR:
        rows = in_other_layout(builder, result, Layout.ROW_MAJOR, "rows", place=place)
        builder.free(result)
        result = rows
    return builder.finish({"output": result.name}, known_works=OP_MODELS)
