"""The nodes of a capture with what its device operations take and were told, read from their works."""

from collections.abc import Sequence

from device.plan import Event, OperationBegin, OperationEnd
from ops.op_model import CyclesContext, Ends, Meanings
from ops.passes.cycles import timed_operation
from ttsim.recording import capture_nodes
from ttsim.recording.capture_nodes import Node, NodeText
from ttsim.report.cycles.whole import whole
from ttsim.report.record.figures_of import kernel_nanoseconds


def captured_nodes(events: Sequence[Event], meanings: Meanings) -> list[Node]:
    """The nodes of a capture.

    Args:
        events: What happened while it ran.
        meanings: What the works mean of the devices that it saw.
    """
    known: dict[object, NodeText] = {}

    def tell(begin: OperationBegin, end: OperationEnd) -> NodeText:
        """Equal programs, of which a network has many, are read once."""
        key = (begin.name, begin.work, _ends(begin, end), begin.spec, begin.dispatched)
        if key not in known:
            known[key] = _told(begin, end, meanings)
        return known[key]

    return capture_nodes.nodes(events, tell)


def _told(begin: OperationBegin, end: OperationEnd, meanings: Meanings) -> NodeText:
    ends = _ends(begin, end)
    if begin.spec is None or ends is None:
        return NodeText()
    reading = CyclesContext(spec=begin.spec, contention=True)
    timed = timed_operation(begin.name, begin.work, ends, reading, meanings)
    takes = 0
    if begin.dispatched and timed.cycles is not None:
        takes = kernel_nanoseconds(whole(timed.cycles.cycles), begin.spec)
    return NodeText(takes, timed.account.attributes)


def _ends(begin: OperationBegin, end: OperationEnd) -> Ends | None:
    """The tensor an operation reads first and the one it writes, which stands for both if it reads none."""
    if not end.made:
        return None
    written = end.made[0].spec
    return Ends(read=begin.read[0].tensor.spec if begin.read else written, written=written)
