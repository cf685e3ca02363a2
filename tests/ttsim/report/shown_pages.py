"""Pages as their script reads them."""

import json
from typing import Any


def data_of(page: str) -> dict[str, Any]:
    """The data of a page, with texts where the page has their places."""
    data = json.loads(page.partition('id="data">')[2].partition("</script>")[0])
    texts = data.pop("texts")

    def unpacked(value: Any, inside: bool = False) -> Any:
        if isinstance(value, dict):
            return {key: unpacked(item, key in ("rows", "marks")) for key, item in value.items()}
        if isinstance(value, list):
            place = inside and len(value) == 1 and isinstance(value[0], int)
            return texts[value[0]] if place else [unpacked(item, inside) for item in value]
        return value

    return unpacked(data)
