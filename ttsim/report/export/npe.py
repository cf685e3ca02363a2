"""npe_viz: a file of network transfers for each program, and a manifest that maps device operations to these files.

Only programs whose model knows routes are written: halos. Programs with known bytes but no routes (multicasts of
convolutions, pages from and to DRAM) are left out.
"""

import json
from typing import Any

from ttsim.report.record import Record


def npe_files(record: Record) -> dict[str, str]:
    """The files by name; none if no transfer is known."""
    names = {program: f"program{program}.json" for program, _ in record.timelines}
    known = [op for op in record.operations if op.program in names]
    manifest = [{"global_call_count": op.call_count, "file": names[op.program]} for op in known]
    files: dict[str, Any] = {"manifest.json": manifest} if names else {}
    files |= {names[program]: document for program, document in record.timelines}
    return {name: json.dumps(file, separators=(",", ":"), allow_nan=False) + "\n" for name, file in files.items()}
