
"use strict";
// What all pictures share (values, marks of axes, shapes, colours, the time of the slider), and the
// film: a picture of any two features in which everybody moves.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const root = document.documentElement;
const features = data.features.length, frames = data.times.length, people = data.people;
const TIME = features; // the axis that is no feature
const first = data.times[0], last = data.times[frames - 1];
const SECONDS = 14; // that the whole range plays for
const PATHS = 50; // people whose paths are drawn
const STEPS = 65535;
const LETTER = 7.2; // width of one on an axis

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const pairs = (text) => new Uint16Array(bytes(text).buffer);
const paths = pairs(data.paths); // (features, frames, people)
const bands = pairs(data.bands); // (features, 5, frames)
const density = bytes(data.density); // (features, frames, bins)
for (const one of data.categories) one.people = bytes(one.people); // (frames or 1, people)

const state = { time: first, across: 0, up: 1, paths: false, traced: null, playing: false };

// Numbers and times ------------------------------------------------------------------------------

const clamp = (value, low, high) => Math.min(high, Math.max(low, value));
const inUnits = (axis, share) => axis === TIME ? first + share * (last - first)
  : data.bounds[axis][0] + share * (data.bounds[axis][1] - data.bounds[axis][0]);
const inShares = (axis, value) => axis === TIME ? (value - first) / (last - first)
  : (value - data.bounds[axis][0]) / (data.bounds[axis][1] - data.bounds[axis][0]);
const nameOf = (axis) => axis === TIME ? data.timeName : data.features[axis];
const isDate = (axis) => axis === TIME ? data.datetime : data.dates[axis];
const iso = (seconds) => new Date(seconds * 1000).toISOString().replace("T", " ");

function text(axis, share) {
  const value = inUnits(axis, share), span = inUnits(axis, 1) - inUnits(axis, 0);
  if (isDate(axis)) return iso(value).slice(0, span > 3 * 86400 ? 10 : span > 300 ? 16 : 19);
  if (!(Math.abs(value) < 1e15) || span < 1e-6) return String(Number(value.toPrecision(6)));
  return value.toFixed(clamp(2 - Math.floor(Math.log10(span)), 0, 8));
}

const timeText = (time) => text(TIME, inShares(TIME, time));

function numberTicks(low, high, most) { // multiples of 1, 2 or 5 times a power of ten
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * power).find((s) => s >= rough * 0.999), found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
    found.push([k * step, String(Number((k * step).toPrecision(10)))]);
  }
  return found;
}

function dateTicks(low, high, most) { // whole years, months, days or parts of a day
  const start = new Date(low * 1000), month = 12 * start.getUTCFullYear() + start.getUTCMonth();
  const span = (high - low) / most, day = 86400, year = 365.25 * day;
  const whole = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000, 12000].find((k) => k * year / 12 >= span) ?? 24000;
  const short = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, ...[1, 2, 3, 4, 7, 14].map((k) => k * day)].find((k) => k >= span);
  const marks = Array.from({ length: most + 3 }, (_, k) => {
    if (!short) {
      const at = (Math.floor(month / whole) + k) * whole, seconds = Date.UTC(Math.floor(at / 12), at % 12) / 1000;
      return [seconds, iso(seconds).slice(0, whole % 12 ? 7 : 4)];
    }
    const at = (Math.floor(low / short) + k) * short;
    return [at, short >= day ? iso(at).slice(0, 10) : at % day === 0 ? iso(at).slice(5, 10) : iso(at).slice(11, short < 60 ? 19 : 16)];
  });
  return marks.filter(([at]) => at >= low - 1 && at <= high + 1);
}

function ticks(axis, range, most) { // [share of the box, label]
  const [low, high] = range.map((share) => inUnits(axis, share));
  const found = isDate(axis) ? dateTicks(Math.max(low, inUnits(axis, 0)), Math.min(high, inUnits(axis, 1)), most) : numberTicks(low, high, most);
  return found.map(([value, label]) => [inShares(axis, value), label]);
}

function frameAt(time) {
  const after = data.times.findIndex((t) => t > time), low = after < 1 ? (after ? frames - 2 : 0) : after - 1;
  return [low, clamp((time - data.times[low]) / (data.times[low + 1] - data.times[low]), 0, 1)];
}

const quantile = (feature, which, [frame, share]) => {
  const at = (feature * 5 + which) * frames + frame;
  return (bands[at] * (1 - share) + (share ? bands[at + 1] * share : 0)) / STEPS;
};

function place(axis, person, [frame, share]) { // as a share of the box
  if (axis === TIME) return inShares(TIME, data.times[frame] + share * ((data.times[frame + 1] ?? last) - data.times[frame]));
  const at = (axis * frames + frame) * people + person, here = paths[at] / STEPS;
  if (!share) return here;
  const way = paths[at + people] / STEPS - here;
  if (!data.angles[axis]) return here + share * way;
  const turned = here + share * (way - Math.round(way)); // the short way round
  return turned - Math.floor(turned);
}

const turns = (axis, person, before, here) => data.angles[axis] && Math.abs(place(axis, person, here) - place(axis, person, before)) > 0.5; // an angle begins again

// Shapes -----------------------------------------------------------------------------------------

function element(kind, attributes, ...children) { // of HTML or, where it begins with "svg:", of a picture
  const made = kind.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", kind.slice(4)) : document.createElement(kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

const point = (x, y) => `${x.toFixed(1)} ${y.toFixed(1)}`;
const line = (points) => points.length ? `M${points.map(([x, y]) => point(x, y)).join("L")}` : "";
const path = (name, d, more = {}) => element("svg:path", { class: name, d, ...more });
const swatch = (shade) => element("svg:svg", { viewBox: "0 0 24 12", "aria-hidden": true }, element("svg:rect", { class: `level-${shade}`, width: 24, height: 12, rx: 2 }));
const scale = ([low, high], from, to) => (share) => from + (share - low) / (high - low) * (to - from);

function label(words, x, y, anchor, most = Infinity, name = "") { // no wider than most
  const narrow = words.length * LETTER > most ? { textLength: most, lengthAdjust: "spacingAndGlyphs" } : {};
  return element("svg:text", { class: name, x, y, "text-anchor": anchor, ...narrow }, words);
}

function labelsAcross(marks, x, y, left, right) { // those that would run into another are left out
  let free = left;
  return marks.flatMap(([share, words]) => {
    const half = LETTER * words.length / 2, middle = clamp(x(share), left + half, right - half);
    if (middle - half < free) return [];
    free = middle + half + LETTER;
    return [label(words, middle, y, "middle")];
  });
}

const labelsUp = (marks, y, left) => marks.map(([share, words]) => label(words, left - 8, y(share) + 4, "end", left - 11));

function trail(person, moments, ...ways) { // the text of a path; ways: axis and scale, across and up
  const jumps = (k) => k === 0 || ways.some(([axis]) => turns(axis, person, moments[k - 1], moments[k]));
  return moments.map((at, k) => `${jumps(k) ? "M" : "L"}${point(...ways.map(([axis, to]) => to(place(axis, person, at))))}`).join("");
}

const momentsUntil = (time) => [...data.times.flatMap((t, frame) => t <= time ? [[frame, 0]] : []), ...(time < last ? [frameAt(time)] : [])];

// Colours ----------------------------------------------------------------------------------------

const VIRIDIS = ["440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725"]
  .map((hex) => [0, 2, 4].map((k) => parseInt(hex.slice(k, k + 2), 16)));
const SHADES = 24;
const darkBrowser = matchMedia("(prefers-color-scheme: dark)");
const theme = {}; // what the canvas has of it

function setTheme(name) {
  root.dataset.theme = name;
  const style = getComputedStyle(root), dark = name === "dark";
  const colour = (of) => style.getPropertyValue(`--${of}`).trim();
  for (const of of ["card", "dot", "traced"]) theme[of] = colour(of);
  theme.shades = Array.from({ length: SHADES }, (_, shade) => { // the ends that would vanish in the background are left out
    const share = (dark ? 0.22 : 0) + (dark ? 0.78 : 0.84) * shade / (SHADES - 1);
    const at = share * (VIRIDIS.length - 1), i = Math.min(Math.floor(at), VIRIDIS.length - 2);
    return `rgb(${VIRIDIS[i].map((c, k) => Math.round(c + (at - i) * (VIRIDIS[i + 1][k] - c))).join(",")})`;
  });
  theme.levels = data.categories.map(({ shades }) => shades.map((shade) => colour(`level-${shade}`)));
  byId("theme").textContent = dark ? "Light theme" : "Dark theme";
  byId("ramp").querySelectorAll("rect").forEach((cell, k) => cell.setAttribute("fill", theme.shades[k]));
  redraw();
}

// By a number: ranks at the first time. By a category: what people have at each time; who has none of the ticked values is hidden.
let ranks = null, category = null, hidden = new Set();

const levelOf = ({ people: levels }, person, frame) => levels[levels.length === people ? person : frame * people + person];
const shadeOf = (person, frame) => category ? levelOf(category, person, frame) : ranks ? ranks[person] : 0;
const colours = () => category ? theme.levels[data.categories.indexOf(category)] : ranks ? theme.shades : [theme.dot];
const seen = (person, frame) => !(category && hidden.has(levelOf(category, person, frame)));

function setColour(axis) { // -1: one colour; categories come after the numbers
  ranks = axis < 0 || axis >= features ? null : new Uint8Array(people);
  category = data.categories[axis - features] ?? null;
  hidden = new Set();
  byId("ramp").hidden = !ranks;
  if (ranks) {
    const order = Array.from({ length: people }, (_, p) => p);
    order.sort((a, b) => place(axis, a, [0, 0]) - place(axis, b, [0, 0]));
    order.forEach((person, rank) => { ranks[person] = Math.floor(rank * SHADES / people); });
  }
  byId("ticks").hidden = !category;
  byId("ticks").replaceChildren(...(category?.labels ?? []).map((words, k) => {
    const box = element("input", { type: "checkbox", checked: "" });
    box.addEventListener("change", () => { hidden[box.checked ? "delete" : "add"](k); redraw(); });
    return element("label", { class: "check" }, box, swatch(category.shades[k]), words);
  }).reverse());
  redraw();
}

// The stage: what stands still is a picture, and who moves is drawn on a canvas over it ------------

const canvas = byId("stage"), pen = canvas.getContext("2d");
let view = null;

const reach = data.features.map((_, axis) => { // what all who are drawn are in
  let [low, high] = [STEPS, 0];
  for (let k = axis * frames * people; k < (axis + 1) * frames * people; k++) {
    low = Math.min(low, paths[k]); high = Math.max(high, paths[k]);
  }
  const room = Math.max(0.03 * (high - low), 1);
  return [(low - room) / STEPS, (high + room) / STEPS];
});

function makeView() {
  const fine = Math.max(1, window.devicePixelRatio || 1), width = canvas.clientWidth, height = canvas.clientHeight;
  [canvas.width, canvas.height] = [width, height].map((size) => Math.round(size * fine));
  const box = { left: 62, right: width - 22, top: 40, bottom: height - 52 };
  const axes = [state.across, state.up], ranges = axes.map((axis) => axis === TIME ? [-0.015, 1.015] : [...reach[axis]]);
  const map = data.maps.find(([i, j]) => axes.includes(i) && axes.includes(j));
  canvas.dataset.aspect = map ? "equal" : "fill";
  if (map) { // keeps its proportions
    const unit = axes.map((axis) => (data.bounds[axis][1] - data.bounds[axis][0]) * (axis === map[0] ? map[2] : 1));
    const room = [box.right - box.left, box.bottom - box.top];
    const pixels = Math.min(...room.map((r, k) => r / ((ranges[k][1] - ranges[k][0]) * unit[k])));
    ranges.forEach((range, k) => {
      const middle = (range[0] + range[1]) / 2, half = room[k] / pixels / unit[k] / 2;
      ranges[k] = [middle - half, middle + half];
    });
  }
  view = { fine, width, height, box, ranges, x: scale(ranges[0], box.left, box.right), y: scale(ranges[1], box.bottom, box.top) };
}

const ways = () => [[state.across, view.x], [state.up, view.y]];
const spot = (person, moment) => ways().map(([axis, to]) => to(place(axis, person, moment)));

function drawScene() {
  const { box, width, height, ranges, x, y } = view, ground = drawGround(), grid = ground.length ? "grid on-map" : "grid";
  const across = ticks(state.across, ranges[0], width < 480 ? 4 : 7), up = ticks(state.up, ranges[1], 6);
  byId("scene").replaceChildren(
    ...ground,
    ...across.map(([share]) => path(grid, `M${x(share)} ${box.top}V${box.bottom}`)), ...up.map(([share]) => path(grid, `M${box.left} ${y(share)}H${box.right}`)),
    ...labelsAcross(across, x, box.bottom + 20, 4, width - 6), ...labelsUp(up, y, box.left),
    label(nameOf(state.across), box.right, height - 12, "end", box.right - box.left, "name"),
    label(nameOf(state.up), 14, 24, "start", box.right - 14, "name"),
    inside(box.left - 4, box.top - 4, box.right + 4, box.bottom + 4, ...drawStill()),
  );
}

const inside = (left, top, right, bottom, ...shapes) => { // what is outside is cut off
  const [width, height] = [Math.max(right - left, 0), Math.max(bottom - top, 0)];
  return element("svg:svg", { x: left, y: top, width, height, viewBox: `${left} ${top} ${width} ${height}` }, ...shapes);
};

function drawStill() {
  if (state.paths) {
    const moments = momentsUntil(last);
    return Array.from({ length: people }, (_, person) => person).filter((person) => seen(person, 0)).slice(0, PATHS)
      .map((person) => path("walk", trail(person, moments, ...ways()), { stroke: colours()[shadeOf(person, 0)] }));
  }
  const dots = [], step = Math.max(1, Math.floor(frames / 24)), count = Math.min(people, 160);
  for (let frame = 0, k = 0; frame < frames; frame += step) { // where some are at all times, so that nobody moves in a void
    for (let i = 0; i < count; i++, k++) if (seen(k % people, frame)) dots.push(`M${point(...spot(k % people, [frame, 0]))}h0`); // others at each time: no path is dotted
  }
  return [path("others", dots.join(""))];
}

// The map behind longitude and latitude, and the domain that people stay in

for (const { layers } of data.backdrops) for (const layer of Object.values(layers)) layer.points = pairs(layer.points);

function drawGround() { // nothing where there is none
  const shown = data.backdrops.filter(({ axes }) => [state.across, state.up].every((axis) => axes.includes(axis)));
  let kilometre = 0; // in pixels
  canvas.dataset.map = shown.length ? "drawn" : "none";
  const shapes = shown.map(({ window: [west, east, south, north], frame, axes: [lon, lat], layers, globe }) => {
    const { box, x, y } = view, upright = state.across === lon;
    const at = (e, n) => upright ? [x(inShares(lon, e)), y(inShares(lat, n))] : [x(inShares(lat, n)), y(inShares(lon, e))];
    const along = (low, high, step) => low + step / STEPS * (high - low);
    const parts = Object.entries(layers).map(([kind, { points, sizes }]) => {
      let k = 0;
      const lines = sizes.map((size) => line(Array.from({ length: size }, () => at(along(frame[0], frame[1], points[2 * k]), along(frame[2], frame[3], points[2 * k++ + 1])))));
      return path(kind, lines.map((one) => one + (kind === "land" || kind === "area" ? "Z" : "")).join(""));
    });
    const [[left, bottom], [right, top]] = [at(west, south), at(east, north)];
    if (globe) parts.unshift(path("sea", `M${box.left} ${box.top}H${box.right}V${box.bottom}H${box.left}Z`));
    if (globe) kilometre = Math.abs(upright ? top - bottom : right - left) / (north - south) / 111.195;
    return inside(Math.max(left, box.left), Math.max(top, box.top), Math.min(right, box.right), Math.min(bottom, box.bottom), ...parts);
  });
  return kilometre ? [...shapes, ...ruler(kilometre)] : shapes;
}

function ruler(pixels) { // by those of a kilometre
  const { box } = view, most = (box.right - box.left) / 4 / pixels;
  if (most > 1500) return []; // no one scale is true of half a world
  const power = 10 ** Math.floor(Math.log10(most)), length = [5, 2, 1].map((k) => k * power).find((k) => k <= most);
  const to = box.right - 10, from = to - length * pixels, foot = box.bottom - 10;
  const words = length >= 1 ? `${length} km` : `${Math.round(length * 1000)} m`;
  return [path("ruler", `M${from} ${foot - 5}v5H${to}v-5`), label(words, (from + to) / 2, foot - 4, "middle", Infinity, "measure")];
}

// Who moves

function dot(on, x, y, size) { on.moveTo(x + size, y); on.arc(x, y, size, 0, 6.2832); }

function drawPeople() {
  const moment = frameAt(state.time), size = (people > 400 ? 2.7 : 3.4) * (view.width < 480 ? 0.8 : 1);
  const dots = colours().map(() => new Path2D());
  for (let person = 0; person < people; person++) if (seen(person, moment[0])) dot(dots[shadeOf(person, moment[0])], ...spot(person, moment), size);
  pen.globalAlpha = state.traced !== null ? 0.3 : 0.82;
  dots.forEach((shape, k) => { pen.fillStyle = colours()[k]; pen.fill(shape); });
  if (state.traced === null) return;
  pen.lineJoin = "round"; pen.strokeStyle = theme.traced;
  for (const [until, width, alpha] of [[last, 1.4, 0.55], [state.time, 3, 1]]) {
    pen.lineWidth = width; pen.globalAlpha = alpha;
    pen.stroke(new Path2D(trail(state.traced, momentsUntil(until), ...ways())));
  }
  pen.fillStyle = theme.traced; pen.strokeStyle = theme.card; pen.lineWidth = 2;
  pen.beginPath(); dot(pen, ...spot(state.traced, moment), 7); pen.fill(); pen.stroke();
}

function draw() {
  if (!view) return;
  const { box, fine, width, height } = view;
  pen.setTransform(fine, 0, 0, fine, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.save();
  pen.beginPath(); pen.rect(box.left - 4, box.top - 4, box.right - box.left + 8, box.bottom - box.top + 8); pen.clip();
  drawPeople();
  pen.restore();
}

function speak() { // what the picture shows, in words
  const at = frameAt(state.time), axes = [...new Set([state.across, state.up])].filter((axis) => axis !== TIME);
  const middle = axes.map((axis) => {
    const [low, half, high] = [1, 2, 3].map((which) => text(axis, quantile(axis, which, at)));
    return `median ${nameOf(axis)} ${half}, half of the people between ${low} and ${high}`;
  });
  let words = `At ${data.timeName} ${timeText(state.time)}: ${middle.join("; ")}.`;
  if (state.traced !== null) {
    words += ` Synthetic person ${state.traced + 1}: ${axes.map((axis) => `${nameOf(axis)} ${text(axis, place(axis, state.traced, at))}`).join(", ")}.`;
  }
  byId("readout").setAttribute("aria-live", state.playing ? "off" : "polite");
  byId("readout").textContent = words;
  canvas.setAttribute("aria-label", `${people} synthetic people, ${nameOf(state.up)} against ${nameOf(state.across)}. ${words}`);
}

function redraw() {
  if (canvas.clientWidth) { makeView(); drawScene(); }
  draw(); speak();
  for (const select of document.querySelectorAll("select")) select.title = select.selectedOptions[0]?.textContent ?? ""; // whole, if cut
}

// Time -------------------------------------------------------------------------------------------

const slider = byId("time");
const calm = matchMedia("(prefers-reduced-motion: reduce)");
let before = 0;

function setTime(time) {
  state.time = clamp(time, first, last);
  slider.value = String(Math.round(inShares(TIME, state.time) * 1000));
  slider.setAttribute("aria-valuetext", `${data.timeName} ${timeText(state.time)}`);
  byId("now").textContent = `${data.timeName.length < 12 ? `${data.timeName} ` : ""}${timeText(state.time)}`;
  canvas.dataset.time = String(state.time);
  draw(); drawPanels(); speak();
}

function tick(now) {
  if (!state.playing) return;
  const passed = (now - before) / 1000;
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
  byId("play").setAttribute("aria-label", on ? "Pause" : "Play");
  byId("play-icon").setAttribute("d", on ? "M6 4h4v16H6zM14 4h4v16h-4z" : "M7 4l14 8-14 8z");
  if (!on) { speak(); return; }
  if (state.time >= last) setTime(first);
  before = performance.now();
  requestAnimationFrame(tick);
}

// Controls ---------------------------------------------------------------------------------------

function setPaths(on) { state.paths = on; byId("paths").checked = on; redraw(); }

function setAxis(which, axis) { // the other one takes its place where both would be the same
  const other = which === "across" ? "up" : "across";
  if (axis === state[other]) state[other] = state[which];
  state[which] = axis;
  for (const each of ["across", "up"]) byId(each).value = String(state[each]);
  if (axis === TIME && !state.paths) setPaths(true); else redraw();
}

function follow(person) {
  state.traced = person;
  byId("clear").disabled = person === null;
  canvas.dataset.traced = person ?? "";
  tracePanels();
  redraw();
}

const followNext = () => follow(state.traced === null ? 0 : (state.traced + 1) % people);

function followNearest(event) {
  const box = canvas.getBoundingClientRect(), moment = frameAt(state.time);
  let best = null, least = 18;
  for (let person = 0; person < people; person++) {
    if (!seen(person, moment[0])) continue;
    const [x, y] = spot(person, moment), far = Math.hypot(x - event.clientX + box.left, y - event.clientY + box.top);
    if (far < least) { least = far; best = person; }
  }
  follow(best);
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

function start() {
  const map = data.maps[0], on = (id, kind, act) => byId(id).addEventListener(kind, act);
  Object.assign(state, features > 1 ? { across: map?.[0] ?? 0, up: map?.[1] ?? 1 } : { across: TIME, up: features ? 0 : TIME });
  state.paths = byId("paths").checked = features === 1;
  const rest = data.features.findIndex((_, k) => k !== state.across && k !== state.up);
  const colour = data.categories.length ? features + Math.max(data.told[0] - 1, 0) : rest;
  byId("explorer").hidden = features === 0;
  byId("theme").hidden = false;
  const axes = [...data.features.map((name, k) => [k, name]), [TIME, data.timeName === "time" ? "time" : `${data.timeName} (time)`]];
  for (const [id, options, chosen] of [["across", axes, state.across], ["up", axes, state.up], ["colour", [[-1, "one colour"], ...axes.slice(0, -1), ...data.categories.map(({ name }, k) => [features + k, name])], colour]]) {
    byId(id).append(...options.map(([value, label]) => new Option(label, value)));
    byId(id).value = String(chosen);
  }
  for (const which of ["across", "up"]) on(which, "change", (event) => setAxis(which, Number(event.target.value)));
  on("colour", "change", (event) => setColour(Number(event.target.value)));
  on("paths", "change", (event) => setPaths(event.target.checked));
  on("trace", "click", followNext);
  on("clear", "click", () => follow(null));
  on("time", "input", () => { if (state.playing) setPlaying(false); setTime(inUnits(TIME, Number(slider.value) / 1000)); });
  on("play", "click", () => setPlaying(!state.playing));
  on("stage", "click", followNearest);
  on("stage", "keydown", (event) => onKey(event));
  on("theme", "click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
  document.querySelector("form.controls").addEventListener("submit", (event) => event.preventDefault());
  slider.setAttribute("aria-label", data.timeName);
  byId("knots").append(...data.knots.map((t) => element("svg:line", { x1: 1000 * inShares(TIME, t), x2: 1000 * inShares(TIME, t), y1: 0, y2: 6 })));
  byId("ramp").querySelector("svg").append(...Array.from({ length: SHADES }, (_, k) => element("svg:rect", { x: k, width: 1.05, height: 4 })));
  const preferred = () => setTheme(darkBrowser.matches ? "dark" : "light");
  preferred();
  setColour(colour);
  setTime(first);
  darkBrowser.addEventListener("change", preferred);
  let printed = "";
  addEventListener("beforeprint", () => { printed = root.dataset.theme; setTheme("light"); });
  addEventListener("afterprint", () => setTheme(printed));
  new ResizeObserver(redraw).observe(byId("frame"));
}
