from dataclasses import fields
from pathlib import Path

import pytest

import ttsim
from device.errors import DeviceError
from device.memory.memory_config import BufferType
from tests.ttsim.recording.calls import tensor
from ttsim.runtime.device import Device

# Of ttnn 0.81.1, with an n150 described and not there, and the same tensors.
DETAILS_OF_L1 = """\
,L1
,Total allocatable (B):,87074816
,Total allocated (B):,1441792
,Total free (B):,85633024
FreeListOpt allocator info:
segregated free blocks by size:
  Size class 0: (1024 - 2048) blocks: 
  Size class 1: (2048 - 4096) blocks: 0 
  Size class 2: (4096 - 8192) blocks: 5 
  Size class 3: (8192 - 16384) blocks: 1 
  Size class 4: (16384 - 32768) blocks: 
  Size class 5: (32768 - 65536) blocks: 
  Size class 6: (65536 - 131072) blocks: 
  Size class 7: (131072 - 262144) blocks: 
  Size class 8: (262144 - 524288) blocks: 
  Size class 9: (524288 - 1048576) blocks: 
  Size class 10: (1048576 - inf) blocks: 2 
Free slots in block table: 
Block table:
       Block      Address         Size       PrevID       NextID    Allocated 
           0      1358496         2048            3         none           no 
           1      1344160        10240            4            3           no 
           2            0      1319584         none            6           no 
           3      1354400         4096            1            0          yes 
           4      1342112         2048            5            1          yes 
           5      1335968         6144            6            4           no 
           6      1319584        16384            2            5          yes 
"""  # noqa: W291 - as the real files end their lines


@pytest.fixture
def device() -> Device:
    return ttsim.open_device(l1_small_size=32768)


def tiles(device: Device, count: int) -> ttsim.Tensor:
    return tensor(device, 1, 1, 32, 32 * count, memory=ttsim.L1_MEMORY_CONFIG)


def with_holes(device: Device) -> list[ttsim.Tensor]:
    kept = [tiles(device, count) for count in (1, 65, 3, 200, 7, 130)]
    for index in (1, 3, 2):
        kept[index].deallocate()
    kept += [tiles(device, count) for count in (70, 500)]
    for index in (0, 5):
        kept[index].deallocate()
    return kept


def test_the_block_table_is_the_real_allocators(device: Device) -> None:
    kept, view = with_holes(device), ttsim.get_memory_view(device, BufferType.L1)
    # Banks; bytes of a bank: all, allocated, free, and the longest free block; the table of blocks
    banks, *figures, table = (getattr(view, field.name) for field in fields(view))
    assert (banks, figures, len(table)) == (64, [1360544, 22528, 1338016, 1319584], 7)
    assert list(table[0].items()) == [
        ("blockID", "0"), ("address", "1358496"), ("size", "2048"), ("prevID", "3"), ("nextID", str(2**64 - 1)),
        ("allocated", "no"),
    ]  # fmt: skip
    assert [block["prevID"] for block in table[1:]] == ["4", str(2**64 - 1), "1", "5", "6", "2"]
    for held in kept:
        held.deallocate()
    (block,) = ttsim.get_memory_view(device, BufferType.L1).block_table
    assert (block["address"], block["size"]) == ("0", "1360544")
    spare = device.machine.allocator.spare_numbers(BufferType.L1)
    assert sorted((*spare, int(block["blockID"]))) == [*range(7)]


def test_dumped_files(device: Device, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    kept = with_holes(device)
    ttsim.dump_device_memory_state(device)
    ttsim.dump_device_memory_state(device, prefix="again_")
    directory = tmp_path / "generated" / "reports"
    names = ["detailed_memory_usage.csv", "l1_usage_summary.csv", "memory_usage_summary.csv"]
    assert sorted(path.name for path in directory.iterdir()) == [*(f"again_{name}" for name in names), *names]
    detailed, l1, summary = ((directory / name).read_text() for name in names)
    assert DETAILS_OF_L1 in detailed
    assert detailed.startswith(",DRAM\n,Total allocatable (B):,12872318208\n")
    assert "  Size class 17: (134217728 - inf) blocks: 0 \n" in detailed  # DRAM
    assert "  Size class 5: (32768 - inf) blocks: 0 \n" in detailed  # L1_SMALL
    assert l1.splitlines() == [
        "This report indicates available space for interleaving L1 buffers",
        ", Largest Contiguous Free Block (B), Total Free L1 Space (B)",
        ",1319584,84453376",
    ]
    assert summary.splitlines() == [
        ", Total Allocatable Size (B), Total Allocated (B), Total Free (B), Largest Free Block (B)",
        ",1072693184,0,1072693184,1072693184",
        ",1360544,22528,1338016,1319584",
        ",32768,0,32768,32768",
    ]
    assert len(kept) == 8


def test_a_device_without_l1_small_or_a_view_of_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    device = ttsim.open_device()
    ttsim.dump_device_memory_state(device)
    assert ttsim.get_memory_view(device, BufferType.L1_SMALL).block_table == ()
    with pytest.raises(DeviceError, match=r"^get_memory_view: traces are not simulated"):
        ttsim.get_memory_view(device, BufferType.TRACE)
    summary = (tmp_path / "generated" / "reports" / "memory_usage_summary.csv").read_text()
    assert summary.splitlines()[-1] == ",0,0,0,0"
    detailed = (tmp_path / "generated" / "reports" / "detailed_memory_usage.csv").read_text()
    assert detailed.count("  Size class 1: (2048 - inf) blocks: \n") == 1  # of no memory there are two classes
