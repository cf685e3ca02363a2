"""Raw weights become rows of block floats as machine code; loaded by ``ops.programs.conv2d.weights``."""

from typing import Any, Final, TypeAlias

import numpy as np

from device.host.compiling import called_with, compiled, readonly
from device.numbers.formats import GROUP
from device.numbers.loops import MOST_NARROW, round_together

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_CALL: Final = "({}, int64, int64, UniTuple(int64, 3), {}, int64, uint16[:,::1])"

int32 = np.int32
uint32 = np.uint32


@called_with(*(_CALL.format(readonly(words, 3), readonly("int64", 2)) for words in ("uint16", "uint32", "uint64")))
@compiled
def place_rows(words: Array, begin: int, end: int, sizes: Any, rows: Array, mantissa_bits: int, matrix: Array) -> bool:
    """Writes values of a weight to their positions in the matrix; False if a value is too large for float32 sums.

    Args:
        words: Unsigned [parts, output channels of a group, words]: a part is an input channel or, where output channels
            come first, a group; its words are the kernels of its input channels, one, two or four numbers in each.
        begin: The first word to write, of all output channels, counted part by part.
        end: The end of the words to write, exclusive.
        sizes: Bits of a number (32 for float32, 16 for bfloat16), input channels of a part, and of a group.
        rows: [taps, input channels] the row of the matrix for each.
        mantissa_bits: Width of a magnitude.
        matrix: uint16 [rows, columns], bit patterns of bfloat16; zeros elsewhere.
    """
    bits, in_part, in_group = sizes
    together, outs, up, taps = words.itemsize * 8 // bits, words.shape[1], int32(32 - bits), len(rows)
    gathered = np.empty(outs, words.dtype)
    row, tops = np.zeros(matrix.shape[1], np.int32), np.empty(matrix.shape[1], np.int32)
    for number in range(begin, end):
        part, word = divmod(number, words.shape[2])
        for o in range(outs):
            gathered[o] = words[part, o, word]
        first = part * in_part // in_group * outs
        low, high = first // GROUP * GROUP, -(-(first + outs) // GROUP) * GROUP
        row[low:first] = 0
        row[first + outs : high] = 0
        numbers = row[first : first + outs]
        for n in range(together):
            shift = np.uint64(n * bits)
            for o in range(outs):
                numbers[o] = int32(int32(uint32(gathered[o] >> shift)) << up)
            channel, tap = divmod(word * together + n, taps)
            out = matrix[rows[tap, part * in_part + channel]]
            if round_together(row[low:high], mantissa_bits, tops, out[low:high]) > MOST_NARROW:
                return False
    return True
