"""Height and width of a convolution's output, transposed or not, also as the real library counts them."""

from typing import Final

from ops.calls.convolution.arguments import ConvArguments
from ops.calls.convolution.problem import is_matmul, takes_l1_path
from ops.frame.axis import count_windows, transposed_outputs

COUNTS: Final = 2**32  # of a number of 32 bits without a sign


def output_lengths(call: ConvArguments, *, unsigned: bool = False) -> tuple[int, int]:
    """Height and width of the output; zero or less where no window fits.

    Args:
        call: The call, whose strides are not 0.
        unsigned: Whether to count as the real library does, by 32 bits without a sign. An ordinary convolution divides
            by its stride after the difference has wrapped, so that -1 columns of stride 4 are 2**30.
    """
    height, width = (_length(call, axis, unsigned) for axis in (0, 1))
    return height, width


def _length(call: ConvArguments, axis: int, unsigned: bool) -> int:
    before, after = call.padding[2 * axis : 2 * axis + 2]
    length, kernel = (call.input_height, call.input_width)[axis], call.kernel_size[axis]
    stride, dilation = call.stride[axis], call.dilation[axis]
    if call.rules.transposed:
        outputs = transposed_outputs(
            input_length=length,
            kernel=kernel,
            stride=stride,
            padding=(before, after),
            output_padding=call.output_padding[axis],
            dilation=dilation,
        )
        return outputs % COUNTS if unsigned else outputs
    reach, positions = dilation * (kernel - 1), length + before + after
    if unsigned:
        positions = (positions - reach - 1) % COUNTS + reach + 1
        return count_windows(positions, reach, stride) % COUNTS
    return count_windows(positions, reach, stride)


def wraps(call: ConvArguments) -> bool:
    """Whether the real library takes a call without outputs for one of billions."""
    return output_lengths(call) != output_lengths(call, unsigned=True)


def plans_without_outputs(call: ConvArguments) -> bool:
    """Whether the plan of a call that is not folded `wraps` and gets as far as the buffer of its output, in DRAM."""
    huge = wraps(call) and all(output_lengths(call, unsigned=True))
    return huge and not takes_l1_path(call) and not is_matmul(call)


def no_outputs_told(call: ConvArguments) -> str:
    """What is to be done about a call that `wraps`."""
    made, counted = (" x ".join(map(str, output_lengths(call, unsigned=one))) for one in (False, True))
    return (
        f"{call.rules.function}: there is no output of {made} pixels, which the real library takes for {counted}; "
        "change padding or kernel_size"
    )
