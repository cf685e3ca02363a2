from typing import Any

import numpy as np
import pytest

import ttsim


def arguments(device: ttsim.Device, **changed: Any) -> dict[str, Any]:
    """Those of a preparation for 8 x 8 pixels of 32 channels."""
    given = {
        "input_memory_config": ttsim.L1_MEMORY_CONFIG,
        "input_layout": ttsim.TILE_LAYOUT,
        "in_channels": 32,
        "out_channels": 16,
        "batch_size": 1,
        "input_height": 8,
        "input_width": 8,
        "kernel_size": (3, 3),
        "stride": (1, 1),
        "padding": (1, 1),
        "dilation": (1, 1),
        "groups": 1,
        "device": device,
        "input_dtype": ttsim.bfloat16,
        "conv_config": ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat16),
    }
    return given | changed


def weights(channels: int, kernel: int) -> ttsim.Tensor:
    values = np.random.default_rng(0).standard_normal((16, channels, kernel, kernel), dtype=np.float32)
    return ttsim.Tensor(values, ttsim.bfloat16)


def prepared(device: ttsim.Device, raw: ttsim.Tensor, **changed: Any) -> ttsim.Tensor:
    given = arguments(device, **changed)
    return ttsim.prepare_conv_weights(weight_tensor=raw, weights_format="OIHW", has_bias=False, **given)


def test_prepared_weights_and_bias_are_those_of_the_call() -> None:
    with ttsim.open_device(l1_small_size=32768) as device:
        raw = weights(32, 3)
        bias = ttsim.Tensor(np.ones((1, 1, 1, 16), np.float32), ttsim.bfloat16)
        x = ttsim.Tensor(np.ones((1, 1, 64, 32), np.float32), ttsim.bfloat16, layout=ttsim.TILE_LAYOUT)
        config = ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat16)
        _, (result, made_bias) = ttsim.conv2d(
            input_tensor=x.to(device, ttsim.L1_MEMORY_CONFIG), weight_tensor=raw, bias_tensor=bias, device=device,
            in_channels=32, out_channels=16, batch_size=1, input_height=8, input_width=8, kernel_size=(3, 3),
            padding=(1, 1), conv_config=config, return_weights_and_bias=True,
        )  # fmt: skip
        ahead = prepared(device, raw)
        assert ahead.spec == result.spec
        assert (ahead.padded_values() == result.padded_values()).all()
        ahead = ttsim.prepare_conv_bias(bias_tensor=bias, **arguments(device))
        assert ahead.spec == made_bias.spec


def test_shards_that_the_image_does_not_fit_are_asked_for_their_cores_and_their_width() -> None:
    """WIDTH shards of 512 rows for an image of 64, and more rows of BLOCK shards than it has."""
    with ttsim.open_device(l1_small_size=32768) as device:
        for scheme, shape, corner in (("WIDTH_SHARDED", (512, 32), (1, 0)), ("BLOCK_SHARDED", (32, 32), (1, 3))):
            grid = ttsim.CoreRangeSet([ttsim.CoreRange(ttsim.CoreCoord(0, 0), ttsim.CoreCoord(*corner))])
            shards = ttsim.ShardSpec(grid, shape, ttsim.ShardOrientation.ROW_MAJOR)
            place = ttsim.MemoryConfig(getattr(ttsim.TensorMemoryLayout, scheme), ttsim.BufferType.L1, shards)
            result = prepared(device, weights(64, 3), in_channels=64, input_memory_config=place)
            assert result.shape == [1, 1, 576, 16]


def test_a_bias_of_a_call_that_no_slices_fit_is_refused_as_the_call_is() -> None:
    with ttsim.open_device(l1_small_size=32768, values="off") as device:
        bias = ttsim.Tensor(np.zeros((1, 1, 1, 64), np.float32), ttsim.bfloat16)
        config = ttsim.Conv2dConfig(weights_dtype=ttsim.float32, shard_layout=ttsim.TensorMemoryLayout.HEIGHT_SHARDED)
        image = {"input_memory_config": ttsim.DRAM_MEMORY_CONFIG, "input_layout": ttsim.ROW_MAJOR_LAYOUT}
        image |= {"in_channels": 1033, "out_channels": 64, "batch_size": 5, "input_height": 35, "input_width": 3}
        with pytest.raises(ttsim.OutOfMemoryError, match=r"^DRAM Auto slice could not find valid slice configuration"):
            ttsim.prepare_conv_bias(bias_tensor=bias, **arguments(device, **image, padding=(0, 0), conv_config=config))


def test_rows_of_block_floats_can_be_described() -> None:
    """The real library lays 40 channels of HEIGHT shards in rows out for 12 x 32 rows, in whatever format."""
    with ttsim.open_device(l1_small_size=32768) as device:
        raw = ttsim.Tensor(np.ones((40, 64, 3, 3), np.float32), ttsim.float32)
        config = ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat8_b, shard_layout=ttsim.TensorMemoryLayout.HEIGHT_SHARDED)
        rows = {"input_layout": ttsim.ROW_MAJOR_LAYOUT, "input_dtype": ttsim.bfloat8_b, "conv_config": config}
        sizes = {"in_channels": 40, "out_channels": 64, "input_height": 16, "input_width": 16, "stride": (2, 2)}
        given = arguments(device, **rows, **sizes)
        output = ttsim.prepare_conv_transpose2d_weights(
            weight_tensor=raw, weights_format="IOHW", has_bias=True, **given
        )
        assert output.padded_shape == [1, 1, 384, 64]
