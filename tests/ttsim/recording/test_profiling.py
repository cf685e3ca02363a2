"""Useful and issued work of calls."""

import pickle
from copy import copy, deepcopy

import pytest

import ttsim as ttnn
from device.errors import ArgumentTypeError, DeviceError
from device.spec.device_spec import load_spec
from tests.ttsim.recording.calls import conv, opened, options
from ttsim.recording.profiling import timed_call
from ttsim.runtime.types.layer import Layer
from ttsim.study.layers.run import Settings, call, make_inputs, place


def memory(device):
    machine = device.machine
    return [(one.number, one.address, one.name) for one in machine.memory.live()], set(machine.program_cache)


def test_a_report_may_be_read_meanwhile_and_a_program_in_the_cache_takes_as_long():
    with opened() as device, ttnn.profile(device) as profiled:
        assert profiled.report().calls == ()
        conv(device)
        assert len(profiled.report().calls) == 1
        conv(device)
        first, second = profiled.report().calls
    assert repr(profiled) == "<Profile of wormhole_n150: 2 calls>"
    assert first.total.cycles == second.total.cycles


def test_reports_are_shown_in_a_line_and_stay_as_they_are():
    with opened() as device, ttnn.profile(device) as profiled:
        conv(device)
    for report, kind in ((profiled.report(), "CycleReport"), (profiled.network(), "NetworkReport")):
        assert repr(report) == f"<{kind}: {report.headline}>"
        assert report.headline.startswith(f"wormhole_n150: {report.cycles:,} cycles")
        assert report.table().startswith(report.headline)
        assert copy(report) is deepcopy(report) is report
        with pytest.raises(ArgumentTypeError, match=r"a report cannot be pickled; to_json\(\) and to_dict\(\) hold"):
            pickle.dumps(report)


def test_profiles_nest():
    with opened() as device, ttnn.profile(device) as outer:
        conv(device)
        with ttnn.profile(device) as inner:
            conv(device)
        with ttnn.profile(device) as other:
            pass
        conv(device)
    assert [len(profile.report().calls) for profile in (outer, inner, other)] == [3, 1, 0]
    assert outer.report().cycles == sum(call.total.cycles for call in outer.report().calls)


def test_an_error_ends_a_profile_and_leaves_no_trace():
    config = ttnn.Conv2dConfig(shard_layout=ttnn.TensorMemoryLayout.HEIGHT_SHARDED)
    with opened() as device:
        with pytest.raises(DeviceError), ttnn.profile(device) as profiled:
            conv(device), conv(device, size=1024, conv_config=config)
        assert (device.profilers, device.running, len(profiled.report().calls)) == ([], "", 1)


def test_what_does_not_run_takes_no_time():
    """A device without cycles, calls that are not dispatched, prepared weights, and tensors that are fetched."""
    with opened(cycles=False) as device, ttnn.profile(device) as profiled:
        conv(device)
    assert profiled.report().calls == ()
    with opened() as device, ttnn.profile(device) as profiled:
        ttnn.graph.begin_graph_capture(ttnn.graph.RunMode.NO_DISPATCH)
        conv(device)
        ttnn.graph.end_graph_capture()
        assert profiled.report().calls == ()
        conv(device, return_weights_and_bias=True)
        options(device)["input_tensor"].cpu()
    assert len(profiled.calls) == len(profiled.report().calls) == 1


@pytest.mark.parametrize("name", ["conv_transpose2d", "add", "concat"])
def test_an_estimate_is_what_the_call_takes(name):
    with opened() as device:
        x = ttnn.zeros((1, 1, 64, 64), layout=ttnn.TILE_LAYOUT, device=device)
        given = options(device, conv_config=ttnn.Conv2dConfig(deallocate_activation=True))
        arguments, given = {"add": ((x, x), {}), "concat": (([x, x], -1), {})}.get(name, ((), given))
        run = getattr(ttnn, name)
        before = memory(device)
        estimate = ttnn.estimate_cycles(run, *arguments, device=device, **given)
        assert memory(device) == before
        with ttnn.profile(device) as profiled:
            run(*arguments, **given | ({"device": device} if given else {}))
    assert estimate == profiled.report()


def test_an_estimate_disturbs_neither_profiles_nor_captures_and_fails_as_the_call_would():
    with opened() as device, ttnn.profile(device) as profiled:
        given, large = options(device), options(device, size=1024, memory=ttnn.DRAM_MEMORY_CONFIG)
        large["dram_slice_config"] = ttnn.Conv2dL1FullSliceConfig
        ttnn.graph.begin_graph_capture()
        ttnn.estimate_cycles(ttnn.conv_transpose2d, device=device, **given)
        with pytest.raises(DeviceError):
            ttnn.estimate_cycles(ttnn.conv_transpose2d, device=device, **large)
        assert ttnn.graph.extract_calltrace(ttnn.graph.end_graph_capture()) == []
    assert profiled.report().calls == ()


SPEC = load_spec("wormhole_n150")


def ran_call(**changes):
    fields = {"in_channels": 32, "out_channels": 16, "input_height": 8, "input_width": 8, "stride": (2, 2)}
    layer = Layer(**fields | changes)
    placed = place(layer, make_inputs(layer), Settings(spec=SPEC, values="off"))
    with placed.device:
        return call(placed).profile.calls[0]


@pytest.mark.parametrize(("groups", "stride"), [(1, (1, 1)), (4, (2, 1))])
def test_useful_flops_are_the_definitions(groups, stride):
    result = ran_call(groups=groups, stride=stride, kernel_size=(3, 2), padding=(1, 0), batch_size=2)
    assert result.useful_flops == 2 * 2 * 8 * 8 * 32 * 16 * 3 * 2 // groups


def test_inserted_zeros_are_issued():
    """Without padding and with whole tiles, a stride issues its square of what is useful."""
    result = ran_call(in_channels=64, out_channels=32, input_height=32, input_width=32, kernel_size=(2, 2))
    timed = timed_call(result, SPEC)
    assert sum(operation.taken.issued_flops for operation in timed.operations) == 4 * result.useful_flops
