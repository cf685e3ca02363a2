"""Instructions on vectors for compiled loops, written out where numba would make no vectors of a loop.

This module needs numba, also to be loaded. A change here is seen by loops of other files once these change, too
(`device.host.compiling`).
"""

import importlib
from functools import partial
from typing import Any, Final

from device.host.products import has_feature, multiplies_numbers, multiplies_pairs

_ir: Any = importlib.import_module("llvmlite.ir")
BYTES: Final = 4  # of a word, which is a number, too
BYTES_OF_SIZE: Final = 8  # of an address
WORD: Final[Any] = _ir.IntType(32)
NUMBER: Final[Any] = _ir.FloatType()
SIZE: Final[Any] = _ir.IntType(64)
_FUSES: Final = multiplies_numbers()


class VectorCode:
    """Writes instructions, one after the other.

    Args:
        builder: Numba's, at the place where they begin.
        lanes: Numbers of a vector.

    Attributes:
        builder: The same.
        numbers: The type of vectors of numbers.
        words: Of vectors of words.
    """

    def __init__(self, builder: Any, lanes: int) -> None:
        self.builder = builder
        self.numbers = _ir.VectorType(NUMBER, lanes)
        self.words = _ir.VectorType(WORD, lanes)
        self._lanes = lanes

    def known(self, kind: Any, value: float) -> Any:
        """A vector of one value that is known."""
        return _ir.Constant(kind, [value] * self._lanes)

    def everywhere(self, kind: Any, value: Any) -> Any:
        """A vector of one value."""
        none = _ir.Constant(kind, _ir.Undefined)
        return self.builder.shuffle_vector(
            self.builder.insert_element(none, value, WORD(0)), none, self.known(self.words, 0)
        )

    def spread(self, places: list[int]) -> Any:
        """An order of words: each of some places, in turn, for an equal share of the lanes."""
        return _ir.Constant(self.words, [place for place in places for _ in range(self._lanes // len(places))])

    def side_by_side(self, place: Any, count: int) -> list[Any]:
        """Addresses of vectors side by side."""
        return [self.builder.add(place, SIZE(BYTES * self._lanes * n)) for n in range(count)]

    def read(self, kind: Any, place: Any) -> Any:
        """What is at an address."""
        return self.builder.load(self.builder.inttoptr(place, kind.as_pointer()), align=BYTES)

    def write(self, kind: Any, value: Any, place: Any) -> None:
        """A value goes to an address."""
        self.builder.store(value, self.builder.inttoptr(place, kind.as_pointer()), align=BYTES)

    def call(self, name: str, result: Any, *given: Any) -> Any:
        """What LLVM's function of a name gives."""
        takes = _ir.FunctionType(result, [each.type for each in given])
        return self.builder.call(self.builder.module.declare_intrinsic(name, (), takes), list(given))

    def with_product(self, total: Any, left: Any, right: Any) -> Any:
        """Numbers to which products are added, rounded once if processors do so, as in BLAS's kernels."""
        if _FUSES:
            return self.call(f"llvm.fma.v{self._lanes}f32", self.numbers, left, right, total)
        return self.builder.fadd(total, self.builder.fmul(left, right))

    def summed(self, rows: int, columns: int, steps: Any, add: Any) -> list[list[Any]]:
        """Sums of vectors that stay in registers during a loop.

        Args:
            rows: How many.
            columns: Vectors of a row.
            steps: int64, how often the loop is done, once at least.
            add: Gives the sums after a step, of its number and of the sums before it.
        """
        builder, before = self.builder, self.builder.block
        loop, behind = builder.append_basic_block("loop"), builder.append_basic_block("behind")
        builder.branch(loop)
        builder.position_at_end(loop)
        number = builder.phi(SIZE)
        olds = [[builder.phi(self.numbers) for _ in range(columns)] for _ in range(rows)]
        news: list[list[Any]] = add(number, olds)
        following = builder.add(number, SIZE(1))
        turns = [(number, SIZE(0), following)]
        turns += [
            (old, self.known(self.numbers, 0.0), new)
            for of_row, made in zip(olds, news, strict=True)
            for old, new in zip(of_row, made, strict=True)
        ]
        for value, first, then in turns:
            value.add_incoming(first, before)
            value.add_incoming(then, loop)
        builder.cbranch(builder.icmp_signed("<", following, steps), loop, behind)
        builder.position_at_end(behind)
        return news


_numba: Any = importlib.import_module("numba")
_extending: Any = importlib.import_module("numba.extending")
LANES: Final = 16 if has_feature("+avx512f") else 8  # columns of a vector
ROWS: Final = 6  # of a tile: with its vectors of columns as many as leave registers for a row of each operand
VECTORS: Final = LANES // 4  # of its columns
UPPER: Final = -0x10000  # bits of the first number of a pair
_HALF: Final = 0x8000  # of what the lowest bit of a bfloat16 number is worth
_INSTRUCTION: Final = multiplies_pairs()


def _tile_of(vectors: int) -> Any:
    """A product of `ROWS` rows and so many vectors of columns, for loops."""

    def tile(
        typing: Any, left: Any, rows: Any, right: Any, total: Any, depth: Any, paired: Any, adds: Any, rounds: Any
    ) -> tuple[Any, Any]:
        """Sums of products replace what is there, or are added to it.

        Args:
            left: int64, the address that rows of words are counted from.
            rows: int64, the address of how many bytes behind it each row begins, int64.
            right: int64, the address of the first row of words, and bytes to the next one.
            total: int64, the address of the first row of float32 sums, and bytes to the next one.
            depth: int64, words of each row, one at least.
            paired: Whether a word is a pair of bfloat16 numbers; else it is one of float32.
            adds: Whether they are added.
            rounds: Whether what they become is rounded half up to bfloat16.
        """
        size, whether = _numba.types.int64, _numba.types.boolean
        pair = _numba.types.UniTuple(size, 2)
        return _numba.types.void(size, size, pair, pair, size, whether, whether, whether), partial(_make_tile, vectors)

    return _extending.intrinsic(tile)


def _make_tile(vectors: int, context: Any, builder: Any, signature: Any, given: Any) -> Any:
    """The instructions of a tile, for words of both kinds."""
    code = VectorCode(builder, LANES)
    operands = (*given[:2], *([builder.extract_value(each, n) for n in range(2)] for each in given[2:4]), given[4])
    paired, adds, rounds = (builder.icmp_unsigned("!=", whether, whether.type(0)) for whether in given[5:])
    with builder.if_else(paired) as (then, otherwise):
        with then:
            _multiply(code, vectors, _with_products, operands, adds, rounds)
        with otherwise:
            _multiply(code, vectors, _with_number, operands, adds, rounds)
    return context.get_dummy_value()


def _multiply(code: VectorCode, vectors: int, multiply: Any, operands: Any, adds: Any, rounds: Any) -> None:
    """A loop over words, each multiplied in one way, and where its sums go; arguments as of a tile."""
    builder, (left, rows, right, total, depth) = code.builder, operands
    begins = [builder.add(left, code.read(SIZE, builder.add(rows, SIZE(BYTES_OF_SIZE * n)))) for n in range(ROWS)]

    def add(number: Any, sums: list[list[Any]]) -> list[list[Any]]:
        source, behind = builder.add(right[0], builder.mul(number, right[1])), builder.mul(number, SIZE(BYTES))
        columns = [code.read(code.words, place) for place in code.side_by_side(source, vectors)]
        ones = [code.everywhere(code.words, code.read(WORD, builder.add(begin, behind))) for begin in begins]
        return [
            [multiply(code, old, one, column) for old, column in zip(row, columns, strict=True)]
            for row, one in zip(sums, ones, strict=True)
        ]

    sums = code.summed(ROWS, vectors, depth, add)
    firsts = [builder.add(total[0], builder.mul(total[1], SIZE(n))) for n in range(ROWS)]
    places = [place for first in firsts for place in code.side_by_side(first, vectors)]
    made = list(zip(places, [one for row in sums for one in row], strict=True))
    with builder.if_else(adds) as (then, otherwise):
        with then:
            with_old = [(place, builder.fadd(code.read(code.numbers, place), new)) for place, new in made]
            _put(code, with_old, rounds)
        with otherwise:
            _put(code, made, rounds)


def _with_number(code: VectorCode, total: Any, left: Any, right: Any) -> Any:
    """Products of the numbers that words are."""
    return code.with_product(total, *(code.builder.bitcast(words, code.numbers) for words in (left, right)))


def _with_products(code: VectorCode, total: Any, left: Any, right: Any) -> Any:
    """The products of the upper halves are added, then those of the lower ones."""
    builder = code.builder
    if _INSTRUCTION:
        return code.call("llvm.x86.avx512bf16.dpbf16ps.512", code.numbers, total, left, right)
    uppers = [builder.and_(pairs, code.known(code.words, UPPER)) for pairs in (left, right)]
    lowers = [builder.shl(pairs, code.known(code.words, 16)) for pairs in (left, right)]
    return _with_number(code, _with_number(code, total, *uppers), *lowers)


def _put(code: VectorCode, made: list[tuple[Any, Any]], rounds: Any) -> None:
    """Sums go to their addresses, rounded if that is wanted."""
    builder = code.builder
    with builder.if_else(rounds) as (then, otherwise):
        with then:
            for place, numbers in made:
                bits = builder.add(builder.bitcast(numbers, code.words), code.known(code.words, _HALF))
                code.write(code.words, builder.and_(bits, code.known(code.words, UPPER)), place)
        with otherwise:
            for place, numbers in made:
                code.write(code.numbers, numbers, place)


def _pair_vector(typing: Any, words: Any, first: Any, mask: Any, target: Any, to: Any) -> tuple[Any, Any]:
    """A vector of words of two neighbors becomes pairs, whose first number is above.

    Args:
        words: int32, contiguous, with one axis: numbers as they lie in memory.
        mask: int32, the bits of a pair that are kept.
        target: As ``words``.
        to: Where the first pair goes.
    """
    size = _numba.types.intp

    def make(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        code = VectorCode(builder, LANES)

        def place(array: int) -> Any:
            data = context.make_array(signature.args[array])(context, builder, given[array]).data
            return builder.ptrtoint(builder.gep(data, [given[array + 1]]), SIZE)

        halves, sixteen = code.read(code.words, place(0)), code.known(code.words, 16)
        turned = builder.or_(builder.shl(halves, sixteen), builder.lshr(halves, sixteen))
        code.write(code.words, builder.and_(turned, code.everywhere(code.words, given[2])), place(3))
        return context.get_dummy_value()

    return _numba.types.void(words, size, _numba.types.int32, target, size), make


pair_vector: Any = _extending.intrinsic(_pair_vector)
tile_1, tile_2, tile_3, tile_4 = (_tile_of(vectors) for vectors in (1, 2, 3, 4))
