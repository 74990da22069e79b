"""A model from arrays, by the `dab` command."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import warnings
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence

import numpy as np

from .model import Model


def _plain(values: Any) -> np.ndarray:
    """An array that `dab` can read: words that pandas keeps as objects become text."""
    array = np.asarray(values)
    return array.astype(str) if array.dtype == object and all(isinstance(value, str) for value in array.flat) else array


def fit(
    features: Any,
    labels: Any = None,
    targets: Any = None,
    *,
    ood: Optional[Mapping[str, Any]] = None,
    out: "Optional[str | os.PathLike[str]]" = None,
    command: Optional[str] = None,
    arguments: Sequence[str] = (),
) -> Model:
    """Fits a model to features (one row per example) with `dab fit`, and loads it.

    labels or targets: what the rows mean. ood: sets of strangers by name, only for the report. out: a folder for model.dab and
    report.html (it must not hold results yet); without it only the model is kept. command: the `dab` command, otherwise
    $DAB_COMMAND or the one on the path (`cargo install --locked --path dab-train`). arguments: further options of `dab fit`.
    What `dab fit` warns about (labels that do not belong to the rows, too few held-out rows) is a UserWarning.
    """
    dab = command or os.environ.get("DAB_COMMAND") or shutil.which("dab")
    if not dab:
        raise FileNotFoundError("there is no `dab` command: cargo install --locked --path dab-train, or set DAB_COMMAND")
    with tempfile.TemporaryDirectory() as folder:
        given = {"features": features, "labels": labels, "targets": targets}
        line = [dab, "fit", "--quiet"]
        for name, values in given.items():
            if values is not None:
                file = f"{folder}/{name}.npy"
                np.save(file, _plain(values))
                line += [f"--{name}", file]
        for name, values in (ood or {}).items():
            file = f"{folder}/ood-{len(line)}.npy"
            np.save(file, _plain(values))
            line += ["--ood", f"{name}={file}"]
        results = Path(out) if out is not None else Path(folder) / "results"
        run = subprocess.run([*line, "--out", str(results), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if run.returncode != 0:
            raise RuntimeError(run.stderr.strip() or f"{dab} fit ended with {run.returncode}")
        for message in run.stderr.splitlines():
            if message.strip():
                warnings.warn(message.strip(), stacklevel=2)
        return Model(results / "model.dab")
