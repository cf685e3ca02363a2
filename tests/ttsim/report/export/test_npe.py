"""What the NPE page of the visualizer draws."""

import json
from dataclasses import replace

from ttsim.report.export.npe import npe_files

LINKS = {"NOC0": {"NOC0_EAST", "NOC0_SOUTH"}, "NOC1": {"NOC1_NORTH", "NOC1_WEST"}}


def documents(record):
    return {name: json.loads(text) for name, text in npe_files(record).items()}


def test_every_halo_leads_to_its_program(record):
    files = documents(record)
    halos = [one for one in record.operations if one.name == "HaloDeviceOperation"]
    assert files["manifest.json"] == [
        {"global_call_count": one.call_count, "file": f"program{one.program}.json"} for one in halos
    ]
    assert files.keys() == {"manifest.json", *(f"program{one.program}.json" for one in halos)}
    for one in halos:
        made = files[f"program{one.program}.json"]
        assert sum(each["total_bytes"] for each in made["noc_transfers"]) == one.time.traffic.network_bytes
        assert max(each["end_cycle"] for each in made["noc_transfers"]) <= one.time.cycles


def test_routes_lead_from_node_to_node(record):
    made = documents(record)["program2.json"]
    rows, cols = (made["common_info"][name] for name in ("num_rows", "num_cols"))
    step = {"EAST": (0, 1), "SOUTH": (1, 0), "NORTH": (-1, 0), "WEST": (0, -1)}
    for one in made["noc_transfers"]:
        (segment,) = one["route"]
        (_, *first, way_in), *links, (_, *last, way_out) = segment["links"]
        network = segment["noc_type"]
        assert (way_in, way_out) == (f"{network}_IN", f"{network}_OUT")
        row, col = first
        for _, *node, name in links:
            assert node == [row, col]
            assert name in LINKS[network]
            down, right = step[name.removeprefix(f"{network}_")]
            row, col = (row + down) % rows, (col + right) % cols
        assert [row, col] == last == one["dst"][0][1:]


def test_steps_name_transfers_and_links(record):
    made = documents(record)["program2.json"]
    assert 0 < len(made["timestep_data"]) <= 16
    numbers = {one["id"] for one in made["noc_transfers"]}
    for one in made["timestep_data"]:
        assert set(one["active_transfers"]) <= numbers
        most = max((figure for *_, figure in one["link_demand"]), default=0.0)
        assert most == max(each["max_link_demand"] for each in one["noc"].values())


def test_nothing_known_makes_no_file(record):
    assert npe_files(replace(record, timelines=())) == {}


def test_no_name_reaches_the_files(hostile):
    assert all(text.isascii() and "xxx" not in text for text in npe_files(hostile).values())
    assert npe_files(hostile) == npe_files(hostile)
