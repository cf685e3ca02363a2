"""What a data movement program tells of itself: the pages of both sides, and what its stages do."""

from collections.abc import Callable
from typing import Final

from device.time.stages import Stage
from ops.op_model import Description, Detail
from ops.programs.movement.movement import Access, Movement, Pages
from ops.programs.movement.work import Window

READING: Final = {
    Access.STREAM: "one request after the other",
    Access.STICKS: "one request after the other",
    Access.ROWS: "row of tiles by row of tiles, each waited for",
    Access.BOX: "with an address worked out for each",
    Access.WAIT: "each waited for",
    Access.BOUNCE: "each waited for and copied once more within L1",
    Access.LOCAL: "within the core, in one piece",
    Access.LOCAL_STICKS: "within the core, stick by stick",
}


def describe_movement(
    movement: Callable[[], Movement], *, measured_as: str = "", window: Window | None = None
) -> Description:
    """How a data movement was planned.

    Args:
        movement: What it moves, found out when the account is read.
        measured_as: The name under which such programs were measured, if they were.
        window: The part of an image that it cuts out or writes.
    """
    return Description(
        facts=lambda: _facts(movement(), window),
        stages=lambda: _stages(movement()),
        measured_as=measured_as,
        composed_of="pages that are read and written as in other movements",
    )


def _facts(movement: Movement, window: Window | None) -> tuple[Detail, ...]:
    count = movement.cores.num_cores()
    facts = [Detail(name="cores", value=count, text="one core" if count == 1 else f"{count} cores")]
    if movement.reads is not None:
        facts.append(_pages("read", movement.reads, movement))
    if movement.writes is not None:
        facts.append(_pages("written", movement.writes, movement))
    if window is not None:
        facts += [
            Detail(name="window_begins", value=window.begins, text=f"of the image from {_place(window.begins)}"),
            Detail(name="window_ends", value=window.ends, text=f"to {_place(window.ends)}"),
        ]
    return tuple(facts)


def _stages(movement: Movement) -> dict[Stage, str]:
    stages = {
        Stage.TILIZE: "rows become tiles",
        Stage.UNTILIZE: "tiles become rows",
        Stage.DRAM: "DRAM delivers or takes the pages of all cores",
    }
    if movement.reads is not None:
        stages[Stage.READER] = _reading(movement, movement.reads)
    elif movement.segments:
        stages[Stage.READER] = "pieces of rows are moved between tiles"
    if movement.writes is not None:
        stages[Stage.WRITER] = f"{_what(movement.writes)} are written {_to(movement.writes)}, {_how(movement.writes)}"
    return stages


def _pages(side: str, pages: Pages, movement: Movement) -> Detail:
    where = _from(pages, movement) if side == "read" else _to(pages)
    what = f"{pages.all_pages:,} {_what(pages)} of {pages.page_bytes:,} B"
    return Detail(
        name=f"pages_{side}", value=pages.all_pages, text=f"{what} {side} {where}, {pages.core_pages:,} by one core"
    )


def _reading(movement: Movement, pages: Pages) -> str:
    if movement.reshards:
        return f"pieces of shards are read {_from(pages, movement)}"
    text = f"{_what(pages)} are read {_from(pages, movement)}, {_how(pages)}"
    return f"{text}, and pieces of rows moved between tiles" if movement.segments else text


def _what(pages: Pages) -> str:
    return "tiles" if pages.tiles else "sticks"


def _is_local(pages: Pages) -> bool:
    return pages.access in (Access.LOCAL, Access.LOCAL_STICKS)


def _from(pages: Pages, movement: Movement) -> str:
    if pages.in_dram:
        return "from DRAM"
    if movement.reshards:
        return "from the L1 of other cores"
    return "in L1" if _is_local(pages) else "from L1"


def _to(pages: Pages) -> str:
    return "to DRAM" if pages.in_dram else "in L1" if _is_local(pages) else "to L1"


def _how(pages: Pages) -> str:
    return READING[pages.access] if pages.in_flight == 1 else f"{pages.in_flight} at a time, {READING[pages.access]}"


def _place(index: tuple[int, ...]) -> str:
    return f"row {index[1]}, column {index[2]}"
