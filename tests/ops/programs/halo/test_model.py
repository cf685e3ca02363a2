"""What a halo does to numbers, and when two halos are equal."""

from dataclasses import replace

import numpy as np
import pytest

from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.spec.device_spec import load_spec
from ops.passes.cycles import expected_error
from ops.programs.halo.model import halo_class
from ops.programs.halo.plan import HaloOp, plan_halo
from tests.build import op_values
from tests.ops.programs.halo.halos import halo_plan

THIRD = np.full((4, 32), 1 / 3, np.float32)


def halo(data_format=BFLOAT16, *, tiled=False, fp32_dest=False):
    return HaloOp(plan=halo_plan(data_format=data_format, tiled=tiled), fp32_dest=fp32_dest)


def bits_kept(values):
    """Mantissa bits of 1/3 that are left."""
    zeros = int(values.view(np.uint32)[0, 0])
    return 23 - min(23, (zeros & -zeros).bit_length() - 1)


@pytest.mark.parametrize(
    ("tiled", "fp32_dest", "bits"), [(False, False, 23), (False, True, 23), (True, True, 10), (True, False, 7)]
)
def test_untilizing_cuts_float32(tiled, fp32_dest, bits):
    """Rows pass untouched; tiles go through Dst, which keeps what an operand has."""
    got = op_values(halo(FLOAT32, tiled=tiled, fp32_dest=fp32_dest), THIRD)
    assert bits_kept(got) <= bits
    assert np.abs(got - THIRD).max() < 2.0 ** -(bits + 1)
    assert (got == THIRD).all() == (not tiled)


@pytest.mark.parametrize("data_format", [BFLOAT16, BFLOAT8_B])
def test_untilizing_keeps_narrow_formats(data_format):
    values = THIRD.astype(data_format.storage)
    assert op_values(halo(data_format, tiled=True), values) is values


def test_operations_are_equal_whatever_their_tensors_are_called():
    other = HaloOp(plan=plan_halo(halo().plan.arguments, input_tensor="y", output_tensor="halo2"), fp32_dest=False)
    assert (halo(), hash(halo())) == (other, hash(other))
    assert halo() not in (halo(tiled=True), replace(halo(), fp32_dest=True))


@pytest.mark.parametrize("tiled", [False, True])
def test_error_bars_of_a_halo_tell_which_kernels_were_measured(tiled):
    """Wormhole has rows of the kernels of 2025-02 alone, whose two processors share out tasks; Blackhole has none."""

    def bar(device, release):
        arguments, spec = replace(halo_plan().arguments, tiled=tiled), load_spec(device).replace(release=release)
        return expected_error(halo_class(arguments, spec), spec.arch, "shards")

    assert bar("blackhole_p150", "2025-02") is None
    assert [bar("blackhole_p150", release).older_release for release in ("0.81.1", "2025")] == ["", ""]
    releases = "0.81.1", "2025", "2025-02"
    assert [bar("wormhole_n150", release).older_release for release in releases] == ["2025-02", "2025-02", ""]
    assert bar("wormhole_n150", "0.81.1").share > 2 * bar("wormhole_n150", "2025-02").share
