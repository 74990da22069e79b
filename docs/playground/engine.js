// One model in one instance of the WebAssembly module (examples/playground-wasm), as the rest of the page sees it.
//
// A range of the module's memory comes as one number: its length in the upper half, its address in the lower. Memory
// grows while a file is opened, and then every view of it is void: views are made when they are needed. The module and
// the page run in turn on one thread, so the page reads and writes that memory while no function of the module runs.
"use strict";

// In the order of the module's `size` and `slot`.
const SIZES = ["inputs", "layers", "dim", "codes", "outputs", "covariance", "task", "heldOut", "scratch", "entries",
  "channels", "bands"];
const SLOTS = [
  "text", "input", "columns", "outputs", "distances", "assignment", "dimensions", "latentMean", "latentSpread",
  "result", "limits", "codeMeans", "codePrecisions", "priors", "scores", "pValues", "inputMean", "inputInverseStd",
];
const COVARIANCES = ["diagonal", "spectral", "cholesky", "constant"];
const TASKS = ["", "regression", "classification"];
const VERDICTS = ["familiar", "ambiguous", "doubtful", "unfamiliar"];

// What `load` returns, and what dab advises then: nothing, when it is the info section that cannot be read.
const LOADED = 1;
const NO_MEMORY = 0;
const ADVICE = {
  2: "; make one with `dab pack`",
  3: "; a newer dab wrote it, update this one",
  4: "; copy it again, in binary mode, or pack it anew",
  5: "",
};
const MEMORY_WORDS = "there is not enough memory for it";

/** The bytes of a string in base64. */
function fromBase64(text) {
  return Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
}

class Engine {
  /** Opens the bytes of a model. Fails with the words that `dab` has for them. */
  static async open(bytes) {
    Engine.module ??= WebAssembly.compile(fromBase64(DAB_WASM));
    const { exports } = await WebAssembly.instantiate(await Engine.module, {});
    return new Engine(exports, bytes);
  }

  constructor(exports, bytes) {
    this.wasm = exports;
    this.copy(bytes);
    const status = exports.load();
    if (status === NO_MEMORY) throw new Error(MEMORY_WORDS);
    if (status !== LOADED) throw new Error(this.text() + ADVICE[status]);
    this.bytes = bytes;
    SIZES.forEach((name, i) => { this[name] = exports.size(i) >>> 0; });
    this.covariance = COVARIANCES[this.covariance];
    this.task = TASKS[this.task];
    this.channels = this.channels === 1;
    this.info = new Map(Array.from({ length: this.entries }, (_, i) =>
      [this.string(exports.info_entry(i, 0)), this.string(exports.info_entry(i, 1))]));
    this.inputNames = this.names("input_names", this.inputs);
    this.outputNames = this.names("output_names", this.outputs)
      ?? Array.from({ length: this.outputs }, (_, i) => `output_${i}`);
    this.classNames = this.names("output_names", this.outputs)
      ?? Array.from({ length: this.outputs }, (_, i) => `${i}`);
    const [doubtful, unfamiliar, doubtfulAbove, unfamiliarAbove, alpha] = this.floats("limits");
    Object.assign(this, { rates: [doubtful, unfamiliar], doubtfulAbove, unfamiliarAbove, alpha });
    this.selfTest = exports.self_test() === 1 ? "" : this.text();
  }

  /** Puts the bytes of a file where the module finds them. */
  copy(bytes) {
    const address = this.wasm.room(bytes.length) >>> 0;
    if (bytes.length && !address) throw new Error(MEMORY_WORDS);
    new Uint8Array(this.wasm.memory.buffer, address, bytes.length).set(bytes);
  }

  view(Kind, range) {
    return new Kind(this.wasm.memory.buffer, Number(range & 0xffffffffn), Number(range >> 32n));
  }

  floats(name) {
    return this.view(Float32Array, this.wasm.slot(SLOTS.indexOf(name)));
  }

  string(range) {
    return new TextDecoder().decode(this.view(Uint8Array, range));
  }

  /** What the module wrote last. */
  text() {
    return this.string(this.wasm.text());
  }

  /** The names under a key of the info section, if they are as many as they should be: a list with commas, or JSON. */
  names(key, count) {
    const list = this.info.get(key);
    if (list === undefined) return null;
    let names = list.split(",").map((name) => name.trim());
    if (list.trimStart().startsWith("[")) {
      try {
        const parsed = JSON.parse(list);
        if (parsed.every((name) => typeof name === "string")) names = parsed;
      } catch {
        // No JSON after all: a name may begin with a bracket.
      }
    }
    return names.length === count ? names : null;
  }

  inputName(i) {
    return this.inputNames?.[i] ?? `input ${i}`;
  }

  /** The f32 that a text is, exactly as `dab score` reads it; NaN when it is none. */
  number(text) {
    const slot = this.view(Uint8Array, this.wasm.slot(0));
    const { read, written } = new TextEncoder().encodeInto(text.trim(), slot);
    return read === text.trim().length ? this.wasm.number(written) : NaN;
  }

  /** The shortest digits of an f32, as `dab score` writes them. */
  shortest(x) {
    return this.string(this.wasm.shortest(x));
  }

  result() {
    const [uncertainty, p, verdict, nearest, nearestDistance, saturated, , , , first, second] = this.floats("result");
    const calibrated = !Number.isNaN(p);
    return {
      uncertainty, nearest, between: [this.classNames[first], this.classNames[second]], nearestDistance, saturated: saturated === 1,
      p: calibrated ? p : null,
      verdict: calibrated ? VERDICTS[verdict] : null,
    };
  }

  /** All about one input. */
  explain(input) {
    this.floats("input").set(input);
    const { wasm } = this;
    if (!wasm.explain()) throw new Error(this.text());
    const result = this.result();
    const copy = (name) => Array.from(this.floats(name));
    Object.assign(result, {
      distances: copy("distances"), assignment: copy("assignment"), dimensions: copy("dimensions"),
    });
    wasm.predict();
    result.outputs = copy("outputs");
    wasm.encode();
    return Object.assign(result, { mean: copy("latentMean"), spread: copy("latentSpread") });
  }

  /** The latent mean of an input, or null. */
  encode(input) {
    this.floats("input").set(input);
    return this.wasm.encode() ? Array.from(this.floats("latentMean")) : null;
  }

  /** Covariance of two latent dimensions: [variance of a, covariance, variance of b]. */
  latentCovariance(spread, a, b) {
    const d = this.dim;
    if (this.covariance === "constant") return [1, 0, 1];
    if (this.covariance === "diagonal") return [spread[a], 0, spread[b]];
    const product = (i, j) => {
      let sum = 0;
      for (let k = 0; k < d; k++) sum += spread[i * d + k] * spread[j * d + k];
      return sum;
    };
    return [product(a, a), product(a, b), product(b, b)];
  }

  /** Mean and covariance of code `k` in two latent dimensions. A code stores R, packed by rows, with Σ⁻¹ = RᵀR. */
  code(k, a, b) {
    const d = this.dim;
    const mean = this.floats("codeMeans").subarray(k * d, (k + 1) * d);
    const all = this.floats("codePrecisions");
    if (this.covariance === "constant") return { mean: [mean[a], mean[b]], covariance: [1, 0, 1] };
    if (this.covariance === "diagonal") {
      return { mean: [mean[a], mean[b]], covariance: [1 / all[k * d + a], 0, 1 / all[k * d + b]] };
    }
    const size = d * (d + 1) / 2;
    const at = (i, j) => all[k * size + i * (i + 1) / 2 + j];
    // Rows a and b of R⁻¹, by forward substitution, column by column.
    const rows = [new Float64Array(d), new Float64Array(d)];
    for (let column = 0; column < d; column++) {
      const x = new Float64Array(d);
      for (let i = column; i < d; i++) {
        let rest = i === column ? 1 : 0;
        for (let j = column; j < i; j++) rest -= at(i, j) * x[j];
        x[i] = rest / at(i, i);
      }
      rows[0][column] = x[a];
      rows[1][column] = x[b];
    }
    const dot = (u, v) => u.reduce((sum, x, i) => sum + x * v[i], 0);
    return {
      mean: [mean[a], mean[b]],
      covariance: [dot(rows[0], rows[0]), dot(rows[0], rows[1]), dot(rows[1], rows[1])],
    };
  }
}
