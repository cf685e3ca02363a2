"""Every error of this library. ``except ttsim.TTSimError`` catches them all.

The class tree, with the built-in base classes::

    TTSimError                    whatever the simulator refuses
      ArgumentError               arguments contradict each other or a rule (ValueError, RuntimeError)
        NotSimulatedError         the real library does this, and ttsim does not simulate it
        ArgumentIndexError        an index lies beyond a tensor (IndexError)
      ArgumentTypeError           an argument is unknown, missing or of the wrong type (TypeError)
      SpecError                   a device description is incomplete, misspelled or contradicts itself (ValueError)
      DeviceError                 the machine refuses (RuntimeError)
        OutOfMemoryError          no room for a buffer
        CircularBufferError       the circular buffers of a program do not fit under the L1 buffers
        MemoryAccessError         a read or write outside a buffer, or of a buffer that was freed
          PoisonError             a read of memory that nobody has written
        DeviceClosedError         the device was closed

Every message names the rule, the value and a remedy. If the real library has a text for the error, that text is the
first line. An error that the real library raises as a RuntimeError is a RuntimeError here.
"""

from device.errors import (
    ArgumentError as ArgumentError,
    ArgumentIndexError as ArgumentIndexError,
    ArgumentTypeError as ArgumentTypeError,
    CircularBufferError as CircularBufferError,
    DeviceClosedError as DeviceClosedError,
    DeviceError as DeviceError,
    MemoryAccessError as MemoryAccessError,
    NotSimulatedError as NotSimulatedError,
    OutOfMemoryError as OutOfMemoryError,
    PoisonError as PoisonError,
    SpecError as SpecError,
    TTSimError as TTSimError,
)
