
// The form that draws people, shows the first of them and hands over files; copying and printing.
(() => {
const given = JSON.parse(document.getElementById("data").textContent).sampler;
const byId = (id) => document.getElementById(id);
const SHOWN = 6; // rows of the table that the page shows
const LONGEST = 60; // letters of a value that are shown

class Mistake extends Error { // of a user: what is wrong, and in which field
  constructor(field, message) { super(message); this.field = field; }
}

// What the form says ----------------------------------------------------------------------------

function wholeNumber(id, low, high, what) {
  const field = byId(id), value = Number(field.value);
  if (field.value.trim() === "" || !Number.isInteger(value) || value < low || value > high) {
    throw new Mistake(field, `${what} must be a whole number from ${low} to ${high.toLocaleString("en")}.`);
  }
  return value;
}

function moment(text, dates) { // a number, or seconds of a date such as 2024-01-31 or 2024-01-31 12:30, in UTC
  if (!dates) return text.trim() === "" ? NaN : Number(text);
  const [, day, clock] = text.trim().match(/^(\d{4}-\d\d-\d\d)(?:[ T](\d\d:\d\d(?::\d\d(?:\.\d+)?)?)Z?)?$/) ?? [];
  return Date.parse(`${day}T${clock ?? "00:00"}Z`) / 1000;
}

function timeOf(field, text) {
  const [first, last] = given.range, ends = { [byId("draw-first").textContent]: first, [byId("draw-last").textContent]: last };
  const time = ends[text.trim()] ?? moment(text, given.datetime); // the ends as they are written, which may be rounded
  if (!(time >= first && time <= last)) {
    const form = given.datetime ? "dates such as 2024-01-31" : "numbers";
    throw new Mistake(field, `Times must be ${form}, from ${byId("draw-first").textContent} to ${byId("draw-last").textContent}.`);
  }
  return time;
}

function chosenTimes() {
  const which = document.querySelector("input[name=draw-times]:checked").value;
  if (which === "fitted") return given.times;
  if (which === "list") {
    const field = byId("draw-list"), words = field.value.split(given.datetime ? /[,;\n]+/ : /[\s,;]+/).filter((word) => word.trim());
    if (!words.length) throw new Mistake(field, "Give at least one time.");
    return words.map((word) => timeOf(field, word));
  }
  const count = wholeNumber("draw-count", 2, 10000, "The number of times");
  return People.evenTimes(given.range, count, given.datetime);
}

const sampler = given && new People.Sampler(given);
const shown = sampler && sampler.shown.map((k) => sampler.axes[k]);

function condition(row) {
  const find = (name) => row.querySelector(`[data-part=${name}]`);
  const column = Number(find("column").value), axis = shown[column], when = find("when").value;
  const asked = { column, when: when === "time" ? timeOf(find("time"), find("time").value) : when };
  if (axis.levels) {
    const levels = Array.from(find("values").querySelectorAll("input:checked"), (box) => Number(box.value));
    if (!levels.length) throw new Mistake(find("values").querySelector("input"), `Choose a value of ${axis.name}.`);
    return { ...asked, levels };
  }
  if (find("missing").checked) return { ...asked, missing: true };
  const [low, high] = ["low", "high"].map((end) => {
    const field = find(end), value = moment(field.value, axis.kind === "date");
    if (field.value.trim() !== "" && Number.isNaN(value)) {
      throw new Mistake(field, `${axis.name} must be ${axis.kind === "date" ? "a date such as 2024-01-31" : "a number"}, or left empty.`);
    }
    return field.value.trim() === "" ? null : value;
  });
  if (low === null && high === null) throw new Mistake(find("low"), `Say from where or to where ${axis.name} goes.`);
  if (low !== null && high !== null && low > high) throw new Mistake(find("low"), `The range of ${axis.name} is reversed: low goes first.`);
  return { ...asked, low: low ?? -Infinity, high: high ?? Infinity };
}

function request() {
  const times = chosenTimes(), most = Math.floor(given.cells / times.length / (shown.length + 2));
  return {
    people: wholeNumber("draw-people", 1, Math.max(most, 1), "With as many times, the number of people"), times,
    seed: wholeNumber("draw-seed", 0, Number.MAX_SAFE_INTEGER, "The seed"),
    conditions: Array.from(byId("draw-conditions").children, condition),
  };
}

// Conditions ------------------------------------------------------------------------------------

let made = 0;

function choice(text, level) { // a box to tick, with its words
  const label = document.createElement("label"), box = document.createElement("input");
  label.className = "choice";
  Object.assign(box, { type: "checkbox", value: level });
  const words = text ?? "(missing)";
  label.append(box, ` ${words.length > LONGEST ? `${words.slice(0, LONGEST - 1)}…` : words}`);
  return label;
}

function addCondition() {
  const row = byId("draw-condition").content.firstElementChild.cloneNode(true), number = ++made;
  const find = (name) => row.querySelector(`[data-part=${name}]`);
  for (const label of row.querySelectorAll("label")) {
    const field = find(label.dataset.for);
    field.id = `draw-${label.dataset.for}-${number}`;
    label.htmlFor = field.id;
  }
  find("column").append(...shown.map((axis, k) => new Option(axis.name, k)));
  const show = (name, on) => { find(name).closest(".part").hidden = !on; };
  const suit = () => {
    const axis = shown[Number(find("column").value)];
    find("values").querySelector(".values").replaceChildren(...(axis.labels ?? []).map(choice));
    show("values", axis.levels); show("low", !axis.levels); show("high", !axis.levels);
    show("missing", !axis.levels && axis.missing);
    find("missing").checked = false;
  };
  const timely = () => { show("time", find("when").value === "time"); };
  find("column").addEventListener("change", suit);
  find("when").addEventListener("change", timely);
  find("remove").addEventListener("click", () => { row.remove(); byId("draw-add").focus(); });
  suit(); timely();
  byId("draw-conditions").append(row);
  find("column").focus();
}

// The table -------------------------------------------------------------------------------------

function reader(axis, type, values) { // of a row of (people, times)
  if (!axis.levels) return (k) => Number.isNaN(values[k]) ? null : values[k];
  const told = { bool: (_, level) => level === 1, int64: Number, string: String }[type];
  const labels = axis.labels.map((label, level) => label === null ? null : told(label, level));
  return (k) => labels[values[k]];
}

function tableOf({ people, times, values, present }) {
  const count = times.length, rows = present && Uint32Array.from({ length: people * count }, (_, k) => k).filter((k) => present[k]);
  const at = rows ? (row) => rows[row] : (row) => row;
  const readers = [(k) => Math.floor(k / count), (k) => times[k % count], ...shown.map((axis, j) => reader(axis, given.types[j + 2], values[j]))];
  const types = given.types.with(1, given.datetime ? Tables.dates(times) : given.types[1]);
  const columns = readers.map((read, j) => ({ name: given.names[j], type: types[j], value: (row) => read(at(row)) }));
  return { rows: rows ? rows.length : people * count, columns };
}

function preview(table) {
  const first = { ...table, rows: Math.min(SHOWN, table.rows) };
  const line = (cells, kind) => {
    const row = document.createElement("tr");
    for (const cell of cells) { const made = document.createElement(kind); made.textContent = cell; row.append(made); }
    return row;
  };
  const head = line(first.columns.map(({ name }) => name), "th");
  for (const cell of head.children) cell.scope = "col";
  byId("draw-head").replaceChildren(head);
  byId("draw-rows").replaceChildren(...Array.from({ length: first.rows }, (_, row) => line(first.columns.map((column) => Tables.shown(column, row)), "td")));
  byId("draw-preview").hidden = false;
}

// Drawing and handing over ----------------------------------------------------------------------

const buttons = ["draw-csv", "draw-parquet", "draw-show"];
const say = (text, wrong) => { byId("draw-status").textContent = text; byId("draw-status").classList.toggle("wrong", Boolean(wrong)); };
const plural = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

async function drawn() { // the table, or null and words why not
  for (const field of byId("draw-form").querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  for (const id of buttons) byId(id).disabled = true;
  let last = performance.now();
  try {
    const asked = request();
    const people = await People.draw(sampler, asked, async (share) => {
      if (performance.now() - last < 100) return; // so that the page stays alive
      say(`Drawing: ${Math.round(100 * share)} %`);
      await new Promise((resume) => setTimeout(resume));
      last = performance.now();
    });
    const table = tableOf(people);
    say(`${plural(asked.people, "person", "people")} at ${plural(asked.times.length, "time", "times")}: ${plural(table.rows, "row", "rows")}.`);
    preview(table);
    return table;
  } catch (error) {
    if (error instanceof Mistake) {
      error.field.setAttribute("aria-invalid", "true");
      error.field.focus();
      say(error.message, true);
    } else if (error instanceof People.TooFew) {
      say("Too few people of the model are so, fewer than one in a thousand or than five of its curves: ask for less.", true);
    } else throw error;
    return null;
  } finally {
    for (const id of buttons) byId(id).disabled = false;
  }
}

async function handOver(name, kind, write) {
  const table = await drawn();
  if (!table) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(write(table), { type: kind }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  say(`${byId("draw-status").textContent} Written to ${name}.`);
}

// Copying and printing --------------------------------------------------------------------------

async function copy(button) {
  const source = byId(button.dataset.copies), note = byId("cite-status");
  try {
    await navigator.clipboard.writeText(source.textContent);
    note.textContent = "Copied.";
  } catch { // where a browser forbids it, the text is marked, ready to be copied by hand
    getSelection().selectAllChildren(source);
    note.textContent = document.execCommand("copy") ? "Copied." : "Marked: copy it with your browser.";
  }
}

function connect() {
  for (const button of document.querySelectorAll("button[data-copies]")) {
    button.hidden = false;
    button.addEventListener("click", () => copy(button));
  }
  if (byId("print")) {
    byId("print").hidden = false;
    byId("print").addEventListener("click", () => print());
  }
  addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details:not([open])")) { part.open = true; part.dataset.closed = ""; } });
  addEventListener("afterprint", () => { for (const part of document.querySelectorAll("details[data-closed]")) { part.open = false; delete part.dataset.closed; } });
  if (!given) return;
  byId("draw-form").hidden = false;
  byId("draw-form").addEventListener("submit", (event) => { event.preventDefault(); drawn(); });
  byId("draw-csv").addEventListener("click", () => handOver("paths.csv", "text/csv", Tables.csv));
  byId("draw-parquet").addEventListener("click", () => handOver("paths.parquet", "application/vnd.apache.parquet", Tables.parquet));
  byId("draw-add").addEventListener("click", addCondition);
  for (const [field, which] of [["draw-count", "even"], ["draw-list", "list"]]) {
    byId(field).addEventListener("input", () => { document.querySelector(`input[name=draw-times][value=${which}]`).checked = true; });
  }
}

connect();
})();
