"""Rows of dispatch.csv become programs."""

import pytest

from ops.launch import DispatchCosts
from tools.validate.dispatch import predict_dispatch, read_dispatch_row
from tools.validate.prediction import NotPredictedError

ROW = {
    "device": "Wormhole",
    "arch": "wormhole_b0",
    "clock_mhz": "1000.0",
    "kind": "CI golden",
    "quantity": "time per program iteration",
    "value": "2.5",
    "unit": "us",
    "size_bytes": "1024",
}


def program(test, **changes):
    """The first program of a test."""
    return read_dispatch_row(ROW | {"test": test} | changes).programs[0].program


@pytest.mark.parametrize(
    ("test", "cores", "processors", "binaries"),
    [
        ("brisc_only_trace", 1, 1, 1),
        ("brisc_trisc_only_trace", 1, 4, 4),
        ("trisc_only_trace", 1, 3, 3),
        ("all_processors_all_cores_trace", 56, 5, 5),
        ("one_processors_all_cores_1_rta", 56, 1, 1),
        ("sems_all_cores_1_processor_trace", 56, 1, 1),
        ("kernel_groups_trace", 56, 5, 40),
        ("kernel_groups_5_shadow", 56, 5, 35),
        ("eth_dispatch", 1, 1, 1),
    ],
)
def test_where_kernels_run(test, cores, processors, binaries):
    found = program(test)
    assert (found.cores, found.processors, found.binaries) == (cores, processors, binaries)
    assert found.binary_bytes == 1024


def test_configuration():
    assert program("all_processors_all_cores_32cb_8g").circular_buffers == 32
    assert program("all_processors_all_cores_32cb_8g").groups == 8
    assert program("kernel_groups_1_cb_trace").circular_buffers == 1
    assert program("kernel_groups_1_cb_trace").buffer_groups == 1
    assert program("kernel_groups_128_rta_trace").arguments == 128
    assert program("all_processors_1_core_128_crta").common_arguments == 128
    assert program("all_processors_all_cores_1cb_1sem").semaphores == 1
    most = program("maxed_config_params_trace")
    assert (most.arguments, most.circular_buffers, most.semaphores, most.groups) == (128, 32, 4, 1)


def test_kernels_that_run_for_some_cycles():
    def kernels(test, size="1024"):
        return [one.kernel_cycles for one in read_dispatch_row(ROW | {"test": test, "size_bytes": size}).programs]

    assert kernels("brisc_only_trace") == [0]
    assert kernels("10000_kernel_all_cores_all_processors_32_cbs_trace") == [10_000]
    assert kernels("256_bytes_brisc_only_all_processors_trace", "3000") == [3000]
    assert kernels("kernel_groups_4_shadow") == [40_000, 0, 0, 0, 0]
    assert program("256_bytes_brisc_only_all_processors_trace", size_bytes="3000").binary_bytes == 256


def test_ethernet_cores_dispatch_on_the_board_that_has_them_do_so():
    assert read_dispatch_row(ROW | {"test": "eth_dispatch"}).spec.name == "wormhole_n300"


def test_time_of_an_iteration():
    """Empty kernels: from program to program the prefetching core is busy."""
    one = predict_dispatch(ROW | {"test": "brisc_only_trace"})
    assert one.measured_ns == 2500
    costs = read_dispatch_row(ROW | {"test": "brisc_only_trace"}).spec.costs_of(DispatchCosts)
    assert one.predicted_ns == pytest.approx(costs.fetch_cycles + 1024 / costs.binary_bytes_per_cycle)


def test_other_measurements_are_not_predicted():
    with pytest.raises(NotPredictedError, match="no time from program to program"):
        read_dispatch_row(ROW | {"test": "binary op, trace", "kind": "measured (issue report)"})
