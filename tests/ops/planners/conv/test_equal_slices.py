"""Slices that are alike are planned once, and nothing shows it."""

from dataclasses import replace

import pytest

from device.memory.memory_config import Layout
from device.spec.device_spec import load_spec
from ops.planners.conv import plan as conv_plan
from ops.planners.conv.arguments import CONV2D, CONV_TRANSPOSE2D, ConvConfig, SliceConfig, SliceType
from ops.planners.conv.plan import plan_convolution
from ops.planners.conv.slicing import OutputSlice
from tests.build import sized_call
from tests.shards import BLOCK, WIDTH

SPEC = load_spec("wormhole_n150")
DOWN, ACROSS, ROWS, TILES = SliceType.DRAM_HEIGHT, SliceType.DRAM_WIDTH, Layout.ROW_MAJOR, Layout.TILE
CONFIGS = [
    *((CONV_TRANSPOSE2D, *how) for how in ((DOWN, TILES, None), (ACROSS, TILES, BLOCK), (ACROSS, ROWS, WIDTH))),
    *((CONV2D, *how) for how in ((DOWN, ROWS, None), (ACROSS, TILES, WIDTH))),
]


def call(rules, kind, layout, scheme):
    """32 channels to 32, 40 x 192, in six slices."""
    return sized_call(
        (40, 192),
        (32, 32),
        rules=rules,
        padding=(1, 1, 1, 1),
        conv_config=ConvConfig(output_layout=layout, shard_layout=scheme),
        slice_config=SliceConfig(slice_type=kind, num_slices=6),
    )


@pytest.mark.parametrize("config", CONFIGS)
def test_a_slice_like_an_earlier_one_has_the_plan_it_would_have_had(config, monkeypatch):
    planned = []
    once = conv_plan.l1_path
    monkeypatch.setattr(conv_plan, "l1_path", lambda *a, **more: planned.append(a) or once(*a, **more))
    arguments = call(*config)
    plan = plan_convolution(arguments, SPEC, free_l1_bytes=1_000_000)
    assert len(planned) < 6
    monkeypatch.setattr(OutputSlice, "at_origin", property(lambda part: part))  # now no slice is like another
    planned.clear()
    apart = plan_convolution(replace(arguments), SPEC, free_l1_bytes=1_000_000)
    assert len(planned) == 6
    assert plan.steps == apart.steps
    assert plan.tensors == apart.tensors
    assert plan.results == apart.results
