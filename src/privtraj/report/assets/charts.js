
// Pictures over time: bands of each number, stacked shares of each category, who goes where.
const BOX = { width: 380, left: 48, right: 292, top: 10, bottom: 200, heapLeft: 304, heapRight: 372 };
const CARD = { width: 380, left: 50, right: 372, top: 8, bottom: 186, node: 12 };
const PANELS = 60;

const area = (low, high) => `${line(low)}L${line(high.toReversed()).slice(1)}Z`;
const across = (box, time) => box.left + inShares(TIME, time) * (box.right - box.left);

function timeAxis(box, right) { // labels, and the fitted times
  const labels = labelsAcross(ticks(TIME, [0, 1], 4), scale([0, 1], box.left, box.right), box.bottom + 20, 0, right);
  return [...labels, ...data.knots.map((t) => path("knot", `M${across(box, t)} ${box.bottom}v5`))];
}

const percent = (share) => share > 0 && share < 0.001 ? "less than 0.1 %" : `${share >= 0.1 || share === 0 ? Math.round(100 * share) : Number((100 * share).toPrecision(2))} %`;

// Numbers ----------------------------------------------------------------------------------------

const panels = [];

function makePanel(feature) {
  const { left, top, bottom } = BOX, [low, high] = data.ranges[feature];
  const y = (share) => bottom - clamp((share - low) / (high - low), -0.02, 1.02) * (bottom - top);
  const at = data.times.map((time) => across(BOX, time)), name = data.features[feature];
  const curve = (which, away = () => 0) => at.map((x, k) => [x, y(quantile(feature, which, [k, 0]) + away(k))]);
  const marks = ticks(feature, [low, high], 6), doubt = data.doubt[feature];
  const shapes = [
    ...marks.map(([share]) => path("grid", `M${left} ${y(share)}H${BOX.heapRight}`)), ...labelsUp(marks, y, left), ...timeAxis(BOX, BOX.heapRight),
    path("b80", area(curve(0), curve(4))), path("b50", area(curve(1), curve(3))),
    ...(doubt ? [path("sure", area(curve(2, (k) => -doubt[k]), curve(2, (k) => doubt[k])))] : []),
    path("mid", line(curve(2))),
  ];
  const parts = { traced: path("traced", ""), cursor: path("cursor", ""), heap: path("density", "") };
  const words = `${name} over ${data.timeName}: median from ${text(feature, quantile(feature, 2, [0, 0]))} to ${text(feature, quantile(feature, 2, [frames - 1, 0]))}`;
  const svg = element("svg:svg", {
    class: "band", viewBox: `0 0 ${BOX.width} 230`, "data-feature": feature, role: "slider", tabindex: 0,
    "aria-label": words, "aria-valuemin": first, "aria-valuemax": last,
  }, ...shapes, ...Object.values(parts));
  svg.addEventListener("click", (event) => {
    const seen = svg.getBoundingClientRect(), x = (event.clientX - seen.left) / seen.width * BOX.width;
    if (x <= BOX.right + 6) setTime(inUnits(TIME, (x - left) / (BOX.right - left)));
  });
  svg.addEventListener("keydown", (event) => onKey(event, { Enter: () => {
    setAxis("up", feature); // in the large picture
    canvas.focus({ preventScroll: true });
    byId("people").scrollIntoView();
  } }));
  panels.push({ svg, feature, y, ...parts });
  return element("figure", { class: "card" }, element("figcaption", {}, name, element("small", {}, data.lacking[feature])), svg);
}

function heapPath(at, mixed) { // between a density and its foot
  const { top, bottom, heapLeft, heapRight } = BOX, bins = data.densityBins, points = [];
  for (let k = 0; k < bins; k++) {
    const height = (density[at + k] * (1 - mixed) + (mixed ? density[at + bins + k] * mixed : 0)) / 255;
    points.push([heapLeft + height * (heapRight - heapLeft), bottom - (k + 0.5) / bins * (bottom - top)]);
  }
  return `${line([[heapLeft, bottom], ...points, [heapLeft, top]])}Z`;
}

function drawPanels() { // what follows the slider
  const x = across(BOX, state.time), [at, share] = frameAt(state.time), bins = data.densityBins;
  for (const { svg, feature, cursor, heap } of panels) {
    svg.setAttribute("aria-valuenow", state.time);
    svg.setAttribute("aria-valuetext", `${data.timeName} ${timeText(state.time)}, median ${text(feature, quantile(feature, 2, [at, share]))}`);
    cursor.setAttribute("d", `M${x} ${BOX.top}V${BOX.bottom}`);
    heap.setAttribute("d", heapPath((feature * frames + at) * bins, share));
  }
}

function tracePanels() { // the person followed
  const x = scale([0, 1], BOX.left, BOX.right), moments = momentsUntil(last);
  for (const { traced, feature, y } of panels) traced.setAttribute("d", state.traced === null ? "" : trail(state.traced, moments, [TIME, x], [feature, y]));
}

// Categories -------------------------------------------------------------------------------------

const height = (share) => CARD.bottom - share * (CARD.bottom - CARD.top);
const feet = (shares) => shares.reduce((sums, share) => [...sums, sums.at(-1) + share], [0]);
const picture = (words, shapes) => element("svg:svg", { class: "shares", role: "img", "aria-label": words, viewBox: `0 0 ${CARD.width} 214` }, ...shapes);

function table(caption, names, rows) {
  const row = (cells, kind) => element("tr", {}, ...cells.map((cell, k) => element(k && kind === "td" ? "td" : "th", { scope: kind === "td" ? "row" : "col", class: k ? "n" : "" }, cell)));
  const parts = [element("caption", {}, caption), element("thead", {}, row(names, "th")), element("tbody", {}, ...rows.map((cells) => row(cells, "td")))];
  return element("div", { class: "scroll" }, element("table", {}, ...parts));
}

const legend = (labels, shades) => element("ul", { class: "legend" }, ...labels.map((label, k) => element("li", {}, swatch(shades[k]), label)).reverse());

function stacked({ name, labels, shades, shares }) {
  const edges = shares.map(feet), x = data.times.map((time) => across(CARD, time));
  const edge = (k) => x.map((at, q) => [at, height(edges[q][k])]);
  const shapes = labels.map((label, k) => {
    const band = path(`layer level-${shades[k]}`, area(edge(k), edge(k + 1)));
    band.append(element("svg:title", {}, label));
    return band;
  });
  const most = [shares[0], shares.at(-1)].map((row) => `${labels[row.indexOf(Math.max(...row))]}, ${percent(Math.max(...row))}`);
  const marks = [0, 0.25, 0.5, 0.75, 1].map((share) => [share, percent(share)]);
  return picture(`Shares of the values of ${name} over ${data.timeName}: the most frequent is ${most[0]} at first, and ${most[1]} at last`, [...shapes, ...labelsUp(marks, height, CARD.left), ...timeAxis(CARD, CARD.right + 8)]);
}

function flow({ name, labels, shades, shares, flows, times }, stay) { // levels at three times, and a ribbon for each (from, to)
  const columns = times.at.map((at) => shares[at]), shapes = [];
  const x = columns.map((_, k) => CARD.left + k / Math.max(columns.length - 1, 1) * (CARD.right - CARD.node - CARD.left));
  flows.forEach((tableOf, step) => {
    const [from, to] = [x[step] + CARD.node, x[step + 1]], middle = (from + to) / 2;
    const into = labels.map((_, j) => feet(tableOf.map((row) => row[j]))), ends = feet(labels.map((_, j) => into[j].at(-1)));
    let leaves = 0;
    tableOf.forEach((row, i) => row.forEach((share, j) => {
      const [a, b, c, d] = [leaves, leaves + share, ends[j] + into[j][i], ends[j] + into[j][i] + share].map(height);
      leaves += share;
      if (share > 0.002) shapes.push(path(`ribbon level-${shades[i]}`, `M${point(from, a)}C${point(middle, a)} ${point(middle, c)} ${point(to, c)}L${point(to, d)}C${point(middle, d)} ${point(middle, b)} ${point(from, b)}Z`));
    }));
  });
  columns.forEach((column, k) => {
    const sums = feet(column);
    shapes.push(...column.map((share, j) => element("svg:rect", { class: `level-${shades[j]}`, x: x[k], y: height(sums[j + 1]), width: CARD.node, height: height(0) - height(share) })));
    const anchor = k === 0 ? "start" : k === columns.length - 1 ? "end" : "middle";
    shapes.push(label(times.labels[k], x[k] + CARD.node / 2, CARD.bottom + 20, anchor));
  });
  return picture(`Who changes ${name}: ${percent(stay)} of people have the same value at the first and the last time`, shapes);
}

function makeCategory(one) {
  const { name, fixed, labels, shades, shares, moves, times } = one, card = element("figure", { class: "card" }, element("figcaption", {}, name));
  if (fixed) {
    const rows = labels.map((label, k) => element("tr", {}, element("th", { scope: "row" }, label),
      element("td", { class: "wide" }, element("svg:svg", { class: "meter", viewBox: "0 0 100 10", preserveAspectRatio: "none", "aria-hidden": true },
        element("svg:rect", { class: "back", width: 100, height: 10 }), element("svg:rect", { class: `level-${shades[k]}`, width: 100 * shares[0][k], height: 10 }))),
      element("td", { class: "n" }, percent(shares[0][k]))));
    card.append(element("div", { class: "scroll" }, element("table", { class: "bars" }, element("tbody", {}, ...rows))));
    return card;
  }
  card.append(legend(labels, shades), stacked(one));
  const told = [table("Share of people", ["Value", ...times.labels], labels.map((label, k) => [label, ...times.at.map((at) => percent(shares[at][k]))]).reverse())];
  if (moves) {
    const stay = moves.reduce((sum, row, k) => sum + row[k], 0);
    const words = `Who changes, from ${times.labels[0]} to ${times.labels.at(-1)}: ${percent(stay)} end as they began, and a person changes ${Number(one.changes.toPrecision(2))} times on average.`;
    card.append(element("p", { class: "sub" }, words), flow(one, stay));
    told.push(table("Of those who begin with a value, the share that ends with another", ["From", ...labels], moves.map((row, k) => {
      const begin = feet(row).at(-1);
      return [labels[k], ...row.map((share) => begin ? percent(share / begin) : "nobody")];
    })));
  }
  card.append(element("details", {}, element("summary", {}, "As numbers"), ...told));
  return card;
}

// Answers: a number of everybody, or by the values of a category -----------------------------------

function answer() { // what the form asks: a picture as wide as there is room, and the same as a table
  const width = clamp(byId("answer").clientWidth - 40, 280, 1000), WIDE = { width, left: 58, right: width - 8, top: 10, bottom: 250 };
  const [what, by] = ["ask-column", "ask-by"].map((id) => Number(byId(id).value)), { at, texts, period, what: all } = data.answers;
  const [words, column] = all[what], { name, labels, shades, rows: every } = data.answers.by[by], rows = every[what];
  const asked = `${words}${words === "share" ? ` ${name} by ${period}` : ` by ${name && `${name}, `}${period}`}`;
  byId("answer").replaceChildren(element("figcaption", {}, "In words: ", element("code", {}, `privtraj ask MODEL "${asked}"`)));
  if (!rows) return; // the share of everybody
  const write = (value) => words === "share" ? percent(value) : column === null ? String(Math.round(value)) : text(column, inShares(column, value));
  const known = rows.flat().flat().filter((end) => end !== null), [low, high] = [Math.min(...known), Math.max(...known)];
  const room = 0.05 * (high - low) || Math.abs(high) / 20 || 1, range = [low - room, high + room], y = scale(range, WIDE.bottom, WIDE.top), x = at.map((time) => across(WIDE, time));
  const marks = known.length ? numberTicks(...range, 6).map(([value, mark]) => [value, words === "share" ? percent(value) : mark]) : [];
  const shapes = labels.flatMap((group, j) => {
    const there = x.flatMap((left, k) => rows[k][j][0] === null ? [] : [[left, ...rows[k][j]]]), sure = there.length && there.every(([, , end]) => end !== null);
    const band = sure && shades[j] !== "others" ? [path(`sure-of level-${shades[j]}`, area(there.map(([left, , end]) => [left, y(end)]), there.map(([left, , , end]) => [left, y(end)])))] : [];
    const middle = path(`mean edge-${shades[j]}`, line(there.map(([left, value]) => [left, y(value)])));
    middle.append(element("svg:title", {}, group));
    return [...band, middle];
  });
  const cells = labels.map((group, j) => [group, ...rows.map((row) => row[j][0] === null ? "lost" : `${write(row[j][0])}${row[j][1] === null ? "" : ` (${write(row[j][1])} to ${write(row[j][2])})`}`)]);
  byId("answer").prepend(
    ...(name ? [legend(...[labels, shades].map((each) => each.filter((_, j) => shades[j] !== "others").reverse()))] : []),
    element("svg:svg", { class: "shares", role: "img", "aria-label": `${asked}: as in the table`, viewBox: `0 0 ${WIDE.width} ${WIDE.bottom + 30}` },
      ...marks.map(([value]) => path("grid", `M${WIDE.left} ${y(value)}H${WIDE.right}`)), ...labelsUp(marks, y, WIDE.left), ...timeAxis(WIDE, WIDE.right + 2), ...shapes),
    table(asked, [name, ...texts], cells),
  );
}

byId("ask-column").append(...data.answers.what.map(([words, column], k) => new Option(column === null ? `${words} of people` : words.replace(" ", " of "), k)));
byId("ask-by").append(...data.answers.by.map(({ name }, k) => new Option(name || "everybody together", k)));
[byId("ask-by").value, byId("ask-column").value] = data.told.map(String);
for (const id of ["ask-column", "ask-by"]) byId(id).addEventListener("change", answer);
new ResizeObserver(answer).observe(byId("groups"));

byId("panels")?.append(...data.features.slice(0, PANELS).map((_, feature) => makePanel(feature)));
byId("shares")?.append(...data.categories.toSorted((a, b) => a.fixed - b.fixed).slice(0, PANELS).map(makeCategory)); // what never changes at the end
start();
