"""Asks ttnn-visualizer's own app for everything that it has on a report; runs in the viewers' environment.

usage: python viewer_routes.py MEMORY PERFORMANCE SCRATCH; prints a JSON object of statuses by route.
"""

import contextlib
import io
import json
import logging
import os
import sys

memory, performance, scratch = sys.argv[1:]
os.environ.update(
    APP_DATA_DIRECTORY=scratch, REPORT_DATA_DIRECTORY=scratch, USAGE_RECORDING_DISABLED="true", USE_WEBSOCKETS="false",
    FLASK_ENV="production", LAUNCH_BROWSER_ON_START="false")  # fmt: skip

from ttnn_visualizer.app import create_app  # noqa: E402 - reads the variables

FILLED = (
    "devices", "config", "report-metadata", "operations", "operations/1", "tensors", "tensors/1", "buffers",
    "performance/npe/manifest", "cluster-descriptor",
    "operation-buffers", "operation-buffers/1", "report-fingerprints", "performance/perf-results",
    "performance/perf-results/raw", "performance/perf-results/report", "performance/device-log",
    "performance/device-log/raw", "performance/device-log/meta", "performance/device-log/zone/BRISC-FW",
)  # fmt: skip
EMPTY = ("buffer-pages?operation_id=1", "errors", "operation-history")

with contextlib.redirect_stdout(io.StringIO()):
    logging.disable(logging.CRITICAL)
    client = create_app().test_client()
    paths = {"profiler_path": memory, "performance_path": performance}
    instance = client.post("/api/instance/local-paths", json=paths).get_json()["instance_id"]
    found = {}
    for route in (*FILLED, *EMPTY):
        answer = client.get(f"/api/{route}{'&' if '?' in route else '?'}instanceId={instance}")
        filled = route in EMPTY or answer.data.strip() not in (b"", b"[]", b"{}")
        found[route] = answer.status_code if filled else "empty"
    manifest = client.get(f"/api/performance/npe/manifest?instanceId={instance}").get_json()
    name = manifest[0]["file"] if manifest else ""
    drawn = client.get(f"/api/performance/npe/timeline?filename={name}&instanceId={instance}")
    found["performance/npe/timeline"] = drawn.status_code if "noc_transfers" in (drawn.get_json() or {}) else "empty"
    operations = client.get(f"/api/operations?instanceId={instance}").get_json()
    sources = {}
    for number in {operation["stack_trace_source_file_id"] for operation in operations}:
        answer = client.get(f"/api/remote/stack-trace/read?sourceFileId={number}&instanceId={instance}").get_json()
        sources[number] = answer["content"]
    report = client.get(f"/api/performance/perf-results/report?instanceId={instance}").get_json()["report"]
shown = {"routes": found, "operations": operations, "report": report, "sources": sources, "npe": manifest}
json.dump(shown, sys.stdout)
