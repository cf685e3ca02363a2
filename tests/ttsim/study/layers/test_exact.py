import math

import ml_dtypes
import numpy as np
import pytest

from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.run import ACTIVATIONS, exact_output, geometry_of, make_inputs

SMALL = {"in_channels": 6, "out_channels": 4, "input_height": 3, "input_width": 5}


def test_inputs_follow_the_seed_and_the_precision():
    layer = Layer(**SMALL, batch_size=2, groups=2, kernel_size=(3, 2), seed=7)
    inputs = make_inputs(layer)
    assert inputs.x.shape == (2, 3, 5, 6)
    assert inputs.w.shape == (6, 2, 3, 2)
    assert inputs.b.shape == (1, 1, 1, 4)
    assert all(np.array_equal(a, b) for a, b in zip(inputs, make_inputs(layer), strict=True))
    assert not np.array_equal(inputs.x, make_inputs(Layer(**SMALL, batch_size=2, seed=8)).x)
    assert np.array_equal(inputs.x, inputs.x.astype(ml_dtypes.bfloat16).astype(np.float32))
    full = make_inputs(Layer(**SMALL, input_dtype="float32", weights_dtype="float32", bias=False))
    assert not np.array_equal(full.x, full.x.astype(ml_dtypes.bfloat16).astype(np.float32))
    assert full.b is None


def test_groups_that_do_not_divide():
    with pytest.raises(ValueError, match=r"^groups must divide in_channels and out_channels, not 4 with 6 and 4; 2 is"):
        make_inputs(Layer(**SMALL, groups=4))


def test_padding_of_two_and_of_four():
    two = geometry_of(Layer(**SMALL, kernel_size=(4, 4), padding=(1, 2)))
    four = geometry_of(Layer(**SMALL, kernel_size=(4, 4), padding=(1, 1, 2, 2)))
    assert two == four
    assert [axis.pad_before for axis in two.axes] == [1, 2]
    uneven = geometry_of(Layer(**SMALL, kernel_size=(4, 4), padding=(0, 1, 2, 3)))
    assert [(axis.pad_before, axis.pad_after) for axis in uneven.axes] == [(0, 1), (2, 3)]


def by_definition(layer, inputs):
    geometry = geometry_of(layer)
    rows, cols = geometry.axes
    output = np.zeros((layer.batch_size, *geometry.output_shape, layer.out_channels))
    for y, x, i, j in np.ndindex(layer.input_height, layer.input_width, *layer.kernel_size):
        u = y * rows.stride + i * rows.dilation - rows.pad_before
        v = x * cols.stride + j * cols.dilation - cols.pad_before
        if 0 <= u < rows.output_size and 0 <= v < cols.output_size:
            output[:, u, v] += inputs.x[:, y, x].astype(np.float64) @ inputs.w[:, :, i, j]
    return output + (0 if inputs.b is None else inputs.b.reshape(-1))


@pytest.mark.parametrize("bias", [True, False])
def test_exact_output_is_the_definition(bias):
    layer = Layer(**SMALL, batch_size=2, kernel_size=(3, 2), stride=(2, 1), padding=(1, 0), bias=bias)
    inputs = make_inputs(layer)
    np.testing.assert_allclose(exact_output(layer, inputs), by_definition(layer, inputs), rtol=1e-12, atol=1e-12)


def test_without_mirroring_the_kernel_arrives_flipped():
    plain = Layer(**SMALL, kernel_size=(3, 3))
    inputs = make_inputs(plain)
    flipped = inputs._replace(w=inputs.w[..., ::-1, ::-1])
    other = Layer(**SMALL, kernel_size=(3, 3), mirror_kernel=False)
    np.testing.assert_array_equal(exact_output(plain, inputs), exact_output(other, flipped))


@pytest.mark.parametrize(("name", "at_one"), [("relu", 1), ("sigmoid", 1 / (1 + math.exp(-1))), ("gelu", 0.841344746)])
def test_activations(name, at_one):
    assert ACTIVATIONS[name](np.array([1.0])) == pytest.approx(at_one)
    layer = Layer(**SMALL, config={"activation": name})
    linear = exact_output(Layer(**SMALL), make_inputs(layer))
    np.testing.assert_allclose(exact_output(layer, make_inputs(layer)), ACTIVATIONS[name](linear))


def test_what_has_no_definition_here_is_none():
    layer = Layer(**SMALL, config={"padding_mode": "Replicate"})
    assert exact_output(layer, make_inputs(layer)) is None
    assert exact_output(Layer(**SMALL, config={"activation": "xielu"}), make_inputs(layer)) is None
