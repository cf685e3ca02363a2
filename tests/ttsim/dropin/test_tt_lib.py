"""Modules of tt_lib beside fallback_ops: padded sides and softmax worked by hand."""

import importlib
from collections.abc import Iterator

import numpy as np
import pytest

import ttsim
from ttsim.dropin.finder import ttnn_is_ttsim

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def faces() -> Iterator[None]:
    with ttnn_is_ttsim():
        yield


@pytest.mark.parametrize(
    ("name", "shape", "padded"),
    [
        ("pad_activation", (5,), (1, 1, 32, 32)),
        ("pad_activation", (3, 33), (3, 1, 32, 64)),
        ("pad_activation", (3, 33, 5), (3, 1, 64, 32)),
        ("pad_activation", (2, 3, 33, 5), (2, 3, 64, 32)),
        ("pad_weight", (5,), (1, 1, 32, 32)),
        ("pad_weight", (33, 5), (1, 1, 64, 32)),
        ("pad_weight", (3, 33, 5), (3, 64, 32)),
        ("pad_weight", (2, 3, 33, 5), (2, 3, 64, 32)),
    ],
)
def test_sides_become_whole_tiles(name: str, shape: tuple[int, ...], padded: tuple[int, ...]) -> None:
    result = getattr(importlib.import_module("tt_lib.utils"), name)(torch.ones(shape, dtype=torch.bfloat16))
    assert tuple(result.shape) == padded
    assert result.dtype == torch.float32
    assert float(result.sum()) == np.prod(shape)
    assert [float(result[(place,) * len(padded)]) for place in (0, -1)] == [1, 0]


def test_closeness_is_a_distance_or_a_ratio() -> None:
    is_close = importlib.import_module("tt_lib.utils").is_close
    assert is_close(torch.tensor([0.0, 100.0]), torch.tensor([0.079, 107.9]))  # 0.079 < 0.08; |100 / 107.9 - 1| < 0.08
    assert not is_close(torch.tensor([100.0]), torch.tensor([109.0]))


@pytest.mark.parametrize("stable", [False, True])
def test_softmax_is_five_operations(stable: bool) -> None:
    softmax = importlib.import_module("tt_lib.fused_ops.softmax").softmax
    with ttsim.open_device() as device:
        values = torch.tensor([0.0, np.log(3.0)]).repeat(1, 1, 32, 16)
        result = softmax(ttsim.from_torch(values, ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device), stable)
        assert ttsim.to_torch(result)[0, 0, 0, :2].tolist() == pytest.approx([1 / 64, 3 / 64], rel=0.02)


def test_the_largest_difference_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    largest = importlib.import_module("tt_lib.utils").print_diff_argmax
    assert largest(torch.tensor([[1.0, 2.0]]), torch.tensor([[1.5, 5.0]])) == 3
    assert capsys.readouterr().out == "Abs diff= 3.0 at 1: a = 2.0, b = 5.0\n"


def test_other_names_are_missing() -> None:
    with pytest.raises(ImportError, match=r"cannot import name 'no_name' from 'tt_lib\.utils'"):
        exec("from tt_lib.utils import no_name")
    with pytest.raises(ModuleNotFoundError, match=r"tt_lib\.no_module"):
        importlib.import_module("tt_lib.no_module")
