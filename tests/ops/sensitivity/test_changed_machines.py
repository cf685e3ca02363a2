"""With the plan held: a better machine is never slower, dimensions hold, and nothing is faster than it can be."""

import pytest

from ops.op_models import OP_MODELS, load_spec
from ops.passes.cycles import TimedOperation
from ops.sensitivity.effects import fixed_launches, fixed_operations, with_model
from ops.sensitivity.fields import Better, Dimension, numeric_fields, with_values
from ops.sensitivity.samples import planners_samples, samples
from ttsim.report.cycles import OperationTime

ROUNDING = 1e-9
PROGRAMS = {"conv2d", "eltwise", "halo", "matmul", "movement", "patch_matmul"}


def test_the_samples_run_every_program_that_has_a_model():
    spec = load_spec("blackhole_p150")
    held = with_model(fixed_operations(samples(), spec), spec)
    assert {one.program for one in held} >= PROGRAMS
    modeled = {work for work, meaning in OP_MODELS.items() if meaning.cycles is not None}
    assert {type(one.plan.steps[0].work) for one in held} >= modeled
    assert {one.name for one in held} >= {
        *("Halo", "Conv2d", "Matmul", "PatchMatmul", "PixelMatmul", "Reduce", "Full", "InterleavedToSharded"),
        *("ShardedToInterleaved", "Reshard", "Move", "Copy", "Pad", "Tilize", "TilizeWithValPadding", "Untilize"),
        *("UntilizeWithUnpadding", "Typecast", "FillPad", "ReshapeView", "PaddedSlice", "SliceWrite"),
    }
    schemes = {one.plan.steps[0].work.layout.scheme.name for one in held if one.program == "conv2d"}
    assert schemes == {"HEIGHT_SHARDED", "BLOCK_SHARDED", "WIDTH_SHARDED"}


def test_samples_have_names_of_their_own():
    names = [one.name for one in (*samples(), *planners_samples())]
    assert len(names) == len(set(names))


def test_a_better_machine_is_never_slower(machines):
    slower = []
    before = dict(zip(machines.held, machines.before, strict=True))
    for (field, factor), (device, after) in machines.changed.items():
        if field.better is Better.NEITHER:
            continue
        improved = (factor > 1) == (field.better is Better.LARGER)
        # On a faster clock a core's work takes as many cycles: what must not grow is time.
        second = device.clock_hz / machines.spec.clock_hz
        took = [(held, before[held].cycles, new.cycles) for held, new in after.items()]
        launches = machines.launches
        took.append((launches, launches.cycles(machines.spec), launches.cycles(device)))
        for held, old, new in took:
            grown = new / second / old - 1
            if (grown if improved else -grown) > ROUNDING:
                slower.append(f"{field.name} x {factor}: {held.program} {held.name} {grown:+.3%}")
    assert not slower, "\n".join(slower)


def test_nothing_is_faster_than_it_can_be(machines):
    """Math, DRAM and links at their full rates; and nothing works longer than the whole takes."""
    found = []
    before = dict(zip(machines.held, machines.before, strict=True))
    everywhere = {(None, 1.0): (machines.spec, before), **machines.changed}
    for (field, factor), (device, after) in everywhere.items():
        for held, cycles in after.items():
            reading = TimedOperation(name=held.name, cycles=cycles, fidelity_phases=phases_of(held))
            time = OperationTime(timed=reading, spec=device, call_cycles=0)
            shares = {
                f"roof of {time.roofline.bound}": time.roofline.share,
                "DRAM": time.traffic.dram_share,
                "math": time.math.utilization,
                **{stage.stage: stage.busy_share for group in time.groups for stage in group.stages},
            }
            over = {what: share for what, share in shares.items() if share > 1 + ROUNDING}
            if over:
                found.append(f"{field and field.name} x {factor}: {held.program} {held.name} {over}")
    assert not found, "\n".join(found)


def phases_of(held):
    return getattr(getattr(held.plan.steps[0].work, "matmul", held.plan.steps[0].work), "fidelity_phases", 0)


@pytest.mark.parametrize("name", ["wormhole_n150", "blackhole_p150"])
@pytest.mark.parametrize("factor", [2, 0.5])
class TestDimensions:
    """What is a rate of what: scaled together, figures of one dimension change the unit and nothing else."""

    @staticmethod
    def scaled(spec, factor, powers):
        values = {
            field.path: field.value * factor ** powers[field.dimension]
            for field in numeric_fields(spec)
            if field.dimension in powers and field.path[0] != "reader"
        }
        return with_values(spec, values)

    def test_all_clocks_and_rates_together_scale_time_alone(self, name, factor):
        spec = load_spec(name)
        faster = self.scaled(spec, factor, {Dimension.CLOCK: 1, Dimension.RATE: 1, Dimension.TIME: -1})
        for held in (*with_model(fixed_operations(samples(), spec), spec), fixed_launches(samples(), spec)):
            before, after = (held.cycles(one) for one in (spec, faster))
            assert after == pytest.approx(before, rel=ROUNDING), held.name
            assert after / faster.clock_hz == pytest.approx(before / spec.clock_hz / factor, rel=ROUNDING)

    def test_all_figures_by_the_cycle_together_scale_cycles_alone(self, name, factor):
        """Half the cycles for everything, at twice the bytes in each, is a machine of half the clock."""
        spec = load_spec(name)
        powers = {Dimension.CYCLES: 1, Dimension.CYCLE_RATE: -1, Dimension.RATE: -1, Dimension.TIME: 1}
        slower = self.scaled(spec, factor, powers)
        for held in with_model(fixed_operations(samples(), spec), spec):
            before, after = (held.cycles(one) for one in (spec, slower))
            assert after == pytest.approx(before * factor, rel=ROUNDING), held.name

    def test_a_clock_alone_leaves_what_cores_bind_and_never_saves_cycles(self, name, factor):
        spec = load_spec(name)
        if factor < 1:
            return
        faster = spec.replace(clock_hz=factor * spec.clock_hz)
        for held in with_model(fixed_operations(samples(), spec), spec):
            before, after = (held.cycles(one) for one in (spec, faster))
            assert before * (1 - ROUNDING) <= after <= before * factor * (1 + ROUNDING), held.name
            operation = held.operation(spec)
            if not operation.dram_read_bytes + operation.dram_written_bytes:  # cores and links have one clock
                assert after == before, held.name
