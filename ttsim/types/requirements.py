"""Types of arguments, checked where a function takes them by position."""

from device.errors import ArgumentTypeError


def require_type(owner: str, kind: type, **arguments: object) -> None:
    """Raises ArgumentTypeError, naming function and argument, for the first that is of another type."""
    for name, value in arguments.items():
        if not isinstance(value, kind):
            raise ArgumentTypeError(f"{owner}: {name} must be a {kind.__name__}, not {value!r}")


def require_type_or_none(owner: str, kind: type, **arguments: object) -> None:
    """The same for arguments that may be left out."""
    require_type(owner, kind, **{name: value for name, value in arguments.items() if value is not None})
