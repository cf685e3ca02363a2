"""A call that a device carried out, as profiles remember it."""

from dataclasses import dataclass

from device.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class RanCall:
    """One call.

    Attributes:
        function: The function of the library that was called.
        plan: What it did.
        ran: Names of the device operations that ran, in order: a tensor that is to be moved stays where it is if there
            is no better place.
        useful_flops: Multiplications and additions of its definition; None if it has none of its own.
    """

    function: str
    plan: Plan
    ran: tuple[str, ...]
    useful_flops: int | None = None
