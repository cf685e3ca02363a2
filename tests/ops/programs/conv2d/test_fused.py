"""Runs computed at once give the bits of runs that go step by step."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings, strategies as st

from device.host.compiling import numba_installed
from device.host.products import sgemm_address
from device.matrix_unit import fused
from device.matrix_unit.arithmetic import FAST
from device.numbers.formats import BFLOAT4_B, BFLOAT8_B, BFLOAT16, FLOAT32
from ops.programs.conv2d import model as values
from ops.programs.conv2d.partition import HEIGHT, WIDTH, ConvOptions
from tests.ops.programs.conv2d.value_cases import Case, arrays, cases, computed, for_equal_bits

pytestmark = pytest.mark.skipif(
    not numba_installed() or sgemm_address() is None, reason="numba is not installed, or numpy has another BLAS"
)
STEPWISE = replace(FAST, name="step by step")


@pytest.fixture
def counted(monkeypatch):
    """Runs that are computed at once, as soon as that is possible; few numbers at a time."""
    counts = []
    monkeypatch.setattr(fused, "CHUNK_ELEMENTS", 1 << 10)
    monkeypatch.setattr(values, "OPERAND_ELEMENTS", 1 << 10)
    monkeypatch.setattr(values, "LEAST_COLUMNS", 32)
    monkeypatch.setattr(values, "PART_COLUMNS", 64)
    monkeypatch.setattr(fused, "worth_loading", lambda module, seconds: True)
    compute = fused.compute_run
    monkeypatch.setattr(fused, "compute_run", lambda *given: (counts.append(1), compute(*given)))
    return counts


def bits(case, seed, arithmetic):
    got, dtype = computed(case, *arrays(case, for_equal_bits(seed)), arithmetic)
    return got.view(np.uint32), dtype


def test_any_convolution_is_the_same(counted):
    @settings(max_examples=30, deadline=None)
    @given(cases(), st.integers(0, 99), st.booleans())
    def same(case, seed, whole_groups):
        case = replace(case, outputs=16 * case.groups) if whole_groups else case
        assume(case.activation in (None, ("relu", ())) and case.fidelity_phases != 3)
        assert np.array_equal(bits(case, seed, FAST)[0], bits(case, seed, STEPWISE)[0])

    same()
    assert len(counted) > 10


@pytest.mark.parametrize("outputs", [20, 24, 40])
def test_columns_that_blas_sums_otherwise_in_other_sizes_go_step_by_step(monkeypatch, outputs):
    monkeypatch.setattr(fused, "worth_loading", lambda module, seconds: True)
    case = Case(size=(20, 23), channels=1024, outputs=outputs, kernel=(3, 3), bias=False)
    assert np.array_equal(bits(case, 7, FAST)[0], bits(case, 7, STEPWISE)[0])


@pytest.mark.parametrize(("bias", "fp32_dest"), [(False, True), (True, False)])
@pytest.mark.parametrize("packer_l1_acc", [False, True])
@pytest.mark.parametrize("out_format", [BFLOAT16, FLOAT32, BFLOAT8_B, BFLOAT4_B], ids=str)
@pytest.mark.parametrize("scheme", [HEIGHT, WIDTH])
def test_trips_of_every_format_are_the_same(counted, scheme, out_format, packer_l1_acc, fp32_dest, bias):
    """Several K blocks, and more columns than are computed at a time, of which the last are not whole groups."""
    options = ConvOptions(
        fp32_dest=fp32_dest, packer_l1_acc=packer_l1_acc, untilize_out=not out_format.is_block and not bias
    )
    case = Case(
        size=(5, 7), channels=96, outputs=72, kernel=(2, 2), bias=bias, scheme=scheme, out_format=out_format,
        options=options, fidelity_phases=1,
    )  # fmt: skip
    assert np.array_equal(bits(case, 7, FAST)[0], bits(case, 7, STEPWISE)[0])
    assert len(counted) >= 2


@pytest.mark.parametrize("channels", [64, 288, 512])
@pytest.mark.parametrize("change", [{"UNPACKED": 1}, {"CHUNK_ELEMENTS": 1}], ids=str)
def test_what_is_multiplied_at_a_time_changes_no_bit(counted, monkeypatch, channels, change):
    """Blocks are up to 1,024 deep here, of which BLAS would sum as many in one go as suits the size of a product."""
    case = Case(size=(6, 20), channels=channels, outputs=48, kernel=(3, 3), stride=(2, 2))
    expected = bits(case, 3, STEPWISE)[0]
    assert np.array_equal(bits(case, 3, FAST)[0], expected)
    for name, value in change.items():
        monkeypatch.setattr(fused, name, value)
    assert np.array_equal(bits(case, 3, FAST)[0], expected)
    assert counted


@pytest.mark.parametrize(
    "change",
    [
        {"activation": ("silu", ())},
        {"fidelity_phases": 3},
        {"size": (4, 1)},
        {"outputs": 24},
        {"channels": 8, "out_format": BFLOAT8_B},
    ],
)
def test_what_is_more_than_one_product_or_less_goes_step_by_step(counted, change):
    """One output in a row is another function of BLAS; 8 channels are less than a group that shares an exponent."""
    case = replace(Case(kernel=(1, 1), stride=(1, 1), outputs=16), **change)
    bits(case, 1, FAST)
    assert not counted
