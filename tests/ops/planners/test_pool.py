"""The plan of a pool: its halo, and the cores that hold it, worked by hand."""

from dataclasses import replace

import pytest

from device.errors import DeviceError
from device.memory.layouts import TensorSpec
from device.memory.memory_config import Layout
from device.numbers.formats import BFLOAT16, FLOAT32
from device.plan import Operation, Refuse
from ops.op_models import load_spec
from ops.planners.pool import PoolArguments, chosen_cores, plan_max_pool2d, result_shard
from tests.build import tensor_spec
from tests.shards import HEIGHT, WIDTH, in_box

SPEC = load_spec("wormhole_n150")


def call(channels=32, **how):
    """A pool of 16x16 pixels."""
    given = {
        "source": tensor_spec(f"1x1x256x{channels}"),
        "batch": 1,
        "image": (16, 16),
        "channels": channels,
        "kernel": (3, 3),
        "stride": (2, 2),
        "padding": (1, 1, 1, 1),
        "dilation": (1, 1),
    }
    return PoolArguments(**given | how)


@pytest.mark.parametrize(("batch", "shards"), [(2, 585), (4, 586), (3, 588), (1, 588)])
def test_sticks_of_images_in_shards_are_shared_out_to_the_images(batch, shards):
    """Rounded up for each image and then for each core, which counts in how many shards the library sees."""
    rows = -(-batch * 28 * 32 // 21)
    source = TensorSpec((batch, 28, 32, 32), BFLOAT16, Layout.ROW_MAJOR, in_box(HEIGHT, (rows, 32), 7, 3))
    how = {"kernel": (2, 2), "stride": (3, 3), "padding": (0, 0, 0, 0), "dilation": (2, 2)}
    with pytest.raises(DeviceError, match=f"^Number of shards along height {shards} must not exceed"):
        plan_max_pool2d(call(source=source, batch=batch, image=(28, 32), **how), SPEC)


@pytest.mark.parametrize(
    ("data_format", "text"), [(BFLOAT16, "max_pool2d: return_indices is not simulated"), (FLOAT32, "Only BFLOAT16")]
)
def test_indices_are_refused_where_their_program_would_run(data_format, text):
    source = replace(tensor_spec("1x1x256x32"), data_format=data_format)
    steps = plan_max_pool2d(call(source=source, return_indices=True), SPEC).steps
    ends = [step for step in steps if isinstance(step, Operation | Refuse)]
    told = [step.text if isinstance(step, Refuse) else step.refused for step in ends]
    assert next(one for one in told if one).startswith(text)


def pool(channels, image=(16, 16), scheme=None, tiled=False):
    source = tensor_spec(f"1x1x{image[0] * image[1]}x{channels}")
    return call(channels, source=source, image=image, kernel=(2, 2), padding=(0, 0, 0, 0), scheme=scheme, tiled=tiled)


def shards_of(sizes):
    return result_shard(sizes, chosen_cores(sizes, SPEC.grid))


@pytest.mark.parametrize(("channels", "columns"), [(8, 16), (16, 16), (24, 32), (40, 64), (48, 48), (72, 96), (80, 80)])
def test_shards_of_whole_half_tiles_stay_as_wide_as_they_are(channels, columns):
    assert shards_of(pool(channels, scheme=HEIGHT))[1] == columns


def test_the_scheme_that_takes_least_is_chosen():
    """64 results: 64 cores of one, or two cores of 64 rows and 16 channels, 2 KiB as a tile's rows of HEIGHT are."""
    assert chosen_cores(pool(32), SPEC.grid).scheme is HEIGHT
    assert chosen_cores(pool(32, image=(14, 16)), SPEC.grid).scheme is WIDTH  # 56 rows of 32 B are under 32 of 64 B
