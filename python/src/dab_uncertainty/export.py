"""A network of PyTorch, Keras or ONNX as tensors for `dab pack`."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Mapping, NamedTuple, Optional

import numpy as np

from ._chain import Unsupported, save, tensors_of
from .model import Model

#: How far the outputs of the file may be from those of the framework, relative to the largest of them (1 if that is smaller).
TOLERANCE = 1e-5
#: Rows that are compared unless some are given.
ROWS = 64
#: Most features that a latent mean can hold: what the comparison, and `dab pack --fit`, look through.
MOST_FEATURES = 1024


class Exported(NamedTuple):
    """What was written, and how well it agrees."""

    path: str
    #: Layers in words, the first one first.
    layers: "list[str]"
    #: Largest difference from the framework's outputs, relative to the largest of these.
    difference: float
    #: What you should know.
    notes: "list[str]"


def export(
    model: Any,
    path: "str | os.PathLike[str]",
    *,
    rows: Any = None,
    task: Optional[str] = None,
    tensors: Optional[Mapping[str, Any]] = None,
    metadata: Optional[Mapping[str, str]] = None,
    command: Optional[str] = None,
) -> Exported:
    """Writes the layers of a network to a safetensors file, after comparing what dab computes with what the framework computes.

        dab.export(torch_model, "network.safetensors", rows=x)
        # dab pack network.safetensors --fit x.npy -o model.dab

    model: a `torch.nn.Module`, a Keras model, or an ONNX file or model. Linear, ReLU, ELU, GELU, SiLU and Tanh are layers of dab, as
    are LayerNorm and residual adds; BatchNorm is folded into its neighbours, Dropout is dropped, Flatten and a softmax at the end are
    passed over (outputs are logits). Whatever else there is, is named in an `Unsupported`. The last Linear becomes the decoder.
    rows: inputs to compare on, [rows, inputs]; normal random numbers without. They also tell how many inputs there are, where the
    network does not.
    task: classification or regression; without it, classification if there are two outputs or more.
    tensors, metadata: what else the file should have, by the names of `dab pack --help`: head.weight, codes.mean, input_names …
    command: the `dab` command, otherwise $DAB_COMMAND or the one on the path.

    Nothing is written unless the outputs agree to 1e-5.
    """
    dab = command or os.environ.get("DAB_COMMAND") or shutil.which("dab")
    if not dab:
        raise FileNotFoundError("there is no `dab` command: cargo install --locked --path dab-train, or set DAB_COMMAND")
    if task not in (None, "classification", "regression"):
        raise ValueError(f"task is {task!r}: classification or regression")
    given = None if rows is None else np.asarray(rows, np.float32)
    if given is not None:
        given = given.reshape(len(given), -1)
        if not len(given) or not np.isfinite(given).all():
            raise ValueError("rows: give at least one row of finite numbers")
    network = _read(model, given)
    if given is not None and given.shape[1] != network.chain.inputs:
        raise ValueError(f"rows have {given.shape[1]} columns, the network takes {network.chain.inputs} inputs")
    if given is None:
        given = np.random.default_rng(0).normal(size=(ROWS, network.chain.inputs)).astype(np.float32)
    layers, decoder = network.chain.finish(network.value)
    outputs = decoder["outputs"] if decoder else 0
    arrays, strings = tensors_of(layers, decoder, task or ("classification" if outputs > 1 else "regression"))
    features = layers[-1]["outputs"] if layers else network.chain.inputs
    if features > MOST_FEATURES:
        raise Unsupported(
            f"the layer before the last gives {features} values, a latent mean has at most {MOST_FEATURES}: "
            "put a narrower layer there, or use `dab fit` on the features"
        )
    difference = _compare(dab, arrays, strings, features, given, network.outputs(given))
    arrays.update({name: np.asarray(values) for name, values in (tensors or {}).items()})
    strings.update(metadata or {})
    save(path, arrays, strings)
    words = [_words(layer) for layer in layers] + ([f"decoder: {outputs} outputs"] if decoder else [])
    return Exported(os.fspath(path), words, difference, network.chain.notes)


class Network(NamedTuple):
    """A network that a reader understood."""

    chain: Any
    #: What it gives.
    value: Any
    #: Its outputs for rows, by the framework, in float64 where that is possible.
    outputs: Any


def _read(model: Any, rows: Optional[np.ndarray]) -> Network:
    if isinstance(model, (str, os.PathLike)) or type(model).__module__.startswith("onnx"):
        from ._onnx import read

        return read(model)
    bases = {base.__module__.split(".")[0] for base in type(model).__mro__}
    # A Keras model that computes with PyTorch is a torch.nn.Module, too.
    if "keras" in bases or "tensorflow" in bases:
        from ._keras import read

        return read(model)
    if "torch" in bases:
        from ._torch import read

        return read(model, None if rows is None else rows.shape[1])
    raise Unsupported(f"{type(model).__name__} is neither a torch.nn.Module, nor a Keras model, nor an ONNX file")


def _words(layer: "dict[str, Any]") -> str:
    kind = "LayerNorm" if layer["kind"] == "layernorm" else "linear"
    text = f"{kind} to {layer['outputs']}, {layer['activation'] or 'identity'}"
    if layer["residual"] is not None:
        text += f", adds {'the input' if layer['residual'] == 0 else 'layer ' + str(layer['residual'] - 1)}"
    return text


def _compare(dab: str, tensors: dict, metadata: dict, features: int, rows: np.ndarray, wanted: np.ndarray) -> float:
    """How far dab's outputs are from `wanted`, relative to the largest of these; an error when it is too far.

    The latent mean of the file that is compared is the features themselves, so that its decoder reads what the network's last layer
    reads; one code stands for the codebook, which is not there yet."""
    eye = np.eye(features)
    packed = {**tensors, "head.weight": np.concatenate([eye, 0 * eye]), "codes.mean": np.zeros((1, features))}
    packed.update({"codes.cov": np.ones((1, features)), "codes.prior": np.ones(1)})
    with tempfile.TemporaryDirectory() as folder:
        weights, file = Path(folder) / "weights.safetensors", Path(folder) / "model.dab"
        save(weights, packed, {**metadata, "covariance": "diagonal"})
        run = subprocess.run([dab, "pack", str(weights), "-o", str(file)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if run.returncode != 0:
            raise Unsupported(run.stderr.strip().replace(f"`{weights}`", "the network"))
        with Model(file) as model:
            found = model.predict(rows) if "decoder.weight" in tensors else model.encode(rows)[0]
    wanted = np.asarray(wanted, np.float64).reshape(len(rows), -1)
    if found.shape != wanted.shape:
        raise Unsupported(f"the network gives {wanted.shape[1]} values, its layers {found.shape[1]}")
    difference = float(np.abs(found - wanted).max() / max(1.0, np.abs(wanted).max()))
    if not difference <= TOLERANCE:
        raise Unsupported(
            f"the outputs differ by {difference:.1e} of the largest, more than {TOLERANCE:.0e}: the network does something that "
            "its modules do not show (a forward of its own?), or its rows are too large for float32"
        )
    return difference


__all__ = ["Exported", "Unsupported", "export"]
