import numpy as np

import ttsim
from device.cores import first_cores
from device.time.stages import CoreGroupCycles, OperationCycles, Stage, StageCycles
from ops.op_model import Description, Detail
from ops.passes.cycles import TimedOperation
from tests.ttsim.report.ran_operations import untimed
from ttsim.report.cycle_report import cycle_report
from ttsim.report.cycles import DOES, CallRun, stage_times, tied_stages
from ttsim.report.explain import explain_call
from ttsim.report.formatting import count_of, percent


def test_a_call_in_words(report):
    lines = report.explain().splitlines()
    assert lines[0] == (
        "ttnn.conv_transpose2d takes 5,000 cycles (5.00 us) on wormhole_n150, in 2 device operations. "
        "Conv2dDeviceOperation takes 80.0 % of it. Its definition needs 21 MFLOP, the matrix units do 105 MFLOP "
        "(20.0 % useful; the rest are inserted zeros and padding to tiles): 4.19 TFLOP/s of useful work, all matrix "
        "units of the device 16.0 % busy."
    )
    assert lines[1] == (
        "- Conv2dDeviceOperation: 4,000 cycles (80.0 %) on 32 cores, bound by math (the matrix unit multiplies). On "
        "the critical path: math 62.5 %, dram 25.0 %, reader 12.5 %. Waiting for others: reader 37.5 %, math 10.0 %. "
        "Its matrix units multiply 40.0 % of the time (HiFi2), 40.0 % of it useful. It reads 80 kB from DRAM, "
        "writes 20 kB to DRAM (at 25 GB/s, 8.7 % of its peak) and sends 48 kB between cores. At best math would take "
        "800 cycles: it reaches 20.0 % of that."
    )
    assert lines[2] == (
        "- HaloDeviceOperation: 1,000 cycles (20.0 %) on 4 cores, bound by network (transfers wait for others on "
        "the networks). Busy: network 90.0 %, start 10.0 %. It sends 12 kB between cores. At best network would "
        "take 50 cycles: it reaches 5.0 % of that. Without contention it would take 750 cycles. 3 of its cores are"
        " done 60.0 % earlier than the last."
    )
    assert lines[3].startswith("Cycles count kernel time of every device operation")
    assert "They leave out dispatch and launch of programs" in lines[3]


def test_small_operations_are_told_together(halo, conv, spec):
    report = cycle_report([CallRun(name="f", spec=spec, ran=(conv,) * 30)], spec)
    assert report.explain().count("\n- ") == 30  # none is above the limit: all are told
    report = cycle_report([CallRun(name="f", spec=spec, ran=(*(conv,) * 10, halo))], spec)
    assert "- The others take 2.4 %: HaloDeviceOperation." in report.explain()


def test_one_operation_alone(conv, spec):
    report = cycle_report([CallRun(name="f", spec=spec, ran=(conv,))], spec)
    assert "in one device operation." in report.explain()


def test_calls_without_operations(spec):
    assert cycle_report([], spec).explain() == "No call that takes cycles was made on wormhole_n150."
    empty = cycle_report([CallRun(name="f", spec=spec, ran=())], spec)
    assert empty.explain().startswith("f takes no cycles on wormhole_n150.\nCycles count ")


def test_operations_without_a_model_are_named(conv, spec):
    unknown = untimed("SortDeviceOperation", "nothing is known of it")
    report = cycle_report([CallRun(name="f", spec=spec, ran=(conv, unknown))], spec)
    line = "- Not counted: SortDeviceOperation, nothing is known of it"
    assert line in report.explain().splitlines()
    assert line in str(report).splitlines()
    assert report.cycles == 4000


def test_what_is_not_counted_is_said_first(conv, spec):
    """Each name once; a report of which nothing is missing does not mention it."""
    missing = [untimed(name, "no model") for name in ("Sort", "Fold", "Sort")]
    calls = [
        CallRun(name="f", spec=spec, ran=(conv, missing[0])),
        CallRun(name="g", spec=spec, ran=tuple(missing)),
        CallRun(name="h", spec=spec, ran=(conv,)),
    ]
    report = cycle_report(calls, spec)
    assert str(report).splitlines()[0] == ("wormhole_n150: 8,000 cycles, 8.00 us at 1 GHz, not counting Sort and Fold")
    told = [line for line in report.explain().splitlines() if line[:2] in ("f ", "g ", "h ")]
    assert told[0].startswith(
        "f takes 4,000 cycles (4.00 us) on wormhole_n150, in one device operation, not counting Sort. Its definition"
    )
    assert told[1] == "g takes no cycles on wormhole_n150, not counting Sort and Fold."
    assert told[2].startswith("h takes 4,000 cycles (4.00 us) on wormhole_n150, in one device operation. Its")


def test_every_stage_has_a_meaning():
    assert set(Stage) == set(DOES)


def test_figures_in_words():
    assert [count_of(value) for value in (0, 999, 1000, 1.5e6, 2e9, 3.25e12)] == [
        "0 ", "999 ", "1 k", "1.5 M", "2 G", "3.25 T",
    ]  # fmt: skip
    assert percent(0.1234) == "12.3 %"


def bound(*stages, description=Description(), cycles=100_000):  # noqa: B008 - frozen
    """An operation whose first stage is said to bind it."""
    group = CoreGroupCycles(cores=first_cores(4, 8, 8), cycles=cycles, stages=stages)
    made = OperationCycles(cycles=cycles, groups=(group,), bound_by=stages[0].stage)
    return TimedOperation(name="Op", cycles=made, description=description)


def told(operation, spec):
    report = cycle_report([CallRun(name="f", spec=spec, ran=(operation,))], spec)
    return report.operations[0], report.explain().splitlines()[1]


def test_near_ties_are_named(spec):
    """Two readers of weights and the matrix unit, as in upconv4: none of them binds the operation alone."""
    operation = bound(
        StageCycles(Stage.MATH, 24_576, critical_cycles=24_576),
        StageCycles(Stage.WEIGHT_READER, 40_000, critical_cycles=24_570),
        StageCycles(Stage.WEIGHT_MULTICAST, 30_000, critical_cycles=19_823),
        StageCycles(Stage.TILIZE, 31_031, critical_cycles=31_031 - 20_000),
        StageCycles(Stage.READER, 20_000, critical_cycles=20_000),
        description=Description(stages={Stage.WEIGHT_READER: "weights are read from DRAM"}),
        cycles=100_000,
    )
    figures, line = told(operation, spec)
    assert figures.tied_with == ("weight reader", "reader", "weight multicast")  # 24,576 - 5,000 and more
    assert (
        "bound by math (the matrix unit multiplies: 24,576 cycles), nearly tied with weight reader (weights are read "
        "from DRAM: 24,570 cycles, and 19,823 for its multicast), reader (data is brought in: 20,000 cycles) and "
        "weight multicast (blocks of weights are sent on: 19,823 cycles)."
    ) in line


def test_what_is_far_behind_is_no_tie(spec):
    few = bound(
        StageCycles(Stage.MATH, 900, critical_cycles=900),
        StageCycles(Stage.PACK, 440, critical_cycles=440),
        cycles=9900,
    )
    assert told(few, spec)[0].tied_with == ()  # within 5 % of all, and less than half of the leader
    figures, line = told(bound(StageCycles(Stage.READER, 95_000), StageCycles(Stage.WRITER, 89_000)), spec)
    assert figures.tied_with == ()
    assert "bound by reader (data is brought in)." in line
    assert told(bound(StageCycles(Stage.READER, 95_000), StageCycles(Stage.WRITER, 91_000)), spec)[0].tied_with == (
        "writer",
    )
    assert tied_stages((), "math", 0) == ()
    stages = stage_times((StageCycles(Stage.START, 2_500), StageCycles(Stage.WRITER, 600)), of_cycles=5_000)
    assert tied_stages(stages, "writer", 5_000) == ()  # the start takes longer, but binds nothing


def test_the_facts_of_the_plan_are_told(spec):
    facts = (
        Detail(name="scheme", value="HEIGHT_SHARDED", text="HEIGHT_SHARDED"),
        Detail(name="k_blocks", value=2, text="2 K blocks"),
    )
    operation = bound(StageCycles(Stage.MATH, 1), description=Description(facts=facts))
    figures, line = told(operation, spec)
    assert figures.facts == facts
    assert line.endswith(" Planned: HEIGHT_SHARDED, 2 K blocks.")


def test_every_core_is_told_the_same(spec):
    operation = bound(
        StageCycles(Stage.READER, 1), description=Description(stages={Stage.READER: "pages are read from DRAM"})
    )
    figures, _ = told(operation, spec)
    assert {one.does for group in figures.groups for one in group.stages} == {"pages are read from DRAM"}


def test_functions_that_were_never_compared_are_named() -> None:
    with ttsim.open_device(l1_small_size=32768, values="off") as device, ttsim.profile(device) as profile:
        x = ttsim.Tensor(np.ones((1, 1, 32, 32), np.float32), ttsim.bfloat16, device, ttsim.TILE_LAYOUT)
        ttsim.exp(x)
        ttsim.tanh(x)
        ttsim.add(x, x, activations=["relu"])
        ttsim.add_(x, x)
        ttsim.linear(x, x, activation="sigmoid")
    told = [explain_call(call, "wormhole_n150") for call in profile.report().calls]
    facts = [[fact.text for one in call.operations for fact in one.facts] for call in profile.report().calls]
    assert facts[0] == []
    assert facts[1] == ["numbers of tanh in a 16-bit Dst never compared with the real kernel's"]
    assert facts[2] == ["numbers of relu fused into add never compared with the real kernel's"]
    assert f"Planned: {facts[1][0]}." in told[1]
    assert told[3].endswith(
        "- Values: outputs of add_ were never compared with the real library's (docs/values.md, Activation)."
    )
    assert not any("compared" in text for text in (told[0], told[4]))
