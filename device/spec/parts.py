"""Parts of a device description that say what the machine is: grid, memories, networks, compute, planner's rates."""

from dataclasses import dataclass
from typing import Final

from device.errors import SpecError
from device.spec.figures import (
    require_at_most,
    require_multiple,
    require_positive,
    require_powers_of_two,
    require_room,
    require_share,
)

MOST_PLACES: Final = 64  # along an axis of the chip: a coordinate of the networks has 6 bits (NOC_ADDR_NODE_ID_BITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class GridSpec:
    """The worker cores a program can use."""

    cols: int  # Cores in a row, at most 64
    rows: int  # Cores in a column, at most 64

    def __post_init__(self) -> None:
        require_positive("grid", self)
        require_at_most("grid", self, MOST_PLACES, "cols", "rows")

    @property
    def cores(self) -> int:
        """Worker cores in all."""
        return self.cols * self.rows


@dataclass(frozen=True, slots=True, kw_only=True)
class L1Spec:
    """The memory of each worker core."""

    bytes: int  # First address behind L1: buffers are placed downward from here
    base_bytes: int  # First address a program may use: circular buffers are placed upward from here
    alignment_bytes: int  # A page of a buffer is padded to this
    allocation_alignment_bytes: int  # A buffer starts at a multiple of this, counted from ``base_bytes``
    circular_buffer_alignment_bytes: int  # A circular buffer starts at a multiple of this
    circular_buffers: int  # Most circular buffers of one core
    zeros_bytes: int = 512  # Zeros that stand in every core, for kernels to copy padding from

    def __post_init__(self) -> None:
        require_positive("l1", self)
        require_powers_of_two("l1", self, "alignment_bytes", "allocation_alignment_bytes")
        require_powers_of_two("l1", self, "circular_buffer_alignment_bytes")
        require_room("l1", "bytes", self.bytes, self.base_bytes)
        require_multiple("l1", self, "allocation_alignment_bytes", "alignment_bytes")
        require_multiple("l1", self, "base_bytes", "circular_buffer_alignment_bytes")

    @property
    def usable_bytes(self) -> int:
        """Bytes of one core between the base and the top."""
        return self.bytes - self.base_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class DramSpec:
    """The memory outside the cores, on a clock of its own: what it does in a second does not depend on theirs."""

    banks: int  # Independent banks, at most 4096; interleaved buffers spread over all
    bank_bytes: int  # First address behind a bank
    base_bytes: int  # First address a buffer may have: buffers are placed upward from here
    alignment_bytes: int  # A page of a buffer is padded to this; a buffer starts at a multiple of it, from the base on
    bank_bytes_per_second: float  # One bank, by the data sheet
    achieved_share: float  # Part of that which all banks together deliver to well placed readers
    access_ns: float  # From a request's arrival at a bank until its first bytes leave
    request_ns: float  # Between two read requests that a bank takes from one network, however small
    write_request_ns: float  # Between two writes of a few bytes each that a bank takes

    def __post_init__(self) -> None:
        require_positive("dram", self)
        require_at_most("dram", self, MOST_PLACES**2, "banks")  # one for each node of the largest network
        require_powers_of_two("dram", self, "alignment_bytes")
        require_room("dram", "bank_bytes", self.bank_bytes, self.base_bytes)
        require_multiple("dram", self, "base_bytes", "alignment_bytes")
        require_share("dram", self, "achieved_share")

    @property
    def usable_bytes(self) -> int:
        """Bytes of one bank between the base and the top."""
        return self.bank_bytes - self.base_bytes

    @property
    def peak_bytes_per_second(self) -> float:
        """All banks together, by the data sheet."""
        return self.banks * self.bank_bytes_per_second


@dataclass(frozen=True, slots=True, kw_only=True)
class NocSpec:
    """The two networks of the chip: rings in each row and each column of a torus, clocked as the worker cores are."""

    cols: int  # Columns of the torus, at most 64
    rows: int  # Rows of the torus, at most 64
    # Torus column of each column of worker cores, unharvested. A grid with more columns than these (there may be
    # none) has a network made for it (`device.time.network.torus_of`)
    worker_cols: tuple[int, ...] = ()
    worker_rows: tuple[int, ...] = ()  # The same of rows
    # Torus column of the node at which each bank of DRAM answers; banks beyond these answer at free nodes of the same
    # columns. Empty where nobody knows them: then no link is counted for such banks
    dram_cols: tuple[int, ...] = ()
    dram_rows: tuple[int, ...] = ()  # Torus row of that node on the first network
    dram_second_rows: tuple[int, ...] = ()  # Torus row of that node on the second network
    flit_bytes: int  # Bytes a link carries a cycle
    link_share: float  # Part of them that is left after headers
    packet_bytes: int  # Most that a packet carries; a larger transfer is several
    hop_cycles: float  # From one router to the next
    interface_cycles: float  # Of a small read's round trip, what is not hops: both ends' interfaces, and the memory
    crossing_cycles: float  # Between two packets on a link on which those of many cores meet
    merging_share: float  # Part of such a link's bandwidth that is left where packets of many senders merge
    flushes_multicasts: bool  # A matmul's kernels wait until a multicast block has left the core, then send its flag

    def __post_init__(self) -> None:
        require_positive("noc", self)
        require_at_most("noc", self, MOST_PLACES, "cols", "rows")
        require_share("noc", self, "link_share")
        require_share("noc", self, "merging_share")
        for name, size in (("worker_cols", self.cols), ("worker_rows", self.rows)):
            places = getattr(self, name)
            if list(places) != sorted(set(places)) or not all(0 <= place < size for place in places):
                raise SpecError(
                    f"noc: {name} must be rising numbers from 0 below {size}, not {places}; number the torus from 0"
                )
        banks = {len(self.dram_cols), len(self.dram_rows), len(self.dram_second_rows)}
        inside = all(0 <= col < self.cols for col in self.dram_cols)
        inside = inside and all(0 <= row < self.rows for row in (*self.dram_rows, *self.dram_second_rows))
        if len(banks) > 1 or not inside:
            raise SpecError(
                "noc: dram_cols, dram_rows and dram_second_rows must be as long as each other, of nodes within the "
                f"torus, not {self.dram_cols}, {self.dram_rows} and {self.dram_second_rows}; give one node for each "
                "bank, or none"
            )

    @property
    def link_bytes_per_cycle(self) -> float:
        """What a link carries of a packet's contents."""
        return self.flit_bytes * self.link_share


@dataclass(frozen=True, slots=True, kw_only=True)
class DataMovementSpec:
    """The processors of a core that issue reads and writes."""

    processors: int  # How many work side by side

    def __post_init__(self) -> None:
        require_positive("data_movement", self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeSpec:
    """The compute threads of a core."""

    dst_tiles: int  # Tiles of 16-bit values the destination registers hold, at least 4; half as many of 32 bits
    phase_cycles: float  # Matrix unit cycles of one 32x32x32 tile product, for each fidelity phase
    unpack_bytes_per_cycle: float  # Rate at which tiles come from L1 into the matrix unit's registers
    unpack_tile_cycles: float  # Least time of a tile there, however few bytes it has
    pack_bytes_per_cycle: float  # Rate at which tiles go from the destination registers to L1
    vector_lanes: int  # Numbers that an instruction of the vector unit, one a cycle, works on
    # Tiles of one operand that the matrix unit keeps, each in a register bank, while tiles of the other stream past
    # once. There are two banks at least: kept tiles that fill more than half of the banks leave no room for the next
    # ones, which are then waited for, so that two may be slower than one (whose successor has a bank) and than four
    stationary_tiles: int
    minus_one_quirk: bool  # The matrix unit normalizes a negative sum of magnitude 1 by 27 places too few
    # Tilizing float32 into a 16-bit or block format keeps 10 mantissa bits when the destination registers are 32 bits
    # wide; False: it always keeps 7
    fast_tilize_keeps_tf32: bool
    reciprocal_table: bool  # The vector unit looks a first estimate of a reciprocal up; False: kernels compute one

    def __post_init__(self) -> None:
        require_positive("compute", self)
        require_powers_of_two("compute", self, "dst_tiles")
        if not self.dst_half_tiles(fp32_dest=True):
            raise SpecError(
                f"compute: dst_tiles must be at least 4, not {self.dst_tiles}; a half of them holds one tile of 32 bits"
            )

    def dst_half_tiles(self, *, fp32_dest: bool) -> int:
        """Tiles of one half of the destination registers: what a sub-block holds while the other half is packed."""
        return self.dst_tiles // 4 if fp32_dest else self.dst_tiles // 2

    def tilize_keeps_tf32(self, width_tiles: int) -> bool:
        """`fast_tilize_keeps_tf32` of rows of so many tiles: a single tile is not tilized fast, and always keeps 10."""
        return self.fast_tilize_keeps_tf32 or width_tiles == 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TransferRate:
    """A rate that grows linearly with the size of a transfer, from 16 bytes up to a peak."""

    floor_bytes_per_ns: float  # At 16 bytes
    peak_bytes_per_ns: float  # At ``peak_at_bytes`` and above
    peak_at_bytes: int  # Where the growth ends

    def __post_init__(self) -> None:
        require_positive("reader rate", self)
        if self.peak_at_bytes <= 16 or self.peak_bytes_per_ns < self.floor_bytes_per_ns:
            raise SpecError(
                "reader rate: the peak must lie above 16 bytes and not below the floor, not "
                f"{self.peak_bytes_per_ns} at {self.peak_at_bytes} bytes with a floor of {self.floor_bytes_per_ns}; "
                "give the rate at 16 bytes as the floor"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class TilizeCost:
    """Cycles to tilize one tile."""

    input_format: str  # Name of the format that is read
    output_format: str  # Name of the format that is written
    dst_16bit_cycles: int  # With 16-bit destination registers
    dst_32bit_cycles: int  # With 32-bit destination registers

    def __post_init__(self) -> None:
        require_positive("reader tilize", self)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderRates:
    """The cost model by which the real planner decides for a second activation reader (its figures, not the machine's).

    Rates are bytes in a nanosecond of the clock that it assumes.
    """

    clock_ghz: float  # Clock it assumes
    local: TransferRate  # Reads from the own L1
    dram: TransferRate  # Reads from DRAM
    multicast: TransferRate  # Multicasts
    tilize: tuple[TilizeCost, ...]  # By formats

    def __post_init__(self) -> None:
        require_positive("reader", self)
        pairs = [(cost.input_format, cost.output_format) for cost in self.tilize]
        for pair in pairs:
            if pairs.count(pair) > 1:
                raise SpecError(f"reader: tilize gives {pair[0]} to {pair[1]} twice; keep one of the entries")

    def tilize_cycles(self, input_format: str, output_format: str, *, fp32_dest: bool) -> int:
        """Cycles to tilize one tile of ``input_format`` into ``output_format``."""
        for cost in self.tilize:
            if (cost.input_format, cost.output_format) == (input_format, output_format):
                return cost.dst_32bit_cycles if fp32_dest else cost.dst_16bit_cycles
        known_output = any(cost.output_format == output_format for cost in self.tilize)
        side = "input" if known_output else "output"
        known = ", ".join(f"{cost.input_format} to {cost.output_format}" for cost in self.tilize)
        raise SpecError(
            f"Unsupported {side} data type when calculating tilize cycles\n"
            f"reader: no tilize cycles for {input_format} to {output_format} (there are {known}); "
            "add an entry to reader.tilize"
        )
