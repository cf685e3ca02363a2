"""The program that raises integers to a power by squaring and multiplying (tt-metal 0.81.1, eltwise/unary pow_int)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from device.memory.layouts import TensorSpec
from device.memory.memory_config import TILE
from device.numbers.formats import Array, DataFormat
from device.plan import CircularBuffer
from device.spec.device_spec import DeviceSpec
from ops.op_model import Detail, ValuesContext, given, uncompared_fact
from ops.programs.buffer_shapes import BUFFERING, page_cores, tile_buffer
from ops.programs.eltwise.cycles import Compute
from ops.programs.eltwise.op import MULTIPLY, Eltwise, computed
from ops.programs.eltwise.vector_steps import chain_cycles


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegerPower(Eltwise):
    """Every element to a whole power from 1 on, modulo two to the power of its bits."""

    exponent: int
    data_format: DataFormat

    def in_place(self, operands: tuple[TensorSpec, ...], result: TensorSpec, spec: DeviceSpec) -> bool:
        """False: tiles of shards are also read and written."""
        return False

    def tile_work(self, operands: tuple[TensorSpec, ...], result: TensorSpec, spec: DeviceSpec) -> Compute:
        """A square for each bit of the exponent but the first, and a product where the bit is set."""
        products = self.exponent.bit_length() + self.exponent.bit_count() - 2
        return computed(operands, result, spec, chain_cycles(spec, [(MULTIPLY, ())] * max(1, products)))

    def details(self) -> tuple[Detail, ...]:
        """Never compared with recordings."""
        return (uncompared_fact("powers of integers never compared with the real kernel's"),)

    def values(self, inputs: Sequence[Array | None], context: ValuesContext) -> Array:
        """The power, in storage of the format."""
        base = given(inputs[0]).astype(np.uint64)  # bits of negative numbers, as two's complement has them
        with np.errstate(over="ignore"):
            result: Array = np.power(base, np.uint64(self.exponent)).astype(self.data_format.storage)
        return result


def power_buffers(source: TensorSpec, spec: DeviceSpec) -> tuple[CircularBuffer, ...]:
    """Two tiles on each side of the cores that share the tiles."""
    cores = page_cores(prod(source.padded_shape) // TILE**2, spec.grid)
    return tuple(tile_buffer(name, BUFFERING, source.data_format, cores) for name in ("tiles", "results"))
