import dataclasses

import numpy as np
import pytest

import ttsim
from tools.fuzz import oracles
from tools.fuzz.calls import Call, draw, pasteable, run
from tools.fuzz.oracles import judge, truth

PLAIN = Call(
    function="conv_transpose2d",
    device="wormhole_n150",
    sizes={
        "in_channels": 32,
        "out_channels": 16,
        "batch_size": 1,
        "input_height": 4,
        "input_width": 4,
        "kernel_size": (2, 2),
        "stride": (2, 2),
        "padding": (0, 0),
        "dilation": (1, 1),
        "groups": 1,
    },
    input_dtype="bfloat16",
    weights_dtype="bfloat16",
    place="host",
    tiles=False,
    flat=True,
    bias=True,
)


def test_a_seed_and_an_index_are_a_call():
    assert draw(3, 5) == draw(3, 5)
    assert draw(3, 5) != draw(3, 6)
    assert eval(repr(draw(3, 5)), {"Call": Call}) == draw(3, 5)
    assert "tools.fuzz.calls.run(Call(" in pasteable(draw(3, 5))


@pytest.mark.parametrize("function", ["conv_transpose2d", "conv2d"])
def test_a_right_call_is_right(function):
    verdict = judge(dataclasses.replace(PLAIN, function=function))
    assert (verdict.outcome, verdict.text) == ("right", "")


def test_what_is_refused_is_no_fault():
    refused = judge(dataclasses.replace(PLAIN, sizes={**PLAIN.sizes, "stride": (0, 0)}))
    assert refused.outcome == "refused"
    assert refused.text.startswith("stride must be greater than 0")


def replaced(monkeypatch, change):
    """Puts something between a call and its oracles."""

    def changed(call, device):
        return change(call, device)

    monkeypatch.setattr(oracles, "run", changed)


def test_one_wrong_row_is_found(monkeypatch):
    def wrong(call, device):
        output = run(call, device)
        values = output.cpu().to_numpy().astype(np.float32).copy()
        values.reshape(8, 8, 16)[5] *= -1
        return ttsim.Tensor(values, ttsim.bfloat16)

    replaced(monkeypatch, wrong)
    verdict = judge(PLAIN)
    assert verdict.outcome == "fault"
    assert "row 5 of 8 correlates by -1.000" in verdict.text


def test_undocumented_errors_and_leaks_are_found(monkeypatch):
    kept = []

    def broken(call, device):
        raise IndexError("list index out of range")

    def leaking(call, device):
        kept.append(run(call, device))
        return kept[0]

    replaced(monkeypatch, broken)
    assert judge(PLAIN).text == "undocumented IndexError: list index out of range"
    replaced(monkeypatch, leaking)
    assert judge(PLAIN).text.startswith("buffers are left: ")


def test_the_definition_of_conv2d_by_hand():
    sizes = {**PLAIN.sizes, "in_channels": 1, "out_channels": 1, "kernel_size": (1, 1), "stride": (2, 2)}
    call = dataclasses.replace(PLAIN, function="conv2d", sizes=sizes, bias=False)
    image, weights, _ = oracles.operands(call)
    assert np.allclose(truth(call), image.astype(float)[:, ::2, ::2] * float(weights.ravel()[0]))


def test_rows_that_a_pad_added_are_the_bias():
    call = dataclasses.replace(PLAIN, sizes={**PLAIN.sizes, "kernel_size": (1, 1), "stride": (1, 1)})
    bias = oracles.operands(call)[2].astype(np.float64).reshape(1, -1)
    pixels = truth(call).reshape(16, 16)
    good = np.concatenate([pixels, np.repeat(bias, 16, 0)]).reshape(1, 1, 32, 16)
    assert not list(oracles._wrong_values(call, good))
    for wrong in (0.0, np.nan):
        bad = good.copy()
        bad[0, 0, 31] = wrong
        assert list(oracles._wrong_values(call, bad)) == ["rows that a pad added are not the bias"]
    assert list(oracles._wrong_values(call, good[:, :, :24])) == ["(1, 1, 24, 16) instead of (1, 4, 4, 16)"]
