"""Expected metric values from scikit-learn, written to metrics.json beside this file.

python3 -m pip install numpy scikit-learn && python3 dab-train/tests/reference/metrics.py

Scores are rounded to multiples of 1/64 (exact in binary32 and in JSON), so that the Rust test
reads the very same numbers. Cases: continuous scores, tied scores, saturated scores, rare positives.
"""

import json
import pathlib

import numpy as np
from sklearn import metrics

GRID = 64.0


def detection(name, negatives, positives):
    truth = np.r_[np.zeros(len(negatives)), np.ones(len(positives))]
    scores = np.r_[negatives, positives]
    fpr, tpr, _ = metrics.roc_curve(truth, scores, drop_intermediate=False)
    return {
        "name": name,
        "negatives": negatives.tolist(),
        "positives": positives.tolist(),
        "auroc": metrics.roc_auc_score(truth, scores),
        "aupr_out": metrics.average_precision_score(truth, scores),
        "aupr_in": metrics.average_precision_score(1 - truth, -scores),
        "fpr95": float(fpr[np.argmax(tpr >= 0.95)]),
        "aurc": aurc(scores, truth),
    }


def aurc(uncertainty, losses):
    """Mean selective risk; a tied example carries its group's mean loss."""
    means = {u: losses[uncertainty == u].mean() for u in np.unique(uncertainty)}
    order = np.argsort(uncertainty, kind="stable")
    spread = np.array([means[u] for u in uncertainty[order]])
    return float((np.cumsum(spread) / np.arange(1, len(spread) + 1)).mean())


def classification(name, rng, rows, classes, sharpness):
    logits = np.round(rng.normal(size=(rows, classes)) * sharpness * GRID) / GRID
    labels = np.where(rng.random(rows) < 0.7, logits.argmax(1), rng.integers(classes, size=rows))
    shifted = np.exp(logits - logits.max(1, keepdims=True))
    p = shifted / shifted.sum(1, keepdims=True)
    onehot = np.eye(classes)[labels]
    confidence, right = p.max(1), p.argmax(1) == labels
    ece, edges = 0.0, np.linspace(0, 1, 16)
    for low, high in zip(edges[:-1], edges[1:]):
        inside = (confidence > low) & (confidence <= high)
        if inside.any():
            ece += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    return {
        "name": name,
        "logits": logits.tolist(),
        "labels": labels.tolist(),
        "accuracy": metrics.accuracy_score(labels, p.argmax(1)),
        "nll": metrics.log_loss(labels, p, labels=range(classes)),
        "brier": float(((p - onehot) ** 2).sum(1).mean()),
        "ece": float(ece),
    }


def main():
    rng = np.random.default_rng(20240721)

    def grid(x):
        return np.round(x * GRID) / GRID

    cases = [
        detection("continuous", grid(rng.normal(size=60) * 40), grid(rng.normal(size=45) * 40 + 30)),
        detection("tied", np.floor(rng.normal(size=70) * 2), np.floor(rng.normal(size=50) * 2 + 1)),
        detection("saturated", np.minimum(1, grid(rng.random(80) * 2)), np.minimum(1, grid(rng.random(40) * 4))),
        detection("rare", grid(rng.normal(size=150)), grid(rng.normal(size=3) + 1)),
        detection("reversed", grid(rng.normal(size=30) + 2), grid(rng.normal(size=30))),
    ]
    predicted, truth = grid(rng.normal(size=40)), grid(rng.normal(size=40))
    result = {
        "detection": cases,
        "classification": [
            classification("mild", rng, 60, 4, 1.0),
            classification("sharp", rng, 40, 3, 8.0),
        ],
        "regression": {
            "predicted": predicted.tolist(),
            "targets": truth.tolist(),
            "rmse": metrics.root_mean_squared_error(truth, predicted),
            "mae": metrics.mean_absolute_error(truth, predicted),
        },
    }
    path = pathlib.Path(__file__).with_name("metrics.json")
    path.write_text(json.dumps(result, separators=(",", ":")).replace('{"name"', '\n{"name"') + "\n")


if __name__ == "__main__":
    main()
