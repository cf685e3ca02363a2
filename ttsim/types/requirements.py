"""Types of arguments, checked where a function takes them by position."""


def require_type(owner: str, kind: type, **arguments: object) -> None:
    """Raises TypeError, naming function and argument, for the first that is of another type."""
    for name, value in arguments.items():
        if not isinstance(value, kind):
            raise TypeError(f"{owner}: {name} must be a {kind.__name__}, not {value!r}")


def require_type_or_none(owner: str, kind: type, **arguments: object) -> None:
    """The same for arguments that may be left out."""
    require_type(owner, kind, **{name: value for name, value in arguments.items() if value is not None})
