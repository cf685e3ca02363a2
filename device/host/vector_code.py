"""Instructions on vectors for compiled loops, written out where numba would make no vectors of a loop.

This module needs numba, also to be loaded. A change here is seen by loops of other files once these change, too
(`device.host.compiling`).
"""

import importlib
from typing import Any, Final

from device.host.products import multiplies_numbers

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
