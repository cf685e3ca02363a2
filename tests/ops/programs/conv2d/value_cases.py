"""Convolutions with what they compute, by the program and by the definition."""

from dataclasses import dataclass

import numpy as np
from hypothesis import assume, strategies as st

from device.host.products import multiplies_in_place
from device.memory.memory_config import TensorMemoryLayout
from device.numbers.formats import BFLOAT8_B, BFLOAT16, FLOAT32, DataFormat, quantize
from device.spec.device_spec import load_spec
from ops.programs.conv2d.op import Conv2dOp
from ops.programs.conv2d.partition import BLOCK, HEIGHT, WIDTH, ConvOptions
from ops.programs.conv2d.weights import WeightsLayout, prepare_bias, prepare_weights
from ops.reference import conv_transpose_channels_last, plan_geometry
from ops.window import PaddedInput, transposed_axis
from tests.build import op_values
from tests.ops.programs.conv2d.convolutions import conv_problem, partitioned

SPEC = load_spec("wormhole_n150").replace(grid_cols=3, grid_rows=2)
DEFAULTS = ConvOptions()


@dataclass(frozen=True, kw_only=True)
class Case:
    """A transposed convolution; `padding` is top, bottom, left, right."""

    batch: int = 1
    size: tuple[int, int] = (4, 4)
    channels: int = 8
    outputs: int = 8
    groups: int = 1
    kernel: tuple[int, int] = (3, 3)
    stride: tuple[int, int] = (2, 2)
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    output_padding: tuple[int, int] = (0, 0)
    dilation: tuple[int, int] = (1, 1)
    bias: bool = False
    scheme: TensorMemoryLayout = HEIGHT
    row_major: bool = True
    in_format: DataFormat = BFLOAT16
    weight_format: DataFormat = BFLOAT16
    out_format: DataFormat = BFLOAT16
    fidelity_phases: int = 4
    activation: tuple[str, tuple[float, ...]] | None = None
    options: ConvOptions = DEFAULTS
    replicate: bool = False

    @property
    def problem(self):
        rows, columns = (
            transposed_axis(
                input_length=self.size[n],
                kernel=self.kernel[n],
                stride=self.stride[n],
                padding=self.padding[2 * n : 2 * n + 2],
                output_padding=self.output_padding[n],
                dilation=self.dilation[n],
            )
            for n in (0, 1)
        )
        frame = PaddedInput(batch=self.batch, rows=rows, columns=columns, replicate=self.replicate)
        names = ("in_format", "weight_format", "out_format", "row_major", "bias")
        return conv_problem(frame, (self.channels, self.outputs), **{name: getattr(self, name) for name in names})

    @property
    def geometry(self):
        return plan_geometry(
            self.size,
            self.kernel,
            stride=self.stride,
            pad_before=self.padding[::2],
            pad_after=self.padding[1::2],
            output_padding=self.output_padding,
            dilation=self.dilation,
        )


def work_of(case):
    layout = partitioned(case.problem, case.scheme, SPEC, choices=case.options)
    return Conv2dOp.of(layout, fidelity_phases=case.fidelity_phases, activation=case.activation)


def weights_layout(case, op):
    shards = op.layout.shards
    return WeightsLayout(
        in_channels=case.channels,
        out_channels=case.outputs,
        kernel=case.kernel,
        groups=case.groups,
        scheme=case.scheme,
        padded_in_channels=shards.in_channels,
        padded_out_channels=shards.out_channels,
        channel_shards=op.layout.config.channel_cores,
        k_block_rows=op.layout.blocks.act_w_tiles * 32,
        data_format=case.weight_format,
    )


def computed(case, x, w, b, arithmetic):
    """[N, OH, OW, O] as float32, and the dtype it was stored in."""
    op = work_of(case)
    layout = weights_layout(case, op)
    sticks = quantize(x.reshape(-1, case.channels), case.in_format)
    biases = [prepare_bias(b, layout)] if case.bias else []
    got = op_values(op, sticks, prepare_weights(w, layout), *biases, spec=SPEC, arithmetic=arithmetic)
    frame = case.problem.frame
    return got.astype(np.float32).reshape(case.batch, frame.rows.outputs, frame.columns.outputs, -1), got.dtype


def arrays(case, draw):
    """x, w and b of a case from a function of a shape."""
    x = draw((case.batch, *case.size, case.channels))
    w = draw((case.channels, case.outputs // case.groups, *case.kernel))
    return x, w, draw((case.outputs,))


def integers(seed):
    """Random -1, 0 and 1."""
    rng = np.random.default_rng(seed)
    return lambda shape: rng.integers(-1, 2, shape).astype(np.float32)


def expected(case, x, w, b):
    result = conv_transpose_channels_last(x, w, case.geometry, bias=b if case.bias else None, groups=case.groups)
    return np.maximum(result, 0) if case.activation else result


@st.composite
def cases(draw):
    """Small convolutions of every kind that compute what the definition says."""
    pair = st.tuples(st.integers(1, 3), st.integers(1, 3))
    kernel, dilation, stride = draw(pair), draw(pair), draw(pair)
    reach = [d * (k - 1) for d, k in zip(dilation, kernel, strict=True)]
    padding = tuple(draw(st.integers(0, reach[n])) for n in (0, 0, 1, 1))
    groups = draw(st.sampled_from([1, 1, 2, 5]))
    formats = st.sampled_from([BFLOAT16, FLOAT32, BFLOAT8_B])
    fp32_dest = draw(st.booleans())
    out_format = draw(formats)
    options = ConvOptions(
        fp32_dest=fp32_dest,
        packer_l1_acc=draw(st.booleans()),
        untilize_out=out_format is not BFLOAT8_B and draw(st.booleans()),
        transpose_shards=draw(st.booleans()),
    )
    case = Case(
        batch=draw(st.integers(1, 2)),
        size=draw(st.tuples(st.integers(1, 5), st.integers(1, 5))),
        channels=groups * draw(st.integers(1, 40 // groups)),
        outputs=groups * draw(st.integers(1, 40 // groups)),
        groups=groups,
        kernel=kernel,
        stride=stride,
        padding=padding,
        output_padding=tuple(draw(st.integers(0, s - 1)) for s in stride),
        dilation=dilation,
        bias=draw(st.booleans()),
        scheme=draw(st.sampled_from([HEIGHT, BLOCK, WIDTH])),
        row_major=draw(st.booleans()),
        in_format=draw(formats),
        weight_format=draw(formats),
        out_format=out_format,
        fidelity_phases=draw(st.integers(1, 4)),
        activation=draw(st.sampled_from([None, ("relu", ())])),
        options=options,
    )
    assume(min(case.geometry.output_shape) > 0)
    return case


def normal(seed):
    rng = np.random.default_rng(seed)
    return lambda shape: rng.standard_normal(shape).astype(np.float32)


def for_equal_bits(seed):
    """Numbers whose sums have the same bits in any product: normal ones if BLAS's kernels sum alike in all.

    Those for AVX-512 do. Others sum by the place in a product, but eighths up to four have exact sums in any order.
    """
    if multiplies_in_place():
        return normal(seed)
    rng = np.random.default_rng(seed)
    return lambda shape: rng.integers(-32, 33, shape).astype(np.float32) / 8
