"""Calls on a device: weights are prepared once, and profiles hold the arguments and lines of the script."""

from pathlib import Path

import numpy as np
import pytest

import ttsim
from ops.programs.conv2d import weights
from tests.ttsim.api.calls import conv, conv_arguments
from ttsim.runtime.execution import texts
from ttsim.runtime.tensor import Tensor
from ttsim.runtime.traces import CallSite, call_sites

KERNEL = (32, 16, 2, 2)


def numbers(shape, seed):
    return np.random.default_rng(seed).standard_normal(shape, np.float32)


@pytest.fixture
def device():
    with ttsim.open_device(l1_small_size=32768, values="off") as opened:
        yield opened


def convolve(device, weight):
    config = {"weights_dtype": ttsim.bfloat8_b}
    with ttsim.profile(device) as seen:
        output = conv(device, (8, 8), (32, 16), seed=0, weight_tensor=weight, config=config)
    return output.to_numpy(), seen.report().to_json()


@pytest.fixture
def preparations(monkeypatch):
    counted = []
    real = weights.prepare_weights
    monkeypatch.setattr(weights, "prepare_weights", lambda *given: counted.append(1) or real(*given))
    return counted


@pytest.mark.parametrize("values", ["exact", "fast"])
def test_equal_weights_are_prepared_once(preparations, values):
    def outcomes(*seeds):
        with ttsim.open_device(l1_small_size=32768, values=values) as device:
            return [convolve(device, Tensor(numbers(KERNEL, seed), ttsim.bfloat16)) for seed in seeds]

    first, second, *more = outcomes(1, 1) + outcomes(1, 1)
    assert len(preparations) == 2
    other, again = outcomes(2, 1)
    assert all(np.array_equal(first[0], output) for output, _ in (second, *more, again))
    assert not np.array_equal(first[0], other[0])
    assert [text for _, text in (*more, again)] == [first[1], second[1], second[1]]  # wherever weights were prepared


def test_overwritten_weights_are_prepared_again_until_the_device_is_closed(preparations):
    weight = Tensor(numbers(KERNEL, 1), ttsim.bfloat16)
    with ttsim.open_device(l1_small_size=32768, values="fast") as device:
        first, _ = convolve(device, weight)
        ttsim.copy_device_to_host_tensor(Tensor(-numbers(KERNEL, 1), ttsim.bfloat16).to(device), weight)
        other, _ = convolve(device, weight)
        assert device.kept.bytes > 0
    assert (len(preparations), device.kept.bytes) == (2, 0)
    assert np.array_equal(other, -first)


def test_a_profile_holds_the_arguments_of_the_script_as_they_were(device):
    given = conv_arguments(device, (8, 8), (32, 16), config={"deallocate_activation": True}, memory_config=None)
    given["weight_tensor"] = Tensor(np.full(KERNEL, 7, np.float32), ttsim.bfloat16)
    with ttsim.profile(device) as profile:
        ttsim.conv_transpose2d(**given)
    given["conv_config"].deallocate_activation = False
    text = dict(profile.calls[0].given)
    assert list(text) == list(given)  # in its order, no default among them
    assert (text["stride"], text["in_channels"], text["memory_config"]) == ("(2, 2)", "32", "None")
    assert text["input_tensor"].startswith(
        "ttnn.Tensor(shape=Shape([1, 1, 64, 32]), dtype=DataType.BFLOAT16, layout=Layout.ROW_MAJOR, memory_config="
    )
    assert text["input_tensor"].endswith("is_allocated=True, device_id=0)")  # as it was when the call began
    assert "7" not in text["weight_tensor"]
    assert "deallocate_activation=1," in text["conv_config"]


def test_arguments_are_those_of_the_outermost_call_until_it_ends(device):
    x = Tensor(np.zeros((1, 1, 32, 32), np.float32), ttsim.bfloat16, layout=ttsim.TILE_LAYOUT).to(device)
    with ttsim.profile(device) as profile:
        ttsim.linear(x, x, activation="relu")
        x + 1.0
    assert [list(dict(call.given)) for call in profile.calls] == [["activation", "0", "1"], ["0", "1"]]
    with pytest.raises(RuntimeError):
        ttsim.add(x, Tensor(np.zeros((1, 1, 32, 31), np.float32), ttsim.bfloat16))
    assert device.given == ()


class Hostile:
    def __str__(self):
        raise ValueError

    __repr__ = __str__


def test_texts_of_values_of_every_kind():
    given = ([1, (2, 3), (2,), {"a": np.zeros((4, 2), np.int8)}], "x" * 3000, Hostile())
    (_, several), (_, long), (_, hostile) = texts(enumerate(given))
    assert several == "[1, (2, 3), (2,), {a: numpy.ndarray(shape=[4, 2], dtype=int8)}]"
    assert len(long) < 100
    assert hostile.endswith("Hostile")


def here():
    return call_sites()


def test_lines_of_a_script_outermost_first_without_packages():
    sites = here()
    outer, inner = sites[-2:]
    assert (outer.file, inner.file, outer.line - inner.line) == (__file__, __file__, 4)
    assert "python.py" not in {Path(site.file).name for site in sites}  # of pytest, which runs this
    space = {"call_sites": call_sites}
    exec(compile("def f():\n    return call_sites()\nfound = f()", "<cell>", "exec"), space)
    assert space["found"][-2:] == (CallSite("<cell>", 3), CallSite("<cell>", 2, "f"))


def unwritten(device: ttsim.Device, *shape: int) -> ttsim.Tensor:
    return ttsim.allocate_tensor_on_device(shape, ttsim.bfloat16, ttsim.TILE_LAYOUT, device, ttsim.DRAM_MEMORY_CONFIG)


WRITING = {
    "add": lambda x, target: ttsim.add(x, x, output_tensor=target),
    "relu": lambda x, target: ttsim.relu(x, output_tensor=target),
    "where": lambda x, target: ttsim.where(x, x, 0.0, output_tensor=target),
    "matmul": lambda x, target: ttsim.matmul(x, x, optional_output_tensor=target),
    "copy": ttsim.copy,
}


@pytest.mark.parametrize("values", ["exact", "fast"])
@pytest.mark.parametrize(("name", "wanted"), {"add": 2, "relu": 1, "where": 1, "matmul": 32, "copy": 1}.items())
def test_a_result_goes_where_nothing_was_written(values: str, name: str, wanted: float) -> None:
    with ttsim.open_device(values=values) as device:
        ones, target = ttsim.ones((32, 32), layout=ttsim.TILE_LAYOUT, device=device), unwritten(device, 32, 32)
        WRITING[name](ones, target)
        assert (target.to_numpy() == wanted).all()


def test_a_part_of_what_was_never_written_is_not_written() -> None:
    """The rest of a cache would stay as memory was."""
    with ttsim.open_device() as device:
        rows, cache = (
            ttsim.ones((1, 1, 32, 32), layout=ttsim.TILE_LAYOUT, device=device),
            unwritten(device, 1, 1, 64, 32),
        )
        with pytest.raises(ttsim.ArgumentError, match="nothing was written to it"):
            ttsim.kv_cache.fill_cache_for_user_(cache, rows, 0)
