#!/usr/bin/env python3
"""dab against the baselines: runs the contest and fills the tables of docs/results.md and README.md.

    python3 -m venv runs/venv && . runs/venv/bin/activate && pip install numpy scipy scikit-learn
    python dab-train/experiments/contest/contest.py wine                      # runs ten splits of each line and prints
    python dab-train/experiments/contest/contest.py wine --fill docs/results.md
    python dab-train/experiments/contest/contest.py all --print --fill docs/results.md

One table is one command. It cuts the rows (sets.py), calls `dab fit` with its defaults for every split, reads
metrics.json and makes Markdown (tables.py says how to read it). What has been run is kept in --out and not run again; a
command that was interrupted goes on where it stopped. `dab fit` makes the model from training and held-out rows; test and
OOD rows only measure it. With --fill, the section of that name in a page is written anew.
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

import development
import networks
import sets
import tables

# Settings that are compared with the defaults; the flags are explained by `dab fit --help`. A function makes them from the
# split and the folder of its run with defaults.
VARIANTS = {
    "defaults": [],
    "one view": lambda split, folder: views(folder, count=1),
    "one code a class (k = classes)": lambda split, folder: views(folder, codes=1),
    "5 codes a class (k = 5 × classes)": lambda split, folder: views(folder, codes=5),
    "fixed views (--fast)": ["--fast"],
    "16 KB of flash": ["--flash", "16K"],
    "no limit of flash": ["--flash", "none"],
    "learnt by gradients (--learn)": ["--learn"],
    "learnt, k = 1": ["--learn", "--codes", "1"],
    "learnt, k = 3 × classes": lambda split, folder: ["--learn", "--codes", str(3 * len(np.unique(split.y)))],
    "learnt, E13's reference rule": ["--learn", "--set", "codebook.mode=reference"],
}
# Splits of each table that the variants are run on, and the lines of it.
ABLATED = {"wine": (3, ""), "digits": (1, "0 and"), "resnet20": (3, ""), "clinc150": (1, "")}
# The lines of the README's table: features, strangers, and the sets of strangers.
SHORT = {
    "uci": ("UCI Energy, 8 columns", "kin8nm / concrete / protein / boston", ["kin8nm", "concrete", "protein", "boston"]),
    "resnet56": ("CIFAR-10, ResNet-56, 64 columns", "SVHN / TinyImageNet / CINIC", ["SVHN", "Tiny-ImageNet", "CINIC"]),
    "resnet8": ("CIFAR-10, ResNet-8, 64 columns", "SVHN / TinyImageNet / CINIC", ["SVHN", "Tiny-ImageNet", "CINIC"]),
    "clinc150": ("CLINC150 sentences, 384 columns", "out of scope / TREC / Wikipedia", ["out of scope", "TREC", "Wikipedia"]),
}


# What might make learning help; each is compared with the settings that `dab fit --learn` takes by itself.
LEARNT = {
    "computed": [],
    "--learn": ["--learn"],
    "network, as --learn makes it": lambda split, folder: learnt(split),
    "full covariance (Cholesky)": lambda split, folder: learnt(split, covariance="bottleneck.covariance=cholesky"),
    "5 codes a class": lambda split, folder: learnt(split, each=5),
    "starts as the computed model, 10 codes a class": lambda split, folder: learnt(
        split, each=10, layers=identity(folder, split), start="codebook.start=retrofit", dim=no_wider(folder, split)
    ),
    "α rises from a twentieth": lambda split, folder: learnt(
        split, low="codebook.anneal_from=0.05", rise=f"codebook.anneal={learnt_epochs(folder) // 2}"
    ),
    "β 10 times": lambda split, folder: learnt(split, beta="objective.beta=0.01"),
    "β a tenth": lambda split, folder: learnt(split, beta="objective.beta=1e-4"),
    "no hidden layers": lambda split, folder: learnt(split, layers="backbone.layers=[]"),
    "second layer adds to the first": lambda split, folder: learnt(split, layers=residual(folder)),
    "inputs with three times the noise": lambda split, folder: learnt(split, noise="training.input_noise=3.0"),
}


# Rows on which the rule was developed, and some beside them.
DEVELOPMENT = {
    "development": development.development,
    "few": development.few,
    "networks": networks.networks,
    "others": development.others,
}
# Splits without baselines, for comparisons of settings.
COMPARED = {"learning": development.learning}
# The tables of the page, and those.
ALL = {**sets.TABLES, **DEVELOPMENT, **COMPARED}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=[*ALL, "all", "ablations", "overall", "short"], help="which table")
    parser.add_argument("--seeds", type=int, default=10, help="splits of each row [10]")
    parser.add_argument("--first", type=int, help="run and print only the first splits, so many [all]")
    parser.add_argument("--rows", type=int, help="train on this many rows of CIFAR-10 features [all]")
    parser.add_argument("--only", default="", help="only lines of the table that begin with this")
    parser.add_argument("--dab", default="dab", help="the dab command [dab]")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("runs/contest"), help="where runs are kept")
    parser.add_argument("--print", action="store_true", help="run nothing: take what is there")
    parser.add_argument("--fill", type=pathlib.Path, metavar="PAGE", help="write the section of that name in a page")
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


def learnt(split, each=1, **settings):
    """A network that learns, whatever hidden classes say: the number of its codes asks for it."""
    changes = [part for setting in settings.values() for part in ("--set", setting)]
    return ["--learn", "--codes", str(each * len(np.unique(split.y))), *changes]


def of_learnt(folder):
    """The experiment of the network that `--learn` makes of the same split; `folder` is that of the computed model."""
    place = folder.parents[2] / f"learning-{file_name('network, as --learn makes it')}" / folder.relative_to(folder.parents[1])
    with open(place / "experiment.toml", "rb") as file:
        return tomllib.load(file)


def learnt_epochs(folder):
    return of_learnt(folder)["training"]["epochs"]


def first_layer(folder):
    return f'units = {of_learnt(folder)["backbone"]["layers"][0]["units"]}, activation = "relu"'


def residual(folder):
    layer = first_layer(folder)
    return f"backbone.layers=[{{ {layer} }}, {{ {layer}, residual = 1 }}]"


def identity(folder, split):
    """The second layer has the inputs' width and adds to them."""
    last = f'units = {split.x.shape[1]}, activation = "identity", residual = 0'
    return f"backbone.layers=[{{ {first_layer(folder)} }}, {{ {last} }}]"


def no_wider(folder, split):
    return f'bottleneck.dim={min(of_learnt(folder)["bottleneck"]["dim"], split.x.shape[1])}'


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
    for place, (name, rows) in enumerate(split.ood.items()):
        command += ["--ood", f"{name}={saved(f'ood{place}', rows)}"]
    began = time.time()
    done = subprocess.run(command + split.args + variant, capture_output=True, text=True)
    if done.returncode and "--flash" in variant:
        # What has no room is no line of the table.
        print(f"{folder}: {done.stderr.strip()}", file=sys.stderr)
        return
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    shutil.rmtree(inputs)
    about = {"row": split.row, "seed": split.seed, "seconds": round(time.time() - began, 1)}
    about |= {"dab": digest(options.dab), "bytes": (folder / "model.dab").stat().st_size}
    (folder / "contest.json").write_text(json.dumps(about) + "\n")
    print(f"{folder}: {about['seconds']} s", file=sys.stderr)


def digest(command):
    return hashlib.sha256(pathlib.Path(shutil.which(command)).read_bytes()).hexdigest()[:12]


def file_name(words):
    return "".join(c if c.isalnum() else "-" for c in words).strip("-").lower()


def wanted(options, first=None, only=None):
    """Whether a split is asked for, by its line and seed."""
    first, only = first or options.first or options.seeds, options.only if only is None else only
    return lambda row, seed: seed < first and row.startswith(only)


def run(table, options, asked, variant="", flags=()):
    for split in ALL[table](options.seeds, options):
        if asked(split.row, split.seed):
            place = pathlib.Path(file_name(split.row)) / f"{split.seed}-of-{options.seeds}"
            given = flags(split, options.out / table / place) if callable(flags) else list(flags)
            fit(split, options.out / (table + variant) / place, options, given + (["--no-baselines"] if variant else []))


def results(table, options, asked, variant=""):
    return tables.Results(options.out / (table + variant), options.seeds, asked)


def ablations(options):
    """Mean AUROC over all strangers of a set by the judged score, the defaults' runs and the same splits otherwise."""
    suffix = lambda name: f"-{file_name(name)}" if VARIANTS[name] else ""
    asked = {table: wanted(options, first, only) for table, (first, only) in ABLATED.items()}
    if not options.print:
        for table in ABLATED:
            for name, flags in VARIANTS.items():
                run(table, options, asked[table], suffix(name), flags)
    rows = []
    for name in VARIANTS:
        cells = []
        for table in ABLATED:
            runs = results(table, options, asked[table], suffix(name)).every()
            scores = [tables.methods({"baselines": {"scores": []}, **metrics})[0] for _, metrics in runs]
            found = [d["auroc"] for own in scores for d in own[tables.judged(own)]["ood"].values()]
            wrong = [own["ambiguity"]["misclassification"] for own in scores if "ambiguity" in own]
            wrong = [w["auroc"] for w in wrong if w]
            cell = tables.number(np.mean(found)) if found else "–"
            cells.append(cell + (f" ({tables.number(np.mean(wrong))})" if wrong else ""))
        rows.append([name, *cells])
    counted = [f"{table} ({len(results(table, options, asked[table]).every())} runs)" for table in ABLATED]
    return "\n".join(tables.table(["mean AUROC of strangers (errors by A)", *counted], rows)) + "\n"


def learning(options):
    """What learning the codebook with a network finds, by its own distance and by U, and how well it predicts."""
    suffix = lambda name: f"-{file_name(name)}" if LEARNT[name] else ""
    asked = wanted(options, only="")
    if not options.print:
        for name, flags in LEARNT.items():
            run("learning", options, asked, suffix(name), flags)
    rows = []
    for name in LEARNT:
        lines = results("learning", options, asked, suffix(name)).runs.values()
        own = [[tables.methods({"baselines": {"scores": []}, **metrics})[0] for _, metrics in runs] for runs in lines]
        found = lambda pick: np.mean([np.mean([d["auroc"] for s in each for d in pick(s)["ood"].values()]) for each in own])
        right = np.mean([np.mean([metrics["dab"]["classification"]["accuracy"] for _, metrics in runs]) for runs in lines])
        judged = lambda scores: scores[tables.judged(scores)]
        rows.append([name, *map(tables.number, (found(lambda s: s["uncertainty"]), found(judged), right))])
    return "\n".join(tables.table(["mean over 9 tables", "strangers, u alone", "strangers, U", "accuracy"], rows)) + "\n"


def short(options):
    """The README's table: means over the splits that are there."""
    rows = []
    for table, (title, strangers, keys) in SHORT.items():
        rows.append(tables.short(title, strangers, results(table, options, wanted(options)), keys))
    return "\n".join(tables.table(["features", "strangers", "dab", "best baseline"], rows)) + "\n"


def overall(options):
    """Every method on every set; nothing is run for it."""
    found = {table: results(table, options, wanted(options)) for table in sets.TABLES}
    return tables.overall({table: runs for table, runs in found.items() if runs.runs})


def show(name, text, options):
    if options.fill:
        tables.fill(options.fill, name, text)
    else:
        print(f"\n{name}\n\n{text}")


def main():
    options = arguments()
    made = {"ablations": ablations, "learning": learning, "overall": overall, "short": short}.get(options.table)
    if made:
        show(options.table, made(options), options)
        return
    for table in sets.TABLES if options.table == "all" else [options.table]:
        asked = wanted(options)
        if not options.print:
            run(table, options, asked)
        found = results(table, options, asked)
        if found.runs and table in DEVELOPMENT:
            show(table, tables.by_strangers(found) if table == "networks" else tables.against_fixed(found), options)
        elif found.runs:
            show(table, tables.section(found, options.details), options)


if __name__ == "__main__":
    main()
