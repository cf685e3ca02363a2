"""Builders that tests share: convolutions that pass every check, tensors by a short text, tables of what a plan says.

tensor_spec("1x1x64x32 bfloat8_b tile l1")          interleaved in L1
tensor_spec("1x1x64x32 rows height/32x32/2")        bfloat16, shards of 32 x 32 on two cores
tensor_spec("64x64 block/32x32/2x2 dram")           four shards on the first two columns and rows
buffer_rows(pool_buffers(...))                      [("scalar", 4096, 4), ...]: name, bytes, cores
busy(op_cycles(MaxPool(...), read, written))        {Stage.MATH: 612.0, ...} of the slowest core
op_values(Upsample(...), image)                     what an operation makes of arrays
run_report(ttsim.relu, tensor_spec("64x64 tile"))   the cycle report of a call
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

import ttsim
from device.cores import first_cores
from device.matrix_unit.arithmetic import EXACT, Arithmetic
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardOrientation,
    ShardSpec,
)
from device.numbers.formats import BFLOAT16, FORMATS, Array
from device.plan import CircularBuffer, DeviceOp, Operation, Plan
from device.spec.device_spec import DeviceSpec
from device.time.stages import OperationCycles, Stage
from ops.op_model import Ends, ValuesContext
from ops.op_models import OP_MODELS, load_spec
from ops.passes.cycles import operations_of
from ops.planners.conv.arguments import (
    CONV2D,
    CONV_TRANSPOSE2D,
    ConvCall,
    ConvConfig,
    ConvRules,
    Operand,
    SliceConfig,
    SliceType,
)
from ops.reference import Geometry, plan_geometry
from tests.shards import BLOCK, HEIGHT, WIDTH, in_box, on_cores

L1_FULL = SliceConfig(slice_type=SliceType.L1_FULL)
TWO_SLICES = SliceConfig(slice_type=SliceType.DRAM_HEIGHT, num_slices=2)


def operand(
    *shape: int, place: MemoryConfig | None = None, data_format: Any = BFLOAT16, layout: Layout = Layout.ROW_MAJOR
) -> Operand:
    """A tensor on the device if it has a place, else on the host."""
    return Operand(spec=TensorSpec(shape, data_format, layout, place or DRAM_MEMORY_CONFIG), on_host=place is None)


def height_sharded(buffer_type: BufferType) -> Operand:
    place = MemoryConfig(HEIGHT, buffer_type, ShardSpec(first_cores(2, 8, 8), (32, 32)))
    return operand(1, 1, 64, 32, place=place)


def cut(slices: int = 0, kind: SliceType = SliceType.DRAM_HEIGHT) -> SliceConfig:
    """So many slices out of DRAM; 0 for as few as fit."""
    return SliceConfig(slice_type=kind, num_slices=slices)


def changed(made: ConvCall, **changes: Any) -> ConvCall:
    """A call with other arguments, of which those of its config may stand beside its own."""
    config = {name: changes.pop(name) for name in list(changes) if name in ConvConfig.__slots__}
    made = replace(made, **changes)
    return replace(made, conv_config=replace(made.conv_config, **config)) if config else made


def call(**changes: Any) -> ConvCall:
    """An 8x8 image of 32 channels, kernel 3, stride 2, that every check accepts, with changes."""
    good = ConvCall(
        rules=CONV_TRANSPOSE2D,
        input=operand(1, 1, 64, 32, place=DRAM_MEMORY_CONFIG),
        weight=operand(32, 32, 3, 3),
        in_channels=32,
        out_channels=32,
        batch_size=1,
        input_height=8,
        input_width=8,
        kernel_size=(3, 3),
        stride=(2, 2),
        padding=(1, 1, 1, 1),
        output_padding=(1, 1),
    )
    return changed(good, **changes)


def sized_call(
    size: tuple[int, int],
    channels: tuple[int, int],
    kernel: tuple[int, int] = (3, 3),
    *,
    rules: ConvRules = CONV_TRANSPOSE2D,
    place: MemoryConfig | None = DRAM_MEMORY_CONFIG,
    layout: Layout = Layout.ROW_MAJOR,
    batch: int = 1,
    groups: int = 1,
    with_bias: bool = False,
    **changes: Any,
) -> ConvCall:
    """Images of a size, [1, 1, batch * height * width, channels], and weights on the host; place None: images, too."""
    ins, outs = channels
    weight = (outs, ins // groups) if rules is CONV2D else (ins, outs // groups)
    result = ConvCall(
        rules=rules,
        input=operand(1, 1, batch * size[0] * size[1], ins, place=place, layout=layout),
        weight=operand(*weight, *kernel),
        bias=operand(1, 1, 1, outs) if with_bias else None,
        in_channels=ins,
        out_channels=outs,
        batch_size=batch,
        input_height=size[0],
        input_width=size[1],
        kernel_size=kernel,
        groups=groups,
    )
    return changed(result, **changes)


def geometry_of(made: ConvCall) -> Geometry:
    """Which inputs and outputs a call relates."""
    return plan_geometry(
        (made.input_height, made.input_width),
        made.kernel_size,
        stride=made.stride,
        pad_before=made.padding[::2],
        pad_after=made.padding[1::2],
        output_padding=made.output_padding,
        dilation=made.dilation,
    )


N150 = load_spec("wormhole_n150")
LAYOUTS = {"tile": Layout.TILE, "rows": Layout.ROW_MAJOR}
MEMORIES = {"dram": BufferType.DRAM, "l1": BufferType.L1}
SCHEMES = {"height": HEIGHT, "width": WIDTH, "block": BLOCK}


def tensor_spec(text: str) -> TensorSpec:
    """A tensor by its shape and, in any order, format, layout and place: bfloat16, rows and DRAM where nothing is said.

    Shards are `scheme/HEIGHTxWIDTH/cores` in L1, or with `dram` in DRAM; cores are a number, or columns x rows.
    """
    shape, *words = text.split()
    data_format = next((FORMATS[word] for word in words if word in FORMATS), BFLOAT16)
    layout = next((LAYOUTS[word] for word in words if word in LAYOUTS), Layout.ROW_MAJOR)
    return TensorSpec(_sides(shape), data_format, layout, place(text))


def place(text: str) -> MemoryConfig:
    """A place by the words of `tensor_spec`: ``l1``, ``width/32x64/4``, ``block/32x32/2x2 dram``; else DRAM.

    Shards with ``col`` lie column by column.
    """
    words = text.split()
    memory = next((MEMORIES[word] for word in words if word in MEMORIES), None)
    shards = next((word.split("/") for word in words if "/" in word), None)
    if shards is None:
        return MemoryConfig(DRAM_MEMORY_CONFIG.memory_layout, memory or BufferType.DRAM)
    scheme, shard, cores = SCHEMES[shards[0]], _sides(shards[1]), _sides(shards[2])
    sharded = in_box(scheme, shard, *cores) if len(cores) > 1 else on_cores(scheme, shard, *cores)
    if "col" in words:
        grid = sharded.shard_spec.grid if len(cores) > 1 else first_cores(*cores, 8, 8, row_wise=False)
        sharded = replace(sharded, shard_spec=ShardSpec(grid, shard, ShardOrientation.COL_MAJOR))
    return replace(sharded, buffer_type=memory or BufferType.L1)


def _sides(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split("x")))


def buffer_rows(buffers: Iterable[CircularBuffer], *more: str) -> list[tuple[Any, ...]]:
    """Name, bytes a core and cores of circular buffers, and more of their fields: ``view_of``, ``page_bytes``."""
    return [
        (buffer.name, buffer.size_bytes, buffer.cores.num_cores(), *(getattr(buffer, name) for name in more))
        for buffer in buffers
    ]


def programs(plan: Plan) -> list[str]:
    """The device operations of a plan, without the ending that most share."""
    return [step.name.removesuffix("DeviceOperation") for step in plan.steps if isinstance(step, Operation)]


def plan_rows(plan: Plan) -> dict[str, list[tuple[Any, ...]]]:
    """The circular buffers of each device operation of a plan, by the operation's name."""
    return {step.name: buffer_rows(step.circular_buffers) for step in operations_of(plan)}


def op_cycles(
    op: DeviceOp,
    read: TensorSpec | str,
    written: TensorSpec | str | None = None,
    spec: DeviceSpec = N150,
    *others: TensorSpec | str,
) -> OperationCycles:
    """What an operation takes between two tensors, which may be given as text; the same one where one is given.

    ``others`` are the inputs behind the first.
    """
    tensors = (read, read if written is None else written, *others)
    first, last, *more = (tensor_spec(tensor) if isinstance(tensor, str) else tensor for tensor in tensors)
    model = OP_MODELS[type(op)]
    assert model.cycles is not None
    return model.cycles(op, Ends(read=first, written=last, others=tuple(more)), spec)


def busy(cycles: OperationCycles) -> Mapping[Stage, float]:
    """How long each stage of the slowest core works."""
    return {stage.stage: stage.busy_cycles for stage in cycles.slowest.stages}


def op_values(op: DeviceOp, *arrays: Array | None, spec: DeviceSpec = N150, arithmetic: Arithmetic = EXACT) -> Array:
    """What an operation makes of its inputs, or leaves in the last of them."""
    return OP_MODELS[type(op)].values(op, arrays, ValuesContext(spec=spec, arithmetic=arithmetic))


def run_report(
    function: Any, *tensors: TensorSpec, device: str | DeviceSpec = "wormhole_n150", **arguments: Any
) -> Any:
    """The cycle report of a call with tensors of zeros, computed without values."""
    with ttsim.open_device(l1_small_size=32768, spec=device, values="off") as opened, ttsim.profile(opened) as profile:
        result = [
            ttsim.Tensor(np.zeros(spec.shape, np.float32), ttsim.DataType.of(spec.data_format), layout=spec.layout).to(
                opened, spec.memory_config
            )
            for spec in tensors
        ]
        function(*result, **arguments)
        return profile.report()
