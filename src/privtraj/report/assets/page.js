
"use strict";
(() => {
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const root = document.documentElement;
const features = data.features.length, frames = data.times.length, people = data.people;
const TIME = features; // the axis that is no feature
const first = data.times[0], last = data.times[frames - 1];
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const SECONDS = 14; // that the whole range plays for at normal speed
const STEPS = 65535;

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const pairs = (text) => new Uint16Array(bytes(text).buffer);
const paths = pairs(data.paths); // (features, frames, people)
const bands = pairs(data.bands); // (features, 5, frames)
const density = bytes(data.density); // (features, frames, bins)
const real = data.real && { ...data.real, points: pairs(data.real.points), density: bytes(data.real.density) };

const state = { time: first, across: 0, up: 1, colour: 0, paths: false, many: 50, traced: null, playing: false };

// Numbers and times --------------------------------------------------------------------------

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const inUnits = (axis, share) => axis === TIME ? first + share * (last - first)
  : data.bounds[axis][0] + share * (data.bounds[axis][1] - data.bounds[axis][0]);
const nameOf = (axis) => axis === TIME ? data.timeName : data.features[axis];

function numberText(value, span) {
  if (!(Math.abs(value) < 1e15) || span < 1e-6) return String(Number(value.toPrecision(6)));
  return value.toFixed(clamp(2 - Math.floor(Math.log10(span)), 0, 8));
}

function timeText(time) {
  const span = last - first;
  if (!data.datetime) return numberText(time, span);
  const text = new Date(time * 1000).toISOString().replace("T", " ");
  return text.slice(0, span > 3 * 86400 ? 10 : span > 300 ? 16 : 19);
}

const text = (axis, share) => axis === TIME ? timeText(inUnits(axis, share))
  : data.dates[axis] ? new Date(inUnits(axis, share) * 1000).toISOString().slice(0, 10)
  : numberText(inUnits(axis, share), data.bounds[axis][1] - data.bounds[axis][0]);

function ticks(axis, range, most) {
  if (axis === TIME) return data.timeTicks.map(([at, label]) => [(at - first) / (last - first), label]);
  if (data.dates[axis]) return data.dates[axis];
  const [low, high] = range.map((share) => inUnits(axis, share));
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough * 0.999);
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
    const share = (k * step - data.bounds[axis][0]) / (data.bounds[axis][1] - data.bounds[axis][0]);
    found.push([share, String(Number((k * step).toPrecision(10)))]);
  }
  return found;
}

function frameAt(time) {
  let low = 0, high = frames - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (data.times[middle] <= time) low = middle; else high = middle;
  }
  return [low, clamp((time - data.times[low]) / (data.times[high] - data.times[low]), 0, 1)];
}

function place(axis, person, frame, share) { // as a share of the box
  if (axis === TIME) {
    const time = data.times[frame] + share * ((data.times[frame + 1] ?? last) - data.times[frame]);
    return (time - first) / (last - first);
  }
  const at = (axis * frames + frame) * people + person;
  const next = share ? paths[at + people] : 0;
  return (paths[at] * (1 - share) + next * share) / STEPS;
}

function quantile(feature, which, [frame, share]) {
  const at = (feature * 5 + which) * frames + frame;
  return (bands[at] * (1 - share) + (share ? bands[at + 1] : 0) * share) / STEPS;
}

function nearestKnot(time) {
  return data.knots.reduce((best, t, i) => Math.abs(t - time) < Math.abs(data.knots[best] - time) ? i : best, 0);
}

// Colours -------------------------------------------------------------------------------------

const VIRIDIS = ["440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725"]
  .map((hex) => [0, 2, 4].map((k) => parseInt(hex.slice(k, k + 2), 16)));
const SHADES = 24;
const theme = {};

function viridis(share) {
  const at = clamp(share, 0, 1) * (VIRIDIS.length - 1), i = Math.min(Math.floor(at), VIRIDIS.length - 2);
  const rgb = VIRIDIS[i].map((c, k) => Math.round(c + (at - i) * (VIRIDIS[i + 1][k] - c)));
  return `rgb(${rgb.join(",")})`;
}

function isDark() {
  return root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function readTheme() {
  const style = getComputedStyle(root);
  for (const name of ["card", "ink", "muted", "line", "dot", "real", "traced", "land", "sea", "coast"]) {
    theme[name] = style.getPropertyValue(`--${name}`).trim();
  }
  const dark = isDark(); // the ends that would vanish in the background are left out
  theme.shades = Array.from({ length: SHADES }, (_, k) => viridis((dark ? 0.22 : 0) + (0.78 + 0.06 * !dark) * k / (SHADES - 1)));
  theme.font = style.getPropertyValue("--sans");
}

let shadeOf = null; // of each person: their rank at the first time in the chosen feature

function rankPeople() {
  if (state.colour < 0) { shadeOf = null; return; }
  const order = Array.from({ length: people }, (_, p) => p);
  order.sort((a, b) => place(state.colour, a, 0, 0) - place(state.colour, b, 0, 0));
  shadeOf = new Uint8Array(people);
  order.forEach((person, rank) => { shadeOf[person] = Math.floor(rank * SHADES / people); });
}

const reach = Array.from({ length: features }, (_, axis) => { // what all who are drawn are in
  let [low, high] = real ? data.ranges[axis].map((share) => share * STEPS) : [STEPS, 0];
  for (let k = axis * frames * people; k < (axis + 1) * frames * people; k++) {
    if (paths[k] < low) low = paths[k];
    if (paths[k] > high) high = paths[k];
  }
  const room = Math.max(0.03 * (high - low), 1);
  return [(low - room) / STEPS, (high + room) / STEPS];
});

// The stage -----------------------------------------------------------------------------------

const canvas = byId("stage"), pen = canvas.getContext("2d");
const still = document.createElement("canvas"); // axes and whole paths, drawn once per view
let view = null, stale = true;

function makeView() {
  const scale = Math.max(1, window.devicePixelRatio || 1);
  const width = canvas.clientWidth, height = canvas.clientHeight;
  for (const each of [canvas, still]) { each.width = Math.round(width * scale); each.height = Math.round(height * scale); }
  const box = { left: 62, right: width - 22, top: 40, bottom: height - 52 };
  const ranges = [state.across, state.up].map((axis) => axis === TIME ? [-0.015, 1.015] : [...reach[axis]]);
  keepAspect(ranges, box);
  view = { scale, width, height, box, ranges };
}

function keepAspect(ranges, box) {
  const map = data.maps.find(([i, j]) => (i === state.across && j === state.up) || (j === state.across && i === state.up));
  canvas.dataset.aspect = map ? "equal" : "fill";
  if (!map) return;
  const unit = [state.across, state.up].map((axis) =>
    (data.bounds[axis][1] - data.bounds[axis][0]) * (axis === map[0] ? map[2] : 1));
  const room = [box.right - box.left, box.bottom - box.top];
  const pixels = Math.min(...room.map((r, k) => r / ((ranges[k][1] - ranges[k][0]) * unit[k])));
  ranges.forEach((range, k) => {
    const middle = (range[0] + range[1]) / 2, half = room[k] / pixels / unit[k] / 2;
    range[0] = middle - half; range[1] = middle + half;
  });
}

const atX = (share) => view.box.left + (share - view.ranges[0][0]) / (view.ranges[0][1] - view.ranges[0][0]) * (view.box.right - view.box.left);
const atY = (share) => view.box.bottom - (share - view.ranges[1][0]) / (view.ranges[1][1] - view.ranges[1][0]) * (view.box.bottom - view.box.top);

function drawAxes(on) {
  const { box, width, height, ranges } = view;
  on.fillStyle = theme.card; on.fillRect(0, 0, width, height);
  const scaled = drawBackdrop(on);
  on.strokeStyle = scaled ? theme.coast : theme.line; on.fillStyle = theme.muted; on.lineWidth = 1;
  on.font = `12.5px ${theme.font}`;
  on.textAlign = "center"; on.textBaseline = "top";
  let free = -Infinity;
  for (const [share, label] of ticks(state.across, ranges[0], width < 480 ? 4 : 7)) {
    const x = Math.round(atX(share)) + 0.5, half = on.measureText(label).width / 2;
    if (x < box.left - 1 || x > box.right + 1) continue;
    gridLine(on, x, box.top, x, box.bottom, scaled);
    const middle = clamp(x, half + 4, width - half - 6);
    if (middle - half > free) { on.fillText(label, middle, box.bottom + 8); free = middle + half + 10; }
  }
  on.textAlign = "right"; on.textBaseline = "middle";
  for (const [share, label] of ticks(state.up, ranges[1], 6)) {
    const y = Math.round(atY(share)) + 0.5;
    if (y < box.top - 1 || y > box.bottom + 1) continue;
    gridLine(on, box.left, y, box.right, y, scaled);
    on.fillText(label, box.left - 9, y, box.left - 12);
  }
  on.fillStyle = theme.ink; on.font = `600 13.5px ${theme.font}`;
  on.textAlign = "right"; on.textBaseline = "alphabetic";
  on.fillText(shortened(on, nameOf(state.across), box.right - box.left), box.right, height - 12);
  on.textAlign = "left";
  on.fillText(shortened(on, nameOf(state.up), box.right - 14), 14, 24);
}

function gridLine(on, x, y, right, bottom, faint) {
  on.globalAlpha = faint ? 0.25 : 1;
  on.beginPath(); on.moveTo(x, y); on.lineTo(right, bottom); on.stroke();
  on.globalAlpha = 1;
}

// The map behind longitude and latitude ---------------------------------------------------------

const KILOMETRES = 111.19508; // in a degree of latitude
const backdrop = data.backdrop && { ...data.backdrop, ...Object.fromEntries(["land", "borders"].map((kind) =>
  [kind, { sizes: data.backdrop[kind].sizes, points: pairs(data.backdrop[kind].points) }])) };

function drawBackdrop(on) { // true where there is one
  canvas.dataset.map = "none";
  if (!backdrop || ![state.across, state.up].every((axis) => backdrop.axes.includes(axis))) return false;
  const [west, east, south, north] = backdrop.window, [lon, lat] = backdrop.axes, upright = state.across === lon;
  const inBox = (axis, value) => (value - data.bounds[axis][0]) / (data.bounds[axis][1] - data.bounds[axis][0]);
  const at = (x, y) => {
    const place = [inBox(lon, west + x * (east - west)), inBox(lat, south + y * (north - south))];
    return upright ? [atX(place[0]), atY(place[1])] : [atX(place[1]), atY(place[0])];
  };
  const [[left, bottom], [right, top]] = [at(0, 0), at(1, 1)], { box } = view;
  on.save();
  on.beginPath(); on.rect(box.left, box.top, box.right - box.left, box.bottom - box.top); on.clip();
  on.beginPath(); on.rect(left + 1, top + 1, right - left - 2, bottom - top - 2); on.clip(); // without the window's own edge
  on.fillStyle = theme.sea; on.fillRect(box.left, box.top, box.right - box.left, box.bottom - box.top);
  on.fillStyle = theme.land; on.strokeStyle = theme.coast; on.lineWidth = 1; on.lineJoin = "round";
  traceLines(on, backdrop.land, at, true); on.fill("evenodd"); on.stroke();
  on.setLineDash([4, 3]); traceLines(on, backdrop.borders, at, false); on.stroke();
  on.restore();
  drawScale(on, Math.abs(at(0, 1)[upright ? 1 : 0] - at(0, 0)[upright ? 1 : 0]) / (north - south) / KILOMETRES);
  canvas.dataset.map = "drawn";
  return true;
}

function traceLines(on, { points, sizes }, at, closed) {
  on.beginPath();
  let k = 0;
  for (const size of sizes) {
    for (let i = 0; i < size; i++, k++) {
      const [x, y] = at(points[2 * k] / STEPS, points[2 * k + 1] / STEPS);
      if (i) on.lineTo(x, y); else on.moveTo(x, y);
    }
    if (closed) on.closePath();
  }
}

function drawScale(on, pixels) { // of a kilometre, in the middle of the picture
  const { box } = view, most = (box.right - box.left) / 4 / pixels;
  if (most > 1500) return; // no one scale is true of half a world
  const power = 10 ** Math.floor(Math.log10(most)), length = [5, 2, 1].map((k) => k * power).find((k) => k <= most);
  const right = box.right - 10, y = box.bottom - 10, left = right - length * pixels;
  on.strokeStyle = on.fillStyle = theme.ink; on.lineWidth = 1.5;
  on.beginPath(); on.moveTo(left, y - 5); on.lineTo(left, y); on.lineTo(right, y); on.lineTo(right, y - 5); on.stroke();
  on.font = `12px ${theme.font}`; on.textAlign = "center"; on.textBaseline = "bottom";
  on.fillText(length >= 1 ? `${length} km` : `${Math.round(length * 1000)} m`, (left + right) / 2, y - 3);
  on.lineWidth = 1;
}

function kilometres(person, frame, share, next, more) { // between two moments of a person, by the haversine
  const [a, b] = [[frame, share], [next, more]].map((moment) => backdrop.axes.map((axis) =>
    inUnits(axis, place(axis, person, ...moment)) * Math.PI / 180));
  const half = a.map((angle, k) => Math.sin((b[k] - angle) / 2) ** 2);
  return 2 * KILOMETRES * 180 / Math.PI * Math.asin(Math.sqrt(Math.min(1, half[1] + Math.cos(a[1]) * Math.cos(b[1]) * half[0])));
}

function wayText(person, [frame, share]) { // how far they went, and how fast they go
  let far = 0;
  for (let k = 0; k < frame; k++) far += kilometres(person, k, 0, k + 1, 0);
  const from = Math.min(frame, frames - 2);
  const speed = kilometres(person, from, 0, from + 1, 0) / ((data.times[from + 1] - data.times[from]) / (data.datetime ? 3600 : 1));
  if (share) far += kilometres(person, frame, 0, frame, share);
  const digits = (value) => Number(value.toPrecision(2));
  return `${digits(far)} km so far, now ${digits(speed)} ${data.datetime ? "km/h" : `km per unit of ${data.timeName}`}`;
}

function shortened(on, name, room) {
  if (on.measureText(name).width <= room) return name;
  let cut = name;
  while (cut.length > 1 && on.measureText(`${cut}…`).width > room) cut = cut.slice(0, -1);
  return `${cut}…`;
}

function tracePath(on, person, until) {
  on.beginPath();
  for (let frame = 0; frame < frames && data.times[frame] <= until; frame++) {
    on.lineTo(atX(place(state.across, person, frame, 0)), atY(place(state.up, person, frame, 0)));
  }
  if (until < last) {
    const [frame, share] = frameAt(until);
    on.lineTo(atX(place(state.across, person, frame, share)), atY(place(state.up, person, frame, share)));
  }
  on.stroke();
}

const colourOf = (person) => shadeOf ? theme.shades[shadeOf[person]] : theme.dot;

function drawStill() {
  const on = still.getContext("2d");
  on.setTransform(view.scale, 0, 0, view.scale, 0, 0);
  drawAxes(on);
  if (!byId("synthetic").checked) return;
  on.save(); clip(on);
  if (state.paths) drawPaths(on); else drawElsewhen(on);
  on.restore();
}

function drawPaths(on) {
  on.lineWidth = 1; on.lineJoin = "round";
  on.globalAlpha = clamp(12 / Math.sqrt(state.many), 0.9, 3) * 0.28;
  for (let person = 0; person < Math.min(state.many, people); person++) {
    on.strokeStyle = colourOf(person);
    tracePath(on, person, last);
  }
}

function drawElsewhen(on) { // where some of the people are at all times, so that nobody moves in a void
  const step = Math.max(1, Math.floor(frames / 24));
  on.fillStyle = theme.muted; on.globalAlpha = 0.1;
  on.beginPath();
  const shown = Math.min(people, 160);
  for (let frame = 0, k = 0; frame < frames; frame += step) {
    for (let i = 0; i < shown; i++, k++) { // others at each time, so that no path is dotted
      const person = k % people;
      const x = atX(place(state.across, person, frame, 0)), y = atY(place(state.up, person, frame, 0));
      on.moveTo(x + 1.5, y); on.arc(x, y, 1.5, 0, 6.2832);
    }
  }
  on.fill();
}

function clip(on) {
  const { box } = view;
  on.beginPath(); on.rect(box.left - 4, box.top - 4, box.right - box.left + 8, box.bottom - box.top + 8); on.clip();
}

function drawReal() {
  const bin = nearestKnot(state.time);
  const start = real.starts[bin], count = real.counts[bin];
  pen.strokeStyle = theme.real; pen.lineWidth = 1.3; pen.globalAlpha = 0.75;
  for (let k = 0; k < count; k++) {
    const share = (axis) => axis === TIME ? (data.knots[bin] - first) / (last - first)
      : real.points[start * features + axis * count + k] / STEPS;
    pen.beginPath(); pen.arc(atX(share(state.across)), atY(share(state.up)), 3.2, 0, 7); pen.stroke();
  }
  pen.globalAlpha = 1;
}

function draw() {
  if (!canvas.clientWidth) return;
  if (stale || !view) { makeView(); drawStill(); stale = false; }
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.drawImage(still, 0, 0);
  pen.setTransform(view.scale, 0, 0, view.scale, 0, 0);
  pen.save(); clip(pen);
  if (real && byId("real").checked) drawReal();
  if (byId("synthetic").checked) drawPeople();
  pen.restore();
}

function drawPeople() {
  const [frame, share] = frameAt(state.time);
  const size = (people > 400 ? 2.7 : 3.4) * (view.width < 480 ? 0.8 : 1);
  const someone = state.traced !== null;
  pen.globalAlpha = someone ? 0.3 : real ? 0.55 : 0.82;
  const layers = shadeOf ? SHADES : 1;
  const dots = Array.from({ length: layers }, () => new Path2D());
  for (let person = 0; person < people; person++) {
    const x = atX(place(state.across, person, frame, share)), y = atY(place(state.up, person, frame, share));
    const path = dots[shadeOf ? shadeOf[person] : 0];
    path.moveTo(x + size, y); path.arc(x, y, size, 0, 6.2832);
  }
  dots.forEach((path, k) => { pen.fillStyle = shadeOf ? theme.shades[k] : theme.dot; pen.fill(path); });
  pen.globalAlpha = 1;
  if (someone) drawTraced(frame, share);
}

function drawTraced(frame, share) {
  const person = state.traced;
  pen.lineJoin = "round"; pen.strokeStyle = theme.traced;
  pen.lineWidth = 1.4; pen.globalAlpha = 0.55; tracePath(pen, person, last);
  pen.lineWidth = 3; pen.globalAlpha = 1; tracePath(pen, person, state.time);
  const x = atX(place(state.across, person, frame, share)), y = atY(place(state.up, person, frame, share));
  pen.fillStyle = theme.traced; pen.strokeStyle = theme.card; pen.lineWidth = 2;
  pen.beginPath(); pen.arc(x, y, 7, 0, 7); pen.fill(); pen.stroke();
}

// Panels of single features -------------------------------------------------------------------

const SVG = "http://www.w3.org/2000/svg";
const panels = Array.from(document.querySelectorAll("svg.band"), (svg) => {
  const shape = (kind, name) => {
    const made = document.createElementNS(SVG, kind);
    made.setAttribute("class", name);
    svg.append(made);
    return made;
  };
  const { top, bottom, left, right } = data.panel, feature = Number(svg.dataset.feature);
  const traced = shape("path", "traced"), cursor = shape("line", "cursor");
  cursor.setAttribute("y1", top); cursor.setAttribute("y2", bottom);
  svg.querySelectorAll(".density, .real-density").forEach((old) => old.remove());
  svg.addEventListener("click", (event) => {
    const frame = svg.getBoundingClientRect();
    const x = (event.clientX - frame.left) / frame.width * data.panel.width;
    if (x <= right + 6) setTime(first + clamp((x - left) / (right - left), 0, 1) * (last - first));
  });
  svg.setAttribute("role", "slider"); svg.tabIndex = 0;
  svg.setAttribute("aria-valuemin", first); svg.setAttribute("aria-valuemax", last);
  svg.addEventListener("keydown", (event) => onKey(event, { Enter: () => showAbove(feature) }));
  return { svg, feature, cursor, traced, heap: shape("path", "density"), other: real && shape("path", "real-thin real-density") };
});

function showAbove(feature) { // in the large picture, up
  setAxis("up", feature);
  byId("up").value = String(feature);
  canvas.focus({ preventScroll: true });
  byId("people").scrollIntoView();
}

function tracedPath(feature) { // of the person followed
  if (state.traced === null) return "";
  const { left, right, top, bottom } = data.panel, [low, high] = data.ranges[feature];
  return "M" + data.times.map((time, frame) => {
    const up = (place(feature, state.traced, frame, 0) - low) / (high - low);
    return `${(left + (time - first) / (last - first) * (right - left)).toFixed(1)} ${(bottom - clamp(up, -0.02, 1.02) * (bottom - top)).toFixed(1)}`;
  }).join("L");
}

function heapPath(values, at, mixed, closed) {
  const { top, bottom, heapLeft, heapRight } = data.panel, bins = data.densityBins;
  const points = [];
  const seen = closed ? null : values.subarray(at, at + bins);
  for (let k = 0; k < bins; k++) {
    if (seen && !(seen[k] || seen[k - 1] || seen[k + 1])) continue;
    const height = (values[at + k] * (1 - mixed) + (mixed ? values[at + bins + k] : 0) * mixed) / 255;
    points.push(`${(heapLeft + height * (heapRight - heapLeft)).toFixed(1)} ${(bottom - (k + 0.5) / bins * (bottom - top)).toFixed(1)}`);
  }
  return closed ? `M${heapLeft} ${bottom}L${points.join("L")}L${heapLeft} ${top}Z` : `M${points.join("L")}`;
}

function drawPanels() {
  const { left, right } = data.panel, bins = data.densityBins;
  const x = left + (state.time - first) / (last - first) * (right - left);
  const [frame, share] = frameAt(state.time), bin = nearestKnot(state.time);
  for (const panel of panels) {
    panel.svg.setAttribute("aria-valuenow", state.time);
    panel.svg.setAttribute("aria-valuetext", `${data.timeName} ${timeText(state.time)}, median ${text(panel.feature, quantile(panel.feature, 2, [frame, share]))}`);
    panel.cursor.setAttribute("x1", x); panel.cursor.setAttribute("x2", x);
    panel.heap.setAttribute("d", heapPath(density, (panel.feature * frames + frame) * bins, share, true));
    if (panel.other) {
      const at = (panel.feature * data.knots.length + bin) * bins;
      panel.other.setAttribute("d", real.counts[bin] ? heapPath(real.density, at, 0, false) : "");
    }
  }
}

// Words ---------------------------------------------------------------------------------------

function describe() {
  const at = frameAt(state.time);
  const axes = [...new Set([state.across, state.up])].filter((axis) => axis !== TIME);
  const middle = axes.map((axis) => {
    const [low, half, high] = [1, 2, 3].map((which) => text(axis, quantile(axis, which, at)));
    return `median ${nameOf(axis)} ${half}, half of the people between ${low} and ${high}`;
  });
  const parts = [`At ${data.timeName} ${timeText(state.time)}: ${middle.join("; ")}.`];
  if (real) {
    const bin = nearestKnot(state.time);
    parts.push(`Real records shown: ${real.counts[bin]} at ${data.knotLabels[bin]}.`);
  }
  if (state.traced !== null) {
    const mine = axes.map((axis) => `${nameOf(axis)} ${text(axis, place(axis, state.traced, ...at))}`);
    if (backdrop) mine.push(wayText(state.traced, at));
    parts.push(`Synthetic person ${state.traced + 1}: ${mine.join(", ")}.`);
  }
  return parts.join(" ");
}

function speak() {
  const words = describe();
  const readout = byId("readout");
  readout.setAttribute("aria-live", state.playing ? "off" : "polite");
  readout.textContent = words;
  const axes = `${nameOf(state.up)} against ${nameOf(state.across)}`;
  canvas.setAttribute("aria-label", `${people} synthetic people, ${axes}. ${words}`);
}

// Time ----------------------------------------------------------------------------------------

const slider = byId("time"), play = byId("play");

function setTime(time) {
  state.time = clamp(time, first, last);
  slider.value = String(Math.round((state.time - first) / (last - first) * 1000));
  slider.setAttribute("aria-valuetext", `${data.timeName} ${timeText(state.time)}`);
  byId("now").textContent = `${data.timeName.length < 12 ? `${data.timeName} ` : ""}${timeText(state.time)}`;
  canvas.dataset.time = String(state.time);
  draw(); drawPanels(); speak();
}

let before = 0;

function tick(now) {
  if (!state.playing) return;
  const passed = (now - before) / 1000 * Number(byId("speed").value);
  if (!calm.matches) {
    before = now;
    setTime(state.time + passed / SECONDS * (last - first));
  } else if (passed > 0.9) { // from fitted time to fitted time, without motion in between
    before = now;
    setTime(data.knots.find((t) => t > state.time + 1e-9 * (last - first)) ?? last);
  }
  if (state.time >= last) setPlaying(false); else requestAnimationFrame(tick);
}

function setPlaying(on) {
  state.playing = on;
  play.setAttribute("aria-label", on ? "Pause" : "Play");
  byId("play-icon").setAttribute("d", on ? "M6 4h4v16H6zM14 4h4v16h-4z" : "M7 4l14 8-14 8z");
  if (!on) { speak(); return; }
  if (state.time >= last) setTime(first);
  before = performance.now();
  requestAnimationFrame(tick);
}

// Controls ------------------------------------------------------------------------------------

function redraw() { stale = true; draw(); speak(); nameSelects(); }

function fill(select, options, chosen) {
  for (const [value, label] of options) {
    const option = document.createElement("option");
    option.value = value; option.textContent = label;
    select.append(option);
  }
  select.value = String(chosen);
}

function nameSelects() { // a name may be cut: all of it is in the title
  for (const select of document.querySelectorAll("select")) select.title = select.selectedOptions[0]?.textContent ?? "";
}

function setPaths(on) { state.paths = on; byId("paths").checked = on; redraw(); }

function follow(person) {
  state.traced = person;
  byId("clear").disabled = person === null;
  canvas.dataset.traced = person === null ? "" : String(person);
  byId("followed").hidden = person === null;
  for (const panel of panels) panel.traced.setAttribute("d", tracedPath(panel.feature));
  redraw();
}

const followNext = () => follow(state.traced === null ? 0 : (state.traced + 1) % people);

function nearestPerson(x, y) {
  const [frame, share] = frameAt(state.time);
  let best = null, least = 18 ** 2;
  for (let person = 0; person < people; person++) {
    const dx = atX(place(state.across, person, frame, share)) - x, dy = atY(place(state.up, person, frame, share)) - y;
    if (dx * dx + dy * dy < least) { least = dx * dx + dy * dy; best = person; }
  }
  return best;
}

function setAxis(which, axis) {
  const other = which === "across" ? "up" : "across";
  if (axis === state[other]) { state[other] = state[which]; byId(other).value = String(state[other]); }
  state[which] = axis;
  if (axis === TIME && !state.paths) setPaths(true); else redraw();
}

function connect() {
  const axes = [...data.features.map((name, k) => [k, name]), [TIME, data.timeName === "time" ? "time" : `${data.timeName} (time)`]];
  fill(byId("across"), axes, state.across);
  fill(byId("up"), axes, state.up);
  fill(byId("colour"), [[-1, "one colour"], ...data.features.map((name, k) => [k, name])], state.colour);
  const counts = [1, 10, 50, 200].filter((count) => count < people);
  state.many = counts.at(-1 - (counts.length > 3)) ?? people;
  fill(byId("many"), [...counts.map((count) => [count, count === 1 ? "one person" : `${count} people`]), [people, `all ${people} people`]], state.many);
  for (const which of ["across", "up"]) byId(which).addEventListener("change", (e) => setAxis(which, Number(e.target.value)));
  byId("colour").addEventListener("change", (e) => { setColour(Number(e.target.value)); });
  byId("many").addEventListener("change", (e) => { state.many = Number(e.target.value); setPaths(true); });
  byId("paths").addEventListener("change", (e) => setPaths(e.target.checked));
  for (const id of ["real", "synthetic"]) byId(id).addEventListener("change", redraw);
  byId("trace").addEventListener("click", followNext);
  byId("clear").addEventListener("click", () => follow(null));
  slider.addEventListener("input", () => { if (state.playing) setPlaying(false); setTime(first + Number(slider.value) / 1000 * (last - first)); });
  slider.setAttribute("aria-label", data.timeName);
  play.addEventListener("click", () => setPlaying(!state.playing));
  canvas.addEventListener("click", (e) => { const box = canvas.getBoundingClientRect(); follow(nearestPerson(e.clientX - box.left, e.clientY - box.top)); });
  canvas.addEventListener("keydown", (event) => onKey(event));
  document.querySelector("form.controls").addEventListener("submit", (e) => e.preventDefault());
  for (const t of data.knots) {
    const line = document.createElementNS(SVG, "line"), x = (t - first) / (last - first) * 1000;
    for (const [name, value] of [["x1", x], ["x2", x], ["y1", 0], ["y2", 6]]) line.setAttribute(name, value);
    byId("knots").append(line);
  }
  for (let k = 0; k < 64; k++) {
    const cell = document.createElementNS(SVG, "rect");
    for (const [name, value] of [["x", k], ["width", 1.2], ["height", 4]]) cell.setAttribute(name, value);
    byId("ramp").querySelector("svg").append(cell);
  }
  for (const id of ["real-label", "synthetic-label"]) byId(id).hidden = !real;
}

function setColour(feature) {
  state.colour = feature;
  byId("ramp").hidden = feature < 0;
  rankPeople(); redraw();
}

function onKey(event, others = {}) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const step = (last - first) / (event.shiftKey ? 10 : 50);
  const acts = {
    " ": () => setPlaying(!state.playing),
    ArrowLeft: () => setTime(state.time - step), ArrowDown: () => setTime(state.time - step),
    ArrowRight: () => setTime(state.time + step), ArrowUp: () => setTime(state.time + step),
    Home: () => setTime(first), End: () => setTime(last),
    n: followNext, p: () => setPaths(!state.paths), Escape: () => follow(null), ...others,
  };
  const act = acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
  if (act) { event.preventDefault(); act(); }
}

function applyTheme() {
  readTheme();
  const dark = isDark();
  byId("theme").textContent = dark ? "Light theme" : "Dark theme";
  byId("ramp").querySelectorAll("rect").forEach((cell, k) => cell.setAttribute("fill", theme.shades[Math.floor(k / 64 * SHADES)]));
  redraw();
}

function start() {
  const map = data.maps[0];
  if (features === 1) Object.assign(state, { across: TIME, up: 0 });
  else if (map) Object.assign(state, { across: map[0], up: map[1] });
  state.colour = real ? -1 : state.up;
  if (features === 0) Object.assign(state, { across: TIME, up: TIME, colour: -1 });
  byId("explorer").hidden = features === 0;
  byId("theme").hidden = false;
  connect();
  rankPeople();
  byId("ramp").hidden = state.colour < 0;
  if (features === 1) state.paths = byId("paths").checked = true;
  byId("theme").addEventListener("click", () => { root.dataset.theme = isDark() ? "light" : "dark"; applyTheme(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", applyTheme);
  addEventListener("beforeprint", () => { start.theme = root.dataset.theme; root.dataset.theme = "light"; applyTheme(); });
  addEventListener("afterprint", () => { if (start.theme) root.dataset.theme = start.theme; else delete root.dataset.theme; applyTheme(); });
  applyTheme();
  setTime(first);
  new ResizeObserver(() => { stale = true; draw(); }).observe(byId("frame"));
}

start();
})();
