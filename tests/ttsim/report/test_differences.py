"""What differs between two devices."""

from ops.sensitivity.changes import load_spec
from ttsim.report.devices import FieldDifference, differences

SPEC = load_spec("wormhole_n150")


def test_every_field_that_differs_in_the_order_of_a_file():
    other = load_spec("wormhole_n150, dram.banks=16, clock_hz=0.5GHz, noc.worker_cols=1,2, arch=mine")
    assert differences(SPEC, other) == (
        FieldDifference(name="arch", unit="", before="wormhole_b0", after="mine", ratio=None),
        FieldDifference(name="clock_hz", unit="Hz", before=10**9, after=5 * 10**8, ratio=0.5),
        FieldDifference(name="dram.banks", unit="banks", before=12, after=16, ratio=16 / 12),
        FieldDifference(
            name="noc.worker_cols", unit="", before=[1, 2, 3, 4, 6, 7, 8, 9], after=[1, 2], ratio=None
        ),
    )  # fmt: skip
    assert differences(SPEC, SPEC.replace(name="another")) == ()


def test_a_field_of_one_of_them_alone():
    fewer = SPEC.replace(reader_tilize=SPEC.reader.tilize[:-1])
    found = differences(SPEC, fewer)
    assert [one.name for one in found] == [
        f"reader.tilize[5].{name}" for name in ("input_format", "output_format", "dst_16bit_cycles", "dst_32bit_cycles")
    ]
    last = FieldDifference(name="reader.tilize[5].dst_32bit_cycles", unit="cycles", before=43, after=None, ratio=None)
    assert found[-1] == last
