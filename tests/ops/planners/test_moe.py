"""The weight of the first expert: buffers as ttnn 0.81.1 plans them, refusals in its words, numbers by numpy."""

import re

import numpy as np
import pytest

import ttsim
from device.errors import DeviceError
from ops.planners.moe import MoeArguments, plan_moe
from tests.build import N150, tensor_spec

EXPERTS, PICKED = "1x1x1x64 tile", "1x1x1x32 tile"


def planned(scores, experts=EXPERTS, picked=PICKED, count=32, target=None):
    call = MoeArguments(
        scores=tensor_spec(scores), experts=tensor_spec(experts), picked=tensor_spec(picked), count=count,
        target=None if target is None else tensor_spec(target),
    )  # fmt: skip
    (step,) = plan_moe(call, N150).steps
    return step


@pytest.mark.parametrize(
    ("scores", "options", "bytes_"),
    [
        ("1x1x32x64 tile", {}, 47104),
        ("1x1x64x64 tile", {}, 57344),
        ("1x1x32x128 tile", {"experts": "128 tile"}, 59392),
        ("1x1x32x128 tile bfloat8_b", {"experts": "1x128 tile"}, 50176),
        ("1x1x32x64 tile float32", {}, 67584),
        ("1x1x32x64 tile", {"target": "1x1x32x1 tile float32"}, 53248),
    ],
)
def test_buffers(scores, options, bytes_):
    assert sum(buffer.size_bytes for buffer in planned(scores, **options).circular_buffers) == bytes_


@pytest.mark.parametrize(
    ("scores", "options", "first"),
    [
        ("32x64 tile", {}, "Input shape must be 4D, got 2"),
        ("1x1x32x64 tile", {"count": 16}, "K must be equal to 32, pad with -infinity if necessary to get 32, got 16"),
        ("1x1x32x32 tile", {}, "Input shape inner dim 32 must be a multiple of 64"),
        ("1x1x32x96 tile", {}, "Input shape inner dim 96 must be a power of 2"),
        ("1x1x7x64", {}, "Input height (combined input_shape[0-2]) 7 must be a multiple of 32"),
        ("1x1x32x64", {}, "The input must be in tiled format"),
        ("1x1x32x64 tile", {"picked": "1x1x1x31 tile"}, "Topk mask must be row-broadcastable with last dim == k. Got"),
        (
            "1x1x32x64 tile",
            {"experts": "1x1x2x64 tile"},
            "Expert mask must be row-broadcastable with last dim == input",
        ),
        ("1x1x32x64 tile", {"experts": "1x64"}, "Expert shape inner dim must be padded to 32, got 1"),
    ],
)
def test_refusals(scores, options, first):
    with pytest.raises(DeviceError, match=f"^{re.escape(first)}"):
        planned(scores, **options)


def test_a_result_in_rows_holds_no_tile():
    assert planned("1x1x32x64 tile", target="1x1x32x1").refused.startswith("DataflowBufferSpec 'cur_max' has num_entr")


def test_weights():
    rng = np.random.default_rng(1)
    scores, experts, picked = rng.normal(size=(1, 1, 32, 64)), np.zeros((1, 1, 1, 64)), np.zeros((1, 1, 1, 32))
    experts[..., 5], picked[..., 8:] = -np.inf, -np.inf
    scores[..., :8, 0] = 9
    with ttsim.open_device() as device:
        tensors = [
            ttsim.from_numpy(values, ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device)
            for values in (scores, experts, picked)
        ]
        got = ttsim.moe(*tensors, 32).to_numpy()
        masked = tensors[0].to_numpy() + experts
    best = -np.sort(-masked, axis=-1)[..., :8]
    powers = np.exp(best - best[..., :1])
    weight = np.exp(masked[..., :1] - best[..., :1]) / powers.sum(-1, keepdims=True)
    np.testing.assert_allclose(got, np.where(masked[..., :1] >= best[..., -1:], weight, 0), rtol=2**-7)
    assert (got[..., :8, :] > 0.9).all()
    assert (got == 0).any()
