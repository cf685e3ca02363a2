"""Calls by output phases, planned."""

from dataclasses import replace

import pytest

from device.memory.memory_config import L1_MEMORY_CONFIG, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from ops.op_models import load_spec
from ops.passes.cycles import operations_of
from ops.planners.conv.arguments import CONV_TRANSPOSE2D, CONV_TRANSPOSE2D_BY_PHASES, ComputeConfig, ConvConfig
from ops.planners.conv.plan import plan_convolution
from tests.build import operand, sized_call


class Planned:
    """The plan of a call with its operations by name."""

    def __init__(self, call, spec):
        self.call = call
        self.spec = spec
        self.plan = plan_convolution(call, spec, free_l1_bytes=1 << 20)
        self.operations = {step.name: step for step in operations_of(self.plan)}

    @property
    def convolution(self):
        return next(step for name, step in self.operations.items() if "onv2d" in name)

    @property
    def op(self):
        return self.convolution.op

    def buffers(self):
        return {buffer.name: buffer for buffer in self.convolution.circular_buffers}


@pytest.fixture
def planned():
    def make(
        size=(8, 8), kernel=(2, 2), stride=(2, 2), channels=(32, 32), *, padding=(0, 0, 0, 0), scheme="HEIGHT_SHARDED",
        spec="wormhole_n150", phases=True, bias=False, compute=None, batch=1, given=BFLOAT16, made=None, **config,
    ):  # fmt: skip
        rows = batch * size[0] * size[1]
        call = sized_call(
            size,
            channels,
            kernel,
            rules=CONV_TRANSPOSE2D_BY_PHASES if phases else CONV_TRANSPOSE2D,
            batch=batch,
            with_bias=bias,
            stride=stride,
            padding=padding,
            out_format=made,
            conv_config=ConvConfig(
                shard_layout=TensorMemoryLayout[scheme],
                weights_format=BFLOAT16,
                **{"output_layout": Layout.ROW_MAJOR} | config,
            ),
            compute_config=compute or ComputeConfig(fidelity_phases=4),
        )
        image = operand(1, 1, rows, channels[0], place=L1_MEMORY_CONFIG, data_format=given)
        return Planned(replace(call, input=image), load_spec(spec))

    return make
