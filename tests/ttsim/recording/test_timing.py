import pytest

from device.spec.device_spec import load_spec
from ops.passes.cycles import operations_of, run_cycles
from ttsim.recording.profiling import timed_call
from ttsim.report.cycles import whole_operation
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.run import Settings, call, make_inputs, place

SPEC = load_spec("wormhole_n150")


def ran_call(**changes):
    fields = {"in_channels": 32, "out_channels": 16, "input_height": 8, "input_width": 8, "stride": (2, 2)}
    layer = Layer(**fields | changes)
    placed = place(layer, make_inputs(layer), Settings(spec=SPEC, values="off"))
    with placed.device:
        return call(placed).profile.calls[0]


@pytest.mark.parametrize("fidelity", ["LoFi", "HiFi2", "HiFi3", "HiFi4"])
def test_cycles_and_fidelity_of_a_call(fidelity):
    result = ran_call(compute={"math_fidelity": fidelity})
    timed = timed_call(result, SPEC)
    read = run_cycles(result.plan, SPEC, ran=result.ran).operations
    assert [(operation.name, operation.taken) for operation in timed.operations] == [
        (one.name, whole_operation(one.cycles)) for one in read
    ]
    assert [operation.name for operation in timed.operations] == [
        operation.name for operation in operations_of(result.plan, result.ran)
    ]
    assert timed.name == "ttnn.conv_transpose2d"
    assert timed.untimed == ()
    fidelity_phases = {"LoFi": 1, "HiFi2": 2, "HiFi3": 3, "HiFi4": 4}[fidelity]
    assert {
        operation.fidelity_phases for operation in timed.operations if operation.name == "Conv2dDeviceOperation"
    } == {fidelity_phases}
    assert {
        operation.fidelity_phases for operation in timed.operations if operation.name != "Conv2dDeviceOperation"
    } == {0}


def test_a_1x1_convolution_multiplies_as_a_matmul():
    result = ran_call(kernel_size=(1, 1), stride=(1, 1), compute={"math_fidelity": "HiFi3"})
    assert [
        operation.fidelity_phases for operation in timed_call(result, SPEC).operations if "Matmul" in operation.name
    ] == [3]


@pytest.mark.parametrize(("groups", "stride"), [(1, (1, 1)), (1, (2, 2)), (4, (2, 1))])
def test_useful_flops_are_the_definitions(groups, stride):
    result = ran_call(groups=groups, stride=stride, kernel_size=(3, 2), padding=(1, 0), batch_size=2)
    assert result.useful_flops == 2 * 2 * 8 * 8 * 32 * 16 * 3 * 2 // groups


def test_inserted_zeros_are_issued():
    """Without padding and with whole tiles, a stride issues its square of what is useful."""
    result = ran_call(
        in_channels=64, out_channels=32, input_height=32, input_width=32, kernel_size=(2, 2), stride=(2, 2)
    )
    timed = timed_call(result, SPEC)
    assert sum(operation.taken.issued_flops for operation in timed.operations) == 4 * result.useful_flops
