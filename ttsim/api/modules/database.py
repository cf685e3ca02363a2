"""ttnn.database, which the real library writes reports to: always empty and closed here."""

SQLITE_CONNECTION = None
DEVICE_IDS_IN_DATABASE: set[int] = set()
