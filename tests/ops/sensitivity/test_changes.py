"""Devices with changes that text gives."""

import re
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path

import pytest

from device.errors import ArgumentError, ArgumentTypeError, SpecError, shown
from device.time.network import page_round_trip_cycles, read_latency_cycles, shared_cycles, torus_of
from device.time.stages import Stage
from ops.op_models import OP_MODELS
from ops.passes.cycles import TimedOperation
from ops.programs.kernel_costs import TransferCosts, multicast_cycles, read_page_cycles
from ops.sensitivity.changes import LONGEST, changed, formula, load_spec, split_changes
from ops.sensitivity.effects import fixed_launches, fixed_operations
from ops.sensitivity.fields import Better, Dimension, numeric_fields, scaled, with_values
from ops.sensitivity.read_set import fields_asked
from ops.sensitivity.samples import planners_samples, samples
from ttsim.report.cycles import OperationTime

SPEC = load_spec("wormhole_n150")


COSTLY = ("compute.phase", "noc.hop", "noc.interface", "compute.unpack_tile", "conv_costs.start", "halo_costs.start")
LONG = [f"{name}_cycles=40" for name in COSTLY]
FILE_ORDER = "clock_hz=1.2GHz, grid=9x7, l1.bytes=2MiB, dram.banks=16, dram.achieved_share=90%"


@pytest.mark.parametrize(
    ("changes", "name", "figures"),
    [
        (["dram.banks=16", "l1.bytes=2MiB"], "l1.bytes=2MiB, dram.banks=16", {"dram_banks": 16, "l1_bytes": 2 << 20}),
        (
            ["dram.banks = 16", "clock_hz=800_000_000"],
            "clock_hz=800MHz, dram.banks=16",
            {"dram_banks": 16, "clock_hz": 8e8},
        ),
        (["grid=9x7"], "grid=9x7", {"grid_cols": 9, "grid_rows": 7}),
        (["grid.rows=7", "grid.cols=9"], "grid=9x7", {"grid_cols": 9, "grid_rows": 7}),
        (
            ["dram.achieved_share=0.9", "l1.bytes=2048KiB", "grid=9x7", "clock_hz=1.2e9", "dram.banks=16"],
            FILE_ORDER,
            {},
        ),
        (["l1.bytes=64KiB", "l1.base_bytes=32KiB"], "l1.bytes=64KiB, l1.base_bytes=32KiB", {"l1_bytes": 1 << 16}),
        (["dram.banks=12", "clock_hz=1e9"], "", {}),  # what they were
        ([], "", {}),
    ],
)
def test_fields_have_the_values_of_the_text_and_the_name_says_so(changes, name, figures):
    other = changed(SPEC, changes)
    assert other.name == ", ".join(filter(None, ("wormhole_n150", name)))
    assert other == other.replace(**figures)
    assert load_spec(other.name) == load_spec(other) == other


def test_names_of_changed_devices():
    assert changed(SPEC, ["dram.banks=16", "name=lab card"]).name == "lab card"
    first, second = changed(SPEC, LONG), changed(SPEC, [*LONG[:-1], "halo_costs.start_cycles=1"])
    assert first.name.startswith("wormhole_n150 with 6 changes (")
    assert first.name != second.name
    step = changed(changed(SPEC, ["dram.banks=6"]), ["clock_hz=0.8GHz", "dram.banks=16"])
    assert step == changed(SPEC, ["dram.banks=16", "clock_hz=800_000_000"])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["dram.bank=16"], r"^unknown field 'dram\.bank', did you mean 'dram\.banks'\?; `ttsim devices NAME` prints"),
        (["dram_banks=16"], r"^unknown field 'dram_banks', did you mean 'dram\.banks'\?"),
        (["dram=16"], r"^dram is no field but has some; give one of dram\.banks, dram\.bank_bytes"),
        (["dram.banks"], r"^a change is FIELD=VALUE, not 'dram\.banks'; such as dram\.banks=16"),
        (["dram.banks="], r"^a change is FIELD=VALUE"),
        (["grid=9"], r"^grid must be COLUMNSxROWS, not '9'; such as grid=9x7"),
        (["grid=0x7"], r"^grid: cols must be a number above zero, not 0"),
        (["l1.bytes=64KiB"], "bytes must be above base_bytes"),
        (["grid=9x7", "grid.cols=3"], r"^grid\.cols is changed twice, the second time by 'grid\.cols=3'; keep one"),
        ("dram.banks=16", r"must be a list of texts, not one text; give \['dram\.banks=16'\]"),
    ],
)
def test_changes_that_are_refused(changes, message):
    with pytest.raises((SpecError, ArgumentTypeError), match=message):
        changed(SPEC, changes)


def test_a_device_is_loaded_with_changes_behind_its_name(tmp_path):
    expected = changed(SPEC, ["dram.banks=16", "noc.worker_cols=1,2,3"])
    assert load_spec("wormhole_n150, dram.banks=16,noc.worker_cols=1,2,3") == expected
    path = tmp_path / "mine.toml"
    path.write_text('extends = "wormhole_n150"\nclock_hz = 8e8\n', encoding="utf-8")
    assert load_spec(f"{path}, dram.banks=16").clock_hz == 800_000_000
    assert load_spec(path) == load_spec(str(path))
    with pytest.raises(SpecError, match="unknown device 'wormhole_n1'"):
        load_spec("wormhole_n1, dram.banks=16")
    with pytest.raises(SpecError, match="cannot be read"):
        load_spec(Path("nowhere.toml, dram.banks=16"))
    assert split_changes("a.toml, reader.tilize[0].dst_16bit_cycles=4, grid=9x7") == (
        "a.toml", ("reader.tilize[0].dst_16bit_cycles=4", "grid=9x7"))  # fmt: skip
    assert split_changes("a, b.toml") == ("a, b.toml", ())


ROUNDING = 1e-9
PROGRAMS = {"conv2d", "eltwise", "halo", "matmul", "copy", "patch_matmul"}


def test_the_samples_run_every_program_that_has_a_model():
    spec = load_spec("blackhole_p150")
    held = modeled_operations(spec)
    assert {one.program for one in held} >= PROGRAMS
    modeled = {op for op, model in OP_MODELS.items() if model.cycles is not None}
    assert {type(one.plan.steps[0].op) for one in held} >= modeled
    assert {one.name for one in held} >= {
        *("Halo", "Conv2d", "Matmul", "PatchMatmul", "PixelMatmul", "Reduce", "Full", "InterleavedToSharded"),
        *("ShardedToInterleaved", "Reshard", "Move", "Copy", "Pad", "Tilize", "TilizeWithValPadding", "Untilize"),
        *("UntilizeWithUnpadding", "Typecast", "FillPad", "ReshapeView", "PaddedSlice", "SliceWrite"),
    }
    names = [sample.name for sample in (*samples(), *planners_samples())]
    assert len(names) == len(set(names))
    schemes = {one.plan.steps[0].op.layout.scheme.name for one in held if one.program == "conv2d"}
    assert schemes == {"HEIGHT_SHARDED", "BLOCK_SHARDED", "WIDTH_SHARDED"}


@cache
def modeled_operations(spec):
    """Every device operation of the sample plans whose cycles have a model."""
    return fixed_operations(samples(), spec)


@cache
def machines(name, factors, every=1):
    """Operations with what they take on a device; and a device for each field and factor, with those that read it."""
    spec = load_spec(name)
    before = {operation: operation.operation(spec) for operation in modeled_operations(spec)[::every]}
    read = {one: fields_asked(one.operation, spec) for one in before}
    changed = {}
    for field, factor in product(numeric_fields(spec), factors):
        fewer_cores = field.path[0] == "grid" and factor < 1  # than the plan that is fixed has
        device = None if field.path[0] == "reader" or fewer_cores else scaled(spec, field, factor)
        if device is not None and field.name == "dram.banks" and factor > 1:
            device = at_the_same_nodes(device, int(factor))
        if device is not None:
            changed[field, factor] = device, {one: one.operation(device) for one in before if field.name in read[one]}
    return spec, before, changed


def at_the_same_nodes(spec, times):
    """A device whose further banks answer where the first ones do: elsewhere, few cores may find links busier."""
    nodes = {name: getattr(spec.noc, name) * times for name in ("dram_cols", "dram_rows", "dram_second_rows")}
    return replace(spec, noc=replace(spec.noc, **nodes))


MACHINES = pytest.mark.parametrize(
    ("name", "factors", "every"),  # one operation of so many
    [("wormhole_n150", (2.0,), 3), pytest.param("blackhole_p150", (2.0, 0.5), 2, marks=pytest.mark.slow)],
)


@MACHINES
def test_a_better_machine_is_never_slower(name, factors, every):
    slower = []
    spec, before, changed = machines(name, factors, every)
    launches = fixed_launches(samples(), spec)
    for (field, factor), (device, after) in changed.items():
        if field.better is Better.NEITHER:
            continue
        improved = (factor > 1) == (field.better is Better.LARGER)
        # On a faster clock a core's work takes as many cycles: what must not grow is time.
        second = device.clock_hz / spec.clock_hz
        took = [(held, before[held].cycles, new.cycles) for held, new in after.items()]
        took.append((launches, launches.cycles(spec), launches.cycles(device)))
        for held, old, new in took:
            grown = new / second / old - 1
            if (grown if improved else -grown) > ROUNDING:
                slower.append(f"{field.name} x {factor}: {held.program} {held.name} {grown:+.3%}")
    assert not slower, "\n".join(slower)


@MACHINES
def test_nothing_is_faster_than_it_can_be(name, factors, every):
    """Math, DRAM and links at their full rates; and nothing works longer than the whole takes."""
    found = []
    spec, before, changed = machines(name, factors, every)
    for (field, factor), (device, after) in {(None, 1.0): (spec, before), **changed}.items():
        for held, cycles in after.items():
            context = TimedOperation(name=held.name, cycles=cycles, fidelity_phases=phases_of(held))
            time = OperationTime(timed=context, spec=device, call_cycles=0)
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
    return getattr(getattr(held.plan.steps[0].op, "matmul", held.plan.steps[0].op), "fidelity_phases", 0)


@pytest.mark.parametrize(("name", "factor"), [("wormhole_n150", 2), ("blackhole_p150", 0.5)])
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
        for held in (*modeled_operations(spec), fixed_launches(samples(), spec)):
            before, after = (held.cycles(one) for one in (spec, faster))
            assert after == pytest.approx(before, rel=ROUNDING), held.name
            assert after / faster.clock_hz == pytest.approx(before / spec.clock_hz / factor, rel=ROUNDING)

    def test_all_figures_by_the_cycle_together_scale_cycles_alone(self, name, factor):
        """Half the cycles for everything, at twice the bytes in each, is a machine of half the clock."""
        spec = load_spec(name)
        powers = {Dimension.CYCLES: 1, Dimension.CYCLE_RATE: -1, Dimension.RATE: -1, Dimension.TIME: 1}
        slower = self.scaled(spec, factor, powers)
        for held in modeled_operations(spec):
            before, after = (held.cycles(one) for one in (spec, slower))
            assert after == pytest.approx(before * factor, rel=ROUNDING), held.name

    def test_a_clock_alone_leaves_what_cores_bind_and_never_saves_cycles(self, name, factor):
        spec = load_spec(name)
        faster = spec.replace(clock_hz=2 * spec.clock_hz)
        for held in modeled_operations(spec):
            before, after = (held.cycles(one) for one in (spec, faster))
            assert before * (1 - ROUNDING) <= after <= before * 2 * (1 + ROUNDING), held.name
            operation = held.operation(spec)
            if not operation.dram_read_bytes + operation.dram_written_bytes:  # cores and links have one clock
                assert after == before, held.name


TILE_BYTES = 2048


def test_half_the_link_takes_twice_as_long_for_what_the_wire_bounds():
    half = SPEC.replace(noc_flit_bytes=16)
    assert read_page_cycles(SPEC, TILE_BYTES) == pytest.approx(2048 / 30)  # 32 bytes, 30 of them contents
    assert read_page_cycles(half, TILE_BYTES) == pytest.approx(2048 / 15)
    for spec in (SPEC, half):  # 64 bytes are on the wire before the next page is asked for
        assert read_page_cycles(spec, 64) == SPEC.costs_of(TransferCosts).page_issue_cycles
    sent = [multicast_cycles(spec, TILE_BYTES, 8) for spec in (SPEC, half)]
    assert sent[1] - sent[0] > 2048 / 30 - 1e-6  # all of it, and what multicasts lose
    assert shared_cycles(half, 1e6) == shared_cycles(SPEC, 1e6)


def test_twice_the_channels_deliver_twice_as_much_and_answer_no_sooner():
    twice = SPEC.replace(dram_banks=24)
    assert shared_cycles(SPEC, 1e6) == pytest.approx(1e6 / (12 * 24 * 0.922))  # 24 GB/s each at 1 GHz
    assert shared_cycles(twice, 1e6) == pytest.approx(1e6 / (24 * 24 * 0.922))
    assert read_latency_cycles(twice) == read_latency_cycles(SPEC)
    assert page_round_trip_cycles(twice, TILE_BYTES) == page_round_trip_cycles(SPEC, TILE_BYTES)


def test_a_faster_clock_waits_more_cycles_for_dram_and_as_many_for_links():
    fast = SPEC.replace(clock_hz=2_000_000_000)
    assert read_latency_cycles(SPEC) == pytest.approx(95 + 9 * 22 + 88)
    assert read_latency_cycles(fast) == pytest.approx(95 + 9 * 22 + 2 * 88)
    assert shared_cycles(fast, 1e6) == pytest.approx(2 * shared_cycles(SPEC, 1e6))
    assert read_page_cycles(fast, TILE_BYTES) == read_page_cycles(SPEC, TILE_BYTES)


def test_a_wider_matrix_unit_halves_the_products_and_leaves_the_rest():
    wide = SPEC.replace(compute_phase_cycles=8)
    for operation in modeled_operations(SPEC):
        if operation.program != "conv2d":
            continue
        before, after = (
            {stage.stage: stage.busy_cycles for stage in operation.operation(spec).slowest.stages}
            for spec in (SPEC, wide)
        )
        assert after[Stage.MATH] == pytest.approx(before[Stage.MATH] / 2)
        assert {key: value for key, value in after.items() if key not in (Stage.MATH, Stage.DRAM)} == pytest.approx(
            {key: value for key, value in before.items() if key not in (Stage.MATH, Stage.DRAM)}
        )


@pytest.mark.parametrize(
    ("cols", "rows", "nodes"),
    [
        (8, 8, (10, 12)),  # the card's
        (1, 1, (10, 12)),  # some of the card's
        (9, 7, (11, 12)),  # one column more than the card has, besides its two of other nodes
        (20, 16, (22, 18)),
    ],
)
def test_a_larger_grid_has_longer_rings(cols, rows, nodes):
    spec = SPEC.replace(grid_cols=cols, grid_rows=rows)
    torus = torus_of(spec)
    assert (torus.cols, torus.rows) == nodes
    assert torus.round_trip_cycles == pytest.approx(95 + 9 * sum(nodes))
    assert len(torus.worker_cols) >= cols
    assert len(torus.worker_rows) >= rows


# one reads while one writes
MOVEMENTS_BY_TWO = {
    "attention",
    "concat",
    "copy",
    "kv_cache",
    "paged_cache",
    "pad",
    "permute",
    "repeat",
    "reshape",
    "roll",
    "slice",
    "split",
    "typecast",
    "upsample",
}
SLOWER_WITH_ONE = {"conv2d", "halo", "matmul", "patch_matmul", "phase_conv2d"} | MOVEMENTS_BY_TWO


@pytest.mark.parametrize(("processors", "slower"), [(1, SLOWER_WITH_ONE), (2, set()), (3, set())])
def test_missing_data_movement_processors_cost_time(processors, slower):
    spec = SPEC.replace(data_movement_processors=processors)
    found, faster = set(), set()
    for operation in modeled_operations(SPEC):
        before, after = (operation.cycles(device) for device in (SPEC, spec))
        assert before / 2 - 1e-6 < after < 2 * before + 1e-6
        if after > before + 1e-6:
            found.add(operation.program)
        elif after < before - 1e-6:
            faster.add(operation.program)
    assert found == slower
    if processors == 3:  # the third one reads the second half and writes
        assert {"conv2d"} <= faster <= {"conv2d", "matmul", "patch_matmul"}
    else:
        assert not faster


@pytest.mark.parametrize(("name", "cols", "rows"), [("wormhole_n150", 1, 1), ("blackhole_p150", 20, 16)])
def test_every_grid_runs_every_program(name, cols, rows):
    spec = load_spec(name).replace(grid_cols=cols, grid_rows=rows)
    held = fixed_operations((*samples(), *planners_samples()), spec)
    assert {one.program for one in held} >= {"conv2d", "matmul", "copy", "patch_matmul"}
    for one in held:
        context = TimedOperation(name=one.name, cycles=one.operation(spec))
        time = OperationTime(timed=context, spec=spec, call_cycles=0)
        assert time.cycles > 0
        assert time.math.utilization <= 1 + 1e-9
        assert time.roofline.share <= 1 + 1e-9, (one.name, time.roofline)


FIELDS = {"grid.cols": 8.0, "grid.rows": 7.0, "l1.bytes": 2.0**21, "reader.tilize[0].dst_16bit_cycles": 107.0}


@pytest.mark.parametrize(
    ("text", "value", "names"),
    [
        ("grid.cols * grid.rows * (1 + l1.bytes / 2**20)", 168.0, ("grid.cols", "grid.rows", "l1.bytes")),
        ("-grid.cols ** 2 + +1", -63.0, ("grid.cols",)),
        ("2 ** 3 ** 2", 512.0, ()),
        ("min(grid.cols, grid.rows, 5.5) - max(1, 2)", 3.5, ("grid.cols", "grid.rows")),
        ("reader.tilize[0].dst_16bit_cycles / 2", 53.5, ("reader.tilize[0].dst_16bit_cycles",)),
        (" 1e-1 ", 0.1, ()),
        (7, 7.0, ()),
        ("max(2, min(5, 3))", 3.0, ()),
        ("+".join(["1"] * 250), 250.0, ()),
        ("(" * 50 + "1" + ")" * 50, 1.0, ()),
    ],
)
def test_what_a_formula_gives(text, value, names):
    found = formula(text, FIELDS)
    assert (found.value(FIELDS), found.names) == (value, names)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("__import__('os')", r"^a formula must not have \"__import__\('os'\)\"; use numbers, fields, \+ - \* /"),
        ("grid.cols.__class__", r"^unknown field 'grid\.cols\.__class__'"),
        ("grid.col", r"^unknown field 'grid\.col', did you mean 'grid\.cols'\?"),
        *(
            (text, f"^a formula must not have {re.escape(shown(text))}; use")
            for text in (
                "lambda: 1",
                "abs(1)",
                "min()",
                "min(1, key=2)",
                "1 if 2 else 3",
                "7 // 2",
                "True",
                "'a'",
                "1j",
                "not 1",
            )
        ),
        ("min(*[1, 2])", r"must not have '\*\[1, 2\]'"),
        ("(" * 240 + "1" + ")" * 240, "is no formula"),
        ("1 +", r"^'1 \+' is no formula \(SyntaxError\)"),
        ("", f"^a formula is a text of at most {LONGEST} characters, not ''"),
        ("1+" * LONGEST, f"^a formula is a text of at most {LONGEST} characters"),
        (True, "^a formula is a text"),
        (None, "^a formula is a text"),
    ],
)
def test_what_is_no_formula_is_refused(text, message):
    with pytest.raises(ArgumentError, match=message):
        formula(text, FIELDS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / (grid.cols - 8)", r"cannot be worked out: float division by zero; with grid\.cols = 8$"),
        ("10 ** 10 ** 10", "cannot be worked out: "),
        ("(0 - 8) ** 0.5", "must be a finite number, not "),
        ("min((0 - 8) ** 0.5, 1)", "cannot be worked out: '<' not supported"),
        ("1e999", "must be a finite number, not inf"),
        ("9" * 400, "must be a finite number, not inf"),
        ("1e308 * 10", "must be a finite number, not inf"),
    ],
)
def test_what_has_no_value_is_refused(text, message):
    with pytest.raises(ArgumentError, match=message):
        formula(text, FIELDS).value(FIELDS)
