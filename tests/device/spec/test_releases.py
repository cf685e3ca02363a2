"""Releases of the real library: their rules as data, in names of devices, and in the plans that follow from them."""

import numpy as np
import pytest

import ttsim
from device.errors import SpecError
from device.spec.device_spec import load_spec
from device.spec.releases import DEFAULT_RELEASE, release_names, release_of
from ops.programs.kernel_costs import ComputeCosts, TransferCosts

N150 = load_spec("wormhole_n150")


def test_a_release_gives_what_differs_from_the_one_that_it_extends():
    assert release_names() == ("0.81.1", "a8c5af0f", "2025", "2025-02", "2025-12")
    releases = {name: release_of(name) for name in release_names()}
    rules = {
        name: (of.whole_partials, of.bounces_all_sticks, of.one_axis, of.deepest_blocks, of.halo_by_task)
        for name, of in releases.items()
    }
    assert rules == {
        "0.81.1": (False, False, False, False, False),
        "a8c5af0f": (True, False, False, False, False),
        "2025": (True, True, True, True, False),
        "2025-02": (True, True, True, True, True),
        "2025-12": (True, True, True, True, False),
    }
    blackhole = load_spec("blackhole_p150")
    tilize = [blackhole.replace(release=name).costs_of(ComputeCosts).tilize_tile_cycles for name in release_names()]
    assert tilize == [blackhole.costs_of(ComputeCosts).tilize_tile_cycles] * 2 + [37.0] * 3
    assert N150.replace(release="2025").costs_of(ComputeCosts) == N150.costs_of(ComputeCosts)
    issues = [N150.replace(release=name).costs_of(TransferCosts).stateful_issue_cycles for name in release_names()]
    assert issues == [*[N150.costs_of(TransferCosts).stateful_issue_cycles] * 3, 24.0, issues[0]]
    with pytest.raises(
        SpecError, match=r"^release must be one of 0.81.1, a8c5af0f, 2025, 2025-02, 2025-12, not 'a8c', did you mean"
    ):
        release_of("a8c")


def test_the_name_of_a_device_states_another_release_however_it_was_given(tmp_path):
    (tmp_path / "card.toml").write_text('extends = "wormhole_n150"\nrelease = "a8c5af0f"\n')
    named = "wormhole_n150, release=a8c5af0f"
    for spec in (N150.replace(release="a8c5af0f"), load_spec(tmp_path / "card.toml"), ttsim.load_spec(named)):
        assert spec.name == named
        assert spec.to_dict()["release"] == "a8c5af0f"
        assert ttsim.DeviceSpec.from_dict(spec.to_dict()) == spec
        assert spec.replace(release=DEFAULT_RELEASE) == N150
    assert ttsim.load_spec(f"{named}, dram.banks=6").name == "wormhole_n150, dram.banks=6, release=a8c5af0f"
    assert ttsim.changed(N150, [f"release={DEFAULT_RELEASE}"]).name == "wormhole_n150"
    assert N150.replace(name="mine", release="2025").name == "mine, release=2025"
    complete = N150.to_dict()
    del complete["release"]  # as in a file from before there were releases
    assert ttsim.DeviceSpec.from_dict(complete) == N150
    with ttsim.open_device(spec="n150", release="a8c5af0f") as device:
        assert named in repr(device)
    with pytest.raises(ttsim.ArgumentTypeError, match="release"):
        ttsim.open_device(release=2025)


@pytest.mark.parametrize(
    ("release", "scheme", "height_bytes", "block_bytes"),
    [("0.81.1", "BLOCK_SHARDED", 923_072, 864_544), ("a8c5af0f", "HEIGHT_SHARDED", 1_021_376, 1_372_448)],
)
def test_whole_partials_decide_the_shards_of_the_last_transposed_convolution_of_vgg_unet(
    release, scheme, height_bytes, block_bytes
):
    """In height shards a core's output is 64 tiles, and a block 16: 48 tiles of 2,048 bytes are 98,304 more bytes."""
    with ttsim.open_device(spec="n150", release=release, l1_small_size=32768, values="off") as device:
        x = ttsim.zeros((1, 1, 16384, 128), ttsim.bfloat16, ttsim.ROW_MAJOR_LAYOUT, device, ttsim.L1_MEMORY_CONFIG)
        config = ttsim.Conv2dConfig(
            weights_dtype=ttsim.bfloat8_b, output_layout=ttsim.ROW_MAJOR_LAYOUT, act_block_h_override=256,
            enable_act_double_buffer=True, enable_weights_double_buffer=True)  # fmt: skip
        with ttsim.profile(device) as profiled:
            ttsim.conv_transpose2d(
                input_tensor=x, weight_tensor=ttsim.Tensor(np.zeros((128, 64, 2, 2), np.float32), ttsim.float32),
                bias_tensor=ttsim.Tensor(np.zeros((1, 1, 1, 64), np.float32), ttsim.float32), device=device,
                in_channels=128, out_channels=64, batch_size=1, input_height=128, input_width=128, kernel_size=(2, 2),
                stride=(2, 2), dtype=ttsim.bfloat16, conv_config=config)  # fmt: skip
    (decision,) = [
        decision for call in profiled.calls for decision in call.plan.decisions if decision.name == "shard_layout"
    ]
    assert decision.value == scheme
    limits = dict(decision.limits)
    assert (limits["HEIGHT_SHARDED_bytes"], limits["BLOCK_SHARDED_bytes"]) == (height_bytes, block_bytes)


def test_one_row_of_blocks_is_split_along_it_in_2025():
    """16 x 32 tiles are one row of two blocks: 32 cores with a column each then, 64 cores with 2 x 4 tiles now."""
    first, second = (
        ttsim.TensorDescription((1, 1, rows, 1024), layout=ttsim.TILE_LAYOUT, memory_config=ttsim.DRAM_MEMORY_CONFIG)
        for rows in (512, 1024)
    )
    programs = {}
    for release in release_names():
        with ttsim.open_device(spec="n150", release=release, values="off") as device:
            report = ttsim.estimate_cycles(ttsim.matmul, first, second, device=device)
            programs[release] = report.explain().partition("Planned: ")[2].partition(",")[0]
    assert programs == {
        "0.81.1": "MCAST_2D",
        "a8c5af0f": "MCAST_2D",
        "2025": "MCAST_IN0",
        "2025-02": "MCAST_IN0",
        "2025-12": "MCAST_IN0",
    }


def test_releases_of_2025_take_tensors_of_the_device_that_have_the_data_type():
    with ttsim.open_device(release="2025") as device:
        x = ttsim.ones((32, 32), layout=ttsim.TILE_LAYOUT, device=device)
        assert ttsim.to_dtype(x, ttsim.bfloat16) is x
        with pytest.raises(ttsim.DeviceError, match=r"^Expected Tensor with HostStorage, got StorageType::DEVICE"):
            ttsim.to_dtype(x, ttsim.float32)
    with ttsim.open_device() as device, pytest.raises(ttsim.DeviceError, match=r"^Expected Tensor with HostStorage"):
        ttsim.to_dtype(ttsim.ones((32, 32), layout=ttsim.TILE_LAYOUT, device=device), ttsim.bfloat16)


@pytest.mark.parametrize("name", ["add", "mul_", "div", "maximum", "eq_"])
def test_releases_with_two_programs_take_a_choice_between_them(name):
    ones = np.ones((1, 2))
    for release, takes in (("0.81.1", False), ("2025-12", True)):
        with ttsim.open_device(release=release) as device:
            tensor = ttsim.Tensor(ones, ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
            function = getattr(ttsim, name)
            if takes:
                assert function(tensor, 1.0, use_legacy=False).shape == [1, 2]
            else:
                with pytest.raises(ttsim.ArgumentTypeError, match=r"there is no 'use_legacy' in release 0\.81\.1"):
                    function(tensor, 1.0, use_legacy=True)
