"""What functions of device tensors share."""

import numpy as np
import pytest

import ttsim
from ttsim.functions.device_calls import require_left_out, required_device


def test_what_is_left_out_or_says_no_is_no_request():
    require_left_out("f", first=None, second=False, third=(), fourth=[])


@pytest.mark.parametrize("value", [0, True, "", (0,), np.zeros(0)], ids=str)
def test_anything_else_is_refused_by_name(value):
    with pytest.raises(ttsim.ArgumentError, match=r"^f: other is not simulated; leave it out$"):
        require_left_out("f", none=None, other=value)


def test_a_tensor_on_the_host_has_no_device():
    with pytest.raises(ttsim.DeviceError, match=r"^f: Operands need to be on device!\n.*\.to\(device\)"):
        required_device("f", ttsim.Tensor([1.0]))
