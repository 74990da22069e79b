#!/usr/bin/env python3
"""dab_assess beside ONNX Runtime and, with --tensorflow, TFLite: the same numbers, batch 1, one core, one run.

    dab-ffi/benches/compare.py [--tensorflow]

Optional: it installs what it needs from PyPI into a temporary folder (TensorFlow is large, and this version needs
Python 3.9 to 3.11); $COMPARE_PYTHON names a Python that has it all. Everything is called
from Python, dab through ctypes: its call is in its time. ONNX has no eigen-decomposition: for shape (a) ONNX Runtime
gets (b), the same sizes with a Cholesky factor, which is less work. TFLite gets (a) twice: in the published way (SVD,
Cholesky factor of the covariance, triangular solves) and in the cheapest that we know.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROUNDS, CALLS = 201, 20
SHAPES = {"a": (640, 8, 10), "b": (640, 8, 10), "c": (2048, 80, 1000)}


def set_up():
    """Libraries, models and packages in a temporary folder, then the measurement in it."""
    with tempfile.TemporaryDirectory() as folder:
        packages = ["numpy<2", "onnx<1.18", "onnxruntime"]
        if "--tensorflow" in sys.argv:
            packages.append("tensorflow-cpu==2.15.1")  # later ones have no TensorFlow ops in TFLite
        python = os.environ.get("COMPARE_PYTHON")
        if not python:
            subprocess.run([sys.executable, "-m", "venv", f"{folder}/venv"], check=True)
            python = f"{folder}/venv/bin/python"
            subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
        subprocess.run([ROOT / "dab-ffi/install"], env={**os.environ, "PREFIX": f"{folder}/dab"}, check=True)
        write = ["cargo", "bench", "--quiet", "-p", "dab-ffi", "--", "--write", folder]
        subprocess.run(write, cwd=ROOT, check=True)
        one = dict.fromkeys(["OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"], "1")
        paths = {"DAB_LIBRARY": f"{folder}/dab/lib/libdab.so", "PYTHONPATH": str(ROOT / "python/src")}
        quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
        command = [python, __file__, "--measure", folder, *sys.argv[1:]]
        return subprocess.run(command, env={**os.environ, **one, **paths, **quiet}).returncode


def numbers(folder, name):
    """Everything that a formula needs, from the arrays that the bench wrote."""
    import numpy as np

    inputs, d, k = SHAPES[name]
    load = lambda what: np.fromfile(f"{folder}/{name}.{what}", np.float32)  # noqa: E731
    full = name != "c"
    covs = load("covs").astype(np.float64).reshape((k, d, d) if full else (k, d))
    precision = np.linalg.inv(covs) if full else 1 / covs
    log_det = np.linalg.slogdet(covs)[1] if full else np.log(covs).sum(1)
    return {
        "input": load("input").reshape(1, inputs),
        "weight": np.ascontiguousarray(load("weight").reshape(-1, inputs).T),
        "mean": load("means").reshape(k, d),
        "precision": precision.astype(np.float32),
        "log_det": log_det.astype(np.float32),
    }


def dab_call(folder, name, n):
    import ctypes

    import dab_uncertainty as dab
    from dab_uncertainty._library import ASSESSMENT, lib
    import numpy as np

    model = dab.Model(f"{folder}/{name}.dab")
    x, out = n["input"], np.zeros(1, ASSESSMENT)
    out["size"] = ASSESSMENT.itemsize
    call, size, at = lib.dab_assess, ctypes.c_size_t, ctypes.c_void_p
    call.restype, scratch = ctypes.c_int32, np.empty(lib.dab_scratch_bytes(model.handle) // 4, np.float32)
    # Made once: what is left of Python in the time is one call.
    memory = (at(scratch.ctypes.data), size(scratch.nbytes))
    data = (model.handle, at(x.ctypes.data), size(x.size), *memory, at(out.ctypes.data))

    def answer():
        assert call(*data) == 0
        return float(out["uncertainty"][0])

    return lambda: call(*data), answer, (model, out)


def onnx_graph(name, n):
    """E1 or E3, E4 to E6 in ONNX's own operators; sums over codes are matrix products."""
    import numpy as np
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    inputs, d, k = SHAPES[name]
    nodes, constants = [], []

    def const(label, value):
        constants.append(numpy_helper.from_array(np.asarray(value), label))
        return label

    def node(op, *arguments, out, **attributes):
        nodes.append(helper.make_node(op, arguments, [out], **attributes))
        return out

    f = np.float32
    node("MatMul", "x", const("weight", n["weight"]), out="raw")
    node("Slice", "raw", const("zero", [0]), const("d", [d]), const("axis", [1]), out="mu")
    if name == "c":
        node("Slice", "raw", "d", const("end", [2 * d]), "axis", out="r")
        node("Softplus", node("Sub", "r", const("five", f(5)), out="shifted"), out="soft")
        node("Add", "soft", const("floor", f(1e-5)), out="std")
        squares = node("Add", node("Mul", "std", "std", out="v"), node("Mul", "mu", "mu", out="mm"), out="squares")
        p, m = n["precision"], n["mean"]
        node("Concat", squares, "mu", out="terms", axis=1)
        matrix = np.concatenate([p.T, (-2 * p * m).T]).astype(f)
        constant = (p * m * m).sum(1) + n["log_det"] - d
        node("Gemm", "terms", const("codes", matrix), const("constant", constant.astype(f)), out="energy")
    else:
        # L from the packed triangle: entries below the diagonal as they are, softplus on it.
        places = np.full((d, d), d * (d + 1) // 2 + d)
        places[np.tril_indices(d)] = d + np.arange(d * (d + 1) // 2)
        node("Concat", "raw", const("none", np.zeros((1, 1), f)), out="padded", axis=1)
        node("Gather", node("Squeeze", "padded", "zero", out="flat"), const("places", places), out="lower")
        node("Softplus", node("Sub", "lower", const("five", f(5)), out="shifted"), out="soft")
        node("Add", "soft", const("floor", f(1e-5)), out="diagonal")
        node("Where", const("eye", np.eye(d, dtype=bool)), "diagonal", "lower", out="L")
        node("Reshape", "diagonal", const("all", [-1]), out="row")
        node("Gather", "row", const("on", np.arange(d) * (d + 1)), out="std")
        r = np.linalg.cholesky(n["precision"].astype(np.float64)).transpose(0, 2, 1).astype(f)
        node("MatMul", const("R", r.reshape(k * d, d)), "L", out="RL")
        node("Reshape", "RL", const("kdd", [k, d * d]), out="RLk")
        node("ReduceSumSquare", "RLk", const("one", [1]), out="trace", keepdims=0)
        node("Sub", "mu", const("mean", n["mean"]), out="offset")
        node("MatMul", const("Rk", r), node("Unsqueeze", "offset", const("two", [2]), out="column"), out="Ro")
        node("ReduceSumSquare", "Ro", const("both", [1, 2]), out="far", keepdims=0)
        node("Add", node("Add", "trace", "far", out="e"), const("constant", (n["log_det"] - d).astype(f)), out="sum")
        node("Unsqueeze", "sum", "zero", out="energy")
    node("ReduceSum", node("Log", "std", out="logs"), out="half", keepdims=0)
    node("Sub", "energy", node("Mul", "half", const("twice", f(2)), out="entropy"), out="twice_d")
    node("Relu", node("Mul", "twice_d", const("scale", f(0.5)), out="kl"), out="distance")
    node("Softmax", node("Neg", "distance", out="logits"), out="weights", axis=1)
    node("ReduceSum", node("Mul", "weights", "distance", out="parts"), out="u", keepdims=0)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, inputs])
    u = helper.make_tensor_value_info("u", TensorProto.FLOAT, [])
    graph = helper.make_graph(nodes, "dab", [x], [u], constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])
    model.ir_version = 9
    onnx.checker.check_model(model)
    return model.SerializeToString()


def onnx_call(folder, name, n):
    import onnxruntime as ort

    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = ort.InferenceSession(onnx_graph(name, n), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    binding.bind_cpu_input("x", n["input"])
    binding.bind_output("u")
    return lambda: session.run_with_iobinding(binding), lambda: float(session.run(None, {"x": n["input"]})[0]), session


def tflite_call(folder, name, n, published=False):
    """E1 or E2, E4 to E6 as TFLite, with TensorFlow's linear algebra."""
    import numpy as np
    import tensorflow as tf

    inputs, d, k = SHAPES[name]
    weight, mean, log_det, precision = (tf.constant(n[w]) for w in ["weight", "mean", "log_det", "precision"])
    factor = tf.constant(np.linalg.cholesky(np.linalg.inv(n["precision"]))) if name == "a" else None
    rows, columns = np.tril_indices(d)

    def distances(raw):
        mu = raw[:, :d]
        if name == "c":
            std = tf.math.softplus(raw[:, d:] - 5) + 1e-5
            return tf.reduce_sum((std**2 + (mu - mean) ** 2) * precision, 1), tf.reduce_sum(tf.math.log(std))
        lower = tf.scatter_nd(np.stack([rows, columns], 1), raw[0, d:], [d, d])
        a, offset = 0.5 * (lower + tf.transpose(lower)), mu - mean
        if published:
            s, u, _ = tf.linalg.svd(a)
            std = tf.math.softplus(s - 5) + 1e-5
            own = tf.linalg.cholesky((u * std**2) @ tf.transpose(u))
            solved = tf.linalg.triangular_solve(factor, tf.tile(own[None], [k, 1, 1]))
            far = tf.linalg.triangular_solve(factor, offset[:, :, None])
            half = tf.reduce_sum(tf.math.log(tf.linalg.diag_part(own)))
            return tf.reduce_sum(solved**2, [1, 2]) + tf.reduce_sum(far**2, [1, 2]), half
        s, u = tf.linalg.eigh(a)
        std = tf.math.softplus(tf.abs(s) - 5) + 1e-5
        trace = tf.reduce_sum(precision * ((u * std**2) @ tf.transpose(u)), [1, 2])
        far = tf.reduce_sum(offset * tf.squeeze(precision @ offset[:, :, None], 2), 1)
        return trace + far, tf.reduce_sum(tf.math.log(std))

    @tf.function(input_signature=[tf.TensorSpec([1, inputs], tf.float32)])
    def layers(x):
        energy, half = distances(x @ weight)
        kl = tf.nn.relu(0.5 * (energy - d + log_det) - half)
        return tf.reduce_sum(tf.nn.softmax(-kl) * kl)

    converter = tf.lite.TFLiteConverter.from_concrete_functions([layers.get_concrete_function()])
    converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS, tf.lite.OpsSet.SELECT_TF_OPS]
    converter.target_spec.experimental_select_user_tf_ops = ["SelfAdjointEigV2", "Svd"]
    interpreter = tf.lite.Interpreter(model_content=converter.convert(), num_threads=1)
    interpreter.allocate_tensors()
    interpreter.set_tensor(interpreter.get_input_details()[0]["index"], n["input"])
    out = interpreter.get_output_details()[0]["index"]

    def answer():
        interpreter.invoke()
        return float(interpreter.get_tensor(out))

    return interpreter.invoke, answer, interpreter


def median(values):
    values = sorted(values)
    return values[len(values) // 2]


def measure(folder):
    calls = {"ONNX Runtime": onnx_call}
    if "--tensorflow" in sys.argv:
        calls["TFLite, published way"] = lambda *given: tflite_call(*given, published=True)
        calls["TFLite"] = tflite_call
    for name, (inputs, d, k) in SHAPES.items():
        n = numbers(folder, name)
        racers = {"dab_assess": dab_call(folder, name, n)}
        for title, make in calls.items():
            if name in {"ONNX Runtime": "bc", "TFLite": "ac", "TFLite, published way": "a"}[title]:
                racers[title] = make(folder, name, n)
        truth = racers["dab_assess"][1]()
        times = {title: [] for title in racers}
        for title, (_, answer, _) in racers.items():
            assert abs(answer() / truth - 1) < 1e-3, f"{title} gives {answer()}, dab_assess {truth}"
        for _ in range(ROUNDS):
            for title, (run, _, _) in racers.items():
                start = time.perf_counter_ns()
                for _ in range(CALLS):
                    run()
                times[title].append((time.perf_counter_ns() - start) / CALLS / 1e3)
        kind = {"a": "spectral", "b": "Cholesky", "c": "diagonal"}[name]
        print(f"({name}) {inputs} -> {d}, k {k}, {kind}, medians of {ROUNDS} alternations, u = {truth:.4f}")
        for title, us in times.items():
            ratio = median(t / own for t, own in zip(us, times["dab_assess"]))
            print(f"  {title:27} {median(us):8.2f} us, least {min(us):8.2f}; {ratio:6.2f} x dab_assess")


if __name__ == "__main__":
    if "--measure" in sys.argv:
        measure(sys.argv[sys.argv.index("--measure") + 1])
    else:
        sys.exit(set_up())
