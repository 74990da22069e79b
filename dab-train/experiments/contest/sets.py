"""The rows of the contest: what is learnt, what is tested, who the strangers are.

Each function yields `Split`s. A split is one run of `dab fit`: with `test` of None, `dab fit` cuts the test rows itself.
Sets that bring test rows cut them and every OOD set into as many disjoint parts as there are splits, so that the
differences between two methods on different splits come from different rows.
"""

import gzip
import importlib.util
import json
import os
import pathlib
import pickle
import struct
import subprocess
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np

REPOSITORY = pathlib.Path(__file__).resolve().parents[3]
FAR_TEXT = {"TREC": "x_trec", "SST-2": "x_sst2", "AG News": "x_agnews", "Wikipedia": "x_wiki"}
UCI = {"kin8nm": "kin8nm", "concrete": "concrete_strength", "protein": "protein_structure", "boston": "boston_housing"}


@dataclass
class Split:
    row: str  # the line of the table
    seed: int
    x: np.ndarray
    y: np.ndarray
    ood: dict
    test: tuple = None  # inputs and answers
    regression: bool = False
    head: tuple = None  # weight and bias of the network's own last layer
    args: list = field(default_factory=list)


def data(path):
    """A stored file, in $DAB_DATA, in data/ or in ../shared/data beside the repository."""
    folders = [os.environ.get("DAB_DATA") or "data", REPOSITORY / "data", REPOSITORY.parent / "shared/data"]
    for folder in folders:
        if (pathlib.Path(folder) / path).exists():
            return pathlib.Path(folder) / path
    raise SystemExit(f"no {path} in {', '.join(map(str, folders))}: `dab data` tells how to get it")


def parts(x, seed, seeds, stream):
    """Rows of part `seed` of `seeds` disjoint parts."""
    order = np.random.default_rng(stream).permutation(len(x))
    return np.array_split(order, seeds)[seed]


def folds(x, y, ood, seed, seeds):
    """Part `seed` of the test rows and of each OOD set."""
    test = parts(x, seed, seeds, 0)
    return (x[test], y[test]), {name: rows[parts(rows, seed, seeds, 1 + i)] for i, (name, rows) in enumerate(ood.items())}


def digits(seeds, options):
    from sklearn.datasets import load_digits

    x, y = load_digits(return_X_y=True)
    for a, b in combinations(range(10), 2):
        out = (y == a) | (y == b)
        for seed in range(seeds):
            yield Split(f"{a} and {b}", seed, x[~out], y[~out], {"strangers": x[out]})


def wine(seeds, options):
    from sklearn.datasets import load_wine

    x, y = load_wine(return_X_y=True)
    for kind in range(3):
        for seed in range(seeds):
            yield Split(f"class {kind}", seed, x[y != kind], y[y != kind], {"strangers": x[y == kind]})


def uci(seeds, options):
    def read(name):
        with gzip.open(data(f"uci/{name}.csv.gz"), "rt") as file:
            return np.loadtxt(file, delimiter=",", skiprows=1)

    def cut(table, rng):
        order = rng.permutation(len(table))
        return table[order[len(table) // 5 :]], table[order[: len(table) // 5]]

    energy, others = read("energy_efficiency"), {name: read(file) for name, file in UCI.items()}
    for seed in range(seeds):
        rng = np.random.default_rng(seed)
        train, test = cut(energy, rng)
        mean, std = train.mean(0), train.std(0)
        scaled = lambda t: (t - mean) / std
        ood = {}
        for name, table in others.items():
            # By its own statistics, so that no unit gives a set away.
            own, rows = (part[:, :8] for part in cut(table, rng))
            ood[name] = (rows - own.mean(0)) / own.std(0)
        (train, test) = scaled(train), scaled(test)
        yield Split("UCI Energy", seed, train[:, :8], train[:, 8], ood, (test[:, :8], test[:, 8]), regression=True)


def motor(seeds, options):
    """Windows of a healthy motor, other windows of it, and four faults of examples/motor's simulation."""
    place = importlib.util.spec_from_file_location("simulate", REPOSITORY / "examples/motor/simulate.py")
    simulate = importlib.util.module_from_spec(place)
    place.loader.exec_module(simulate)

    def windows(seed, count, winding=False, **constants):
        kept = {name: getattr(simulate, name) for name in constants}
        for name, factor in constants.items():
            setattr(simulate, name, kept[name] * factor)
        machine = simulate.Motor(seed)
        machine.winding = winding
        rows = [machine.window() for _ in range(count)]
        for name, value in kept.items():
            setattr(simulate, name, value)
        return np.array([simulate.inputs(counts) for counts, _ in rows], float), np.array([speed for _, speed in rows])

    for seed in range(seeds):
        x, y = windows(1000 * seed + 1, 4000)
        faults = {
            "open winding": windows(1000 * seed + 3, 500, winding=True)[0],
            "worn brushes (R × 1.5)": windows(1000 * seed + 4, 500, RESISTANCE=1.5)[0],
            "weak magnet (k × 0.85)": windows(1000 * seed + 5, 500, CONSTANT=0.85)[0],
            "overload (load × 2)": windows(1000 * seed + 6, 500, LOAD=2.0)[0],
        }
        yield Split("motor", seed, x, y, faults, windows(1000 * seed + 2, 1000), regression=True)


def clinc150(seeds, options):
    intents, text = np.load(data("clinc150/clinc150_minilm_f16.npz")), np.load(data("text_ood/text_ood_minilm_f16.npz"))
    x = np.concatenate([intents["x_train"], intents["x_val"]])
    y = np.concatenate([intents["y_train"], intents["y_val"]])
    ood = {"out of scope": intents["x_oos_test"], **{name: text[key] for name, key in FAR_TEXT.items()}}
    for seed in range(seeds):
        test, strangers = folds(intents["x_test"], intents["y_test"], ood, seed, seeds)
        yield Split("CLINC150", seed, x, y, strangers, test)


def last_layer(features, logits):
    """The layer that made `logits` of `features`: a linear system with thousands of equations and one solution."""
    x = np.c_[features.astype(float), np.ones(len(features))]
    solution = np.linalg.lstsq(x, logits.astype(float), rcond=None)[0]
    return solution[:-1].T, solution[-1]


def cifar(network):
    def splits(seeds, options):
        file = np.load(data(f"cifar10/cifar10_{network}_feats_f16.npz"))
        # Tiny-ImageNet shares classes with CIFAR-10; images of these are left out.
        tin = file["f_tin"][~file["tin_overlaps_cifar10"]]
        strange = {"SVHN": file["f_svhn"], "Tiny-ImageNet": tin, "CINIC": file["f_cinic"]}
        head = last_layer(file["f_train"], file["logits_train"])
        for seed in range(seeds):
            test, ood = folds(file["f_test"], file["y_test"], strange, seed, seeds)
            kept = np.random.default_rng(seed).permutation(50000)[: options.rows or 50000]
            name = network.replace("resnet", "ResNet-")
            yield Split(name, seed, file["f_train"][kept], file["y_train"][kept], ood, test, head=head)

    return splits


def checkpoint_layer(path):
    """Weight and bias of the layer `linear` of a PyTorch checkpoint in the format before 1.6: pickles, then raw numbers."""

    class Reader(pickle.Unpickler):
        def find_class(self, module, name):
            if module == "collections" and name == "OrderedDict":
                return dict
            # A tensor is (storage, offset, shape, …); a storage is known by its key.
            return (lambda storage, offset, shape, *_: (storage, offset, shape)) if name.startswith("_rebuild") else name

        def persistent_load(self, about):
            return about[2]

    with open(path, "rb") as file:
        *_, content, keys = [Reader(file).load() for _ in range(5)]
        numbers = {key: np.fromfile(file, "<f4", struct.unpack("<q", file.read(8))[0]) for key in keys}
    tensors = content.get("state_dict", content)

    def tensor(name):
        storage, offset, shape = next(value for key, value in tensors.items() if key.endswith(name))
        return numbers[storage][offset : offset + int(np.prod(shape))].reshape(shape)

    return tensor("linear.weight"), tensor("linear.bias")


def stored_images():
    images, strange = np.load(data("cifar10/cifar10_train6k_test2k.npz")), np.load(data("cifar10/ood_images_1k_each.npz"))
    return images, {"SVHN": strange["svhn"], "Tiny-ImageNet": strange["tin"], "CINIC": strange["cinic"]}


def pixels(seeds, options):
    """The stored images as they are, 3072 numbers, and at 8 × 8 pixels, 192 numbers: what a small camera on a controller would give."""
    images, strange = stored_images()
    whole = lambda x: x.reshape(len(x), -1)
    small = lambda x: x.reshape(-1, 8, 4, 8, 4, 3).mean((2, 4)).reshape(len(x), -1)
    for name, made in {"pixels, 8 × 8": small, "pixels, 32 × 32": whole}.items():
        x_test, ood = made(images["x_test"]), {key: made(x) for key, x in strange.items()}
        for seed in range(seeds):
            test, strangers = folds(x_test, images["y_test"], ood, seed, seeds)
            yield Split(name, seed, made(images["x_train"]), images["y_train"], strangers, test)


def resnet20(seeds, options):
    """Features of the stored images from the published ResNet-20: `dab train` with the network frozen keeps them."""
    images, strange = stored_images()
    sources = {"SVHN": "svhn", "Tiny-ImageNet": "tin", "CINIC": "cinic"}
    folder = options.out / "resnet20-features"
    kept = folder / "names.json"
    names = json.loads(kept.read_text()) if kept.exists() else {}
    experiment = REPOSITORY / "dab-train/experiments/cifar10-resnet20-finetune.toml"
    for name, key in {"": "", **sources}.items():
        if name in names:
            continue
        before = set(folder.glob("features/*.features"))
        file = data("cifar10/ood_images_1k_each.npz").resolve()
        ood = f'{{ ood = "{file}:{key}" }}' if key else "{}"
        command = [options.dab, "train", experiment, "--set", "backbone.images.frozen=true", "--set", "training.epochs=2"]
        command += ["--set", f"data.ood={ood}", "--no-baselines", "--quiet", "--force", "--out", folder / "run"]
        environment = {**os.environ, "DAB_DATA": str(file.parents[1])}
        subprocess.run([str(part) for part in command], check=True, env=environment, stdout=subprocess.DEVNULL)
        # What is new is the set that was asked for; at first, training and test images, told by their number.
        names[name] = [path.name for path in sorted(set(folder.glob("features/*.features")) - before)]
        kept.write_text(json.dumps(names))

    def read(name):
        raw = (folder / "features" / name).read_bytes()
        rows, columns = struct.unpack("<QQ", raw[8:24])
        return np.frombuffer(raw, "<f4", offset=24).reshape(rows, columns)

    x_test, x_train = sorted(map(read, names[""]), key=len)
    layer = checkpoint_layer(data("cifar10/resnet20-12fca82f.th"))
    ood = {name: read(names[name][0]) for name in sources}
    for seed in range(seeds):
        test, strangers = folds(x_test, images["y_test"], ood, seed, seeds)
        yield Split("ResNet-20", seed, x_train, images["y_train"], strangers, test, head=layer)


TABLES = {
    "digits": digits,
    "wine": wine,
    "uci": uci,
    "motor": motor,
    "clinc150": clinc150,
    "pixels": pixels,
    "resnet20": resnet20,
    "resnet8": cifar("resnet8"),
    "resnet56": cifar("resnet56"),
}
