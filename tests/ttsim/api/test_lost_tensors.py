"""What calls say of a tensor that was deallocated: the real library's first line, which is not the same for all."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ttsim

INPUT = "Input Tensor is not allocated"
L1 = ttsim.L1_MEMORY_CONFIG
CALLS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "add A": (lambda lost, kept: ttsim.add(lost, kept), "Input Tensor A is not allocated"),
    "add B": (lambda lost, kept: ttsim.add(kept, lost), "Input Tensor B is not allocated"),
    "add itself": (lambda lost, kept: ttsim.add(lost, lost), "Input Tensor A is not allocated"),
    "multiply by a number": (lambda lost, kept: ttsim.multiply(lost, 2.0), INPUT),
    "typecast": (lambda lost, kept: ttsim.typecast(lost, ttsim.float32), INPUT),
    "to_memory_config": (lambda lost, kept: ttsim.to_memory_config(lost, ttsim.DRAM_MEMORY_CONFIG), INPUT),
    "transpose": (lambda lost, kept: ttsim.transpose(lost, 2, 3), INPUT),
    "permute": (lambda lost, kept: ttsim.permute(lost, (0, 1, 3, 2)), INPUT),
    "slice": (lambda lost, kept: ttsim.slice(lost, [0, 0, 0, 0], [1, 1, 32, 32]), INPUT),
    "concat": (lambda lost, kept: ttsim.concat([kept, lost], 3), "Tensor is not allocated"),
    "reshape": (lambda lost, kept: ttsim.reshape(lost, (1, 1, 128, 32)), "Tensor is not allocated"),
    "move": (lambda lost, kept: ttsim.move(lost), "Tensor is not allocated"),
    "upsample": (lambda lost, kept: ttsim.upsample(lost, 2), "upsample expects an allocated device tensor as input"),
    "matmul": (lambda lost, kept: ttsim.matmul(lost, kept), "Operand to matmul must be on device"),
    "matmul, second": (lambda lost, kept: ttsim.matmul(kept, lost), INPUT),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_deallocated_tensor_is_named_as_the_real_library_names_it(call: str) -> None:
    function, line = CALLS[call]
    with ttsim.open_device(l1_small_size=32768, spec="wormhole_n150", values="off") as device:
        host = ttsim.Tensor(np.zeros((1, 1, 64, 64), np.float32), ttsim.bfloat16, layout=ttsim.TILE_LAYOUT)
        lost, kept = host.to(device, L1), host.to(device, L1)
        ttsim.deallocate(lost)
        with pytest.raises(RuntimeError) as error:
            function(lost, kept)
    first, *rest = str(error.value).splitlines()
    assert first == line
    assert rest[0].startswith("it was deallocated")
