"""Plans of the library's own test shapes against what its host code was seen to do with them."""

import csv
import re
from dataclasses import replace
from pathlib import Path

import pytest

from device.errors import OutOfMemoryError
from device.machine import Machine
from device.memory.layouts import TensorSpec
from device.memory.memory_config import BufferType, Layout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32
from device.plan import Operation
from device.spec.device_spec import load_spec
from ops.passes.memory import run_memory
from ops.planners.conv.arguments import ComputeConfig, ConvConfig, SliceType
from ops.planners.conv.plan import plan_convolution
from tests.build import cut, sized_call

TABLE = Path(__file__).resolve().parents[3] / "data" / "observed_values.tsv"
SPECS = {name: load_spec(name) for name in ("wormhole_n150", "blackhole_p150")}
FORMATS = {"bf16": BFLOAT16, "bf8": BFLOAT8_B, "fp32": FLOAT32}
SCHEMES = {"HEIGHT_SHARDED": "H", "BLOCK_SHARDED": "B", "WIDTH_SHARDED": "W"}
L1_SMALL_BYTES = {"cfgdram": 0, "groups": 1024, "ulp": 16384, "fp32auto": 16384, "sweep": 32768}  # the others: 65536
TILED = ("simple", "fruit", "cfgdram")  # tests whose inputs are in tiles, whatever their format
FULL_ACCUMULATION = ComputeConfig(fidelity_phases=4, fp32_dest=True, packer_l1_acc=True)


def rows():
    with TABLE.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines, delimiter="\t"))


def numbers(text):
    return [int(number) for number in re.findall(r"\d+", text)]


def config_fields(test):
    """Fields of the conv config that the name of a test carries."""
    given = dict(one.split("=") for one in test.partition(" ")[2].split(",") if one)
    return {name: value == "True" if value in ("True", "False") else int(value) for name, value in given.items()}


def arguments(row):
    """The call of a row: an input in DRAM, block floats in tiles; a bias; the output in the input's layout."""
    test = row["test"].partition(" ")[0]
    batch, height, width, channels, outputs = numbers(row["shape"])
    kernel_h, kernel_w, stride, padding, output_padding, dilation, groups = numbers(row["convolution"])
    act, weight, out = (FORMATS[name] for name in row["formats"].split("/"))
    layout = Layout.TILE if act.is_block or test in TILED else Layout.ROW_MAJOR
    raw = FLOAT32 if weight.is_block else weight
    slices = None if row["slices"] == "-" else cut(int(row["slices"].removeprefix("W:")), SliceType.DRAM_WIDTH)
    call = sized_call(
        (height, width), (channels, outputs), (kernel_h, kernel_w), layout=layout, batch=batch, groups=groups,
        with_bias=True, stride=(stride, stride), padding=(padding,) * 4, dilation=(dilation, dilation),
        output_padding=(output_padding, output_padding), out_format=out, slice_config=slices,
        conv_config=ConvConfig(weights_format=weight, output_layout=layout, **config_fields(row["test"])),
        compute_config=FULL_ACCUMULATION if test == "ulp" else None,
    )  # fmt: skip
    operands = {"input": (call.input, act), "weight": (call.weight, raw), "bias": (call.bias, raw)}
    return replace(call, **{
        name: replace(operand, spec=TensorSpec(operand.spec.shape, data_format, operand.spec.layout))
        for name, (operand, data_format) in operands.items()
    })  # fmt: skip


def planned(row, call):
    device = Machine(SPECS[row["device"]], l1_small_bytes=L1_SMALL_BYTES.get(row["test"].partition(" ")[0], 65536))
    inputs = {"input": device.allocate(call.input.spec.buffer(device.spec), "input")}
    free = device.allocator.statistics(BufferType.L1).free_bytes_per_bank
    return device, inputs, plan_convolution(call, device.spec, free_l1_bytes=free)


def operations(plan, name):
    return [step for step in plan.steps if isinstance(step, Operation) and step.name == name]


def shown(plan):
    """What the table says of a plan, in its words."""
    halo, conv = (operations(plan, name)[0] for name in ("HaloDeviceOperation", "Conv2dDeviceOperation"))
    layout = conv.op.layout
    blocks, shards = layout.blocks, layout.shards
    return {
        "scheme": SCHEMES[layout.scheme.name],
        "cores": f"{layout.config.nhw_cores}x{layout.config.channel_cores}x{layout.out_config.channel_cores}",
        "blocks": f"{blocks.act_h_tiles}x{blocks.act_w_tiles} ({blocks.subblock_h_tiles}x{blocks.subblock_w_tiles}) "
        f"of {shards.out_row_tiles}x{shards.out_col_tiles}",
        "halo_sticks": str(plan.tensors[halo.outputs[0].tensor].memory_config.shard_spec.shape[0]),
        "local_cb_bytes": str(sum(buffer.size_bytes for buffer in conv.circular_buffers if buffer.view_of is None)),
    }


def finished(plan):
    """What the table says of a call that came back."""
    output = plan.tensors[plan.results["output"]]
    place = output.memory_config
    padded = plan.tensors["weight.prepared"].padded_shape
    return {
        "conv_calls": str(len(operations(plan, "Conv2dDeviceOperation"))),
        "output": f"{place.memory_layout.name[:5]} {place.buffer_type.name} {output.layout.name}",
        "weights": f"{padded[2]}x{padded[3]}",
    }


@pytest.mark.parametrize(
    "row", rows(), ids=lambda row: f"{row['device']}: {row['test']} {row['shape']} {row['formats']}"
)
def test_observed_values(row):
    call = arguments(row)
    device, inputs, plan = planned(row, call)
    if row["scheme"] == "matmul":
        assert call.is_matmul
        assert operations(plan, "MatmulDeviceOperation")
        assert plan.tensors[plan.results["output"]].memory_config.buffer_type is BufferType.DRAM
    else:
        found = shown(plan)
        assert found == {name: row[name] for name in found}
    if row["output"].startswith("ERR"):
        with pytest.raises(OutOfMemoryError):
            run_memory(plan, device, inputs)
        return
    run_memory(plan, device, inputs)
    if row["scheme"] != "matmul":
        found = finished(plan)
        assert found == {name: row[name] for name in found}


def test_the_table_holds_both_devices_and_every_kind_of_test():
    table = rows()
    assert {row["device"] for row in table} == set(SPECS)
    assert {row["test"].partition(" ")[0] for row in table} == {
        "simple", "dram", "fruit", "cfgdram", "groups", "ulp", "fp32auto", "sweep"
    }  # fmt: skip
    assert len(table) == 174
