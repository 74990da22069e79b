"""An ONNX file as a chain of layers: Gemm, MatMul, Add, normalisations and activations."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from ._chain import Chain, Unsupported, Value
from .export import Network

ACTIVATIONS = {"Relu": "relu", "Elu": "elu", "Gelu": "gelu", "Tanh": "tanh", "Swish": "silu"}
DROPPED = {"Dropout", "Identity", "Flatten", "Reshape", "Cast"}
ENDS = {"Softmax", "LogSoftmax"}


def read(model: Any) -> Network:
    """The layers of a file, or of a model in memory."""
    if isinstance(model, (str, os.PathLike)):
        model = onnx.load(os.fspath(model))
    graph = onnx.shape_inference.infer_shapes(model).graph
    constants = {tensor.name: numpy_helper.to_array(tensor) for tensor in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            attribute = node.attribute[0]
            constants[node.output[0]] = numpy_helper.to_array(attribute.t) if attribute.type == 4 else np.asarray(attribute.f)
    inputs = [value for value in graph.input if value.name not in constants]
    if len(inputs) != 1 or len(graph.output) != 1:
        raise Unsupported(f"the file has {len(inputs)} inputs and {len(graph.output)} outputs: a model of dab has one of each")
    sizes = [d.dim_value for d in inputs[0].type.tensor_type.shape.dim][1:]
    if not sizes or not all(sizes):
        raise Unsupported(f"the input {inputs[0].name} has no fixed shape behind its batch: export it with one")
    chain = Chain(int(np.prod(sizes)))
    values = {inputs[0].name: chain.input}
    readers: "dict[str, int]" = {}
    for node in graph.node:
        for name in node.input:
            readers[name] = readers.get(name, 0) + 1
    skipped, last = set(), graph.output[0].name
    producers = {name: node for node in graph.node for name in node.output}
    while last in producers and producers[last].op_type in ENDS:
        chain.notes.append("the softmax at the end is left out: outputs are logits")
        skipped.add(producers[last].output[0])
        last = producers[last].input[0]
    sigmoids: "dict[str, str]" = {}
    for node in graph.node:
        if node.op_type == "Constant" or node.output[0] in skipped:
            continue
        if node.op_type == "Sigmoid" and readers.get(node.output[0], 0) == 1:
            sigmoids[node.output[0]] = node.input[0]
            continue
        values[node.output[0]] = _node(chain, node, values, constants, readers, sigmoids)
    if last not in values:
        raise Unsupported(f"nothing gives the output {last}")
    return Network(chain, values[last], lambda rows: _run(model, last, inputs[0].name, sizes, rows))


def _run(model: Any, last: str, name: str, sizes: "list[int]", rows: np.ndarray) -> np.ndarray:
    """The outputs by ONNX's own reference, row by row: the batch may have a fixed size."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    if last != model.graph.output[0].name:
        kind = model.graph.output[0].type.tensor_type.elem_type
        del model.graph.output[:]
        model.graph.output.append(onnx.helper.make_tensor_value_info(last, kind, None))
    session = ReferenceEvaluator(model)
    return np.stack([np.asarray(session.run(None, {name: row.reshape(1, *sizes)})[0], np.float64).ravel() for row in rows])


def _node(chain: Chain, node: Any, values: dict, constants: dict, readers: dict, sigmoids: dict) -> Value:
    kind, name = node.op_type, f"{node.name or node.output[0]} ({node.op_type})"
    settings = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
    known = [i for i in node.input if i in values]
    shared = any(readers[i] > 1 for i in known)
    constant = [constants[i] for i in node.input if i in constants]
    value = values[known[0]] if known else None
    if kind == "Gemm" and value is not None and node.input[1] in constants:
        if settings.get("transA") or settings.get("alpha", 1.0) != 1 or settings.get("beta", 1.0) != 1:
            raise Unsupported(f"{name} has transA, alpha or beta: dab computes W x + b")
        weight = constants[node.input[1]]
        bias = constants[node.input[2]] if len(node.input) > 2 and node.input[2] else None
        return chain.linear(value, weight if settings.get("transB") else weight.T, bias, name)
    if kind == "MatMul" and value is not None and constant and node.input[1] in constants:
        return chain.linear(value, constant[0].T, None, name)
    if kind in ("Add", "Sub", "Mul", "Div") and len(known) == 1 and constant:
        if kind in ("Sub", "Div") and node.input[0] in constants:
            raise Unsupported(f"{name} reads the activation second")
        number = np.asarray(constant[0], np.float64)
        scale = {"Mul": number, "Div": 1 / number}.get(kind, 1.0) if kind in ("Mul", "Div") else 1.0
        shift = {"Add": number, "Sub": -number}.get(kind, 0.0)
        return chain.affine(value, scale, shift, shared, name)
    if kind == "Mul" and any(i in sigmoids for i in node.input):
        gate = next(i for i in node.input if i in sigmoids)
        if sigmoids[gate] in node.input:
            # x · sigmoid(x): both readers of x are this one activation.
            return chain.activation(values[sigmoids[gate]], "silu", readers[sigmoids[gate]] > 2, name)
    if kind == "Add" and len(known) == 2:
        a, b = (values[i] for i in known)
        later = known[0] if (a.layer, a.stage) >= (b.layer, b.stage) else known[1]
        return chain.add(a, b, readers[later] > 1, name)
    if kind == "BatchNormalization" and len(constant) == 4:
        gamma, beta, mean, variance = (np.asarray(c, np.float64) for c in constant)
        scale = gamma / np.sqrt(variance + settings.get("epsilon", 1e-5))
        return chain.affine(value, scale, beta - mean * scale, shared, name)
    if kind == "LayerNormalization" and constant:
        bias = constant[1] if len(constant) > 1 else None
        return chain.norm(value, constant[0], bias, settings.get("epsilon", 1e-5), name)
    if kind in ACTIVATIONS and value is not None:
        if settings.get("alpha", 1.0) != 1 or settings.get("approximate", b"none") != b"none":
            raise Unsupported(f"{name} has settings that dab does not have: {settings}")
        return chain.activation(value, ACTIVATIONS[kind], shared, name)
    if kind in DROPPED and value is not None:
        return value
    raise Unsupported(f"{name} is no layer of dab: it has Gemm, MatMul, LayerNormalization, Relu, Elu, Gelu, SiLU, Tanh and Add")
