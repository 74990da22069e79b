// The map of the uncertainty over two inputs (or over one), with the point that can be dragged.
//
// All other inputs keep the point's values: the map is a slice through the point. It is computed a little at a time,
// coarse before fine, so that a large model does not stop the page.
"use strict";

// Cells along each side, coarse before fine; and along a lone axis.
const GRIDS = [40, 160], LINE = 640;
// Milliseconds of computing between two moments in which the page can answer.
const PATIENCE = 12;
// Shares of the cells that are nearer or farther than the ends of the colours.
const NEAREST_SHARE = 0.01, FARTHEST_SHARE = 0.995;
// Rows and codes that are drawn.
const MOST_MARKS = 4000, MOST_LABELS = 12;
const MARGIN = { left: 46, right: 10, top: 8, bottom: 82 };
const BAR = { below: 44, height: 10 };
// The marks of rows, in pixels around their place; all others are circles.
const CORNERS = {
  unfamiliar: [[0, -4.8], [4.8, 3.6], [-4.8, 3.6]],
  doubtful: [[0, -5], [5, 0], [0, 5], [-5, 0]],
};
// A press this near to a row, in pixels, chooses the row.
const PICK = 7;
const STEP = 1 / 100, LARGE_STEP = 1 / 20;

class Plane {
  /** `move(x, y)` is called when the point is dragged, `pick(row)` when a row is chosen. */
  constructor(root, { move, pick }) {
    this.root = root;
    this.canvas = root.querySelector("canvas");
    this.handle = root.querySelector("#handle");
    this.move = move;
    this.pick = pick;
    this.job = 0;
    this.grid = null;
    new ResizeObserver(() => this.draw()).observe(root);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
    this.listen();
  }

  /** Shows another slice: `scene` has engine, axes, view, rows, training; `point` holds the other inputs. */
  show(scene, point) {
    this.scene = scene;
    this.point = point;
    this.compute(Float32Array.from(point));
  }

  /** Moves the handle to where the point is. */
  place(point, uncertainty, words) {
    this.point = point;
    this.uncertainty = uncertainty;
    const [x, y] = this.toPixels(this.across(point), this.up(point, uncertainty));
    const { width, height } = this.area();
    this.handle.style.left = `${Math.min(MARGIN.left + width, Math.max(MARGIN.left, x))}px`;
    this.handle.style.top = `${Math.min(MARGIN.top + height, Math.max(MARGIN.top, y))}px`;
    this.handle.setAttribute("aria-valuenow", rounded(uncertainty));
    this.handle.setAttribute("aria-valuetext", words);
  }

  get flat() {
    return this.scene.axes.length === 1;
  }

  across(input) {
    return input[this.scene.axes[0]];
  }

  /** The second coordinate: another input, or, over a line, the uncertainty itself. */
  up(input, uncertainty) {
    return this.flat ? this.scale?.place(uncertainty) ?? 0 : input[this.scene.axes[1]];
  }

  get upRange() {
    return this.flat ? [0, 1] : this.scene.view.y;
  }

  area() {
    const { clientWidth, clientHeight } = this.root;
    return {
      width: Math.max(40, clientWidth - MARGIN.left - MARGIN.right),
      height: Math.max(40, clientHeight - MARGIN.top - MARGIN.bottom),
    };
  }

  toPixels(x, y) {
    const { width, height } = this.area(), [x0, x1] = this.scene.view.x, [y0, y1] = this.upRange;
    return [MARGIN.left + width * (x - x0) / (x1 - x0), MARGIN.top + height * (y1 - y) / (y1 - y0)];
  }

  toValues(left, top) {
    const { width, height } = this.area(), [x0, x1] = this.scene.view.x, [y0, y1] = this.upRange;
    const part = (at, start, length) => Math.min(1, Math.max(0, (at - start) / length));
    return [x0 + (x1 - x0) * part(left, MARGIN.left, width), y1 - (y1 - y0) * part(top, MARGIN.top, height)];
  }

  listen() {
    const at = (event) => {
      const box = this.root.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    const drag = (event) => this.move(...this.toValues(...at(event)));
    const begin = (event) => {
      if (!this.scene || event.button !== 0) return;
      const [left, top] = at(event), { width, height } = this.area();
      if (left > MARGIN.left + width + PICK || top > MARGIN.top + height + PICK) return;
      event.preventDefault();
      const onCanvas = event.target === this.canvas;
      const row = onCanvas ? this.rowAt(left, top) : -1;
      if (row >= 0) this.pick(row);
      else if (onCanvas) drag(event);
      this.handle.focus({ preventScroll: true });
      // A finger that presses the map may want to scroll: it drags by the handle alone.
      if (onCanvas && event.pointerType === "touch") return;
      const target = event.target;
      target.setPointerCapture(event.pointerId);
      target.addEventListener("pointermove", drag);
      const end = () => target.removeEventListener("pointermove", drag);
      target.addEventListener("pointerup", end, { once: true });
      target.addEventListener("pointercancel", end, { once: true });
    };
    this.canvas.addEventListener("pointerdown", begin);
    this.handle.addEventListener("pointerdown", begin);
    this.handle.addEventListener("keydown", (event) => {
      const direction = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
      if (!direction || !this.scene) return;
      event.preventDefault();
      const step = event.shiftKey ? LARGE_STEP : STEP, { x, y } = this.scene.view;
      this.move(this.across(this.point) + direction[0] * step * (x[1] - x[0]),
        this.flat ? 0 : this.point[this.scene.axes[1]] + direction[1] * step * (y[1] - y[0]));
    });
  }

  /** The row whose mark is under a pixel; -1 when there is none. */
  rowAt(left, top) {
    const { rows } = this.scene;
    let best = -1, least = PICK * PICK;
    for (const { row, x, y } of this.marks(rows)) {
      const [px, py] = this.toPixels(x, y), distance = (px - left) ** 2 + (py - top) ** 2;
      if (distance < least) [best, least] = [row, distance];
    }
    return best;
  }

  /** Where the rows of a file lie. */
  * marks(rows) {
    for (let row = 0; rows && row < Math.min(rows.count, MOST_MARKS); row++) {
      if (rows.verdict[row] === "invalid") continue;
      const input = rows.input(row);
      yield { row, x: this.across(input), y: this.up(input, rows.uncertainty[row]), verdict: rows.verdict[row] };
    }
  }

  /** Computes the map around `base`, and draws it after every grid. */
  async compute(base) {
    const job = ++this.job, { engine, axes, view } = this.scene;
    this.root.dataset.map = "growing";
    for (const n of this.flat ? [LINE] : GRIDS) {
      const height = this.flat ? 1 : n;
      const grid = { n, height, u: new Float32Array(n * height), nearest: new Uint32Array(n * height), closest: new Map() };
      let pause = performance.now() + PATIENCE;
      for (let j = 0; j < height; j++) {
        const input = engine.floats("input"), result = engine.floats("result");
        input.set(base);
        for (let i = 0; i < n; i++) {
          const value = ([low, high], k) => low + (high - low) * (k + 0.5) / n;
          input[axes[0]] = value(view.x, i);
          if (!this.flat) input[axes[1]] = value(view.y, n - 1 - j);
          engine.wasm.assess();
          this.keep(grid, i, j, result);
        }
        if (performance.now() > pause) {
          await new Promise((resolve) => setTimeout(resolve));
          if (job !== this.job) return;
          pause = performance.now() + PATIENCE;
        }
      }
      this.grid = grid;
      this.scale = this.chooseScale(grid);
      this.draw();
    }
    this.root.dataset.map = "whole";
  }

  keep(grid, i, j, [u, , , nearest, distance]) {
    const at = j * grid.n + i, best = grid.closest.get(nearest);
    grid.u[at] = u;
    grid.nearest[at] = nearest;
    if (!best || distance < best.distance) grid.closest.set(nearest, { distance, i, j });
  }

  /** Colours for nearly all of the map, and for the limits of the verdicts with some room beyond. */
  chooseScale({ u }) {
    const { doubtfulAbove, unfamiliarAbove } = this.scene.engine;
    const limits = [doubtfulAbove, unfamiliarAbove].filter((x) => x > 0);
    const largest = 1e30;
    return new Scale(
      Math.min(quantile(u, NEAREST_SHARE), ...limits.map((x) => x / 3)),
      Math.min(largest, Math.max(quantile(u, FARTHEST_SHARE), ...limits.map((x) => x * 3))),
    );
  }

  draw() {
    if (!this.scene || !this.grid) return;
    const { clientWidth, clientHeight } = this.root, ratio = devicePixelRatio || 1;
    this.canvas.width = Math.round(clientWidth * ratio);
    this.canvas.height = Math.round(clientHeight * ratio);
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    const style = getComputedStyle(this.root);
    this.ink = style.color;
    this.font = `12px ${style.fontFamily}`;
    const { width, height } = this.area();
    context.save();
    context.beginPath();
    context.rect(MARGIN.left, MARGIN.top, width, height);
    context.clip();
    if (this.flat) this.drawLine(context);
    else this.drawMap(context);
    this.drawMarks(context);
    if (!this.flat) this.drawNames(context);
    context.restore();
    this.drawAxes(context);
    this.drawBar(context);
    if (this.uncertainty !== undefined) {
      this.place(this.point, this.uncertainty, this.handle.getAttribute("aria-valuetext"));
    }
  }

  drawMap(context) {
    const { n, u } = this.grid, { width, height } = this.area();
    const image = new ImageData(n, n);
    u.forEach((value, i) => image.data.set([...shade(this.scale.place(value)), 255], 4 * i));
    const small = new OffscreenCanvas(n, n);
    small.getContext("2d").putImageData(image, 0, 0);
    context.imageSmoothingQuality = "high";
    context.drawImage(small, MARGIN.left, MARGIN.top, width, height);
    this.drawCodes(context);
    const { doubtfulAbove, unfamiliarAbove } = this.scene.engine;
    const place = (i, j) => this.scale.place(u[j * n + i]);
    if (doubtfulAbove > 0) this.stroke(context, contour(n, place, this.scale.place(doubtfulAbove)), [5, 4]);
    if (unfamiliarAbove > 0) this.stroke(context, contour(n, place, this.scale.place(unfamiliarAbove)), []);
  }

  /** Lines between cells, dark with a light core: they can be seen on every colour. */
  stroke(context, lines, dash, strength = 1) {
    const { n } = this.grid, { width, height } = this.area();
    const pixel = ([i, j]) => [MARGIN.left + width * (i + 0.5) / n, MARGIN.top + height * (j + 0.5) / n];
    context.beginPath();
    for (const [first, ...others] of chains(lines)) {
      context.moveTo(...pixel(first));
      for (const point of others) context.lineTo(...pixel(point));
    }
    context.setLineDash(dash);
    context.lineJoin = "round";
    const dark = `rgba(12, 10, 30, ${0.55 * strength})`, light = `rgba(255, 255, 255, ${strength})`;
    for (const [colour, thickness] of [[dark, 3.2], [light, 1.5]]) {
      context.strokeStyle = colour;
      context.lineWidth = thickness;
      context.stroke();
    }
    context.setLineDash([]);
  }

  /** Where another code becomes the nearest. */
  drawCodes(context) {
    const { n, nearest, closest } = this.grid;
    if (closest.size < 2 || closest.size > MOST_LABELS) return;
    const clamp = (i) => Math.min(n - 1, Math.max(0, i));
    // Between codes up to one and those after it; where several such lines are one, it is drawn once.
    const lines = new Map();
    for (const code of [...closest.keys()].sort((a, b) => a - b).slice(0, -1)) {
      // The share of a cell's neighbourhood, which smooths the steps of the grid.
      const share = (i, j) => {
        let before = 0;
        for (let b = -2; b <= 2; b++) {
          for (let a = -2; a <= 2; a++) before += nearest[clamp(j + b) * n + clamp(i + a)] <= code;
        }
        return before / 25;
      };
      for (const line of contour(n, share, 0.5)) lines.set(String(line), line);
    }
    this.stroke(context, [...lines.values()], [1.5, 4], 0.75);
  }

  /** The number of each code, where the map is nearest to it. */
  drawNames(context) {
    const { n, closest } = this.grid, { width, height } = this.area();
    if (closest.size > MOST_LABELS) return;
    context.font = `600 ${this.font}`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    for (const [code, { i, j }] of closest) {
      const inside = (length, k) => Math.min(length - 11, Math.max(11, length * (k + 0.5) / n));
      const x = MARGIN.left + inside(width, i), y = MARGIN.top + inside(height, j);
      context.fillStyle = "#1c1830";
      context.beginPath();
      context.roundRect(x - 9, y - 9, 18, 18, 5);
      context.fill();
      context.fillStyle = "#fff";
      context.fillText(String(code), x, y + 0.5);
    }
  }

  /** The uncertainty over one input, in its colours. */
  drawLine(context) {
    const { n, u } = this.grid, { width, height } = this.area();
    const top = (value) => MARGIN.top + height * (1 - this.scale.place(value));
    for (let x = 0; x < width; x++) {
      const value = u[Math.floor(n * x / width)];
      context.fillStyle = `rgb(${shade(this.scale.place(value)).join(" ")})`;
      context.fillRect(MARGIN.left + x, top(value), 1, height);
    }
    context.beginPath();
    u.forEach((value, i) => context.lineTo(MARGIN.left + width * (i + 0.5) / n, top(value)));
    context.strokeStyle = this.ink;
    context.lineWidth = 1.5;
    context.stroke();
    const { doubtfulAbove, unfamiliarAbove } = this.scene.engine;
    for (const [limit, dash] of [[doubtfulAbove, [5, 4]], [unfamiliarAbove, []]]) {
      if (!(limit > 0)) continue;
      context.strokeStyle = this.ink;
      context.setLineDash(dash);
      context.strokeRect(MARGIN.left - 9, top(limit), width + 18, 0);
    }
    context.setLineDash([]);
  }

  drawMarks(context) {
    const { training, rows } = this.scene;
    context.fillStyle = "rgba(28, 24, 48, 0.5)";
    for (const { x, y } of this.marks(training)) {
      context.beginPath();
      context.arc(...this.toPixels(x, y), 1.4, 0, 2 * Math.PI);
      context.fill();
    }
    context.fillStyle = "#fff";
    context.strokeStyle = "#1c1830";
    context.lineWidth = 1.3;
    for (const { x: across, y: up, verdict } of this.marks(rows)) {
      const [left, top] = this.toPixels(across, up);
      context.beginPath();
      const corners = CORNERS[verdict];
      if (corners) for (const [x, y] of corners) context.lineTo(left + x, top + y);
      else context.arc(left, top, 3.7, 0, 2 * Math.PI);
      context.closePath();
      context.fill();
      context.stroke();
    }
  }

  drawAxes(context) {
    const { engine, axes, view } = this.scene, { width, height } = this.area(), bottom = MARGIN.top + height;
    context.font = this.font;
    context.fillStyle = context.strokeStyle = this.ink;
    context.lineWidth = 1;
    context.globalAlpha = 0.75;
    context.textBaseline = "top";
    context.textAlign = "center";
    for (const [x, text] of linearTicks(...view.x, width / 70)) {
      const [left] = this.toPixels(x, 0);
      context.fillRect(Math.round(left), bottom, 1, 4);
      context.fillText(text, left, bottom + 7);
    }
    context.textBaseline = "middle";
    context.textAlign = "right";
    const ticks = this.flat
      ? this.scale.ticks(6).map(([u, text]) => [this.scale.place(u), text])
      : linearTicks(...view.y, height / 60);
    for (const [y, text] of ticks) {
      const [, top] = this.toPixels(0, y);
      context.fillRect(MARGIN.left - 4, Math.round(top), 4, 1);
      context.fillText(text, MARGIN.left - 7, top);
    }
    context.textBaseline = "top";
    context.fillText(engine.inputName(axes[0]), MARGIN.left + width, bottom + 21);
    const name = this.flat ? "uncertainty, nats" : engine.inputName(axes[1]);
    context.save();
    context.translate(2, MARGIN.top);
    // A long name stands on its side.
    if (name.length > 3) context.rotate(-Math.PI / 2);
    else context.textAlign = "left";
    context.fillText(name, 0, 0);
    context.restore();
    context.globalAlpha = 1;
  }

  /** The colours and their nats, with the limits of the verdicts. */
  drawBar(context) {
    const { width, height } = this.area(), top = MARGIN.top + height + BAR.below;
    const { doubtfulAbove, unfamiliarAbove } = this.scene.engine;
    for (let x = 0; x < width; x++) {
      context.fillStyle = `rgb(${shade(x / width).join(" ")})`;
      context.fillRect(MARGIN.left + x, top, 1.5, BAR.height);
    }
    context.fillStyle = this.ink;
    context.font = this.font;
    context.textAlign = "center";
    context.textBaseline = "top";
    context.globalAlpha = 0.75;
    for (const [u, text] of this.scale.ticks(6)) {
      const left = MARGIN.left + width * this.scale.place(u);
      context.fillRect(Math.round(left), top + BAR.height, 1, 3);
      context.fillText(text, left, top + BAR.height + 5);
    }
    context.textAlign = "left";
    context.fillText("nats", 4, top - 1);
    context.globalAlpha = 1;
    for (const [limit, dash] of [[doubtfulAbove, [3, 2]], [unfamiliarAbove, []]]) {
      if (!(limit > 0)) continue;
      const left = MARGIN.left + width * this.scale.place(limit);
      for (const [colour, thickness] of [["rgba(12, 10, 30, 0.7)", 3.2], ["#fff", 1.5]]) {
        context.strokeStyle = colour;
        context.lineWidth = thickness;
        context.setLineDash(dash);
        context.beginPath();
        context.moveTo(left, top - 3);
        context.lineTo(left, top + BAR.height + 3);
        context.stroke();
      }
    }
    context.setLineDash([]);
  }
}

/** Pieces of lines joined where they meet, so that dashes run on. */
function chains(lines) {
  const key = ([x, y]) => `${x.toFixed(4)} ${y.toFixed(4)}`;
  const ends = new Map();
  lines.forEach((line, i) => line.forEach((point) => {
    const at = key(point);
    ends.set(at, [...(ends.get(at) ?? []), i]);
  }));
  const used = new Set(), found = [];
  const follow = (chain) => {
    for (;;) {
      const last = chain.at(-1), next = ends.get(key(last)).find((i) => !used.has(i));
      if (next === undefined) return;
      used.add(next);
      const [a, b] = lines[next];
      chain.push(key(a) === key(last) ? b : a);
    }
  };
  lines.forEach(([a, b], i) => {
    if (used.has(i)) return;
    used.add(i);
    const chain = [a, b];
    follow(chain);
    chain.reverse();
    follow(chain);
    found.push(chain);
  });
  return found;
}
