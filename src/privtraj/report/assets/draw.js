
// The form that draws people, shows the first of them and hands over a CSV file; copying and printing.
(() => {
const given = data.sampler;
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
  if (low !== null && high !== null && low > high && axis.kind !== "angle") throw new Mistake(find("low"), `The range of ${axis.name} is reversed: low goes first.`);
  return { ...asked, low: low ?? -Infinity, high: high ?? Infinity };
}

// Conditions ------------------------------------------------------------------------------------

let made = 0;

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
    const boxes = (axis.labels ?? []).map((label, level) => { // to tick, with their words
      const words = label ?? "(missing)", cut = words.length > LONGEST ? `${words.slice(0, LONGEST - 1)}…` : words;
      return element("label", { class: "choice" }, element("input", { type: "checkbox", value: level }), ` ${cut}`);
    });
    find("values").querySelector(".values").replaceChildren(...boxes);
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

// The table, as `privtraj sample` writes it ---------------------------------------------------------

const GROUP = 65536; // rows that are written at once
const FORMULA = /^('*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20])/; // a spreadsheet would run it
const quoted = (words) => `"${words.replace(FORMULA, "'$1").replaceAll('"', '""')}"`;

const DIGITS = { "date32[day]": null, "timestamp[s]": 0, "timestamp[ms]": 3, "timestamp[us]": 6 }; // of a second

function dateWriter(digits) { // of moments in seconds; null for days
  if (digits === null) return (time) => iso(time).slice(0, 10);
  return (time) => {
    const parts = Math.round(time * 10 ** digits), whole = Math.floor(parts / 10 ** digits);
    return iso(whole).slice(0, 19) + (digits ? `.${String(parts - whole * 10 ** digits).padStart(digits, "0")}` : "");
  };
}

function digitsOf(times) { // that tell all of them exactly
  const micros = times.map((time) => Math.round(time * 1e6));
  if (micros.every((one) => one % 86400e6 === 0)) return null;
  return [0, 3, 6].find((count) => micros.every((one) => one % 10 ** (6 - count) === 0));
}

function tableOf({ people: count, times, values, present }) { // cells: the texts of the k-th row of (people, times)
  const size = times.length, all = Uint32Array.from({ length: count * size }, (_, k) => k);
  const when = given.datetime ? dateWriter(digitsOf(times)) : String;
  const written = shown.map((axis, j) => {
    const type = given.types[j + 2], column = values[j];
    if (axis.levels) {
      const labels = axis.labels.map((label, level) => label === null ? "" : type === "bool" ? String(level === 1) : label);
      return (k) => labels[column[k]];
    }
    const write = axis.kind === "date" ? dateWriter(DIGITS[type]) : String;
    return (k) => Number.isNaN(column[k]) ? "" : write(column[k]);
  });
  const cells = [(k) => String(Math.floor(k / size)), (k) => when(times[k % size]), ...written];
  return { rows: present ? all.filter((k) => present[k]) : all, cells };
}

// Drawing and handing over ----------------------------------------------------------------------

const buttons = ["draw-csv", "draw-show"];
const say = (text, wrong) => { byId("draw-status").textContent = text; byId("draw-status").classList.toggle("wrong", Boolean(wrong)); };
const plural = (count, one, many) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;

async function drawn() { // rows and cells of the table, or null and words why not
  for (const field of byId("draw-form").querySelectorAll("[aria-invalid]")) field.removeAttribute("aria-invalid");
  for (const id of buttons) byId(id).disabled = true;
  let last = performance.now();
  try {
    const times = chosenTimes(), most = Math.floor(given.cells / times.length / (shown.length + 2));
    const asked = {
      people: wholeNumber("draw-people", 1, Math.max(most, 1), "With as many times, the number of people"), times,
      seed: wholeNumber("draw-seed", 0, Number.MAX_SAFE_INTEGER, "The seed"),
      conditions: Array.from(byId("draw-conditions").children, condition),
    };
    const made = await People.draw(sampler, asked, async (share) => {
      if (performance.now() - last < 100) return; // so that the page stays alive
      say(`Drawing: ${Math.round(100 * share)} %`);
      await new Promise((resume) => setTimeout(resume));
      last = performance.now();
    });
    const { rows, cells } = tableOf(made);
    say(`${plural(asked.people, "person", "people")} at ${plural(asked.times.length, "time", "times")}: ${plural(rows.length, "row", "rows")}.`);
    const few = table("The first rows", given.names, Array.from(rows.subarray(0, SHOWN), (k) => cells.map((cell) => cell(k))));
    byId("draw-preview").replaceChildren(few.firstElementChild);
    byId("draw-preview").hidden = false;
    return { rows, cells };
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

async function handOver() { // as a file, written in parts
  const made = await drawn();
  if (!made) return;
  const { rows, cells } = made, texts = given.types.map((type) => type === "string");
  const parts = [`${given.names.map(quoted).join(",")}\n`];
  for (let start = 0; start < rows.length; start += GROUP) {
    const lines = Array.from(rows.subarray(start, start + GROUP), (k) =>
      cells.map((cell, j) => texts[j] && cell(k) !== "" ? quoted(cell(k)) : cell(k)).join(","));
    parts.push(`${lines.join("\n")}\n`);
  }
  const link = element("a", { href: URL.createObjectURL(new Blob(parts, { type: "text/csv" })), download: "paths.csv" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  say(`${byId("draw-status").textContent} Written to paths.csv.`);
}

// Copying and printing --------------------------------------------------------------------------

for (const button of document.querySelectorAll("button[data-copies]")) {
  const source = byId(button.dataset.copies), note = byId("cite-status");
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(source.textContent);
      note.textContent = "Copied.";
    } catch { // where a browser forbids it, the text is marked, ready to be copied by hand
      getSelection().selectAllChildren(source);
      note.textContent = document.execCommand("copy") ? "Copied." : "Marked: copy it with your browser.";
    }
  });
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
byId("draw-csv").addEventListener("click", handOver);
byId("draw-add").addEventListener("click", addCondition);
for (const [field, which] of [["draw-count", "even"], ["draw-list", "list"]]) {
  byId(field).addEventListener("input", () => { document.querySelector(`input[name=draw-times][value=${which}]`).checked = true; });
}
})();
