"""ttnn.core: helper functions that scripts import."""

from ttsim.api.conversions import get_memory_config, is_tensor_storage_on_device
from ttsim.api.creation import has_storage_type_of, has_tile_padding, is_sharded
from ttsim.runtime.types.sharding import (
    create_sharded_memory_config,
    create_sharded_memory_config_,
    num_cores_to_corerangeset,
    num_cores_to_corerangeset_in_subcoregrids,
)
from ttsim.runtime.types.signatures import public

__all__ = [
    "create_sharded_memory_config",
    "create_sharded_memory_config_",
    "divup",
    "get_memory_config",
    "has_storage_type_of",
    "has_tile_padding",
    "is_sharded",
    "is_tensor_storage_on_device",
    "num_cores_to_corerangeset",
    "num_cores_to_corerangeset_in_subcoregrids",
    "roundup",
]


def divup(a: int, b: int) -> int:
    """The quotient of two integers, rounded up.

    Args:
        a: Numerator.
        b: Denominator.

    Returns:
        The smallest integer not less than a / b.

    Examples:
        >>> ttnn.core.divup(33, 32)
        2
    """
    return (a + b - 1) // b


def roundup(a: int, b: int) -> int:
    """An integer rounded up to a multiple of another integer.

    Args:
        a: The integer.
        b: The other integer.

    Returns:
        The smallest multiple of b not less than a.

    Examples:
        >>> ttnn.core.roundup(33, 32)
        64
    """
    return divup(a, b) * b


__dir__ = public(globals())
