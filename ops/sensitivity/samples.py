"""A set of small calls that together run every program and can be planned quickly on any device."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from typing import Any, NamedTuple

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
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, INT32, UINT32, DataFormat, div_up, round_up
from device.plan import DeviceOp, Operation, Plan
from device.spec.device_spec import DeviceSpec
from ops.planners.accumulation import (
    AccumulateArguments,
    ImagesArguments,
    plan_accumulation,
    plan_added_images,
    plan_integral_image,
)
from ops.planners.argmax import ArgMaxArguments, plan_argmax
from ops.planners.attention import heads as heads_planner
from ops.planners.attention.embedding import EmbeddingArguments, plan_embedding
from ops.planners.attention.heads import SplitArguments, plan_join
from ops.planners.attention.heads_decode import (
    JoinDecodeArguments,
    SplitDecodeArguments,
    plan_join_decode,
    plan_split_decode,
)
from ops.planners.attention.rotary import RotaryArguments, plan_rotary_embedding
from ops.planners.attention.rotary_llama import RotaryLlamaArguments, plan_rotary_llama
from ops.planners.attention.rotate_half import plan_rotate_half
from ops.planners.attention.sdpa import AttentionArguments, plan_attention
from ops.planners.attention.sdpa_decode import DecodeArguments, plan_decode
from ops.planners.attention.separate_heads import SeparateArguments, plan_separate_split
from ops.planners.attention.softmax import SoftmaxArguments, plan_softmax
from ops.planners.bcast import BcastArguments, plan_bcast
from ops.planners.bilinear import BilinearArguments, plan_bilinear
from ops.planners.concat import plan_concat
from ops.planners.conv import arguments
from ops.planners.conv.plan import plan_convolution
from ops.planners.conv3d import Conv3dArguments, plan_conv3d
from ops.planners.deviation import DeviationArguments, plan_deviation
from ops.planners.dropout import DropoutArguments, plan_dropout
from ops.planners.eltwise import BinaryArguments, plan_binary
from ops.planners.gather import GatherArguments, plan_gather
from ops.planners.grid_sample import GridSampleArguments, plan_grid_sample
from ops.planners.matmul.arguments import MatmulArguments
from ops.planners.matmul.plan import plan_matmul
from ops.planners.moe import MoeArguments, plan_moe
from ops.planners.nonzero import plan_nonzero
from ops.planners.normalization.batch_norm import (
    BatchNormArguments,
    RunningArguments,
    plan_batch_norm,
    plan_running_statistics,
)
from ops.planners.normalization.group_arguments import GroupNormArguments
from ops.planners.normalization.group_norm import plan_group_norm
from ops.planners.normalization.layer_norm import NormArguments, plan_norm
from ops.planners.onednn.checks import Deconvolution
from ops.planners.onednn.plan import plan_backward_data, plan_backward_weights, plan_forward
from ops.planners.plus_one import plan_plus_one
from ops.planners.pool import PoolArguments, plan_pool2d
from ops.planners.powers import plan_integer_power
from ops.planners.product import ProductArguments, plan_product
from ops.planners.rand import plan_rand
from ops.planners.reduction import ReduceArguments, plan_reduction
from ops.planners.rotate import RotateArguments, plan_rotate
from ops.planners.sampling import SamplingArguments, plan_sampling
from ops.planners.shape.broadcast import plan_broadcast_to
from ops.planners.shape.fold import plan_fold
from ops.planners.shape.pad import plan_pad
from ops.planners.shape.permute import plan_permute
from ops.planners.shape.plan import plan_convert_to_chw, plan_convert_to_hwc
from ops.planners.shape.repeat import plan_repeat
from ops.planners.shape.slice import plan_slice
from ops.planners.shape.split import plan_split
from ops.planners.sort import SortArguments, plan_sort
from ops.planners.ternary import TernaryArguments, plan_ternary
from ops.planners.to_config import plan_tilize
from ops.planners.topk import TopKArguments, plan_topk
from ops.planners.upsample import plan_upsample
from ops.programs.data_movement.copy import Conversion, CopyTensor
from ops.programs.data_movement.kv_cache import FillCache, UpdateCache
from ops.programs.data_movement.pad import FillPad, PadWith, around_image
from ops.programs.data_movement.paged_cache import PagedFillCache, PagedUpdateCache
from ops.programs.data_movement.partial import SliceFromShards, SliceToShards
from ops.programs.data_movement.reshape import Reshape, ReshapeOnDevice
from ops.programs.data_movement.roll import RollShards
from ops.programs.data_movement.slice import PaddedSlice, SliceWrite, Window
from ops.programs.eltwise.op import Binary
from ops.programs.eltwise.ternary import Ternary
from ops.programs.reduction.reduce import Reduction
from ops.reference import plan_geometry

ROWS, TILES = Layout.ROW_MAJOR, Layout.TILE
DRAM, L1 = DRAM_MEMORY_CONFIG, L1_MEMORY_CONFIG
HEIGHT, BLOCK, WIDTH = (TensorMemoryLayout[f"{name}_SHARDED"] for name in ("HEIGHT", "BLOCK", "WIDTH"))
SIDE, CHANNELS = 40, 64  # of an image; no whole number of tiles across
CORES = 4  # of shards
L1_SMALL_BYTES = 32768


class Sample(NamedTuple):
    """A call."""

    name: str  # What is special about it
    plan: Callable[[DeviceSpec], Plan]  # Its plan on a device; raises `TTSimError` where the device can not do it
    given: Mapping[str, TensorSpec]  # Tensors of the plan that are on the device before


def samples() -> tuple[Sample, ...]:
    """Calls that together run every program and every kind of data movement."""
    return (
        *_convolutions(),
        *_matmuls(),
        *_deconvolutions(),
        *_movements(),
        *_surroundings(),
        *_statistics(),
        *_transformers(),
    )


def planners_samples() -> tuple[Sample, ...]:
    """Convolutions for which the planner may use one or two readers: all formats, and cases near the decision."""
    split = partial(_convolution, rules=arguments.CONV2D, padding=1)
    config = partial(arguments.ConvConfig, shard_layout=HEIGHT, weights_format=BFLOAT8_B)
    formats = (
        split(
            f"split reader of {in_format} to {out_format}, {'32' if wide else '16'}-bit Dst",
            size=(64, 64),
            channels=(32, 32),
            data_format=in_format,
            out_format=out_format,
            compute_config=arguments.ComputeConfig(fp32_dest=wide),
            config=config(),
        )
        for in_format, out_format, wide in product((FLOAT32, BFLOAT16), (FLOAT32, BFLOAT16, BFLOAT8_B), (False, True))
    )
    near = (
        split(
            f"split reader of {channels[0]} to {channels[1]} channels",
            size=(192, 256),
            channels=channels,
            config=config(act_block_h_override=height),
        )
        for channels, height in (((8, 64), 128), ((32, 256), 64))
    )
    return (*formats, *near)


def _convolution(
    name: str,
    *,
    rules: arguments.ConvRules = arguments.CONV_TRANSPOSE2D,
    size: tuple[int, int] = (16, 16),
    channels: tuple[int, int] = (64, 64),
    kernel: int = 3,
    stride: int = 1,
    padding: int = 0,
    data_format: DataFormat = BFLOAT16,
    layout: Layout = ROWS,
    place: MemoryConfig = L1,
    bias: bool = False,
    config: arguments.ConvConfig | None = None,
    **others: Any,
) -> Sample:
    sides = channels if rules.transposed else channels[::-1]
    image = TensorSpec((1, 1, size[0] * size[1], channels[0]), data_format, layout, place)
    call = arguments.ConvCall(
        rules=rules,
        input=arguments.Operand(spec=image, on_host=False),
        weight=arguments.Operand(spec=TensorSpec((*sides, kernel, kernel), BFLOAT16, ROWS), on_host=True),
        bias=arguments.Operand(spec=TensorSpec((1, 1, 1, channels[1]), BFLOAT16, ROWS), on_host=True) if bias else None,
        in_channels=channels[0],
        out_channels=channels[1],
        batch_size=1,
        input_height=size[0],
        input_width=size[1],
        kernel_size=(kernel, kernel),
        stride=(stride, stride),
        padding=(padding,) * 4,
        conv_config=config or arguments.ConvConfig(),
        **others,
    )

    def plan(spec: DeviceSpec) -> Plan:
        return plan_convolution(call, spec, free_l1_bytes=spec.l1.usable_bytes - L1_SMALL_BYTES)

    return Sample(name, plan, {"input": image})


def _convolutions() -> Iterator[Sample]:
    height, width, block = (partial(arguments.ConvConfig, shard_layout=scheme) for scheme in (HEIGHT, WIDTH, BLOCK))
    doubled: dict[str, Any] = {"enable_act_double_buffer": True, "enable_weights_double_buffer": True}
    by_two = partial(_convolution, kernel=2, stride=2)
    tiled = partial(_convolution, layout=TILES, padding=1)
    from_dram = partial(_convolution, place=DRAM, stride=2, size=(32, 32))
    yield by_two("HEIGHT", config=height())
    yield by_two("HEIGHT, by phases", rules=arguments.CONV_TRANSPOSE2D_BY_PHASES, config=height())
    yield by_two(
        "HEIGHT, split reader, double buffers",
        bias=True,
        compute_config=arguments.ComputeConfig(fidelity_phases=4, fp32_dest=True),
        config=height(
            force_split_reader=True, config_tensors_in_dram=True, output_layout=ROWS, act_block_h_override=64, **doubled
        ),
        size=(64, 64),
    )
    yield _convolution("HEIGHT, wide rows out", channels=(32, 320), config=height(output_layout=ROWS))
    yield tiled("HEIGHT, few bits", stride=2, config=height(weights_format=BFLOAT8_B))
    yield tiled("BLOCK", channels=(256, 256), bias=True, config=block(act_block_h_override=32))
    both = block(**doubled)
    yield _convolution(
        "BLOCK, double buffers", rules=arguments.CONV2D, stride=2, padding=1, channels=(128, 256), config=both
    )
    yield tiled("WIDTH", channels=(512, 256), size=(8, 8), config=width())
    yield _convolution("WIDTH, narrow", channels=(256, 256), size=(8, 8), padding=1, config=width())
    for kind, layout, words in (
        (arguments.SliceType.DRAM_HEIGHT, ROWS, ""),
        (arguments.SliceType.DRAM_WIDTH, ROWS, ""),
        (arguments.SliceType.DRAM_HEIGHT, TILES, " of tiles"),
    ):
        slices = arguments.SliceConfig(slice_type=kind, num_slices=2)
        yield from_dram(f"{kind.name} slices{words}", layout=layout, slice_config=slices)
    yield _convolution(
        "1x1 as a matmul", rules=arguments.CONV2D, kernel=1, size=(32, 32), channels=(256, 128), layout=TILES
    )
    yield _convolution("auto", rules=arguments.CONV2D, padding=1, bias=True, place=DRAM)


def _matmuls() -> Iterator[Sample]:
    cases: Sequence[tuple[str, tuple[int, int], tuple[int, int], DataFormat, MemoryConfig, dict[str, Any]]] = (
        ("both operands sent", (8192, 1024), (1024, 1024), BFLOAT16, DRAM, {}),
        ("few rows", (32, 512), (512, 2048), BFLOAT8_B, DRAM, {}),
        ("few columns", (2048, 512), (512, 32), BFLOAT16, DRAM, {}),
        ("from L1", (128, 96), (96, 128), FLOAT32, L1, {}),
        ("1024 rows and columns transposed", (1024, 1024), (1024, 1024), BFLOAT16, DRAM, {"transpose_a": True}),
        ("128 rows and columns transposed", (128, 128), (128, 128), BFLOAT16, L1, {"transpose_a": True}),
        ("bias and relu by themselves", (64, 96), (96, 64), BFLOAT16, L1, {"activation": ("relu", ())}),
        ("bias and sigmoid by themselves", (64, 96), (96, 64), BFLOAT16, L1, {"activation": ("sigmoid", ())}),
    )
    for name, first, second, data_format, place, others in cases:
        shapes = {"input": first, "weight": second} | ({"bias": (1, second[1])} if "activation" in others else {})
        operands = {operand: TensorSpec(shape, data_format, TILES, place) for operand, shape in shapes.items()}
        call = MatmulArguments(
            first=operands["input"],
            second=operands["weight"],
            bias=operands.get("bias"),
            out_format=None,
            memory_config=place,
            **others,
        )
        plan = partial(lambda call, spec: plan_matmul(call, spec, free_l1_bytes=spec.l1.usable_bytes), call)
        yield Sample(f"matmul, {name}", plan, operands)


def _deconvolution(side: int, kernel: int, data_format: DataFormat = FLOAT32) -> Deconvolution:
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
    small, large = _deconvolution(16, 3), _deconvolution(64, 3)
    for lowering in arguments.Lowering:
        forward = partial(plan_forward, small, bias=False, lowering=lowering)
        yield Sample(f"ConvTranspose, {lowering.value}", forward, {})
    empty = partial(plan_forward, _deconvolution(8, 1, BFLOAT16), bias=True, lowering=arguments.Lowering.PHASE)
    yield Sample("ConvTranspose, empty phases", empty, {})
    yield Sample("gradient of the data", partial(plan_backward_data, small), {})
    yield Sample("gradient of the weights", partial(plan_backward_weights, small), {})
    yield Sample("gradient of the weights, in bands", partial(plan_backward_weights, large), {})


def _tensor(
    layout: Layout,
    *shape: int,
    data_format: DataFormat = BFLOAT16,
    shards: tuple[TensorMemoryLayout, tuple[int, int]] | None = None,
) -> TensorSpec:
    """A tensor in DRAM, or in shards on some cores."""
    place = DRAM
    if shards is not None:
        place = MemoryConfig(shards[0], BufferType.L1, ShardSpec(first_cores(CORES, 2, 2), shards[1]))
    return TensorSpec(shape, data_format, layout, place)


def _matrix(
    layout: Layout, place: MemoryConfig = DRAM, *, width: int = CHANNELS, data_format: DataFormat = BFLOAT16
) -> TensorSpec:
    return TensorSpec((1, 1, SIDE * SIDE, width), data_format, layout, place)


def _sharded(layout: Layout, *, rows: int = SIDE * SIDE, width: int = CHANNELS, cores: int = CORES) -> TensorSpec:
    """A matrix whose rows are sharded over some cores."""
    high = round_up(div_up(rows, cores), TILE)
    place = MemoryConfig(HEIGHT, BufferType.L1, ShardSpec(first_cores(cores, 2, 2), (high, width)))
    return TensorSpec((1, 1, rows, width), BFLOAT16, layout, place, (1, 1, high * cores, width))


def _image(layout: Layout, *, down: int = SIDE, across: int = SIDE, channels: int = CHANNELS) -> TensorSpec:
    return _tensor(layout, 1, down, across, channels)


def _movements() -> Iterator[Sample]:
    """Data movement programs, each a plan of one operation from tensor "x" to tensor "y"."""
    for conversion, source, target in (
        (Conversion.INTERLEAVED_TO_SHARDED, _matrix(TILES), _sharded(TILES)),
        (Conversion.INTERLEAVED_TO_SHARDED, _matrix(ROWS), _sharded(ROWS)),
        (Conversion.INTERLEAVED_TO_SHARDED, _matrix(ROWS, width=24), _sharded(ROWS, width=24)),
        (Conversion.INTERLEAVED_TO_SHARDED, _matrix(ROWS, L1), _sharded(ROWS)),
        (Conversion.SHARDED_TO_INTERLEAVED, _sharded(TILES), _matrix(TILES)),
        (Conversion.SHARDED_TO_INTERLEAVED, _sharded(ROWS), _matrix(ROWS)),
        (Conversion.RESHARD, _sharded(TILES), _sharded(TILES, cores=2)),
        (Conversion.MOVE, _sharded(ROWS), _sharded(ROWS)),
        (Conversion.MOVE, _matrix(TILES), _matrix(TILES)),
        (Conversion.COPY, _matrix(ROWS, L1), _matrix(ROWS, L1)),
        (Conversion.PAD, _matrix(ROWS), _matrix(ROWS)),
        (Conversion.TILIZE, _matrix(ROWS), _matrix(TILES)),
        (Conversion.TILIZE, _sharded(ROWS), _sharded(TILES)),
        (Conversion.TILIZE_WITH_VAL_PADDING, _matrix(ROWS), _matrix(TILES)),
        (Conversion.UNTILIZE, _matrix(TILES), _matrix(ROWS)),
        (Conversion.UNTILIZE, _matrix(TILES, L1, width=512), _matrix(ROWS, L1, width=512)),
        (Conversion.UNTILIZE_WITH_UNPADDING, _matrix(TILES), _matrix(ROWS)),
        (Conversion.UNTILIZE_WITH_UNPADDING, _sharded(TILES), _matrix(ROWS)),
    ):
        yield _movement(conversion.value, CopyTensor(conversion), source, target)
    for name, data_format in (("", BFLOAT8_B), (" to float32", FLOAT32), (" to uint32", UINT32)):
        target = _matrix(TILES, data_format=data_format)
        yield _movement(
            f"Typecast{name}", CopyTensor(Conversion.TYPECAST, (BFLOAT16, data_format)), _matrix(TILES), target
        )
    rows_of_zeros = CopyTensor(Conversion.TILIZE_WITH_VAL_PADDING)  # below every row of the image
    yield _movement("TilizeWithValPadding of an image", rows_of_zeros, _image(ROWS), _image(TILES))
    uneven = _tensor(ROWS, 1, 1, SIDE * SIDE * CHANNELS // 80, 80)
    yield _movement("ReshapeView to other sticks", Reshape(uneven.shape), _matrix(ROWS), uneven)
    yield _movement("Reshape", ReshapeOnDevice(uneven.shape), _matrix(ROWS), uneven)
    pad = PadWith(shape=(1, SIDE, SIDE, CHANNELS), padding=around_image((1, 1, 1, 1)))
    yield _movement("Pad of an image", pad, _image(ROWS), _image(ROWS, down=SIDE + 2, across=SIDE + 2))
    yield _movement("FillPad", FillPad(), _matrix(TILES), _matrix(TILES))
    formats = BFLOAT16, BFLOAT16
    slice_in, whole = _sharded(TILES), _matrix(TILES)
    to_shards = SliceToShards(0, whole.padded_shape, formats, slice_in.shape)
    yield _movement("InterleavedToShardedPartial", to_shards, whole, slice_in)
    from_shards = SliceFromShards(0, whole.padded_shape, formats, slice_in.padded_shape)
    yield _movement("ShardedToInterleavedPartial", from_shards, slice_in, whole)
    yield _movement("Roll", RollShards(shape=slice_in.shape, shift=1, axis=2), slice_in, slice_in)
    for rows_of, cache_op in (("a user", FillCache(0, 0)), ("all users", UpdateCache(0, 0))):
        yield _movement(f"UpdateKVCache of {rows_of}", cache_op, whole, whole)
    yield _movement("PagedFillCache", PagedFillCache(user=0), whole, whole)
    yield _movement("PagedUpdateCache", PagedUpdateCache(rows=(0,), has_table=False, shared=False), slice_in, whole)
    for layout in (ROWS, TILES):
        image, reshaped = _image(layout), _image(layout, across=SIDE // 2, channels=2 * CHANNELS)
        yield _movement("ReshapeView", Reshape(reshaped.shape), image, reshaped)
        window = Window(shape=(1, SIDE, SIDE, CHANNELS), begins=(0, 0, 3, 0), ends=(1, SIDE // 2, 35, CHANNELS))
        yield _movement("PaddedSlice", PaddedSlice(window), image, _sharded(ROWS, rows=SIDE // 2 * 32))
        yield _movement("SliceWrite", SliceWrite(window, 32), _sharded(layout, rows=SIDE // 2 * 32), image)


def _movement(name: str, op: DeviceOp, source: TensorSpec, target: TensorSpec) -> Sample:
    """A plan of one operation, the same on every device."""
    places = []
    for tensor in (source, target):
        config = tensor.memory_config
        where = "shards" if config.is_sharded() else config.buffer_type.name
        places.append(f"{'tiles' if tensor.layout is TILES else 'rows'} in {where}")
    step = Operation(name=f"{name}DeviceOperation", inputs=("x", "y"), op=op)
    plan = Plan(steps=(step,), tensors={"x": source, "y": target})
    return Sample(f"{name} of {source.shape[-1]} columns, {' to '.join(places)}", lambda spec: plan, plan.tensors)


def _surroundings() -> Iterator[Sample]:
    tiles, rows = _tensor(TILES, 1, 1, 256, 64), _tensor(ROWS, 1, 16, 16, 32)
    exact = _tensor(ROWS, 1, 1, 256, 64).changed(data_format=FLOAT32)
    pooled, ragged, sticks = _tensor(ROWS, 1, 1, 256, 32), _tensor(TILES, 1, 1, 256, 40), _tensor(ROWS, 1, 1, 256, 64)
    wide = _tensor(ROWS, 1, 1, 16, 256, shards=(WIDTH, (16, 64)))
    high = _tensor(TILES, 1, 1, 256, 32, shards=(HEIGHT, (64, 32)))
    pool = PoolArguments(
        source=pooled,
        batch=1,
        image=(16, 16),
        channels=32,
        kernel=(2, 2),
        stride=(2, 2),
        padding=(1, 1, 1, 1),
        dilation=(1, 1),
    )
    points, deep, kernel = _tensor(ROWS, 1, 8, 8, 2), _tensor(ROWS, 1, 2, 8, 8, 32), _tensor(TILES, 32, 32)
    form = tiles.data_format
    in_shards = _tensor(TILES, 1, 1, 256, 64, shards=(HEIGHT, (64, 64)))
    both = Binary(operation="add", left_format=form, right_format=form, data_format=form)
    none, one = (0, 0), (1, 1)  # the padding of an axis
    for name, plan, tensors in (
        ("max_pool2d", partial(plan_pool2d, pool), {"input": pooled}),
        (
            "add",
            partial(plan_binary, BinaryArguments(op=both, left=tiles, right=tiles)),
            {"input": tiles, "input_b": tiles},
        ),
        (
            "add, one in shards",
            partial(plan_binary, BinaryArguments(op=both, left=in_shards, right=tiles)),
            {"input": in_shards, "input_b": tiles},
        ),
        ("concat", partial(plan_concat, (rows, rows), 3), {"input_0": rows, "input_1": rows}),
        ("permute", partial(plan_permute, rows, (0, 3, 1, 2)), {"input": rows}),
        ("permute of whole rows", partial(plan_permute, rows, (0, 2, 1, 3)), {"input": rows}),
        ("pad", partial(plan_pad, rows, (none, one, one, none), 0.0), {"input": rows}),
        ("pad of tiles", partial(plan_pad, tiles, (none, none, none, (0, 32)), 0.0), {"input": tiles}),
        ("pad tiles", partial(plan_pad, ragged, (none, none, none, (0, 24)), 0.0), {"input": ragged}),
        ("slice", partial(plan_slice, rows, (0, 0, 0, 0), (1, 8, 16, 32), None), {"input": rows}),
        ("fold", partial(plan_fold, rows, (2, 2), (none, none, none)), {"input": rows}),
        ("upsample", partial(plan_upsample, rows, (2, 2)), {"input": rows}),
        ("rotate", partial(plan_rotate, RotateArguments(images=rows, angle=30.0)), {"input": rows}),
        (
            "bilinear upsample",
            partial(plan_bilinear, BilinearArguments(source=rows, scale=(2.0, 2.0))),
            {"input": rows},
        ),
        (
            "conv3d",
            partial(
                plan_conv3d, Conv3dArguments(volumes=deep, weights=kernel, bias=None, out_channels=32, kernel=(1, 1, 1))
            ),
            {"input": deep, "weight": kernel},
        ),
        (
            "grid_sample",
            partial(plan_grid_sample, GridSampleArguments(images=rows, grid=points)),
            {"input": rows, "grid": points},
        ),
        ("convert_to_hwc", partial(plan_convert_to_hwc, wide), {"input": wide}),
        ("convert_to_chw", partial(plan_convert_to_chw, high), {"input": high}),
        ("tilize", partial(plan_tilize, sticks), {"input": sticks}),
        ("tilize of float32", partial(plan_tilize, exact), {"input": exact}),
    ):
        yield Sample(name, plan, tensors)


def _statistics() -> Iterator[Sample]:
    tiles = _tensor(TILES, 1, 1, 256, 64)
    weight = _tensor(TILES, 1, 1, 1, 64)
    images, mask = _tensor(ROWS, 1, 1, 256, 64, shards=(HEIGHT, (64, 64))), _tensor(TILES, 1, 2, 32, 32)
    image, vector = _tensor(TILES, 1, 8, 32, 32), _tensor(TILES, 1, 8, 1, 1)
    batch = BatchNormArguments(source=image, mean=vector, variance=vector)
    running = RunningArguments(mean=vector, variance=vector, running_mean=vector)
    grouped = GroupNormArguments(source=images, groups=2, mask=mask)
    norm = NormArguments(rms=False, source=tiles, weight=weight)
    for name, plan, tensors in (
        ("batch_norm", partial(plan_batch_norm, batch), {"input": image, "mean": vector, "variance": vector}),
        ("sort", partial(plan_sort, tiles, SortArguments()), {"input": tiles}),
        ("prod", partial(plan_product, tiles, ProductArguments(dim=-1)), {"input": tiles}),
        ("std", partial(plan_deviation, tiles, DeviationArguments(name="std", axes=(3,))), {"input": tiles}),
        (
            "rotary_embedding",
            partial(plan_rotary_embedding, RotaryArguments(source=tiles, cosines=tiles, sines=tiles)),
            {"input": tiles, "cos": tiles, "sin": tiles},
        ),
        (
            "running_statistics",
            partial(plan_running_statistics, running),
            {"mean": vector, "variance": vector, "running_mean": vector},
        ),
        ("group_norm", partial(plan_group_norm, grouped, l1_bytes=1 << 20), {"input": images, "mask": mask}),
        ("layer_norm", partial(plan_norm, norm, l1_bytes=1 << 20), {"input": tiles, "weight": weight}),
        ("rand", partial(plan_rand, tiles, low=0.0, high=1.0, seed=0), {}),
    ):
        yield Sample(name, plan, tensors)


def _transformers() -> Iterator[Sample]:
    """Operations of transformers and network heads: attention, reductions, argmax and topk, repeats."""
    heads, rows = _tensor(TILES, 1, 2, 64, 64), _tensor(ROWS, 1, 16, 16, 32)
    tiles, wide, table = _tensor(TILES, 1, 1, 64, 64), _tensor(TILES, 1, 1, 64, 384), _tensor(ROWS, 64, 32)
    indices, integers = replace(_tensor(ROWS, 1, 32), data_format=UINT32), replace(rows, data_format=INT32)
    places, line = replace(tiles, data_format=UINT32), _tensor(TILES, 1, 1, 1, 384)
    token, users = _tensor(TILES, 1, 1, 8, 384), _tensor(TILES, 1, 4, 16, 64, shards=(HEIGHT, (32, 64)))
    matrix, in_rows = _tensor(TILES, 1, 1, 32, 32), MemoryConfig(HEIGHT, BufferType.L1)
    queries, pairs = (_tensor(TILES, 2, 1, 64, wide, shards=(BLOCK, (64, wide // 2))) for wide in (64, 128))
    separate = SeparateArguments(source=queries, other=pairs, heads=2, kv_heads=2, place=in_rows)
    chosen = Ternary(operation="where", formats=(BFLOAT16,) * 3, data_format=BFLOAT16)
    weighed = tiles, _tensor(TILES, 1, 1, 1, 64), _tensor(TILES, 1, 1, 1, 32)
    share = _tensor(ROWS, 2)
    drawn = SamplingArguments(
        scores=_tensor(TILES, 1, 1, 2, 64),
        indices=_tensor(ROWS, 1, 1, 2, 64, data_format=UINT32),
        counts=_tensor(ROWS, 2, data_format=UINT32),
        shares=share,
        temperatures=share,
    )
    from_users = {
        "indices": drawn.indices, "counts": drawn.counts, "shares": drawn.shares, "temperatures": drawn.temperatures,
    }  # fmt: skip
    experts = MoeArguments(scores=weighed[0], experts=weighed[1], picked=weighed[2], count=32)
    summed = ReduceArguments(name="sum", reduction=Reduction.SUM, axes=(3,))
    for name, plan, tensors in (
        ("softmax", partial(plan_softmax, SoftmaxArguments(source=tiles, stable=False)), {"input": tiles}),
        (
            "scaled_dot_product_attention",
            partial(plan_attention, AttentionArguments(query=heads, key=heads, value=heads, causal=False)),
            {"query": heads, "key": heads, "value": heads},
        ),
        (
            "scaled_dot_product_attention_decode",
            partial(plan_decode, DecodeArguments(query=tiles, key=heads, value=heads, causal=False, grid=(4, 4))),
            {"query": tiles, "key": heads, "value": heads},
        ),
        (
            "split heads",
            partial(heads_planner.plan_split, SplitArguments(source=wide, heads=2, kv_heads=2)),
            {"input": wide},
        ),
        ("concatenate heads", partial(plan_join, heads), {"input": heads}),
        (
            "split separate heads",
            partial(plan_separate_split, separate),
            {"input": queries, "kv": pairs},
        ),
        (
            "split heads of a token",
            partial(plan_split_decode, SplitDecodeArguments(source=token, heads=4, kv_heads=1)),
            {"input": token},
        ),
        (
            "concatenate heads of a token",
            partial(plan_join_decode, JoinDecodeArguments(source=users, heads=16)),
            {"input": users},
        ),
        (
            "rotary_embedding_llama",
            partial(plan_rotary_llama, RotaryLlamaArguments(source=heads, cosines=tiles, sines=tiles, matrix=matrix)),
            {"input": heads, "cos": tiles, "sin": tiles, "trans_mat": matrix},
        ),
        ("rotate_half", partial(plan_rotate_half, heads), {"input": heads}),
        (
            "embedding",
            partial(plan_embedding, EmbeddingArguments(indices=indices, table=table)),
            {"input": indices, "weight": table},
        ),
        (
            "gather",
            partial(plan_gather, GatherArguments(source=tiles, indices=places, dim=3), l1_bytes=1 << 20),
            {"input": tiles, "index": places},
        ),
        ("sum", partial(plan_reduction, tiles, summed), {"input": tiles}),
        (
            "cumsum",
            partial(plan_accumulation, heads, AccumulateArguments(name="cumsum", axis=1, multiplies=False)),
            {"input": heads},
        ),
        ("fast_reduce_nc", partial(plan_added_images, heads, ImagesArguments(axes=(1,), place=DRAM)), {"input": heads}),
        (
            "intimg",
            partial(plan_integral_image, _tensor(TILES, 1, 2, 64, 256)),
            {"input": _tensor(TILES, 1, 2, 64, 256)},
        ),
        ("argmax", partial(plan_argmax, rows, ArgMaxArguments(dim=3, keeps=True)), {"input": rows}),
        ("topk", partial(plan_topk, tiles, TopKArguments(count=32)), {"input": tiles}),
        ("moe", partial(plan_moe, experts), dict(zip(("input", "experts", "picked"), weighed, strict=True))),
        ("sampling", partial(plan_sampling, drawn), {"input": drawn.scores, **from_users}),
        ("broadcast_to", partial(plan_broadcast_to, tiles, (2, 1, 64, 64)), {"input": tiles}),
        ("nonzero", partial(plan_nonzero, rows), {"input": rows}),
        ("plus_one", partial(plan_plus_one, integers), {"input": integers}),
        (
            "bcast",
            partial(plan_bcast, BcastArguments(operation="add", axes="H", left=wide, right=line)),
            {"input": wide, "input_b": line},
        ),
        (
            "dropout",
            partial(plan_dropout, tiles, DropoutArguments(probability=0.5, scale=2.0, seed=1)),
            {"input": tiles},
        ),
        ("integer power", partial(plan_integer_power, places, 3.0), {"input": places}),
        ("repeat", partial(plan_repeat, rows, (1, 2, 1, 1)), {"input": rows}),
        ("split", partial(plan_split, wide, 2), {"input": wide}),
        (
            "where",
            partial(plan_ternary, TernaryArguments(op=chosen, tensors=(tiles, tiles, tiles))),
            {"input_0": tiles, "input_1": tiles, "input_2": tiles},
        ),
    ):
        yield Sample(name, plan, tensors)
