"""What it takes to bring programs to the cores: constants of the model of dispatch, read from the device file."""

from dataclasses import dataclass
from typing import ClassVar

from device.spec.tables import Costs


@dataclass(frozen=True, slots=True, kw_only=True)
class DispatchCosts(Costs):
    """Constants of dispatch, in cycles of the worker cores' clock unless named otherwise: cores that dispatch share it.

    Attributes:
        fetch_cycles: The prefetching core, for each program.
        fetch_binary_cycles: More, for each kernel binary beyond the first.
        binary_bytes_per_cycle: Rate at which it fetches binaries, page by page from DRAM.
        config_bytes_per_cycle: Rate at which it fetches what stands in the commands: arguments, circular buffers.
        command_cycles: For each command besides those that every program has, on either core.
        write_cycles: The dispatching core, for each program.
        write_core_cycles: More, for each core that runs it.
        write_binary_cycles: More, for each kernel binary beyond the first.
        write_group_cycles: More, for each group of cores beyond the first.
        argument_core_cycles: For each core with arguments of its own.
        start_cycles: From the end of a program, or of its writing, to the start of the kernels.
        start_buffer_cycles: More, for each circular buffer of a core.
        config_buffer_bytes: Of each core, for the configuration of programs that are running or written ahead.
        dispatcher_factor: On all cycles above, where slower cores dispatch.
        host_launch_nanoseconds: The host, for each program that is not replayed.
        host_bytes_per_second: Rate at which the host copies binaries to the device.
    """

    TABLE: ClassVar[str] = "dispatch_costs"

    fetch_cycles: float
    fetch_binary_cycles: float
    binary_bytes_per_cycle: float
    config_bytes_per_cycle: float
    command_cycles: float
    write_cycles: float
    write_core_cycles: float
    write_binary_cycles: float
    write_group_cycles: float
    argument_core_cycles: float
    start_cycles: float
    start_buffer_cycles: float
    config_buffer_bytes: int
    dispatcher_factor: float
    host_launch_nanoseconds: int
    host_bytes_per_second: int
