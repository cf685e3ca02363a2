"""The flags of commands that choose a device."""

from argparse import ArgumentParser, Namespace

from ops.fields.changed import with_changes
from ttsim.runtime.defaults import DEFAULT_SPEC, SPEC_VARIABLE, default_spec


def add_device(parser: ArgumentParser) -> None:
    """Adds the flags that name one device and change it; `chosen_device` reads them."""
    told = f"name or TOML file (default: ${SPEC_VARIABLE}, or {DEFAULT_SPEC})"
    parser.add_argument("--device", metavar="NAME", help=told)
    add_changes(parser)


def add_changes(parser: ArgumentParser) -> None:
    """Adds the flag that changes fields of the device."""
    parser.add_argument(
        "--set",
        dest="changes",
        action="append",
        default=[],
        metavar="FIELD=VALUE",
        help="change a field of the device, such as dram.banks=16, l1.bytes=2MiB, grid=9x7; may be repeated",
    )


def chosen_device(options: Namespace) -> str:
    """The device that parsed flags name, or else the environment, with its changes: a text for `load_spec`.

    Raises:
        SpecError: A change is no FIELD=VALUE.
    """
    return with_changes(options.device or default_spec(), options.changes)
