"""ttnn.conv1d against the definition, and as a conv2d of images of one row."""

import numpy as np
import pytest

import ttsim


@pytest.fixture
def device():
    with ttsim.open_device(l1_small_size=32768) as opened:
        yield opened


def call(device, rows, weight, **changes):
    sizes = {"in_channels": 32, "out_channels": 32, "batch_size": 1, "input_length": 20, "kernel_size": 5}
    tensors = {"input_tensor": rows, "weight_tensor": weight, "device": device}
    return ttsim.conv1d(**{**tensors, **sizes, **changes})


def test_a_row_is_an_image_of_one_row(device):
    rng = np.random.default_rng(0)
    row, weight = (rng.standard_normal(shape).astype(np.float32) for shape in ((1, 20, 32), (32, 32, 5)))
    given = ttsim.Tensor(row, ttsim.bfloat16).to(device)
    result, length, (prepared, bias) = call(
        device, given, ttsim.Tensor(weight, ttsim.bfloat16), padding=(4, 0), stride=2, return_output_dim=True,
        return_weights_and_bias=True)  # fmt: skip
    assert (result.shape, length, prepared.shape, bias) == ((1, 1, 10, 32), 10, (1, 1, 160, 32), None)
    padded = np.pad(row[0], ((4, 0), (0, 0))).astype(float)
    wanted = np.stack([np.einsum("kc,ock->o", padded[2 * i : 2 * i + 5], weight) for i in range(10)])
    assert np.corrcoef(result.to_numpy().ravel(), wanted.ravel())[0, 1] > 0.9999
    image = given.reshape(1, 1, 20, 32)
    same = call(device, image, ttsim.Tensor(weight[:, :, None], ttsim.bfloat16, device), padding=(4, 0), stride=2)
    assert np.array_equal(same.to_numpy(), result.to_numpy())


def test_captures_name_the_function_alone(device):
    row, weight = ttsim.Tensor(np.zeros((1, 20, 32)), ttsim.bfloat16), ttsim.Tensor(np.zeros((32, 32, 5)))
    ttsim.graph.begin_graph_capture()
    call(device, row.to(device), weight, padding=2)
    names = ttsim.graph.extract_calltrace(ttsim.graph.end_graph_capture())
    assert [name for name in names if name.startswith("ttnn.")] == ["ttnn.conv1d"]


def test_rows_must_be_as_many_as_the_arguments_say(device):
    row, weight = ttsim.Tensor(np.zeros((1, 21, 32)), ttsim.bfloat16), ttsim.Tensor(np.zeros((32, 32, 5)))
    with pytest.raises(ttsim.DeviceError, match=r"shape \[1, 21, 32\] has not batch_size x input_length x in_channels"):
        call(device, row.to(device), weight)


def test_slices_that_are_refused_behind_a_fold_are_told(device):
    row, weight = ttsim.Tensor(np.zeros((1, 64, 1)), ttsim.bfloat16), ttsim.Tensor(np.zeros((32, 1, 4)), ttsim.bfloat16)
    two = ttsim.Conv2dSliceConfig(slice_type=ttsim.Conv2dDRAMSliceWidth, num_slices=2)
    folds = ttsim.Conv2dConfig(enable_kernel_stride_folding=True)
    sizes = {"in_channels": 1, "input_length": 64, "kernel_size": 4, "stride": 2}
    with pytest.raises(ttsim.DeviceError, match=r"^Number of slices \(2\) exceeds the maximum allowed \(1\)"):
        call(device, row.to(device, ttsim.DRAM_MEMORY_CONFIG), weight, slice_config=two, conv_config=folds, **sizes)
