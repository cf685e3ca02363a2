"""Pages in headless Chromium: first screen, width, zoom, sorting, colors and roles.

They need a Chromium, which CHROMIUM or the PATH names, and `pip install playwright axe-playwright-python`.
"""

import os
import shutil

import pytest

import ttsim
from tests.ttsim.recording.calls import conv, opened
from ttsim.__main__ import main
from ttsim.recording.saving import save_report

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
pytestmark = [pytest.mark.browser, pytest.mark.skipif(not CHROMIUM, reason="no Chromium on the PATH")]
FIRST_SCREEN = ("verdict", "gain", "picture")
WIDTHS, HEIGHT, SCHEMES = (1280, 390), 844, ("light", "dark")
MOST_BYTES = 1_500_000
MOST_SECONDS = 1.0  # of the page's own thread, to open the page
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "cat.aria"]
RULES = {"runOnly": {"type": "tag", "values": TAGS}, "resultTypes": ["violations"], "preload": False}
FEW_ROWS = {"exclude": ["tbody tr:nth-child(n+6)"]}  # further rows look like the first
LEVELS = 5  # of the network, each with 8 operations or more
DRAWN = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
LAYER = ["--kernel-size", "2", "--stride", "2", "--out-channels", "32", "--values", "off"]


def call(folder):
    main(["run", "--shape", "1,32,32,64", *LAYER, "--html", str(folder / "page.html")])


def layers(folder):
    """Two layers, the second of which does not fit."""
    common = "[common]\nin_channels = 64\nout_channels = 32\nkernel_size = 2\nstride = 2\nbatch_size = 1\n"
    sizes = (("small", 16, "dram"), ("large", 1024, "l1"))
    tables = (
        f'[[layer]]\nname = "{name}"\ninput_height = {size}\ninput_width = {size}\ninput_memory = "{memory}"\n'
        for name, size, memory in sizes
    )
    (folder / "layers.toml").write_text("\n".join((common, *tables)))
    main(["run", "--layers", str(folder / "layers.toml"), "--values", "off", "--html", str(folder / "page.html")])


def network(folder, name="page", levels=LEVELS, place=ttsim.DRAM_MEMORY_CONFIG):
    """A decoder of a U-Net."""
    with opened() as device, ttsim.profile(device) as profile:
        for level in range(levels):
            x = conv(device, size=8 * 2**level, channels=(64, 32), memory=place)
            x = ttsim.to_layout(ttsim.to_memory_config(x, place), ttsim.ROW_MAJOR_LAYOUT)
            both = ttsim.concat([x, x], dim=3)
            ttsim.relu(ttsim.to_layout(both, ttsim.TILE_LAYOUT))
    save_report(folder, profile, name=name)


def comparison(folder):
    """A decoder with tensors in DRAM, and with tensors in L1."""
    network(folder, "dram", 2)
    network(folder, "l1", 2, ttsim.L1_MEMORY_CONFIG)
    main(["compare", *(str(folder / f"{name}.json") for name in ("dram", "l1")), "--html", str(folder / "page.html")])


def sweep(folder):
    """Two layers on two devices with two settings."""
    vary = ("shard_layout=none,HEIGHT_SHARDED,BLOCK_SHARDED", "act_block_h_override=0,32")
    flags = [flag for values in vary for flag in ("--vary", values)]
    devices = ["--device", "wormhole_n150", "blackhole_p150", "--processes", "1"]
    main(["sweep", "--only", "vanilla_unet.upconv", *devices, *flags, "--html", str(folder / "page.html")])


def design(folder):
    """Four machines and a layer."""
    space = '[space]\ngrid = ["8x8", "10x10"]\ndram.banks = [8, 12]\n[costs]\narea = "grid.cols * grid.rows"\n'
    (folder / "machines.toml").write_text(f'only = "vgg_unet.d1"\n{space}')
    main(["design", str(folder / "machines.toml"), "--processes", "1", "--html", str(folder / "page.html")])


PAGES = {written.__name__: written for written in (call, layers, network, comparison, sweep, design)}


@pytest.fixture(scope="module")
def browser():
    """One Chromium for all tests."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield chromium
        chromium.close()


@pytest.fixture(scope="module", params=PAGES)
def page(request, browser, tmp_path_factory):
    """A page, opened once; what its console says is in `page.said`."""
    folder = tmp_path_factory.mktemp(request.param)
    PAGES[request.param](folder)
    file = folder / "page.html"
    assert file.stat().st_size <= MOST_BYTES
    tab = browser.new_page(viewport={"width": WIDTHS[0], "height": HEIGHT})
    tab.set_default_timeout(60_000)
    tab.said = []
    tab.on("console", lambda message: tab.said.append(message.text))
    tab.on("pageerror", lambda error: tab.said.append(str(error)))
    performance = tab.context.new_cdp_session(tab)
    performance.send("Performance.enable", {"timeDomain": "threadTicks"})
    tab.goto(file.as_uri())
    tab.evaluate(DRAWN)
    figures = performance.send("Performance.getMetrics")["metrics"]
    tab.seconds = next(figure["value"] for figure in figures if figure["name"] == "TaskDuration")
    print(f"{request.param}: {file.stat().st_size:,} bytes, opened in {tab.seconds:.2f} s of its thread")
    yield tab
    tab.close()


def views(page):
    """Shows each view of a page in turn."""
    buttons = page.locator(".views button")
    yield
    for at in range(1, buttons.count()):
        buttons.nth(at).click()
        yield
    if buttons.count():
        buttons.first.click()


@pytest.fixture(params=[f"{width}-{scheme}" for width in WIDTHS for scheme in SCHEMES])
def shown(request, page):
    """The page at a width in a color scheme."""
    width, scheme = request.param.split("-")
    page.set_viewport_size({"width": int(width), "height": HEIGHT})
    page.emulate_media(color_scheme=scheme)
    return page


def test_every_view_fits_and_its_first_screen_has_verdict_gain_and_picture(shown):
    for _ in views(shown):
        assert shown.evaluate("[document.documentElement.scrollWidth, innerWidth]")[0] <= shown.viewport_size["width"]
        for name in FIRST_SCREEN:
            element = shown.locator(f"#{name}")
            box = element.bounding_box()
            assert element.is_visible()
            assert element.inner_text().strip()
            assert 0 <= box["y"] < box["y"] + min(box["height"], 100) <= HEIGHT, (name, box)


def test_no_rule_of_accessibility_is_broken(shown):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe-playwright-python is not installed")
    for _ in views(shown):
        found = axe.Axe().run(shown, context=FEW_ROWS, options=RULES).response["violations"]
        assert [(rule["id"], [node["html"][:200] for node in rule["nodes"][:3]]) for rule in found] == []


def picture_of(chart):
    """What a chart shows, once it is drawn."""
    chart.page.evaluate(DRAWN)
    return chart.locator("svg").inner_html()


def test_charts_zoom_and_move_by_mouse_and_by_keys(page):
    charts = page.locator(".plot")
    for chart in charts.all():
        chart.scroll_into_view_if_needed()
        box, whole, mouse = chart.bounding_box(), picture_of(chart), page.mouse
        middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        chart.press("+")
        zoomed = picture_of(chart)
        chart.press("ArrowRight")
        assert len({whole, zoomed, picture_of(chart)}) == 3
        chart.press("0")
        assert picture_of(chart) == whole
        mouse.move(*middle)
        mouse.wheel(0, -300)
        turned = picture_of(chart)
        mouse.down()
        mouse.move(middle[0] + 40, middle[1], steps=4)
        mouse.up()
        assert len({whole, turned, picture_of(chart)}) == 3
        chart.press("0")
        assert picture_of(chart) == whole
    assert charts.count() or page.locator("#picture .bar").count()


ORDER = """(table) => {
  const rows = [...table.tBodies[0].rows];
  return [...table.tHead.rows[0].cells].map((head, at) => rows.map((row) => row.cells[at].textContent));
}"""


def test_tables_sort_by_mouse_and_by_keys(page):
    while (button := page.get_by_role("button", name="Show all ").filter(has_text="rows").first).is_visible():
        button.click()
    tables = [table for table in page.locator("table").all() if table.is_visible()]
    sorted_tables = 0
    for table in tables:
        columns = table.evaluate(ORDER)
        at = next((at for at, cells in enumerate(columns) if len(set(cells)) == len(cells) > 1), None)
        if at is None:
            continue
        head = table.locator("thead th").nth(at)
        head.locator("button").click()
        first, way = table.evaluate(ORDER)[at], head.get_attribute("aria-sort")
        head.locator("button").press("Enter")
        assert {way, head.get_attribute("aria-sort")} == {"ascending", "descending"}
        assert table.evaluate(ORDER)[at] == first[::-1]
        assert sorted(first) == sorted(columns[at])
        sorted_tables += 1
    assert sorted_tables


def test_the_console_says_nothing_and_pages_open_fast(page):
    assert page.said == []
    assert page.seconds < MOST_SECONDS
