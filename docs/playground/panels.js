// What the page says about the point, and about the rows of a file.
"use strict";

const MEANINGS = {
  familiar: "Like the training data",
  ambiguous: "Like the training data, but between two classes",
  doubtful: "Rare among the training data",
  unfamiliar: "Unlike the training data",
};
const SIGNS = { familiar: "●", ambiguous: "◐", doubtful: "◆", unfamiliar: "▲", invalid: "✕" };
// Codes and dimensions that are listed, as many as `dab explain` lists.
const TOP = 8;
// Weights and products below this are called so.
const NEGLIGIBLE = 0.0001;
// Classes that are listed.
const MOST_CLASSES = 3;
const PAGE = 100;
// Columns of outputs in the table; the download has all.
const MOST_OUTPUTS = 6;

const find = (id) => document.getElementById(id);

/** A new element with text inside `parent`. */
function add(parent, name, text = "", className = "") {
  const element = document.createElement(name);
  element.textContent = text;
  if (className) element.className = className;
  parent.append(element);
  return element;
}

/** Four significant digits of a number that matters. */
function brief(x) {
  return x > 0 && x < NEGLIGIBLE ? `<${NEGLIGIBLE}` : rounded(x);
}

/** A bar of a share (0 to 1) in a cell of its own. */
function addBar(row, share) {
  const bar = add(add(row, "td", "", "bar"), "i");
  bar.style.width = `${100 * Math.min(1, Math.max(0, share))}%`;
}

/** Indices by falling values, and by rising `ties` among equals. */
function descending(values, ties = values) {
  return Array.from(values.keys()).sort((a, b) => values[b] - values[a] || ties[a] - ties[b]);
}

/** What the model says about one input, as `dab explain` says it. */
class PointPanel {
  constructor() {
    this.latent = new Latent(find("latent"));
  }

  /** Shows an explanation, and returns its verdict in words. */
  show(engine, explanation) {
    const { uncertainty, p, verdict, saturated } = explanation;
    this.engine = engine;
    find("verdict").className = verdict ?? "none";
    find("verdict-word").textContent = verdict ? `${SIGNS[verdict]} ${verdict}` : "no verdict";
    find("uncertainty").textContent = engine.shortest(uncertainty);
    find("p-part").hidden = p === null;
    find("p-value").textContent = p === null ? "" : engine.shortest(p);
    find("verdict-meaning").textContent = saturated
      ? "This is the largest uncertainty that there is."
      : this.meaning(explanation);
    this.showOutputs(explanation);
    this.showCodes(explanation);
    this.showDimensions(explanation);
    this.latent.place(explanation);
    return `${verdict ?? "no verdict"}, ${rounded(uncertainty)} nats`;
  }

  /** Says why there is nothing to show. */
  refuse(words) {
    find("verdict").className = "invalid";
    find("verdict-word").textContent = `${SIGNS.invalid} invalid`;
    find("uncertainty").textContent = "–";
    find("p-part").hidden = true;
    find("verdict-meaning").textContent = words;
    find("outputs").textContent = "";
  }

  meaning({ uncertainty, p, verdict, between }) {
    if (!verdict) return "The model has no calibration table.";
    const { doubtfulAbove, unfamiliarAbove } = this.engine;
    const limit = (name, above) => {
      if (Number.isNaN(above)) return `${name} never (too few held-out scores for its rate)`;
      const much = uncertainty > above
        ? `exceeded by ${rounded(uncertainty - above)}`
        : `${rounded(above - uncertainty)} more`;
      return `${name} above ${rounded(above)} (${much})`;
    };
    const meaning = verdict === "ambiguous" ? `Between ${between.join(" and ")}` : MEANINGS[verdict];
    const how = this.engine.channels ? "strange" : "far";
    return `${meaning}; at most ${rounded(100 * p)} % of familiar inputs are this ${how}. `
      + `It becomes ${limit("doubtful", doubtfulAbove)}, ${limit("unfamiliar", unfamiliarAbove)}.`;
  }

  showOutputs({ outputs }) {
    const { task, outputNames } = this.engine;
    const place = find("outputs");
    place.replaceChildren();
    place.hidden = outputs.length === 0;
    if (place.hidden) return;
    const end = outputs.length > MOST_CLASSES ? " …" : ".";
    if (task !== "classification") {
      const some = outputs.slice(0, MOST_CLASSES).map((y, i) => `${outputNames[i]} = ${rounded(y)}`);
      place.textContent = `The model predicts ${some.join(", ")}${end}`;
      return;
    }
    const largest = Math.max(...outputs), weights = outputs.map((y) => Math.exp(y - largest));
    const total = weights.reduce((a, b) => a + b, 0);
    const percent = (i) => `${(100 * weights[i] / total).toFixed(1)}\u00a0%`;
    const some = descending(weights).slice(0, MOST_CLASSES).map((i) => `${outputNames[i]} ${percent(i)}`);
    place.textContent = `The classifier says ${some.join(", ")}${end}`;
  }

  showCodes({ distances, assignment, uncertainty, nearest }) {
    const body = find("codes").tBodies[0];
    body.replaceChildren();
    const order = descending(assignment, distances);
    for (const k of order.slice(0, TOP)) {
      const row = add(body, "tr", "", k === nearest ? "nearest" : ""), nats = assignment[k] * distances[k];
      add(row, "th", `${k}`).scope = "row";
      for (const text of [brief(assignment[k]), rounded(distances[k]), brief(nats)]) add(row, "td", text);
      addBar(row, uncertainty > 0 ? nats / uncertainty : 0);
    }
    if (order.length > TOP) add(add(body, "tr", "", "rest"), "td", `${TOP} of ${order.length} codes`).colSpan = 5;
  }

  showDimensions({ dimensions, uncertainty }) {
    const body = find("dimensions").querySelector("tbody");
    body.replaceChildren();
    const order = descending(dimensions), largest = Math.max(dimensions[order[0]], 1e-30);
    for (const i of order.slice(0, TOP)) {
      const row = add(body, "tr"), nats = dimensions[i];
      add(row, "th", `${i}`).scope = "row";
      add(row, "td", `${rounded(nats)} nats`);
      add(row, "td", `${(uncertainty > 0 ? 100 * nats / uncertainty : 0).toFixed(0)} %`);
      addBar(row, nats / largest);
    }
    find("dimensions").querySelector("summary").textContent =
      `${Math.min(TOP, order.length)} of ${plural(order.length, "latent dimension")}, by what they add`;
  }
}

/** The scores of a file: counts, histogram, table, download. */
class RowsPanel {
  /** `pick(row)` is called when a row is chosen. */
  constructor(pick) {
    this.pick = pick;
    this.histogram = new Histogram(find("histogram"));
    this.body = find("scores").tBodies[0];
    find("order").addEventListener("change", () => this.list());
    find("page-back").addEventListener("click", () => this.turn(-1));
    find("page-on").addEventListener("click", () => this.turn(1));
    find("download").addEventListener("click", () => this.download());
    this.body.addEventListener("click", (event) => {
      const row = event.target.closest("tr");
      if (row) this.pick(Number(row.dataset.row));
    });
    this.body.addEventListener("keydown", (event) => this.key(event));
  }

  show(rows, name) {
    Object.assign(this, { rows, name, shown: "all", selected: null });
    find("rows-empty").hidden = rows !== null;
    find("rows-body").hidden = rows === null;
    find("download").disabled = !rows?.count;
    find("rows-title").textContent = rows ? `${plural(rows.count, "row")} of ${name}` : "Rows";
    if (!rows) return;
    this.histogram.show(rows.engine, rows);
    this.count();
    this.list();
  }

  /** One button for every verdict: how many rows have it. */
  count() {
    const counts = new Map([["all", this.rows.count]]);
    for (const verdict of [...VERDICTS, "invalid"]) counts.set(verdict, 0);
    for (const verdict of this.rows.verdict) if (verdict) counts.set(verdict, counts.get(verdict) + 1);
    const place = find("counts");
    place.replaceChildren();
    for (const [verdict, n] of counts) {
      if ((verdict === "invalid" || verdict === "ambiguous") && !n) continue;
      if (verdict !== "invalid" && verdict !== "all" && !this.rows.engine.heldOut) continue;
      const button = add(place, "button", "", verdict);
      button.type = "button";
      button.dataset.verdict = verdict;
      add(button, "b", n.toLocaleString("en-US"));
      button.append(` ${SIGNS[verdict] ?? ""} ${verdict}`);
      button.setAttribute("aria-pressed", String(verdict === this.shown));
      button.addEventListener("click", () => {
        this.shown = verdict;
        for (const other of place.children) other.setAttribute("aria-pressed", String(other === button));
        this.list();
      });
    }
  }

  /** Lists the rows that are to be shown, from the first page on. */
  list() {
    const { rows, shown } = this;
    this.order = Array.from(rows.lines.keys()).filter((row) => shown === "all" || rows.verdict[row] === shown);
    if (find("order").value === "far") {
      const u = (row) => (Number.isNaN(rows.uncertainty[row]) ? -Infinity : rows.uncertainty[row]);
      this.order.sort((a, b) => u(b) - u(a) || a - b);
    }
    this.page = 0;
    this.fill();
  }

  turn(pages) {
    this.page += pages;
    this.fill();
  }

  fill() {
    const { rows, order, page } = this, start = page * PAGE, end = Math.min(order.length, start + PAGE);
    const columns = rows.columnsOfScores().slice(0, rows.fixedColumns() + MOST_OUTPUTS), head = find("scores").tHead;
    head.replaceChildren();
    const names = add(head, "tr");
    for (const name of ["row", ...columns]) add(names, "th", name).scope = "col";
    this.body.replaceChildren();
    for (const row of order.slice(start, end)) {
      const line = add(this.body, "tr", "", rows.verdict[row]);
      line.dataset.row = row;
      line.tabIndex = -1;
      add(line, "th", `${row + 1}`).scope = "row";
      rows.lines[row].split(",").slice(0, columns.length).forEach((text) => add(line, "td", text));
      if (rows.faults.has(row)) line.title = rows.faults.get(row);
    }
    find("pages").hidden = order.length <= PAGE;
    find("page").textContent = `${start + 1}–${end} of ${order.length.toLocaleString("en-US")}`;
    find("page-back").disabled = page === 0;
    find("page-on").disabled = end === order.length;
    this.mark();
  }

  /** Marks the row that the point is at, and brings it into view; null for none. */
  select(row) {
    this.selected = row;
    if (!this.rows) return;
    const at = row === null ? -1 : this.order.indexOf(row);
    if (at >= 0 && Math.floor(at / PAGE) !== this.page) {
      this.page = Math.floor(at / PAGE);
      this.fill();
    }
    this.mark()?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }

  mark() {
    let marked = null;
    for (const line of this.body.rows) {
      const same = Number(line.dataset.row) === this.selected;
      line.setAttribute("aria-selected", String(same));
      line.tabIndex = same ? 0 : -1;
      if (same) marked = line;
    }
    // Some row must be reachable by the keyboard.
    if (!marked && this.body.rows.length) this.body.rows[0].tabIndex = 0;
    return marked;
  }

  key(event) {
    const line = event.target.closest("tr"), step = { ArrowDown: 1, ArrowUp: -1, Enter: 0, " ": 0 }[event.key];
    if (!line || step === undefined) return;
    event.preventDefault();
    const other = this.body.rows[line.sectionRowIndex + step];
    if (!other) return;
    this.pick(Number(other.dataset.row));
    other.focus();
  }

  download() {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([this.rows.csv()], { type: "text/csv" }));
    link.download = `${this.name.replace(/\.[^.]*$/, "")}-scores.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
}
