#!/usr/bin/env python3
"""dab against the baselines: prints the tables of docs/results.md.

    python3 -m venv runs/venv && . runs/venv/bin/activate && pip install numpy scikit-learn
    python dab-train/experiments/contest/contest.py digits --seeds 1
    python dab-train/experiments/contest/contest.py all --print

One table is one command. It cuts the rows (sets.py), calls `dab fit` with its defaults for every split, reads
metrics.json and prints Markdown. What has been run is kept in --out and not run again; a command that was interrupted
goes on where it stopped. `dab fit` makes the model from training and held-out rows; test and OOD rows only measure it.

How to read: U is the unfamiliarity (the score that the verdict uses), u the distance alone, A the ambiguity. "best
baseline" is the baseline with the best mean on that very row, so it has had a choice that dab has not. The difference is
paired, split by split; its 95 % interval is Student's. Where it contains 0 the two tie.
"""

import argparse
import hashlib
import json
import pathlib
import shutil
import subprocess
import sys
import time
import tomllib

import numpy as np
from scipy import stats

import sets

OWN = ["unfamiliarity", "uncertainty", "ambiguity"]
# Settings that are compared with the defaults; the flags are explained by `dab fit --help`. A function makes them from the
# folder of the run with defaults.
VARIANTS = {
    "defaults": [],
    "one code a class": lambda folder: views(folder, codes=1),
    "one view": lambda folder: views(folder, count=1),
    "fixed views (--fast)": ["--fast"],
    "16 KB of flash": ["--flash", "16K"],
    "no limit of flash": ["--flash", "none"],
    "learnt by gradients (--learn)": ["--learn"],
    "learnt, E13's reference rule": ["--learn", "--set", "codebook.mode=reference"],
}
# Differences of AUROC that are named one by one where a table has many lines.
NEAR = 0.005
ABLATED = {"digits": 1, "wine": 3, "clinc150": 2, "resnet20": 3}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=[*sets.TABLES, "all", "ablations"], help="which table")
    parser.add_argument("--seeds", type=int, default=10, help="splits of each row [10]")
    parser.add_argument("--first", type=int, help="run and print only the first splits, so many [all]")
    parser.add_argument("--rows", type=int, help="train on this many rows of CIFAR-10 features [all]")
    parser.add_argument("--only", help="only lines of the table that begin with this")
    parser.add_argument("--dab", default="dab", help="the dab command [dab]")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/contest"), help="where runs are kept")
    parser.add_argument("--print", action="store_true", help="run nothing: print what is there")
    parser.add_argument("--no-head", action="store_true", help="do not give the networks' own last layers")
    parser.add_argument("--details", action="store_true", help="also print every baseline")
    return parser.parse_args()


def views(folder, codes=None, count=None):
    """The views that the defaults chose, changed."""
    with open(folder / "experiment.toml", "rb") as file:
        chosen = tomllib.load(file)["retrofit"]["views"][:count]
    changed = [{**view, **({"codes": codes} if codes else {})} for view in chosen]
    inline = lambda view: "{ " + ", ".join(f"{key} = {json.dumps(value)}" for key, value in view.items()) + " }"
    return ["--set", f"retrofit.views=[{', '.join(map(inline, changed))}]"]


def safetensors(path, **tensors):
    """Writes float32 arrays."""
    header, body = {}, b""
    for name, array in tensors.items():
        raw = np.ascontiguousarray(array, "<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [len(body), len(body) + len(raw)]}
        body += raw
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + body)


def fit(split, folder, options, variant):
    """Runs `dab fit` on a split, unless its results are there."""
    if (folder / "contest.json").exists():
        return
    inputs = folder / "inputs"
    shutil.rmtree(folder, ignore_errors=True)
    inputs.mkdir(parents=True)

    def saved(name, array):
        labels = array.dtype.kind in "iu" and array.ndim == 1
        np.save(inputs / f"{name}.npy", np.asarray(array, np.int64 if labels else np.float32))
        return str(inputs / f"{name}.npy")

    command = [options.dab, "fit", "--features", saved("x", split.x), "--seed", str(split.seed), "--quiet"]
    command += ["--targets" if split.regression else "--labels", saved("y", split.y)]
    command += ["--out", str(folder), "--name", "contest"]
    if split.test:
        command += ["--test", saved("x_test", split.test[0]), "--test-labels", saved("y_test", split.test[1])]
    if split.head is not None and not options.no_head and "--learn" not in variant:
        safetensors(inputs / "head.safetensors", weight=split.head[0], bias=split.head[1])
        command += ["--head", str(inputs / "head.safetensors")]
    for number, (name, rows) in enumerate(split.ood.items()):
        command += ["--ood", f"{name}={saved(f'ood{number}', rows)}"]
    began = time.time()
    done = subprocess.run(command + split.args + variant, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    shutil.rmtree(inputs)
    about = {"row": split.row, "seed": split.seed, "seconds": round(time.time() - began, 1)}
    about |= {"dab": digest(options.dab), "bytes": (folder / "model.dab").stat().st_size}
    (folder / "contest.json").write_text(json.dumps(about) + "\n")
    print(f"{folder}: {about['seconds']} s", file=sys.stderr)


def digest(command):
    return hashlib.sha256(pathlib.Path(shutil.which(command)).read_bytes()).hexdigest()[:12]


def plain(name):
    return "".join(c if c.isalnum() else "-" for c in name).strip("-").lower()


def wanted(row, seed, options, first=None):
    return seed < (first or options.first or options.seeds) and row.startswith(options.only or "")


class Results:
    """The runs of one table: `values[line][method]` is a list of one value a split."""

    def __init__(self, folder, options, first=None):
        self.runs = {}
        for path in sorted(folder.glob(f"*/*-of-{options.seeds}/contest.json")):
            about = json.loads(path.read_text())
            if wanted(about["row"], about["seed"], options, first):
                metrics = json.loads(path.with_name("metrics.json").read_text())
                self.runs.setdefault(about["row"], []).append((about, metrics))

    def methods(self, metrics):
        own = metrics["dab"].get("scores") or [{**metrics["dab"]["report"], "name": "uncertainty"}]
        return {score["name"]: score for score in own}, {score["name"]: score for score in metrics["rivals"]["scores"]}

    def collect(self, runs, pick):
        """One value a run for each method: dab's channels, and the baselines. NaN where a run has none (no errors)."""
        own, rivals = {}, {}
        for place, (_, metrics) in enumerate(runs):
            for values, methods in zip((own, rivals), self.methods(metrics)):
                for name, score in methods.items():
                    value = pick(score)
                    if value is not None:
                        values.setdefault(name, np.full(len(runs), np.nan))[place] = value
        return own, rivals


def number(value, digits=3):
    """.961 rather than 0.961."""
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def mean(values):
    return np.nanmean(values)


def spread(values):
    values = values[~np.isnan(values)]
    return number(values.mean()) + (f" ± {number(values.std(ddof=1))}" if len(values) > 1 else "")


def against(own, rival, larger=True):
    """The paired difference in words."""
    difference = (own - rival)[~np.isnan(own - rival)]
    if not len(difference):
        return "–"
    mean = difference.mean()
    signed = lambda value: ("−" if value < 0 else "+") + number(abs(value))
    if len(difference) < 2:
        return f"{signed(mean)} (one split)"
    half = stats.t.ppf(0.975, len(difference) - 1) * difference.std(ddof=1) / np.sqrt(len(difference))
    word = "ties" if abs(mean) <= half else "wins" if (mean > 0) == larger else "loses"
    return f"{signed(mean)} [{signed(mean - half)}, {signed(mean + half)}] {word}"


def best(rivals, larger=True):
    choose = max if larger else min
    return choose(rivals, key=lambda name: mean(rivals[name]))


def line(cells):
    print("| " + " | ".join(cells) + " |")


def head(cells):
    line(cells)
    line(["---"] * len(cells))


def judged(own):
    return "unfamiliarity" if "unfamiliarity" in own else "uncertainty"


def strangers(lines, details):
    """`lines` are (name, runs, OOD set)."""
    head(["strangers, AUROC", "U", "u alone", "best baseline", "U − best baseline, 95 %", "FPR95 U / it", "AUPR U / it"])
    for name, results, runs, key in lines:
        measure = lambda metric: results.collect(runs, lambda score: score["ood"][key][metric])
        own, rivals = measure("auroc")
        rival, u = best(rivals), judged(own)
        pair = lambda metric: " / ".join(number(mean(values[who])) for values, who in zip(measure(metric), (u, rival)))
        cells = [spread(own[u]), spread(own["uncertainty"]), f"{spread(rivals[rival])} {rival}"]
        line([name, *cells, against(own[u], rivals[rival]), pair("fpr95"), pair("aupr_out")])
        if details:
            for other, values in sorted({**own, **rivals}.items(), key=lambda item: -mean(item[1])):
                print(f"<!-- {name}: {other} {spread(values)} -->")


def errors(lines, details):
    """Each score is judged on the errors of the classifier whose it is, so AURC, which counts the errors too, is fairer."""
    head(["errors", "accuracy", "A, AUROC", "best baseline", "A − best baseline, 95 %", "AURC A / it", "AURC difference"])
    for name, results, runs in lines:
        own, rivals = results.collect(runs, lambda score: (score["misclassification"] or {}).get("auroc"))
        risk, rival_risk = results.collect(runs, lambda score: (score["selective"] or {}).get("aurc"))
        if "ambiguity" not in own or not rivals:
            continue
        rival, least = best(rivals), best(rival_risk, larger=False)
        accuracy = np.array([metrics["dab"]["classification"]["accuracy"] for _, metrics in runs])
        cells = [spread(accuracy), spread(own["ambiguity"]), f"{spread(rivals[rival])} {rival}"]
        areas = f"{number(mean(risk['ambiguity']), 4)} / {number(mean(rival_risk[least]), 4)} {least}"
        found, answered = against(own["ambiguity"], rivals[rival]), against(risk["ambiguity"], rival_risk[least], larger=False)
        line([name, *cells, found, areas, answered])
        if details:
            for other, values in sorted({**own, **rivals}.items(), key=lambda item: -mean(item[1])):
                print(f"<!-- {name}: {other} {spread(values)} -->")


def alarms(lines):
    head(["test rows called (promised)", "doubtful", "unfamiliar", "ambiguous", "model, KB", "seconds"])
    for name, runs in lines:
        every = [alarm for _, metrics in runs for alarm in metrics["dab"].get("alarms", [])]
        share = lambda verdict, key: 100 * np.mean([alarm[key] for alarm in every if alarm["verdict"] == verdict])
        shown = lambda verdict: f"{share(verdict, 'actual'):.1f} % ({share(verdict, 'nominal'):.3g} %)"
        size = np.mean([about["bytes"] for about, _ in runs]) / 1024
        seconds = np.median([about["seconds"] for about, _ in runs])
        kinds = {alarm["verdict"] for alarm in every}
        cells = [shown(verdict) if verdict in kinds else "–" for verdict in ("doubtful", "unfamiliar", "ambiguous")]
        line([name, *cells, f"{size:.0f}", f"{seconds:.0f}"])


def show(table, options, variant=""):
    results = Results(options.out / (table + variant), options)
    if not results.runs:
        return
    sets_of = lambda runs: list(runs[0][1]["dab"]["report"]["ood"])
    named = lambda row, key: row if key == "strangers" else f"{row}, {key}"
    every = [run for runs in results.runs.values() for run in runs]
    rows = results.runs.items()
    lines = [(named(row, key), results, runs, key) for row, runs in rows for key in sets_of(runs)]
    many = len(results.runs) > 3
    if many:
        own, rivals = results.collect(every, lambda score: score["ood"]["strangers"]["auroc"])
        u, rival = judged(own), best(rivals)
        lines = [(f"all {len(results.runs)}", results, every, "strangers")]
        below = {row: difference(results, runs, u, "1-NN") for row, runs in rows}
        worst = min(below, key=below.get)
        lines.append((f"worst against 1-NN: {worst}", results, results.runs[worst], "strangers"))
    print(f"\n{table}{variant}: {len(every)} runs\n")
    if many:
        far = [row for row, value in below.items() if value < -NEAR]
        print(f"More than {number(NEAR)} below 1-NN: {len(far)} of {len(below)} lines ({', '.join(far) or 'none'}).\n")
    strangers(lines, options.details)
    print()
    errors([("all", results, every)] if many else [(row, results, runs) for row, runs in rows], options.details)
    print()
    alarms([("all", every)] if many else rows)


def difference(results, runs, own_name, rival):
    own, rivals = results.collect(runs, lambda score: score["ood"]["strangers"]["auroc"])
    return (own[own_name] - rivals[rival]).mean()


def run(table, options, variant="", flags=(), first=None):
    for split in sets.TABLES[table](options.seeds, options):
        if wanted(split.row, split.seed, options, first):
            place = pathlib.Path(plain(split.row)) / f"{split.seed}-of-{options.seeds}"
            given = flags(options.out / table / place) if callable(flags) else list(flags)
            fit(split, options.out / (table + variant) / place, options, given + (["--no-baselines"] if variant else []))


def ablations(options):
    """Mean AUROC over all strangers of a set by the judged score, the defaults' runs and the same splits otherwise."""
    suffix = lambda name: f"-{plain(name)}" if VARIANTS[name] else ""
    if not options.print:
        for table, first in ABLATED.items():
            for name, flags in VARIANTS.items():
                run(table, options, suffix(name), flags, first)
    head(["mean AUROC of strangers (errors by A)", *ABLATED])
    for name in VARIANTS:
        cells = []
        for table in ABLATED:
            results = Results(options.out / (table + suffix(name)), options, ABLATED[table])
            runs = [run for runs in results.runs.values() for run in runs]
            cell = "–"
            if runs:
                scores = [results.methods(metrics)[0] for _, metrics in runs]
                found = [d["auroc"] for own in scores for d in own[judged(own)]["ood"].values()]
                wrong = [own["ambiguity"]["misclassification"] for own in scores if "ambiguity" in own]
                wrong = [w["auroc"] for w in wrong if w]
                cell = number(np.mean(found)) + (f" ({number(np.mean(wrong))})" if wrong else "")
            cells.append(cell)
        line([name, *cells])


def main():
    options = arguments()
    if options.table == "ablations":
        ablations(options)
        return
    for table in sets.TABLES if options.table == "all" else [options.table]:
        if not options.print:
            run(table, options)
        show(table, options)


if __name__ == "__main__":
    main()
