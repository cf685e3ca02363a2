"""Reports on networks, as far as the approved texts do not hold them."""

from device.spec.device_spec import load_spec
from tests.ttsim.report.ran_operations import runs_of, timed
from ttsim.report.network import LivingBuffer, network_report

SPEC = load_spec("wormhole_n150")
HELD = LivingBuffer(name="output", memory="L1", bank_bytes=500, address=1000, function="ttnn.f", where="net.py:1")


LONG = "very_long_folder/with\x1b[31m/" * 400 + "net.py:77"


def test_nothing_that_ran_is_said() -> None:
    assert str(network_report(runs_of(SPEC), SPEC)) == "No device operation ran on wormhole_n150."


def test_tables_of_any_width_have_whole_rows() -> None:
    """Whatever the names: columns go, and no figure is cut."""
    name = "InterleavedToShardedDeviceOperation"
    facts = [{"where": LONG, "l1": (0, 500), "buffers": (HELD,)}, {"where": "net.py:1", "call": 1}]
    runs = runs_of(SPEC, timed(name, 123_456_789), timed("B\n[red]" * 2000, 7), facts=facts)
    for width in (80, 120):
        text = network_report(runs, SPEC).table(width)
        lines = text.split("\n")
        assert max(map(len, lines)) <= width
        assert "\x1b" not in text
        first = next(line for line in lines if line.startswith("0 "))
        assert all(shown in first for shown in (name, "123,456,789", "100.0 %"))
        assert sum("net.py:77" in line for line in lines) >= 1
