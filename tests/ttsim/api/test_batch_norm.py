"""batch_norm: numbers, running statistics, buffers and errors."""

import numpy as np
import pytest

import ttsim as ttnn


def on_device(device, values, dtype=ttnn.bfloat16):
    return ttnn.from_numpy(np.asarray(values, np.float32), dtype, layout=ttnn.TILE_LAYOUT, device=device)


@pytest.mark.parametrize("dtype", [ttnn.bfloat16, ttnn.float32])
def test_images_are_normalized_channel_by_channel(device, dtype):
    """The variance fills its tiles with numbers; the statistics of each channel alone count."""
    rng = np.random.default_rng(5)
    x, mean, weight, bias = (rng.normal(size=shape) for shape in ((2, 3, 33, 40), *[(1, 3, 1, 1)] * 3))
    tensors = [on_device(device, values, dtype) for values in (x, mean, weight, bias)]
    variance = ttnn.full((1, 3, 1, 1), 2.0, dtype=dtype, layout=ttnn.TILE_LAYOUT, device=device)
    result = ttnn.batch_norm(
        tensors[0], running_mean=tensors[1], running_var=variance, weight=tensors[2], bias=tensors[3]
    ).to_numpy()
    expected = (x - mean) / np.sqrt(2.0 + 1e-5) * weight + bias
    assert np.abs(result.astype(float) - expected).max() < (0.1 if dtype is ttnn.bfloat16 else 0.03)


def test_the_result_goes_into_a_given_tensor(device):
    x, target = on_device(device, np.full((1, 1, 32, 32), 3.0)), on_device(device, np.zeros((1, 1, 32, 32)))
    one = on_device(device, np.ones((1, 1, 1, 1)))
    result = ttnn.batch_norm(x, running_mean=one, running_var=one, output=target)
    assert result.buffer_address() == target.buffer_address()
    assert target.to_numpy()[0, 0, 0, 0] == 2.0


@pytest.mark.parametrize("values", ["exact", "fast"])
def test_training_normalizes_by_the_images_and_moves_the_running_statistics(values):
    """Two channels of ones and of threes and fives: means 1 and 4, variances 0 and 1, of 2 x 32 pixels 64 / 63."""
    x = np.ones((2, 2, 1, 32))
    x[:, 1] = np.tile([3.0, 5.0], 16)
    with ttnn.open_device(values=values) as device:
        images, running = (
            on_device(device, x),
            [on_device(device, np.full((1, 2, 1, 1), 8.0), ttnn.float32) for _ in "mv"],
        )
        result = ttnn.batch_norm(images, training=True, running_mean=running[0], running_var=running[1], momentum=0.25)
        assert result.to_numpy()[0, :, 0, :2].tolist() == [[0.0, 0.0], [-1.0, 1.0]]
        assert running[0].to_numpy().reshape(2).tolist() == [6.25, 7.0]  # 8 * 0.75 + 0.25 of the mean
        assert np.abs(running[1].to_numpy().reshape(2) - [6.0, 6.0 + 0.25 * 64 / 63]).max() < 2**-7


@pytest.mark.parametrize(("names", "changed"), [("m", [True, False]), ("v", [False, True]), ("", [False, False])])
def test_training_leaves_statistics_alone_that_it_does_not_get(device, names, changed):
    running = {key: on_device(device, np.full((1, 1, 1, 1), 8.0)) for key in ("running_mean", "running_var")}
    given = {key: tensor for key, tensor in running.items() if key[8] in names}
    with ttnn.profile(device) as profiled:
        ttnn.batch_norm(on_device(device, np.ones((1, 1, 32, 32))), training=True, **given)
    assert [tensor.to_numpy().item() != 8.0 for tensor in running.values()] == changed
    ran = [op.name for call in profiled.report().calls for op in call.operations]
    assert ("RunningStatistics" in ran) == any(changed)
    assert ran.count("BatchNormOperation") == 1


@pytest.mark.parametrize(
    ("shape", "arguments", "line"),
    [
        ((3, 32, 32), {}, "batch_norm not supported for tensors with rank < 4. (rank=3)"),
        ((1, 1, 32, 32), {"running_var": None}, "running_mean and running_var must be defined in evaluation mode"),
        ((1, 2, 32, 32), {}, "batch_mean_shape[1] must be the same as input's channel size."),
        ((1, 1, 32, 32), {"memory_config": ttnn.L1_HEIGHT_SHARDED_MEMORY_CONFIG}, "bad optional access"),
    ],
)
def test_errors_begin_as_those_of_the_real_library(device, shape, arguments, line):
    one = on_device(device, np.ones((1, 1, 1, 1)))
    with pytest.raises(ttnn.TTSimError) as refused:
        ttnn.batch_norm(on_device(device, np.ones(shape)), **{"running_mean": one, "running_var": one} | arguments)
    assert str(refused.value).startswith(line)


def test_a_result_of_another_data_type_is_refused_first(device):
    image = on_device(device, np.ones((1, 1, 32, 32)))
    target = ttnn.typecast(image, ttnn.float32 if image.dtype is ttnn.bfloat16 else ttnn.bfloat16)
    with pytest.raises(ttnn.DeviceError, match=r"^batch_norm: output dtype \(DataType::\w+\) must match input dtype"):
        ttnn.batch_norm(image, output=target)
