"""A candidate takes what the report on its call says."""

import pytest

import ttsim
from device.errors import DeviceError
from tests.ttsim.study.tune.tuned_calls import options, question
from ttsim.study.tune.search import evaluate


@pytest.mark.parametrize("kind", ["l1", "dram"])
def test_cycles_are_those_of_the_report(kind):
    asked = question(kind)
    made = evaluate(asked.call, asked.ground)
    memory = ttsim.L1_MEMORY_CONFIG if kind == "l1" else ttsim.DRAM_MEMORY_CONFIG
    with ttsim.open_device(l1_small_size=32768, spec="wormhole_n150", values="off") as device:
        report = ttsim.estimate_cycles(ttsim.conv_transpose2d, device=device, **options(memory))
    assert made.cycles == report.cycles
    assert 0 < made.around_cycles < made.cycles
    assert made.output.shape == (1, 1, 256, 32)


def test_what_is_refused_says_so():
    asked = question("dram")
    call = asked.call.__class__(
        **{name: getattr(asked.call, name) for name in asked.call.__dataclass_fields__} | {"stride": (0, 0)}
    )
    with pytest.raises(DeviceError, match="stride"):
        evaluate(call, asked.ground)
