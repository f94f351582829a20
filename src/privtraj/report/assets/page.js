
"use strict";
// The film of people: a picture of any two features in which everybody moves with the slider.
const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const root = document.documentElement;
const features = data.features.length, frames = data.times.length, people = data.people;
const TIME = features; // the axis that is no feature
const first = data.times[0], last = data.times[frames - 1];
const SECONDS = 14; // that the whole range plays for at normal speed
const PATHS = 50; // people whose paths are drawn
const STEPS = 65535;

const bytes = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const pairs = (text) => new Uint16Array(bytes(text).buffer);
const paths = pairs(data.paths); // (features, frames, people)
const bands = pairs(data.bands); // (features, 5, frames)
const density = bytes(data.density); // (features, frames, bins)
const real = data.real && { ...data.real, points: pairs(data.real.points), density: bytes(data.real.density) };

const state = { time: first, across: 0, up: 1, colour: 0, paths: false, traced: null, playing: false };

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
const nearestKnot = (time) => data.knots.reduce((best, t, i) => Math.abs(t - time) < Math.abs(data.knots[best] - time) ? i : best, 0);

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

function element(kind, attributes, ...children) { // of HTML or, where it begins with "svg:", of a picture
  const made = kind.startsWith("svg:") ? document.createElementNS("http://www.w3.org/2000/svg", kind.slice(4)) : document.createElement(kind);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  made.append(...children);
  return made;
}

// Colours ----------------------------------------------------------------------------------------

const VIRIDIS = ["440154", "472d7b", "3b528b", "2c728e", "21918c", "28ae80", "5ec962", "addc30", "fde725"]
  .map((hex) => [0, 2, 4].map((k) => parseInt(hex.slice(k, k + 2), 16)));
const SHADES = 24;
const darkBrowser = matchMedia("(prefers-color-scheme: dark)");
const theme = {};

function setTheme(name) {
  root.dataset.theme = name;
  const style = getComputedStyle(root), dark = name === "dark";
  for (const colour of ["card", "ink", "muted", "line", "dot", "real", "traced", "land", "sea", "coast", "sans"]) {
    theme[colour] = style.getPropertyValue(`--${colour}`).trim();
  }
  theme.shades = Array.from({ length: SHADES }, (_, shade) => { // the ends that would vanish in the background are left out
    const share = (dark ? 0.22 : 0) + (dark ? 0.78 : 0.84) * shade / (SHADES - 1);
    const at = share * (VIRIDIS.length - 1), i = Math.min(Math.floor(at), VIRIDIS.length - 2);
    return `rgb(${VIRIDIS[i].map((c, k) => Math.round(c + (at - i) * (VIRIDIS[i + 1][k] - c))).join(",")})`;
  });
  byId("theme").textContent = dark ? "Light theme" : "Dark theme";
  byId("ramp").querySelectorAll("rect").forEach((cell, k) => cell.setAttribute("fill", theme.shades[k]));
  redraw();
}

let shadeOf = null; // of each person: their rank at the first time in the chosen feature

function setColour(feature) {
  state.colour = feature;
  byId("ramp").hidden = feature < 0;
  shadeOf = feature < 0 ? null : new Uint8Array(people);
  if (shadeOf) {
    const order = Array.from({ length: people }, (_, p) => p);
    order.sort((a, b) => place(feature, a, [0, 0]) - place(feature, b, [0, 0]));
    order.forEach((person, rank) => { shadeOf[person] = Math.floor(rank * SHADES / people); });
  }
  redraw();
}

const colourOf = (person) => shadeOf ? theme.shades[shadeOf[person]] : theme.dot;

// The stage --------------------------------------------------------------------------------------

const canvas = byId("stage"), pen = canvas.getContext("2d");
const still = document.createElement("canvas"); // axes and whole paths, drawn once per view
let view = null, stale = true;

const reach = data.features.map((_, axis) => { // what all who are drawn are in
  let [low, high] = real ? data.ranges[axis].map((share) => share * STEPS) : [STEPS, 0];
  for (let k = axis * frames * people; k < (axis + 1) * frames * people; k++) {
    low = Math.min(low, paths[k]); high = Math.max(high, paths[k]);
  }
  const room = Math.max(0.03 * (high - low), 1);
  return [(low - room) / STEPS, (high + room) / STEPS];
});

function makeView() {
  const scale = Math.max(1, window.devicePixelRatio || 1), width = canvas.clientWidth, height = canvas.clientHeight;
  for (const each of [canvas, still]) { each.width = Math.round(width * scale); each.height = Math.round(height * scale); }
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
  view = { scale, width, height, box, ranges };
}

const atX = (share) => view.box.left + (share - view.ranges[0][0]) / (view.ranges[0][1] - view.ranges[0][0]) * (view.box.right - view.box.left);
const atY = (share) => view.box.bottom - (share - view.ranges[1][0]) / (view.ranges[1][1] - view.ranges[1][0]) * (view.box.bottom - view.box.top);
const spot = (person, moment) => [atX(place(state.across, person, moment)), atY(place(state.up, person, moment))];

function clipBox(on, room) {
  const { box } = view;
  on.beginPath(); on.rect(box.left - room, box.top - room, box.right - box.left + 2 * room, box.bottom - box.top + 2 * room); on.clip();
}

function dot(on, x, y, size) { on.moveTo(x + size, y); on.arc(x, y, size, 0, 6.2832); }

function drawAxes(on) {
  const { box, width, height, ranges } = view;
  on.fillStyle = theme.card; on.fillRect(0, 0, width, height);
  const mapped = drawBackdrop(on);
  on.strokeStyle = mapped ? theme.coast : theme.line; on.fillStyle = theme.muted; on.lineWidth = 1;
  const gridLine = (left, top, right, bottom) => {
    on.globalAlpha = mapped ? 0.25 : 1;
    on.beginPath(); on.moveTo(left, top); on.lineTo(right, bottom); on.stroke();
    on.globalAlpha = 1;
  };
  on.font = `12.5px ${theme.sans}`;
  on.textAlign = "center"; on.textBaseline = "top";
  let free = -Infinity;
  for (const [share, label] of ticks(state.across, ranges[0], width < 480 ? 4 : 7)) {
    const x = Math.round(atX(share)) + 0.5, half = on.measureText(label).width / 2;
    if (x < box.left - 1 || x > box.right + 1) continue;
    gridLine(x, box.top, x, box.bottom);
    const middle = clamp(x, half + 4, width - half - 6);
    if (middle - half > free) { on.fillText(label, middle, box.bottom + 8); free = middle + half + 10; }
  }
  on.textAlign = "right"; on.textBaseline = "middle";
  for (const [share, label] of ticks(state.up, ranges[1], 6)) {
    const y = Math.round(atY(share)) + 0.5;
    if (y < box.top - 1 || y > box.bottom + 1) continue;
    gridLine(box.left, y, box.right, y);
    on.fillText(label, box.left - 9, y, box.left - 12);
  }
  on.fillStyle = theme.ink; on.font = `600 13.5px ${theme.sans}`; on.textBaseline = "alphabetic";
  on.fillText(nameOf(state.across), box.right, height - 12, box.right - box.left);
  on.textAlign = "left";
  on.fillText(nameOf(state.up), 14, 24, box.right - 14);
}

// The map behind longitude and latitude

const backdrop = data.backdrop && { ...data.backdrop };
for (const kind of backdrop ? ["land", "borders"] : []) backdrop[kind] = { ...backdrop[kind], points: pairs(backdrop[kind].points) };

function drawBackdrop(on) { // true where there is one
  const shown = Boolean(backdrop) && [state.across, state.up].every((axis) => backdrop.axes.includes(axis));
  canvas.dataset.map = shown ? "drawn" : "none";
  if (!shown) return false;
  const { window: seen, frame, axes: [lon, lat] } = backdrop, upright = state.across === lon, { box } = view;
  const at = (x, y) => upright ? [atX(inShares(lon, x)), atY(inShares(lat, y))] : [atX(inShares(lat, y)), atY(inShares(lon, x))];
  const along = (low, high, step) => low + step / STEPS * (high - low);
  const trace = ({ points, sizes }, closed) => {
    on.beginPath();
    let k = 0;
    for (const size of sizes) {
      for (let i = 0; i < size; i++, k++) on[i ? "lineTo" : "moveTo"](...at(along(frame[0], frame[1], points[2 * k]), along(frame[2], frame[3], points[2 * k + 1])));
      if (closed) on.closePath();
    }
  };
  const [[left, bottom], [right, top]] = [at(seen[0], seen[2]), at(seen[1], seen[3])];
  on.save();
  clipBox(on, 0);
  on.beginPath(); on.rect(left, top, right - left, bottom - top); on.clip(); // outlines are true in the window alone
  on.fillStyle = theme.sea; on.fillRect(box.left, box.top, box.right - box.left, box.bottom - box.top);
  on.fillStyle = theme.land; on.strokeStyle = theme.coast; on.lineWidth = 1; on.lineJoin = "round";
  trace(backdrop.land, true); on.fill("evenodd"); on.stroke();
  on.setLineDash([4, 3]); trace(backdrop.borders, false); on.stroke();
  on.restore();
  const pixels = Math.abs(upright ? top - bottom : right - left) / (seen[3] - seen[2]) / 111.195; // of a kilometre
  const most = (box.right - box.left) / 4 / pixels;
  if (most > 1500) return true; // no one scale is true of half a world
  const power = 10 ** Math.floor(Math.log10(most)), length = [5, 2, 1].map((k) => k * power).find((k) => k <= most);
  const to = box.right - 10, y = box.bottom - 10, from = to - length * pixels;
  on.strokeStyle = on.fillStyle = theme.ink; on.lineWidth = 1.5;
  on.beginPath(); on.moveTo(from, y - 5); on.lineTo(from, y); on.lineTo(to, y); on.lineTo(to, y - 5); on.stroke();
  on.font = `12px ${theme.sans}`; on.textAlign = "center"; on.textBaseline = "bottom";
  on.fillText(length >= 1 ? `${length} km` : `${Math.round(length * 1000)} m`, (from + to) / 2, y - 3);
  return true;
}

// People

function tracePath(on, person, until) {
  const moments = data.times.flatMap((time, frame) => time <= until ? [[frame, 0]] : []);
  if (until < last) moments.push(frameAt(until));
  const jumps = (k) => k === 0 || [state.across, state.up].some((axis) => turns(axis, person, moments[k - 1], moments[k]));
  on.beginPath();
  moments.forEach((moment, k) => on[jumps(k) ? "moveTo" : "lineTo"](...spot(person, moment)));
  on.stroke();
}

function drawStill() {
  const on = still.getContext("2d");
  on.setTransform(view.scale, 0, 0, view.scale, 0, 0);
  drawAxes(on);
  if (!byId("synthetic").checked) return;
  on.save(); clipBox(on, 4);
  if (state.paths) {
    on.lineWidth = 1; on.lineJoin = "round"; on.globalAlpha = 0.5;
    for (let person = 0; person < Math.min(PATHS, people); person++) { on.strokeStyle = colourOf(person); tracePath(on, person, last); }
  } else { // where some of the people are at all times, so that nobody moves in a void
    const step = Math.max(1, Math.floor(frames / 24)), count = Math.min(people, 160);
    on.fillStyle = theme.muted; on.globalAlpha = 0.1;
    on.beginPath();
    for (let frame = 0, k = 0; frame < frames; frame += step) {
      for (let i = 0; i < count; i++, k++) dot(on, ...spot(k % people, [frame, 0]), 1.5); // others at each time: no path is dotted
    }
    on.fill();
  }
  on.restore();
}

function drawReal() { // rings of the records at the nearest fitted time
  const bin = nearestKnot(state.time), start = real.starts[bin], count = real.counts[bin];
  pen.strokeStyle = theme.real; pen.lineWidth = 1.3; pen.globalAlpha = 0.75;
  for (let k = 0; k < count; k++) {
    const share = (axis) => axis === TIME ? inShares(TIME, data.knots[bin]) : real.points[start * features + axis * count + k] / STEPS;
    pen.beginPath(); dot(pen, atX(share(state.across)), atY(share(state.up)), 3.2); pen.stroke();
  }
}

function drawPeople() {
  const moment = frameAt(state.time), size = (people > 400 ? 2.7 : 3.4) * (view.width < 480 ? 0.8 : 1);
  const dots = Array.from({ length: shadeOf ? SHADES : 1 }, () => new Path2D());
  for (let person = 0; person < people; person++) dot(dots[shadeOf ? shadeOf[person] : 0], ...spot(person, moment), size);
  pen.globalAlpha = state.traced !== null ? 0.3 : real ? 0.55 : 0.82;
  dots.forEach((path, k) => { pen.fillStyle = shadeOf ? theme.shades[k] : theme.dot; pen.fill(path); });
  if (state.traced === null) return;
  pen.lineJoin = "round"; pen.strokeStyle = theme.traced;
  pen.lineWidth = 1.4; pen.globalAlpha = 0.55; tracePath(pen, state.traced, last);
  pen.lineWidth = 3; pen.globalAlpha = 1; tracePath(pen, state.traced, state.time);
  pen.fillStyle = theme.traced; pen.strokeStyle = theme.card; pen.lineWidth = 2;
  pen.beginPath(); dot(pen, ...spot(state.traced, moment), 7); pen.fill(); pen.stroke();
}

function draw() {
  if (!canvas.clientWidth) return;
  if (stale || !view) { makeView(); drawStill(); stale = false; }
  pen.setTransform(1, 0, 0, 1, 0, 0); pen.globalAlpha = 1;
  pen.drawImage(still, 0, 0);
  pen.setTransform(view.scale, 0, 0, view.scale, 0, 0);
  pen.save(); clipBox(pen, 4);
  if (real && byId("real").checked) drawReal();
  if (byId("synthetic").checked) drawPeople();
  pen.restore();
}

function speak() { // what the picture shows, in words
  const at = frameAt(state.time), axes = [...new Set([state.across, state.up])].filter((axis) => axis !== TIME);
  const middle = axes.map((axis) => {
    const [low, half, high] = [1, 2, 3].map((which) => text(axis, quantile(axis, which, at)));
    return `median ${nameOf(axis)} ${half}, half of the people between ${low} and ${high}`;
  });
  let words = `At ${data.timeName} ${timeText(state.time)}: ${middle.join("; ")}.`;
  if (real) {
    const bin = nearestKnot(state.time);
    words += ` Real records shown: ${real.counts[bin]} at ${timeText(data.knots[bin])}.`;
  }
  if (state.traced !== null) {
    words += ` Synthetic person ${state.traced + 1}: ${axes.map((axis) => `${nameOf(axis)} ${text(axis, place(axis, state.traced, at))}`).join(", ")}.`;
  }
  byId("readout").setAttribute("aria-live", state.playing ? "off" : "polite");
  byId("readout").textContent = words;
  canvas.setAttribute("aria-label", `${people} synthetic people, ${nameOf(state.up)} against ${nameOf(state.across)}. ${words}`);
}

function redraw() {
  stale = true; draw(); speak();
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
  state.colour = real || !features ? -1 : state.up;
  byId("explorer").hidden = features === 0;
  byId("theme").hidden = false;
  const axes = [...data.features.map((name, k) => [k, name]), [TIME, data.timeName === "time" ? "time" : `${data.timeName} (time)`]];
  for (const [id, options, chosen] of [["across", axes, state.across], ["up", axes, state.up], ["colour", [[-1, "one colour"], ...axes.slice(0, -1)], state.colour]]) {
    byId(id).append(...options.map(([value, label]) => new Option(label, value)));
    byId(id).value = String(chosen);
  }
  for (const which of ["across", "up"]) on(which, "change", (event) => setAxis(which, Number(event.target.value)));
  on("colour", "change", (event) => setColour(Number(event.target.value)));
  on("paths", "change", (event) => setPaths(event.target.checked));
  for (const id of ["real", "synthetic"]) on(id, "change", redraw);
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
  setColour(state.colour);
  setTime(first);
  darkBrowser.addEventListener("change", preferred);
  let printed = "";
  addEventListener("beforeprint", () => { printed = root.dataset.theme; setTheme("light"); });
  addEventListener("afterprint", () => setTheme(printed));
  new ResizeObserver(() => { stale = true; draw(); }).observe(byId("frame"));
}
