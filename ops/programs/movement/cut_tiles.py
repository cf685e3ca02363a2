"""Which tiles a slice of an image touches, and how its sticks come out of them."""

from dataclasses import replace
from math import prod

from device.memory.memory_config import TILE
from device.numbers.block_floats import div_up, round_up
from ops.programs.movement.ends import Ends, shard_width
from ops.programs.movement.movement import Access, Movement, Pages


def cut_from_tiles(ends: Ends, columns: tuple[int, int] | None) -> Movement:
    """The sticks of a slice come out of the tiles that it touches, whose rows are waited for.

    A block of whole tiles is copied to its place in one piece for each row of tiles, others stick by stick; channels
    that no tile of the image has are filled stick by stick as well.
    """
    image_cols, cores = ends.source.shape[-2], ends.cores.num_cores()
    begin, end = (0, image_cols) if columns is None else columns
    across = div_up(shard_width(ends.target, ends.target, ends.source.matrix[1]), TILE)
    rows = _tile_rows_under(ends.written.core_pages, image_cols, begin, end)
    shared = _tile_rows_under(round_up(prod(ends.target.shape[:-1]), end - begin), image_cols, begin, end)
    parts = div_up(div_up(ends.target.matrix[1], TILE), across)
    touched = replace(
        ends.read,
        access=Access.WAIT,
        core_pages=rows * across,
        all_pages=min(shared * parts + cores, rows * cores) * across,
        in_flight=across,
    )
    return Movement(
        cores=ends.cores,
        reads=touched,
        writes=_copied_to_place(ends, rows),
        blocks=rows,
        untilized_rows=rows,
        width_tiles=across,
    )


def _copied_to_place(ends: Ends, rows: int) -> Pages:
    """Pieces that a core copies from its rows of tiles to its shard."""
    written, shards = ends.written, ends.target.memory_config.shard_spec
    if shards is None or shards.shape[1] % TILE == 0:
        piece = div_up(written.core_pages, rows) * written.page_bytes
        pieces = rows * ends.cores.num_cores()
        return replace(written, access=Access.LOCAL_STICKS, core_pages=rows, page_bytes=piece, all_pages=pieces)
    filled = div_up(ends.target.matrix[1], TILE) > div_up(ends.source.matrix[1], TILE)
    return replace(written, access=Access.LOCAL_STICKS, core_pages=written.core_pages * (1 + filled))


def _tile_rows_under(sticks: int, image_cols: int, begin: int, end: int) -> int:
    """Rows of tiles under sticks: each image row of a slice begins and ends within tiles of its own."""
    if (begin, end) == (0, image_cols) and image_cols % TILE == 0:
        return div_up(sticks, TILE)
    spanned = (end - 1) // TILE - begin // TILE + 1
    return div_up(sticks * spanned, end - begin)
