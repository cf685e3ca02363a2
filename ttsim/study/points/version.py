"""Which model made a row: a text that changes whenever the sources of the simulator do."""

from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.resources import files
from importlib.resources.abc import Traversable
from typing import Final

PACKAGES: Final = ("device", "ops", "ttsim")
KINDS: Final = (".py", ".toml")  # code, and figures of devices and of expected errors
DIGITS: Final = 16


@cache
def model_version() -> str:
    """The first digits of a SHA-256 over names and contents of all sources; read once in a process.

    Any change counts, of a comment, too: rows are never mixed that two different models may have made. Line ends do
    not count.
    """
    return version_of((name, files(name)) for name in PACKAGES)


def version_of(packages: Iterator[tuple[str, Traversable]]) -> str:
    """The version of some packages.

    Args:
        packages: Name and folder of each.
    """
    digest = sha256()
    for name, folder in packages:
        for path, text in sorted(_sources(name, folder)):
            digest.update(f"{path}\0{len(text)}\0".encode())
            digest.update(text)
    return digest.hexdigest()[:DIGITS]


def _sources(path: str, folder: Traversable) -> Iterator[tuple[str, bytes]]:
    """Path and contents of each source under a folder, in no order."""
    for entry in folder.iterdir():
        inner = f"{path}/{entry.name}"
        if entry.is_dir():
            yield from _sources(inner, entry)
        elif entry.name.endswith(KINDS):
            yield inner, entry.read_bytes().replace(b"\r\n", b"\n")
