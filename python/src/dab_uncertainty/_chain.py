"""A network from another framework as the layers that a model file has.

Readers (`_torch.py`, `_keras.py`, `_onnx.py`) call one method of `Chain` for each node of a network, in order; every method takes
and gives a `Value`. A layer of dab is  y = activation(W x + b [+ earlier]) [+ earlier],  or a LayerNorm in place of W x + b.
"""

from __future__ import annotations

import json
import struct
from typing import Any, Mapping, NamedTuple, Optional

import numpy as np

#: What dab has; the names are those of `dab pack`.
ACTIVATIONS = ("identity", "relu", "elu", "gelu", "silu", "tanh")


class Unsupported(ValueError):
    """A part of the network that a model file cannot hold; the message names it."""


class Value(NamedTuple):
    """What a node of the network gives."""

    #: The layer that gives it, counted from 1; 0 is the input.
    layer: int
    #: How often that layer was changed up to here.
    stage: int
    #: A scale and a shift that are still to be applied.
    scale: Optional[np.ndarray] = None
    shift: Optional[np.ndarray] = None


class Chain:
    """Layers in a row, and the residuals between them."""

    def __init__(self, inputs: int) -> None:
        self.inputs = inputs
        self.layers: "list[dict[str, Any]]" = []
        self.notes: "list[str]" = []
        self.input = Value(0, 0)

    def width(self, layer: int) -> int:
        return self.inputs if layer == 0 else self.layers[layer - 1]["outputs"]

    def _stage(self, layer: int) -> int:
        return 0 if layer == 0 else self.layers[layer - 1]["stage"]

    def _tip(self, value: Value, name: str) -> None:
        if value.layer != len(self.layers) or value.stage != self._stage(value.layer):
            raise Unsupported(f"{name} reads a value that is not the last one: layers follow one another, and only adds reach back")

    def _push(self, **layer: Any) -> Value:
        self.layers.append({"kind": "dense", "bias": None, "activation": None, "residual": None, "before": False, "stage": 0, **layer})
        return Value(len(self.layers), 0)

    def _change(self, value: Value, **settings: Any) -> Value:
        layer = self.layers[value.layer - 1]
        layer.update(settings, stage=layer["stage"] + 1)
        return Value(value.layer, layer["stage"])

    def _settled(self, value: Value, name: str) -> Value:
        """The value without anything that is still to be applied: a layer of its own, where there is."""
        if value.scale is None:
            return value
        self.notes.append(f"{name}: the scale before it became a layer of its own")
        return self.linear(Value(value.layer, value.stage), np.diag(value.scale), value.shift, name)

    def linear(self, value: Value, weight: Any, bias: Any, name: str) -> Value:
        """W x + b; W is [out, in]."""
        self._tip(value, name)
        weight = np.asarray(weight, np.float64)
        if weight.ndim != 2 or weight.shape[1] != self.width(value.layer):
            raise Unsupported(f"{name} has weights of shape {weight.shape}, and {self.width(value.layer)} values enter it")
        bias = None if bias is None else np.asarray(bias, np.float64).reshape(-1)
        if value.scale is not None:
            shift = weight @ value.shift
            bias = shift if bias is None else bias + shift
            weight = weight * value.scale
        return self._push(weight=weight, bias=bias, outputs=len(weight))

    def affine(self, value: Value, scale: Any, shift: Any, shared: bool, name: str) -> Value:
        """scale · x + shift for each value: what a BatchNorm is after training."""
        width = self.width(value.layer)
        scale, shift = (np.broadcast_to(np.asarray(v, np.float64).reshape(-1), width) for v in (scale, shift))
        if value.layer and not shared and value.scale is None:
            layer = self.layers[value.layer - 1]
            self._tip(value, name)
            if layer["kind"] == "dense" and layer["activation"] is None and layer["residual"] is None:
                bias = shift if layer["bias"] is None else layer["bias"] * scale + shift
                return self._change(value, weight=layer["weight"] * scale[:, None], bias=bias)
        if value.scale is not None:
            scale, shift = scale * value.scale, scale * value.shift + shift
        # It is folded into the layer that reads it.
        return value._replace(scale=scale, shift=shift)

    def norm(self, value: Value, weight: Any, bias: Any, epsilon: float, name: str) -> Value:
        """LayerNorm over all values."""
        self._tip(value, name)
        value = self._settled(value, name)
        width = self.width(value.layer)
        weight = np.ones(width) if weight is None else np.asarray(weight, np.float64).reshape(-1)
        bias = None if bias is None else np.asarray(bias, np.float64).reshape(-1)
        if len(weight) != width:
            raise Unsupported(f"{name} normalises over {len(weight)} values, {width} enter it: dab normalises over all of them")
        return self._push(kind="layernorm", weight=weight, bias=bias, outputs=width, epsilon=float(epsilon))

    def activation(self, value: Value, kind: str, shared: bool, name: str) -> Value:
        """One of `ACTIVATIONS`. shared: whether another node reads the value before it, too."""
        self._tip(value, name)
        if kind == "identity":
            return value
        value = self._settled(value, name)
        layer = self.layers[value.layer - 1] if value.layer else None
        free = layer is not None and layer["activation"] is None and (layer["residual"] is None or layer["before"])
        if not free or shared:
            value = self._identity(value, name)
        return self._change(value, activation=kind)

    def _identity(self, value: Value, name: str) -> Value:
        width = self.width(value.layer)
        self.notes.append(f"{name}: a layer of its own, {width} x {width} weights, because the one before it is complete")
        return self.linear(value, np.eye(width), None, name)

    def add(self, a: Value, b: Value, shared: bool, name: str) -> Value:
        """A residual: the last value and an earlier one."""
        last, earlier = (a, b) if (a.layer, a.stage) >= (b.layer, b.stage) else (b, a)
        if last.layer == earlier.layer:
            raise Unsupported(f"{name} adds two values of one layer: dab adds an earlier activation to a later one")
        if earlier.scale is not None or earlier.stage != self._stage(earlier.layer):
            raise Unsupported(f"{name} adds a value that is changed afterwards: only what a whole layer gives can be added later")
        if self.width(last.layer) != self.width(earlier.layer):
            raise Unsupported(f"{name} adds {self.width(earlier.layer)} values to {self.width(last.layer)}")
        self._tip(last, name)
        last = self._settled(last, name)
        layer = self.layers[last.layer - 1]
        if layer["residual"] is not None or shared:
            last = self._identity(last, name)
            layer = self.layers[last.layer - 1]
        return self._change(last, residual=earlier.layer, before=layer["activation"] is None)

    def finish(self, value: Value, name: str = "the end of the network") -> "tuple[list[dict], Optional[dict]]":
        """The layers, and the last one as the decoder where it is nothing but W x + b."""
        self._tip(value, name)
        self._settled(value, name)
        last = self.layers[-1] if self.layers else None
        if last and last["kind"] == "dense" and last["activation"] is None and last["residual"] is None:
            return self.layers[:-1], last
        return self.layers, None


def tensors_of(layers: "list[dict]", decoder: Optional[dict], task: str) -> "tuple[dict[str, np.ndarray], dict[str, str]]":
    """What `dab pack` reads: tensors and metadata."""
    tensors: "dict[str, np.ndarray]" = {}
    metadata: "dict[str, str]" = {}
    for n, layer in enumerate(layers):
        tensors[f"layers.{n}.weight"] = layer["weight"]
        if layer["bias"] is not None:
            tensors[f"layers.{n}.bias"] = layer["bias"]
        metadata[f"layers.{n}.activation"] = layer["activation"] or "identity"
        if layer["kind"] == "layernorm":
            metadata[f"layers.{n}.kind"] = "layernorm"
            metadata[f"layers.{n}.epsilon"] = repr(layer["epsilon"])
        if layer["residual"] is not None:
            metadata[f"layers.{n}.residual"] = "input" if layer["residual"] == 0 else f"layers.{layer['residual'] - 1}"
            metadata[f"layers.{n}.residual_before_activation"] = "true" if layer["before"] else "false"
    if decoder is not None:
        tensors["decoder.weight"] = decoder["weight"]
        if decoder["bias"] is not None:
            tensors["decoder.bias"] = decoder["bias"]
        metadata["task"] = task
    return tensors, metadata


def save(path: Any, tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> None:
    """Writes a safetensors file: the length of a JSON header, the header, the numbers as float32."""
    header: "dict[str, Any]" = {"__metadata__": dict(sorted(metadata.items()))}
    data, at = [], 0
    for name in sorted(tensors):
        values = np.ascontiguousarray(tensors[name], "<f4")
        if not np.isfinite(values).all():
            raise Unsupported(f"{name} has a value that is not finite, or too large for float32")
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [at, at + values.nbytes]}
        data.append(values.tobytes())
        at += values.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + b"".join(data))
