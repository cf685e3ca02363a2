"""Files of budgets about a report whose figures a test chooses."""

import json
from pathlib import Path

from ttsim.dropin.script import script_profiles
from ttsim.study.check.budgets import BudgetFile, read_budgets
from ttsim.study.check.measure import measure
from ttsim.study.check.verdicts import Finding, findings_of

HALO, CONV = "HaloDeviceOperation", "Conv2dDeviceOperation"


def report_of(**cycles: int) -> str:
    """A report of device operations with these cycles at 1 GHz, 700 bytes of L1 and 900 of DRAM."""
    names = {"halo": HALO, "conv": CONV, "move": "MoveDeviceOperation"}
    operations = [
        {"name": names[name], "cycles": taken, "core_count": 64, "bound_by": "reader"} for name, taken in cycles.items()
    ]
    total = {"traffic": {"dram_read_bytes": 600, "dram_written_bytes": 300}}
    total["error"] = {"share": 0.05, "unmeasured_share": 0.0}
    launches = {"readings": [{"total_nanoseconds": 2500}]}
    cycles_report = {"device": "wormhole_n150", "clock_hz": 10**9, "operations": operations}
    cycles_report |= {"total": total, "launches": launches}
    return json.dumps({"cycles": cycles_report, "network": {"high_water": {"total_bytes": 700}}})


def file_of(folder: Path, entry: str, *, settings: str = "", **cycles: int) -> BudgetFile:
    """A file with one entry about a report."""
    (folder / "net.json").write_text(report_of(**cycles), encoding="utf-8")
    path = folder / "budgets.toml"
    path.write_text(f'{settings}\n[[budget]]\nreport = "net.json"\n{entry}\n', encoding="utf-8")
    return read_budgets(path)


def found(file: BudgetFile) -> list[Finding]:
    """The findings of a file, measured in this process."""
    return findings_of(file, measure(file.budgets, script_profiles, processes=1))
