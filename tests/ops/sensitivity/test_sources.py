"""Comments behind the figures of a device file."""

import pytest

from device.errors import SpecError
from ops.sensitivity.fields import source_of, sources_of


def test_a_figure_has_the_comment_of_the_nearest_file(tmp_path):
    (tmp_path / "base.toml").write_text('extends = "blackhole_p100"\n[dram]\nbanks = 3  # counted\n', encoding="utf-8")
    path = tmp_path / "mine.toml"
    path.write_text('extends = "base.toml"\nname = "a # b"\n[noc]\nhop_cycles = 4\n', encoding="utf-8")
    found = sources_of(path)
    assert source_of("dram.banks", found) == "counted"
    assert source_of("noc.hop_cycles", found) == ""  # whoever wrote it says nothing of it
    assert source_of("name", found) == ""
    assert source_of("grid.cols", found).startswith("[gemm]: two columns harvested")
    assert source_of("l1.bytes", found) == "[soc] worker_l1_size"


def test_what_stands_in_a_list_or_a_table_in_line_has_its_comment():
    found = sources_of("wormhole_n150")
    assert source_of("reader.tilize[3].dst_16bit_cycles", found) == "[planner]"
    assert source_of("reader.local.peak_at_bytes", found) == "[planner]"
    assert source_of("reader.nothing", found) == ""


def test_a_device_that_is_not_there_has_none():
    with pytest.raises(SpecError, match="unknown device 'wormhole_n15'"):
        sources_of("wormhole_n15")
