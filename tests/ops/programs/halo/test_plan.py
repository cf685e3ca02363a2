"""A planned halo: tensors and circular buffers, by hand and against recorded runs of the real library."""

import gzip
import json
import re

import pytest

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.memory_config import ShardOrientation, TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, round_up
from device.spec.device_spec import load_spec
from ops.programs.halo.plan import BLOCK, HEIGHT, WIDTH, HaloArguments, plan_halo
from ops.window import PaddedInput, transposed_axis

RECORDS = "oracle/ttnn/cases.jsonl.gz"
SPECS = {"wh": load_spec("wormhole_n150"), "bh": load_spec("blackhole_p150")}
FORMATS = {"bfloat16": BFLOAT16, "float32": FLOAT32, "bfloat8_b": BFLOAT8_B}


def grid(text):
    corners = re.findall(r"\[(\d+)-(\d+) - (\d+)-(\d+)\]", text)
    return CoreRangeSet([CoreRange(CoreCoord(int(a), int(b)), CoreCoord(int(c), int(d))) for a, b, c, d in corners])


def example(**changes):
    """8x8 image of 64 channels, kernel 3, padding 1, on 2x2 cores: 32 inputs and 32 outputs for each row of cores."""
    axis = transposed_axis(input_length=8, kernel=3, stride=1, padding=(1, 1), output_padding=0, dilation=1)
    arguments = {
        "frame": PaddedInput(batch=1, rows=axis, columns=axis),
        "scheme": BLOCK,
        "orientation": ShardOrientation.ROW_MAJOR,
        "cores": grid("[0-0 - 1-1]"),
        "nhw_cores": 2,
        "channel_cores": 2,
        "input_rows": 32,
        "output_rows": 32,
        "shard_width": 32,
        "data_format": BFLOAT16,
        "stick_alignment_bytes": 16,
        "tiled": False,
    }
    return plan_halo(HaloArguments(**arguments | changes), input_tensor="x", output_tensor="halo")


def buffers(plan):
    return [(buffer.name, buffer.size_bytes, buffer.view_of) for buffer in plan.circular_buffers]


def test_idle_cores_hold_nothing():
    """An input of 32 rows and 32 channels in shards for 64 and 64: one column of cores, 16 rows for each core."""
    plan = example(tiled=True, input_rows=64, input_matrix=(32, 32))
    assert plan.output.shape == (1, 1, 120, 32)
    assert plan.output.buffer(SPECS["wh"]).num_cores == 2
    assert buffers(plan)[0] == ("input", 2048, "x")
    assert buffers(example(tiled=True, input_rows=64))[0] == ("input", 4096, "x")


def test_row_major_halo():
    """60 sticks of 64 bytes.

    Padding: one row of 10 + 1, then 1 + 1 between rows of the image: 6 runs, 3 for each processor.

    A core sends the rows of its own half and one row across: 4 and 5 transfers of a row, dealt 3 and 2.
    """
    plan = example()
    assert plan.max_sticks == 60
    assert plan.output.shape == (1, 1, 120, 64)
    assert buffers(plan) == [
        ("input", 2048, "x"),
        ("output", 3840, "halo"),
        ("padding_stick_0", 64, None),
        ("padding_stick_1", 64, None),
        ("padding_0", 16, "halo.padding_0"),
        ("padding_1", 16, "halo.padding_1"),
        ("gather_0", 2 * (1 + 3 + 2 * 3 + 3 + 3), "halo.gather_0"),
        ("gather_1", 2 * (1 + 3 + 2 * 3), "halo.gather_1"),
    ]


@pytest.mark.parametrize(("alignment_bytes", "stick_bytes"), [(16, 48), (32, 64)])
def test_sticks_lie_as_far_apart_in_circular_buffers_as_in_the_tensor(alignment_bytes, stick_bytes):
    """20 channels are 40 bytes."""
    plan = example(shard_width=20, stick_alignment_bytes=alignment_bytes)
    assert [size for _, size, _ in buffers(plan)][:4] == [32 * stick_bytes, 60 * stick_bytes, stick_bytes, stick_bytes]
    spec = SPECS["wh"].replace(l1_alignment_bytes=alignment_bytes)
    assert plan.output.buffer(spec).bank_bytes == 60 * stick_bytes


def test_tiled_halo_untilizes_through_two_double_buffers():
    plan = example(tiled=True, data_format=BFLOAT8_B)
    assert buffers(plan)[0] == ("input", 1088, "x")
    assert buffers(plan)[4:6] == [("untilized_0", 4096, None), ("untilized_1", 4096, None)]
    assert plan.output.data_format is BFLOAT16


def test_config_tensors_in_dram_are_stored_once_and_read_into_buffers_of_their_own():
    plan = example(config_tensors_in_dram=True)
    assert {spec.memory_config.buffer_type.name for _, spec in plan.resident} == {"DRAM"}
    assert [spec.shape[0] for _, spec in plan.resident] == [2, 2, 2, 2]
    assert [view for _, _, view in buffers(plan)[4:]] == [None] * 4


def test_config_tensors_are_dealt_against_the_orientation_of_blocks():
    for orientation, against in zip(ShardOrientation, reversed(ShardOrientation), strict=True):
        _, spec = example(orientation=orientation).resident[0]
        assert spec.memory_config.shard_spec.orientation is against
        assert spec.shape[0] == 4


def recorded_halos(path):
    """Every run with one halo of the whole image: the record and its halo's circular buffers."""
    with gzip.open(path, "rt") as lines:
        for record in map(json.loads, lines):
            case = record["case"]
            halo = [buffer for buffer in record.get("cbs", ()) if buffer["op"] == "HaloDeviceOperation"]
            sliced = "PaddedSliceDeviceOperation" in json.dumps(record.get("ops"))
            if case.get("slice") in (None, "l1_full") and not sliced and 0 < len(halo) <= 10:
                yield record, halo


def both(value):
    return tuple(value) if isinstance(value, list) else (value, value)


def recorded_frame(case):
    padding = both(case.get("padding", 0))
    padding = padding if len(padding) == 4 else (padding[0], padding[0], padding[1], padding[1])
    axes = [
        transposed_axis(
            input_length=length,
            kernel=both(case["kernel"])[n],
            stride=both(case["stride"])[n],
            padding=padding[2 * n : 2 * n + 2],
            output_padding=both(case.get("output_padding", 0))[n],
            dilation=both(case.get("dilation", 1))[n],
        )
        for n, length in enumerate((case["H"], case["W"]))
    ]
    replicate = (case.get("conv_config") or {}).get("padding_mode") == "Replicate"
    return PaddedInput(batch=case.get("batch", 1), rows=axes[0], columns=axes[1], replicate=replicate)


def recorded_arguments(record, halo, output):
    case = record["case"]
    config = case.get("conv_config") or {}
    frame, cores, tiled = recorded_frame(case), grid(halo[0]["cores"]), len(halo) == 10
    scheme, box = TensorMemoryLayout[output["layout"]], cores.bounding_box()
    by_column = scheme is BLOCK and config.get("transpose_shards", False)
    if scheme is BLOCK:
        nhw, channels = (box.cols, box.rows) if by_column else (box.rows, box.cols)
    else:
        nhw, channels = (cores.num_cores(), 1) if scheme is HEIGHT else (1, cores.num_cores())
    inputs = frame.batch * case["H"] * case["W"]
    data_format = FORMATS[case.get("input_dtype", "bfloat16")]
    return HaloArguments(
        frame=frame,
        scheme=scheme,
        orientation=ShardOrientation.COL_MAJOR if by_column else ShardOrientation.ROW_MAJOR,
        cores=cores,
        nhw_cores=nhw,
        channel_cores=channels,
        input_rows=inputs if scheme is WIDTH and not tiled else round_up(inputs, 32 * nhw) // nhw,
        output_rows=frame.outputs if scheme is WIDTH else round_up(frame.outputs, 32 * nhw) // nhw,
        shard_width=output["page_size"] // (4 if data_format is FLOAT32 else 2),
        data_format=data_format,
        stick_alignment_bytes=SPECS[record["arch"]].l1.alignment_bytes,
        tiled=tiled,
        config_tensors_in_dram=config.get("config_tensors_in_dram", False),
    )


def recorded_allocations(record, halo):
    """The halo output and the four config tensors after it."""
    made = [buffer for buffer in record["buffers"] if buffer["ev"] == "allocate"]
    pages = [buffer["size"] for buffer in halo[-4:]]
    for place, buffer in enumerate(made):
        behind = made[place + 1 : place + 5]
        if buffer["max_size_per_bank"] == halo[1]["size"] and [one["page_size"] for one in behind] == pages:
            return [buffer, *behind]
    raise AssertionError(f"{record['name']}: no config tensors follow the halo output")


def test_recorded_halos(recordings):
    checked = 0
    for record, halo in recorded_halos(recordings(RECORDS)):
        allocations = recorded_allocations(record, halo)
        plan = plan_halo(recorded_arguments(record, halo, allocations[0]), input_tensor="x", output_tensor="halo")
        made = [(one.size_bytes, str(one.cores), str(int(one.view_of is not None))) for one in plan.circular_buffers]
        name = f"{record['set']}/{record['name']}"
        assert made == [(one["size"], one["cores"], one["globally_allocated"]) for one in halo], name
        specs = [spec.buffer(SPECS[record["arch"]]) for spec in (plan.output, *(spec for _, spec in plan.resident))]
        assert [(one.memory_layout.name, one.page_bytes, one.bank_bytes, one.size_bytes) for one in specs] == [
            (one["layout"], one["page_size"], one["max_size_per_bank"], one["size"]) for one in allocations
        ], name
        checked += 1
    assert checked > 500
