"""One set of tests for the truth and its fast twins; above them stand recorded instructions."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from device.host.compiling import numba_installed
from device.matrix_unit.blocks import block_product
from device.matrix_unit.exact import MatrixUnitMode, mvmul
from device.spec.device_spec import load_spec

SAMPLE = Path(__file__).resolve().parents[2] / "data" / "mvmul_sample.npz"


needs_numba = pytest.mark.skipif(not numba_installed(), reason="numba is not installed")
ENGINES = ["numpy", pytest.param("compiled", marks=needs_numba)]
each_engine = pytest.mark.parametrize("engine", ENGINES)
each_arch = pytest.mark.parametrize("arch", ["wormhole_b0", "blackhole"])


def bits(value: float) -> int:
    return int(np.float32(value).view(np.uint32))


def operands(rng, shape, *, center=127, spread=10, zeros=0.1, cut=13):
    """Random bit patterns: exponents within ``spread`` of ``center``, ``cut`` low bits clear."""
    exponents = np.clip(center + rng.integers(-spread, spread + 1, shape), 0, 255).astype(np.uint32)
    patterns = rng.integers(0, 1 << 32, shape, dtype=np.uint32) & np.uint32(0x807FFFFF) | exponents << np.uint32(23)
    patterns &= np.uint32(0xFFFFFFFF << cut & 0xFFFFFFFF)
    patterns[rng.random(shape) < zeros] = 0
    return patterns


def same_bits(left, right):
    return np.array_equal(np.asarray(left).view(np.uint32), np.asarray(right).view(np.uint32))


def agree(activations, weights, dst, *, engine, **options):
    want = block_product(activations, weights, dst, engine="truth", **options)
    got = block_product(activations, weights, dst, engine=engine, **options)
    assert same_bits(got, want), f"{(got.view(np.uint32) != want.view(np.uint32)).sum()} of {want.size} differ"


def recorded_results(path, device, arch=None):
    with np.load(path) as file:
        record = {name: file[name] for name in file.files}
    for i in range(len(record["phase"])):
        got = mvmul(
            record["src_a"][i],
            record["src_b"][i],
            record["dst_in"][i],
            phase=int(record["phase"][i]),
            fp32_dest=bool(record["fp32_dest"][i]),
            arch=device,
        )
        yield i, np.array_equal(got, record[f"dst_out_{arch or device}"][i])


@each_arch
def test_the_stored_sample_of_recorded_instructions(arch):
    results = dict(recorded_results(SAMPLE, arch))
    assert len(results) == 100
    assert [i for i, equal in results.items() if not equal] == []


@each_arch
def test_every_recorded_instruction(arch, recordings):
    results = dict(recorded_results(recordings("oracle/fpu/mvmul.npz"), arch))
    assert len(results) == 2000
    assert [i for i, equal in results.items() if not equal] == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"src_a": np.zeros((8, 16), np.uint32)},
            r"^mvmul: src_a must be bit patterns, uint32 \[16, 16\], not uint32 \[8, 16\]$",
        ),
        ({"dst": np.zeros((8, 16), np.float32)}, r"dst must be bit patterns, uint32 \[8, 16\], not float32"),
        ({"phase": 4}, r"^mvmul: phase must be 0, 1, 2 or 3, not 4$"),
        (
            {"arch": "grayskull"},
            r"^mvmul: arch must be one of 'blackhole', 'wormhole_b0', or a device .*, not 'grayskull'$",
        ),
    ],
)
def test_mvmul_names_what_does_not_fit(change, message):
    arguments = {
        "src_a": np.zeros((16, 16), np.uint32),
        "src_b": np.zeros((8, 16), np.uint32),
        "dst": np.zeros((8, 16), np.uint32),
        "phase": 0,
        "fp32_dest": True,
        "arch": "blackhole",
    } | change
    with pytest.raises(ValueError, match=message):
        mvmul(**arguments)


def test_mvmul_takes_a_device_for_an_architecture_of_its_own(tmp_path):
    """The answer is that of the device's own field, whatever its architecture is called."""
    with np.load(SAMPLE) as file:
        record = {name: file[name] for name in file.files}
    differs = [
        i for i in range(100) if not np.array_equal(record["dst_out_blackhole"][i], record["dst_out_wormhole_b0"][i])
    ]
    assert differs
    path = tmp_path / "mine.toml"
    path.write_text('extends = "blackhole_p150"\nname = "mine"\narch = "mine"\n')
    for device in (path, str(path), load_spec(path), "blackhole_p100"):
        assert [i for i, equal in recorded_results(SAMPLE, device, "blackhole") if not equal] == []


# Worked example of the rule that a phase is never skipped: weights 2**20, -2**20 meet activations 1, 1 in the first
# half, 1.0625 * 1.015625 stands in the second. All low parts are zero, and still the exponents of phase 1 shift Dst.
@pytest.mark.parametrize("engine", ["truth", *ENGINES])
@pytest.mark.parametrize(
    ("fidelity_phases", "fp32_dest", "want"),
    [
        (1, True, 1.0791016),
        (2, True, 1.078125),
        (4, True, 1.078125),
        (1, False, 1.078125),
        (2, False, 0.0),
        (4, False, 0.0),
    ],
)
def test_a_phase_of_zeros_still_shifts_dst(engine, fidelity_phases, fp32_dest, want):
    weights = np.zeros((32, 1), np.float32)
    activations = np.zeros((1, 32), np.float32)
    weights[[0, 1, 16], 0] = 2.0**20, -(2.0**20), 1.0625
    activations[0, [0, 1, 16]] = 1.0, 1.0, 1.015625
    mode = MatrixUnitMode(fidelity_phases=fidelity_phases, fp32_dest=fp32_dest, minus_one_quirk=True)
    assert block_product(activations, weights, mode=mode, engine=engine)[0, 0] == np.float32(want)


@pytest.mark.parametrize("engine", ["truth", *ENGINES])
@pytest.mark.parametrize(("quirk", "exponent"), [(False, 0), (True, 27)])
def test_a_sum_of_minus_one(engine, quirk, exponent):
    """A difference of exactly minus one unit of the 24-bit significand; one that rounds to 0 is no such sum."""
    weights = np.zeros((16, 1), np.float32)
    activations = np.zeros((1, 16), np.float32)
    weights[0, 0], activations[0, 0] = -1.0, 1.0
    dst = np.array([[bits(1.0) - 1]], np.uint32)  # 1 - 2**-24 is 1, half up, on the scale of 1
    mode = MatrixUnitMode(fidelity_phases=1, fp32_dest=True, minus_one_quirk=quirk)
    assert block_product(activations, weights, dst, mode=mode, half_counts=[1], engine=engine)[0, 0] == 0.0
    weights[0, 0] = -1.0 - 2.0**-4
    weights[1, 0], activations[0, 1] = 1.0, 2.0**-4
    dst = np.array([[bits(1.0)]], np.uint32) - np.uint32(2)  # 1 - 2**-23
    got = block_product(activations, weights, dst, mode=mode, half_counts=[1], engine=engine)[0, 0]
    assert got == np.float32(-(2.0 ** (exponent - 23)))


@each_engine
@pytest.mark.parametrize("fp32_dest", [False, True])
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    fidelity_phases=st.integers(1, 4),
    quirk=st.booleans(),
    spread=st.sampled_from([0, 1, 2, 5, 12, 30, 127]),
    centers=st.sampled_from([(127, 127), (127, 60), (40, 160), (70, 70), (60, 60), (180, 180), (240, 120), (230, 30)]),
    zeros=st.sampled_from([0.0, 0.1, 0.95]),
    half_counts=st.lists(st.integers(0, 2), min_size=1, max_size=4),
)
def test_twins_give_the_bits_of_the_truth(
    engine, fp32_dest, seed, fidelity_phases, quirk, spread, centers, zeros, half_counts
):
    rng = np.random.default_rng(seed)
    depth, rows, cols = 16 * sum(half_counts), int(rng.integers(1, 6)), int(rng.integers(1, 80))
    activations = operands(rng, (rows, depth), center=centers[0], spread=spread, zeros=zeros)
    weights = operands(rng, (depth, cols), center=centers[1], spread=spread)
    near = centers[0] + centers[1] - 127
    dst = operands(rng, (rows, cols), center=near, spread=spread + 2, cut=0 if fp32_dest else 16)
    mode = MatrixUnitMode(fidelity_phases=fidelity_phases, fp32_dest=fp32_dest, minus_one_quirk=quirk)
    agree(activations, weights, dst, engine=engine, mode=mode, half_counts=half_counts)


@each_engine
@pytest.mark.parametrize("fp32_dest", [False, True])
def test_cancelling_sums(engine, fp32_dest):
    """Products that nearly cancel each other and Dst: deep normalization, exact zeros, sums of one unit."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        activations = operands(rng, (8, 32), spread=1, zeros=0.5, cut=16)
        weights = operands(rng, (32, 64), spread=1, zeros=0.5, cut=16)
        activations[:, 16:] = activations[:, :16]
        weights[16:] = weights[:16] ^ np.uint32(0x80000000)
        noise = rng.integers(-2, 3, (8, 64)).astype(np.int32)
        dst = (activations.view(np.float32) @ -weights.view(np.float32)).astype(np.float32).view(np.int32) + noise
        dst = dst.view(np.uint32) & np.uint32(0xFFFFFFFF if fp32_dest else 0xFFFF0000)
        for quirk in (False, True):
            mode = MatrixUnitMode(fidelity_phases=4, fp32_dest=fp32_dest, minus_one_quirk=quirk)
            agree(activations, weights, dst, engine=engine, mode=mode)


@each_engine
@pytest.mark.parametrize("fp32_dest", [False, True])
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38, 1e-40, 2e-38])
@pytest.mark.parametrize("where", ["activation", "weight", "dst"])
def test_extremes_among_ordinary_numbers(engine, fp32_dest, value, where):
    rng = np.random.default_rng(7)
    pattern = bits(value) & (0xFFFFE000 if fp32_dest or where != "dst" else 0xFFFF0000)
    arrays = {
        "activation": operands(rng, (3, 64), spread=3),
        "weight": operands(rng, (64, 20), spread=3),
        "dst": operands(rng, (3, 20), spread=3, cut=16),
    }
    arrays[where][1, 7] = pattern
    mode = MatrixUnitMode(fidelity_phases=3, fp32_dest=fp32_dest, minus_one_quirk=True)
    agree(*arrays.values(), engine=engine, mode=mode)


@each_engine
@pytest.mark.parametrize("sum_of_exponents", [352, 353, 354])
def test_both_sides_of_the_float_range(engine, sum_of_exponents):
    rng = np.random.default_rng(11)
    for weight_exponent in (115, 177, 239, 240):
        activations = operands(rng, (4, 32), center=sum_of_exponents - weight_exponent, spread=0)
        weights = operands(rng, (32, 16), center=weight_exponent, spread=0)
        mode = MatrixUnitMode(fidelity_phases=4, fp32_dest=True, minus_one_quirk=False)
        agree(activations, weights, None, engine=engine, mode=mode)


@each_engine
def test_results_at_the_ends_of_the_exponent(engine):
    """Overflow to infinity, underflow to zero, Dst that starts infinite."""
    rng = np.random.default_rng(13)
    for center, start in ((64, 1), (64, 20), (66, 3), (190, 252), (176, 255), (176, 254)):
        activations = operands(rng, (4, 32), center=center, spread=2)
        weights = operands(rng, (32, 16), center=center, spread=2)
        for fp32_dest in (False, True):
            dst = operands(rng, (4, 16), center=start, spread=1, cut=16)
            mode = MatrixUnitMode(fidelity_phases=2, fp32_dest=fp32_dest, minus_one_quirk=True)
            agree(activations, weights, dst, engine=engine, mode=mode)


@each_engine
def test_several_units_threads_and_column_blocks(engine):
    rng = np.random.default_rng(17)
    activations = operands(rng, (1100, 48), zeros=0.3)
    weights = operands(rng, (48, 130))
    mode = MatrixUnitMode(fidelity_phases=4, fp32_dest=True, minus_one_quirk=True)
    whole = block_product(activations, weights, mode=mode, half_counts=[2, 1], engine=engine, threads=2)
    assert same_bits(
        whole, block_product(activations, weights, mode=mode, half_counts=[2, 1], engine=engine, threads=1)
    )
    rows = rng.choice(1100, 40, replace=False)
    want = block_product(activations[rows], weights, mode=mode, half_counts=[2, 1], engine="truth")
    assert same_bits(whole[rows], want)


@pytest.mark.parametrize("engine", ["truth", *ENGINES])
@pytest.mark.parametrize("fp32_dest", [False, True])
def test_halves_of_zeros_may_be_left_out(engine, fp32_dest):
    rng = np.random.default_rng(19)
    activations = operands(rng, (5, 96))
    weights = operands(rng, (96, 40))
    present = np.array([True, False, False, False, True, True])
    activations[:, np.repeat(~present, 16)] = 0
    kept = np.repeat(present, 16)
    mode = MatrixUnitMode(fidelity_phases=4, fp32_dest=fp32_dest, minus_one_quirk=True)
    whole = block_product(activations, weights, mode=mode, engine=engine)
    part = block_product(activations[:, kept], weights[kept], mode=mode, half_counts=[1, 0, 2], engine=engine)
    assert same_bits(whole, part)


@pytest.mark.parametrize("engine", ["truth", *ENGINES])
@pytest.mark.parametrize(("rows", "depth", "cols"), [(0, 32, 5), (3, 0, 5), (3, 32, 0)])
def test_nothing_to_multiply(engine, rows, depth, cols):
    mode = MatrixUnitMode(fidelity_phases=2, fp32_dest=True, minus_one_quirk=False)
    dst = np.ones((rows, cols), np.float32)
    got = block_product(
        np.zeros((rows, depth), np.float32), np.ones((depth, cols), np.float32), dst, mode=mode, engine=engine
    )
    assert same_bits(got, dst)


@pytest.mark.parametrize("engine", ["truth", *ENGINES])
def test_a_dst_no_step_would_leave(engine):
    """NaN, denormals and negative zero do not occur in Dst; skipping steps must make no difference to them."""
    dst = np.array([[np.nan, -np.nan, 1e-40, -0.0, -np.inf]], np.float32)
    for activations in (np.zeros((1, 32), np.float32), np.full((1, 32), 2.0**-60, np.float32)):
        mode = MatrixUnitMode(fidelity_phases=1, fp32_dest=True, minus_one_quirk=False)
        got = block_product(activations, np.zeros((32, 5), np.float32), dst, mode=mode, engine=engine)
        assert got.tolist() == [[np.inf, -np.inf, 0.0, 0.0, -np.inf]]
        assert not np.signbit(got[0, 2:4]).any()


@each_engine
def test_arguments_are_left_alone(engine):
    rng = np.random.default_rng(23)
    arrays = [operands(rng, shape, cut=16) for shape in ((4, 32), (32, 8), (4, 8))]
    copies = [array.copy() for array in arrays]
    for array in arrays:
        array.flags.writeable = False
    block_product(*arrays, mode=MatrixUnitMode(fidelity_phases=4, fp32_dest=False, minus_one_quirk=True), engine=engine)
    assert all(np.array_equal(array, copy) for array, copy in zip(arrays, copies, strict=True))
