import numpy as np
import pytest

import ttsim


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"stride": [0, 1, 1]}, "stride must be greater than 0"),
        ({"groups": 0}, "groups must be greater than 0"),
        ({}, "conv3d: ttsim does not simulate it"),
    ],
)
def test_conv3d_is_refused(changed: dict[str, object], text: str) -> None:
    with ttsim.open_device(values="off") as device:
        x = ttsim.Tensor(np.zeros((1, 4, 8, 8, 32), np.float32), ttsim.bfloat16, device)
        with pytest.raises(RuntimeError, match=text):
            ttsim.experimental.conv3d(
                input_tensor=x, weight_tensor=x, device=device, output_channels=32, kernel_size=[3, 3, 3], **changed
            )
