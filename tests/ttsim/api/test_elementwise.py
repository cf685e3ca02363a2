"""Functions of single elements as users call them: what runs, where the result lies, what is refused."""

from dataclasses import replace

import numpy as np
import pytest

import ttsim as ttnn
from tests.shards import high
from tests.ttsim.api.captured import captured


def placed(device, array, place=None, layout=ttnn.TILE_LAYOUT):
    return ttnn.from_torch(
        np.asarray(array, np.float32), ttnn.bfloat16, layout=layout, device=device, memory_config=place
    )


def programs(call):
    """Device operations of a call, and size and place of each of their circular buffers."""
    names, _, nodes = captured(call)
    result = [node["params"] for node in nodes if node["node_type"] == "circular_buffer_allocate"]
    return names, [(int(one["size"]), int(one["globally_allocated"])) for one in result]


def test_operators_are_the_functions(device):
    x = placed(device, np.full((1, 1, 32, 32), 3.0))
    assert (x + x).to_numpy().max() == 6.0
    assert (x - 1).to_numpy().max() == 2.0
    assert (2 * x * x).to_numpy().max() == 18.0
    assert (7 - x).to_numpy().max() == 4.0
    assert (1.5 + x).to_numpy().max() == 4.5
    assert (x @ x).to_numpy().max() == 288.0


def test_quotients_name_what_is_missing(device):
    with pytest.raises(AttributeError, match="has no attribute 'div': ttsim does not simulate it"):
        placed(device, np.ones((1, 1, 32, 32))) / 2


def test_a_row_is_spread_in_a_buffer_of_its_own(device):
    x, row = placed(device, np.ones((1, 1, 64, 64))), placed(device, np.ones((1, 1, 1, 64)))
    names, buffers = programs(lambda: ttnn.add(x, row))
    assert names == ["BinaryNg"]
    assert buffers == [(4096, 0)] * 4


def test_a_number_has_a_tile(device):
    x = placed(device, np.ones((1, 1, 64, 64)))
    assert programs(lambda: ttnn.multiply(x, 0.5))[1] == [(4096, 0), (2048, 0), (4096, 0)]


def test_shards_are_worked_on_in_place_and_views_alone_are_not_shown(device):
    place = high((32, 64), 2)
    x = placed(device, np.ones((1, 1, 64, 64)), place)
    assert programs(lambda: ttnn.add(x, x)) == (["BinaryNg"], [])
    assert programs(lambda: ttnn.add(x, 1.0))[1] == [(4096, 1), (2048, 0), (4096, 1)]


@pytest.mark.parametrize(("shape", "in_place"), [((64, 1), 1), ((1, 1), 1), ((1, 64), 0), ((64, 64), 0)])
def test_shards_are_worked_on_in_place_beside_columns_and_numbers_elsewhere(device, shape, in_place):
    x = placed(device, np.ones((1, 1, 64, 64)), high((32, 64), 2))
    _, buffers = programs(lambda: ttnn.add(x, placed(device, np.ones((1, 1, *shape)))))
    assert {view for _, view in buffers[:1]} == {in_place}
    assert buffers[0] == buffers[-1]


def test_sharded_rows_go_through_tiles(device):
    place = high((32, 64), 2)
    x = placed(device, np.ones((1, 1, 64, 64)), place, ttnn.ROW_MAJOR_LAYOUT)
    names, _ = programs(lambda: ttnn.add(x, x))
    assert names == ["Tilize"] * 2 + ["BinaryNg", "Untilize"]


def test_the_result_can_be_written_into_a_given_tensor(device):
    x, target = placed(device, np.full((1, 1, 32, 32), -1.0)), placed(device, np.zeros((1, 1, 32, 32)))
    result = ttnn.add(x, -1.0, output_tensor=target)
    assert result is target
    assert target.to_numpy().max() == -2.0
    assert ttnn.relu(target, output_tensor=x).to_numpy().max() == 0.0


def test_shapes_must_go_together(device):
    x, y = placed(device, np.ones((1, 1, 32, 32))), placed(device, np.ones((1, 1, 32, 64)))
    with pytest.raises(ttnn.DeviceError, match=r"^Invalid subtile broadcast type\n"):
        ttnn.add(x, y)


def test_tensors_must_be_on_the_device():
    x = ttnn.from_torch(np.ones((1, 1, 32, 32), np.float32), ttnn.bfloat16, layout=ttnn.TILE_LAYOUT)
    with pytest.raises(ttnn.DeviceError, match=r"^Input tensor A must be on device"):
        ttnn.add(x, x)


def test_what_is_not_simulated_is_refused_by_name(device):
    x = placed(device, np.ones((1, 1, 32, 32)))
    with pytest.raises(ttnn.ArgumentTypeError, match="\nadd: there is no 'speed'"):
        ttnn.add(x, x, speed=1)
    with pytest.raises(ttnn.ArgumentTypeError, match="\nrelu: there is no 'speed'"):
        ttnn.relu(x, speed=1)
    with pytest.raises(ttnn.ArgumentError, match="use_legacy is not simulated"):
        ttnn.add(x, x, use_legacy=True)
    with pytest.raises(ttnn.ArgumentTypeError, match="input_tensor_b must be a Tensor or a number"):
        ttnn.add(x, "1")


def test_a_number_may_come_first(device):
    x = placed(device, np.full((1, 1, 32, 32), 3.0))
    assert ttnn.mul(2.0, x).to_numpy().max() == 6.0
    assert ttnn.add(2, x, fast_and_approximate_mode=True).to_numpy().max() == 5.0
    with pytest.raises(ttnn.ArgumentTypeError, match="input_tensor_a must be a Tensor, not"):
        ttnn.sub(2.0, 3.0)


def test_functions_with_an_underscore_write_into_the_first_tensor(device):
    x, y = placed(device, np.full((1, 1, 32, 32), 3.0)), placed(device, np.full((1, 1, 32, 32), 2.0))
    assert ttnn.add_(x, y).buffer_address() == x.buffer_address()
    assert ttnn.mul_(x, 4.0).to_numpy().max() == ttnn.sub_(x, y).to_numpy().max() + 2.0 == 20.0
    assert programs(lambda: ttnn.multiply_(x, y)) == (["BinaryNg"], [(4096, 0)] * 3)
    assert programs(lambda: ttnn.multiply(x, y))[1] == [(4096, 0)] * 3  # by the vector unit: a program of its own
    with pytest.raises(ttnn.DeviceError, match=r"^Shape of Output tensor Shape\(\[1, 1, 1, 32\]\) provided does not"):
        ttnn.add_(placed(device, np.ones((1, 1, 1, 32))), x)
    rows = placed(device, np.ones((1, 1, 32, 32)), layout=ttnn.ROW_MAJOR_LAYOUT)
    with pytest.raises(ttnn.ArgumentError, match="writes tiles into pages of rows"):
        ttnn.add_(rows, x)


def test_every_operation_takes_time(device):
    x = placed(device, np.ones((1, 1, 64, 64)))
    with ttnn.profile(device) as profile:
        ttnn.relu(ttnn.add(x, 1.0))
    names = [operation.name for call in profile.report().calls for operation in call.operations]
    assert names == ["BinaryNgDeviceOperation", "UnaryDeviceOperation"]
    assert all(operation.cycles > 0 for call in profile.report().calls for operation in call.operations)


def test_operands_with_activations_have_buffers_of_their_own(device):
    x = placed(device, np.full((1, 1, 64, 64), -3.0))
    relu = [ttnn.UnaryWithParam(ttnn.UnaryOpType.RELU)]
    names, buffers = programs(lambda: ttnn.add(x, x, input_tensor_a_activations=relu))
    assert (names, buffers) == (["BinaryNg"], [(4096, 0), (2048, 0), (4096, 0), (4096, 0)])
    assert ttnn.add(x, x, input_tensor_a_activations=relu).to_numpy().max() == -3.0
    assert ttnn.add_(x, 1.0, input_tensor_a_activations=relu).to_numpy().min() == 1.0


def test_activated_operands_in_shards_wait_in_as_many_tiles_as_dst_holds(device):
    x = placed(device, np.ones((1, 1, 64, 64)), high((32, 64), 2))
    relu = {"input_tensor_b_activations": ["relu"]}
    assert programs(lambda: ttnn.add(x, x, **relu))[1] == [(4096, 1), (4096, 1), (16384, 0), (4096, 1)]
    assert programs(lambda: ttnn.multiply(x, x, **relu))[1] == [(4096, 1), (4096, 1), (4096, 0), (4096, 1)]
    number = placed(device, np.ones((1, 1, 1, 1)))  # spread over tiles, which are then added one by one
    assert programs(lambda: ttnn.add(x, number, **relu))[1][2:3] == [(2048, 0)]
    wide = {"dtype": ttnn.float32, **relu}
    assert programs(lambda: ttnn.add(x, x, **wide))[1] == [(4096, 1), (4096, 1), (8192, 0), (8192, 1)]


def test_integers_are_combined_exactly(device):
    numbers = np.arange(-512, 512).reshape(1, 1, 32, 32) * 65537
    x = ttnn.from_torch(numbers, ttnn.int32, layout=ttnn.TILE_LAYOUT, device=device)
    assert np.array_equal((x + x).to_numpy(), 2 * numbers)
    assert np.array_equal(ttnn.relu(x).to_numpy(), np.maximum(numbers, 0))
    with pytest.raises(ttnn.DeviceError, match=r"^Unary: UnaryOpType::EXP does not support integer input dtype"):
        ttnn.exp(x)


def test_shapes_that_are_not_repeated_within_tiles(device):
    x = placed(device, np.ones((1, 1, 32, 50)))
    with pytest.raises(ttnn.DeviceError, match=r"^Invalid subtile broadcast type\n"):
        ttnn.add(x, placed(device, np.ones((1, 1, 32, 51))))
    with pytest.raises(ttnn.DeviceError, match=r"^Broadcasting rule violation at dimension index -1"):
        ttnn.add(x, placed(device, np.ones((1, 1, 1, 51))))


def test_shards_in_dram_are_not_worked_on_in_place(device):
    place = replace(high((32, 64), 2), buffer_type=ttnn.BufferType.DRAM)
    x = placed(device, np.ones((1, 1, 64, 64)), place)
    assert programs(lambda: ttnn.add(x, 2))[1] == [(4096, 0), (2048, 0), (4096, 0)]
