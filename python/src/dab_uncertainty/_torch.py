"""A `torch.nn.Module` as a chain of layers, through torch.fx."""

from __future__ import annotations

import copy
import operator
from typing import Any, Optional

import numpy as np
import torch
import torch.fx
import torch.nn.functional as F
from torch import nn

from ._chain import Chain, Unsupported, Value
from .export import Network

MODULES = {nn.ReLU: "relu", nn.ELU: "elu", nn.GELU: "gelu", nn.SiLU: "silu", nn.Tanh: "tanh", nn.Identity: "identity"}
FUNCTIONS = {
    F.relu: "relu", torch.relu: "relu", F.elu: "elu", F.gelu: "gelu", F.silu: "silu", F.tanh: "tanh", torch.tanh: "tanh",
    "relu": "relu", "relu_": "relu", "tanh": "tanh",
}  # fmt: skip
DROPPED_MODULES = (nn.Dropout, nn.AlphaDropout, nn.Dropout1d, nn.Flatten, nn.Softmax, nn.LogSoftmax)
DROPPED = {
    F.dropout, torch.dropout, torch.flatten, F.softmax, F.log_softmax, torch.softmax, torch.log_softmax,
    "flatten", "contiguous", "detach", "clone", "softmax", "log_softmax", "view", "reshape", "float",
}  # fmt: skip
ENDS = (nn.Softmax, nn.LogSoftmax)
END_CALLS = {F.softmax, F.log_softmax, torch.softmax, torch.log_softmax, "softmax", "log_softmax"}
ADDS = {operator.add, operator.iadd, torch.add, "add", "add_"}


def read(model: nn.Module, columns: Optional[int]) -> Network:
    """The layers of a module, in the state that it has when it is used (`eval`)."""
    model = copy.deepcopy(model).cpu().double().eval()
    if type(model).__module__.startswith("torch.nn.") and not list(model.children()):
        # A module of PyTorch alone: torch.fx would look into it.
        model = nn.Sequential(model)
    try:
        graph = torch.fx.symbolic_trace(model)
    except Exception as error:  # torch.fx raises whatever the forward raises
        raise Unsupported(f"the forward of {type(model).__name__} cannot be followed by torch.fx: {error}") from error
    inputs = _inputs(graph) or columns
    if not inputs:
        raise Unsupported("no Linear, BatchNorm or LayerNorm says how many inputs there are: give rows")
    chain, values, logits = Chain(inputs), {}, None
    for node in graph.graph.nodes:
        shared = [len(source.users) > 1 for source in node.all_input_nodes]
        if node.op == "placeholder":
            if values:
                raise Unsupported(f"{type(model).__name__} takes several inputs: {node.name}")
            values[node] = chain.input
        elif node.op == "output":
            if not isinstance(node.args[0], torch.fx.Node):
                raise Unsupported(f"{type(model).__name__} gives several outputs")
            logits = node.args[0]
        elif node.op == "get_attr":
            raise Unsupported(f"{node.target} is read in the forward: give it a module of its own")
        else:
            values[node] = _node(chain, graph, node, values, shared)
    ends = _is_end(graph, logits)
    while ends:
        chain.notes.append("the softmax at the end is left out: outputs are logits")
        logits = logits.args[0]
        ends = _is_end(graph, logits)
    return Network(chain, values[logits], lambda rows: _run(graph, model, logits, rows))


def _inputs(graph: torch.fx.GraphModule) -> Optional[int]:
    """The inputs of the first module that knows them."""
    for module in graph.modules():
        for name in ("in_features", "num_features"):
            if hasattr(module, name):
                return int(getattr(module, name))
        if isinstance(module, nn.LayerNorm):
            return int(np.prod(module.normalized_shape))
    return None


def _is_end(graph: torch.fx.GraphModule, node: torch.fx.Node) -> bool:
    if node.op == "call_module":
        return isinstance(graph.get_submodule(node.target), ENDS)
    return node.target in END_CALLS


def _run(graph: torch.fx.GraphModule, model: nn.Module, logits: torch.fx.Node, rows: np.ndarray) -> np.ndarray:
    """The outputs in float64, before a softmax at the end."""
    whole = copy.deepcopy(graph)
    for node in whole.graph.nodes:
        if node.op == "output":
            last = next(n for n in whole.graph.nodes if n.name == logits.name)
            node.args = (last,)
    whole.recompile()
    with torch.no_grad():
        return whole(torch.from_numpy(np.asarray(rows, np.float64))).reshape(len(rows), -1).numpy()


def _array(tensor: Any) -> Any:
    return None if tensor is None else tensor.detach().cpu().double().numpy()


def _node(chain: Chain, graph: torch.fx.GraphModule, node: torch.fx.Node, values: dict, shared: "list[bool]") -> Value:
    if node.op == "call_module":
        return _module(chain, graph.get_submodule(node.target), node, values, shared[0])
    name = node.name if node.op == "call_method" else getattr(node.target, "__name__", str(node.target))
    if node.target in ADDS:
        a, b = node.args[:2] if len(node.args) > 1 else (node.args[0], node.kwargs.get("other"))
        if not (isinstance(a, torch.fx.Node) and isinstance(b, torch.fx.Node)) or node.kwargs.get("alpha", 1) != 1:
            raise Unsupported(f"{name} adds something that is not an earlier activation")
        return chain.add(values[a], values[b], any(shared) and _read_again(node, values, a, b), name)
    source = node.args[0] if node.args else node.kwargs.get("input")
    if node.target in FUNCTIONS:
        kind = FUNCTIONS[node.target]
        rest = (*node.args[1:], *node.kwargs.values())
        if (kind == "elu" and any(v not in (1, 1.0, False) for v in rest)) or (kind == "gelu" and "tanh" in rest):
            raise Unsupported(f"{name} has settings that dab does not have: {rest}")
        return chain.activation(values[source], kind, shared[0], name)
    if node.target in DROPPED:
        if isinstance(source, torch.fx.Node):
            return values[source]
    raise Unsupported(f"{name} is no layer of dab: it has Linear, LayerNorm, ReLU, ELU, GELU, SiLU, Tanh and adds")


def _read_again(node: torch.fx.Node, values: dict, a: torch.fx.Node, b: torch.fx.Node) -> bool:
    """Whether the later of two added values is read by another node, too."""
    later = a if (values[a].layer, values[a].stage) >= (values[b].layer, values[b].stage) else b
    return len(later.users) > 1


def _module(chain: Chain, module: nn.Module, node: torch.fx.Node, values: dict, shared: bool) -> Value:
    value, name = values[node.args[0]], f"{node.target} ({type(module).__name__})"
    if isinstance(module, nn.Linear):
        return chain.linear(value, _array(module.weight), _array(module.bias), name)
    if isinstance(module, (nn.BatchNorm1d, nn.SyncBatchNorm)):
        if module.running_mean is None:
            raise Unsupported(f"{name} has no running statistics: it depends on the other rows of a batch")
        scale = 1 / np.sqrt(_array(module.running_var) + module.eps)
        scale = scale * (1 if module.weight is None else _array(module.weight))
        shift = (0 if module.bias is None else _array(module.bias)) - _array(module.running_mean) * scale
        return chain.affine(value, scale, shift, shared, name)
    if isinstance(module, nn.LayerNorm):
        return chain.norm(value, _array(module.weight), _array(module.bias), module.eps, name)
    for kind, activation in MODULES.items():
        if type(module) is kind:
            if kind is nn.ELU and module.alpha != 1:
                raise Unsupported(f"{name} has alpha {module.alpha}: dab's ELU has 1")
            if kind is nn.GELU and module.approximate != "none":
                raise Unsupported(f"{name} is approximate: dab's GELU is exact (approximate='none')")
            return chain.activation(value, activation, shared, name)
    if isinstance(module, DROPPED_MODULES):
        return value
    raise Unsupported(f"{name} is no layer of dab: it has Linear, LayerNorm, ReLU, ELU, GELU, SiLU, Tanh and adds")
