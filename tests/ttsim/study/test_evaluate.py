from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pytest

from device.errors import shown
from device.numbers.formats import BFLOAT16
from device.plan import Free, Plan
from ops.op_models import load_spec
from ttsim.runtime.types.layer import Layer
from ttsim.study.evaluate import Evaluator, Point, canonical, plan_key
from ttsim.study.layers.run import Settings, run_layer
from ttsim.study.store import Verdict


@dataclass(frozen=True)
class Thing:
    name: str
    told: int = field(default=0, compare=False)


class Pair(NamedTuple):
    name: str
    number: int


def test_the_text_of_a_plan_is_that_of_its_values():
    assert canonical((1, True, None, "a")) == "[1,True,None,'a']"
    assert canonical(Thing("a", 1)) == canonical(Thing("a", 2)) == f"{__name__}.Thing('a')"
    assert canonical((Pair("a", 1), ["a", 1])) == "[Pair['a',1],['a',1]]"
    assert canonical({"b": 1, "a": 2}) == canonical({"a": 2, "b": 1}) == "{'a':2,'b':1}"
    assert canonical({3, 1}) == "{1,3}"
    assert "bfloat16" in canonical(BFLOAT16)


def test_every_element_of_an_array_counts():
    first, second = np.zeros(5000), np.zeros(5000)
    assert canonical(first) == canonical(second)
    second[2500] = 1
    assert canonical(first) != canonical(second) != canonical(second.astype(np.float32))


def test_what_has_no_text_is_named():
    with pytest.raises(AssertionError, match="a plan holds a function"):
        canonical(shown)


def test_equal_plans_have_equal_keys():
    plan = Plan(steps=(Free("a"),))
    assert plan_key(plan) == plan_key(Plan(steps=(Free("a"),))) != plan_key(Plan(steps=(Free("b"),)))
    assert len(plan_key(plan)) == 16


SPEC = load_spec("wormhole_n150")
evaluate = Evaluator().row
LAYER = Layer(name="up", in_channels=32, out_channels=16, input_height=6, input_width=5, stride=(2, 2))
POINT = Point(layer=LAYER, spec=SPEC)


def test_the_key_hangs_on_all_that_the_row_hangs_on():
    other = replace(LAYER, source="a book")
    assert replace(POINT, layer=other).key == POINT.key
    others = [
        replace(POINT, lowering="phase"),
        replace(POINT, spec=SPEC.replace(dram_banks=6)),
        replace(POINT, layer=replace(LAYER, config={"act_block_h_override": 32})),
        replace(POINT, layer=replace(LAYER, name="down")),
        replace(POINT, values="fast"),
        replace(POINT, l1_small_size=1024),
        replace(POINT, strict=False),
    ]
    assert len({one.key for one in (POINT, *others)}) == 8


def test_inputs_are_flat():
    inputs = replace(POINT, layer=replace(LAYER, config={"act_block_h_override": 32})).inputs
    assert (inputs["in_channels"], inputs["kernel_size"], inputs["dtype"]) == (32, "2x2", None)
    assert (inputs["config.act_block_h_override"], inputs["lowering"], inputs["l1_small_size"]) == (
        32,
        "zero_insertion",
        32768,
    )
    assert not {"name", "source", "config", "compute"} & set(inputs)


@pytest.mark.parametrize("device", ["wormhole_n150", "blackhole_p150"])
def test_a_row_has_the_figures_of_a_report(device):
    spec = load_spec(device)
    row = evaluate(replace(POINT, spec=spec))
    summary = run_layer(LAYER, Settings(spec=spec, values="off", suggestions=False)).summary
    total = summary.cycles.total
    assert (row.verdict, row.error, row.layer, row.device) == (Verdict.FITS, "", "up", device)
    assert (row.l1_peak_bytes, row.l1_headroom_bytes) == (summary.l1.peak_total_bytes, summary.l1.headroom_bytes)
    assert (row.cycles, row.cycles_error_share) == (total.cycles, total.error.share)
    assert (row.dram_read_bytes, row.noc_bytes) == (total.traffic.dram_read_bytes, total.traffic.network_bytes)
    assert row.shard_layout == summary.partitions[0].scheme
    assert row.pcc is None


def test_plans_that_are_alike_are_timed_once():
    looking = Evaluator()
    rows = [looking.row(replace(POINT, layer=replace(LAYER, name=name))) for name in ("a", "b")]
    said = looking.row(replace(POINT, layer=replace(LAYER, config={"shard_layout": rows[0].shard_layout})))
    assert looking.timed == 1
    assert len({row.plan_key for row in (*rows, said)}) == 1
    assert replace(rows[0], key="", layer="") == replace(rows[1], key="", layer="")
    faster = looking.row(replace(POINT, spec=SPEC.replace(dram_bank_bytes_per_second=60e9)))
    assert looking.timed == 2
    assert faster.plan_key == said.plan_key
    assert faster.cycles < said.cycles


def test_what_was_asked_for_does_not_make_another_plan():
    tall = replace(LAYER, input_height=32, input_width=32, config={"shard_layout": "HEIGHT_SHARDED"})
    asked = ({}, {"act_block_h_override": 64}, {"act_block_h_override": 32}, {"force_split_reader": False})
    result = [replace(POINT, layer=replace(tall, config={**tall.config, **one})) for one in asked]
    rows = [Evaluator().row(point) for point in result]  # each timed for itself
    assert rows[0].plan_key == rows[1].plan_key != rows[2].plan_key
    figures = {row.plan_key: [] for row in rows}
    for row in rows:
        figures[row.plan_key].append(replace(row, key="", inputs={}))
    assert all(one == same[0] for same in figures.values() for one in same)


@pytest.mark.parametrize(
    ("point", "verdict", "words"),
    [
        (replace(POINT, layer=replace(LAYER, groups=5)), Verdict.REFUSED, "groups must divide"),
        (replace(POINT, layer=replace(LAYER, config={"x": 1})), Verdict.REFUSED, "x"),
        (replace(POINT, lowering="x"), Verdict.REFUSED, "lowering must be one of"),
        (
            replace(POINT, layer=replace(LAYER, input_height=300, input_width=300, input_memory="l1", in_channels=512)),
            Verdict.DOES_NOT_FIT,
            "Out of Memory",
        ),
        (replace(POINT, layer=replace(LAYER, kernel_size="ab")), Verdict.FAILED, "Error"),
    ],
)
def test_a_bad_point_is_a_row_with_its_error(point, verdict, words):
    row = evaluate(point)
    assert row.verdict is verdict
    assert words in row.error
    assert row.cycles is None


def test_accuracy_on_demand():
    looking = Evaluator()
    rows = [
        looking.row(replace(POINT, values="fast", layer=replace(LAYER, compute={"math_fidelity": fidelity})))
        for fidelity in ("LoFi", "HiFi4")
    ]
    assert 0.99 < rows[0].pcc < rows[1].pcc
    assert rows[0].rms_error > rows[1].rms_error
