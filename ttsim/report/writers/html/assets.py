"""The style of a page, and its script, which loads nothing and shows below a picture what its parts are."""

from base64 import b64encode
from hashlib import sha256
from typing import Final

STYLE: Final = """
:root { --ground: #ffffff; --ink: #1c2024; --quiet: #5b6570; --line: #d5dae0; --panel: #f4f6f8; --link: #0b5cad;
  --good: #1a7f4b; --bad: #b3261e; --hot: #b3400e; --cold: #eceff2;
  --c0: #2f6db5; --c1: #d9822b; --c2: #3b9461; --c3: #b5446e;
  --c4: #7a5bb0; --c5: #8a6a3b; --c6: #2a9aa8; --c7: #7c8794;
  --c8: #9aa832; --c9: #a34a2a; --c10: #4c5bb5; --c11: #c06fb0; }
@media (prefers-color-scheme: dark) {
  :root { --ground: #14181c; --ink: #e6e9ec; --quiet: #a2adb8; --line: #39424b; --panel: #1d2329; --link: #7db8f5;
    --good: #5cc98f; --bad: #ff8a80; --hot: #ff9a5c; --cold: #262d34;
    --c0: #6ea8ea; --c1: #f0a860; --c2: #6cc492; --c3: #e584a6;
    --c4: #b39ae0; --c5: #c9a877; --c6: #63c9d6; --c7: #a2adb8;
    --c8: #c9d46a; --c9: #d98a6c; --c10: #8c98e8; --c11: #e3a5d8; } }
* { box-sizing: border-box; }
html { font: 15px/1.5 system-ui, sans-serif; background: var(--ground); color: var(--ink); }
body { margin: 0 auto; padding: 1rem; max-width: 1200px; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0; }
h2 { font-size: 1.25rem; margin: 0 0 .5rem; }
h3 { font-size: 1.05rem; margin: 0 0 .5rem; }
p { margin: .25rem 0; }
a { color: var(--link); }
header p, footer, figcaption, caption, dt { color: var(--quiet); }
nav ul, .key { list-style: none; padding: 0; margin: .5rem 0; display: flex; flex-wrap: wrap; gap: .25rem 1rem; }
article { border-top: 1px solid var(--line); padding-top: 1rem; margin-top: 1.5rem; }
section { margin: 1.5rem 0; }
.skip { position: absolute; left: -999rem; }
.skip:focus { position: static; }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; }
.verdict { border-left: 4px solid var(--good); background: var(--panel); padding: .5rem .75rem; }
.verdict p:first-child { font-weight: 600; }
.verdict.failed { border-color: var(--bad); }
dl { display: flex; flex-wrap: wrap; gap: .25rem 1.5rem; margin: .75rem 0; }
dt { font-size: .85rem; flex: 0 0 auto; }
dd { margin: 0 0 0 -1rem; font-size: .85rem; }
.wide { overflow-x: auto; margin: .5rem 0; }
table { border-collapse: collapse; font-size: .85rem; font-variant-numeric: tabular-nums; overflow-wrap: normal; }
caption { text-align: left; padding-bottom: .25rem; }
th, td { padding: .2rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top; }
thead th { font-weight: 600; white-space: nowrap; } tbody th { font-weight: 400; }
.words { text-align: left; }
.figures { text-align: right; white-space: nowrap; }
tbody .words { white-space: nowrap; }
tbody .long { white-space: normal; overflow-wrap: anywhere; min-width: 18rem; max-width: 30rem; }
pre { background: var(--panel); padding: .75rem; overflow-x: auto; font-size: .85rem;
  white-space: pre-wrap; margin: .5rem 0; }
details { margin: .5rem 0; }
summary { cursor: pointer; color: var(--link); }
.lane { display: flex; align-items: center; gap: .5rem; margin: 2px 0; }
.lane span { flex: 0 0 11rem; font-size: .8rem; line-height: 1.2; }
.lane svg { flex: 1 1 0; min-width: 0; background: var(--cold); }
.bars { height: 18px; }
.roof { height: 22px; }
.bars rect { stroke: var(--ground); stroke-width: .5px; }
.busy { fill: var(--hot); } .critical { fill: var(--c0); }
.key { font-size: .8rem; }
.key i { display: inline-block; width: .8rem; height: .8rem; margin-right: .35rem; vertical-align: -1px; }
.color0 { fill: var(--c0); background: var(--c0); } .color1 { fill: var(--c1); background: var(--c1); }
.color2 { fill: var(--c2); background: var(--c2); } .color3 { fill: var(--c3); background: var(--c3); }
.color4 { fill: var(--c4); background: var(--c4); } .color5 { fill: var(--c5); background: var(--c5); }
.color8 { fill: var(--c8); background: var(--c8); } .color9 { fill: var(--c9); background: var(--c9); }
.color10 { fill: var(--c10); background: var(--c10); } .color11 { fill: var(--c11); background: var(--c11); }
.color6 { fill: var(--c6); background: var(--c6); } .color7 { fill: var(--c7); background: var(--c7); }
.circular { fill: var(--c1); background: var(--c1); } .buffer { fill: var(--c0); background: var(--c0); }
.small { fill: var(--c3); background: var(--c3); } .firmware { fill: var(--c7); fill-opacity: .4; }
.roof-math { fill: var(--c0); background: var(--c0); } .roof-dram { fill: var(--c1); background: var(--c1); }
.roof-network { fill: var(--c2); background: var(--c2); }
.l1 { display: block; width: 100%; height: 420px; background: var(--cold); }
.l1 rect { stroke: var(--ground); stroke-width: 1px; }
.l1 text { font-size: 11px; fill: var(--ground); } .l1 .on-circular { fill: #000; }
.chart { display: block; width: 100%; height: 280px; background: var(--cold); overflow: visible; }
.chart circle { fill: var(--c0); stroke: var(--ground); } .roofline { stroke: var(--c9); stroke-width: 2px; }
.chart text { font-size: 11px; fill: var(--ink); } .chart .scale { fill: var(--quiet); }
.axis { display: block; width: 100%; height: 16px; overflow: visible; background: none !important; }
.axis text { font-size: 11px; fill: var(--quiet); } .axis line { stroke: var(--quiet); }
.picture { margin: .5rem 0; }
.told, .told rect { stroke: var(--ink) !important; stroke-width: 2px !important; vector-effect: non-scaling-stroke; }
figcaption b { display: block; } .picture output.hint { color: var(--quiet); }
.picture output { display: block; min-height: 2.6em; padding: .25rem .5rem; background: var(--panel);
  font-size: .85rem; }
.maps { display: flex; flex-wrap: wrap; gap: 1rem; }
.maps figure { margin: 0; flex: 1 1 150px; max-width: 340px; }
.grid { display: block; width: 100%; background: var(--cold); }
.cell { fill: var(--hot); stroke: var(--ground); stroke-width: .04px; }
@media (max-width: 600px) { .lane span { flex-basis: 6.5rem; } .l1 { height: 320px; } }
@media print {
  @page { size: landscape; margin: 1cm; }
  html { font-size: 11px; } body { max-width: none; padding: 0; } nav, .skip, output { display: none !important; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  .wide { overflow: visible; } table { font-size: 8px; } th, td { padding: 1px 4px; }
  thead th, tbody .words { white-space: normal; } tbody .long { min-width: 0; }
  figure, .lanes, .l1, tr, .verdict { break-inside: avoid; }
  h2, h3 { break-after: avoid; } details::details-content { content-visibility: visible; display: block; height: auto; }
}
"""


SCRIPT: Final = """
for (const picture of document.querySelectorAll(".picture")) {
  const parts = [...picture.querySelectorAll("svg *")].filter(
    (one) => one.firstElementChild && one.firstElementChild.tagName === "title");
  if (!parts.length) continue;
  const told = document.createElement("output");
  let at = -1;
  const hint = "Point at a part of the picture, touch it, or go there with the arrow keys.";
  const tell = (part) => {
    for (const one of picture.querySelectorAll(".told")) one.classList.remove("told");
    if (part) part.classList.add("told");
    told.className = part ? "" : "hint";
    told.textContent = part ? part.firstElementChild.textContent : hint;
  };
  const find = (target) => parts.find((one) => one === target || one.contains(target));
  const look = (event) => {
    const part = find(event.target);
    if (part) { at = parts.indexOf(part); tell(part); }
  };
  picture.addEventListener("mouseover", look);
  picture.addEventListener("click", look);
  picture.addEventListener("keydown", (event) => {
    const ends = { Home: 0, End: parts.length - 1 };
    const ways = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };
    if (event.key in ends) at = ends[event.key];
    else if (event.key in ways) at = Math.min(parts.length - 1, Math.max(0, at + ways[event.key]));
    else return;
    event.preventDefault();
    tell(parts[at]);
  });
  tell();
  picture.tabIndex = 0;
  picture.append(told);
}
"""
HASH: Final = f"sha256-{b64encode(sha256(SCRIPT.encode()).digest()).decode()}"
