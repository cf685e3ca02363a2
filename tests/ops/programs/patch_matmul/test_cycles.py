import pytest

from device.numbers.formats import FLOAT32
from device.spec.device_spec import load_spec
from device.time.stages import Stage
from ops.programs.patch_matmul.cycles import fill_rows_cycles, product_cycles, sum_sections_cycles
from ops.programs.patch_matmul.op import FillRows, Patches, Precision, SumSections, slicing_of
from ops.programs.patch_matmul.plan import patch_matmul_work, pixel_matmul_work
from ops.window import axis_of_windows, output_phases

SPEC = load_spec("wormhole_n150")


def frame(stride=2):
    return axis_of_windows(input_length=16, outputs=16 * stride, kernel=4, start=-2, dilation=1, input_dilation=stride)


def work_of(axis, data_format=FLOAT32, precision=Precision.IEEE, spec=SPEC, kind=patch_matmul_work):
    patches = Patches(batch=1, axes=(axis, axis), channels=64, groups=1, bundles=1)
    common = {"slicing": slicing_of(data_format, precision), "out_format": data_format, "spec": spec}
    if kind is pixel_matmul_work:
        return pixel_matmul_work(patches, channels=64, **common)
    return patch_matmul_work(patches, out_channels=64, out_shape=(32, 32), bias=False, **common)


@pytest.mark.parametrize("kind", [patch_matmul_work, pixel_matmul_work])
def test_passes_cost_what_they_do(kind):
    axis = frame(1)
    device = product_cycles(work_of(axis, precision=Precision.DEVICE, kind=kind), SPEC)
    ieee = product_cycles(work_of(axis, kind=kind), SPEC)
    assert ieee.cycles > 2 * device.cycles
    assert ieee.issued_flops >= 13 * device.issued_flops
    assert ieee.useful_flops == device.useful_flops


def test_inserted_zeros_are_issued_but_not_useful():
    whole = product_cycles(work_of(frame()), SPEC)
    dense = [phase.axis for phase in output_phases(frame())]
    parts = [product_cycles(work_of(one), SPEC) for one in dense for _ in range(len(dense))]
    assert whole.useful_flops * 1.1 > sum(part.useful_flops for part in parts) > whole.useful_flops * 0.9
    assert whole.issued_flops == 4 * sum(part.issued_flops for part in parts)


FIGURES = {
    "matmul_costs_start_cycles": 2000.0,
    "matmul_costs_k_block_cycles": 200.0,
    "movement_costs_start_cycles": 500.0,
    "movement_costs_stick_cycles": 70.0,
    "movement_costs_page_rate_share": 0.5,
    "movement_costs_stick_write_cycles": 50.0,
    "movement_costs_dram_write_share": 0.8,
    "transfer_costs_multicast_receiver_cycles": 3.0,
    "compute_unpack_bytes_per_cycle": 64.0,
    "compute_pack_bytes_per_cycle": 64.0,
    "compute_costs_tilize_tile_cycles": 6.0,
    "compute_costs_untilize_narrow_tile_cycles": 80.0,
    "compute_costs_matmul_call_cycles": 5.0,
    "compute_costs_subblock_cycles": 50.0,
    "compute_costs_block_cycles": 100.0,
    "compute_costs_add_tile_cycles": 60.0,
    "compute_costs_reload_cycles": 30.0,
    "compute_costs_reload_tile_cycles": 20.0,
}


def test_a_patch_matmul_by_hand():
    """64 sticks of 64 float32 channels times 64 x 64 weights, one pass: 2 x 2 output tiles, four cores of Wormhole."""
    axis = axis_of_windows(input_length=8, outputs=8, kernel=1, start=0)
    cycles = product_cycles(work_of(axis, precision=Precision.DEVICE), SPEC.replace(**FIGURES))
    # Two K blocks of a tile. A core gathers 32 sticks for both, each after 70 cycles and its
    # 256 bytes at half a bank's rate, and sends 4096 bytes, a packet, for each to two.
    block = 32 * (70.0 + 256 / 12) / 2 + 200 + 2 * 3 + 4096 / 30
    # It tilizes the tile and unpacks it for one product, as slow as HiFi4 multiplies; partial sums are fetched back.
    tilize = 6 + 4096 / 64 + 4096 / 64
    multiply = tilize + 100 + (30 + 20) + (4 * 16 + 5) + 50 + 4096 / 64
    # The output tile is untilized and written in 32 rows, 50 cycles apart.
    finish = 80 + 32 * 50.0
    assert cycles.cycles == pytest.approx(2000 + 2 * block + multiply + finish, rel=1e-12)
    assert cycles.bound_by is Stage.READER


def test_filling_and_adding_by_hand():
    spec = SPEC.replace(**FIGURES)
    axis = axis_of_windows(input_length=8, outputs=8, kernel=1, start=0)
    fill = FillRows(batch=1, axes=(axis, axis), out_channels=64, out_shape=(8, 8), bias=False, out_format=FLOAT32)
    # 64 rows of 256 bytes, one for each core; the banks take 16 KiB at 0.8 of 0.922 of 288 bytes a cycle.
    assert fill_rows_cycles(fill, spec).cycles == pytest.approx(500 + 64 * 256 / (0.8 * 0.922 * 288), rel=1e-12)
    fast = spec.replace(dram_bank_bytes_per_second=1e12)  # banks that never bind
    assert fill_rows_cycles(fill, fast).cycles == 500 + 50
    # 64 rows of 64 columns, one for each core: two bands of 256 bytes are read.
    add = SumSections(sections=2, rows=64, columns=64, out_format=FLOAT32)
    read = 2 * (70.0 + 256 / 12)
    assert sum_sections_cycles(add, fast).cycles == pytest.approx(500 + max(read, 4 * 60.0))
