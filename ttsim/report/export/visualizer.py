"""db.sqlite and config.json: the memory report that ttnn-visualizer opens."""

import sqlite3
from contextlib import closing

from ttsim.report.export.visualizer_tables import TABLES, rows_of
from ttsim.report.plain import text
from ttsim.report.record.figures import Record


def database(record: Record) -> bytes:
    """The bytes of db.sqlite; the same for the same record and version of SQLite."""
    with closing(sqlite3.connect(":memory:")) as made:
        for name, columns in TABLES:
            made.execute(f"CREATE TABLE {name} ({columns})")
        for name, rows in rows_of(record).items():
            each = list(rows)
            if each:
                made.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(each[0]))})", each)
        made.commit()
        return made.serialize()


def config(record: Record) -> str:
    """The text of config.json."""
    return text(
        {
            "report_name": record.name,
            "enable_logging": True,
            "enable_graph_report": False,
            "enable_detailed_buffer_report": True,
        }
    )
