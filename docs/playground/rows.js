// A file of rows through a model: the same choice of columns, the same lines and the same words as `dab score`.
"use strict";

// Faults of a record, in the lower three bits of what the module's `score` returns.
const FAULT_BITS = 3;
const WIDTH = 1, MISSING = 2, TEXT = 3, NON_FINITE = 4;
const TOO_WIDE = -2;
const SEPARATORS = [";", "\t"];
// Milliseconds between two moments in which the page can answer.
const SLICE = 24;
// Columns of a model with channels, behind the first four of every model.
const FIXED = 4;
const CHANNELS = ["unfamiliarity", "ambiguity", "ambiguity_p", "class", "runner_up"];
// Names that an error lists.
const LISTED = 8;
// Rows are kept in blocks, since nobody knows their number.
const BLOCK = 4096;

/** `1 row`, `1,234 rows`. */
function plural(n, one) {
  return `${n.toLocaleString("en-US")} ${one}${n === 1 ? "" : "s"}`;
}

/** A field as an error shows it: one line, not too long. */
function shown(field) {
  const longest = 40;
  const characters = Array.from(field);
  const text = characters.slice(0, longest).join("").replace(/\p{Cc}/gu, " ");
  return characters.length > longest ? `${text}…` : text;
}

/** A name as the csv crate writes it into a header. */
function csvField(name) {
  return /[",\r\n]/.test(name) ? `"${name.replaceAll('"', '""')}"` : name;
}

class Rows {
  /** Scores the rows of a CSV file. `progress` is told the share that was read. */
  static async score(engine, bytes, progress = () => {}) {
    const rows = new Rows(engine);
    if (bytes[0] === 0x93 && new TextDecoder("latin1").decode(bytes.subarray(1, 6)) === "NUMPY") {
      throw new Error("this is a NumPy file: the playground reads CSV, `dab score` reads both");
    }
    engine.copy(bytes);
    if (!engine.wasm.open_rows()) throw new Error(MEMORY_WORDS);
    await rows.readAll(bytes.length, progress);
    return rows;
  }

  constructor(engine) {
    this.engine = engine;
    this.count = 0;
    this.lines = [];
    this.faults = new Map();
    this.blocks = [];
    this.uncertainty = [];
    this.verdict = [];
    this.header = null;
    this.columns = null;
  }

  field(i) {
    return this.engine.string(this.engine.wasm.field(i));
  }

  /** Another separator that a lone field is full of. */
  otherSeparator(fields) {
    return fields === 1 ? SEPARATORS.find((s) => this.field(0).includes(s)) : undefined;
  }

  separatorWords(fields) {
    const other = this.otherSeparator(fields);
    if (!other) return "";
    return ` (are the fields separated by ${other === "\t" ? "tabs" : `\`${other}\``}? The playground reads commas)`;
  }

  /** Whether the first record holds names: text and no numbers. */
  isHeader(fields) {
    let text = null, numbers = 0;
    for (let i = 0; i < fields; i++) {
      const fault = this.engine.wasm.field_fault(i);
      if (fault === TEXT) text ??= [i + 1, shown(this.field(i))];
      else if (fault !== MISSING) numbers++;
    }
    if (text && numbers) {
      throw new Error(`the first row has numbers and text (column ${text[0]}: \`${text[1]}\`): `
        + "it may hold names alone, or numbers alone");
    }
    return text !== null;
  }

  /** Which columns the model's inputs are. */
  choose(fields) {
    const { engine } = this;
    this.header = Array.from({ length: fields }, (_, i) => this.field(i));
    if (!engine.inputNames) {
      if (fields !== engine.inputs) {
        throw new Error(`the file has ${fields} columns, the model takes ${engine.inputs} values: `
          + `keep only its inputs${this.separatorWords(fields)}`);
      }
      return;
    }
    const missing = engine.inputNames.filter((name) => !this.header.includes(name)).map((name) => `\`${name}\``);
    if (missing.length > 0) {
      const rest = missing.length > LISTED ? ` and ${missing.length - LISTED} more` : "";
      const count = missing.length > 1 ? ` (${missing.length} of its ${engine.inputs} inputs are missing)` : "";
      throw new Error(`no column is called ${missing.slice(0, LISTED).join(", ")}${rest}, which the model takes${count}: `
        + `rename the columns${this.separatorWords(fields)}`);
    }
    this.columns = engine.inputNames.map((name) => {
      const first = this.header.indexOf(name);
      if (this.header.includes(name, first + 1)) throw new Error(`two columns are called \`${name}\`: keep one`);
      return first;
    });
    engine.view(Uint32Array, engine.wasm.slot(SLOTS.indexOf("columns"))).set(this.columns);
  }

  async readAll(total, progress) {
    const { wasm } = this.engine;
    let fields = this.next();
    if (fields >= 0 && this.isHeader(fields)) {
      this.choose(fields);
      fields = this.next();
    }
    const width = this.columns ? this.header.length : this.engine.inputs;
    for (let pause = performance.now() + SLICE; fields >= 0; fields = this.next()) {
      this.add(fields, width);
      if (performance.now() > pause) {
        progress(wasm.rows_position() / total);
        await new Promise((resolve) => setTimeout(resolve));
        pause = performance.now() + SLICE;
      }
    }
  }

  next() {
    const fields = this.engine.wasm.record();
    if (fields === TOO_WIDE) throw new Error(`row ${this.count + 1} has more columns than a model can have inputs`);
    return fields;
  }

  /** Scores the record that was read. */
  add(fields, width) {
    const { engine } = this;
    const row = this.count++;
    const { inputs } = engine;
    if (row % BLOCK === 0) this.blocks.push(new Float32Array(BLOCK * inputs));
    const status = engine.wasm.score(width) >>> 0;
    if (status) {
      const fault = status & ((1 << FAULT_BITS) - 1);
      this.faults.set(row, this.faultWords(row, fault, status >>> FAULT_BITS, fields, width));
      this.lines.push(`,,invalid,${",".repeat(this.columnsOfScores().length - FIXED)}`);
      this.uncertainty.push(NaN);
      this.verdict.push("invalid");
      return;
    }
    const line = engine.text();
    this.lines.push(engine.channels ? this.withChannels(line) : line);
    this.blocks.at(-1).set(engine.floats("input"), (row % BLOCK) * inputs);
    const [uncertainty, , verdict] = engine.floats("result");
    this.uncertainty.push(uncertainty);
    this.verdict.push(VERDICTS[verdict] ?? "");
  }

  /** The line of a score with the columns of the channels in their place. */
  withChannels(line) {
    const { engine } = this;
    const fields = line.split(",");
    const [unfamiliarity, ambiguity, ambiguityP, first, second] = Array.from(engine.floats("result")).slice(6);
    const numbers = [unfamiliarity, ambiguity, ambiguityP].map((x) => (Number.isNaN(x) ? "" : engine.shortest(x)));
    const classes = [first, second].map((i) => (Number.isNaN(i) ? "" : csvField(engine.classNames[i])));
    return [...fields.slice(0, FIXED), ...numbers, ...classes, ...fields.slice(FIXED)].join(",");
  }

  faultWords(row, fault, column, fields, width) {
    const line = this.engine.wasm.record_line();
    let words = `row ${row + 1}`;
    if (line !== row + 1) words += ` (line ${line})`;
    if (fault === WIDTH) return `${words}: ${fields} value${fields === 1 ? "" : "s"}, expected ${width}${this.separatorWords(fields)}`;
    words += `, column ${column + 1}`;
    if (this.header) words += ` \`${this.header[column]}\``;
    if (fault === MISSING) return `${words}: the value is missing`;
    const text = shown(this.field(column));
    return fault === NON_FINITE
      ? `${words}: ${text} is not a finite 32-bit number`
      : `${words}: \`${text}\` is not a number`;
  }

  /** The values of a row that was scored. */
  input(row) {
    const { inputs } = this.engine;
    const start = (row % BLOCK) * inputs;
    return this.blocks[Math.floor(row / BLOCK)].subarray(start, start + inputs);
  }

  /** What there is to say about the file, in `dab score`'s words; empty when all is well. */
  complaint() {
    const [first] = this.faults.values();
    if (first) return `marked ${this.faults.size} of ${plural(this.count, "row")} as invalid; the first is ${first}`;
    return this.count ? "" : "the file has no rows";
  }

  /** Columns before the model's outputs. */
  fixedColumns() {
    return FIXED + (this.engine.channels ? CHANNELS.length : 0);
  }

  /** The names of the columns of a score. */
  columnsOfScores() {
    const { channels, bands, outputNames } = this.engine;
    const halves = bands ? outputNames.map((name) => `${name}_band`) : [];
    return ["uncertainty", "p_value", "verdict", "nearest", ...(channels ? CHANNELS : []), ...outputNames, ...halves];
  }

  /** What `dab score` prints. */
  csv() {
    const names = this.columnsOfScores().map(csvField).join(",");
    return `${[names, ...this.lines].join("\n")}\n`;
  }
}
