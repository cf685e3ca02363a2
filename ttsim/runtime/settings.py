"""Settings of the process: ttnn's configuration object, environment variables, and flags that choose a device.

No field of the configuration object changes what ttsim computes, plans or times; ttsim has no counterpart of the real
library's logs, caches and comparisons. Use ``ttsim.graph`` and ``ttsim.profile`` instead of ``enable_logging``. As in
ttnn, there is one object per process, and scripts assign to its fields.
"""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, InitVar, asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, cast, get_args

from device.errors import ArgumentError, shown
from ttsim.runtime.types.call import require_type

PATH_VARIABLE = "TTNN_CONFIG_PATH"
OVERRIDES_VARIABLE = "TTNN_CONFIG_OVERRIDES"


@dataclass(slots=True)
class Config:
    """The configuration of the real library, with its defaults; no field changes what ttsim computes.

    Args:
        other: A config whose fields are copied.

    Examples:
        >>> ttnn.Config(ttnn.CONFIG).enable_logging
        False
    """

    other: InitVar["Config | None"] = None
    _: KW_ONLY
    cache_path: Path = Path.home() / ".cache" / "ttnn"
    model_cache_path: Path = Path.home() / ".cache" / "ttnn" / "models"
    tmp_dir: Path = Path("/tmp/ttnn")
    enable_model_cache: bool = False
    enable_fast_runtime_mode: bool = True
    validate_program_args: bool = False
    throw_exception_on_fallback: bool = False
    enable_logging: bool = False
    enable_graph_report: bool = False
    enable_graph_python_stack_traces: bool = False
    enable_detailed_buffer_report: bool = False
    enable_detailed_tensor_report: bool = False
    enable_comparison_mode: bool = False
    comparison_mode_should_raise_exception: bool = False
    comparison_mode_pcc: float = 0.9999
    root_report_path: Path = Path("generated") / "ttnn" / "reports"
    report_name: str | None = None
    strict_ccl_topology: bool = False

    def __post_init__(self, other: "Config | None") -> None:
        if other is not None:
            for name in names():
                setattr(self, name, getattr(other, name))

    @property
    def report_path(self) -> Path | None:
        """The path of reports named ``report_name``; None without a name."""
        return None if self.report_name is None else self.root_report_path / self.report_name


def names() -> tuple[str, ...]:
    """Names of all fields."""
    return tuple(field.name for field in fields(Config))


CONFIG = Config()
CONFIG_PATH = Path(os.environ[PATH_VARIABLE]) if PATH_VARIABLE in os.environ else None
CONFIG_OVERRIDES = os.environ.get(OVERRIDES_VARIABLE)


def load_config_from_dictionary(config: Mapping[str, Any], from_file: bool = False) -> None:
    """Sets fields of `CONFIG`.

    Args:
        config: Values by field name; each value is converted to the type of the field.
        from_file: Ignore unknown names, which another version may have written.

    Raises:
        ArgumentTypeError: ``config`` is not a mapping.
        ArgumentError: A name is unknown.

    Examples:
        >>> ttnn.load_config_from_dictionary({"enable_logging": False})
        >>> ttnn.CONFIG.enable_logging
        False
    """
    require_type("load_config_from_dictionary", Mapping, config=config)
    for name, value in config.items():
        if name in names():
            before = getattr(CONFIG, name)
            setattr(CONFIG, name, value if before is None or value is None else type(before)(value))
        elif not from_file:
            raise _unknown(name)


def load_config_from_json_file(json_path: str | Path) -> None:
    """Sets fields of `CONFIG` from a JSON file; unknown names are skipped.

    Args:
        json_path: Path of the file.

    Raises:
        ArgumentError: The file does not hold a JSON object.
        TypeError: ``json_path`` is not a path.
        OSError: The file cannot be read.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     ttnn.save_config_to_json_file(f"{folder}/config.json")
        ...     ttnn.load_config_from_json_file(f"{folder}/config.json")
    """
    load_config_from_dictionary(_object(Path(json_path).read_text(encoding="utf-8"), str(json_path)), from_file=True)


def save_config_to_json_file(json_path: str | Path) -> None:
    """Writes `CONFIG` into a JSON file.

    Args:
        json_path: Path of the file.

    Raises:
        TypeError: ``json_path`` is not a path.
        OSError: The file cannot be written.

    Examples:
        >>> from tempfile import TemporaryDirectory
        >>> with TemporaryDirectory() as folder:
        ...     ttnn.save_config_to_json_file(f"{folder}/config.json")
    """
    Path(json_path).write_text(json.dumps(asdict(CONFIG), indent=4, default=str), encoding="utf-8")


@contextmanager
def manage_config(name: str, value: object) -> Iterator[None]:
    """A context that gives a field of `CONFIG` another value.

    Args:
        name: Name of the field.
        value: Its value in the context.

    Returns:
        A context manager.

    Raises:
        ArgumentError: The name is unknown.

    Examples:
        >>> with ttnn.manage_config("enable_logging", True):
        ...     ttnn.CONFIG.enable_logging
        True
    """
    if name not in names():
        raise _unknown(name)
    before = getattr(CONFIG, name)
    setattr(CONFIG, name, value)
    try:
        yield
    finally:
        setattr(CONFIG, name, before)


def _unknown(name: str) -> ArgumentError:
    return ArgumentError(f"Unknown configuration key: {name}\nthere are {', '.join(names())}")


def _object(text: str, where: str) -> Mapping[str, Any]:
    try:
        read = json.loads(text)
    except ValueError as error:
        raise ArgumentError(f"{where}: no JSON: {error}") from None
    if not isinstance(read, dict):
        raise ArgumentError(f"{where}: a JSON object is wanted, not {shown(read)}")
    return read


if CONFIG_PATH is not None and CONFIG_PATH.exists():
    load_config_from_json_file(CONFIG_PATH)
if CONFIG_OVERRIDES is not None:
    load_config_from_dictionary(_object(CONFIG_OVERRIDES, OVERRIDES_VARIABLE))


Values = Literal["exact", "fast", "off"]

DEFAULT_SPEC = "wormhole_n150"
USUAL_L1_SMALL_SIZE = 32768  # bytes for index tensors, where nobody says how many
SPEC_VARIABLE = "TTSIM_DEVICE"
VALUES_VARIABLE = "TTSIM_VALUES"
STRICT_VARIABLE = "TTSIM_STRICT"
FALLBACK_VARIABLE = "TTSIM_FALLBACK"
FALLBACKS = ("host",)

_SWITCHES = {"1": True, "true": True, "on": True, "yes": True, "0": False, "false": False, "off": False, "no": False}


def default_spec() -> str:
    """The default device: a name of the catalog or a file, from TTSIM_DEVICE."""
    return os.environ.get(SPEC_VARIABLE) or DEFAULT_SPEC


def default_values() -> Values:
    """The default of ``values``, from TTSIM_VALUES; raises ArgumentError for an invalid value."""
    text = os.environ.get(VALUES_VARIABLE) or "exact"
    if text not in get_args(Values):
        raise ArgumentError(f"{VALUES_VARIABLE} must be one of {', '.join(get_args(Values))}, not {shown(text)}")
    return cast(Values, text)


def default_strict() -> bool:
    """Whether devices are strict, from TTSIM_STRICT; raises ArgumentError for an invalid value."""
    text = os.environ.get(STRICT_VARIABLE) or "1"
    if text.lower() not in _SWITCHES:
        raise ArgumentError(f"{STRICT_VARIABLE} must be one of {', '.join(_SWITCHES)}, not {shown(text)}")
    return _SWITCHES[text.lower()]


def falls_back() -> bool:
    """Whether the host computes calls that are not simulated, from TTSIM_FALLBACK; ArgumentError if invalid."""
    text = os.environ.get(FALLBACK_VARIABLE, "")
    if text not in ("", *FALLBACKS):
        raise ArgumentError(f"{FALLBACK_VARIABLE} must be {' or '.join(FALLBACKS)}, or unset, not {shown(text)}")
    return bool(text)
