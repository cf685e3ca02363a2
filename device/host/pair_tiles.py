"""Small products of bfloat16 pairs, whose sums stay in registers: instructions for compiled loops.

Processors with AVX512-BF16 multiply two pairs of bfloat16 numbers and add both products in the time that others take
for one of float32. The instruction adds the product of the upper halves first, then that of the lower ones, each
rounded to nearest even (Intel's manual, VDPBF16PS). With the first of two neighbors in the upper half a sum goes
through the same numbers as in BLAS's kernels, so that its bits are the same; denormals alone are taken as zeros. What
other processors are given here has these bits, too, and takes longer.

This module needs numba, also to be loaded. A change here is seen by loops of other files once these change, too
(`device.host.compiling`).
"""

import importlib
from functools import partial
from typing import Any, Final

from device.host.products import multiplies_pairs

_numba: Any = importlib.import_module("numba")
_extending: Any = importlib.import_module("numba.extending")
_ir: Any = importlib.import_module("llvmlite.ir")
LANES: Final = 16  # columns of a vector
ROWS: Final = 6  # of a tile: with four vectors of columns as many as leave registers for a row of each operand
VECTORS: Final = 4  # of its columns
BYTES: Final = 4  # of a pair, and of a sum
BYTES_OF_SIZE: Final = 8  # of an address
UPPER: Final = -0x10000  # bits of the first number of a pair
_HALF: Final = 0x8000  # of what the lowest bit of a bfloat16 number is worth
_DOT: Final = "llvm.x86.avx512bf16.dpbf16ps.512"
_INSTRUCTION: Final = multiplies_pairs()

_WORD: Any = _ir.IntType(32)
_SIZE: Any = _ir.IntType(64)
_NUMBERS: Any = _ir.VectorType(_ir.FloatType(), LANES)
_PAIRS: Any = _ir.VectorType(_WORD, LANES)


def _tile_of(vectors: int) -> Any:
    """A product of `ROWS` rows and so many vectors of columns, for loops."""

    def tile(
        typing: Any, left: Any, rows: Any, right: Any, total: Any, pairs: Any, adds: Any, rounds: Any
    ) -> tuple[Any, Any]:
        """Sums of products replace what is there, or are added to it.

        Args:
            typing: Numba's.
            left: int64, the address that rows of pairs are counted from.
            rows: int64, the address of how many bytes behind it each row begins, int64.
            right: int64, the address of the first row of pairs, and bytes to the next one.
            total: int64, the address of the first row of float32 sums, and bytes to the next one.
            pairs: int64, of each row, one at least.
            adds: Whether they are added.
            rounds: Whether what they become is rounded half up to bfloat16.
        """
        size, whether = _numba.types.int64, _numba.types.boolean
        pair = _numba.types.UniTuple(size, 2)
        return _numba.types.void(size, size, pair, pair, size, whether, whether), partial(_make_tile, vectors)

    return _extending.intrinsic(tile)


def _make_tile(vectors: int, context: Any, builder: Any, signature: Any, given: Any) -> Any:
    """The instructions of a tile: a loop over pairs, and where its sums go."""
    (left, rows), pairs = given[:2], given[4]
    right, total = ([builder.extract_value(each, n) for n in range(2)] for each in given[2:4])
    adds, rounds = (builder.icmp_unsigned("!=", whether, whether.type(0)) for whether in given[5:])
    code = _Code(builder)
    begins = [code.read(builder.add(rows, _SIZE(BYTES_OF_SIZE * n)), _SIZE) for n in range(ROWS)]
    sums = _sums(code, [builder.add(left, begin) for begin in begins], right, pairs, vectors)
    places = [code.vectors(builder.add(total[0], builder.mul(total[1], _SIZE(n))), vectors) for n in range(ROWS)]
    flat = [one for row in zip(places, sums, strict=True) for one in zip(*row, strict=True)]
    with builder.if_else(adds) as (then, otherwise):
        with then:
            code.settle([(place, builder.fadd(code.read(place, _NUMBERS), new)) for place, new in flat], rounds)
        with otherwise:
            code.settle(flat, rounds)
    return context.get_dummy_value()


def _sums(code: "_Code", left: list[Any], right: list[Any], pairs: Any, vectors: int) -> list[list[Any]]:
    """A loop over pairs that adds up their products, for each row so many vectors."""
    builder, before = code.builder, code.builder.block
    loop, behind = builder.append_basic_block("loop"), builder.append_basic_block("behind")
    builder.branch(loop)
    builder.position_at_end(loop)
    number, source = builder.phi(_SIZE), builder.phi(_SIZE)
    held = [[builder.phi(_NUMBERS) for _ in range(vectors)] for _ in left]
    columns = [code.read(place, _PAIRS) for place in code.vectors(source, vectors)]
    turns, sums = [], []
    for address, olds in zip(left, held, strict=True):
        one = code.everywhere(code.read(builder.add(address, builder.mul(number, _SIZE(BYTES))), _WORD))
        news = [code.add_products(old, one, column) for old, column in zip(olds, columns, strict=True)]
        turns += [(old, code.numbers(0.0), new) for old, new in zip(olds, news, strict=True)]
        sums.append(news)
    following = builder.add(number, _SIZE(1))
    turns += [(number, _SIZE(0), following), (source, right[0], builder.add(source, right[1]))]
    for value, first, then in turns:
        value.add_incoming(first, before)
        value.add_incoming(then, loop)
    builder.cbranch(builder.icmp_signed("<", following, pairs), loop, behind)
    builder.position_at_end(behind)
    return sums


class _Code:
    """Writes instructions, one after the other."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def numbers(self, number: float) -> Any:
        """A vector of one number."""
        return _ir.Constant(_NUMBERS, [number] * LANES)

    def words(self, word: int) -> Any:
        """A vector of one word that is known."""
        return _ir.Constant(_PAIRS, [word] * LANES)

    def everywhere(self, word: Any) -> Any:
        """A vector of one word."""
        none = _ir.Constant(_PAIRS, _ir.Undefined)
        return self.builder.shuffle_vector(self.builder.insert_element(none, word, _WORD(0)), none, self.words(0))

    def vectors(self, place: Any, count: int) -> list[Any]:
        """Addresses of vectors side by side."""
        return [self.builder.add(place, _SIZE(BYTES * LANES * n)) for n in range(count)]

    def read(self, place: Any, kind: Any) -> Any:
        """What is at an address."""
        return self.builder.load(self.builder.inttoptr(place, kind.as_pointer()), align=BYTES)

    def write(self, vector: Any, place: Any, kind: Any) -> None:
        """A vector goes to an address."""
        self.builder.store(vector, self.builder.inttoptr(place, kind.as_pointer()), align=BYTES)

    def add_products(self, total: Any, left: Any, right: Any) -> Any:
        """The products of the upper halves are added, then those of the lower ones."""
        if _INSTRUCTION:
            takes = _ir.FunctionType(_NUMBERS, [_NUMBERS, _PAIRS, _PAIRS])
            return self.builder.call(self.builder.module.declare_intrinsic(_DOT, (), takes), [total, left, right])
        uppers = [self.builder.and_(pairs, self.words(UPPER)) for pairs in (left, right)]
        lowers = [self.builder.shl(pairs, self.words(16)) for pairs in (left, right)]
        for halves in (uppers, lowers):
            one, other = (self.builder.bitcast(half, _NUMBERS) for half in halves)
            total = self.builder.fadd(total, self.builder.fmul(one, other))
        return total

    def settle(self, made: list[tuple[Any, Any]], rounds: Any) -> None:
        """Sums go to their addresses, rounded if that is wanted."""
        builder = self.builder
        with builder.if_else(rounds) as (then, otherwise):
            with then:
                for place, numbers in made:
                    bits = builder.add(builder.bitcast(numbers, _PAIRS), self.words(_HALF))
                    self.write(builder.and_(bits, self.words(UPPER)), place, _PAIRS)
            with otherwise:
                for place, numbers in made:
                    self.write(numbers, place, _NUMBERS)


def _pair_sixteen(typing: Any, words: Any, first: Any, mask: Any, target: Any, to: Any) -> tuple[Any, Any]:
    """Sixteen words of two neighbors become pairs, whose first number is above.

    Args:
        typing: Numba's.
        words: int32, contiguous, with one axis: numbers as they lie in memory.
        first: Which word is the first.
        mask: int32, the bits of a pair that are kept.
        target: As ``words``.
        to: Where the first pair goes.
    """
    size = _numba.types.intp

    def make(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        code = _Code(builder)

        def place(array: int) -> Any:
            data = context.make_array(signature.args[array])(context, builder, given[array]).data
            return builder.ptrtoint(builder.gep(data, [given[array + 1]]), _SIZE)

        halves = code.read(place(0), _PAIRS)
        sixteen = code.words(16)
        turned = builder.or_(builder.shl(halves, sixteen), builder.lshr(halves, sixteen))
        code.write(builder.and_(turned, code.everywhere(given[2])), place(3), _PAIRS)
        return context.get_dummy_value()

    return _numba.types.void(words, size, _numba.types.int32, target, size), make


pair_sixteen: Any = _extending.intrinsic(_pair_sixteen)
tile_1, tile_2, tile_3, tile_4 = (_tile_of(vectors) for vectors in range(1, VECTORS + 1))
