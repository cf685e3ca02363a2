"""What no device can hold is refused at once, by every function that plans a convolution."""

from typing import Any

import numpy as np
import pytest

import ops.planners.conv.plan
import ops.planners.conv.preparation
import ttsim
import ttsim.api.prepare

SIDES = {"input_height": 4, "input_width": 4, "kernel_size": (3, 3)}
BASE = {"in_channels": 32, "out_channels": 32, "batch_size": 1, **SIDES}


@pytest.fixture(autouse=True)
def _unplanned(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planning such calls takes minutes: it must not begin."""

    def planned(*_: Any, **__: Any) -> None:
        raise AssertionError("planning has begun")

    for module, names in (
        (ops.planners.conv.plan, ("plan_convolution",)),
        (ttsim.api.prepare, ("plan_preparation",)),
        (ops.planners.conv.preparation, ("choose_slices", "first_slice")),
    ):
        for name in names:
            monkeypatch.setattr(module, name, planned)


def call(**changed: Any) -> None:
    device = ttsim.open_device(l1_small_size=32768, values="off", strict=False)
    x = ttsim.Tensor(np.zeros((1, 1, 16, 32), np.float32), ttsim.bfloat16, device)
    w = ttsim.Tensor(np.zeros((32, 32, 3, 3), np.float32), ttsim.bfloat16)
    ttsim.conv_transpose2d(input_tensor=x, weight_tensor=w, device=device, **(BASE | changed))


def test_other_calls_are_planned() -> None:
    with pytest.raises(AssertionError, match="planning has begun"):
        call()


@pytest.mark.parametrize(
    "changed",
    [
        {"stride": (65536, 65536)},
        {"stride": (100000, 100000)},
        {"stride": (2**31, 1)},
        {"stride": (2**32 - 1, 2**32 - 1)},
        {"dilation": (2**31, 1)},
        {"output_padding": (2**32 - 1, 0)},
        {"output_padding": (2**20, 2**20)},
    ],
)
def test_a_frame_that_32_bits_cannot_count_is_refused(changed: dict[str, Any]) -> None:
    with pytest.raises(ttsim.ArgumentError, match="more than the 32-bit addresses"):
        call(**changed)


def test_an_output_larger_than_dram_is_refused() -> None:
    with pytest.raises(ttsim.OutOfMemoryError, match=r"the output, 400040001 rows of 32 channels, .* DRAM of worm"):
        call(stride=(6666, 6666))


@pytest.mark.parametrize(
    ("side", "size", "what"),
    [("input_height", 2**31, "weights"), ("input_width", 2**32 - 1, "weights"), ("input_height", 2**32 - 1, "bias")],
)
def test_preparing_for_an_image_that_no_device_holds_is_refused(side: str, size: int, what: str) -> None:
    device = ttsim.open_device(l1_small_size=32768, values="off")
    coming: dict[str, Any] = {
        "input_memory_config": ttsim.DRAM_MEMORY_CONFIG,
        "input_layout": ttsim.ROW_MAJOR_LAYOUT,
        "stride": (1, 1),
        "padding": (0, 0),
        "dilation": (1, 1),
        "groups": 1,
        "device": device,
        "input_dtype": ttsim.bfloat16,
        "conv_config": ttsim.Conv2dConfig(weights_dtype=ttsim.bfloat16),
        **BASE,
        side: size,
    }
    raw = ttsim.Tensor(np.zeros((32, 32, 3, 3), np.float32), ttsim.bfloat16)
    row = ttsim.Tensor(np.zeros((1, 1, 1, 32), np.float32), ttsim.bfloat16)
    prepare = {
        "weights": lambda: ttsim.prepare_conv_transpose2d_weights(
            weight_tensor=raw, weights_format="IOHW", has_bias=False, **coming
        ),
        "bias": lambda: ttsim.prepare_conv_transpose2d_bias(bias_tensor=row, **coming),
    }
    with pytest.raises(ttsim.TTSimError, match=r"32-bit addresses|DRAM"):
        prepare[what]()
