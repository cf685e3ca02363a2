"""Records of runs by hand: operations in order, tensors, their pages on cores and their lifetimes."""

from device.cores import CoreCoord, CoreRange, CoreRangeSet
from device.memory.layouts import BufferSpec, TensorSpec
from device.memory.memory_config import BufferType, Layout, TensorMemoryLayout
from device.numbers.formats import BFLOAT16
from device.plan import CircularBufferAllocated, OperationBegin, OperationEnd, ReadTensor
from ttsim.report.memory import fullest_core_bytes

TENSOR = TensorSpec([1, 1, 32, 32], BFLOAT16, Layout.TILE)


def runs(read, made, spec):
    return (
        OperationBegin("Op", read=tuple(ReadTensor(one, TENSOR.buffer(spec)) for one in read)),
        OperationEnd("Op", made=made),
    )


ROW = CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(7, 0)))
ONE = CoreRangeSet(CoreRange(CoreCoord(0, 0), CoreCoord(0, 0)))
OTHER = CoreRangeSet(CoreRange(CoreCoord(3, 0), CoreCoord(3, 0)))


def buffer(bank_bytes, memory=BufferType.L1):
    sizes = {"size_bytes": 8 * bank_bytes, "page_bytes": bank_bytes, "bank_bytes": bank_bytes, "num_cores": 8}
    return BufferSpec(memory, TensorMemoryLayout.HEIGHT_SHARDED, **sizes, cores=ROW)


def circular(name, size_bytes, address, *, cores=ROW, view=False):
    return CircularBufferAllocated("Conv2dDeviceOperation", name, size_bytes, address, cores, view)


def test_fullest_core():
    for first, second, size_bytes in ((ROW, ROW, 15), (ROW, ONE, 15), (OTHER, ONE, 10)):
        assert fullest_core_bytes([circular("a", 10, 0, cores=first), circular("b", 5, 0, cores=second)]) == size_bytes
    assert fullest_core_bytes([]) == 0
