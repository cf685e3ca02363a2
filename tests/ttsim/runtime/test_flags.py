from argparse import ArgumentParser

import pytest

from device.errors import SpecError
from ttsim.runtime.settings import SPEC_VARIABLE, add_device, chosen_device


def chosen(*words):
    parser = ArgumentParser()
    add_device(parser)
    return chosen_device(parser.parse_args(words))


def test_the_flag_stands_above_the_environment(monkeypatch):
    monkeypatch.delenv(SPEC_VARIABLE, raising=False)
    assert chosen() == "wormhole_n150"
    monkeypatch.setenv(SPEC_VARIABLE, "blackhole_p100")
    assert chosen("--set", "grid=9x7") == "blackhole_p100, grid=9x7"
    assert chosen("--device", "blackhole_p150", "--set", "dram.banks=6") == "blackhole_p150, dram.banks=6"


def test_what_is_no_change():
    with pytest.raises(SpecError, match="a change is FIELD=VALUE, not 'dram'"):
        chosen("--set", "dram")
