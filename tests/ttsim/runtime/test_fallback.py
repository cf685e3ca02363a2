"""What ttsim does not simulate, on the host; the names here are torch's, and no release of ttnn has them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import ttsim
from ttsim.dropin.finder import ttnn_is_ttsim
from ttsim.runtime.calls import on_device
from ttsim.runtime.fallback import instead

torch = pytest.importorskip("torch")
MATRIX = np.arange(64 * 32, dtype=np.float32).reshape(1, 1, 64, 32) % 251


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTSIM_FALLBACK", "host")


@pytest.fixture
def device(host: None) -> Iterator[ttsim.Device]:
    with ttsim.open_device(l1_small_size=32768) as opened:
        yield opened


def placed(device: ttsim.Device, values: Any = MATRIX, **options: Any) -> ttsim.Tensor:
    return ttsim.from_torch(
        torch.from_numpy(values), ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device, **options
    )


def call(name: str, *args: Any, **kwargs: Any) -> Any:
    return getattr(ttsim, name)(*args, **kwargs)


def test_a_missing_name_is_computed_by_torch(device: ttsim.Device) -> None:
    result = call("rot90", placed(device), dims=(2, 3), memory_config=ttsim.L1_MEMORY_CONFIG)
    assert (result.shape, result.dtype, result.layout) == ([1, 1, 32, 64], ttsim.bfloat16, ttsim.TILE_LAYOUT)
    assert result.memory_config() == ttsim.L1_MEMORY_CONFIG
    assert np.array_equal(result.to_numpy(), np.rot90(MATRIX, axes=(2, 3)).astype(result.to_numpy().dtype))


def test_several_results_and_integers(device: ttsim.Device) -> None:
    values, places = call("kthvalue", placed(device), 2, dim=-1)
    assert (values.dtype, places.dtype) == (ttsim.bfloat16, ttsim.uint32)
    assert values.to_numpy()[0, 0, 0] == 1
    assert places.to_numpy()[0, 0, 0] == 1


def test_without_values_shapes_are_known(host: None) -> None:
    with ttsim.open_device(values="off") as device:
        assert call("rot90", placed(device), dims=(2, 3)).shape == [1, 1, 32, 64]


def test_a_refused_call_is_computed_and_reported(device: ttsim.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    @on_device
    def softplus(tensor: ttsim.Tensor, *, memory_config: object = None) -> ttsim.Tensor:
        raise ttsim.NotSimulatedError("softplus: ttsim does not simulate it")

    tensor = placed(device)
    with ttsim.profile(device) as profile:
        result = softplus(ttsim.relu(tensor))
    report = profile.network()
    assert result.to_numpy()[0, 0, 0, 0] == np.float32(0.69140625)  # log 2
    assert report.operations[1].untimed == "the host computed it in float32: it has no plan and no time"
    assert report.operations[1].step.op.computed_by == "torch.nn.functional.softplus"
    assert "neither planned nor timed: one call of 2 (50.0 %): ttnn.softplus (1)" in report.table().replace("\n  ", " ")
    monkeypatch.delenv("TTSIM_FALLBACK")
    with pytest.raises(ttsim.NotSimulatedError):
        softplus(tensor)


def test_a_call_that_torch_refuses_keeps_its_own_error(device: ttsim.Device) -> None:
    @on_device
    def softplus(tensor: ttsim.Tensor, strange: int) -> ttsim.Tensor:
        raise ttsim.NotSimulatedError("softplus: ttsim does not simulate strange")

    with pytest.raises(ttsim.NotSimulatedError, match="strange") as refused:
        softplus(placed(device), strange=3)
    assert "does not take these arguments" in refused.value.__notes__[0]


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("layer_norm", {"epsilon": 0.0}, (MATRIX - 15.5) / np.sqrt(np.float32(85.25))),
        ("global_avg_pool2d", {}, np.full((1, 1, 1, 32), MATRIX.mean((1, 2)))),
        ("concat", {"dim": 3}, np.concatenate([MATRIX, MATRIX], 3)),
        ("upsample", {"scale_factor": 2}, MATRIX.repeat(2, 1).repeat(2, 2)),
    ],
)
def test_formulas_of_functions_that_torch_names_or_orders_otherwise(
    device: ttsim.Device, name: str, arguments: dict[str, Any], expected: np.ndarray
) -> None:
    tensor = placed(device)
    result = instead(name, [[tensor, tensor] if name == "concat" else tensor], arguments).to_numpy().astype(np.float32)
    assert result.shape == expected.shape
    if name != "layer_norm":  # rows of 0 to 31 alone have this mean
        assert np.abs(result - expected).max() <= np.abs(expected).max() / 256
    else:
        assert np.abs(result - expected)[0, 0, 0].max() <= 1 / 128


def test_names_that_no_one_has_stay_missing(host: None) -> None:
    with pytest.raises(AttributeError, match="TTSIM_FALLBACK=host"):
        call("no_such_function")
    with ttnn_is_ttsim():
        import ttnn  # type: ignore[import-not-found]

        assert ttnn.rot90.__name__ == "rot90"
        with pytest.raises(AttributeError):
            print(ttnn.Rot90)


def test_a_wrong_setting_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TTSIM_FALLBACK", "card")
    with pytest.raises(ttsim.ArgumentError, match="must be host, or unset, not 'card'"):
        call("rot90")
