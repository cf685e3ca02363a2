"""ttnn.database: the file that the real library's reports go to. There is none here, so that it is empty and closed."""

SQLITE_CONNECTION = None
DEVICE_IDS_IN_DATABASE: set[int] = set()
