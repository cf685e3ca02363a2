"""The blocks that the library chooses for products whose operands lie in DRAM."""

import pytest

from device.numbers.formats import BFLOAT16
from device.spec.parts import GridSpec
from device.spec.releases import release_of
from ops.programs.matmul.choice import interleaved_config
from ops.programs.matmul.op import MatmulProblem

USABLE_BYTES = 1_400_000


@pytest.mark.parametrize(
    ("tiles", "release", "block"),
    [
        # A core's 16 x 16 tiles take 2 * 32 tiles of operands for each of a depth, and 256 results twice: 640 tiles of
        # 2,048 bytes with a depth of 2. With a depth of 16, 8 x 8 of them take 2 * 16 * 16 + 2 * 64 = 640 as well.
        ((128, 128, 128), "0.81.1", (16, 16, 2)),
        ((128, 128, 128), "2025", (8, 8, 16)),
        # 4 x 16 with a depth of 8: 2 * 20 * 8 + 2 * 64 = 448; 4 x 8 with a depth of 16: 2 * 12 * 16 + 2 * 32 = 448
        ((32, 128, 128), "0.81.1", (4, 16, 8)),
        ((32, 128, 128), "2025", (4, 8, 16)),
        # All of 4 x 12 with a depth of 16: 2 * 16 * 16 + 2 * 48 = 608
        ((32, 128, 96), "0.81.1", (4, 12, 16)),
        ((32, 128, 96), "2025", (4, 12, 16)),
    ],
)
def test_a_release_prefers_large_parts_or_deep_blocks_of_what_does_not_fit(tiles, release, block):
    rows, depth, columns = tiles
    problem = MatmulProblem(
        m_tiles=rows, k_tiles=depth, n_tiles=columns, in_format=BFLOAT16, weight_format=BFLOAT16, out_format=BFLOAT16,
        bias=False, fp32_dest=False, packer_l1_acc=True,
    )  # fmt: skip
    config = interleaved_config(
        problem, GridSpec(cols=8, rows=8), in_dram=True, l1_bytes=USABLE_BYTES, release=release_of(release)
    )
    assert (config.out_block_h, config.out_block_w, config.in0_block_w) == block
