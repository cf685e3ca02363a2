"""Spaces and searches: a candidate takes what the report on its call says, and no better one is left out."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

import ttsim
from device.errors import DeviceError
from device.memory.memory_config import Layout
from ops.planners.conv.arguments import LOWERINGS, SliceType
from tests.ttsim.study.tune.tuned_calls import families, question
from ttsim.study.tune.search import GRAIN, Search, evaluate, front
from ttsim.study.tune.space import SEARCHED, Space, allowed, arithmetics, measured_error


def space(kind, *, keep=(), **changes):
    asked = question(kind)
    call = replace(asked.call, conv_config=replace(asked.call.conv_config, **changes))
    return Space(call=call, spec=asked.snapshot.machine.spec, free_l1_bytes=1_300_000, keep=frozenset(keep))


def searched(kind="l1", **limits):
    """A search of a small space."""
    search = Search(snapshot=question(kind).snapshot, **limits)
    search.run(space(kind, keep=("core_grid", "output_layout", "transpose_shards")), most_untimed=0)
    return search


def everything(searched, snapshot):
    for first in families(searched):
        for member in searched.members(first):
            try:
                yield evaluate(member, snapshot)
            except DeviceError:
                continue


@pytest.mark.parametrize("kind", ["l1", "conv2d"])
def test_the_front_is_that_of_everything_up_to_the_grain(kind):
    search = searched(kind, effort=10_000)
    small = space(kind, keep=("core_grid", "output_layout", "transpose_shards"))
    whole = front(list(everything(small, search.snapshot)))
    grain = GRAIN * small.spec.l1.usable_bytes
    for candidate in whole:
        assert any(
            (1 - GRAIN) * other.cycles <= candidate.cycles and other.l1_peak_bytes <= candidate.l1_peak_bytes + grain
            for other in search.front
        )
    assert search.front[0].cycles == whole[0].cycles
    assert search.count.untried == 0
    assert search.count.passed > search.count.tried
    quick = searched(kind, effort=10_000, fastest_only=True)
    assert (quick.front[0].call, quick.count.untried) == (search.front[0].call, 0)
    assert quick.count.tried <= search.count.tried


def test_limits_of_a_search():
    early, useless = searched(effort=3), searched(effort=100, most_cycles=1.0)
    assert early.count.tried >= 3
    assert early.count.untried > 0
    assert early.count.least_untried_cycles > 0
    assert (useless.front, useless.count.tried) == ((), 0)
    begun, small = Search(snapshot=early.snapshot, effort=1), space("l1")
    begun.run(small, most_untimed=0, begin=[small.call])  # tried before all families
    assert begun.count.tried == 1
    assert [candidate.cycles for candidate in begun.front] == [evaluate(small.call, early.snapshot).cycles]


def test_a_front_keeps_what_nothing_beats():
    def made(cycles, l1_bytes, error=0.0):
        return SimpleNamespace(cycles=cycles, l1_peak_bytes=l1_bytes, rms_error=error)

    slow, fast, beaten, exact = made(9, 1), made(5, 3, 0.1), made(9, 2, 0.1), made(6, 3)
    assert front([slow, fast, beaten, exact, made(5, 3, 0.1)]) == (fast, exact, slow)


def test_families_differ_and_begin_with_the_library_s_choice():
    listed = families(space("l1"))
    assert listed[0].conv_config == question("l1").call.conv_config
    assert set(Counter(map(repr, listed)).values()) == {1}
    schemes = {getattr(family.conv_config.shard_layout, "name", "") for family in listed}
    assert schemes == {"", "HEIGHT_SHARDED", "BLOCK_SHARDED", "WIDTH_SHARDED"}
    assert {family.conv_config.transpose_shards for family in listed} == {False, True}
    assert {family.slice_config for family in listed} == {None}  # an input in L1 is not cut


@pytest.mark.parametrize("name", ["act_block_h_override", "shard_layout", "core_grid", "transpose_shards"])
def test_a_kept_field_stays(name):
    kept = space("l1", keep=[name])
    given = getattr(kept.call.conv_config, name)
    assert {repr(getattr(family.conv_config, name)) for family in families(kept)} == {repr(given)}


def test_everything_kept_is_the_call_itself():
    kept = space("l1", keep=SEARCHED, act_block_h_override=32)
    (only,) = {repr(family): family for family in families(kept)}.values()
    assert only == kept.call
    assert list(kept.members(only)) == [kept.call]


def test_members_hold_the_family_and_try_both_layouts():
    rows = space("l1", output_layout=Layout.ROW_MAJOR)
    first = families(rows)[0]
    members = list(rows.members(first))
    assert len(members) == 16
    assert first.conv_config.output_layout is Layout.TILE  # the layout that takes least stands for all
    assert members[0].conv_config.output_layout is Layout.ROW_MAJOR  # the call as given is tried first
    assert {member.conv_config.output_layout for member in members} == {Layout.TILE, Layout.ROW_MAJOR}


def test_an_image_in_dram_is_cut_along_both_axes():
    slices = dict.fromkeys(chosen.slice_config for chosen, _ in space("dram").schemes())
    assert next(iter(slices)) is None
    counts = {(part.slice_type, part.num_slices) for part in slices if part is not None}
    assert (SliceType.L1_FULL, 0) in counts
    assert {count for kind, count in counts if kind is SliceType.DRAM_HEIGHT} == {2, 3, 4, 6, 8, 16}
    assert not any(count > 16 for _, count in counts)


def test_plain_is_the_library_s_default():
    config = space("l1", act_block_h_override=64, enable_act_double_buffer=True, deallocate_activation=True).plain()
    config = config.conv_config
    assert (config.act_block_h_override, config.enable_act_double_buffer) == (0, False)
    assert config.deallocate_activation  # the caller decides about its own tensor


def test_arithmetics():
    call = question("l1").call
    assert allowed(("fidelity", "dtypes")) == {"math_fidelity", "weights_dtype", "dtype"}
    assert list(arithmetics(call, ())) == [call]
    given, *others = arithmetics(call, {"math_fidelity"})
    assert given is call
    assert [other.compute_config.fidelity_phases for other in others] == [3, 2, 1]
    assert len(list(arithmetics(call, {"weights_dtype", "dtype", "lowering"}))) == 8
    several = replace(call, groups=2, batch_size=2)
    assert [other.rules for other in arithmetics(several, {"lowering"})] == list(LOWERINGS.values())
    ordinary = question("conv2d").call
    assert list(arithmetics(ordinary, ())) == [ordinary]
    with pytest.raises(ttsim.ArgumentError, match="conv_transpose2d alone"):
        list(arithmetics(ordinary, {"math_fidelity"}))
    small = replace(call, in_channels=32, input_height=2, input_width=2)
    exact, *_, least = arithmetics(small, {"math_fidelity"})
    spec = question("l1").snapshot.machine.spec
    assert 0 < measured_error(exact, spec) < measured_error(least, spec) < 0.1
