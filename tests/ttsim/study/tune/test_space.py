"""What is searched: every way to lay a call out once, given fields kept, no more slices than there can be."""

from collections import Counter
from dataclasses import replace

import pytest

from device.memory.memory_config import Layout
from ops.planners.conv.arguments import SliceType
from tests.ttsim.study.tune.tuned_calls import question
from ttsim.study.tune.space import SEARCHED, Space

FREE = 1_300_000


def space(kind, **changes):
    asked = question(kind)
    call = replace(asked.call, conv_config=replace(asked.call.conv_config, **changes))
    return Space(call=call, spec=asked.ground.machine.spec, free_l1_bytes=FREE)


def test_families_differ_and_begin_with_the_library_s_choice():
    families = list(space("l1").families())
    assert families[0].conv_config == question("l1").call.conv_config
    seen = Counter(map(repr, families))
    assert set(seen.values()) == {1}
    schemes = Counter(getattr(one.conv_config.shard_layout, "name", "") for one in families)
    assert set(schemes) == {"", "HEIGHT_SHARDED", "BLOCK_SHARDED", "WIDTH_SHARDED"}
    assert {one.slice_config for one in families} == {None}  # an input in L1 is not cut


def test_everything_kept_is_the_call_itself():
    kept = replace(space("l1", act_block_h_override=32), kept=frozenset(SEARCHED))
    (only,) = {repr(one): one for one in kept.families()}.values()
    assert only == kept.call
    assert list(kept.members(only)) == [kept.call]


@pytest.mark.parametrize("name", ["act_block_h_override", "shard_layout", "core_grid", "transpose_shards"])
def test_a_kept_field_stays(name):
    searched = replace(space("l1"), kept=frozenset({name}))
    given = getattr(searched.call.conv_config, name)
    assert {repr(getattr(one.conv_config, name)) for one in searched.families()} == {repr(given)}


def test_members_hold_the_family_and_try_both_layouts():
    searched = space("l1", output_layout=Layout.ROW_MAJOR)
    first = next(searched.families())
    members = list(searched.members(first))
    assert len(members) == 16
    assert first.conv_config.output_layout is Layout.TILE  # what takes least stands for all
    assert members[0].conv_config.output_layout is Layout.ROW_MAJOR  # what is given is tried first
    assert {one.conv_config.output_layout for one in members} == {Layout.TILE, Layout.ROW_MAJOR}


def test_an_image_in_dram_is_cut_along_both_axes():
    families = list(space("dram").families())
    slices = dict.fromkeys(one.slice_config for one in families)
    assert next(iter(slices)) is None
    counts = {(one.slice_type, one.num_slices) for one in slices if one is not None}
    assert (SliceType.L1_FULL, 0) in counts
    assert {count for kind, count in counts if kind is SliceType.DRAM_HEIGHT} == {2, 3, 4, 6, 8, 16}
    assert not any(count > 16 for _, count in counts)


def test_plain_is_the_library_s_default():
    searched = space("l1", act_block_h_override=64, enable_act_double_buffer=True, deallocate_activation=True)
    config = searched.plain().conv_config
    assert (config.act_block_h_override, config.enable_act_double_buffer) == (0, False)
    assert config.deallocate_activation  # whose tensor it is, is not the tuner's to say
