"""Expected scores of the baselines from NumPy and scikit-learn, written to baselines.json beside this file.

python3 -m pip install numpy scikit-learn && python3 dab-train/tests/reference/baselines.py

Inputs are multiples of 1/64 (exact in binary32 and in JSON), so that the Rust test reads the very same numbers.
"""

import json
import pathlib

import numpy as np
from sklearn.covariance import EmpiricalCovariance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.neighbors import NearestNeighbors

GRID, CLASSES, COLUMNS = 64.0, 3, 6
NEIGHBOURS = [1, 10, 50]
PENALTIES = [1000.0, 100.0, 10.0, 1.0, 0.1]
RIDGE = 1e-6


def draw(rng, rows):
    """Three overlapping classes; the last two columns hardly vary, the first two carry the class."""
    labels = np.arange(rows) % CLASSES
    spread = np.array([1.0, 1.0, 2.0, 0.5, 0.1, 0.05])
    x = rng.normal(size=(rows, COLUMNS)) * spread + 4.0
    x[:, 0] += 1.5 * (labels == 0)
    x[:, 1] += 1.5 * (labels == 1)
    return np.round(x * GRID) / GRID, labels


def softmax(logits):
    powers = np.exp(logits - logits.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)


def of_logits(logits):
    p = np.sort(softmax(logits), axis=1)[:, ::-1]
    top = p[:, :100]
    return {
        "MSP": 1 - p[:, 0],
        "margin": 1 - (p[:, 0] - p[:, 1]),
        "entropy": -(p * np.log(p)).sum(1),
        "energy": -np.log(np.exp(logits).sum(1)),
        "GEN": (top**0.1 * (1 - top) ** 0.1).sum(1),
    }


def vim(train, train_logits, queries, logits, weight, bias):
    """As in the authors' code: https://github.com/haoqiwang/vim."""
    origin = -np.linalg.pinv(weight) @ bias
    covariance = EmpiricalCovariance(assume_centered=True).fit(train - origin).covariance_
    values, vectors = np.linalg.eigh(covariance)
    residual = vectors[:, np.argsort(values)[::-1][COLUMNS // 2 :]]
    norm = lambda x: np.linalg.norm((x - origin) @ residual, axis=1)
    alpha = train_logits.max(1).mean() / norm(train).mean()
    return alpha * norm(queries) - np.log(np.exp(logits).sum(1))


def mahalanobis(train, labels, queries):
    means = np.array([train[labels == c].mean(0) for c in range(labels.max() + 1)])
    sigma = EmpiricalCovariance(assume_centered=True).fit(train - means[labels]).covariance_
    precision = np.linalg.inv(sigma + RIDGE * np.trace(sigma) / COLUMNS * np.eye(COLUMNS))
    differences = queries[:, None] - means[None]
    return np.einsum("qci,ij,qcj->qc", differences, precision, differences).min(1)


def main():
    rng = np.random.default_rng(13)
    train, labels = draw(rng, 150)
    held_out, held_labels = draw(rng, 90)
    queries, _ = draw(rng, 20)
    queries[10:] += np.round(rng.normal(size=(10, COLUMNS)) * 2 * GRID) / GRID
    mean, std = train.mean(0), train.std(0)
    standard = lambda x: (x - mean) / std
    # C is 1/λ: scikit-learn minimises C Σ loss + ½‖W‖², the Rust code mean loss + λ/2n ‖W‖².
    fit = lambda penalty: LogisticRegression(C=1 / penalty, tol=1e-10, max_iter=10_000).fit(standard(train), labels)
    nll = lambda penalty: log_loss(held_labels, fit(penalty).predict_proba(standard(held_out)))
    penalty = min(PENALTIES, key=nll)
    model = fit(penalty)
    logits = lambda x: standard(x) @ model.coef_.T + model.intercept_
    weight = model.coef_ / std
    bias = model.intercept_ - weight @ mean
    scores = of_logits(logits(queries))
    scores["ViM"] = vim(train, logits(train), queries, logits(queries), weight, bias)
    scores["Mahalanobis"] = mahalanobis(train, labels, queries)
    scores["relative Mahalanobis"] = scores["Mahalanobis"] - mahalanobis(train, 0 * labels, queries)
    for prefix, metric in [("", "euclidean"), ("cosine ", "cosine")]:
        found, _ = NearestNeighbors(n_neighbors=max(NEIGHBOURS), metric=metric).fit(train).kneighbors(queries)
        # On rows of length 1 the Euclidean distance is √(2 − 2 cos).
        found = np.sqrt(2 * found) if prefix else found
        for k in NEIGHBOURS:
            scores[f"{prefix}{k}-NN"] = found[:, k - 1]
    scores["−L2 norm"] = -np.linalg.norm(queries, axis=1)
    result = {
        "train": train.tolist(),
        "labels": labels.tolist(),
        "queries": queries.tolist(),
        "held_out": held_out.tolist(),
        "held_labels": held_labels.tolist(),
        "penalty": penalty,
        "scores": {name: values.tolist() for name, values in scores.items()},
    }
    path = pathlib.Path(__file__).with_name("baselines.json")
    path.write_text(json.dumps(result, separators=(",", ":"), ensure_ascii=False).replace('],"', '],\n"') + "\n")


if __name__ == "__main__":
    main()
