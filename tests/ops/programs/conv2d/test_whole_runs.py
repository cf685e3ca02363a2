"""Runs computed at once give the bits of runs that go step by step."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from device.host.compiling import numba_installed
from device.host.products import sgemm_address
from device.matrix_unit import fast
from device.matrix_unit.arithmetic import FAST
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, FLOAT32
from ops.programs.conv2d import fused, values
from ops.programs.conv2d.parallel_config import BLOCK, HEIGHT, WIDTH, ConvOptions
from tests.ops.programs.conv2d.value_cases import Case, arrays, cases, computed, for_equal_bits

pytestmark = pytest.mark.skipif(
    not numba_installed() or sgemm_address() is None, reason="numba is not installed, or numpy has another BLAS"
)
FEW = replace(FAST, operand_elements=1 << 10)
STEPWISE = replace(FEW, fused_runs=lambda trips, elements: None)


@pytest.fixture(params=[False, True], ids=["one by one", "in pairs"])
def in_pairs(request, monkeypatch):
    """Whether bfloat16 numbers are multiplied in pairs."""
    monkeypatch.setattr(fast, "multiplies_pairs", lambda: request.param)
    return request.param


@pytest.fixture
def counted(in_pairs, monkeypatch):
    """Runs that are computed at once, as soon as that is possible; few numbers at a time."""
    counts = []
    monkeypatch.setattr(fast, "CHUNK_ELEMENTS", 1 << 10)
    monkeypatch.setattr(fast, "MOST_WORDS", 1 << 10)
    monkeypatch.setattr(fast, "OUTPUTS_TOGETHER", 12)
    monkeypatch.setattr(values, "LEAST_COLUMNS", 32)
    monkeypatch.setattr(values, "PART_COLUMNS", 64)
    monkeypatch.setattr(fast, "worth_loading", lambda module, seconds: True)
    for name in ("compute_whole_run", "compute_window_run"):
        compute = getattr(fast, name)
        monkeypatch.setattr(
            fast, name, lambda *given, name=name, compute=compute: (counts.append(name), compute(*given))
        )
    return counts


def windows_among(counted):
    """Those of them that are windows."""
    return [name for name in counted if name == "compute_window_run"]


def bits(case, seed, arithmetic):
    got, dtype = computed(case, *arrays(case, for_equal_bits(seed)), arithmetic)
    return got.view(np.uint32), dtype


def test_any_convolution_is_the_same(counted):
    @settings(max_examples=150, deadline=None)
    @given(cases(), st.integers(0, 99), st.booleans())
    def same(case, seed, whole_groups):
        case = replace(case, outputs=16 * case.groups) if whole_groups else case
        assume(case.activation in (None, ("relu", ())) and case.fidelity_phases != 3)
        assert np.array_equal(bits(case, seed, FEW)[0], bits(case, seed, STEPWISE)[0])

    same()
    assert len(counted) > 50
    assert windows_among(counted)


@pytest.mark.parametrize("outputs", [20, 24, 40])
def test_columns_that_blas_sums_otherwise_in_other_sizes_go_step_by_step(monkeypatch, outputs):
    monkeypatch.setattr(fast, "worth_loading", lambda module, seconds: True)
    case = Case(size=(20, 23), channels=1024, outputs=outputs, kernel=(3, 3), bias=False)
    assert np.array_equal(bits(case, 7, FAST)[0], bits(case, 7, STEPWISE)[0])


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("fp32_dest", [False, True])
@pytest.mark.parametrize("packer_l1_acc", [False, True])
@pytest.mark.parametrize("out_format", [BFLOAT16, FLOAT32, BFLOAT8_B, BFLOAT4_B], ids=str)
@pytest.mark.parametrize(("scheme", "channels"), [(HEIGHT, 160), (BLOCK, 96)])
def test_windows_are_the_same(counted, scheme, channels, out_format, packer_l1_acc, fp32_dest, bias):
    """Pixels side by side under three taps, of all channels (more than are summed up in one go) or of some."""
    options = ConvOptions(fp32_dest=fp32_dest, packer_l1_acc=packer_l1_acc)
    case = Case(
        size=(5, 7), channels=channels, outputs=144, kernel=(3, 3), stride=(1, 1), bias=bias, scheme=scheme,
        out_format=out_format, options=options, fidelity_phases=1, activation=("relu", ()),
    )  # fmt: skip
    assert np.array_equal(bits(case, 7, FAST)[0], bits(case, 7, STEPWISE)[0])
    assert len(windows_among(counted)) >= 2


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("fp32_dest", [False, True])
@pytest.mark.parametrize("packer_l1_acc", [False, True])
@pytest.mark.parametrize("out_format", [BFLOAT16, FLOAT32, BFLOAT8_B, BFLOAT4_B], ids=str)
@pytest.mark.parametrize("scheme", [HEIGHT, BLOCK, WIDTH])
def test_trips_of_every_format_are_the_same(counted, scheme, out_format, packer_l1_acc, fp32_dest, bias):
    """Several K blocks, and more columns than are computed at a time, of which the last are not whole groups."""
    options = ConvOptions(
        fp32_dest=fp32_dest, packer_l1_acc=packer_l1_acc, untilize_out=not out_format.is_block and not bias
    )
    case = Case(
        size=(5, 7), channels=96, outputs=72, kernel=(2, 2), bias=bias, scheme=scheme, out_format=out_format,
        options=options, fidelity_phases=1,
    )  # fmt: skip
    assert np.array_equal(bits(case, 7, FEW)[0], bits(case, 7, STEPWISE)[0])
    assert len(counted) >= 2


@pytest.mark.parametrize("channels", [3, 136, 155, 160])
@pytest.mark.parametrize("columns", [2, 3, 8])
def test_channels_that_are_left_out_and_rows_shorter_than_taps_change_no_bit(counted, channels, columns):
    case = Case(
        size=(3, columns), channels=channels, outputs=40, stride=(1, 1), padding=(1, 1, 1, 1), out_format=BFLOAT8_B
    )
    assert np.array_equal(bits(case, 2, FAST)[0], bits(case, 2, STEPWISE)[0])
    case = replace(case, out_format=BFLOAT16, outputs=48)
    assert np.array_equal(bits(case, 2, FAST)[0], bits(case, 2, STEPWISE)[0])
    assert windows_among(counted)


@pytest.mark.parametrize("change", [{"kernel": (3, 1)}, {"dilation": (1, 2)}])
def test_columns_and_pixels_apart_are_no_windows(counted, in_pairs, change):
    """One tap of a row is none either, unless it is multiplied in pairs."""
    case = Case(channels=16, outputs=32, stride=(1, 1), size=(4, 7))
    bits(case, 1, FAST)
    assert windows_among(counted)
    counted.clear()
    bits(replace(case, **change), 1, FAST)
    assert counted
    assert bool(windows_among(counted)) == (in_pairs and "kernel" in change)


@pytest.mark.parametrize("channels", [64, 288, 512])
@pytest.mark.parametrize("change", [{"UNPACKED": 1}, {"CHUNK_ELEMENTS": 1}], ids=str)
def test_what_is_multiplied_at_a_time_changes_no_bit(counted, monkeypatch, channels, change):
    """Blocks are up to 1,024 deep here, of which BLAS would sum as many in one go as suits the size of a product."""
    case = Case(size=(6, 20), channels=channels, outputs=48, kernel=(3, 3), stride=(2, 2))
    expected = bits(case, 3, STEPWISE)[0]
    assert np.array_equal(bits(case, 3, FEW)[0], expected)
    for name, value in change.items():
        monkeypatch.setattr(fast, name, value)
    assert np.array_equal(bits(case, 3, FEW)[0], expected)
    assert counted


@pytest.mark.parametrize(
    "change", [{"activation": ("silu", ())}, {"fidelity_phases": 3}, {"size": (4, 1)}, {"outputs": 24}]
)
def test_what_is_more_than_one_product_or_less_goes_step_by_step(counted, in_pairs, change):
    """One output in a row is less for BLAS only."""
    case = replace(Case(kernel=(1, 1), stride=(1, 1), outputs=16), **change)
    bits(case, 1, FEW)
    assert bool(counted) == (in_pairs and "size" in change)


def test_rows_of_too_many_products_go_step_by_step(counted, monkeypatch):
    monkeypatch.setattr(fast, "multiplies_pairs", lambda: False)
    case = Case(kernel=(1, 1), stride=(1, 1), outputs=16)
    monkeypatch.setattr(fused, "MOST_OF_A_ROW", 4 * 16 - 1)
    bits(case, 1, FEW)
    assert not counted
    monkeypatch.setattr(fused, "MOST_OF_A_ROW", 4 * 16)
    bits(case, 1, FEW)
    assert counted


@pytest.mark.parametrize(("size", "threads", "pieces"), [((4, 4), 2, 4), ((4, 4), 4, 8), ((4, 80), 2, 8)])
def test_short_windows_have_more_columns_where_every_thread_has_two_pieces(monkeypatch, size, threads, pieces):
    """1,024 columns in each of two strips, in parts of 512 or 256; of 320 outputs 512 would be too many."""
    monkeypatch.setattr(fast, "worth_loading", lambda module, seconds: True)
    monkeypatch.setattr(fast, "multiplies_pairs", lambda: True)
    monkeypatch.setattr(values, "free_threads", lambda: threads)
    dealt = []

    def each(op, every):
        dealt.append(list(every))
        FAST.each(op, dealt[-1])

    case = Case(size=size, channels=16, outputs=512, kernel=(2, 2), stride=(2, 2), bias=False)
    got, _ = bits(case, 1, replace(FAST, each=each))
    assert len(dealt[-1]) == pieces
    assert np.array_equal(got, bits(case, 1, STEPWISE)[0])
