"""A model from arrays, by the `dab` command."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Mapping, Optional, Sequence

import numpy as np

from .model import Model


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
                np.save(file, np.asarray(values))
                line += [f"--{name}", file]
        for name, values in (ood or {}).items():
            file = f"{folder}/ood-{len(line)}.npy"
            np.save(file, np.asarray(values))
            line += ["--ood", f"{name}={file}"]
        results = Path(out) if out is not None else Path(folder) / "results"
        run = subprocess.run([*line, "--out", str(results), *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if run.returncode != 0:
            raise RuntimeError(run.stderr.strip() or f"{dab} fit ended with {run.returncode}")
        return Model(results / "model.dab")
