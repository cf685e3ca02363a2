"""The plan of an average pool whose window is the image: a sum, without a pool. Rules: ttnn 0.81.1, as it plans."""

from dataclasses import replace

from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE, BufferType, Layout, MemoryConfig, TensorMemoryLayout
from device.plan import Plan
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanBuilder, PlanTensor, plan_of
from ops.planners.pool import PoolArguments
from ops.planners.reduction import ReduceArguments, reduced_by
from ops.planners.shape.reshape import reshaped_by
from ops.planners.shape.to_layout import in_other_layout
from ops.planners.to_config import placed
from ops.programs.reduction.reduce import Reduction


def plan_global_pool(call: PoolArguments, spec: DeviceSpec) -> Plan:
    """Plan a call, validated; its images are the tensor "input"."""
    return plan_of(call.source, spec, lambda builder, source: averaged(builder, source, call), attempts=True)


def averaged(builder: PlanBuilder, source: PlanTensor, call: PoolArguments) -> PlanTensor:
    """[1, 1, N, C] averages of images."""
    averaging, (height, width), layout = call.averaging, call.image, Layout.TILE if call.tiled else Layout.ROW_MAJOR
    assert averaging is not None  # of an average pool
    pixels, held = height * width, [source]

    def hold(tensor: PlanTensor) -> PlanTensor:
        if tensor.name not in [other.name for other in held]:
            held.append(tensor)
        return tensor

    current = source
    if len(source.spec.shape) < len(images := (call.batch, height, width, call.channels)):
        current = hold(reshaped_by(builder, source, images, None, None, "input.pixels"))
    current = hold(placed(builder, current, interleaved(call.place, source.spec), "input.interleaved"))
    if current.spec.layout is Layout.TILE and pixels % TILE:
        tiles, current = current, hold(in_other_layout(builder, current, Layout.ROW_MAJOR, "input.rows"))
        builder.free_own(tiles)
    rows = call.batch, 1, pixels, call.channels
    current = hold(reshaped_by(builder, current, rows, None, None, "input.images"))
    divisor = pixels if averaging.divisor is None else averaging.divisor
    reduction = ReduceArguments(
        name=call.function,
        reduction=Reduction.SUM,
        axes=(2,),
        keeps=True,
        scalar=1 / divisor if divisor else float("inf"),
        place=current.spec.memory_config,
        layout=layout if call.batch == 1 or not call.tiled else None,
        fidelity_phases=averaging.fidelity_phases,
        fp32_dest=averaging.fp32_dest is not False,
    )
    current = hold(reduced_by(builder, current, reduction))
    flat = 1, 1, call.batch, call.channels
    if current.spec.layout is Layout.TILE and not call.tiled and not current.spec.data_format.is_block:
        current = hold(in_other_layout(builder, current, layout, "output"))
    reduced, current = current, hold(reshaped_by(builder, current, flat, None, None, "output.images"))
    if current.spec.data_format.is_block:
        builder.free_own(reduced, keep=[current])
    result = in_other_layout(builder, current, layout, "output.tiles")
    builder.free_own(*reversed(held[1:]), keep=[result, source])
    return result


def interleaved(place: MemoryConfig | None, spec: TensorSpec) -> MemoryConfig:
    """The interleaved memory of a call's intermediate tensors: the buffer type of its result, or of its images."""
    asked = place or spec.memory_config
    kind = BufferType.DRAM if asked.buffer_type is BufferType.DRAM else BufferType.L1
    if not asked.is_sharded():
        return asked
    return replace(asked, memory_layout=TensorMemoryLayout.INTERLEAVED, buffer_type=kind, shard_spec=None)
