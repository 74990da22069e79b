// The two small pictures: the codes in the latent space, and the scores beside the calibration.
"use strict";

// Encoded inputs and codes that are drawn.
const MOST_DOTS = 400, MOST_CODES = 64;
// Ellipses are drawn at this many standard deviations.
const DEVIATIONS = 2;
const BINS = 36;
const ROOM = 1.12;

/** Half-axes and angle (degrees) of a covariance [variance, covariance, variance]. */
function ellipse([a, b, c]) {
  const middle = (a + c) / 2, rest = Math.hypot((a - c) / 2, b);
  return [Math.sqrt(middle + rest), Math.sqrt(Math.max(0, middle - rest)), Math.atan2(2 * b, a - c) * 90 / Math.PI];
}

/** A figure with a picture and a caption, drawn anew when its size changes. */
class Chart {
  constructor(figure) {
    this.picture = figure.querySelector("svg");
    this.caption = figure.querySelector("figcaption");
    new ResizeObserver(() => this.draw()).observe(this.picture);
  }
}

/** The codes of a model and its encodings, in two latent dimensions. */
class Latent extends Chart {
  /** Shows the codes of a model, and where it puts some rows. */
  show(engine, rows) {
    this.engine = engine;
    this.axes = [0, engine.dim > 1 ? 1 : 0];
    const [a, b] = this.axes;
    const priors = engine.floats("priors");
    const order = Array.from(priors.keys()).filter((k) => priors[k] > 0).sort((i, j) => priors[j] - priors[i]);
    this.codes = order.slice(0, MOST_CODES).map((k) => ({ k, ...engine.code(k, a, b) }));
    this.dots = [];
    const step = Math.max(1, (rows?.count ?? 0) / MOST_DOTS);
    for (let row = 0; rows && row < rows.count; row += step) {
      if (rows.verdict[Math.floor(row)] === "invalid") continue;
      const mean = engine.encode(rows.input(Math.floor(row)));
      if (mean) this.dots.push([mean[a], mean[b]]);
    }
    this.view = [0, 1].map((axis) => this.range(axis));
    this.point = null;
    const all = `${DEVIATIONS} standard deviations around each code`;
    const dims = engine.dim === 2 ? "the latent plane" : `latent dimensions ${a} and ${b} of ${engine.dim}`;
    this.caption.textContent = engine.dim > 1
      ? `The codes in ${dims}: ${all}, and the point's own Gaussian.`
      : `The codes along the one latent dimension: ${all}, and the point's own Gaussian.`;
    this.draw();
  }

  /** Shows where the model puts the point. */
  place({ mean, spread }) {
    const [a, b] = this.axes;
    this.point = { mean: [mean[a], mean[b]], covariance: this.engine.latentCovariance(spread, a, b) };
    this.draw();
  }

  range(axis) {
    const reach = this.codes.flatMap(({ mean, covariance }) => {
      const deviation = DEVIATIONS * Math.sqrt(covariance[2 * axis]);
      return [mean[axis] - deviation, mean[axis] + deviation];
    });
    if (this.dots.length) {
      const values = this.dots.map((dot) => dot[axis]);
      reach.push(quantile(values, 0.02), quantile(values, 0.98));
    }
    const [low, high] = [Math.min(...reach), Math.max(...reach)], room = (high - low) * (ROOM - 1) + 1e-6;
    return [low - room, high + room];
  }

  draw() {
    const { picture } = this, width = picture.clientWidth, height = picture.clientHeight;
    if (!this.engine || !width || !height) return;
    picture.replaceChildren();
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    // Both dimensions have one scale, so that circles are round; a lone dimension has the width to itself.
    const line = this.engine.dim === 1;
    const [[x0, x1], [y0, y1]] = this.view;
    const scale = line ? width / (x1 - x0) : Math.min(width / (x1 - x0), height / (y1 - y0));
    const middle = [(x0 + x1) / 2, (y0 + y1) / 2];
    const at = ([x, y]) => [width / 2 + scale * (x - middle[0]), height / 2 - (line ? 0 : scale * (y - middle[1]))];
    const gaussian = (parent, { mean, covariance }, name) => {
      let [long, short, angle] = ellipse(covariance).map((v, i) => (i < 2 ? DEVIATIONS * scale * v : v));
      if (line) [long, short, angle] = [DEVIATIONS * scale * Math.sqrt(covariance[0]), height / 5, 0];
      const [x, y] = at(mean);
      svg(parent, "ellipse", { rx: long, ry: short, class: name, transform: `translate(${x} ${y}) rotate(${-angle})` });
    };
    for (const dot of this.dots) {
      const [x, y] = at(dot);
      svg(picture, "circle", { cx: x, cy: y, r: 1.3, class: "dot" });
    }
    for (const code of this.codes) {
      gaussian(picture, code, "code");
      const [x, y] = at(code.mean), above = line ? height / 5 : scale * Math.sqrt(code.covariance[2]);
      if (this.codes.length <= MOST_LABELS) svg(picture, "text", { x, y: y - above, class: "code-name" }, code.k);
    }
    if (this.point) this.drawPoint(gaussian, at, width, height);
  }

  drawPoint(gaussian, at, width, height) {
    const { picture, point } = this, [x, y] = at(point.mean), edge = 7;
    gaussian(picture, point, "own");
    const inside = [Math.min(width - edge, Math.max(edge, x)), Math.min(height - edge, Math.max(edge, y))];
    const away = Math.hypot(x - inside[0], y - inside[1]) > 1;
    const place = `translate(${inside.join(" ")})`;
    if (away) {
      // Outside of the picture: an arrow at its edge.
      const angle = Math.atan2(y - inside[1], x - inside[0]) * 180 / Math.PI;
      svg(picture, "path", { d: "M6 0-4 5V-5Z", class: "own-place", transform: `${place} rotate(${angle})` });
    } else {
      svg(picture, "circle", { r: 4, class: "own-place", transform: place });
    }
  }
}

/** The scores of a file's rows, and the scores of the held-out inputs that calibrate the model. */
class Histogram extends Chart {
  show(engine, rows) {
    this.engine = engine;
    const scores = rows.uncertainty.filter((u) => u < Infinity);
    const table = Array.from(engine.floats("scores")), pValues = Array.from(engine.floats("pValues"));
    const all = [...scores, ...table];
    if (!all.length) {
      this.rows = null;
      this.picture.replaceChildren();
      this.caption.textContent = "";
      return;
    }
    let low = Infinity, high = -Infinity;
    for (const u of all) [low, high] = [Math.min(low, u), Math.max(high, u)];
    const positive = low > 0 ? low : Math.max(high, 1) / 1e4;
    this.scale = new Scale(Math.max(positive, high / 1e6), high);
    const bin = (u) => Math.min(BINS - 1, Math.max(0, Math.floor(this.scale.place(u) * BINS)));
    this.rows = new Float64Array(BINS);
    for (const u of scores) this.rows[bin(u)] += 1 / scores.length;
    this.heldOut = this.spread(table, pValues, bin);
    const held = engine.heldOut
      ? `The line is the same for the ${plural(engine.heldOut, "held-out score")} of the calibration.`
      : "The model has no calibration table to compare with.";
    this.caption.textContent = `Share of the rows by uncertainty, nats. ${held}`;
    this.draw();
  }

  /**
   * The share of held-out inputs in each bin. p falls at every score of the table by the share of inputs at it; between
   * two scores of a table that was compressed the others are unknown, and are spread evenly.
   */
  spread(table, pValues, bin) {
    if (!table.length) return null;
    const { heldOut } = this.engine, shares = new Float64Array(BINS);
    let before = 1, last = table[0];
    table.forEach((score, j) => {
      const share = (before - pValues[j]) * (heldOut + 1) / heldOut, parts = Math.max(1, Math.round(share * heldOut));
      for (let i = 1; i <= parts; i++) shares[bin(last + (score - last) * i / parts)] += share / parts;
      [before, last] = [pValues[j], score];
    });
    return shares;
  }

  draw() {
    const { picture } = this, width = picture.clientWidth, height = picture.clientHeight, foot = 18, top = 14;
    if (!this.rows || !width || !height) return;
    picture.replaceChildren();
    picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const tallest = Math.max(...this.rows, ...(this.heldOut ?? []));
    const base = height - foot, up = (share) => base - (base - top) * share / tallest, across = (i) => width * i / BINS;
    const { doubtfulAbove, unfamiliarAbove } = this.engine;
    this.rows.forEach((share, i) => {
      if (!share) return;
      const middle = this.scale.value((i + 0.5) / BINS);
      const verdict = middle > unfamiliarAbove ? "unfamiliar" : middle > doubtfulAbove ? "doubtful" : "familiar";
      const name = this.heldOut ? verdict : "plain";
      const box = { x: across(i) + 0.5, y: up(share), width: width / BINS - 1, height: base - up(share) };
      svg(picture, "rect", { ...box, class: `column ${name}` });
    });
    if (this.heldOut) {
      const steps = Array.from(this.heldOut, (share, i) => `V${up(share)}H${across(i + 1)}`).join("");
      svg(picture, "path", { d: `M0 ${base}${steps}V${base}`, class: "held-out" });
    }
    for (const [limit, name] of [[doubtfulAbove, "doubtful"], [unfamiliarAbove, "unfamiliar"]]) {
      const x = width * this.scale.place(limit);
      if (!(x >= 0 && x <= width)) continue;
      svg(picture, "path", { d: `M${x} 2V${base}`, class: `limit ${name}` });
    }
    svg(picture, "path", { d: `M0 ${base}H${width}`, class: "base" });
    for (const [u, text] of this.scale.ticks(6)) {
      const x = width * this.scale.place(u);
      svg(picture, "text", { x: Math.min(width - 8, Math.max(8, x)), y: height - 5, class: "tick" }, text);
    }
  }
}
