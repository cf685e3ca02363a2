"""Pieces and input tiles of an output tile, by hand."""

import pytest

from ops.programs.movement.segments import tile_map


@pytest.mark.parametrize(
    ("source", "target", "segments", "fetched"),
    [
        ((1, 1, 64, 64), (1, 2, 32, 64), 64, 1),  # 32 rows in two faces, whole tiles
        ((1, 1, 10, 32), (1, 10, 1, 32), 2, 1),  # a row of its own
        ((1, 1, 10, 16), (1, 10, 1, 16), 1, 1),
        ((1, 1, 48, 32), (1, 2, 24, 32), 48, 1.5),  # the second image begins in the first tile and ends in the next
        ((1, 1, 19, 1280), (1, 19, 20, 64), 40, 20),  # each row of an output tile lies in another input tile
        ((1, 1, 1, 48), (1, 1, 2, 24), 5, 2),  # 16 and 8; 8 of the first tile, 8 and 8 of the second
    ],
)
def test_pieces_and_tiles(source, target, segments, fetched):
    found = tile_map(source, target)
    assert (found.segments, found.fetched) == (segments, fetched)


def test_large_tensors_are_sampled():
    found = tile_map((1, 1, 25281, 256), (1, 159, 159, 256))
    assert 60 < found.segments < 64
    assert 1.9 < found.fetched < 2.0
