from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ttsim
from tests.ttsim.api.calls import conv


def image(seed: int) -> ttsim.Tensor:
    values = np.random.default_rng(seed).standard_normal((1, 1, 64, 32), dtype=np.float32)
    return ttsim.Tensor(values, ttsim.bfloat16)


def model(x: ttsim.Tensor, device: ttsim.Device, **options: Any) -> ttsim.Tensor:
    """Two layers, the second of which takes what the first made; that is freed."""
    for side in (8, 16):
        x = conv(device, (side, side), seed=9, input_tensor=x, **options)
    return x


def test_a_replay_gives_what_the_calls_would_give() -> None:
    with ttsim.open_device(l1_small_size=32768, values="fast") as device:
        x = image(0).to(device)
        model(x, device)
        trace = ttsim.begin_trace_capture(device, cq_id=0)
        y = model(x, device)
        ttsim.end_trace_capture(device, trace, cq_id=0)
        first, address = y.to_numpy(), y.buffer_address()
        ttsim.copy_host_to_device_tensor(image(1), x)
        with ttsim.profile(device) as profile:
            ttsim.execute_trace(device, trace, cq_id=0, blocking=False)
        ttsim.wait_for_event(0, ttsim.record_event(device, 1))
        assert y.buffer_address() == address
        again = model(image(1).to(device), device)
        assert (y.to_numpy() == again.to_numpy()).all()
        assert not (y.to_numpy() == first).all()
        assert len(profile.report().calls) == 2
        ttsim.release_trace(device, trace)
        with pytest.raises(ValueError, match=r"the device has no MeshTraceId\(0\)"):
            ttsim.execute_trace(device, trace)


def test_a_call_may_consume_what_the_one_before_made() -> None:
    with ttsim.open_device(l1_small_size=32768, values="fast") as device:
        x = image(0).to(device, ttsim.L1_MEMORY_CONFIG)
        address = x.buffer_address()
        config = ttsim.Conv2dConfig(deallocate_activation=True)
        trace = ttsim.begin_trace_capture(device)
        y = model(x, device, conv_config=config)
        ttsim.end_trace_capture(device, trace)
        first = y.to_numpy()
        assert not x.is_allocated()
        with pytest.raises(RuntimeError, match="put a tensor like it in its place"):
            ttsim.execute_trace(device, trace)
        other = image(1).to(device, ttsim.L1_MEMORY_CONFIG)
        assert other.buffer_address() == address
        ttsim.execute_trace(device, trace)
        again = model(other, device)
        assert (y.to_numpy() == again.to_numpy()).all()
        assert not (y.to_numpy() == first).all()


def test_what_no_trace_can_do_is_refused() -> None:
    with ttsim.open_device(l1_small_size=32768, values="off") as device:
        trace = ttsim.begin_trace_capture(device)
        with pytest.raises(RuntimeError, match="Writes are not supported during trace capture"):
            image(0).to(device)
        with pytest.raises(ValueError, match="is being captured"):
            ttsim.begin_trace_capture(device)
        for call in (ttsim.execute_trace, ttsim.release_trace):
            with pytest.raises(ValueError, match="still being captured"):
                call(device, trace)
        ttsim.end_trace_capture(device, trace)
        ttsim.execute_trace(device, trace)
        ttsim.begin_trace_capture(device)
        with pytest.raises(ValueError, match="a trace is still being captured on this device"):
            ttsim.execute_trace(device, trace)


def test_what_a_trace_reads_must_be_kept() -> None:
    with ttsim.open_device(l1_small_size=32768, values="fast") as device:
        x = image(0).to(device)
        trace = ttsim.begin_trace_capture(device)
        y = model(x, device)
        ttsim.end_trace_capture(device, trace)
        x.deallocate()
        with pytest.raises(RuntimeError, match="deallocated in the capture or after it"):
            ttsim.execute_trace(device, trace)
        assert y.is_allocated()


def odd(seed: int, device: ttsim.Device) -> ttsim.Tensor:
    """Tiles with padding."""
    values = np.random.default_rng(seed).standard_normal((1, 1, 30, 40), dtype=np.float32)
    return ttsim.from_numpy(values, ttsim.bfloat16, layout=ttsim.TILE_LAYOUT, device=device)


@pytest.mark.parametrize(
    "call",
    [
        lambda a, b, room: ttsim.add(a, b),
        lambda a, b, room: ttsim.concat([a, b], 2),
        lambda a, b, room: ttsim.move(ttsim.add(a, b)),
        lambda a, b, room: ttsim.relu(ttsim.add(a, b, output_tensor=room)),
    ],
    ids=["add", "concat", "moved", "into a tensor"],
)
def test_a_replay_reads_and_writes_tensors_as_the_call_did(call: Callable[..., ttsim.Tensor]) -> None:
    with ttsim.open_device(values="fast") as device:
        a, b, other, room = (odd(seed, device) for seed in range(4))
        trace = ttsim.begin_trace_capture(device)
        y = call(a, b, room)
        ttsim.end_trace_capture(device, trace)
        ttsim.copy_host_to_device_tensor(other.cpu(), a)
        ttsim.execute_trace(device, trace)
        assert (y.to_numpy() == call(other, b, odd(5, device)).to_numpy()).all()


def test_queues_are_one_queue():
    assert repr(ttsim.QueueId(1)) == "QueueId(1)"
    with ttsim.command_queue(1):
        assert ttsim.get_current_command_queue_id_for_thread() == 0
    with ttsim.open_device(trace_region_size=4096) as device:
        trace = ttsim.begin_trace_capture(device)
        assert ttsim.is_trace_capture_active(device)
        ttsim.end_trace_capture(device, trace)
        assert not ttsim.is_trace_capture_active(device)
