"""Layers whose images lie shifted, in one to three dimensions, and numbers for them."""

from tests.ops.programs.patch_matmul.padded_axes import strided, transposed

STRIDED = [
    (strided(33, 4, 2, 1), strided(36, 3, 2, 0, 2)),
    (strided(9, 2, 1, 0), strided(16, 3, 2, 1), strided(17, 2, 1, 0)),
    (strided(300, 5, 2, 2),),
    (strided(24, 3, 1, 1), strided(24, 3, 1, 1)),
]
AXES = [
    (transposed(17, 4, 2, 1), transposed(20, 4, 2, 1)),
    (transposed(17, 3, 2, 1), transposed(20, 3, 1, 2, 2)),
    (transposed(6, 4, 2, 0), transposed(17, 2, 1, 0), strided(9, 3, 1, 1)),
    (transposed(16, 3, 3, 0, 3), transposed(16, 4, 2, 1)),  # two outputs of three meet nothing on the first axis
    (transposed(300, 3, 2, 0),),
    *STRIDED,
]
GROUPS = [(1, 16, 3), (1, 3, 20), (6, 8, 8), (4, 5, 3)]  # groups, and channels of both sides
UP, DOWN = (transposed(32, 4, 2, 1),) * 2, (strided(64, 4, 2, 1),) * 2  # 32 x 32 to 64 x 64, and back


def small_and_whole(rng, *shape):
    """Sums of products of these are exact in float32, in any order."""
    return rng.integers(-4, 5, shape).astype("float32")


def drawn(rng, *shape):
    return rng.standard_normal(shape, "float32")
