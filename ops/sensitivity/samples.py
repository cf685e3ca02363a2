"""A set of calls that together run every program there is, small enough to be planned on any device in a moment."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    TILE,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, UINT32, DataFormat, div_up, round_up
from device.plan import DeviceOp, Operation, Plan
from device.spec.device_spec import DeviceSpec
from ops.planners.concat import plan_concat
from ops.planners.conv.arguments import (
    ComputeConfig,
    ConvCall,
    ConvConfig,
    ConvRules,
    Operand,
    SliceConfig,
    SliceType,
)
from ops.planners.conv.conv2d import CONV2D
from ops.planners.conv.conv_transpose2d import CONV_TRANSPOSE2D, CONV_TRANSPOSE2D_BY_PHASES
from ops.planners.conv.plan import plan_convolution
from ops.planners.eltwise import BinaryArguments, plan_binary
from ops.planners.matmul import MatmulArguments, plan_matmul
from ops.planners.onednn.plan import Lowering, plan_backward_data, plan_backward_weights, plan_forward
from ops.planners.onednn.problem import Deconvolution
from ops.planners.pool import PoolArguments, plan_max_pool2d
from ops.planners.rand import plan_rand
from ops.planners.shape.fold import plan_fold
from ops.planners.shape.pad import plan_pad
from ops.planners.shape.permute import plan_permute
from ops.planners.shape.plan import (
    plan_convert_to_chw,
    plan_convert_to_hwc,
)
from ops.planners.shape.slice import plan_slice
from ops.planners.to_config import plan_tilize
from ops.planners.upsample import plan_upsample
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.pad import FillPad, PadImage
from ops.programs.data_movement.reshape import Reshape
from ops.programs.data_movement.slice import PaddedSlice, SliceWrite, Window
from ops.programs.data_movement.typecast import Typecast
from ops.programs.eltwise.op import BinaryOperation
from ops.reference import plan_geometry

ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE
SIDE, CHANNELS = 40, 64  # of an image; no whole number of tiles across
CORES = 4  # of shards


def movement_plans() -> Iterator[tuple[str, Plan]]:
    """Each program by its name, as a plan of one operation from tensor "x" to tensor "y"."""
    dram, l1 = DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG
    for conversion, source, target in (
        (Conversion.INTERLEAVED_TO_SHARDED, _tensor(TILES, dram), _sharded(TILES)),
        (Conversion.INTERLEAVED_TO_SHARDED, _tensor(ROWS, dram), _sharded(ROWS)),
        (Conversion.INTERLEAVED_TO_SHARDED, _tensor(ROWS, dram, width=24), _sharded(ROWS, width=24)),
        (Conversion.INTERLEAVED_TO_SHARDED, _tensor(ROWS, l1), _sharded(ROWS)),
        (Conversion.SHARDED_TO_INTERLEAVED, _sharded(TILES), _tensor(TILES, dram)),
        (Conversion.SHARDED_TO_INTERLEAVED, _sharded(ROWS), _tensor(ROWS, dram)),
        (Conversion.RESHARD, _sharded(TILES), _sharded(TILES, cores=2)),
        (Conversion.MOVE, _sharded(ROWS), _sharded(ROWS)),
        (Conversion.MOVE, _tensor(TILES, dram), _tensor(TILES, dram)),
        (Conversion.COPY, _tensor(ROWS, l1), _tensor(ROWS, l1)),
        (Conversion.PAD, _tensor(ROWS, dram), _tensor(ROWS, dram)),
        (Conversion.TILIZE, _tensor(ROWS, dram), _tensor(TILES, dram)),
        (Conversion.TILIZE, _sharded(ROWS), _sharded(TILES)),
        (Conversion.TILIZE_WITH_VAL_PADDING, _tensor(ROWS, dram), _tensor(TILES, dram)),
        (Conversion.UNTILIZE, _tensor(TILES, dram), _tensor(ROWS, dram)),
        (Conversion.UNTILIZE, _tensor(TILES, l1, width=512), _tensor(ROWS, l1, width=512)),
        (Conversion.UNTILIZE_WITH_UNPADDING, _tensor(TILES, dram), _tensor(ROWS, dram)),
        (Conversion.UNTILIZE_WITH_UNPADDING, _sharded(TILES), _tensor(ROWS, dram)),
    ):
        yield _plan(conversion.value, CopyTensor(conversion), source, target)
    narrow = _tensor(TILES, dram, data_format=BFLOAT8_B)
    yield _plan("Typecast", Typecast(BFLOAT16, BFLOAT8_B), _tensor(TILES, dram), narrow)
    yield _plan(
        "Typecast to float32",
        Typecast(BFLOAT16, FLOAT32),
        _tensor(TILES, dram),
        _tensor(TILES, dram, data_format=FLOAT32),
    )
    counted = _tensor(TILES, dram, data_format=UINT32)
    yield _plan("Typecast to uint32", Typecast(BFLOAT16, UINT32), _tensor(TILES, dram), counted)
    rows_of_zeros = CopyTensor(Conversion.TILIZE_WITH_VAL_PADDING)  # below every row of the image
    yield _plan("TilizeWithValPadding of an image", rows_of_zeros, _image(ROWS), _image(TILES))
    shape = (1, 1, SIDE * SIDE * CHANNELS // 80, 80)
    uneven = TensorSpec(shape, BFLOAT16, ROWS, dram)
    yield _plan("ReshapeView to other sticks", Reshape(shape), _tensor(ROWS, dram), uneven)
    padded = TensorSpec((1, SIDE + 2, SIDE + 2, CHANNELS), BFLOAT16, ROWS, dram)
    pad = PadImage(image=(1, SIDE, SIDE, CHANNELS), padding=(1, 1, 1, 1))
    yield _plan("Pad of an image", pad, _image(ROWS), padded)
    yield _plan("FillPad", FillPad(), _tensor(TILES, dram), _tensor(TILES, dram))
    for layout in (ROWS, TILES):
        shape = (1, SIDE, SIDE // 2, 2 * CHANNELS)
        yield _plan("ReshapeView", Reshape(shape), _image(layout), TensorSpec(shape, BFLOAT16, layout, dram))
        window = Window(shape=(1, SIDE, SIDE, CHANNELS), begins=(0, 0, 3, 0), ends=(1, SIDE // 2, 35, CHANNELS))
        part = _sharded(ROWS, rows=SIDE // 2 * 32)
        yield _plan("PaddedSlice", PaddedSlice(window), _image(layout), part)
        yield _plan(
            "SliceWrite", SliceWrite(window, 32), part if layout is ROWS else _sharded(TILES, rows=640), _image(layout)
        )


def _plan(name: str, op: DeviceOp, source: TensorSpec, target: TensorSpec) -> tuple[str, Plan]:
    step = Operation(name=f"{name}DeviceOperation", inputs=("x", "y"), op=op)
    places = [_place(one) for one in (source, target)]
    return f"{name} of {source.shape[-1]} columns, {' to '.join(places)}", Plan(
        steps=(step,), tensors={"x": source, "y": target}
    )


def _place(tensor: TensorSpec) -> str:
    kind = "shards" if tensor.memory_config.is_sharded() else tensor.memory_config.buffer_type.name
    return f"{'tiles' if tensor.layout is TILES else 'rows'} in {kind}"


def _tensor(
    layout: Layout, place: MemoryConfig, *, width: int = CHANNELS, data_format: DataFormat = BFLOAT16
) -> TensorSpec:
    """An interleaved matrix."""
    return TensorSpec((1, 1, SIDE * SIDE, width), data_format, layout, place)


def _image(layout: Layout) -> TensorSpec:
    return TensorSpec((1, SIDE, SIDE, CHANNELS), BFLOAT16, layout, DRAM_MEMORY_CONFIG)


def _sharded(layout: Layout, *, rows: int = SIDE * SIDE, width: int = CHANNELS, cores: int = CORES) -> TensorSpec:
    """A matrix whose rows some cores share."""
    high = round_up(div_up(rows, cores), TILE)
    shards = ShardSpec(first_cores(cores, 2, 2), (high, width))
    place = MemoryConfig(TensorMemoryLayout.HEIGHT_SHARDED, BufferType.L1, shards)
    return TensorSpec((1, 1, rows, width), BFLOAT16, layout, place, (1, 1, high * cores, width))


def surroundings() -> Iterator[tuple[str, Callable[[DeviceSpec], Plan], dict[str, TensorSpec]]]:
    """Each call by its name: how it is planned, and its tensors."""
    tiles, rows = (
        _sample_surroundings_tensor((1, 1, 256, 64), TILES),
        _sample_surroundings_tensor((1, 16, 16, 32), ROWS),
    )
    pool = PoolArguments(
        source=_sample_surroundings_tensor((1, 1, 256, 32), ROWS),
        batch=1,
        image=(16, 16),
        channels=32,
        kernel=(2, 2),
        stride=(2, 2),
        padding=(0, 0, 0, 0),
        dilation=(1, 1),
    )
    yield "max_pool2d", partial(plan_max_pool2d, pool), {"input": pool.source}
    added = BinaryArguments(operation=BinaryOperation.ADD, left=tiles, right=tiles)
    yield "add", partial(plan_binary, added), {"input": tiles, "input_b": tiles}
    yield "concat", partial(plan_concat, (rows, rows), 3), {"input_0": rows, "input_1": rows}
    yield "permute", partial(plan_permute, rows, (0, 3, 1, 2)), {"input": rows}
    yield "pad", partial(plan_pad, rows, ((0, 0), (1, 1), (1, 1), (0, 0)), 0.0), {"input": rows}
    ragged = _sample_surroundings_tensor((1, 1, 256, 40), TILES)
    yield "pad tiles", partial(plan_pad, ragged, ((0, 0), (0, 0), (0, 0), (0, 24)), 0.0), {"input": ragged}
    yield "slice", partial(plan_slice, rows, (0, 0, 0, 0), (1, 8, 16, 32), None), {"input": rows}
    yield "fold", partial(plan_fold, rows, (2, 2), ((0, 0), (0, 0), (0, 0))), {"input": rows}
    yield "upsample", partial(plan_upsample, rows, (2, 2)), {"input": rows}
    wide = _sample_surroundings_sharded((1, 1, 16, 256), TensorMemoryLayout.WIDTH_SHARDED, (16, 64))
    yield "convert_to_hwc", partial(plan_convert_to_hwc, wide), {"input": wide}
    high = _sample_surroundings_sharded((1, 1, 256, 16), TensorMemoryLayout.HEIGHT_SHARDED, (64, 16))
    yield "convert_to_chw", partial(plan_convert_to_chw, high), {"input": high}
    sticks = _sample_surroundings_tensor((1, 1, 256, 64), ROWS)
    yield "tilize", partial(plan_tilize, sticks), {"input": sticks}
    drawn = _sample_surroundings_tensor((1, 1, 256, 64), TILES)
    yield "rand", partial(plan_rand, drawn, low=0.0, high=1.0, seed=0), {}


def _sample_surroundings_tensor(shape: tuple[int, ...], layout: Layout) -> TensorSpec:
    return TensorSpec(shape, BFLOAT16, layout, DRAM_MEMORY_CONFIG)


def _sample_surroundings_sharded(
    shape: tuple[int, ...], scheme: TensorMemoryLayout, shard: tuple[int, int]
) -> TensorSpec:
    """Rows on four cores."""
    place = MemoryConfig(scheme, BufferType.L1, ShardSpec(first_cores(4, 2, 2), shard))
    return TensorSpec(shape, BFLOAT16, ROWS, place)


L1_SMALL_BYTES = 32768
HEIGHT, BLOCK, WIDTH = (TensorMemoryLayout[f"{name}_SHARDED"] for name in ("HEIGHT", "BLOCK", "WIDTH"))


@dataclass(frozen=True, slots=True)
class Sample:
    """A call."""

    name: str  # What is special about it
    plan: Callable[[DeviceSpec], Plan]  # Its plan on a device; raises `TTSimError` where the device can not do it
    given: Mapping[str, TensorSpec]  # Tensors of the plan that are on the device before


def samples() -> tuple[Sample, ...]:
    """Calls that together run every program, and move tensors in every way."""
    return (*_convolutions(), *_matmuls(), *_deconvolutions(), *_movements(), *_surroundings())


def planners_samples() -> tuple[Sample, ...]:
    """Convolutions whose readers the planner may split or not: of every format, and where its rates decide."""
    formats = (
        _convolution(
            f"split reader of {in_format} to {out_format}, {'32' if wide else '16'}-bit Dst",
            CONV2D,
            padding=1,
            size=(64, 64),
            channels=(32, 32),
            data_format=in_format,
            out_format=out_format,
            compute_config=ComputeConfig(fp32_dest=wide),
            config=ConvConfig(shard_layout=HEIGHT, weights_format=BFLOAT8_B),
        )
        for in_format in (FLOAT32, BFLOAT16)
        for out_format in (FLOAT32, BFLOAT16, BFLOAT8_B)
        for wide in (False, True)
    )
    near = (
        _convolution(
            f"split reader of {channels[0]} to {channels[1]} channels",
            CONV2D,
            padding=1,
            size=(192, 256),
            channels=channels,
            config=ConvConfig(shard_layout=HEIGHT, weights_format=BFLOAT8_B, act_block_h_override=height),
        )
        for channels, height in (((8, 64), 128), ((32, 256), 64))
    )
    return (*formats, *near)


def _convolution(
    name: str,
    rules: ConvRules = CONV_TRANSPOSE2D,
    *,
    size: tuple[int, int] = (16, 16),
    channels: tuple[int, int] = (64, 64),
    kernel: int = 3,
    stride: int = 1,
    padding: int = 0,
    data_format: DataFormat = BFLOAT16,
    layout: Layout = Layout.ROW_MAJOR,
    place: MemoryConfig = L1_MEMORY_CONFIG,
    bias: bool = False,
    config: ConvConfig,
    **others: Any,
) -> Sample:
    """A convolution of one image."""
    sides = channels if rules.transposed else channels[::-1]
    image = TensorSpec((1, 1, size[0] * size[1], channels[0]), data_format, layout, place)
    row = Operand(spec=TensorSpec((1, 1, 1, channels[1]), BFLOAT16, Layout.ROW_MAJOR), on_host=True)
    call = ConvCall(
        rules=rules,
        input=Operand(spec=image, on_host=False),
        weight=Operand(spec=TensorSpec((*sides, kernel, kernel), BFLOAT16, Layout.ROW_MAJOR), on_host=True),
        bias=row if bias else None,
        in_channels=channels[0],
        out_channels=channels[1],
        batch_size=1,
        input_height=size[0],
        input_width=size[1],
        kernel_size=(kernel, kernel),
        stride=(stride, stride),
        padding=(padding,) * 4,
        conv_config=config,
        **others,
    )

    def plan(spec: DeviceSpec) -> Plan:
        return plan_convolution(call, spec, free_l1_bytes=spec.l1.usable_bytes - L1_SMALL_BYTES)

    return Sample(name, plan, {"input": image})


def _convolutions() -> Iterator[Sample]:
    """Each scheme and path of a convolution."""
    wide = ComputeConfig(fidelity_phases=4, fp32_dest=True)
    cut = partial(SliceConfig, num_slices=2)
    tiled = partial(_convolution, layout=Layout.TILE, padding=1)
    yield _convolution("HEIGHT", kernel=2, stride=2, config=ConvConfig(shard_layout=HEIGHT))
    yield _convolution(
        "HEIGHT, by phases", CONV_TRANSPOSE2D_BY_PHASES, kernel=2, stride=2, config=ConvConfig(shard_layout=HEIGHT)
    )
    yield _convolution(
        "HEIGHT, split reader, double buffers",
        kernel=2,
        stride=2,
        bias=True,
        compute_config=wide,
        config=ConvConfig(
            shard_layout=HEIGHT,
            force_split_reader=True,
            enable_act_double_buffer=True,
            enable_weights_double_buffer=True,
            config_tensors_in_dram=True,
            output_layout=Layout.ROW_MAJOR,
            act_block_h_override=64,
        ),
        size=(64, 64),
    )
    yield _convolution(
        "HEIGHT, wide rows out", channels=(32, 320), config=ConvConfig(shard_layout=HEIGHT, output_layout=Layout(0))
    )
    yield tiled("HEIGHT, few bits", stride=2, config=ConvConfig(shard_layout=HEIGHT, weights_format=BFLOAT8_B))
    yield tiled("BLOCK", channels=(256, 256), bias=True, config=ConvConfig(shard_layout=BLOCK, act_block_h_override=32))
    yield _convolution(
        "BLOCK, double buffers",
        CONV2D,
        stride=2,
        padding=1,
        channels=(128, 256),
        config=ConvConfig(shard_layout=BLOCK, enable_act_double_buffer=True, enable_weights_double_buffer=True),
    )
    yield tiled("WIDTH", channels=(512, 256), size=(8, 8), config=ConvConfig(shard_layout=WIDTH))
    yield _convolution(
        "WIDTH, narrow", channels=(256, 256), size=(8, 8), padding=1, config=ConvConfig(shard_layout=WIDTH)
    )
    from_dram = partial(_convolution, place=DRAM_MEMORY_CONFIG, stride=2, size=(32, 32), config=ConvConfig())
    for kind in (SliceType.DRAM_HEIGHT, SliceType.DRAM_WIDTH):
        yield from_dram(f"{kind.name} slices", slice_config=cut(slice_type=kind))
    in_rows = cut(slice_type=SliceType.DRAM_HEIGHT)
    yield from_dram("DRAM_HEIGHT slices of tiles", layout=Layout.TILE, slice_config=in_rows)
    yield _convolution(
        "1x1 as a matmul", CONV2D, kernel=1, size=(32, 32), channels=(256, 128), layout=Layout.TILE, config=ConvConfig()
    )
    yield _convolution("auto", CONV2D, padding=1, bias=True, config=ConvConfig(), place=DRAM_MEMORY_CONFIG)


def _matmuls() -> Iterator[Sample]:
    """Each program of a matmul."""

    def matrix(*shape: int, data_format: DataFormat, place: MemoryConfig) -> TensorSpec:
        return TensorSpec(shape, data_format, Layout.TILE, place)

    for name, rows, depth, columns, data_format, place in (
        ("both operands sent", 8192, 1024, 1024, BFLOAT16, DRAM_MEMORY_CONFIG),
        ("few rows", 32, 512, 2048, BFLOAT8_B, DRAM_MEMORY_CONFIG),
        ("few columns", 2048, 512, 32, BFLOAT16, DRAM_MEMORY_CONFIG),
        ("from L1", 128, 96, 128, FLOAT32, L1_MEMORY_CONFIG),
    ):
        first = matrix(rows, depth, data_format=data_format, place=place)
        second = matrix(depth, columns, data_format=data_format, place=place)
        call = MatmulArguments(first=first, second=second, bias=None, out_format=None, memory_config=place)
        yield Sample(f"matmul, {name}", partial(_plan_matmul, call), {"input": first, "weight": second})

    for side, place in ((1024, DRAM_MEMORY_CONFIG), (128, L1_MEMORY_CONFIG)):
        first = matrix(side, side, data_format=BFLOAT16, place=place)
        call = MatmulArguments(
            first=first, second=first, bias=None, out_format=None, memory_config=place, transpose_a=True
        )
        given = {"input": first, "weight": first}
        yield Sample(f"matmul, {side} rows and columns transposed", partial(_plan_matmul, call), given)
    place = L1_MEMORY_CONFIG
    first, second, row = (matrix(*sides, data_format=BFLOAT16, place=place) for sides in ((64, 96), (96, 64), (1, 64)))
    for activation in ("relu", "sigmoid"):
        call = MatmulArguments(
            first=first, second=second, bias=row, out_format=None, memory_config=place, activation=(activation, ())
        )
        given = {"input": first, "weight": second, "bias": row}
        yield Sample(f"matmul, bias and {activation} by themselves", partial(_plan_matmul, call), given)


def _plan_matmul(call: MatmulArguments, spec: DeviceSpec) -> Plan:
    return plan_matmul(call, spec, free_l1_bytes=spec.l1.usable_bytes)


def _deconvolution(side: int, kernel: int, data_format: DataFormat = FLOAT32) -> Deconvolution:
    """A call of oneDNN's on a square image."""
    padding = (kernel // 2,) * 2
    return Deconvolution(
        geometry=plan_geometry((side,) * 2, (kernel,) * 2, stride=(2, 2), pad_before=padding, pad_after=padding),
        batch=1,
        in_channels=32,
        out_channels=32,
        groups=1,
        data_format=data_format,
    )


def _deconvolutions() -> Iterator[Sample]:
    """Each direction and lowering of oneDNN's."""
    for lowering in Lowering:
        forward = partial(plan_forward, _deconvolution(16, 3), bias=False, lowering=lowering)
        yield Sample(f"ConvTranspose, {lowering.value}", forward, {})
    empty = partial(plan_forward, _deconvolution(8, 1, BFLOAT16), bias=True, lowering=Lowering.PHASE)
    yield Sample("ConvTranspose, empty phases", empty, {})
    yield Sample("gradient of the data", partial(plan_backward_data, _deconvolution(16, 3)), {})
    yield Sample("gradient of the weights", partial(plan_backward_weights, _deconvolution(16, 3)), {})
    yield Sample("gradient of the weights, in bands", partial(plan_backward_weights, _deconvolution(64, 3)), {})


def _movements() -> Iterator[Sample]:
    """Programs that only move, one by one."""
    for name, plan in movement_plans():
        yield Sample(name, partial(_as_it_is, plan), plan.tensors)


def _surroundings() -> Iterator[Sample]:
    """Other calls around a convolution."""
    for name, plan, tensors in surroundings():
        yield Sample(name, plan, tensors)


def _as_it_is(plan: Plan, spec: DeviceSpec) -> Plan:
    """A plan that no device changes."""
    return plan
