
// People of a released model, drawn in the page as TrajectoryModel.sample draws them: each goes
// along one of the model's curves, with an offset of their own (report/people.py says what is here).
const People = (() => {
const BLOCK = 2048; // people between two looks at the clock

class Chance { // sfc32, seeded by splitmix32: the same seed, the same people
  constructor(seed) {
    let state = (seed >>> 0) ^ Math.imul(Math.floor(seed / 2 ** 32), 0x9e3779b1);
    const mixed = () => {
      state = (state + 0x9e3779b9) | 0;
      let t = state ^ (state >>> 16);
      t = Math.imul(t, 0x21f0aaad); t ^= t >>> 15;
      t = Math.imul(t, 0x735a2d97); t ^= t >>> 15;
      return t | 0;
    };
    [this.a, this.b, this.c, this.d] = [mixed(), mixed(), mixed(), 1];
    for (let k = 0; k < 16; k++) this.uniform();
  }

  bits() {
    const t = (this.a + this.b + this.d) | 0;
    this.d = (this.d + 1) | 0;
    this.a = this.b ^ (this.b >>> 9);
    this.b = (this.c + (this.c << 3)) | 0;
    this.c = ((this.c << 21) | (this.c >>> 11)) + t | 0;
    return t >>> 0;
  }

  uniform() { return (this.bits() * 2 ** 21 + (this.bits() >>> 11)) / 2 ** 53; }

  below(count) { return Math.floor(this.uniform() * count); }

  normal() { return Math.sqrt(-2 * Math.log(1 - this.uniform())) * Math.cos(2 * Math.PI * this.uniform()); } // Box and Muller

  spread(count, n) { // which of `count` each of n has: as many of each, up to one, in any order
    const shift = this.uniform();
    const chosen = Int32Array.from({ length: n }, (_, i) => Math.min(Math.floor((i + shift) / n * count), count - 1));
    for (let i = n - 1; i > 0; i--) {
      const j = this.below(i + 1), mine = chosen[i];
      chosen[i] = chosen[j]; chosen[j] = mine;
    }
    return chosen;
  }
}

// Between the stops -----------------------------------------------------------------------------

const fold = (u) => { const even = 2 * Math.round(u / 2); return Math.abs(u - even); };

function slopes(places, stops) { // of a monotone cubic through each row of places (N, S), as in scipy's Pchip
  const count = stops.length, made = new Float32Array(places.length);
  const gap = Array.from({ length: count - 1 }, (_, j) => stops[j + 1] - stops[j]);
  const end = (h0, h1, m0, m1) => {
    const slope = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1);
    if (Math.sign(slope) !== Math.sign(m0)) return 0;
    return Math.sign(m0) !== Math.sign(m1) && Math.abs(slope) > 3 * Math.abs(m0) ? 3 * m0 : slope;
  };
  for (let row = 0; row < places.length; row += count) {
    const m = gap.map((h, j) => (places[row + j + 1] - places[row + j]) / h);
    if (count === 2) { made[row] = made[row + 1] = m[0]; continue; }
    for (let j = 1; j < count - 1; j++) {
      if (m[j - 1] * m[j] <= 0) continue;
      const w1 = 2 * gap[j] + gap[j - 1], w2 = gap[j] + 2 * gap[j - 1];
      made[row + j] = (w1 + w2) / (w1 / m[j - 1] + w2 / m[j]);
    }
    made[row] = end(gap[0], gap[1], m[0], m[1]);
    made[row + count - 1] = end(gap[count - 2], gap[count - 3], m[count - 2], m[count - 3]);
  }
  return made;
}

// One person ------------------------------------------------------------------------------------

class Sampler {
  constructor(given) {
    const whole = pairs(given.places), size = given.curves * given.stops.length;
    Object.assign(this, given);
    this.axes = given.columns.map((column, k) => {
      const places = Float32Array.from(whole.subarray(k * size, (k + 1) * size), (step) => step / STEPS);
      const levels = column.labels?.length ?? 0, moves = !levels && !column.fixed;
      return {
        ...column, levels, places,
        slopes: moves && given.spline ? slopes(places, given.stops) : null,
        draw: moves ? this.move : column.fixed ? this.stay : this.jump,
      };
    });
    this.shown = this.axes.flatMap((axis, k) => axis.of ? [] : [k]);
    this.at = {}; // the stop at which a fixed column is, by its name
    if (given.lives) this.ends = Float64Array.from(pairs(given.lives.ends), (step) => step / STEPS);
  }

  plan(times) { // what is the same for everybody; of each time: the stop before it, how long the way is, the share of it
    const { stops, range: [start, end] } = this;
    const places = times.map((time) => {
      const t = (time - start) / (end - start);
      let left = 0;
      while (left < stops.length - 2 && stops[left + 1] <= t) left++;
      const gap = stops[left + 1] - stops[left];
      return { t, left, gap, share: (t - stops[left]) / gap };
    });
    const order = places.map((_, q) => q).sort((a, b) => places[a].t - places[b].t);
    const widths = places.map(({ left, share }) => this.width[left] + share * (this.width[left + 1] - this.width[left]));
    return { places, order, widths };
  }

  move(axis, curve, plan, out, chance) { // a number: along the curve, plus an offset in one direction
    const row = curve * this.stops.length, own = chance.normal();
    let before = -1, at = 0, away = 0;
    for (const q of plan.order) {
      const { t, left, gap, share } = plan.places[q], a = axis.places[row + left], b = axis.places[row + left + 1];
      let u;
      if (axis.slopes) {
        const s = share, r = 1 - share;
        u = r * r * (1 + 2 * s) * a + s * s * (3 - 2 * s) * b
          + gap * s * r * (r * axis.slopes[row + left] - s * axis.slopes[row + left + 1]);
      } else {
        u = a + share * (b - a);
        if (this.diffusivity > 0 && share < 1) { // a Brownian bridge, walked from time to time
          const end = this.stops[left + 1];
          if (before !== left) { before = left; at = this.stops[left]; away = 0; }
          const rest = (end - t) / (end - at);
          away = away * rest + Math.sqrt(Math.max(0, this.diffusivity * (t - at) * rest)) * chance.normal();
          at = t;
          u += away;
        }
      }
      out[q] = axis.way ? clamp(u + this.steady * own, 0, 1) : fold(u + plan.widths[q] * own);
    }
  }

  stay(axis, curve, plan, out, chance) { // fixed: as at one stop of the curve, any of them
    const at = axis.kind === "sine" ? this.at[axis.of] : chance.below(this.stops.length);
    this.at[axis.name] = at;
    const u = axis.places[curve * this.stops.length + at];
    const value = axis.levels ? level(axis, u) : fold(u + this.steady * chance.normal());
    out.fill(value, 0, plan.places.length);
  }

  jump(axis, curve, plan, out, chance) { // a category: jumps between two stops at a time that is uniform
    const row = curve * this.stops.length;
    let before = -1, here = 0, there = 0, left = 0, passed = 0, stairs = false;
    for (const q of plan.order) {
      const { left: stop, share } = plan.places[q];
      if (stop !== before) {
        before = stop; passed = 0;
        here = level(axis, axis.places[row + stop]); there = level(axis, axis.places[row + stop + 1]);
        stairs = Math.max(here, there) < axis.ladder;
        left = here === there ? 0 : stairs ? Math.abs(there - here) : 1;
      }
      const due = passed < 1 ? (share - passed) / (1 - passed) : 1;
      for (let k = left; k > 0 && share > passed; k--) if (chance.uniform() < due) left--;
      passed = share;
      out[q] = stairs ? there - Math.sign(there - here) * left : left > 0 ? here : there;
    }
  }

  finish(states, q) { // from the unit cube to values that can be: NaN where a number is missing
    return this.shown.map((k) => {
      const axis = this.axes[k], state = states[k][q];
      if (axis.levels) return state;
      if (axis.flag !== null && states[axis.flag][q] === 1) return NaN;
      if (axis.sine !== null) {
        const turn = Math.atan2(states[axis.sine][q] - 0.5, state - 0.5) / (2 * Math.PI), period = axis.ends[1];
        return written(axis, (turn < 0 ? turn + 1 : turn) * period) % period;
      }
      const value = clamp(axis.low + state * (axis.high - axis.low), axis.low, axis.high);
      return written(axis, axis.offset === null ? value : Math.exp(value) - axis.offset); // of a log scale
    });
  }
}

const level = (axis, u) => clamp(Math.floor(u * axis.levels), 0, axis.levels - 1);

function inSteps(value, step, decimals, low, high) { // the nearest multiple of a step; as it is where there is none
  const first = Math.ceil(low / step - 1e-9), last = Math.floor(high / step + 1e-9), scale = 10 ** decimals;
  if (!(step > 0 && first <= last)) return clamp(value, low, high);
  return clamp(clamp(Math.round(value / step), first, last) * Math.round(step * scale) / scale, low, high) + 0; // no -0
}

function written(axis, value) { // days and whole numbers as they are, other numbers in steps
  if (axis.days) return clamp(Math.floor(value / 86400) * 86400, ...axis.ends);
  return inSteps(value, axis.step, axis.decimals, ...axis.ends);
}

function evenTimes([start, end], count, dates) { // as even as people write them: as privtraj sample --at
  const gap = (end - start) / (count - 1), power = Math.floor(Math.log10(gap / 100) + 1e-9);
  const unit = [86400, 3600, 60, 1].find((one) => one <= gap && start % one === 0 && end % one === 0);
  return Array.from({ length: count }, (_, k) => {
    if (k === 0 || k === count - 1) return k ? end : start;
    const even = start + k * gap;
    if (dates) return unit ? Math.floor(even / unit + 0.5) * unit : even;
    return inSteps(even, Number(`1e${power}`), Math.max(0, -power), start, end);
  });
}

// Many people -----------------------------------------------------------------------------------

function holds(condition, value) { // a level that may be, missing, or from low to high
  if (condition.levels) return condition.levels.includes(value);
  return condition.missing ? Number.isNaN(value) : condition.low > condition.high // of an angle, through 0
    ? value >= condition.low || value <= condition.high : value >= condition.low && value <= condition.high;
}

class TooFew extends Error {}

// people: how many.  times: in data units.  seed: a whole number.
// conditions: [{column, levels | missing | low, high, when: "always" | "first" | a time}], column among those of the table.
// Gives values: one Float64Array (people, times) for each column, levels of categories; present: (people, times) or null.
async function draw(sampler, { people, times, seed, conditions = [] }, pause = async () => {}) {
  const chance = new Chance(seed), count = times.length, { fewest } = sampler;
  const apart = conditions.filter(({ when }) => typeof when === "number").map(({ when }) => when);
  const plan = sampler.plan([...times, ...apart]), first = times.indexOf(Math.min(...times));
  const asked = conditions.map((one) => {
    const own = typeof one.when === "number" ? count + apart.indexOf(one.when) : first;
    return { ...one, at: one.when === "always" ? times.map((_, q) => q) : [own] };
  });
  const values = sampler.shown.map(() => new Float64Array(people * count));
  const present = sampler.lives ? new Uint8Array(people * count) : null;
  const states = sampler.axes.map(() => new Float64Array(plan.places.length));
  const curves = new Set();
  let kept = 0, tried = 0, held = 0;
  while (kept < people) {
    const left = (people - kept) * Math.max(tried, 1) / Math.max(held, 1);
    const batch = asked.length ? Math.ceil(Math.min(Math.max(1.2 * left, fewest.tried), 50 * fewest.tried)) : people;
    const chosen = chance.spread(sampler.curves, batch);
    const lives = sampler.lives && (sampler.lives.own ? chosen : chance.spread(sampler.ends.length / 2, batch));
    for (let i = 0; i < batch; i++) {
      if (i % BLOCK === 0) await pause(kept / people);
      sampler.axes.forEach((axis, k) => axis.draw.call(sampler, axis, chosen[i], plan, states[k], chance));
      const drawn = plan.places.map((_, q) => sampler.finish(states, q));
      if (!asked.every((one) => one.at.every((q) => holds(one, drawn[q][one.column])))) continue;
      held++; curves.add(chosen[i]);
      if (kept === people) continue;
      for (let q = 0; q < count; q++) {
        const row = kept * count + q, t = plan.places[q].t;
        drawn[q].forEach((value, k) => { values[k][row] = value; });
        if (present) present[row] = sampler.ends[2 * lives[i]] <= t && t <= sampler.ends[2 * lives[i] + 1];
      }
      kept++;
    }
    tried += batch;
    if (asked.length && (held < tried * fewest.share || curves.size < fewest.curves)) throw new TooFew();
  }
  return { people, times, values, present };
}

return { Sampler, draw, evenTimes, TooFew };
})();
