"""Which exploration bonus helps? The same agent and budget, several bonuses, tuning seeds apart from evaluation seeds.

    python/benchmarks/run.py                    all tasks: tunes, evaluates, writes results.json, the table and the plots
    python/benchmarks/run.py deep-sea           one task
    python/benchmarks/run.py --gate             solved counts of the two cheapest, small budgets (tests/python runs it)
    python/benchmarks/run.py --write docs/exploration.md      puts the table of results.json into the page

Options: --seeds N (20), --out FOLDER, --only "visits, one rule;RND" (some bonuses; the others' rows stay as they are). Needs the installed package dab_uncertainty (or $DAB_LIBRARY) and a C compiler.
"""

import ctypes as c
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
try:
    import dab_uncertainty as dab
except ModuleNotFoundError:
    sys.path.insert(0, str(HERE.parent / "src"))
    import dab_uncertainty as dab

TASKS = ["deep-sea", "mountain-car", "point-maze", "door-key", "door-key-random"]
TITLES = ["DeepSea-20", "MountainCar sparse", "point maze", "DoorKey-8x8 fixed", "DoorKey-8x8 random"]
BONUSES = ["none", "exact counts", "RND", "episodic k-NN", "ellipse", "visits", "visits × episodic"]
ROWS = [*BONUSES, "visits, one rule"]
BUDGET = [60_000, 60_000, 80_000, 80_000, 120_000]
#: Chosen on the tuning seeds: the weight of the bonus, for RND also its step size, for visits also the deviation.
WEIGHTS = [0.01, 0.1, 0.5]
RATES = [0.003, 0.03]
STDS = [0.03, 0.06]
TUNING, CODES = range(1000, 1002), 256
SAMPLES = 2000
MARKS = ("<!-- benchmark: python/benchmarks/run.py --write docs/exploration.md -->", "<!-- end of benchmark -->")


class Settings(c.Structure):
    _fields_ = [(n, c.c_int32) for n in ("task", "bonus", "steps", "codes")] + [
        ("seed", c.c_uint64),
        ("weight", c.c_float),
        ("std", c.c_float * 12),
        ("spawn", c.c_float),
        ("alpha", c.c_float),
        ("rate", c.c_float),
    ]


class Outcome(c.Structure):
    _fields_ = [
        ("first", c.c_int32),
        ("success", c.c_float),
        ("value", c.c_float),
        ("coverage", c.c_int32),
        ("codes", c.c_int32),
        ("bonus_seconds", c.c_double),
    ]


def build(folder):
    """The inner loop as a shared library, linked with the package's own."""
    library = Path(dab.library_path()).resolve()
    out = Path(folder) / "explorer.so"
    include = HERE.parent.parent / "include"
    fast = ["-O3", "-march=native", "-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno"]
    line = ["cc", "-std=c99", *fast, "-Wall", "-Wextra", "-shared", "-fPIC", "-I", include, HERE / "explorer.c", library]
    subprocess.run([*map(str, line), "-lm", f"-Wl,-rpath,{library.parent}", "-o", str(out)], check=True)
    return c.CDLL(str(out))


class Bench:
    def __init__(self, folder):
        # The library's soname may differ from its file's name: it is loaded already, so the loader finds it.
        self.lib = build(folder)
        self.lib.sample.argtypes = [c.c_int, c.c_uint64, c.c_int, c.c_void_p]

    def rule(self, task):
        """The one rule: deviations from what a random agent of a tuning seed sees, and the number of codes."""
        rows = np.zeros(SAMPLES * 12, np.float32)
        dim = self.lib.sample(task, TUNING[0], SAMPLES, rows.ctypes.data)
        return dab.suggest_std(rows[: SAMPLES * dim].reshape(SAMPLES, dim), CODES)

    def one(self, task, bonus, seed, steps, weight=0.1, std=0.05, rate=0.01):
        s = Settings(task, bonus, steps, CODES, seed, weight, spawn=1.0, alpha=1.0, rate=rate)
        every = np.broadcast_to(np.asarray(std, np.float32), np.shape(std) if np.ndim(std) else (12,))
        for i, value in enumerate(every):
            s.std[i] = value
        out = Outcome()
        start = time.process_time()
        if self.lib.run(c.byref(s), c.byref(out)) != 0:
            raise SystemExit(f"{TASKS[task]}, {BONUSES[bonus]}: the run failed")
        seconds = time.process_time() - start
        first = out.first if out.first > 0 else None
        return dict(first=first, success=out.success, value=out.value, coverage=out.coverage, codes=out.codes, us=1e6 * seconds / steps)

    def choices(self, bonus):
        name = BONUSES[bonus]
        if name == "none":
            return [{}]
        weights = [{"weight": w} for w in WEIGHTS]
        if name == "RND":
            return [{**w, "rate": r} for w in weights for r in RATES]
        if "visits" in name or "k-NN" in name:
            return [{**w, "std": s} for w in weights for s in STDS]
        return weights

    def tune(self, task, bonus):
        """The choice with the most successes in the last fifth on the tuning seeds, then the earliest first one."""
        steps = BUDGET[task]
        best, choice = None, {}
        for options in self.choices(bonus):
            found = [self.one(task, bonus, seed, steps, **options) for seed in TUNING]
            firsts = [f["first"] or 2 * steps for f in found]
            rank = (-np.median([f["success"] for f in found]).round(1), np.median(firsts))
            if best is None or rank < best:
                best, choice = rank, options
        return choice


def interval(values, statistic=np.median, rounds=2000):
    """A bootstrap interval of 95 %."""
    rng = np.random.default_rng(0)
    values = np.asarray(values, float)
    draws = statistic(values[rng.integers(0, len(values), (rounds, len(values)))], axis=1)
    return [float(x) for x in np.quantile(draws, [0.025, 0.975])]


def evaluate(bench, task, bonus, seeds, options):
    steps = BUDGET[task]
    found = [bench.one(task, bonus, seed, steps, **options) for seed in seeds]
    firsts = [f["first"] or steps for f in found]
    measure = "value" if "door" in TASKS[task] else "success"
    last = [f[measure] for f in found]
    return {
        "task": TASKS[task],
        "bonus": BONUSES[bonus],
        "options": {k: (v.tolist() if hasattr(v, "tolist") else v) for k, v in options.items()},
        "seeds": len(found),
        "solved": sum(f["first"] is not None for f in found),
        "first": float(np.median(firsts)),
        "first_interval": interval(firsts),
        "last": float(np.median(last)),
        "last_interval": interval(last),
        "coverage": float(np.median([f["coverage"] for f in found])),
        "codes": float(np.median([f["codes"] for f in found])),
        "us_per_step": float(np.median([f["us"] for f in found])),
    }


def table(results):
    """Markdown: solved seeds, median steps to the first goal, and success (DoorKey: reward) in the last fifth."""
    tasks = [t for t in TASKS if any(r["task"] == t for r in results)]
    names = list(dict.fromkeys(r["bonus"] for r in results))
    lines = ["| bonus | " + " | ".join(TITLES[TASKS.index(t)] for t in tasks) + " |", "|---" * (len(tasks) + 1) + "|"]
    for name in names:
        cells = []
        for task in tasks:
            r = next((r for r in results if r["task"] == task and r["bonus"] == name), None)
            if r is None:
                cells.append("")
                continue
            low, high = (f"{x / 1000:.1f}" for x in r["first_interval"])
            first = f"{r['first'] / 1000:.1f}k [{low}–{high}] " if r["solved"] > r["seeds"] / 2 else ""
            cells.append(f"{first}{r['solved']}/{r['seeds']} {r['last']:.2f}")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def coverage(results):
    """Markdown: cells that a run has seen, and processor time of a step, medians."""
    tasks = [t for t in TASKS if any(r["task"] == t for r in results)]
    names = list(dict.fromkeys(r["bonus"] for r in results))
    lines = ["| bonus: cells seen, µs a step | " + " | ".join(TITLES[TASKS.index(t)] for t in tasks) + " |", "|---" * (len(tasks) + 1) + "|"]
    for name in names:
        rows = {r["task"]: r for r in results if r["bonus"] == name}
        cell = lambda r: f"{r['coverage']:,.0f}, {r['us_per_step']:.1f}" if r and "us_per_step" in r else ""  # noqa: E731
        lines.append(f"| {name} | " + " | ".join(cell(rows.get(t)) for t in tasks) + " |")
    return "\n".join(lines) + "\n"


def plot(results, task, path):
    """Steps to the first goal as a dot with its interval, one row a bonus."""
    rows = [r for r in results if r["task"] == task]
    budget, left, width = BUDGET[TASKS.index(task)], 170, 640
    scale = (width - left - 90) / budget
    height = 46 + 24 * len(rows)
    svg = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="8" y="18" font-weight="bold">{TITLES[TASKS.index(task)]}: steps to the first goal (median, 95 % interval)</text>',
    ]
    for i, r in enumerate(rows):
        y = 42 + 24 * i
        a, b, m = (left + scale * x for x in (*r["first_interval"], r["first"]))
        colour = "#0a6" if "visits" in r["bonus"] else "#446"
        svg.append(f'<text x="8" y="{y + 4}">{r["bonus"]}</text>')
        svg.append(f'<line x1="{left}" x2="{left + scale * budget:.0f}" y1="{y}" y2="{y}" stroke="#eee"/>')
        svg.append(f'<line x1="{a:.1f}" x2="{b:.1f}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="3"/>')
        svg.append(f'<circle cx="{m:.1f}" cy="{y}" r="5" fill="{colour}"/>')
        svg.append(f'<text x="{width - 80}" y="{y + 4}">{r["solved"]}/{r["seeds"]} solved</text>')
    Path(path).write_text("\n".join([*svg, "</svg>"]) + "\n", encoding="utf-8")


def gate(bench):
    """Visits solve what no bonus cannot, on seeds that are not tuning seeds."""
    wrong = []
    for task, weight in (("deep-sea", 0.1), ("mountain-car", 0.1)):
        at = TASKS.index(task)
        for bonus, least, most in (("none", 0, 1), ("visits", 4, 5)):
            found = [bench.one(at, BONUSES.index(bonus), seed, BUDGET[at], weight=weight, std=bench.rule(at)) for seed in range(5)]
            solved = sum(f["first"] is not None for f in found)
            print(f"{task}, {bonus}: {solved} of 5 solved")
            if not least <= solved <= most:
                wrong.append(f"{task}, {bonus}: {solved} of 5, wanted {least} to {most}")
    if wrong:
        raise SystemExit("\n".join(wrong))


def main():
    arguments = sys.argv[1:]
    valued = {"--seeds", "--out", "--only", "--write"}
    values = {value for flag, value in zip(arguments, arguments[1:]) if flag in valued}
    unknown = set(arguments) - values - valued - {*TASKS, "--gate"}
    if unknown:
        # A run of all tasks takes hours and writes over results.json: nobody should start one by a slip.
        print(__doc__)
        return None if unknown <= {"-h", "--help"} else f"unknown: {', '.join(sorted(unknown))}"
    option = lambda name, default: arguments[arguments.index(name) + 1] if name in arguments else default  # noqa: E731
    seeds, out = range(int(option("--seeds", 20))), Path(option("--out", HERE))
    if "--write" in arguments:
        page, results = Path(option("--write", "")), json.loads((out / "results.json").read_text())
        before, rest = page.read_text(encoding="utf-8").split(MARKS[0])
        page.write_text(f"{before}{MARKS[0]}\n{table(results)}\n{coverage(results)}{MARKS[1]}{rest.split(MARKS[1])[1]}", encoding="utf-8")
        return None
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder)
        if "--gate" in arguments:
            return gate(bench)
        chosen = [t for t in TASKS if t in arguments] or TASKS
        saved = out / "results.json"
        results = json.loads(saved.read_text()) if saved.exists() else []
        only = option("--only", ";".join(ROWS)).split(";")
        for name in chosen:
            task = TASKS.index(name)
            for row in only:
                if row == ROWS[-1]:
                    # One weight and one rule for the deviation, the same for all tasks.
                    bonus, options = BONUSES.index("visits"), {"weight": 0.1, "std": bench.rule(task)}
                else:
                    bonus = BONUSES.index(row)
                    options = bench.tune(task, bonus)
                results = [r for r in results if (r["task"], r["bonus"]) != (name, row)]
                results.append({**evaluate(bench, task, bonus, seeds, options), "bonus": row})
                print(results[-1], flush=True)
                # After every row: a run that is stopped keeps what it has.
                results.sort(key=lambda r: (TASKS.index(r["task"]), ROWS.index(r["bonus"])))
                saved.write_text(json.dumps(results, indent=1) + "\n")
        for name in chosen:
            plot(results, name, out / f"{name}.svg")
        print(table(results), coverage(results), sep="\n")


if __name__ == "__main__":
    sys.exit(main())
