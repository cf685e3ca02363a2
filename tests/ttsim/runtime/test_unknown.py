"""Torch tensors of unknown numbers, where values are off: shapes go on, and no number leaves."""

import copy
import pickle
import warnings

import numpy as np
import pytest

import ttsim
from device.errors import DeviceError
from ttsim.runtime.storage import warn_of_unknown

torch = pytest.importorskip("torch")

from ttsim.runtime.unknown import UnknownTensor  # noqa: E402

KNOWN = torch.arange(32.0).reshape(2, 16)
GOES_ON = (
    ("x.float() - g", (2, 16), torch.float32),
    ("torch.nn.functional.pad(x, (0, 1)).sum(1)", (2,), torch.bfloat16),
    ("torch.cat([g, x]).permute(1, 0).reshape(-1)", (64,), torch.float32),
    ("torch.where(x > 0, g, 1.0)[:, 3]", (2,), torch.float32),
    ("x.argmax(1)", (2,), torch.int64),
    ("torch.nn.Linear(16, 4)(x.float())", (2, 4), torch.float32),
    ("list(x)[1].add_(1)", (16,), torch.bfloat16),
    ("copy.deepcopy(x)", (2, 16), torch.bfloat16),
)
NEEDS_NUMBERS = (
    *("bool((x > 0).any())", "float(x.float().mean())", "x.argmax().item()", "x.tolist()", "max(x[0])"),
    *("torch.allclose(x.float(), g)", "torch.equal(x, x)", "x.float().numpy()", "np.asarray(x)", "pickle.dumps(x)"),
    *("g[x > 0]", "torch.nonzero(x)", "g.clone().copy_(x)", "g.clone().add_(x)", "torch.add(g, x, out=g.clone())"),
    "g.clone().__setitem__(0, x[0])",
)


def off() -> ttsim.Device:
    return ttsim.open_device(values="off")


def computed(device: ttsim.Device, dtype: ttsim.DataType = ttsim.bfloat16) -> ttsim.Tensor:
    known = ttsim.from_torch(KNOWN, ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device)
    return ttsim.typecast(ttsim.relu(known), dtype)


@pytest.fixture(autouse=True)
def _silent() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warn_of_unknown()


@pytest.mark.parametrize(("expression", "shape", "dtype"), GOES_ON)
def test_what_decides_nothing_goes_on(expression: str, shape: tuple[int, ...], dtype: object) -> None:
    with off() as device:
        result = eval(expression, {"x": ttsim.to_torch(computed(device)), "g": KNOWN, "torch": torch, "copy": copy})
    assert type(result) is UnknownTensor
    assert (tuple(result.shape), result.dtype) == (shape, dtype)
    assert str(result).startswith("tensor(<unknown, because values are off>, size=")


@pytest.mark.parametrize("expression", NEEDS_NUMBERS)
def test_what_needs_a_number_is_refused(expression: str) -> None:
    with off() as device:
        names = {"x": ttsim.to_torch(computed(device)), "g": KNOWN, "torch": torch, "np": np, "pickle": pickle}
        with pytest.raises(
            DeviceError, match=r"^values are off, so the numbers of this tensor are unknown, but .* need"
        ):
            eval(expression, names)
    assert KNOWN.equal(torch.arange(32.0).reshape(2, 16))


@pytest.mark.parametrize(
    ("dtype", "name"),
    [(ttsim.bfloat16, "bfloat16"), (ttsim.bfloat8_b, "float32"), (ttsim.float32, "float32"), (ttsim.int32, "int32")],
)
def test_types_are_those_of_known_numbers(dtype: ttsim.DataType, name: str) -> None:
    types = []
    for values in ("fast", "off"):
        with ttsim.open_device(values=values) as device:
            types.append(ttsim.to_torch(computed(device, dtype)).dtype)
    assert types == [getattr(torch, name)] * 2


def test_tensors_stay_unknown_on_the_host_and_back_on_a_device() -> None:
    with off() as device, ttsim.open_device(values="fast") as fast:
        there = computed(device)
        host = ttsim.from_device(there)
        for tensor in (host, copy.copy(host), copy.deepcopy(host), host.reshape((1, 32)),
                       host.to(ttsim.ROW_MAJOR_LAYOUT), host.to(device),
                       ttsim.from_torch(ttsim.to_torch(there), ttsim.bfloat8_b)):  # fmt: skip
            assert not tensor.known
            assert isinstance(ttsim.to_torch(tensor), UnknownTensor)
            assert "<no values>" in repr(tensor)
            with pytest.raises(DeviceError, match="opened with values='off'"):
                tensor.to_numpy()
        for call in (lambda: host.to(fast), lambda: pickle.dumps(host), lambda: host.to_list()):
            with pytest.raises(DeviceError, match="opened with values='off'"):
                call()
        written = ttsim.from_torch(KNOWN, ttsim.bfloat16, device=device)
        assert ttsim.to_torch(written).equal(KNOWN.to(torch.bfloat16))


def test_what_an_operation_would_write_is_not_known_any_more() -> None:
    with off() as device:
        old = ttsim.from_torch(KNOWN, ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device)
        assert ttsim.add(old, old, output_tensor=old).known is False
        old = ttsim.from_torch(KNOWN, ttsim.bfloat16, device=device)
        host = ttsim.from_device(old)
        ttsim.to_memory_config(ttsim.to_layout(computed(device), ttsim.ROW_MAJOR_LAYOUT), old.memory_config(),
                               output_tensor=old)  # fmt: skip
        assert not old.known
        ttsim.copy_device_to_host_tensor(old, host)
        assert not host.known
        again = ttsim.from_torch(KNOWN, ttsim.bfloat16, device=device)
        ttsim.copy_host_to_device_tensor(host, again)
        assert not again.known


def test_a_warning_says_it_once_at_the_users_line() -> None:
    warn_of_unknown.cache_clear()
    with off() as device:
        tensors = [computed(device), computed(device)]
        with pytest.warns(UserWarning, match=r"^values are off: .*numbers are unknown") as caught:
            list(map(ttsim.to_torch, tensors))
    assert [warning.filename for warning in caught] == [__file__]
