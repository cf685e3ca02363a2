"""Draws the pictures of README.md and of the documentation from reports of ttsim.

usage: python docs/pictures.py

Every picture becomes two files in docs/pictures: NAME-light.svg and NAME-dark.svg.
"""

import contextlib
import io
import json
import pathlib
import sys
from collections.abc import Callable, Iterator
from html import escape
from typing import Any

FOLDER = pathlib.Path(__file__).resolve().parent / "pictures"
WIDTH = 880  # of every picture, in pixels
THEMES = {
    "light": "--ground:#ffffff;--ink:#1c2024;--quiet:#5b6570;--line:#d5dae0;"
    "--c0:#2f6db5;--c1:#d9822b;--c2:#3b9461;--c3:#b5446e;--pale:#eef1f4;--on:#ffffff",
    "dark": "--ground:#14181c;--ink:#e6e9ec;--quiet:#a2adb8;--line:#39424b;"
    "--c0:#6ea8ea;--c1:#f0a860;--c2:#6cc492;--c3:#e584a6;--pale:#1f262c;--on:#14181c",
}
STYLE = """svg{%s}
text{font:12px system-ui,sans-serif;fill:var(--ink)}.b{font-weight:600}.t{font-size:15px;font-weight:600}
.q{fill:var(--quiet)}.m{text-anchor:middle}.e{text-anchor:end}.on{fill:var(--on)}.s{font-size:10px}
.ground{fill:var(--ground)}.pale{fill:var(--pale)}.c0{fill:var(--c0)}.c1{fill:var(--c1)}.c2{fill:var(--c2)}.c3{fill:var(--c3)}
line{stroke:var(--line)}.frame{fill:none;stroke:var(--ink);stroke-width:1.5}
"""
LAYER = "vanilla_unet.upconv4"
SMALL = (
    "--shape 1,8,8,32 --out-channels 32 --kernel-size 3 --stride 2 --padding 1 --output-padding 1 --no-bias "
    "--config shard_layout=HEIGHT_SHARDED"
)


def report_of(*arguments: str) -> dict[str, Any]:
    """What ``ttsim run`` reports about one layer, as JSON has it."""
    from ttsim.__main__ import main

    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        main(["run", *arguments, "--values", "off", "--no-suggestions", "--json"])
    return json.loads(printed.getvalue())["layers"][0]["summary"]


class Picture:
    """SVG elements below a title."""

    def __init__(self, title: str, height: float):
        self.height, self.elements = int(height), []
        self.text(title, 12, 24, "t")

    def box(self, x: float, y: float, width: float, height: float, style: str) -> None:
        """Draws a rectangle."""
        self.elements.append(f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" class="{style}"/>')

    def text(self, words: str, x: float, y: float, style: str = "") -> None:
        """Writes a line; the style chooses whether its start, middle or end is at x."""
        self.elements.append(f'<text x="{x:g}" y="{y:g}" class="{style}">{escape(words)}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float) -> None:
        """Draws a thin line."""
        self.elements.append(f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}"/>')

    def image(self, x: float, y: float, size: float, side: int, style_of: Callable[[int, int], str]) -> None:
        """Draws square pixels; an empty style is a zero."""
        self.box(x, y, side * size, side * size, "pale")
        for row in range(side):
            for column in range(side):
                if style := style_of(row, column):
                    self.box(x + column * size, y + row * size, size - 1, size - 1, style)

    def file(self, colors: str) -> str:
        """The picture as the text of a file."""
        sides = f'width="{WIDTH}" height="{self.height}"'
        lines = (
            f'<svg xmlns="http://www.w3.org/2000/svg" {sides} viewBox="0 0 {WIDTH} {self.height}">',
            f'<style>{STYLE % colors}</style><rect class="ground" {sides}/>',
            *self.elements,
            "</svg>",
        )
        return "\n".join(lines) + "\n"


def report() -> Picture:
    """Time of the operations and stages of a layer, and L1 of one core during each operation."""
    summary = report_of("--only", LAYER)
    call = summary["cycles"]["calls"][0]
    cycles = call["total"]["cycles"]
    left, wide, top, lane = 130, 390, 66, 26
    picture = Picture(f"{LAYER} on a Wormhole n150: {cycles / 1000:.1f} us of kernels", 0)
    picture.text("Time: how busy each stage is; the stage that limits the operation is orange", 12, 50, "q")
    rows: dict[str, int] = {}
    begin = 0
    for at, op in enumerate(call["operations"]):
        x, width = round(left + wide * begin / cycles, 1), round(wide * op["cycles"] / cycles, 1)
        picture.box(x, top, width, lane - 6, f"c{(0, 2, 3)[at]}")
        if width > 40:
            name = op["name"].removesuffix("DeviceOperation")
            picture.text(f"{name} {op['share']:.0%}" if width > 90 else name, x + width / 2, top + 14, "on m")
        for stage in op["stages"]:
            if stage["busy_share"] >= 0.01:
                y = rows.setdefault(stage["stage"], top + lane * (1 + len(rows)))
                busy = round((lane - 6) * stage["busy_share"], 1)
                picture.box(x, y, width, lane - 6, "pale")
                picture.box(x, y + lane - 6 - busy, width, busy, "c1" if stage["stage"] == op["bound_by"] else "c0")
        begin += op["cycles"]
    bottom = top + lane * (1 + len(rows))
    for name, y in {"operation": top, **rows}.items():
        picture.text(name, left - 8, y + 14, "e")
    for at in range(0, cycles, 20_000):
        x = round(left + wide * at / cycles, 1)
        picture.line(x, top - 4, x, bottom)
        picture.text(f"{at // 1000} us", x, bottom + 14, "q m")
    _draw_l1(picture, summary, 620, top, bottom - top)
    picture.height = bottom + 40
    return picture


def _draw_l1(picture: Picture, summary: dict[str, Any], left: int, top: int, tall: int) -> None:
    kibibytes = 1464
    picture.text(f"L1 of one core: {summary['l1']['peak_share']:.0%} is the most in use", left - 44, 50, "q")
    for at, (op, title) in enumerate(zip(summary["operations"], ("to shards", "halo", "conv2d"), strict=True)):
        x = left + 84 * at
        picture.box(x, top, 80, tall, "pale")
        blocks = [(b["name"], b["address"], b["size_bytes"], "c1") for b in op["circular_buffers"] if not b["view"]]
        blocks += [(b["name"], b["address"], b["bank_bytes"], "c0") for b in op["buffers"] if b["memory"] != "DRAM"]
        for name, address, size, style in blocks:
            height = round(tall * size / (kibibytes * 1024), 1)
            y = round(top + tall - tall * address / (kibibytes * 1024) - height, 1)
            picture.box(x, y, 80, max(height - 1, 0.5), style)
            if height > 9:
                picture.text(name, x + 4, y + height / 2 + 3, "on s")
        picture.text(title, x + 40, top + tall + 14, "q m")
    for kib in (0, 500, 1000, kibibytes):
        y = round(top + tall * (1 - kib / kibibytes), 1)
        picture.line(left - 4, y, left + 248, y)
        picture.text(f"{kib} KiB", left - 8, y + 4, "q e s")
    for at, (style, words) in enumerate((("c0", "tensors"), ("c1", "circular buffers"))):
        picture.box(left + 80 * at, top + tall + 22, 8, 8, style)
        picture.text(words, left + 80 * at + 12, top + tall + 30, "q s")


def zero_insertion() -> Picture:
    """The image, the frame with inserted zeros, and the output."""
    picture = Picture("Zero insertion: kernel 3x3, stride 2, padding 1, output padding 1", 320)
    size = 13
    picture.image(20, 115, size, 8, lambda row, column: "c0")
    picture.image(230, 50, size, 18, lambda row, column: _pixel(row, column) and "c0")
    picture.image(620, 63, size, 16, lambda row, column: "c2")
    picture.box(230 + 6 * size, 50 + 4 * size, 3 * size, 3 * size, "frame")
    picture.box(620 + 6 * size, 63 + 4 * size, size, size, "frame")
    picture.text("image: 8x8 pixels", 20, 306, "q")
    picture.text("frame: 18x18, of which 260 are zeros", 230, 306, "q")
    picture.text("output: 16x16 pixels", 620, 306, "q")
    for words, x, y in (
        ("zeros", 152, 165),
        ("inserted", 152, 181),
        ("3x3 windows,", 490, 165),
        ("one step apart", 490, 181),
    ):
        picture.text(words, x, y, "q")
    return picture


def halo() -> Picture:
    """Which rows of the image each core owns, and which rows of the frame each core needs."""
    partition = report_of(*SMALL.split())["partitions"][0]
    assert (partition["input_cores"], partition["output_shard"]) == (8, [32, 32]), partition
    picture = Picture("Halo: every core gets the rows of the frame that its windows read", 300)
    size, top = 12, 66
    picture.image(150, top, size, 18, lambda row, column: _pixel(row, column) and ("c0" if row < 8 else "c3"))
    for owner in range(2):
        picture.text(f"image rows {4 * owner} to {4 * owner + 3}", 140, top + (8 * owner + 4.5) * size, "e")
        picture.text(f"lie on core {owner}", 140, top + (8 * owner + 5.7) * size, "e q")
    picture.text("each core needs 4 of the 18 frame rows: 72 sticks", 400, top - 12, "q")
    for core in range(8):
        x, y = 400 + 52 * core, top + 2 * core * size
        picture.box(x, y, 40, 4 * size, "c2")
        picture.text(f"core {core}", x + 20, y + 2 * size + 4, "m s on")
    return picture


def _pixel(row: int, column: int) -> bool:
    """Whether the frame holds a pixel of the image there, and no zero."""
    return row % 2 == column % 2 == 1 and max(row, column) < 17


def blocks() -> Picture:
    """The matrix product of one core, in tiles and K blocks."""
    partition = report_of(*SMALL.split())["partitions"][0]
    (high, wide), count = partition["act_block_tiles"], partition["k_blocks"]
    assert (high, wide, count) == (1, 3, 3), partition
    picture = Picture("Tiles and K blocks of one core", 290)
    tile, x, y = 40, 30, 110
    picture.text("activations: 1x9 tiles, gathered from the sticks of the halo", x, y - 34, "q")
    picture.text("weights: 9x1 tiles", 500, 50, "q")
    picture.text("output: 1x1 tile", 680, y - 10, "q")
    for block in range(count):
        color = f"c{(0, 2, 3)[block]}"
        picture.text(f"kernel row {block}", x + (block + 0.5) * wide * tile, y - 10, "m s")
        picture.text(f"K block {block}", 566, 98 + block * wide * 24, "s")
        for at in range(block * wide, (block + 1) * wide):
            picture.box(x + at * tile, y, tile - 2, tile - 2, color)
            picture.text(f"col {at % wide}", x + at * tile + 19, y + 23, "on m s")
            picture.box(520, 60 + at * 24, 36, 22, color)
    picture.text("x", 440, y + 24, "t")
    picture.text("=", 650, y + 24, "t")
    picture.box(690, y, tile - 2, tile - 2, "c1")
    for at, words in enumerate(
        (
            "A tile of activations is 32 output pixels by 32 channels of one kernel tap.",
            "A tile of weights is 32 input channels by 32 output channels of that tap.",
            "The destination registers (Dst) sum the products of one K block;",
            "partial sums pass through the packer between K blocks.",
        )
    ):
        picture.text(words, x, y + 78 + 20 * at, "q")
    return picture


def fidelity_phases() -> Picture:
    """Which bits of both operands each fidelity phase multiplies."""
    picture = Picture("Fidelity phases: 5 bits of a weight times 7 bits of an activation", 290)
    cell, x = 26, 130
    for y, name, cut, last in ((50, "weight", 5, 10), (100, "activation", 7, 11)):
        picture.text(name, x - 10, y + 18, "e b")
        for bit in range(11):
            style = "c0" if bit < cut else "c1" if bit < last else "pale"
            picture.box(x + bit * cell, y, cell - 2, cell - 2, style)
            picture.text("b" if bit else "1", x + bit * cell + 12, y + 17, "m" if style == "pale" else "on m")
    picture.text("the last bit of a weight is never used", x + 11 * cell + 8, 67, "q s")
    picture.text("a significand has 11 bits, the hidden bit first", x, 146, "q s")
    for phase, (weight, activation) in enumerate((("c0", "c0"), ("c1", "c0"), ("c0", "c1"), ("c1", "c1"))):
        y = 160 + 30 * phase
        picture.text(f"phase {phase}", x - 10, y + 15, "e b")
        picture.box(x, y, 5 * cell - 2, 20, weight)
        picture.text("x", x + 5 * cell + 8, y + 15, "b")
        picture.box(x + 5 * cell + 24, y, 7 * cell - 2, 20, activation)
        words = ("LoFi: phase 0", "HiFi2: phases 0 and 1", "HiFi3: phases 0 to 2", "HiFi4: phases 0 to 3")[phase]
        picture.text(words, x + 12 * cell + 40, y + 15, "q")
    return picture


def pictures() -> Iterator[tuple[str, str]]:
    """The name and the text of every file."""
    for draw in (report, zero_insertion, halo, blocks, fidelity_phases):
        picture = draw()
        for theme, colors in THEMES.items():
            yield f"{draw.__name__.replace('_', '-')}-{theme}.svg", picture.file(colors)


if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER.parents[1]))
    for name, content in pictures():
        (FOLDER / name).write_text(content, encoding="utf-8")
