"""Programs that only move a tensor: from every place to every other, in tiles and in rows."""

from collections.abc import Iterator

from device.cores import first_cores
from device.memory.layouts import TensorSpec
from device.memory.memory_config import (
    DRAM_MEMORY_CONFIG,
    L1_MEMORY_CONFIG,
    BufferType,
    Layout,
    MemoryConfig,
    ShardSpec,
    TensorMemoryLayout,
)
from device.memory.tiles import TILE
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, UINT32, DataFormat
from device.numbers.integers import div_up, round_up
from device.plan import Operation, Plan, Work
from ops.programs.movement.work import (
    Conversion,
    FillPad,
    PaddedSlice,
    PadImage,
    Relayout,
    Reshape,
    SliceWrite,
    Typecast,
    Window,
)

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
        yield _plan(conversion.value, Relayout(conversion), source, target)
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
    rows_of_zeros = Relayout(Conversion.TILIZE_WITH_VAL_PADDING)  # below every row of the image
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


def _plan(name: str, work: Work, source: TensorSpec, target: TensorSpec) -> tuple[str, Plan]:
    step = Operation(name=f"{name}DeviceOperation", inputs=("x", "y"), work=work)
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
