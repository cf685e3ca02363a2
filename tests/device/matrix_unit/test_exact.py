"""The truth and its fast twins; above them stand recorded instructions, below them what a product refuses."""

import subprocess
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from device.host.compiling import numba_installed
from device.matrix_unit import blocks
from device.matrix_unit.blocks import block_product
from device.matrix_unit.exact import MatrixUnitMode, mvmul
from device.spec.device_spec import load_spec

ROOT = Path(__file__).resolve().parents[3]
SAMPLE = ROOT / "tests" / "data" / "mvmul_sample.npz"


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


@pytest.mark.parametrize(("change", "message"), [
    ({"src_a": np.zeros((8, 16), np.uint32)}, r"src_a must be bit patterns, uint32 \[16, 16\], not uint32 \[8, 16\]$"),
    ({"dst": np.zeros((8, 16), np.float32)}, r"dst must be bit patterns, uint32 \[8, 16\], not float32"),
    ({"phase": 4}, r"phase must be 0, 1, 2 or 3, not 4$"),
    ({"arch": "grayskull"}, r"arch must be one of 'blackhole', 'wormhole_b0', or a device .*, not 'grayskull'$"),
])  # fmt: skip
def test_mvmul_names_what_does_not_fit(change, message):
    zeros = {name: np.zeros((size, 16), np.uint32) for name, size in (("src_a", 16), ("src_b", 8), ("dst", 8))}
    arguments = {**zeros, "phase": 0, "fp32_dest": True, "arch": "blackhole", **change}
    with pytest.raises(ValueError, match=f"^mvmul: {message}"):
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


def mode_of(fidelity_phases=4, *, fp32_dest=True, quirk=True):
    return MatrixUnitMode(fidelity_phases=fidelity_phases, fp32_dest=fp32_dest, minus_one_quirk=quirk)


# Worked example of the rule that a phase is never skipped: weights 2**20, -2**20 meet activations 1, 1 in the first
# half, 1.0625 * 1.015625 stands in the second. All low parts are zero, and still the exponents of phase 1 shift Dst.
@pytest.mark.parametrize("engine", ["truth", *ENGINES])
@pytest.mark.parametrize(("fp32_dest", "want"), [(True, (1.0791016, 1.078125, 1.078125)), (False, (1.078125, 0, 0))])
def test_a_phase_of_zeros_still_shifts_dst(engine, fp32_dest, want):
    weights, activations = np.zeros((32, 1), np.float32), np.zeros((1, 32), np.float32)
    weights[[0, 1, 16], 0] = 2.0**20, -(2.0**20), 1.0625
    activations[0, [0, 1, 16]] = 1.0, 1.0, 1.015625
    for phases, value in zip((1, 2, 4), want, strict=True):
        got = block_product(activations, weights, mode=mode_of(phases, fp32_dest=fp32_dest), engine=engine)
        assert got[0, 0] == np.float32(value)


@pytest.mark.parametrize("engine", ["truth", *ENGINES])
@pytest.mark.parametrize(("quirk", "exponent"), [(False, 0), (True, 27)])
def test_a_sum_of_minus_one(engine, quirk, exponent):
    """A difference of exactly minus one unit of the 24-bit significand; one that rounds to 0 is no such sum."""
    weights, activations = np.zeros((16, 1), np.float32), np.zeros((1, 16), np.float32)
    how = {"mode": mode_of(1, quirk=quirk), "half_counts": [1], "engine": engine}
    weights[0, 0], activations[0, 0] = -1.0, 1.0
    dst = np.array([[bits(1.0) - 1]], np.uint32)  # 1 - 2**-24 is 1, half up, on the scale of 1
    assert block_product(activations, weights, dst, **how)[0, 0] == 0.0
    weights[:2, 0], activations[0, 1] = (-1.0 - 2.0**-4, 1.0), 2.0**-4
    dst = np.array([[bits(1.0)]], np.uint32) - np.uint32(2)  # 1 - 2**-23
    assert block_product(activations, weights, dst, **how)[0, 0] == np.float32(-(2.0 ** (exponent - 23)))


@each_engine
@given(
    seed=st.integers(0, 2**32 - 1),
    mode=st.builds(mode_of, st.integers(1, 4), fp32_dest=st.booleans(), quirk=st.booleans()),
    spread=st.sampled_from([0, 1, 2, 5, 12, 30, 127]),
    centers=st.sampled_from([(127, 127), (127, 60), (40, 160), (70, 70), (60, 60), (180, 180), (240, 120), (230, 30)]),
    zeros=st.sampled_from([0.0, 0.1, 0.95]),
    half_counts=st.lists(st.integers(0, 2), min_size=1, max_size=4),
)
def test_twins_give_the_bits_of_the_truth(engine, seed, mode, spread, centers, zeros, half_counts):
    rng = np.random.default_rng(seed)
    depth, rows, cols = 16 * sum(half_counts), int(rng.integers(1, 6)), int(rng.integers(1, 80))
    activations = operands(rng, (rows, depth), center=centers[0], spread=spread, zeros=zeros)
    weights = operands(rng, (depth, cols), center=centers[1], spread=spread)
    near = centers[0] + centers[1] - 127
    dst = operands(rng, (rows, cols), center=near, spread=spread + 2, cut=0 if mode.fp32_dest else 16)
    agree(activations, weights, dst, engine=engine, mode=mode, half_counts=half_counts)


@each_engine
@pytest.mark.parametrize("fp32_dest", [False, True])
def test_cancelling_sums(engine, fp32_dest):
    """Products that nearly cancel each other and Dst: deep normalization, exact zeros, sums of one unit."""
    rng = np.random.default_rng(5)
    for _ in range(20):
        activations, weights = (operands(rng, shape, spread=1, zeros=0.5, cut=16) for shape in ((8, 32), (32, 64)))
        activations[:, 16:] = activations[:, :16]
        weights[16:] = weights[:16] ^ np.uint32(0x80000000)
        noise = rng.integers(-2, 3, (8, 64)).astype(np.int32)
        dst = (activations.view(np.float32) @ -weights.view(np.float32)).astype(np.float32).view(np.int32) + noise
        dst = dst.view(np.uint32) & np.uint32(0xFFFFFFFF if fp32_dest else 0xFFFF0000)
        for quirk in (False, True):
            agree(activations, weights, dst, engine=engine, mode=mode_of(fp32_dest=fp32_dest, quirk=quirk))


@each_engine
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 3e38, 1e-40, 2e-38])
def test_extremes_among_ordinary_numbers(engine, value):
    rng = np.random.default_rng(7)
    shapes = {"activation": (3, 64), "weight": (64, 20), "dst": (3, 20)}
    for where, fp32_dest in product(shapes, (False, True)):
        pattern = bits(value) & (0xFFFFE000 if fp32_dest or where != "dst" else 0xFFFF0000)
        arrays = {name: operands(rng, shape, spread=3, cut=16) for name, shape in shapes.items()}
        arrays[where][1, 7] = pattern
        agree(*arrays.values(), engine=engine, mode=mode_of(3, fp32_dest=fp32_dest))


@each_engine
def test_both_ends_of_the_float_range(engine):
    """Sums of exponents at the largest that float32 computes, overflow to infinity, underflow, an infinite Dst."""
    rng = np.random.default_rng(11)
    for together, center in product((352, 353, 354), (115, 177, 239, 240)):
        activations = operands(rng, (4, 32), center=together - center, spread=0)
        weights = operands(rng, (32, 16), center=center, spread=0)
        agree(activations, weights, None, engine=engine, mode=mode_of(quirk=False))
    for center, start in ((64, 1), (64, 20), (66, 3), (190, 252), (176, 255), (176, 254)):
        activations, weights = (operands(rng, shape, center=center, spread=2) for shape in ((4, 32), (32, 16)))
        for fp32_dest in (False, True):
            dst = operands(rng, (4, 16), center=start, spread=1, cut=16)
            agree(activations, weights, dst, engine=engine, mode=mode_of(2, fp32_dest=fp32_dest))


@each_engine
def test_several_units_threads_and_column_blocks(engine):
    rng = np.random.default_rng(17)
    activations, weights = operands(rng, (1100, 48), zeros=0.3), operands(rng, (48, 130))
    how = {"mode": mode_of(), "half_counts": [2, 1]}
    whole = block_product(activations, weights, **how, engine=engine, threads=2)
    assert same_bits(whole, block_product(activations, weights, **how, engine=engine, threads=1))
    rows = rng.choice(1100, 40, replace=False)
    assert same_bits(whole[rows], block_product(activations[rows], weights, **how, engine="truth"))


@pytest.mark.parametrize("engine", ["truth", *ENGINES])
@pytest.mark.parametrize("fp32_dest", [False, True])
def test_halves_of_zeros_may_be_left_out_and_arguments_are_left_alone(engine, fp32_dest):
    rng, mode = np.random.default_rng(19), mode_of(fp32_dest=fp32_dest)
    activations, weights, dst = (operands(rng, shape, cut=16) for shape in ((5, 96), (96, 40), (5, 40)))
    kept = np.repeat([True, False, False, False, True, True], 16)
    activations[:, ~kept] = 0
    copies = [array.copy() for array in (activations, weights, dst)]
    for array in (activations, weights, dst):
        array.flags.writeable = False
    whole = block_product(activations, weights, dst, mode=mode, engine=engine)
    part = block_product(activations[:, kept], weights[kept], dst, mode=mode, half_counts=[1, 0, 2], engine=engine)
    assert same_bits(whole, part)
    assert all(np.array_equal(*pair) for pair in zip((activations, weights, dst), copies, strict=True))


@pytest.mark.parametrize("engine", ["truth", *ENGINES])
def test_nothing_to_multiply(engine):
    for rows, depth, cols in ((0, 32, 5), (3, 0, 5), (3, 32, 0)):
        operands, dst = (np.zeros((rows, depth), np.float32), np.ones((depth, cols), np.float32)), np.ones((rows, cols))
        dst = dst.astype(np.float32)
        assert same_bits(block_product(*operands, dst, mode=mode_of(2), engine=engine), dst)


@pytest.mark.parametrize("engine", ["truth", *ENGINES])
def test_a_dst_no_step_would_leave(engine):
    """NaN, denormals and negative zero do not occur in Dst; skipping steps must make no difference to them."""
    dst = np.array([[np.nan, -np.nan, 1e-40, -0.0, -np.inf]], np.float32)
    for activations in (np.zeros((1, 32), np.float32), np.full((1, 32), 2.0**-60, np.float32)):
        got = block_product(activations, np.zeros((32, 5), np.float32), dst, mode=mode_of(1), engine=engine)
        assert got.tolist() == [[np.inf, -np.inf, 0.0, 0.0, -np.inf]]
        assert not np.signbit(got[0, 2:4]).any()


WITHOUT_NUMBA = """
import sys
sys.modules["numba"] = None
import numpy as np
from device.matrix_unit.exact import MatrixUnitMode
from device.matrix_unit.blocks import block_product
mode = MatrixUnitMode(fidelity_phases=4, fp32_dest=True, minus_one_quirk=False)
rows = 15_000  # 0.3 s of numpy and more
result = block_product(np.ones((rows, 32), np.float32), np.ones((32, 64), np.float32), mode=mode)
assert (result == 32).all()
assert result.shape == (rows, 64)
try:
    block_product(np.ones((1, 32), np.float32), np.ones((32, 64), np.float32), mode=mode, engine="compiled")
except ImportError as error:
    assert str(error) == "block_product: the compiled engine needs numba; install it, or use engine='numpy'", error
else:
    raise AssertionError
"""


def test_without_numba_everything_but_the_compiled_engine_works():
    subprocess.run([sys.executable, "-W", "error", "-c", WITHOUT_NUMBA], check=True, cwd=ROOT)


def test_numba_is_not_loaded_for_small_products():
    code = """
import sys
import numpy as np
from device.matrix_unit.exact import MatrixUnitMode
from device.matrix_unit.blocks import block_product
mode = MatrixUnitMode(fidelity_phases=4, fp32_dest=True, minus_one_quirk=False)
block_product(np.ones((8, 32), np.float32), np.ones((32, 64), np.float32), mode=mode)
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)


ANY_MODE = mode_of(1, fp32_dest=False)


@pytest.mark.parametrize(("arguments", "message"), [
    ({"activations": np.zeros((2, 24), np.float32)},
     r"share a K that is a multiple of 16, not \[2, 24\] and \[32, 3\]"),
    ({"activations": np.zeros((2, 32))}, r"activations must be a matrix of float32 or uint32 .*, not float64"),
    ({"dst": np.zeros((3, 2), np.float32)}, r"dst must be \[rows, cols\] = \[2, 3\], not \[3, 2\]"),
    ({"half_counts": [1]}, r"half_counts must name 0, 1 or 2 halves for every K tile and 2 in all .*, not \[1\]"),
    ({"dst": np.full((2, 3), 1.00001, np.float32)}, r"a 16-bit Dst holds bfloat16 values; cut dst first"),
    ({"engine": "fast"}, r"engine must be one of auto, compiled, numpy, truth, not 'fast'"),
])  # fmt: skip
def test_block_product_names_what_does_not_fit(arguments, message):
    usual = {"activations": np.zeros((2, 32), np.float32), "weights": np.zeros((32, 3), np.float32), "mode": ANY_MODE}
    with pytest.raises(ValueError, match=message):
        block_product(**(usual | arguments))


def test_an_odd_number_of_halves_needs_half_counts():
    with pytest.raises(ValueError, match=r"not None, which means whole tiles$"):
        block_product(np.zeros((2, 16), np.float32), np.zeros((16, 3), np.float32), mode=ANY_MODE)


def test_mode_names_what_does_not_fit():
    with pytest.raises(ValueError, match=r"^fidelity_phases must be 1 \(LoFi\), .* not 0$"):
        MatrixUnitMode(fidelity_phases=0, fp32_dest=True, minus_one_quirk=True)


@pytest.fixture
def judged(monkeypatch):
    """Whether products were taken for ones of narrow numbers."""
    heard, judge = [], blocks._are_narrow
    monkeypatch.setattr(blocks, "_are_narrow", lambda *fields: heard.append(judge(*fields)) or heard[-1])
    return heard


def of_field(field, shape, rng, cut=16):
    """Bit patterns of either sign with one exponent field."""
    bits = rng.integers(0, 1 << 32, shape, dtype=np.uint32) & np.uint32(0x807FFFFF) | np.uint32(field << 23)
    return bits & np.uint32(0xFFFFFFFF << cut & 0xFFFFFFFF)


@pytest.mark.skipif(not numba_installed(), reason="numba is not installed")
@pytest.mark.parametrize("fp32_dest", [False, True])
@pytest.mark.parametrize(
    ("activations", "weights", "dst", "narrow"),
    [
        (89, 89, None, True),  # 89 + 89 - 127 - 12 - 23 is 16
        (89, 88, None, False),
        (89, 89, 16, True),
        (89, 89, 15, False),
        (100, 127, 232, True),  # 232 + 12 + the 5 bits of 16 steps is 249
        (100, 127, 233, False),
        (127, 127, 0, True),
        (200, 153, 226, True),  # as large as products may be
    ],
)
def test_numbers_at_both_ends_of_narrow_ones_have_the_bits_of_the_truth(
    judged, activations, weights, dst, narrow, fp32_dest
):
    rng = np.random.default_rng(29)
    left, right = of_field(activations, (24, 64), rng), of_field(weights, (64, 70), rng)
    left[:8, 32:], right[32:] = left[:8, :32], right[:32] ^ np.uint32(1 << 31)  # which cancels
    left[8:16, rng.random(64) < 0.7] = 0
    left[16:20, :16] = right[:16, :3] = 0
    start = None if dst is None else of_field(dst, (24, 70), rng)
    for quirk in (False, True):
        mode = MatrixUnitMode(fidelity_phases=4, fp32_dest=fp32_dest, minus_one_quirk=quirk)
        want = block_product(left, right, start, mode=mode, engine="truth")
        got = block_product(left, right, start, mode=mode, engine="compiled")
        assert np.array_equal(got.view(np.uint32), want.view(np.uint32))
    assert judged == [narrow] * 2


@pytest.mark.parametrize(
    ("steps", "phases", "rows", "cols", "microseconds"),
    [
        (50, 1, 8, 2, 50 * 160 + 50 * 16 * 8 * 2 * 0.0025),
        (50, 2, 8, 2, 100 * 160 + 100 * 16 * 8 * 2 * 0.0025),
        (2, 1, 512, 250, 2 * 160 + 2 * 16 * 512 * 250 * 0.0025),
    ],
)
def test_narrow_steps_take_time_by_themselves(monkeypatch, steps, phases, rows, cols, microseconds):
    asked = []
    monkeypatch.setattr(blocks, "worth_loading", lambda module, seconds: asked.append((module, seconds)))
    mode = MatrixUnitMode(fidelity_phases=phases, fp32_dest=True, minus_one_quirk=False)
    left, right = np.zeros((rows, 16 * steps), np.float32), np.zeros((16 * steps, cols), np.float32)
    blocks.block_product(left, right, mode=mode, half_counts=[1] * steps)
    assert asked == [("device.matrix_unit.compiled", pytest.approx(microseconds * 1e-6))]
