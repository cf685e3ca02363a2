"""Loads of links by hand: two worker cores beside each other, on the torus of Wormhole, 10 nodes wide and 12 high."""

import json

import pytest

import ttsim as ttnn
from ttsim.__main__ import main
from ttsim.report.links import LinkPart, chosen_use, grid_lines, link_text, link_uses, links_lines
from ttsim.report.page_charts import link_chart
from ttsim.report.page_tables import link_rows

ROUND = [(1, 1), *((col, 1) for col in range(2, 10)), (0, 1)]  # the ring of the row of both cores


@pytest.fixture(scope="module")
def report():
    """Core 0-0 is node 1-1, core 1-0 is node 2-1; both read two tiles, a tile in the L1 of each, and write two."""
    with ttnn.open_device(spec="n150, grid=2x1", values="off") as device, ttnn.profile(device) as profile:
        memory = ttnn.L1_MEMORY_CONFIG
        tensor = ttnn.zeros((1, 1, 32, 64), layout=ttnn.TILE_LAYOUT, device=device, memory_config=memory)
        ttnn.relu(tensor)
    return profile.report()


@pytest.fixture(scope="module")
def use(report):
    (use,) = link_uses(report)
    return use


def test_loads_of_two_cores(use):
    """A quarter of 4,096 bytes goes from each core to the other: one link right, or the nine others of the ring."""
    right = {
        (col, row): moved for row, line in enumerate(use.loads["right"]) for col, moved in enumerate(line) if moved
    }
    assert right == dict.fromkeys(ROUND, 1024)  # what is read, over the first network
    left = {(col, row): moved for row, line in enumerate(use.loads["left"]) for col, moved in enumerate(line) if moved}
    assert left == right  # what is written, over the second network
    assert not any(map(any, use.loads["down"] + use.loads["up"]))
    assert sum(map(sum, use.loads["right"])) == use.operation.actions.first_network_link_bytes == 10 * 1024


def test_the_busiest_link_its_time_and_what_loads_it(use):
    """Of equal links the first; at 32 bytes a cycle and 1 GHz the link is busy for 32 ns."""
    assert (use.direction, use.leaves, use.enters, use.moved_bytes) == ("right", (0, 1), (1, 1), 1024)
    assert link_text(use) == "DRAM 1 to core 0-0 (→)"
    rate = use.operation.spec.noc.link_bytes_per_cycle
    assert use.nanoseconds == pytest.approx(1024 / rate)
    assert use.share == pytest.approx(use.nanoseconds / use.operation.nanoseconds)
    assert use.parts == (
        LinkPart(what="core to core", moved_bytes=1024, sources="{[1-0 - 1-0]}", destinations="{[0-0 - 0-0]}"),
    )
    (part,) = use.parts_of("right", (1, 1))
    assert (part.sources, part.destinations) == ("{[0-0 - 0-0]}", "{[1-0 - 1-0]}")
    assert use.parts_of("down", (1, 1)) == []


def test_the_grid_is_drawn_in_tenths(use):
    lines = grid_lines(use, 120)
    assert lines[2] == "           0   1                                         0   1"
    assert lines[4] == "   0 D#.  #.  #.  #.  #. D#.  #.  #.  #.  #.     0 D#.  #.  #.  #.  #. D#.  #.  #.  #.  #."
    assert lines[3].split() == ["..", "..", "..", "..", "..", "..", "..", "..", "..", ".."] * 2
    assert len(grid_lines(use, 80)) == len(lines) + 16  # one network below the other, and the note in two more lines


def test_an_operation_is_chosen_by_number_or_name(report, use):
    assert chosen_use([use], "") is chosen_use([use], "0") is chosen_use([use], "Unary") is use
    assert chosen_use([use], "1") is chosen_use([use], "Halo") is None
    assert links_lines(report, "Halo")[-1] == "No operation of the table has 'Halo' in its number or name."


def test_what_moves_nothing_over_links_is_left_out():
    with ttnn.open_device(spec="n150", values="off") as device, ttnn.profile(device) as profile:
        ttnn.zeros((1, 1, 32, 64), layout=ttnn.TILE_LAYOUT, device=device)
    assert links_lines(profile.report()) == ["Links: no operation moves bytes over them."]


def test_a_page_draws_the_links_and_lists_the_busiest(use):
    chart = link_chart([use])
    assert (chart["size"], chart["first"], chart["names"][0][11:13]) == ([10, 12], 0, ["core 0-0", "core 1-0"])
    ((number, name, byte, whole, loads),) = chart["parts"]
    assert (number, name, len(loads), len(loads[0]), loads[0][10:13]) == (0, use.name, 4, 120, [1024] * 3)
    assert byte * 1024 == pytest.approx(use.nanoseconds)
    assert whole == use.operation.nanoseconds
    assert [row.leaves for row in link_rows([use])] == sorted(ROUND)[:4]
    assert link_chart([]) is None


LAYER = ["--shape", "1,8,8,32", "--out-channels", "16", "--stride", "2", "--values", "off", "--no-suggestions", "-q"]


def test_the_flag_adds_links_to_text_json_and_page(tmp_path, capsys):
    """Without the flag, none of the three has them."""
    texts = []
    for flags in ([], ["--links"]):
        files = tmp_path / f"{len(flags)}.json", tmp_path / f"{len(flags)}.html"
        assert main(["run", *LAYER, *flags, "--json", str(files[0]), "--html", str(files[1])]) == 0
        assert main(["run", *LAYER, *flags]) == 0
        texts.append((capsys.readouterr().out, json.loads(files[0].read_text()), files[1].read_text()))
    (text, (layer,), page), (text_with, (layer_with,), page_with) = (
        (text, document["layers"], page) for text, document, page in texts
    )
    assert "Busiest link of #" in text_with.replace(text, "")
    assert "First network" not in text
    assert "links" not in layer
    first = layer_with["links"][0]
    assert max(moved for loads in first["loads"].values() for line in loads for moved in line) == first["moved_bytes"]
    assert '"kind":"links"' in page_with
    assert '"kind":"links"' not in page
