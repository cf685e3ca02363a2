"""One slice of a convolution that is cut up in DRAM: its window comes into L1 as rows, and its result goes back.

Rules: tt-metal 0.81.1 (padded_slice, slice_write, untilize), compared with recorded runs.
"""

from device.memory.layouts import TensorSpec
from device.memory.memory_config import L1_MEMORY_CONFIG, Layout, MemoryConfig, TensorMemoryLayout
from device.memory.tiles import TILE
from device.numbers.formats import BFLOAT16
from device.numbers.integers import div_up, round_up
from device.plan import Free
from device.spec.device_spec import DeviceSpec
from ops.programs.movement.placement import to_interleaved
from ops.programs.movement.staged import Staged, computed, in_place, owning
from ops.programs.movement.work import PaddedSlice, Relayout, SliceWrite, Window

WIDE_ROW_BYTES = 800_000  # two rows of bfloat16 tiles beyond this are left to the older untilize program


def sliced_input(image: Staged, window: Window, config: MemoryConfig, device: DeviceSpec, name: str) -> Staged:
    """A window of an image tensor in DRAM as row-major shards in L1.

    Args:
        image: The input [N, H, W, C]; its own steps are not repeated.
        window: Which part; all images and all channels.
        config: Shards of the slice.
        device: The machine.
        name: Name of the slice.

    Returns: ``owned`` holds the slice, which is released after halo. Block floats arrive as bfloat16.
    """
    batch, rows, cols, channels = window.window_shape
    data_format = BFLOAT16 if image.spec.data_format.is_block else image.spec.data_format
    shape = (1, 1, batch * rows * cols, channels)
    padded = (1, 1, *_padded_slice(shape[2], channels, config))
    spec = TensorSpec(shape, data_format, Layout.ROW_MAJOR, config, padded)
    return owning(computed("PaddedSlice", image, name, spec, device, PaddedSlice(window)), name)


def written_slice(result: Staged, target: Staged, write: SliceWrite, device: DeviceSpec, name: str) -> Staged:
    """The tiles of one slice written into the output image in DRAM, as rows if the output is row-major; then released.

    Args:
        result: Sharded output of the slice's convolution; its own steps are not repeated.
        target: The output [N, OH, OW, O].
        write: Which part of the output the slice is.
        device: The machine.
        name: Intermediates start with it.
    """
    chain = current = Staged(name=result.name, spec=result.spec)
    if target.spec.layout is Layout.ROW_MAJOR:
        if _is_width_sharded(result.spec.memory_config):
            current = to_interleaved(result, L1_MEMORY_CONFIG, device, f"{name}.interleaved")
            chain = chain.followed_by(current).then(Free(result.name))
        rows = untilized(current, device, f"{name}.rows")
        chain = chain.followed_by(rows).then(Free(current.name))
        current = rows
    written = in_place("SliceWrite", current, target, write)
    return chain.followed_by(written).then(Free(current.name))


def untilized(source: Staged, device: DeviceSpec, name: str) -> Staged:
    """Tiles as rows; padding goes, except to the width of the shards."""
    spec = source.spec
    made = TensorSpec(spec.shape, spec.data_format, Layout.ROW_MAJOR, spec.memory_config)
    return computed(untilize_operation(spec), source, name, made, device, Relayout())


def untilize_operation(spec: TensorSpec) -> str:
    """Which of the real library's programs untilizes a tensor."""
    if spec.memory_config.is_sharded():
        return "Untilize"
    wide = 2 * div_up(spec.shape[-1], TILE) * BFLOAT16.tile_bytes > WIDE_ROW_BYTES
    if spec.data_format == BFLOAT16 and not wide:
        return "UntilizeCodegen"
    return "Untilize" if spec.shape == spec.padded_shape else "UntilizeWithUnpadding"


def _is_width_sharded(config: MemoryConfig) -> bool:
    return config.memory_layout is TensorMemoryLayout.WIDTH_SHARDED


def _padded_slice(rows: int, channels: int, config: MemoryConfig) -> tuple[int, int]:
    """Rows and columns of a slice: whole shards across; as many rows as there are, unless every core holds all rows."""
    if config.shard_spec is None:
        raise AssertionError("a slice needs shards")
    shard_rows, shard_cols = config.shard_spec.shape
    return shard_rows if _is_width_sharded(config) else rows, round_up(channels, shard_cols)
