"""Mistakes that porters of scripts make: each error names the rule, the value and what would work."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import ttsim as ttnn
from ttsim.runtime.tracebacks import shortened

torch = pytest.importorskip("torch")


class Ported:
    """A script's tensors and calls."""

    def __init__(self, device: ttnn.Device) -> None:
        self.device = device
        self.host = ttnn.from_torch(torch.zeros(1, 1, 64, 32), ttnn.bfloat16)
        self.x = self.host.to(device)

    def weights(self, *shape: int, dtype: ttnn.DataType = ttnn.bfloat16) -> ttnn.Tensor:
        return ttnn.from_numpy(np.zeros(shape), dtype)

    def conv(self, *left_out: str, **changed: Any) -> ttnn.Tensor:
        arguments = {
            "input_tensor": self.x, "weight_tensor": self.weights(32, 32, 2, 2), "device": self.device,
            "in_channels": 32, "out_channels": 32, "batch_size": 1, "input_height": 8, "input_width": 8,
            "kernel_size": (2, 2), "stride": (2, 2),
        } | changed  # fmt: skip
        return ttnn.conv_transpose2d(**{name: value for name, value in arguments.items() if name not in left_out})


@pytest.fixture(scope="module")
def ported() -> Iterator[Ported]:
    with ttnn.open_device(l1_small_size=32768, values="off") as device:
        yield Ported(device)


def closed(ported: Ported) -> ttnn.Tensor:
    with ttnn.open_device(values="off") as device:
        x = ported.host.to(device)
    return ttnn.relu(x)


MISTAKES: dict[str, tuple[Callable[[Any], object], tuple[str, ...]]] = {
    "wrong layout": (
        lambda ported: ttnn.matmul(ported.x, ported.x),
        ("Inputs to matmul must be tilized", "it is in ROW_MAJOR; use to_layout(TILE_LAYOUT)"),
    ),
    "host tensor": (lambda ported: ttnn.relu(ported.host), ("must be on device", "HOST", "with .to(device)")),
    "shape of weights": (
        lambda ported: ported.conv(weight_tensor=ported.weights(32, 16, 2, 2)),
        ("must have the shape [32, 32, 2, 2] (in_channels, out_channels / groups, ", "not [32, 16, 2, 2]"),
    ),
    "shape of the input": (
        lambda ported: ported.conv(input_height=9),
        ("input_height=9, input_width=8, in_channels=32 needs 2304 elements", "[1, 1, 64, 32] has 2048"),
    ),
    "no device": (
        lambda ported: ported.conv("device"),
        ("device is missing; it must be Device; ttnn.open_device returns one",),
    ),
    "missing name": (
        lambda ported: ttnn.conv_transpose3d,
        ("module 'ttnn' has no attribute 'conv_transpose3d'", "nearest names: conv_transpose2d", "dir(ttnn)"),
    ),
    "out of L1": (
        lambda ported: ttnn.zeros(
            (1, 1, 65536, 1024), ttnn.bfloat16, device=ported.device, memory_config=ttnn.L1_MEMORY_CONFIG
        ),
        ("Not enough space to allocate", "B a bank are missing: free tensors", "keep it in DRAM"),
    ),
    "closed device": (closed, ("Input Tensor is not allocated", "by close_device()", "keep it allocated")),
    "torch tensor": (
        lambda ported: ported.conv(input_tensor=torch.zeros(1, 1, 64, 32)),
        ("input_tensor must be Tensor, not a torch.Tensor; ttnn.from_torch makes one of it",),
    ),
    "data type of torch": (
        lambda ported: ported.conv(dtype=torch.bfloat16),
        ("dtype must be DataType or None, not torch.bfloat16; write ttnn.bfloat16",),
    ),
    "data type as a text": (
        lambda ported: ttnn.from_torch(torch.zeros(1), dtype="bfloat16"),  # type: ignore[arg-type]
        ("dtype must be a DataType, not 'bfloat16'; write ttnn.bfloat16",),
    ),
    "layout as a text": (
        lambda ported: ttnn.from_torch(torch.zeros(1), layout="tile"),  # type: ignore[arg-type]
        ("layout must be a Layout, not 'tile'; write ttnn.Layout.TILE",),
    ),
    "integers as weights": (
        lambda ported: ported.conv(weight_tensor=ported.weights(32, 32, 2, 2, dtype=ttnn.int32)),
        ("weights on the host must be bfloat16 or float32, not int32; set conv_config.weights_dtype",),
    ),
    "misspelled keyword": (lambda ported: ported.conv(stirde=2), ("no 'stirde'; did you mean 'stride'?",)),
    "misspelled plain keyword": (
        lambda ported: ttnn.from_torch(torch.zeros(1), dtyp=None),  # type: ignore[call-arg]
        ("from_torch: there is no 'dtyp', did you mean 'dtype'?",),
    ),
    "unknown plain keyword": (
        lambda ported: ttnn.to_torch(ported.x, foo=1),  # type: ignore[call-arg]
        ("to_torch: there is no 'foo'; there are tensor, dtype, torch_rank",),
    ),
    "a number for a pair": (lambda ported: ported.conv(kernel_size=2), ("not 2; write (2, 2)",)),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_with_rule_value_and_fix(mistake: str, ported: Ported) -> None:
    call, words = MISTAKES[mistake]
    with pytest.raises((ttnn.TTSimError, AttributeError, TypeError)) as raised:
        call(ported)
    with shortened(raised.value):
        text = "\n".join([str(raised.value), *getattr(raised.value, "__notes__", ())])
    assert [word for word in words if word not in text] == [], text
    assert not getattr(raised.value, "__notes__", ())
