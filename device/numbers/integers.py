"""Integer rounding, the two helpers every size rule is made of."""


def div_up(value: int, divisor: int) -> int:
    """Smallest integer that is not less than ``value / divisor``; ``divisor`` is positive."""
    return -(-value // divisor)


def round_up(value: int, multiple: int) -> int:
    """Smallest multiple of ``multiple`` (positive) that is not less than ``value``."""
    return -(-value // multiple) * multiple
