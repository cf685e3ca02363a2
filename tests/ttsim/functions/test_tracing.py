import numpy as np
import pytest

import ttsim


def image(seed: int) -> ttsim.Tensor:
    values = np.random.default_rng(seed).standard_normal((1, 1, 64, 32), dtype=np.float32)
    return ttsim.Tensor(values, ttsim.bfloat16)


def weights() -> ttsim.Tensor:
    return ttsim.Tensor(np.random.default_rng(9).standard_normal((32, 32, 2, 2), dtype=np.float32), ttsim.bfloat16)


def model(x: ttsim.Tensor, device: ttsim.Device) -> ttsim.Tensor:
    """Two layers, the second of which takes what the first made; that is freed."""
    sizes = {"in_channels": 32, "out_channels": 32, "batch_size": 1, "kernel_size": (2, 2), "stride": (2, 2)}
    for side in (8, 16):
        x = ttsim.conv_transpose2d(
            input_tensor=x, weight_tensor=weights(), device=device, input_height=side, input_width=side, **sizes
        )
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


def test_what_no_trace_can_do_is_refused() -> None:
    with ttsim.open_device(l1_small_size=32768, values="off") as device:
        trace = ttsim.begin_trace_capture(device)
        with pytest.raises(RuntimeError, match="Writes are not supported during trace capture"):
            image(0).to(device)
        with pytest.raises(ValueError, match="is being captured"):
            ttsim.begin_trace_capture(device)
        with pytest.raises(ValueError, match="still being captured"):
            ttsim.execute_trace(device, trace)
        ttsim.end_trace_capture(device, trace)
        ttsim.execute_trace(device, trace)


def test_what_a_trace_reads_must_be_kept() -> None:
    with ttsim.open_device(l1_small_size=32768, values="fast") as device:
        x = image(0).to(device)
        trace = ttsim.begin_trace_capture(device)
        y = model(x, device)
        ttsim.end_trace_capture(device, trace)
        x.deallocate()
        with pytest.raises(RuntimeError, match="deallocated after the capture"):
            ttsim.execute_trace(device, trace)
        assert y.is_allocated()


def test_queues_are_one_queue():
    assert repr(ttsim.QueueId(1)) == "QueueId(1)"
    with ttsim.command_queue(1):
        assert ttsim.get_current_command_queue_id_for_thread() == 0
    with ttsim.open_device(trace_region_size=4096) as device:
        trace = ttsim.begin_trace_capture(device)
        assert ttsim.is_trace_capture_active(device)
        ttsim.end_trace_capture(device, trace)
        assert not ttsim.is_trace_capture_active(device)
