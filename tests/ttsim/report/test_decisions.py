"""Where a cliff came from: what the planner chose for the caller, with the figures that decided."""

import numpy as np
import pytest

import ttsim

FREE = 1_360_544  # of a core's L1 on an n150 with 32 KiB of L1_SMALL


def report(*, height=16, width=16, channels=(32, 32), kernel=2, stride=2, **options):
    with ttsim.open_device(spec="wormhole_n150", l1_small_size=32768, values="off") as device:
        image = np.broadcast_to(np.float32(0), (1, 1, height * width, channels[0]))
        x = ttsim.Tensor(image, ttsim.bfloat16).to(device)
        w = ttsim.Tensor(np.broadcast_to(np.float32(0), (*channels, kernel, kernel)), ttsim.bfloat16)
        return ttsim.estimate_cycles(
            ttsim.conv_transpose2d, device=device, input_tensor=x, weight_tensor=w, in_channels=channels[0],
            out_channels=channels[1], batch_size=1, input_height=height, input_width=width,
            kernel_size=(kernel, kernel), stride=(stride, stride), **options,
        )  # fmt: skip


def decided(made):
    return {decision.name: decision for decision in made.calls[0].decisions}


def test_another_scheme_from_one_row_to_the_next():
    """8 rows of input take twice the cycles of 9, since the library looks at L1 alone."""
    before, after = report(height=8), report(height=9)
    assert before.cycles > 1.5 * after.cycles
    schemes = [decided(one)["shard_layout"] for one in (before, after)]
    assert [scheme.value for scheme in schemes] == ["BLOCK_SHARDED", "HEIGHT_SHARDED"]
    assert dict(schemes[0].limits) == {
        "HEIGHT_SHARDED_bytes": 18_624,
        "BLOCK_SHARDED_bytes": 15_984,
        "WIDTH_SHARDED_bytes": 355_456,
    }
    assert "- Chosen for the call: shard_layout is the library's choice, BLOCK_SHARDED" in before.explain()
    assert "WIDTH_SHARDED 355,456 B on one core" in before.explain()


def test_the_limit_that_made_slices():
    result = decided(report(height=128, width=128, channels=(256, 128), kernel=3))["num_slices"]
    assert result.value == 4
    limits = dict(result.limits)
    assert limits["needed_l1_bytes"] > limits["free_l1_bytes"] == FREE
    assert result.text == (
        "4 slices of rows, the least number that fits by the library's estimate: 3 slices of rows would take "
        f"{limits['needed_l1_bytes']:,} B of a core's L1, and 1,360,544 B are free"
    )


def test_slices_that_were_asked_for():
    config = ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceWidth, num_slices=2)
    result = decided(report(height=64, width=64, dram_slice_config=config))["num_slices"]
    assert (result.value, result.text, result.limits) == (2, "2 slices of columns, as dram_slice_config says", ())


def test_nothing_is_chosen_for_who_chooses():
    config = ttsim.Conv2dConfig(shard_layout=ttsim.TensorMemoryLayout.HEIGHT_SHARDED)
    full = ttsim.Conv2dL1FullSliceConfig
    assert decided(report(conv_config=config, dram_slice_config=full)) == {}


@pytest.mark.parametrize(("kernel", "path"), [(1, "matmul"), (2, None)])
def test_a_1x1_kernel_is_a_matmul(kernel, path):
    result = decided(report(kernel=kernel, stride=1)).get("path")
    assert (result.value if result else None) == path
