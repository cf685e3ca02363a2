"""A candidate takes what the report on its call says."""

from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pytest

import ttsim
from device.errors import DeviceError
from device.memory.memory_config import Layout
from ops.planners.conv.arguments import SliceType
from tests.ttsim.study.tune.tuned_calls import options, question
from ttsim.study.tune.search import GRAIN, Search, evaluate, front
from ttsim.study.tune.space import SEARCHED, Space, allowed, arithmetics, measured_error


@pytest.mark.parametrize("kind", ["l1", "dram"])
def test_cycles_are_those_of_the_report(kind):
    asked = question(kind)
    result = evaluate(asked.call, asked.snapshot)
    memory = ttsim.L1_MEMORY_CONFIG if kind == "l1" else ttsim.DRAM_MEMORY_CONFIG
    with ttsim.open_device(l1_small_size=32768, spec="wormhole_n150", values="off") as device:
        report = ttsim.estimate_cycles(ttsim.conv_transpose2d, device=device, **options(memory))
    assert result.cycles == report.cycles
    assert 0 < result.around_cycles < result.cycles
    assert result.output.shape == (1, 1, 256, 32)


def test_what_is_refused_says_so():
    asked = question("dram")
    with pytest.raises(DeviceError, match="stride"):
        evaluate(replace(asked.call, stride=(0, 0)), asked.snapshot)


KEPT = frozenset({"core_grid", "output_layout", "transpose_shards"})


def space(kind, **changes):
    asked = question(kind)
    call = replace(asked.call, conv_config=replace(asked.call.conv_config, **changes))
    return Space(call=call, spec=asked.snapshot.machine.spec, free_l1_bytes=1_300_000)


def searched_on(kind):
    return replace(space(kind), keep=KEPT), question(kind).snapshot


def everything(searched, snapshot):
    for first in searched.families():
        for member in searched.members(first):
            try:
                yield evaluate(member, snapshot)
            except DeviceError:
                continue


@pytest.mark.parametrize("kind", ["l1", "conv2d"])
def test_the_front_is_that_of_everything_up_to_the_grain(kind):
    searched, snapshot = searched_on(kind)
    search = Search(snapshot=snapshot, effort=10_000)
    search.run(searched, most_untimed=0)
    whole = front(list(everything(searched, snapshot)))
    grain = GRAIN * searched.spec.l1.usable_bytes
    for one in whole:
        assert any(
            (1 - GRAIN) * other.cycles <= one.cycles and other.l1_peak_bytes <= one.l1_peak_bytes + grain
            for other in search.front
        )
    assert search.front[0].cycles * (1 - GRAIN) <= whole[0].cycles
    assert search.count.untried == 0
    assert search.count.passed > search.count.tried


def test_a_search_that_ends_early_says_what_is_left():
    searched, snapshot = searched_on("l1")
    search = Search(snapshot=snapshot, effort=3)
    search.run(searched, most_untimed=0)
    assert search.count.tried >= 3
    assert search.count.untried > 0
    assert 0 < search.count.least_untried_cycles <= search.front[0].cycles


def test_families_behind_the_first_ones_are_left_untried():
    searched, snapshot = searched_on("l1")
    search = Search(snapshot=snapshot, effort=10, most_families=2)
    search.run(searched, most_untimed=0)
    assert (search.count.untried, search.count.least_untried_cycles) == (1, 0)
    assert search.front


def test_what_takes_more_than_is_of_use_is_left_out():
    searched, snapshot = searched_on("l1")
    search = Search(snapshot=snapshot, effort=100, most_cycles=1.0)
    search.run(searched, most_untimed=0)
    assert (search.front, search.count.tried) == ((), 0)


def test_a_front_keeps_what_nothing_beats():
    def made(cycles, l1_bytes, error=0.0):
        return SimpleNamespace(cycles=cycles, l1_peak_bytes=l1_bytes, rms_error=error)

    slow, fast, beaten, exact = made(9, 1), made(5, 3, 0.1), made(9, 2, 0.1), made(6, 3)
    assert front([slow, fast, beaten, exact, made(5, 3, 0.1)]) == (fast, exact, slow)


def test_calls_to_begin_with_are_tried_before_all_families():
    searched, snapshot = searched_on("l1")
    search = Search(snapshot=snapshot, effort=1)
    search.run(searched, most_untimed=0, begin=[searched.call])
    assert search.count.tried == 1
    assert [one.cycles for one in search.front] == [evaluate(searched.call, snapshot).cycles]


def test_families_differ_and_begin_with_the_library_s_choice():
    families = list(space("l1").families())
    assert families[0].conv_config == question("l1").call.conv_config
    seen = Counter(map(repr, families))
    assert set(seen.values()) == {1}
    schemes = Counter(getattr(family.conv_config.shard_layout, "name", "") for family in families)
    assert set(schemes) == {"", "HEIGHT_SHARDED", "BLOCK_SHARDED", "WIDTH_SHARDED"}
    assert {family.slice_config for family in families} == {None}  # an input in L1 is not cut


def test_everything_kept_is_the_call_itself():
    kept = replace(space("l1", act_block_h_override=32), keep=frozenset(SEARCHED))
    (only,) = {repr(family): family for family in kept.families()}.values()
    assert only == kept.call
    assert list(kept.members(only)) == [kept.call]


@pytest.mark.parametrize("name", ["act_block_h_override", "shard_layout", "core_grid", "transpose_shards"])
def test_a_kept_field_stays(name):
    searched = replace(space("l1"), keep=frozenset({name}))
    given = getattr(searched.call.conv_config, name)
    assert {repr(getattr(family.conv_config, name)) for family in searched.families()} == {repr(given)}


def test_members_hold_the_family_and_try_both_layouts():
    searched = space("l1", output_layout=Layout.ROW_MAJOR)
    first = next(searched.families())
    members = list(searched.members(first))
    assert len(members) == 16
    assert first.conv_config.output_layout is Layout.TILE  # what takes least stands for all
    assert members[0].conv_config.output_layout is Layout.ROW_MAJOR  # what is given is tried first
    assert {member.conv_config.output_layout for member in members} == {Layout.TILE, Layout.ROW_MAJOR}


def test_an_image_in_dram_is_cut_along_both_axes():
    families = list(space("dram").families())
    slices = dict.fromkeys(family.slice_config for family in families)
    assert next(iter(slices)) is None
    counts = {(part.slice_type, part.num_slices) for part in slices if part is not None}
    assert (SliceType.L1_FULL, 0) in counts
    assert {count for kind, count in counts if kind is SliceType.DRAM_HEIGHT} == {2, 3, 4, 6, 8, 16}
    assert not any(count > 16 for _, count in counts)


def test_plain_is_the_library_s_default():
    searched = space("l1", act_block_h_override=64, enable_act_double_buffer=True, deallocate_activation=True)
    config = searched.plain().conv_config
    assert (config.act_block_h_override, config.enable_act_double_buffer) == (0, False)
    assert config.deallocate_activation  # whose tensor it is, is not the tuner's to say


def test_short_names():
    assert allowed(("fidelity", "dtypes")) == {"math_fidelity", "weights_dtype", "dtype"}
    with pytest.raises(ttsim.ArgumentError, match="allow takes"):
        allowed(("exactness",))


def test_nothing_allowed_is_the_call_alone():
    call = question("l1").call
    assert list(arithmetics(call, ())) == [call]


def test_the_given_comes_first_and_fidelity_falls():
    call = question("l1").call
    found = list(arithmetics(call, {"math_fidelity"}))
    assert found[0] is call
    assert [one.compute_config.fidelity_phases for one in found[1:]] == [3, 2, 1]
    assert len(list(arithmetics(call, {"weights_dtype", "dtype", "lowering"}))) == 8


def test_accuracy_of_conv2d_is_not_measured():
    call = question("conv2d").call
    assert list(arithmetics(call, ())) == [call]
    with pytest.raises(ttsim.ArgumentError, match="conv_transpose2d alone"):
        list(arithmetics(call, {"math_fidelity"}))


def test_fewer_bits_are_less_exact():
    asked = question("l1")
    call = replace(asked.call, in_channels=32, input_height=2, input_width=2)
    given, *_, least = arithmetics(call, {"math_fidelity"})
    spec = asked.snapshot.machine.spec
    assert 0 < measured_error(given, spec) < measured_error(least, spec) < 0.1
