
// Long tables as files: CSV as `privtraj sample` writes it, and Parquet, plain and uncompressed.
// A table: {rows, columns: [{name, type, value(row)}]}; types are those of Arrow, null is missing.
const Tables = (() => {
const GROUP = 65536; // rows that are written at once
const FORMULA = /^('*[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20])/; // a spreadsheet would run it

// CSV -------------------------------------------------------------------------------------------

const quoted = (text) => `"${text.replace(FORMULA, "'$1").replaceAll('"', '""')}"`;
const day = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 10);

const moment = (digits) => (seconds) => { // with so many digits of a second
  const parts = Math.round(seconds * 10 ** digits), whole = Math.floor(parts / 10 ** digits);
  const text = new Date(whole * 1000).toISOString().slice(0, 19).replace("T", " ");
  return digits ? `${text}.${String(parts - whole * 10 ** digits).padStart(digits, "0")}` : text;
};

function dates(times) { // the coarsest type that tells all of them exactly
  const micros = times.map((time) => Math.round(time * 1e6));
  const units = { "date32[day]": 86400e6, "timestamp[s]": 1e6, "timestamp[ms]": 1e3 };
  const [type] = Object.entries(units).find(([, unit]) => micros.every((one) => one % unit === 0)) ?? [];
  return type ?? "timestamp[us]";
}

const TEXT = {
  int64: String, double: String, bool: String, string: quoted,
  "date32[day]": day, "timestamp[s]": moment(0), "timestamp[ms]": moment(3), "timestamp[us]": moment(6),
};

const cell = (type, value) => value === null ? "" : TEXT[type](value);
const shown = ({ type, value }, row) => type === "string" ? value(row) ?? "" : cell(type, value(row));

function csv(table) { // parts of a file
  const parts = [`${table.columns.map(({ name }) => quoted(name)).join(",")}\n`];
  for (let start = 0; start < table.rows; start += GROUP) {
    const lines = [];
    for (let row = start; row < Math.min(start + GROUP, table.rows); row++) {
      lines.push(table.columns.map(({ type, value }) => cell(type, value(row))).join(","));
    }
    parts.push(`${lines.join("\n")}\n`);
  }
  return parts;
}

// Bytes, and Thrift's compact protocol in which Parquet says what it holds -------------------------

class Bytes {
  constructor() { this.view = new DataView(new ArrayBuffer(1024)); this.length = 0; }

  room(count) { // where the next `count` bytes go
    const at = this.length;
    if (at + count > this.view.byteLength) {
      const larger = new Uint8Array(2 * (at + count));
      larger.set(this.done());
      this.view = new DataView(larger.buffer);
    }
    this.length += count;
    return at;
  }

  byte(value) { const at = this.room(1); this.view.setUint8(at, value); }
  int32(value) { const at = this.room(4); this.view.setInt32(at, value, true); }
  int64(value) { const at = this.room(8); this.view.setBigInt64(at, BigInt(value), true); }
  double(value) { const at = this.room(8); this.view.setFloat64(at, value, true); }
  add(bytes) { const at = this.room(bytes.length); new Uint8Array(this.view.buffer).set(bytes, at); }
  varint(value) { while (value > 127) { this.byte(value % 128 | 128); value = Math.floor(value / 128); } this.byte(value); }
  text(text) { const bytes = new TextEncoder().encode(text); this.varint(bytes.length); this.add(bytes); }
  done() { return new Uint8Array(this.view.buffer, 0, this.length); }
}

const [TRUE, FALSE, I32, I64, BINARY, LIST, STRUCT] = [1, 2, 5, 6, 8, 9, 12];
const i32 = (value) => ({ kind: I32, write: (to) => to.varint(2 * value) }); // zigzag; none is negative
const i64 = (value) => ({ kind: I64, write: (to) => to.varint(2 * value) });
const bool = (value) => ({ kind: value ? TRUE : FALSE, write: () => {} });
const text = (value) => ({ kind: BINARY, write: (to) => to.text(value) });
const list = (kind, items) => ({
  kind: LIST,
  write: (to) => {
    if (items.length < 15) to.byte(items.length << 4 | kind); else { to.byte(0xf0 | kind); to.varint(items.length); }
    items.forEach((item) => item.write(to));
  },
});
const struct = (fields) => ({ // {number of the field: value}, undefined ones are left out
  kind: STRUCT,
  write: (to) => {
    let before = 0;
    for (const [number, value] of Object.entries(fields)) {
      if (value === undefined) continue;
      to.byte((number - before) << 4 | value.kind); // all steps are below 16
      value.write(to);
      before = Number(number);
    }
    to.byte(0);
  },
});

// Parquet ---------------------------------------------------------------------------------------

const none = struct({});
const timestamp = (unit) => ({ // 1: thousandths of a second, 2: millionths; not of any time zone
  type: 2, logical: struct({ 8: struct({ 1: bool(false), 2: struct({ [unit]: none }) }) }),
  put: (to, value) => to.int64(Math.round(value * 1000 ** unit)),
});
const KINDS = { // physical type, converted and logical type, and how a value is written
  bool: { type: 0 },
  int64: { type: 2, put: (to, value) => to.int64(value) },
  double: { type: 5, put: (to, value) => to.double(value) },
  "date32[day]": { type: 1, converted: 6, logical: struct({ 6: none }), put: (to, value) => to.int32(Math.floor(value / 86400)) },
  "timestamp[s]": timestamp(1), "timestamp[ms]": timestamp(1), "timestamp[us]": timestamp(2), // Parquet has no seconds
  string: {
    type: 6, converted: 0, logical: struct({ 1: none }),
    put: (to, value) => { const bytes = new TextEncoder().encode(value); to.int32(bytes.length); to.add(bytes); },
  },
};
const OPTIONAL = 1, PLAIN = 0, RLE = 3;

function packedBits(to, bits) { // eight in a byte, the first lowest
  for (let k = 0; k < bits.length; k += 8) {
    let byte = 0;
    for (let j = 0; j < 8 && k + j < bits.length; j++) byte |= bits[k + j] << j;
    to.byte(byte);
  }
}

function page({ type, value }, start, end) { // which rows have a value, and the values
  const { put } = KINDS[type], there = [], found = [];
  for (let row = start; row < end; row++) {
    const cell = value(row);
    there.push(cell === null ? 0 : 1);
    if (cell !== null) found.push(cell);
  }
  const levels = new Bytes(), body = new Bytes();
  if (found.length === there.length) { levels.varint(2 * there.length); levels.byte(1); }
  else { levels.varint(2 * Math.ceil(there.length / 8) + 1); packedBits(levels, there); }
  body.int32(levels.length); body.add(levels.done());
  if (put) found.forEach((cell) => put(body, cell)); else packedBits(body, found.map(Number));
  const header = new Bytes();
  struct({
    1: i32(0), 2: i32(body.length), 3: i32(body.length),
    5: struct({ 1: i32(end - start), 2: i32(PLAIN), 3: i32(RLE), 4: i32(RLE) }),
  }).write(header);
  return [header.done(), body.done()];
}

function parquet(table) { // parts of a file
  const mark = new TextEncoder().encode("PAR1"), parts = [mark], groups = [];
  let place = 4;
  for (let start = 0; start < table.rows; start += GROUP) {
    const end = Math.min(start + GROUP, table.rows), from = place;
    const chunks = table.columns.map((column) => {
      const bytes = page(column, start, end), size = bytes[0].length + bytes[1].length;
      const meta = struct({
        1: i32(KINDS[column.type].type), 2: list(I32, [i32(PLAIN), i32(RLE)]), 3: list(BINARY, [text(column.name)]), 4: i32(0),
        5: i64(end - start), 6: i64(size), 7: i64(size), 9: i64(place),
      });
      const chunk = struct({ 2: i64(place), 3: meta });
      parts.push(...bytes);
      place += size;
      return chunk;
    });
    groups.push(struct({ 1: list(STRUCT, chunks), 2: i64(place - from), 3: i64(end - start) }));
  }
  const fields = table.columns.map(({ name, type }) => {
    const { type: physical, converted, logical } = KINDS[type];
    return struct({
      1: i32(physical), 3: i32(OPTIONAL), 4: text(name), 6: converted === undefined ? undefined : i32(converted), 10: logical,
    });
  });
  const schema = [struct({ 4: text("schema"), 5: i32(fields.length) }), ...fields], footer = new Bytes();
  struct({ 1: i32(2), 2: list(STRUCT, schema), 3: i64(table.rows), 4: list(STRUCT, groups), 6: text("privtraj") }).write(footer);
  const size = new Bytes();
  size.int32(footer.length);
  return [...parts, footer.done(), size.done(), mark];
}

return { csv, parquet, shown, dates };
})();
