// Ties files, map, point and rows together.
"use strict";

const MAGIC = [0x89, 0x44, 0x41, 0x42];
// The map reaches this much beyond the data, on every side, as a share of their width.
const AROUND = 0.12;
// It reaches at least this many standard deviations of the training inputs.
const REACH = 2;
const ZOOM = 1.5;
// Values across the view that the point can be dragged to, about.
const STEPS = 300;

// What is open: files as `{ name, bytes }`, rows as Rows, the point as one f32 per input, `row` the row that it is at.
const state = {
  engine: null, model: null, file: null, rows: null, training: null, point: null, row: null, axes: [0], view: null,
};

const pointPanel = new PointPanel();
const rowsPanel = new RowsPanel(choose);
const plane = new Plane(find("plane"), { move, pick: choose });

/** Says what is wrong; nothing when there are no words. */
function complain(words) {
  find("alert").hidden = !words;
  find("alert").textContent = words;
}

/** Which values of an input the map shows at first: those of the rows, and where the training inputs were. */
function range(axis) {
  const values = [];
  for (const rows of [state.rows, state.training]) {
    for (let row = 0; rows && row < rows.count; row++) {
      if (rows.verdict[row] !== "invalid") values.push(rows.input(row)[axis]);
    }
  }
  const { engine } = state, normalised = engine.floats("inputMean").length > 0;
  if (normalised || !values.length) {
    const mean = engine.floats("inputMean")[axis] ?? 0, std = 1 / (engine.floats("inputInverseStd")[axis] ?? 1);
    values.push(mean - REACH * std, mean + REACH * std);
  }
  const low = quantile(values, 0), high = quantile(values, 1), room = (high - low) * AROUND;
  return high > low ? [low - room, high + room] : [low - 1, high + 1];
}

/** The point where nothing else is said: about the mean of the training inputs. */
function middle() {
  const mean = state.engine.floats("inputMean");
  const point = mean.length ? Float32Array.from(mean) : new Float32Array(state.engine.inputs);
  state.axes.forEach((axis, i) => { point[axis] = even(point[axis], [state.view.x, state.view.y][i]); });
  return point;
}

/** A value with no more decimals than a pixel of the view is worth. */
function even(value, [low, high]) {
  const digits = Math.ceil(-Math.log10((high - low) / STEPS));
  return digits >= 0 && digits <= 20 ? Number(value.toFixed(digits)) : value;
}

/** Shows the model and rows of `state` from the beginning. */
function present() {
  const { engine, rows, file } = state;
  state.axes = engine.inputs > 1 ? [0, 1] : [0];
  fillAxes();
  frame();
  const over = engine.inputs > 2 ? "" : ` over ${state.axes.map((axis) => engine.inputName(axis)).join(" and ")}`;
  find("plane-title").textContent = `Uncertainty${over}`;
  legend();
  pointPanel.latent.show(engine, state.training ?? rows);
  rowsPanel.show(rows, file?.name);
  facts();
  // The demo begins between its two clusters, which is what it is about.
  const first = rows && !file.demo ? rows.verdict.findIndex((verdict) => verdict !== "invalid") : -1;
  if (first >= 0) choose(first);
  else setPoint(middle(), null, true);
}

/** The marks and lines that the map can have. */
function legend() {
  const { engine, training, rows } = state;
  const hide = (id, hidden) => { find(`legend-${id}`).hidden = hidden; };
  hide("training", !training);
  hide("familiar", !rows);
  hide("doubtful", !rows || !engine.heldOut);
  hide("unfamiliar", !rows || !engine.heldOut);
  find("legend-familiar").lastChild.textContent = engine.heldOut ? "familiar row" : "row";
  hide("doubtful-line", !(engine.doubtfulAbove > 0));
  hide("unfamiliar-line", !(engine.unfamiliarAbove > 0));
  hide("codes", engine.codes < 2 || engine.codes > MOST_LABELS || engine.inputs < 2);
}

/** The view that has all data in it. */
function frame() {
  const [a, b] = state.axes;
  state.view = { x: range(a), y: b === undefined ? [0, 1] : range(b) };
}

function facts() {
  const { engine, model } = state, parts = [plural(engine.inputs, "input")];
  if (engine.layers) parts.push(plural(engine.layers, "layer"));
  parts.push(plural(engine.dim, `${engine.covariance} dimension`), plural(engine.codes, "code"));
  const size = `${model.bytes.length.toLocaleString("en-US")} bytes`;
  const test = engine.selfTest
    ? `the self-test failed: ${engine.selfTest}`
    : "self-test passed: these are the bits of the device";
  find("facts").textContent = `${model.name}: ${parts.join(" → ")}, ${size}; ${test}.`;
}

function fillAxes() {
  const { engine, axes } = state;
  find("axes").hidden = engine.inputs < 3;
  ["axis-x", "axis-y"].forEach((id, i) => {
    const select = find(id);
    select.replaceChildren();
    for (let k = 0; k < engine.inputs; k++) add(select, "option", engine.inputName(k)).value = k;
    select.value = axes[i] ?? 0;
  });
}

/** Moves the point to an input. `slice`: whether the map has to be computed for it. */
function setPoint(point, row, slice) {
  state.point = point;
  state.row = row;
  const { engine, axes, view, rows, training } = state;
  const explanation = engine.explain(point);
  const words = pointPanel.show(engine, explanation);
  const values = axes.map((axis) => `${engine.inputName(axis)} ${engine.shortest(point[axis])}`).join(", ");
  if (slice) plane.show({ engine, axes, view, rows, training }, point);
  plane.place(point, explanation.uncertainty, `${values}: ${words}`);
  ["x", "y"].forEach((name, i) => {
    find(`name-${name}`).parentElement.hidden = i >= axes.length;
    if (i >= axes.length) return;
    find(`name-${name}`).textContent = engine.inputName(axes[i]);
    find(`value-${name}`).value = engine.shortest(point[axes[i]]);
    find(`value-${name}`).removeAttribute("aria-invalid");
  });
  find("point-title").textContent = row === null ? "Point" : `Row ${row + 1}`;
  rowsPanel.select(row);
}

/** The point was dragged. */
function move(x, y) {
  const point = Float32Array.from(state.point), [a, b] = state.axes;
  point[a] = even(x, state.view.x);
  if (b !== undefined) point[b] = even(y, state.view.y);
  if (point.every(Number.isFinite)) setPoint(point, null, false);
}

/** A row was chosen. */
function choose(row) {
  const { rows, axes, point } = state;
  if (rows.faults.has(row)) {
    state.row = row;
    rowsPanel.select(row);
    find("point-title").textContent = `Row ${row + 1}`;
    pointPanel.refuse(rows.faults.get(row));
    return;
  }
  const input = Float32Array.from(rows.input(row));
  // Another slice, unless the inputs that are not on the axes stay as they are.
  const same = point?.length === input.length && plane.scene?.engine === state.engine
    && input.every((x, i) => axes.includes(i) || x === point[i]);
  setPoint(input, row, !same);
}

let opening = Promise.resolve();

/** Opens files one after the other, however fast they are chosen. */
function open(files) {
  opening = opening.then(() => openNow(files));
  return opening;
}

/** Opens a model, a file of rows, or both: `{ name, bytes }`. What cannot be opened leaves things as they were. */
async function openNow({ model, file, training = null }) {
  document.body.dataset.state = "busy";
  const problems = [];
  try {
    if (model) await openModel(model, training, file, problems);
    if (file) await openRows(file, problems);
    else if (model && state.file) await openRows(state.file, problems);
    if (model || file) present();
  } catch (error) {
    problems.push(error.message);
  }
  complain(problems.join("\n"));
  document.body.dataset.state = "ready";
}

async function openModel(model, training, file, problems) {
  let engine;
  try {
    engine = await Engine.open(model.bytes);
  } catch (error) {
    throw new Error(`\`${model.name}\`: ${error.message}`);
  }
  // The demo's rows belong to the demo; a file of the visitor's is scored anew.
  const own = state.file && !state.file.demo && !file ? state.file : null;
  Object.assign(state, { engine, model, rows: null, file: own, training: null, point: null, row: null });
  if (training) state.training = await Rows.score(await Engine.open(model.bytes), training);
  if (engine.selfTest) problems.push(`\`${model.name}\`: ${engine.selfTest}`);
}

async function openRows(file, problems) {
  // A fresh instance: the memory of the last file goes with the old one.
  const engine = await Engine.open(state.model.bytes);
  try {
    const progress = (share) => { find("facts").textContent = `${file.name}: ${Math.round(100 * share)} %`; };
    const rows = await Rows.score(engine, file.bytes, progress);
    if (rows.complaint()) problems.push(`\`${file.name}\`: ${rows.complaint()}`);
    Object.assign(state, { engine, rows, file, point: null });
  } catch (error) {
    problems.push(`\`${file.name}\`: ${error.message}`);
    if (state.file === file) state.file = null;
  }
}

/** Files of the visitor: models by their name or their first bytes, all else as rows. */
async function openFiles(files, kind) {
  const wanted = {};
  for (const given of files) {
    const file = { name: given.name, bytes: new Uint8Array(await given.arrayBuffer()) };
    const looksLikeModel = given.name.endsWith(".dab") || MAGIC.every((byte, i) => file.bytes[i] === byte);
    wanted[(kind ? kind === "model" : looksLikeModel) ? "model" : "file"] = file;
  }
  if (wanted.model || wanted.file) await open(wanted);
}

function openDemo() {
  return open({
    model: { name: "model.dab of the demo", bytes: fromBase64(DEMO_MODEL) },
    file: { name: "new.csv", bytes: fromBase64(DEMO_ROWS), demo: true },
    training: fromBase64(DEMO_TRAINING),
  });
}

for (const [id, kind] of [["model-file", "model"], ["rows-file", "rows"]]) {
  find(id).addEventListener("change", async (event) => {
    await openFiles(event.target.files, kind);
    // The same file may be chosen again after it was changed.
    event.target.value = "";
  });
}
find("demo").addEventListener("click", openDemo);
for (const name of ["x", "y"]) {
  find(`value-${name}`).addEventListener("change", (event) => {
    const value = state.engine.number(event.target.value), axis = state.axes[name === "x" ? 0 : 1];
    event.target.setAttribute("aria-invalid", String(Number.isNaN(value)));
    if (Number.isNaN(value)) return;
    const point = Float32Array.from(state.point);
    point[axis] = value;
    setPoint(point, null, false);
  });
  find(`axis-${name}`).addEventListener("change", () => {
    const [x, y] = [Number(find("axis-x").value), Number(find("axis-y").value)];
    // One input cannot be on both axes: they change places.
    state.axes = x === y ? [state.axes[1], state.axes[0]] : [x, y];
    ["x", "y"].forEach((axis, i) => { find(`axis-${axis}`).value = state.axes[i]; });
    frame();
    setPoint(state.point, state.row, true);
  });
}
for (const [id, factor] of [["zoom-in", 1 / ZOOM], ["zoom-out", ZOOM]]) {
  find(id).addEventListener("click", () => {
    const wider = ([low, high]) => [-1, 1].map((side) => (low + high) / 2 + side * factor * (high - low) / 2);
    state.view = { x: wider(state.view.x), y: state.axes.length > 1 ? wider(state.view.y) : [0, 1] };
    setPoint(state.point, state.row, true);
  });
}
let dragged = 0;
addEventListener("dragenter", () => { find("drop").hidden = ++dragged === 0; });
addEventListener("dragleave", () => { find("drop").hidden = --dragged <= 0; });
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("drop", (event) => {
  event.preventDefault();
  dragged = 0;
  find("drop").hidden = true;
  openFiles(event.dataTransfer.files);
});
openDemo();
