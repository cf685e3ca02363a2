from dataclasses import replace

import pytest

from device.errors import ArgumentError
from ops.op_models import load_spec
from ttsim.study.space import Space, axis
from ttsim.types.layer import Layer

N150, P150 = load_spec("wormhole_n150"), load_spec("blackhole_p150")
LAYER = Layer(name="a", in_channels=32, out_channels=16, input_height=6, input_width=5)


def test_a_space_is_a_product():
    axes = (axis("act_block_h_override", [32, None], N150), axis("dram.banks", [6, 8], N150))
    space = Space(layers=(LAYER, replace(LAYER, name="b")), devices=(N150, P150), axes=axes)
    samples = list(space.samples())
    assert len(samples) == len({one.point.key for one in samples}) == 16
    point, labels = samples[1]
    assert labels == {"device.dram.banks": "6", "config.act_block_h_override": None}
    assert (point.layer.config, point.spec.dram.banks, point.spec.name) == ({}, 6, "wormhole_n150, dram.banks=6")
    assert [one.point.spec.dram.banks for one in samples[:8]] == [6, 6, 8, 8, 6, 6, 8, 8]
    assert {one.point.layer.name for one in samples[:8]} == {"a"}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"layers": ()}, "there are no layers"),
        ({"devices": ()}, "there are no devices"),
        ({"layers": (LAYER, LAYER)}, "two of the layers are called 'a'"),
        ({"devices": (N150, N150.replace(dram_banks=6))}, "two of the devices are called 'wormhole_n150'"),
        ({"axes": (axis("lowering", ["frame"], N150),) * 2}, "two of the axes are called 'lowering'"),
    ],
)
def test_what_could_not_be_told_apart(changes, words):
    with pytest.raises(ArgumentError, match=words):
        Space(**{"layers": (LAYER,), "devices": (N150,), **changes})
