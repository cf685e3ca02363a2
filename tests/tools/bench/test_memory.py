"""Bytes of tensors in their data formats, and a layer that holds no whole copies of them in float32."""

import pytest

from tools.bench.plans import measure_layer, stored_bytes, tensor_bytes
from ttsim.study.layers.read import DEFAULT_LAYERS, read_layers

LAYERS = {layer.name: layer for layer in read_layers(DEFAULT_LAYERS)}

MOST_OF_STORED = 4.8  # 3.1 with compiled loops and 4.0 with numpy's pieces; copies of all tensors in float32 add 2.0


@pytest.mark.parametrize(("dtype", "of_a_tile"), [("bfloat16", 2048), ("float32", 4096), ("bfloat8_b", 1088)])
def test_bytes_of_tiles(dtype, of_a_tile):
    assert stored_bytes(3 * 1024, dtype) == 3 * of_a_tile


def test_bytes_of_a_layer_are_those_of_its_tensors():
    layer = LAYERS["vanilla_unet.upconv3"]
    assert (layer.input_dtype, layer.weights_dtype, layer.dtype) == ("bfloat8_b", "bfloat16", None)
    inputs, weights, outputs = 60 * 80 * 256, 256 * 128 * 2 * 2 + 128, 120 * 160 * 128
    assert tensor_bytes(layer, outputs) == 1.0625 * inputs + 2 * weights + 1.0625 * outputs  # 1088 bytes a tile


def test_a_layer_holds_parts_not_copies_of_its_tensors():
    found = measure_layer(LAYERS["vgg_unet.d3.up"])
    assert found["stored"] < found["peak"] < MOST_OF_STORED * found["stored"]
