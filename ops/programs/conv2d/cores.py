"""The cores of a conv2d program that are walked through: their processors and circular buffers."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from device.time.engine import Moment, Processor, Slots


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
    """Processors and circular buffers of one core."""

    reader: Processor  # Reads and multicasts activations
    second: Processor  # Reads or receives weights
    splitter: Processor  # Reads activations if the reader is split: the second one, unless there is a third
    compute: Processor = field(default_factory=Processor)
    # Activation blocks as they are multiplied (BLOCK, WIDTH) or gathered (HEIGHT; with activation reuse the tile rows
    # of a row of the image)
    act: Slots
    second_act: Slots  # What the second reader gathered of them (HEIGHT)
    row_major: Slots  # Gathered activations that are to be tilized for others (BLOCK, WIDTH)
    tilized: Slots  # Such a block, tilized
    weights: Slots  # K blocks of weights

    @property
    def processors(self) -> tuple[Processor, ...]:
        """Each once."""
        return tuple(dict.fromkeys((self.reader, self.second, self.splitter, self.compute)))

    @property
    def buffers(self) -> tuple[Slots, ...]:
        """All circular buffers."""
        return self.act, self.second_act, self.row_major, self.tilized, self.weights


OnCores: TypeAlias = Callable[[Sequence[Core]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What becomes of an output block besides its products."""

    begun: OnCores  # Its first weights are there
    finish: OnCores  # Its products are
    buffers: Sequence[Slots] = ()  # Circular buffers that they use beyond those of the cores


@dataclass(frozen=True, slots=True)
class ConvTiming:
    """Cores after the program."""

    sender: Core  # One that reads weights from DRAM
    receivers: tuple[Core, ...]  # One that gets them by multicast, if there are such

    @property
    def cores(self) -> tuple[Core, ...]:
        """The sender first."""
        return self.sender, *self.receivers

    @property
    def end(self) -> Moment:
        """The end of the program: what is left of the other processors is done before the compute threads."""
        return max((core.compute.now for core in self.cores), key=lambda moment: moment.cycles)


def processors_of(cores: Sequence[Core]) -> list[Processor]:
    """Those of all cores."""
    return [processor for core in cores for processor in core.processors]


def buffers_of(cores: Sequence[Core]) -> list[Slots]:
    """The circular buffers of all cores."""
    return [buffer for core in cores for buffer in core.buffers]
