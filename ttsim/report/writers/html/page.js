"use strict";
// Draws the page that the element "data" describes: views, each a list of sections. Figures are formatted here alone.

const page = JSON.parse(document.getElementById("data").textContent);
for (const section of page.views.flatMap((each) => each.sections)) {
  for (const list of [section.rows, section.marks, ...(section.parts ?? []).map((part) => part.marks)]) {
    for (const cells of list ?? []) cells.forEach((cell, at) => { if (Array.isArray(cell)) cells[at] = page.texts[cell[0]]; });
  }
}
const watchers = []; // of the view that is shown: called after the selection has changed
const charts = {}; // of the view that is shown, by id: how to bring operations into view
let selected = null; // the numbers of the selected operations, or null
let view = null;

// ---- elements

const el = (name, attributes = {}, ...children) => {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== false && value !== undefined) node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children);
  return node;
};
const svgEl = (name, attributes = {}, text = "") => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text) node.textContent = text;
  return node;
};
const button = (text, label, click) => el("button", { type: "button", "aria-label": label, title: label, onclick: click }, text);

// ---- figures

const TIMES = [[1e6, "ms"], [1e3, "us"], [1, "ns"]];
const BYTES = [[10 * 2 ** 20, "MiB", 2 ** 20], [1024, "KiB"], [1, "B"]];
const COUNTS = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"], [1, ""]];
const step = (steps, most) => steps.find(([least]) => Math.abs(most) >= least) ?? steps.at(-1);
const numbers = {};
const fixed = (value, digits) => (numbers[digits] ??= new Intl.NumberFormat("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits })).format(value);
const digitsFor = (most) => (most >= 1000 ? 0 : most >= 100 ? 1 : most >= 10 ? 2 : 3);
const inUnit = (steps, suffix, most) => {
  const [least, unit, size = least] = step(steps, most);
  const digits = size === 1 ? 0 : Math.min(digitsFor(Math.abs(most) / size), steps === BYTES ? 1 : 3);
  return (value) => `${fixed(value / size, digits)} ${unit}${suffix}`.trim();
};
const general = (value, steps = [[1, ""]], suffix = "") => {
  const [size, unit] = step(steps, value);
  return `${(value / size).toLocaleString("en-US", { maximumSignificantDigits: 7 })} ${unit}${suffix}`.trim();
};
/** The text of a figure; all figures of a column have the unit that suits the largest. */
function formatter(unit, most) {
  if (unit === "ns") return inUnit(TIMES, "", most);
  if (unit === "B") return inUnit(BYTES, "", most);
  if (unit === "share") return (value) => `${fixed(100 * value, 1)} %`;
  if (unit === "cycles" || unit === "number") return (value) => fixed(value, 0);
  if (unit === "figure") return (value) => general(value, Math.abs(value) >= 1e6 ? COUNTS : undefined);
  if (unit === "slope") return (value) => `${value > 0 ? "+" : ""}${fixed(value, 3)}`;
  if (/^(FLOP|B\/)/.test(unit)) return inUnit(COUNTS, unit, most);
  return String;
}
const isText = (unit) => ["text", "operation", "view", "code"].includes(unit);
const format = (unit, value) => typeof value === "number" ? formatter(unit, value)(value) : `${value ?? ""}`;

// ---- colors: one function of a name, the same in every page; its factor keeps the hues of common operations apart

const COLORS = {
  "circular buffer": ["#9a5b00", "#f0a860"], L1: ["#2f6db5", "#7fb2ee"], L1_SMALL: ["#a23a78", "#e58fb8"],
  reserved: ["#6b7681", "#8b97a3"], free: ["#e9edf1", "#252d35"], busy: ["#b3400e", "#ff9a5c"], critical: ["#1f5fa8", "#74b0f4"],
  figure: ["#b3400e", "#ff9a5c"], bound: ["#1c2024", "#e6e9ec"],
};
const kindOf = (name) => name.replace(/(?<=.)(Device)?Operation$/, "");
function color(name) {
  if (Object.hasOwn(COLORS, name)) return `light-dark(${COLORS[name].join(", ")})`;
  let hash = 1;
  for (const character of kindOf(name)) hash = (Math.imul(hash, 11861) + character.codePointAt(0)) >>> 0;
  return `light-dark(oklch(0.5 0.13 ${hash % 360}), oklch(0.78 0.11 ${hash % 360}))`;
}
const swatch = (name) => {
  const node = el("i", { class: "swatch" });
  node.style.background = color(name);
  return node;
};

// ---- selection: what all sections of a view show together

const inSpans = (spans, number) => spans.some((first, at) => at % 2 === 0 && first <= number && number <= spans[at + 1]);
const numbersOf = (spans) => spans.flatMap((first, at) => at % 2 ? [] : Array.from({ length: spans[at + 1] - first + 1 }, (_, more) => first + more));
const touches = (spans) => selected !== null && !!spans && [...selected].some((number) => inSpans(spans, number));
const tableOf = (id) => view.sections.find((section) => section.id === id && section.kind === "table");
const columnOf = (table, name) => table.columns.findIndex((column) => column.name === name);
const headColumn = (table) => table.columns.findIndex((column) => isText(column.unit) && column.unit !== "code"); // names a row
const colorColumn = (table) => { // has the name whose color a row has
  const at = table.columns.findIndex((column) => column.unit === "operation");
  return at < 0 ? headColumn(table) : at;
};

function select(numbers) {
  const next = numbers && numbers.length ? new Set(numbers) : null;
  selected = next && selected && next.size === selected.size && [...next].every((number) => selected.has(number)) ? null : next;
  for (const watch of watchers) watch();
  showSelection();
}

const bar = el("aside", { id: "selection", "aria-label": "Selected operation", "aria-live": "polite", hidden: true });
function showSelection() {
  bar.hidden = selected === null;
  const table = tableOf("operations");
  if (bar.hidden || !table) return;
  const rows = [...selected].map((number) => table.rows[number]).filter(Boolean);
  const text = el("p");
  if (rows.length === 1) {
    const cells = table.columns.map((column, at) => [column, rows[0][at]]).filter(([, value]) => value !== null && value !== "");
    text.append(swatch(`${rows[0][colorColumn(table)]}`), el("strong", {}, `#${[...selected][0]} ${kindOf(`${rows[0][headColumn(table)]}`)}`));
    for (const [column, value] of cells) {
      if (["time", "before", "after", "difference", "L1 peak", "of roof", "bound by", "L1 of a core", "called by"].includes(column.name)) text.append(el("span", {}, `${column.name} `, el("b", {}, format(column.unit, value))));
    }
  } else {
    const time = columnOf(table, "time");
    text.append(el("strong", {}, `${rows.length} operations`), el("span", {}, format("ns", rows.reduce((sum, row) => sum + (row[time] ?? 0), 0))));
  }
  const [first] = selected;
  const move = (by) => () => select([(first + by + table.rows.length) % table.rows.length]);
  const places = [["timeline", "timeline"], ["l1", "L1"], ["operations", "table"], ["scripts", "line of the script"]].filter(([id]) => charts[id]);
  bar.replaceChildren(text, el("div", { class: "buttons" },
    button("‹", "‹ previous operation", move(-1)), button("›", "next operation ›", move(1)),
    ...places.map(([id, name]) => button(name, `Show in ${name}`, () => charts[id](first))),
    button("×", "× clear the selection", () => select(null))));
}
document.addEventListener("keydown", (event) => { if (event.key === "Escape" && selected) select(null); });

// ---- tooltips

const tip = el("div", { id: "tip", "aria-hidden": "true", hidden: true });
function showTip(event, table, row, head = "") {
  const items = table && table.rows[row] ? table.columns.map((column, at) => [column, table.rows[row][at]]).filter(([column, value]) => value !== null && value !== "" && column.unit !== "code") : [];
  tip.replaceChildren(el("strong", {}, head), el("dl", {}, ...items.slice(0, 10).flatMap(([column, value]) => [el("dt", {}, column.name), el("dd", {}, format(column.unit, value))])));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${event.clientY + 18 + height < innerHeight ? event.clientY + 18 : Math.max(4, event.clientY - height - 12)}px`;
}
const hideTip = () => { tip.hidden = true; };
addEventListener("scroll", hideTip, { passive: true });

// ---- charts with axes, zoom and pan

const MARGIN = { right: 14, bottom: 40 };
const topOf = (section) => section.y.unit === "lanes" ? 4 : 26;

/** Ticks of an axis with their texts: round numbers in the unit that is shown. */
function ticksOf(axis, scale, count) {
  const [low, high] = scale.domain();
  if (axis.log) {
    const first = Math.ceil(Math.log10(low) - 1e-9), last = Math.floor(Math.log10(high) + 1e-9);
    const powers = Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => 10 ** (first + at));
    return powers.map((value) => [value, general(value, COUNTS, axis.unit)]);
  }
  if (axis.unit === "number") {
    const every = [1, 2, 5].flatMap((digit) => [1, 10, 100, 1000, 1e4].map((power) => digit * power)).sort((a, b) => a - b).find((every) => every >= (high - low) / count) ?? 1e5;
    const first = Math.ceil(low / every) * every;
    return Array.from({ length: Math.max(0, Math.floor((high - first) / every) + 1) }, (_, at) => [first + at * every, `#${first + at * every}`]).filter(([at]) => at < axis.end);
  }
  const steps = { ns: TIMES, B: BYTES }[axis.unit] ?? COUNTS;
  const [least, unit, size = least] = step(axis.unit === "B" ? BYTES.slice(1) : steps, Math.max(Math.abs(low), Math.abs(high)));
  const ticks = d3.scaleLinear([low / size, high / size], [0, 1]).ticks(count);
  const digits = ticks.length > 1 ? Math.max(0, -Math.floor(Math.log10(ticks[1] - ticks[0]) + 1e-9)) : 0;
  const suffix = steps === COUNTS ? axis.unit : "";
  return ticks.map((value) => [value * size, `${fixed(value, digits)} ${unit}${suffix}`.trim()]);
}

/** A chart: `draw` fills the layer for two scales; `twoWays` zooms upward too. */
function plot(section, { height, left, twoWays, draw }) {
  const svg = svgEl("svg", { role: "img", "aria-label": `${section.title}. ${section.note}` });
  const keys = "arrows move, + and - zoom, 0 shows all";
  const box = el("div", { class: "plot", tabindex: 0, role: "group", "aria-label": `${section.title}: ${keys}` });
  box.append(svg);
  let width = 0, transform = d3.zoomIdentity, waiting = false;
  const paint = () => {
    waiting = false;
    if (!width) return;
    const margin = { ...MARGIN, top: topOf(section), left: left(width) };
    const right = width - margin.right, bottom = height - margin.bottom;
    const scale = (axis, range) => (axis.log ? d3.scaleLog : d3.scaleLinear)([axis.start, axis.end], range);
    const x = transform.rescaleX(scale(section.x, [margin.left, right]));
    const y0 = scale(section.y, section.y.unit === "lanes" ? [margin.top, bottom] : [bottom, margin.top]);
    const y = twoWays ? transform.rescaleY(y0) : y0;
    svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const clip = `clip-${section.id}`;
    const layer = svgEl("g", { "clip-path": `url(#${clip})` }), axes = svgEl("g", { class: "axis" });
    const area = { x: margin.left, y: margin.top, width: Math.max(0, right - margin.left), height: bottom - margin.top };
    const path = svgEl("clipPath", { id: clip });
    path.append(svgEl("rect", area));
    drawAxes(axes, section, x, y, { left: margin.left, right, top: margin.top, bottom });
    draw(layer, x, y, { left: margin.left, right, top: margin.top, bottom });
    svg.replaceChildren(path, svgEl("rect", { ...area, class: "area" }), axes, layer);
  };
  const later = () => { if (!waiting) { waiting = true; requestAnimationFrame(paint); } };
  const zoom = d3.zoom().scaleExtent([1, 5000]).filter((event) => !event.button && (event.type !== "wheel" || event.ctrlKey || event.metaKey || box.contains(document.activeElement)))
    .on("zoom", (event) => { transform = event.transform; hideTip(); later(); });
  const root = d3.select(svg).call(zoom).on("dblclick.zoom", null);
  const by = (factor) => root.call(zoom.scaleBy, factor);
  const move = (dx, dy) => root.call(zoom.translateBy, dx / transform.k, twoWays ? dy / transform.k : 0);
  const reset = () => root.call(zoom.transform, d3.zoomIdentity);
  const KEYS = { ArrowLeft: () => move(80, 0), ArrowRight: () => move(-80, 0), ArrowUp: () => move(0, 60), ArrowDown: () => move(0, -60), "+": () => by(1.5), "=": () => by(1.5), "-": () => by(1 / 1.5), 0: reset };
  box.addEventListener("keydown", (event) => {
    const act = KEYS[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey || (/Up|Down/.test(event.key) && !twoWays)) return;
    event.preventDefault();
    act();
  });
  svg.addEventListener("pointermove", (event) => event.target.tip ? event.target.tip(event) : hideTip());
  svg.addEventListener("pointerleave", hideTip);
  svg.addEventListener("click", (event) => { box.focus({ preventScroll: true }); event.target.tip?.(event); event.target.pick?.(); });
  new ResizeObserver(() => {
    const now = Math.floor(box.clientWidth);
    if (!now || now === width) return;
    width = now;
    const margin = { ...MARGIN, top: topOf(section), left: left(width) }, extent = [[margin.left, margin.top], [width - margin.right, height - margin.bottom]];
    zoom.extent(extent).translateExtent(extent);
    svg.setAttribute("height", height);
    reset();
    paint();
  }).observe(box);
  watchers.push(later);
  /** Zooms so that the span from `from` to `to` is at least a tenth of the width, in its middle. */
  const reveal = (from, to) => {
    const margin = { ...MARGIN, left: left(width) }, range = [margin.left, width - margin.right];
    const base = d3.scaleLinear([section.x.start, section.x.end], range);
    const factor = Math.min(5000, Math.max(1, 0.1 * (range[1] - range[0]) / Math.max(1e-9, base(to) - base(from))));
    const middle = (base(from) + base(to)) / 2;
    if (!twoWays) root.call(zoom.transform, d3.zoomIdentity.translate((range[0] + range[1]) / 2, 0).scale(factor).translate(-middle, 0));
    box.scrollIntoView({ block: "center" });
    box.focus({ preventScroll: true });
  };
  const tools = el("div", { class: "buttons tools", role: "group", "aria-label": `Zoom of ${section.title}` },
    button("+", "Zoom in (+)", () => by(1.5)), button("−", "Zoom out (−)", () => by(1 / 1.5)), button("0", "0 shows all", reset),
    el("span", { class: "hint" }, "drag, Ctrl+wheel, or arrows + - 0"));
  return { box, tools, reveal };
}

function drawAxes(axes, section, x, y, { left, right, top, bottom }) {
  const wide = right - left, names = section.x.names;
  const columns = names.length && wide / ((x.domain()[1] - x.domain()[0]) || 1) > 24;
  const shown = columns ? names.map((name, at) => [at + 0.5, `#${at} ${kindOf(name)}`]).filter(([at]) => x(at) > left && x(at) < right) : ticksOf(section.x, x, Math.max(2, wide / 95));
  const room = columns ? x(1) - x(0) : wide;
  for (const [value, text] of shown) {
    const at = x(value);
    if (!columns) axes.append(svgEl("line", { x1: at, x2: at, y1: top, y2: bottom }));
    const most = Math.max(2, Math.floor(room / 6.6));
    axes.append(svgEl("text", { x: Math.min(at, right - 4), y: bottom + 15, "text-anchor": at > right - 24 ? "end" : "middle" }, columns && text.length > most ? (most < 8 ? text.split(" ")[0] : `${text.slice(0, most - 1)}…`) : text));
  }
  if (columns) for (let at = 0; at <= names.length; at += 1) if (x(at) >= left && x(at) <= right) axes.append(svgEl("line", { x1: x(at), x2: x(at), y1: top, y2: bottom }));
  if (section.y.unit === "lanes") {
    const most = Math.floor((left - 10) / 6.4);
    section.y.names.forEach((name, at) => {
      axes.append(svgEl("line", { x1: left, x2: right, y1: y(at), y2: y(at) }));
      axes.append(svgEl("text", { x: left - 8, y: (y(at) + y(at + 1)) / 2 + 4, "text-anchor": "end" }, name.length > most ? `${name.slice(0, most - 1)}…` : name));
    });
  } else {
    for (const [value, text] of ticksOf(section.y, y, (bottom - top) / 42)) {
      axes.append(svgEl("line", { x1: left, x2: right, y1: y(value), y2: y(value) }), svgEl("text", { x: left - 6, y: y(value) + 4, "text-anchor": "end" }, text));
    }
    axes.append(svgEl("text", { x: 2, y: 13, class: "label" }, `↑ ${section.y.label}`));
  }
  axes.append(svgEl("text", { x: right, y: bottom + 33, "text-anchor": "end", class: "label" }, `${section.x.label} →`));
}

function legendOf(names, texts, pick) {
  const kinds = [...new Set(names.map(kindOf))];
  return el("ul", { class: "legend" },
    ...kinds.map((kind) => el("li", {}, el("button", { type: "button", title: `Select all ${kind}`, onclick: () => pick(kind) }, swatch(kind), kind))),
    ...Object.entries(texts).map(([name, text]) => el("li", {}, swatch(name), text)));
}

function pickKind(kind) {
  const table = tableOf("operations");
  if (table) select(table.rows.flatMap((row, at) => kindOf(`${row[colorColumn(table)]}`) === kind ? [at] : []));
}

function rectangles(section) {
  const lanes = section.y.unit === "lanes";
  const draw = (layer, x, y, area) => {
    for (const part of section.parts) {
      const table = tableOf(part.table), last = {};
      for (const [from, to, low, high, name, row, strength, label] of part.marks) {
        const a = Math.max(x(from), area.left), b = Math.min(x(to), area.right), lane = `${low} ${name}`;
        if (b < area.left || a > area.right || (b - a < 1 && last[lane] > a - 0.5)) continue;
        last[lane] = b;
        const [top, bottom] = [y(low), y(high)].sort((one, other) => one - other);
        const inset = lanes ? (low % 1 ? [1, 3] : [3, high % 1 ? 1 : 3]) : [0.5, 0.5];
        const shape = { x: a, y: top + inset[0], width: Math.max(b - a - 0.5, 0.7), height: Math.max(bottom - top - inset[0] - inset[1], 0.7) };
        const node = svgEl("rect", { ...shape, class: "mark", "fill-opacity": Math.max(strength, 0.06) });
        const spans = table?.ops[row];
        node.style.fill = color(name);
        if (selected) node.classList.add(!touches(spans) ? "off" : shape.height > 5 && shape.width > 3 ? "on" : "in");
        const head = table ? kindOf(label || `${table.rows[row]?.[columnOf(table, "stage")] ?? ""}`) : label;
        node.tip = (event) => showTip(event, row < 0 ? null : table, row, row < 0 ? `${label}: ${format(section.y.unit, high - low)}` : head);
        if (spans?.length) node.pick = () => select(numbersOf(spans));
        layer.append(node);
        const most = Math.floor((shape.width - 8) / 6.6);
        if (label && most > 2 && shape.height > 13) {
          const text = kindOf(label);
          layer.append(svgEl("text", { x: a + 4, y: shape.y + Math.min(shape.height / 2 + 4, 14), class: "on-mark" }, text.length > most ? `${text.slice(0, most - 1)}…` : text));
        }
      }
    }
  };
  const limited = (layer, x, y, area) => {
    draw(layer, x, y, area);
    if (!section.limit || section.limit[1] >= section.y.end) return;
    const [name, place] = section.limit, at = y(place);
    layer.append(svgEl("line", { x1: area.left, x2: area.right, y1: at, y2: at, class: "limit" }));
    layer.append(svgEl("text", { x: area.left + 4, y: at - 5, class: "outlined" }, `${name}: ${format(section.y.unit, place)}`));
  };
  const twoWays = !lanes && section.x.end <= 16;
  const height = lanes ? topOf(section) + MARGIN.bottom + 30 * section.y.end : section.id === "picture" ? 360 : 420;
  const { box, tools, reveal } = plot(section, { height, twoWays, draw: limited, left: (width) => lanes ? (width < 560 ? 96 : 140) : 76 });
  charts[section.id] = (number) => {
    const table = tableOf(section.parts[0].table);
    const own = section.parts[0].marks.filter(([, , , , , row]) => lanes ? inSpans(table.ops[row] ?? [], number) : false);
    if (lanes && own.length) reveal(own[0][0], own[0][1]);
    else reveal(number, number + 1);
  };
  const operations = [...new Set(section.parts.flatMap((part) => part.marks.map((mark) => mark[4])))].filter((name) => !Object.hasOwn(COLORS, name));
  return [tools, box, legendOf(operations, section.legend, pickKind)];
}

function points(section) {
  const table = tableOf(section.table);
  const draw = (layer, x, y, area) => {
    const taken = [];
    const place = (text, at, up, anchor) => { // where no other text is
      const wide = 7 * text.length, begin = anchor === "end" ? at - wide : at;
      if (taken.some(([from, to, other]) => begin < to && begin + wide > from && Math.abs(other - up) < 12)) return;
      taken.push([begin, begin + wide, up]);
      layer.append(svgEl("text", { x: at, y: up, "text-anchor": anchor, class: "name" }, text));
    };
    for (const { name, points: path } of section.lines) {
      layer.append(svgEl("path", { d: `M${path.map(([px, py]) => `${x(px)},${y(py)}`).join("L")}`, class: "roof" }));
      const [px, py] = path.at(-1);
      const at = Math.min(x(px), area.right) - 6;
      place(name, Math.max(at, area.left + 7 * name.length), Math.max(y(py) - 6, area.top + 12), "end");
    }
    section.marks.forEach(([px, py, name, row]) => {
      const node = svgEl("circle", { cx: x(px), cy: y(py), r: 6, class: "mark" });
      const spans = table?.ops[row];
      node.style.fill = color(name);
      if (selected) node.classList.add(touches(spans) ? "on" : "off");
      node.tip = (event) => showTip(event, table, row, kindOf(name));
      if (spans?.length) node.pick = () => select(numbersOf(spans));
      layer.append(node);
      place(spans?.length ? `#${spans[0]}` : kindOf(name), x(px) + 9, y(py) + 4, "start");
    });
  };
  const { box, tools } = plot(section, { height: 340, twoWays: true, draw, left: () => 92 });
  return [tools, box, legendOf([...new Set(section.marks.map((mark) => mark[2]))], {}, pickKind)];
}

function heat(section) {
  const table = tableOf(section.table), chosen = { across: section.across, down: section.down };
  const figures = section.figures.filter((name) => columnOf(table, name) >= 0);
  const choose = (label, names, start, change) => {
    const choice = el("select", { "aria-label": `${label} of ${section.title}`, onchange: () => change(choice.value) }, ...names.map((name) => el("option", { selected: name === start }, name)));
    return choice;
  };
  const figure = choose("Figure", figures, figures[0], () => paint());
  const grid = el("div", { class: "heatmap", role: "img" });
  const scale = el("p", { class: "note" });
  const paint = () => {
    const [across, down, at] = [chosen.across, chosen.down, figure.value].map((name) => columnOf(table, name));
    const least = new Map(); // the row with the least figure, by its cell
    table.rows.forEach((row, index) => {
      const place = JSON.stringify([row[across], row[down]]), other = least.get(place);
      if (other === undefined || (row[at] ?? Infinity) < (table.rows[other][at] ?? Infinity)) least.set(place, index);
    });
    const shown = [...least.values()].sort((one, other) => one - other).map((index) => [index, table.rows[index]]);
    const values = shown.map(([, row]) => row[at]).filter((value) => value !== null);
    const most = Math.max(...values, 0), low = section.axes.length ? Math.min(...values, most) : 0, text = formatter(table.columns[at].unit, most);
    const kinds = (column) => [...new Set(table.rows.map((row) => row[column]))].sort((one, other) => `${one}`.localeCompare(`${other}`, "en", { numeric: true }));
    const columns = kinds(across), rows = kinds(down), written = section.axes.length && columns.length <= 8;
    grid.setAttribute("aria-label", `${section.title}: ${figure.value}; the table has the numbers`);
    grid.style.gridTemplateColumns = `auto repeat(${columns.length}, minmax(0, 1fr))`;
    grid.classList.toggle("written", written);
    const cells = shown.map(([index, row]) => {
      const cell = el("div", { class: "cell" }, written ? (row[at] === null ? "–" : text(row[at])) : "");
      const share = row[at] === null ? 0 : most > low ? (row[at] - low) / (most - low) : 1;
      cell.style.setProperty("--share", `${Math.round(share * (section.axes.length ? 35 : 100)) + (section.axes.length && row[at] !== null ? 5 : 0)}%`);
      cell.style.gridArea = `${rows.indexOf(row[down]) + 2} / ${columns.indexOf(row[across]) + 2}`;
      cell.addEventListener("pointermove", (event) => showTip(event, table, index, `${chosen.across} ${row[across]}, ${chosen.down} ${row[down]}`));
      cell.addEventListener("pointerleave", hideTip);
      if (table.ops[index]?.length) cell.addEventListener("click", () => select(numbersOf(table.ops[index])));
      return cell;
    });
    const named = (names, put) => names.map((name, index) => { const node = el("span", {}, `${name}`); node.style.gridArea = put(index); return node; });
    grid.replaceChildren(...named(columns, (index) => `1 / ${index + 2}`), ...named(rows, (index) => `${index + 2} / 1`), ...cells);
    scale.replaceChildren(`${chosen.across} to the right, ${chosen.down} downward; from ${section.axes.length ? text(low) : "none"} (pale) to `, el("b", {}, text(most)));
  };
  const sides = section.axes.length > 2 ? ["across", "down"].map((side) => choose(side === "across" ? "To the right" : "Downward", section.axes, chosen[side], (name) => {
    chosen[side] = name;
    paint();
  })) : [];
  paint();
  return [el("div", { class: "buttons tools" }, figure, ...sides), grid, scale];
}

// Links: bytes from each node to the right, down, left and up; those of the second network beside those of the first
const STEPS = [[1, 0, "right"], [0, 1, "down"], [-1, 0, "left"], [0, -1, "up"]];
const GAP = 0.3; // of a node's place, on each side of its square
function links(section) {
  const [cols, rows] = section.size;
  const choice = (label, names) => el("select", { "aria-label": `${label} of ${section.title}`, onchange: () => paint() }, ...names.map(([value, name]) => el("option", { value, selected: value === section.first }, name)));
  const operation = choice("Operation", section.parts.map(([number, name]) => [number, `#${number} ${kindOf(name)}`]));
  const network = choice("Network", [[2, "both networks"], [0, "first: → then ↓"], [1, "second: ↑ then ←"]]);
  const svg = svgEl("svg", { role: "img" }), scale = el("p", { class: "note" });
  const box = el("div", { class: "grid" }, svg);
  let width = 0;
  const coreOf = (at) => /^core (\d+)-(\d+)$/.exec(section.names[0][at]);
  const paint = () => {
    if (!width) return;
    const [, name, perByte, whole, loads] = section.parts.find(([number]) => `${number}` === operation.value);
    const most = Math.max(...loads.flat()), out = 0.3; // of a place, that arrows reach beyond the grid
    const size = Math.min(58, (width - 26) / (cols + 2 * out)), half = size * (0.5 - GAP), left = 22 + out * size, top = 32 + out * size;
    const [x, y] = [(col) => left + (col + 0.5) * size, (row) => top + (row + 0.5) * size];
    const text = (words, at, up, anchor = "middle") => svgEl("text", { x: at, y: up, "text-anchor": anchor }, words);
    svg.setAttribute("height", top + (rows + out) * size + 2);
    svg.setAttribute("width", left + (cols + out) * size + 4);
    svg.setAttribute("aria-label", `${section.title} of ${kindOf(name)}; the table of the busiest links has the numbers`);
    const marks = [text("worker cores: column →, row ↓", 0, 12, "start")];
    const heads = [new Map(), new Map()]; // torus column or row of each column or row of worker cores
    for (let at = 0; at < cols * rows; at += 1) {
      const core = coreOf(at), [col, row] = [at % cols, Math.floor(at / cols)];
      const bank = section.names.some((names, number) => (network.value === "2" || network.value === `${number}`) && names[at].startsWith("DRAM"));
      marks.push(svgEl("rect", { x: x(col) - half, y: y(row) - half, width: 2 * half, height: 2 * half, rx: 2, class: core ? "node core" : bank ? "node bank" : "node" }));
      if (bank) marks.push(text("D", x(col), y(row) + 4));
      if (core) [core[1], core[2]].forEach((number, axis) => heads[axis].set([col, row][axis], number));
    }
    for (const [col, number] of heads[0]) marks.push(text(number, x(col), 28));
    for (const [row, number] of heads[1]) marks.push(text(number, 17, y(row) + 4, "end"));
    const arrows = loads.flatMap((own, way) => own.map((moved, at) => [moved, way, at])).filter(([, way]) => network.value === "2" || way >> 1 === +network.value);
    for (const [moved, way, at] of arrows.sort(([one], [other]) => one - other)) {
      const [right, down, name] = STEPS[way], [col, row] = [at % cols, Math.floor(at / cols)], share = most ? moved / most : 0;
      const aside = network.value === "2" ? size * 0.1 * (way < 2 ? -1 : 1) : 0, long = 2 * GAP * size - 2, tip = Math.min(long, 3 + size * 0.09), wide = size * (0.035 + 0.09 * share);
      const place = `translate(${x(col)} ${y(row)}) rotate(${[0, 90, 180, 270][way]}) translate(${half + 1} ${aside * (way % 2 ? -1 : 1) * (way < 2 ? 1 : -1)})`;
      const head = Math.max(1.6 * wide, size * 0.07);
      const node = svgEl("path", { transform: place, d: `M0,${-wide / 2}H${long - tip}V${-head}L${long},0L${long - tip},${head}V${wide / 2}H0Z`, class: moved ? "link-load" : "link-load idle" });
      node.style.setProperty("--share", `${Math.round(12 + 88 * share)}%`);
      const next = (row + down + rows) % rows * cols + (col + right + cols) % cols, names = section.names[way >> 1];
      const facts = { columns: [["bytes", "B"], ["link time", "ns"], ["of operation", "share"], ["of the busiest link", "share"]].map(([name, unit]) => ({ name, unit })), rows: [[moved, moved * perByte, moved * perByte / whole, share]] };
      node.addEventListener("pointermove", (event) => showTip(event, facts, 0, `${names[at]} ${name} to ${names[next]}`));
      node.addEventListener("pointerleave", hideTip);
      marks.push(node);
    }
    svg.replaceChildren(...marks);
    scale.replaceChildren("From nothing (pale) to ", el("b", {}, `${format("B", most)}, ${format("ns", most * perByte)} at the full rate of a link`), `, ${format("share", most * perByte / whole)} of the operation's time.`);
  };
  new ResizeObserver(() => {
    const now = Math.floor(box.clientWidth);
    if (!now || now === width) return;
    width = now;
    paint();
  }).observe(box);
  watchers.push(() => {
    const [number] = selected?.size === 1 ? selected : [];
    if (section.parts.some(([own]) => own === number)) operation.value = number;
    paint();
  });
  return [el("div", { class: "buttons tools" }, operation, network), box, scale];
}

function bars(section) {
  const table = tableOf(section.table);
  if (!table) return [];
  const label = columnOf(table, section.label), figures = section.figures.map((name) => columnOf(table, name)).filter((at) => at >= 0), bound = columnOf(table, section.bound);
  if (!figures.length) return [el("p", { class: "note" }, "Nothing was timed.")];
  const order = table.rows.map((_, at) => at).filter((at) => figures.some((column) => table.rows[at][column])).sort((one, other) => table.rows[other][figures[0]] - table.rows[one][figures[0]]);
  const most = Math.max(...order.flatMap((at) => figures.map((column) => table.rows[at][column] ?? 0)), 1e-9);
  const text = formatter(table.columns[figures[0]].unit, most);
  const rows = order.slice(0, section.most).map((at) => {
    const row = table.rows[at], name = `${row[label]}`, operation = table.columns[label].unit === "operation";
    const tracks = figures.map((column, number) => {
      const track = el("span", { class: "track" }, el("i", { class: "fill" }));
      track.firstChild.style.width = `${100 * (row[column] ?? 0) / most}%`;
      track.firstChild.style.background = color(operation ? name : "figure");
      if (number < figures.length - 1) track.firstChild.style.opacity = 0.55;
      if (!number && bound >= 0 && row[bound]) {
        const mark = el("i", { class: "bound" });
        mark.style.left = `${100 * row[bound] / most}%`;
        track.append(mark);
      }
      return track;
    });
    const line = el("button", { type: "button", class: "bar", onclick: () => table.columns[label].unit === "view" ? open(name) : select(numbersOf(table.ops[at] ?? [])) },
      el("span", { class: "name" }, kindOf(name)), el("span", { class: "tracks" }, ...tracks), el("span", { class: "value" }, text(row[figures.at(-1)] ?? 0)));
    line.addEventListener("pointermove", (event) => showTip(event, table, at, kindOf(name)));
    line.addEventListener("pointerleave", hideTip);
    watchers.push(() => { line.classList.toggle("off", selected !== null && table.ops.length > 0 && !touches(table.ops[at])); });
    return line;
  });
  const rest = order.slice(section.most);
  const more = rest.length ? [el("p", { class: "note" }, `${rest.length} more: ${text(rest.reduce((sum, at) => sum + table.rows[at][figures[0]], 0))}`)] : [];
  return [el("div", { class: rows.length > 5 ? "barlist" : "barlist few" }, ...rows), ...more];
}

// ---- tables

const SHOWN = 15, MOST = 24; // rows of a table before all are asked for: up to MOST are shown at once
function table(section) {
  const { columns, rows, ops } = section;
  const formats = columns.map((column, at) => formatter(column.unit, Math.max(0, ...rows.map((row) => typeof row[at] === "number" ? Math.abs(row[at]) : 0))));
  const text = (row, at) => row[at] === null ? "" : typeof row[at] === "number" ? formats[at](row[at]) : `${row[at]}`;
  const heads = headColumn(section);
  let order = rows.map((_, at) => at), by = null, down = true, all = false, words = "";
  const body = el("tbody"), foot = el("tfoot"), count = el("span", { class: "hint", role: "status" });
  const more = el("button", { type: "button", onclick: () => { all = true; paint(); } });
  const cell = (row, at, index) => {
    const { unit } = columns[at], value = text(row, at);
    const content = unit === "code" ? button("Copy", `Copy the arguments of ${row[heads]}`, (event) => copy(value, event.currentTarget))
      : unit === "view" ? el("button", { type: "button", class: "link", onclick: () => open(value) }, value)
      : at === heads && ops.length ? el("button", { type: "button", class: "link", title: "Select", onclick: () => select(numbersOf(ops[index])) }, ...(unit === "operation" ? [swatch(value)] : []), value)
      : value;
    return el(at === heads ? "th" : "td", { class: isText(unit) ? (value.length > 48 && unit !== "code" ? "words long" : "words") : "figure", ...(at === heads ? { scope: "row" } : {}) }, content);
  };
  const paint = () => {
    const found = words ? order.filter((index) => columns.some((_, at) => text(rows[index], at).toLowerCase().includes(words))) : order;
    const shown = all || found.length <= MOST ? found : found.slice(0, SHOWN);
    body.replaceChildren(...shown.map((index) => {
      const line = el("tr", {}, ...columns.map((_, at) => cell(rows[index], at, index)));
      line.classList.toggle("on", touches(ops[index]));
      line.dataset.row = index;
      return line;
    }));
    const totals = columns.some((column) => column.total) && found.length > 1;
    foot.replaceChildren(...(totals ? [el("tr", {}, ...columns.map((column, at) => {
      const sum = found.reduce((sum, index) => sum + (typeof rows[index][at] === "number" ? rows[index][at] : 0), 0);
      return el("td", { class: column.total ? "figure" : "words" }, column.total ? formatter(column.unit, sum)(sum) : at === heads ? `total of ${found.length}` : "");
    }))] : []));
    count.textContent = words || shown.length < found.length ? `${found.length} of ${rows.length} rows` : "";
    more.hidden = shown.length === found.length;
    more.textContent = `Show all ${found.length} rows`;
    for (const head of headings) head.cell.setAttribute("aria-sort", head.at === by ? (down ? "descending" : "ascending") : "none");
    cue();
  };
  const sort = (at) => {
    down = by === at ? !down : !isText(columns[at].unit);
    by = at;
    const key = (index) => rows[index][at];
    order = rows.map((_, index) => index).sort((one, other) => {
      const [a, b] = [key(one), key(other)];
      if (a === b) return one - other;
      if (a === null || b === null) return a === null ? 1 : -1;
      return (down ? -1 : 1) * (typeof a === "number" && typeof b === "number" ? a - b : `${a}`.localeCompare(`${b}`, "en", { numeric: true }));
    });
    paint();
  };
  const headings = columns.map((column, at) => ({
    at,
    cell: el("th", { scope: "col", class: isText(column.unit) ? "words" : "figure" }, column.unit === "code" ? column.name : el("button", { type: "button", class: "sort", onclick: () => sort(at) }, column.name)),
  }));
  const filter = el("input", { type: "search", placeholder: "Filter", "aria-label": `Filter ${section.title}`, oninput: (event) => { words = event.target.value.trim().toLowerCase(); paint(); } });
  const wide = el("div", { class: "wide", tabindex: 0, role: "group", "aria-label": `${section.title}: table` },
    el("table", {}, el("thead", {}, el("tr", {}, ...headings.map((head) => head.cell))), body, foot));
  const frame = el("div", { class: "frame" }, wide);
  const cue = () => {
    frame.classList.toggle("left", wide.scrollLeft > 2);
    frame.classList.toggle("right", wide.scrollLeft + wide.clientWidth < wide.scrollWidth - 2);
  };
  wide.addEventListener("scroll", cue, { passive: true });
  new ResizeObserver(cue).observe(wide);
  watchers.push(() => { for (const line of body.children) line.classList.toggle("on", touches(ops[line.dataset.row])); });
  charts[section.id] = (number) => {
    [words, all, filter.value] = ["", true, ""];
    paint();
    const line = [...body.children].find((row) => inSpans(ops[row.dataset.row] ?? [], number));
    line?.scrollIntoView({ block: "center" });
    line?.querySelector("button")?.focus({ preventScroll: true });
  };
  paint();
  const tools = rows.length > 6 ? [el("div", { class: "buttons tools" }, filter, count)] : [];
  const content = [...tools, frame, more];
  return section.folded ? [el("details", {}, el("summary", {}, `${rows.length} rows`), ...content)] : content;
}

// ---- texts

async function copy(text, from) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el("textarea", {}, text);
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const before = from.textContent;
  from.textContent = "Copied";
  setTimeout(() => { from.textContent = before; }, 1200);
}
const pasted = (text, label) => el("div", { class: "code" }, el("pre", { tabindex: 0, role: "group", "aria-label": label }, text), button("Copy", `Copy: ${label}`, (event) => copy(text, event.currentTarget)));

function verdict(section) {
  const facts = section.facts.map(([name, value, unit]) => el("div", {}, el("dt", {}, name), el("dd", {}, format(unit, value))));
  const asked = Object.entries(section.asked).map(([name, value]) => `${name} ${value}`).join(" · ");
  return [el("h2", { class: "state" }, section.text), el("dl", { class: "facts" }, ...facts), el("p", { class: "note" }, asked)];
}

function gain(section) {
  const where = section.view ? [el("button", { type: "button", class: "link", onclick: () => open(section.view) }, `Open ${section.view}`)] : [];
  return [el("h2", {}, section.text), el("p", { class: "note" }, section.detail, " ", ...where), ...(section.code ? [pasted(section.code, "the change")] : [])];
}

const text = (section) => section.lines.map((line) => el("p", {}, line));
function code(section) {
  const several = section.texts.length > 1;
  const pieces = section.texts.flatMap(([name, content]) => [...(several ? [el("h3", {}, name)] : []), pasted(content, name || section.title)]);
  return several ? [el("details", {}, el("summary", {}, `${section.texts.length} calls`), ...pieces)] : pieces;
}

// ---- the page

const KINDS = { verdict, gain, table, rectangles, points, heat, links, bars, text, code };
const FIRST = ["verdict", "gain", "picture"];
const main = el("main", { id: "report" });
const jumps = el("nav", { class: "jumps", "aria-label": "Sections" });
const views = el("nav", { class: "views", "aria-label": "Views" });

function build(section) {
  const own = ["verdict", "gain"].includes(section.kind);
  const head = own ? [] : [el("h2", {}, section.title), ...(section.note ? [el("p", { class: "note" }, section.note)] : [])];
  return el("section", { id: section.id, class: `card ${section.kind} ${section.state ?? ""}`, "aria-label": section.title ?? section.kind }, ...head, ...KINDS[section.kind](section));
}

function open(name) {
  view = page.views.find((other) => other.name === name) ?? page.views[0];
  selected = null;
  watchers.length = 0;
  for (const id of Object.keys(charts)) delete charts[id];
  const built = view.sections.map((section) => [section, build(section)]);
  const first = built.filter(([section]) => FIRST.includes(section.id)), rest = built.filter(([section]) => !FIRST.includes(section.id));
  main.replaceChildren(el("div", { class: "first" }, ...first.map(([, node]) => node)), ...rest.map(([, node]) => node), el("footer", {}, ...page.notes.map((note) => el("p", {}, note))));
  jumps.replaceChildren(...rest.map(([section, node]) => el("a", { href: `#${section.id}`, onclick: (event) => { event.preventDefault(); node.scrollIntoView(); } }, section.title)));
  jumps.hidden = rest.length < 2;
  for (const child of views.children) child.setAttribute("aria-current", child.textContent === view.name ? "page" : "false");
  scrollTo(0, 0);
  showSelection();
}

const THEMES = { auto: "light dark", light: "light", dark: "dark" };
const theme = el("button", { type: "button", id: "theme" });
function setTheme(name) {
  document.documentElement.style.colorScheme = THEMES[name];
  theme.textContent = `Theme: ${name}`;
  theme.onclick = () => setTheme({ auto: "light", light: "dark", dark: "auto" }[name]);
}

setTheme("auto");
if (page.views.length > 1) views.append(...page.views.map(({ name }) => el("button", { type: "button", onclick: () => open(name) }, name)));
views.hidden = page.views.length < 2;
document.body.append(
  el("a", { class: "skip", href: "#report" }, "Skip to the report"),
  el("header", {}, el("div", { class: "title" }, el("h1", {}, page.title), el("p", {}, page.device), theme), views, jumps),
  main, bar, tip);
open(page.views[0].name);
