"""The buffers of programs that swap two axes of a tensor of rank 4.

Source: tt-metal 0.81.1 (data_movement/transpose), compared with recorded plans.
"""

from math import prod

from device.cores import first_cores
from device.memory.layouts import TensorSpec, aligned_page_bytes
from device.memory.memory_config import TILE, Layout
from device.numbers.block_floats import div_up
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.builder import PlanTensor
from ops.programs.buffer_shapes import BUFFERING, buffer, page_cores, row_bytes, volume_tiles
from ops.programs.rearrange.turned_shards import LAST_TWO, MIDDLE_TWO, Shape, is_native

FACE_ELEMENTS = 256  # of the number that fills ragged tiles
SPLIT_TILES = 8  # tiles down an image in shards beyond which its result is put together on the way


def swapped_shape(tensor: TensorSpec, swapped: tuple[int, int]) -> Shape:
    """The padded shape of a tensor of rank 4 whose two axes are swapped: tiles are padded anew."""
    shape = list(tensor.shape if tensor.layout is Layout.TILE else tensor.padded_shape)
    shape[swapped[0]], shape[swapped[1]] = shape[swapped[1]], shape[swapped[0]]
    if tensor.layout is Layout.ROW_MAJOR:
        return tuple(shape)
    return TensorSpec(shape, tensor.data_format, tensor.layout).padded_shape


def transpose_buffers(
    source: PlanTensor, made: PlanTensor, swapped: tuple[int, int], spec: DeviceSpec
) -> tuple[CircularBuffer, ...]:
    """Buffers of the program, in order of allocation."""
    given, rows = source.spec, source.spec.layout is Layout.ROW_MAJOR
    after = swapped_shape(given, swapped)
    if swapped == LAST_TWO:
        if rows:
            return (
                _row_image_shards(source, made) if _images_stay(given, made.spec, after) else _row_images(given, spec)
            )
        return _tile_shards(source, made, spec) if _turns_shards(given, made.spec, after) else _tiles(given, spec)
    if swapped == MIDDLE_TWO and rows:
        stays = _rows_stay(given, made.spec, after)
        return _row_shards(source, made) if stays else _gathered_rows(given, made.spec, spec)
    if swapped == MIDDLE_TWO:
        return _ragged_tiles(given, made.spec, spec)
    page = row_bytes(given) if rows else given.data_format.tile_bytes
    pages = given.matrix[0] if rows else volume_tiles(given)
    return (buffer("pages", BUFFERING * page, given.data_format, page_cores(pages, spec.grid)),)


def is_dataflow(source: TensorSpec, made: TensorSpec, swapped: tuple[int, int]) -> bool:
    """Whether the buffers are dataflow buffers: of all programs but those of rows in shards."""
    if source.layout is Layout.TILE:
        return True
    stay = {LAST_TWO: _images_stay, MIDDLE_TWO: _rows_stay}.get(swapped)
    return stay is None or not stay(source, made, swapped_shape(source, swapped))


def _rows_stay(source: TensorSpec, made: TensorSpec, after: Shape) -> bool:
    """Whether shards on both sides hold whole rows, and the program works on them where they lie."""
    given, held = source.memory_config.shard_spec, made.memory_config.shard_spec
    if given is None or held is None or not is_native(source, made.memory_config):
        return False
    return given.shape[1] == source.padded_shape[-1] and held.shape[1] == after[-1]


def _images_stay(source: TensorSpec, made: TensorSpec, after: Shape) -> bool:
    """Whether shards on both sides hold whole images."""
    given, held = source.memory_config.shard_spec, made.memory_config.shard_spec
    if given is None or held is None or not _rows_stay(source, made, after):
        return False
    return given.shape[0] % source.padded_shape[-2] == 0 and held.shape[0] % after[-2] == 0


def _turns_shards(source: TensorSpec, made: TensorSpec, after: Shape) -> bool:
    """Whether tiles are turned in their shards: whole images, or the rows of one that become columns."""
    given, held = source.memory_config.shard_spec, made.memory_config.shard_spec
    if given is None or held is None or not is_native(source, made.memory_config):
        return False
    alone = source.padded_shape[:2] == (1, 1) and given.shape[1] == source.padded_shape[-1]
    return _images_stay(source, made, after) or (alone and held.shape[0] == after[-2])


def _tiles(source: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    cores, size = page_cores(volume_tiles(source), spec.grid), BUFFERING * source.data_format.tile_bytes
    return tuple(buffer(name, size, source.data_format, cores) for name in ("tiles", "turned"))


def _tile_shards(source: PlanTensor, made: PlanTensor, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Views of as many tiles as a shard of the source has, on all cores."""
    data_format = source.spec.data_format
    cores = first_cores(spec.grid.cores, spec.grid.cols, spec.grid.rows)
    size = prod(source.spec.shards.shape) // TILE**2 * data_format.tile_bytes
    return tuple(buffer(one.name, size, data_format, cores, one.name) for one in (source, made))


def _row_images(source: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Images of rows as tiles: rows of tiles in and out, twice, and an image."""
    high, wide = (div_up(side, TILE) for side in source.shape[-2:])
    cores, page = page_cores(prod(source.shape[:2]), spec.grid), source.data_format.tile_bytes
    tiles = {"rows": BUFFERING * wide, "turned": BUFFERING * high, "image": high * wide}
    return tuple(buffer(name, count * page, source.data_format, cores) for name, count in tiles.items())


def _row_image_shards(source: PlanTensor, made: PlanTensor) -> tuple[CircularBuffer, ...]:
    """Views of both shards, a row of tiles twice and an image; of high images a column, and another twice."""
    given = source.spec
    high, wide = (div_up(side, TILE) for side in given.shape[-2:])
    tiles = {"rows": BUFFERING * wide, "image": high * wide}
    if high > SPLIT_TILES:
        tiles |= {"column": high, "turned": BUFFERING * high}
    views, page = _row_shards(source, made), given.data_format.tile_bytes
    return (*views, *(buffer(name, n * page, given.data_format, views[0].cores) for name, n in tiles.items()))


def _row_shards(source: PlanTensor, made: PlanTensor) -> tuple[CircularBuffer, ...]:
    """Views of as many sticks as a shard of the source has."""
    given, shards = source.spec, source.spec.shards
    size = shards.shape[0] * row_bytes(given, given.shape[-1])
    return tuple(buffer(one.name, size, given.data_format, shards.grid, one.name) for one in (source, made))


def _gathered_rows(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """All rows of a core, at multiples of the larger page of both sides."""
    rows = prod(source.shape[:-1])
    pages = [
        aligned_page_bytes(one.buffer(spec).page_bytes, one.memory_config.buffer_type, spec) for one in (source, made)
    ]
    stick = max(row_bytes(source, source.shape[-1]), *pages)
    return (buffer("rows", div_up(rows, spec.grid.cores) * stick, source.data_format, page_cores(rows, spec.grid)),)


def _ragged_tiles(source: TensorSpec, made: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Two tiles whose rows go elsewhere; and a face of a number where the last tiles end in padding."""
    last = volume_tiles(made) // (made.padded_shape[-2] // TILE)
    cores = page_cores(max(volume_tiles(source), last), spec.grid)
    tiles = buffer("tiles", BUFFERING * source.data_format.tile_bytes, source.data_format, cores)
    if source.shape[1] % TILE == 0:
        return (tiles,)
    return tiles, buffer("fill", FACE_ELEMENTS * (source.data_format.element_bytes or 0), source.data_format, cores)
