"""Command line completion for bash, zsh and fish, generated from the table of commands."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from device.spec.device_spec import catalog_names, short_names
from ttsim.study.options import OPTIONS, Command

SHELLS: Final = ("bash", "zsh", "fish")
BASH: Final = """\
_ttsim_words() { COMPREPLY+=($(compgen -W "$*" -- "${COMP_WORDS[COMP_CWORD]}")); }
_ttsim_files() { COMPREPLY+=($(compgen -f -- "${COMP_WORDS[COMP_CWORD]}")); }
_ttsim() {
  COMPREPLY=()
  _ttsim_complete "$COMP_CWORD" "${COMP_WORDS[1]}" "${COMP_WORDS[COMP_CWORD-1]}"
}
complete -o filenames -F _ttsim ttsim
"""
ZSH: Final = """\
_ttsim_words() { compadd -- "$@"; }
_ttsim_files() { _files; }
_ttsim() { _ttsim_complete "$((CURRENT - 1))" "$words[2]" "$words[CURRENT-1]"; }
(( $+functions[compdef] )) || { autoload -U compinit; compinit; }
compdef _ttsim ttsim
"""


def completion(commands: Sequence[Command], shell: str) -> str:
    """A shell script that completes commands, flags, flag values and devices, and otherwise files."""
    if shell == "fish":
        return "\n".join([*_fish(commands), ""])
    return "\n".join([*_cases(commands), BASH if shell == "bash" else ZSH])


def _words_of(name: str, how: Any) -> tuple[str, ...]:
    """The words that may follow a flag, or that a positional argument accepts."""
    return (*short_names(), *catalog_names()) if name in ("--device", "NAME") else tuple(how.get("choices", ()))


def _cases(commands: Sequence[Command]) -> Iterable[str]:
    """A shell function for bash and zsh; its arguments are the word's position, the command, and the previous word."""
    yield '_ttsim_complete() {\n  if [ "$1" -eq 1 ]; then'
    yield f"    _ttsim_words {' '.join(command.name for command in commands)} --help --version\n    return\n  fi"
    yield '  case "$3" in'
    for name, how in OPTIONS.items():
        if words := _words_of(name, how):
            files = "_ttsim_files; " if name == "--device" else ""
            yield f"    {name}) _ttsim_words {' '.join(words)}; {files}return ;;"
    yield '  esac\n  case "$2" in'
    for command in commands:
        placed = [word for name, how in command.places.items() for word in _words_of(name, how)]
        yield f"    {command.name}) _ttsim_words {' '.join((*command.options, '--help', *placed))} ;;"
    yield "  esac\n  _ttsim_files\n}"


def _fish(commands: Iterable[Command]) -> Iterable[str]:
    yield "complete -c ttsim -f -n __fish_use_subcommand -l version"
    for command in commands:
        yield f"complete -c ttsim -f -n __fish_use_subcommand -a {command.name} -d {_quoted(command.help)}"
        within = f"complete -c ttsim -n '__fish_seen_subcommand_from {command.name}'"
        placed = [word for name, how in command.places.items() for word in _words_of(name, how)]
        if placed:
            yield f"{within} -a {_quoted(' '.join(placed))}"
        for name in command.options:
            how, words = OPTIONS[name], " ".join(_words_of(name, OPTIONS[name]))
            switch = how.get("action", "append") != "append" or "nargs" in how
            alone = "-r" if name == "--device" else "-x"  # whether files are completed as well
            value = f" {alone} -a {_quoted(words)}" if words else "" if switch else " -r"
            yield f"{within} -l {name.removeprefix('--')}{value} -d {_quoted(how.get('help') or '')}"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
