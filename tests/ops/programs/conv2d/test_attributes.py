"""What a convolution tells readers of profiles, from a call whose layout is known."""

import re

import numpy as np

import ttsim as ttnn
from ttsim.recording.saving import record_of


def test_a_convolution_tells_blocks_cores_and_windows():
    with ttnn.open_device(l1_small_size=32768, values="off") as device, ttnn.profile(device) as profile:
        x = ttnn.Tensor(np.zeros((1, 1, 256, 32), np.float32), ttnn.bfloat16).to(device)
        w = ttnn.Tensor(np.zeros((32, 32, 2, 2), np.float32), ttnn.bfloat16)
        ttnn.conv_transpose2d(
            input_tensor=x, weight_tensor=w, device=device, in_channels=32, out_channels=32, batch_size=1,
            input_height=16, input_width=16, kernel_size=(2, 2), stride=(2, 2))  # fmt: skip
    (conv,) = (
        operation for operation in record_of(profile, "r").operations if operation.name == "Conv2dDeviceOperation"
    )
    text, facts = dict(conv.attributes), {fact.name: fact.value for fact in conv.time.facts}
    blocks = tuple(map(int, re.findall(r"=(\d+)", text["block_config"])))
    assert blocks == (*facts["act_block_tiles"], *facts["subblock_tiles"])
    parallel = text["parallelization_config"]
    assert f"num_cores_nhw={facts['input_cores']},num_cores_c_in=1,num_cores_c_out=1" in parallel
    assert "per_core_out_matrix_height_ntile=1,per_core_out_matrix_width_ntile=1" in parallel
    assert text["enable_split_reader"] == str(facts["split_reader"]).lower()
    assert "window_hw=(2,2), stride_hw=(2,2), padding=((0, 0), (0, 0))" in text["sliding_window_config"]
