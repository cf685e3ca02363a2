"""What notebooks show of reports, and of a profile: a page in a frame."""

from html import unescape

import numpy as np
import pytest

import ttsim as ttnn
from ttsim.recording.pages import page_of_run
from ttsim.report.writers.html.document import page_html


@pytest.fixture(scope="module")
def profile():
    with ttnn.open_device(device_id=0, spec="wormhole_n150", values="off", l1_small_size=32768) as device:
        x = ttnn.Tensor(np.zeros((1, 1, 64, 32), np.float32), ttnn.bfloat16).to(device, ttnn.L1_MEMORY_CONFIG)
        w = ttnn.Tensor(np.zeros((32, 32, 2, 2), np.float32), ttnn.bfloat16)
        with ttnn.profile(device) as made:
            ttnn.conv_transpose2d(
                input_tensor=x, weight_tensor=w, device=device, in_channels=32, out_channels=32, batch_size=1,
                input_height=8, input_width=8, kernel_size=(2, 2), stride=(2, 2))  # fmt: skip
        yield made


def document(frame: str) -> str:
    """What a frame shows; nothing stands beside it."""
    assert frame.startswith("<iframe ")
    head, content = frame.split(' srcdoc="')
    assert 'sandbox="allow-scripts"' in head
    content, quote, rest = content.partition('"')
    assert (quote, rest) == ('"', "></iframe>")
    return unescape(content)


def test_a_profile_shows_the_page_of_its_file(profile) -> None:
    page = page_of_run(profile.network(), profile.report(), profile.ran, profile.device.spec)
    assert document(profile._repr_html_()) == page_html(page)


def test_a_report_on_cycles_shows_its_operations(profile) -> None:
    report = profile.report()
    shown = document(report._repr_html_())
    assert all(f"{one.cycles:,}" in shown for one in report.operations)
    assert "Roofline" in shown
    assert "L1 of a core" not in shown  # of which it knows nothing


def test_a_shown_report_finds_out_its_launches_when_asked(profile) -> None:
    report = profile.report()
    assert callable(vars(report)["launches"])
    assert report.launches.programs == len(profile.calls[0].ran)


def test_a_report_on_a_network_shows_its_memory(profile) -> None:
    network = profile.network()
    shown = document(network._repr_html_())
    assert all(f"{one.cycles:,}" in shown for one in network.operations)
    assert all(f"{one.held.size_bytes:,}" in shown for one in network.l1.blocks)
    assert "Roofline" not in shown


def test_advice_is_kept_and_nothing_ran(profile) -> None:
    assert "Which part of the machine it hangs on" in document(profile.report(suggestions=True)._repr_html_())
    with ttnn.open_device(values="off") as device, ttnn.profile(device) as empty:
        assert "No device operation ran." in document(empty._repr_html_())
        assert document(empty.report()._repr_html_())
