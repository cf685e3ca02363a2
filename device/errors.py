"""Errors of the machine.

The tree::

    ValueError
      SpecError                a device description that is incomplete, misspelt or contradicts itself
    RuntimeError
      DeviceError              the machine refuses
        OutOfMemoryError       no room for a buffer
        CircularBufferError    the circular buffers of a program do not fit under the L1 buffers
        MemoryAccessError      a read or write outside a buffer, or of a buffer that was freed
          PoisonError          a read of memory that nobody has written
        DeviceClosedError      the device was closed

Every message names the rule, the value and the way out. Where the real library has a text of its own, that text is
the first line.
"""


class SpecError(ValueError):
    """A device description is incomplete, misspelt or contradicts itself."""


class DeviceError(RuntimeError):
    """The machine refuses to do what it was asked."""


class OutOfMemoryError(DeviceError):
    """No free block of a memory is large enough for a buffer."""


class CircularBufferError(DeviceError):
    """The circular buffers of a program are larger than L1, or meet the L1 buffers that live above them."""


class MemoryAccessError(DeviceError):
    """Memory outside every buffer, or of a freed buffer, was read or written."""


class PoisonError(MemoryAccessError):
    """Memory was read that nobody has written."""


class DeviceClosedError(DeviceError):
    """A closed device was asked to allocate."""
