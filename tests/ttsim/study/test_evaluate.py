"""A point as a row: keys of plans and points, figures, verdicts, accuracy."""

import gc
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


def test_texts_of_plans_are_equal_for_equal_plans():
    assert canonical((1, True, None, "a")) == "[1,True,None,'a']"
    assert canonical(Thing("a", 1)) == canonical(Thing("a", 2)) == f"{__name__}.Thing('a')"
    assert canonical((Pair("a", 1), ["a", 1])) == "[Pair['a',1],['a',1]]"
    assert canonical({"b": 1, "a": 2}) == canonical({"a": 2, "b": 1}) == "{'a':2,'b':1}"
    assert canonical({3, 1}) == "{1,3}"
    assert "bfloat16" in canonical(BFLOAT16)
    first, second = np.zeros(5000), np.zeros(5000)
    assert canonical(first) == canonical(second)
    second[2500] = 1
    assert canonical(first) != canonical(second) != canonical(second.astype(np.float32))
    with pytest.raises(AssertionError, match="a plan holds a function"):
        canonical(shown)
    key = plan_key(Plan(steps=(Free("a"),)))
    assert (len(key), key == plan_key(Plan(steps=(Free("a"),))), key == plan_key(Plan(steps=(Free("b"),)))) == (
        16,
        1,
        0,
    )


def test_the_text_of_a_plan_leaves_nothing_to_the_garbage_collector():
    """A sweep writes the texts of thousands of plans, hundreds of tuples each."""
    gc.collect()
    gc.disable()
    try:
        canonical((Thing("a", 1), [Pair("a", 1)]))
        assert gc.collect() == 0
    finally:
        gc.enable()


SPEC = load_spec("wormhole_n150")
LAYER = Layer(name="up", in_channels=32, out_channels=16, input_height=6, input_width=5, stride=(2, 2))
POINT = Point(layer=LAYER, spec=SPEC)


def of(**changes):
    """The point with another layer."""
    return replace(POINT, layer=replace(LAYER, **changes))


def test_the_key_depends_on_all_inputs_of_the_row():
    assert of(source="a book").key == POINT.key
    points = [
        POINT, of(config={"act_block_h_override": 32}), of(name="down"), of(compute={"packer_l1_acc": True}),
        *(replace(POINT, **change) for change in (
            {"lowering": "phase"}, {"spec": SPEC.replace(dram_banks=6)}, {"values": "fast"}, {"l1_small_size": 1024},
            {"strict": False})),
    ]  # fmt: skip
    assert len({point.key for point in points}) == 9


def test_inputs_are_flat():
    inputs = of(config={"act_block_h_override": 32}).inputs
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
    row = Evaluator().row(replace(POINT, spec=spec))
    summary = run_layer(LAYER, Settings(spec=spec, values="off", suggestions=False)).summary
    total = summary.cycles.total
    assert (row.verdict, row.error, row.layer, row.device) == (Verdict.FITS, "", "up", device)
    assert (row.l1_peak_bytes, row.l1_headroom_bytes) == (summary.l1.peak_total_bytes, summary.l1.headroom_bytes)
    assert (row.cycles, row.cycles_error_share) == (total.cycles, total.error.share)
    assert (row.dram_read_bytes, row.noc_bytes) == (total.traffic.dram_read_bytes, total.traffic.network_bytes)
    assert (row.shard_layout, row.pcc) == (summary.partitions[0].scheme, None)
    assert row.energy_femtojoules == sum(op.energy.femtojoules for op in total.operations)  # to the last digit


def test_equal_plans_are_timed_once():
    evaluator = Evaluator()
    rows = [evaluator.row(of(name=name)) for name in ("a", "b")]
    rows.append(evaluator.row(of(config={"shard_layout": rows[0].shard_layout})))
    assert (evaluator.timed, len({row.plan_key for row in rows})) == (1, 1)
    assert replace(rows[0], key="", layer="") == replace(rows[1], key="", layer="")
    faster = evaluator.row(replace(POINT, spec=SPEC.replace(dram_bank_bytes_per_second=60e9)))
    assert (evaluator.timed, faster.plan_key) == (2, rows[0].plan_key)
    assert faster.cycles < rows[0].cycles


def test_a_request_for_the_planners_own_choice_is_no_other_plan():
    sizes = {"input_height": 32, "input_width": 32}
    asked = ({}, {"act_block_h_override": 64}, {"act_block_h_override": 32}, {"force_split_reader": False})
    points = [of(**sizes, config={"shard_layout": "HEIGHT_SHARDED", **request}) for request in asked]
    rows = [Evaluator().row(point) for point in points]  # each timed for itself
    assert rows[0].plan_key == rows[1].plan_key != rows[2].plan_key
    by_plan = {row.plan_key: replace(row, key="", inputs={}) for row in rows}
    assert all(replace(row, key="", inputs={}) == by_plan[row.plan_key] for row in rows)


@pytest.mark.parametrize(
    ("point", "verdict", "words"),
    [
        (of(groups=5), Verdict.REFUSED, "groups must divide"),
        (of(config={"x": 1}), Verdict.REFUSED, "x"),
        (replace(POINT, lowering="x"), Verdict.REFUSED, "lowering must be one of"),
        (of(input_height=300, input_width=300, input_memory="l1", in_channels=512), Verdict.DOES_NOT_FIT, "Out of Mem"),
        (of(kernel_size="ab"), Verdict.REFUSED, "every side of shape must be an integer"),
        (of(in_channels="a"), Verdict.FAILED, "TypeError"),
    ],
)
def test_a_bad_point_is_a_row_with_its_error(point, verdict, words):
    row = Evaluator().row(point)
    assert (row.verdict, words in row.error, row.cycles) == (verdict, True, None)


def test_accuracy_on_demand():
    evaluator = Evaluator()
    low, high = (
        evaluator.row(replace(of(compute={"math_fidelity": fidelity}), values="fast")) for fidelity in ("LoFi", "HiFi4")
    )
    assert 0.99 < low.pcc < high.pcc
    assert low.rms_error > high.rms_error
