// What all pictures share: colours, numbers, scales, contours.
"use strict";

const SVG = "http://www.w3.org/2000/svg";

// The map from near (light) to far (dark), as lightness, chroma and hue (degrees) of OKLCH. Lightness falls evenly, so
// the order can be read without seeing colours; hue goes from yellow by green and blue to violet.
const STOPS = [[0.96, 0.075, 106], [0.845, 0.115, 130], [0.72, 0.105, 168], [0.6, 0.09, 215], [0.47, 0.105, 262],
  [0.34, 0.115, 289], [0.21, 0.075, 300]];
const SHADES = 256;

/** OKLab to 8-bit sRGB. */
function toRgb(lightness, a, b) {
  const l = (lightness + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (lightness - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (lightness - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map((x) => {
    const curved = x <= 0.0031308 ? 12.92 * x : 1.055 * x ** (1 / 2.4) - 0.055;
    return Math.round(255 * Math.min(1, Math.max(0, curved)));
  });
}

/** The shades of the map, from near to far. */
const RAMP = Array.from({ length: SHADES }, (_, i) => {
  const place = (i / (SHADES - 1)) * (STOPS.length - 1);
  const at = Math.min(Math.floor(place), STOPS.length - 2), part = place - at;
  const lab = ([lightness, chroma, hue]) =>
    [lightness, chroma * Math.cos(hue * Math.PI / 180), chroma * Math.sin(hue * Math.PI / 180)];
  const [from, to] = [lab(STOPS[at]), lab(STOPS[at + 1])];
  return toRgb(...from.map((x, k) => x + part * (to[k] - x)));
});

/** The shade for a place in the map's range, 0 to 1. */
function shade(t) {
  return RAMP[Math.round(Math.min(1, Math.max(0, t)) * (SHADES - 1))];
}

/** Four significant digits, as `dab explain` shows a number. */
function rounded(x) {
  const size = Math.abs(x);
  if (size === 0) return "0";
  if (size >= 1e-3 && size < 1e6) return x.toFixed(Math.max(0, 3 - Math.floor(Math.log10(size))));
  return x.toExponential(3).replace("e+", "e");
}

/** A number on an axis: no more digits than its step has. */
function tickText(x, step) {
  if (Math.abs(x) >= 1e5 || (step < 1e-4 && x !== 0)) return x.toExponential(1).replace("e+", "e");
  return x.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
}

/** Round values in a range, about `count` of them, with their texts. */
function linearTicks(low, high, count) {
  const rough = (high - low) / count, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  const ticks = [];
  const [first, last] = [Math.ceil(low / step - 1e-6), Math.floor(high / step + 1e-6)];
  for (let i = first; i <= last; i++) ticks.push([i * step, tickText(i * step, step)]);
  return ticks;
}

/** Round values of a logarithmic range: decades, and what lies between them when they are few. */
function logTicks(low, high) {
  const decades = Math.log10(high / low);
  const parts = decades > 4 ? [1] : decades > 1.2 ? [1, 3] : [1, 2, 5], step = Math.ceil(decades / 8);
  const ticks = [];
  for (let power = step * Math.floor(Math.log10(low) / step); power <= Math.log10(high); power += step) {
    for (const part of parts) {
      const x = part * 10 ** power;
      if (x < low * 0.999 || x > high * 1.001) continue;
      const plain = power >= -3 && power <= 4;
      ticks.push([x, plain ? String(+x.toPrecision(1)) : x.toExponential(0).replace("e+", "e")]);
    }
  }
  return ticks;
}

/** A scale of uncertainties: logarithmic when they differ much, so that near and far can both be seen. */
class Scale {
  constructor(low, high) {
    this.log = low > 0 && high / low > 12;
    if (!(high > low)) [low, high] = [low - 0.5, low + 0.5];
    Object.assign(this, { low, high });
  }

  /** Where `u` lies: 0 at the low end, 1 at the high one. */
  place(u) {
    return this.log
      ? Math.log(Math.max(u, Number.MIN_VALUE) / this.low) / Math.log(this.high / this.low)
      : (u - this.low) / (this.high - this.low);
  }

  value(t) {
    return this.log ? this.low * (this.high / this.low) ** t : this.low + t * (this.high - this.low);
  }

  ticks(count) {
    return this.log ? logTicks(this.low, this.high) : linearTicks(this.low, this.high, count);
  }
}

/** The `share` quantile of numbers. */
function quantile(numbers, share) {
  const sorted = Float64Array.from(numbers).sort();
  return sorted[Math.min(sorted.length - 1, Math.max(0, Math.round(share * (sorted.length - 1))))];
}

/**
 * Lines along which a grid of `n` × `n` values crosses `level`, as pairs of points in cells (marching squares). `value`
 * gives the value of a cell.
 */
function contour(n, value, level) {
  const lines = [];
  for (let j = 0; j + 1 < n; j++) {
    for (let i = 0; i + 1 < n; i++) {
      const corner = [value(i, j), value(i + 1, j), value(i + 1, j + 1), value(i, j + 1)].map((x) => x - level);
      const crossings = [];
      for (let side = 0; side < 4; side++) {
        const [from, to] = [corner[side], corner[(side + 1) % 4]];
        if (from < 0 === to < 0) continue;
        const part = from / (from - to);
        crossings.push([[i + part, j], [i + 1, j + part], [i + 1 - part, j + 1], [i, j + 1 - part]][side]);
      }
      for (let k = 0; k + 1 < crossings.length; k += 2) lines.push([crossings[k], crossings[k + 1]]);
    }
  }
  return lines;
}

/** A new element of an SVG picture, with attributes, inside `parent`. */
function svg(parent, name, attributes, text) {
  const element = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
}
