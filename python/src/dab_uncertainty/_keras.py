"""A Keras model (Sequential, or functional with adds) as a chain of layers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ._chain import Chain, Unsupported, Value
from .export import Network

ACTIVATIONS = {"linear": "identity", "relu": "relu", "elu": "elu", "gelu": "gelu", "silu": "silu", "swish": "silu", "tanh": "tanh"}
DROPPED = {"Dropout", "GaussianDropout", "GaussianNoise", "AlphaDropout", "Flatten", "Softmax", "InputLayer", "Identity"}


def read(model: Any) -> Network:
    """The layers of a built model."""
    if not model.built or len(model.inputs) != 1 or len(model.outputs) != 1:
        raise Unsupported("the model is not built, or has several inputs or outputs: call it on a row first")
    chain = Chain(int(np.prod([n for n in model.inputs[0].shape[1:]])))
    values = {id(model.inputs[0]): chain.input}
    readers: "dict[int, int]" = {}
    softmax = False
    for layer in model.layers:
        for tensor in _list(layer.input) if type(layer).__name__ != "InputLayer" else []:
            readers[id(tensor)] = readers.get(id(tensor), 0) + 1
    for layer in model.layers:
        name = f"{layer.name} ({type(layer).__name__})"
        if type(layer).__name__ == "InputLayer":
            values[id(layer.output)] = chain.input
            continue
        sources = _list(layer.input)
        missing = [tensor for tensor in sources if id(tensor) not in values]
        if missing:
            raise Unsupported(f"{name} reads something that is no layer's output")
        if softmax:
            raise Unsupported(f"{name} reads a softmax: dab has one at the end alone")
        shared = any(readers[id(tensor)] > 1 for tensor in sources)
        value, end = _layer(chain, layer, [values[id(tensor)] for tensor in sources], shared, name)
        softmax = end
        values[id(layer.output)] = value
    if softmax:
        chain.notes.append("the softmax at the end is left out: outputs are compared as probabilities")
    return Network(chain, values[id(model.outputs[0])], lambda rows: _outputs(model, rows, softmax))


def _list(tensors: Any) -> list:
    return list(tensors) if isinstance(tensors, (list, tuple)) else [tensors]


def _outputs(model: Any, rows: np.ndarray, softmax: bool) -> np.ndarray:
    shape = (len(rows), *(int(n) for n in model.inputs[0].shape[1:]))
    if softmax:
        # The same model without its softmax.
        import keras

        last = model.layers[-1]
        if type(last).__name__ == "Softmax":
            model = keras.Model(model.inputs[0], last.input)
        else:
            before = keras.Model(model.inputs[0], last.input)
            bias = 0 if last.bias is None else _numbers(last.bias)
            return _numbers(before(rows.reshape(shape), training=False)).astype(np.float64) @ _numbers(last.kernel) + bias
    return _numbers(model(rows.reshape(shape), training=False)).astype(np.float64)


def _numbers(tensor: Any) -> np.ndarray:
    """A tensor or a variable of whichever framework Keras computes with; PyTorch's are taken from their gradients first."""
    return np.asarray(tensor.detach().cpu() if hasattr(tensor, "detach") else tensor)


def _activation(chain: Chain, value: Value, function: Any, shared: bool, name: str) -> "tuple[Value, bool]":
    kind = getattr(function, "__name__", str(function))
    if kind == "softmax":
        return value, True
    if kind not in ACTIVATIONS:
        raise Unsupported(f"{name} has the activation {kind}: dab has {', '.join(sorted(set(ACTIVATIONS)))}")
    return chain.activation(value, ACTIVATIONS[kind], shared, name), False


def _layer(chain: Chain, layer: Any, values: "list[Value]", shared: bool, name: str) -> "tuple[Value, bool]":
    kind, value = type(layer).__name__, values[0]
    numbers = {weight.name.split("/")[-1].split(":")[0]: _numbers(weight) for weight in layer.weights}
    if kind == "Dense":
        value = chain.linear(value, numbers["kernel"].T, numbers.get("bias"), name)
        return _activation(chain, value, layer.activation, False, name)
    if kind == "BatchNormalization":
        scale = numbers.get("gamma", 1.0) / np.sqrt(numbers["moving_variance"].astype(np.float64) + layer.epsilon)
        shift = numbers.get("beta", 0.0) - numbers["moving_mean"] * scale
        return chain.affine(value, scale, shift, shared, name), False
    if kind == "Normalization":
        scale = 1 / np.maximum(np.sqrt(_numbers(layer.variance).astype(np.float64)), 1e-7)
        return chain.affine(value, scale, -_numbers(layer.mean) * scale, shared, name), False
    if kind == "Rescaling":
        return chain.affine(value, layer.scale, layer.offset, shared, name), False
    if kind == "LayerNormalization":
        return chain.norm(value, numbers.get("gamma"), numbers.get("beta"), layer.epsilon, name), False
    if kind == "Activation":
        return _activation(chain, value, layer.activation, shared, name)
    if kind in ("ReLU", "ELU"):
        settings = {k: v for k, v in layer.get_config().items() if k in ("alpha", "max_value", "negative_slope", "threshold")}
        if any(v not in (None, 0, 0.0) for k, v in settings.items() if k != "alpha") or settings.get("alpha", 1) not in (1, 1.0, None):
            raise Unsupported(f"{name} has settings that dab does not have: {settings}")
        return chain.activation(value, kind.lower(), shared, name), False
    if kind == "Add" and len(values) == 2:
        return chain.add(*values, False, name), False
    if kind in DROPPED:
        return value, kind == "Softmax"
    raise Unsupported(f"{name} is no layer of dab: it has Dense, LayerNormalization, ReLU, ELU, GELU, SiLU, tanh and Add")
