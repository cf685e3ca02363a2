"""The command check: its action and its output."""

import argparse
import os
import sys
from functools import partial
from typing import Final

from device.errors import ArgumentError
from ttsim.report.formatting import counted, printable, terminal_width
from ttsim.report.writers.terminal import progress
from ttsim.study.check.budgets import read_budgets
from ttsim.study.check.measure import RunScript, measure
from ttsim.study.check.outputs import annotations, as_json, broken, junit, table
from ttsim.study.check.update import updated
from ttsim.study.check.verdicts import findings_of
from ttsim.study.options import GITHUB, write_results

WORKFLOW_VARIABLE: Final = "GITHUB_ACTIONS"  # "true" in workflows of GitHub


def check_command(options: argparse.Namespace, *, run_script: RunScript) -> int:
    """Checks a file of budgets and returns the exit code: 1 if a budget does not hold and was not updated."""
    if options.update and (options.device or options.changes):
        raise ArgumentError("check: --update writes figures of the file's own devices; leave --device and --set away")
    file = read_budgets(options.budgets, device=options.device, changes=options.changes)
    with progress("budgets", quiet=options.quiet) as begin:
        measurements = measure(file.budgets, run_script, processes=options.processes, watch=begin)
    findings = findings_of(file, measurements)
    printed = write_results(options, json=partial(as_json, file, findings), junit=partial(junit, file, findings))
    marks = annotations(file, findings) if _annotates(options.annotations) else ""
    if printed:
        sys.stderr.write(marks)  # where GitHub reads them as well
    else:
        sys.stdout.write(f"{table(file, findings, terminal_width())}{marks}")
    wrong = broken(findings)
    if options.update:
        new, count = updated(file, findings)
        if count:
            options.budgets.write_bytes(new.encode())
        if not options.quiet:
            sys.stderr.write(f"ttsim: {printable(str(options.budgets))}: {counted(count, 'figure')} written\n")
        wrong = [finding for finding in wrong if finding.report is None]
    return int(bool(wrong))


def _annotates(chosen: str | None) -> bool:
    """Whether annotations are written: by the flag, or by default in a GitHub workflow."""
    return chosen == GITHUB or (chosen is None and os.environ.get(WORKFLOW_VARIABLE) == "true")
