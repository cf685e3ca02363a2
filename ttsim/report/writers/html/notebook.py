"""A page in a notebook: the document itself in a frame, so that neither's style touches the other."""

from html import escape

from ttsim.report.page.figures import Page
from ttsim.report.writers.html.document import page_html
from ttsim.report.writers.html.elements import label


def page_frame(page: Page) -> str:
    """The frame, whose scripts can reach nothing outside it.

    Args:
        page: What it shows.
    """
    return (
        f'<iframe title="{label(page.title)}" sandbox="allow-scripts" '
        'style="width: 100%; height: 40rem; border: 1px solid #8888; resize: vertical" '
        f'srcdoc="{escape(page_html(page))}"></iframe>'
    )
