"""Networks of other frameworks as tensors for `dab pack`. What PyTorch gives is stored in `reference` (made by its make.py), so that
the file format and the arithmetic are compared with it everywhere; with PyTorch, Keras or ONNX installed they are asked themselves.
DAB_COMMAND names the `dab` command."""

import importlib.util
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

import dab_uncertainty as dab
import numpy as np

HERE = Path(__file__).resolve().parent
COMMAND = os.environ.get("DAB_COMMAND") or shutil.which("dab")
TOLERANCE = 1e-5


def has(module):
    return importlib.util.find_spec(module) is not None


def agree(test, found, wanted, what):
    difference = np.abs(found - wanted).max() / max(1.0, np.abs(wanted).max())
    test.assertLessEqual(difference, TOLERANCE, what)


@unittest.skipUnless(COMMAND, "there is no dab command (DAB_COMMAND)")
class Stored(unittest.TestCase):
    def test_dab_gives_the_logits_that_pytorch_gave(self):
        reference = np.load(HERE / "reference/networks.npz")
        rows = reference["rows"]
        for name in ("plain", "norms"):
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "model.dab"
                np.save(f"{folder}/rows.npy", reference["familiar"])
                weights = HERE / f"reference/{name}.safetensors"
                line = [COMMAND, "pack", weights, "--fit", f"{folder}/rows.npy", "-o", file]
                subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
                with dab.Model(file) as model:
                    agree(self, model.predict(rows), reference[name], name)
                    strange = model.assess(100 + rows).verdict
                    self.assertTrue((strange == 4).all(), f"{name}: {strange}")


@unittest.skipUnless(COMMAND and has("torch"), "PyTorch is not installed (or there is no dab command)")
class PyTorch(unittest.TestCase):
    def export(self, model, **settings):
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/weights.safetensors"
            result = dab.export(model, file, command=COMMAND, **settings)
            self.assertTrue(os.path.getsize(file) > 0)
            return result

    def test_a_sequential_network_is_folded_and_agrees(self):
        import torch
        from torch import nn

        torch.manual_seed(0)
        layers = [nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 12, bias=False), nn.GELU()]
        model = nn.Sequential(nn.Flatten(), nn.Sequential(*layers), nn.LayerNorm(12), nn.SiLU(), nn.Linear(12, 3), nn.Softmax(-1))
        model(torch.randn(256, 8))  # BatchNorm has statistics now
        found = self.export(model)
        self.assertLessEqual(found.difference, TOLERANCE)
        self.assertEqual(len(found.layers), 4, found)  # three layers and the decoder
        self.assertIn("softmax", found.notes[0])

    def test_batch_norms_before_and_behind_activations_are_folded(self):
        import torch
        from torch import nn

        torch.manual_seed(1)
        model = nn.Sequential(nn.BatchNorm1d(5), nn.Linear(5, 7), nn.ELU(), nn.BatchNorm1d(7), nn.Linear(7, 4), nn.Tanh(), nn.Linear(4, 2))
        for module in model:
            if isinstance(module, nn.BatchNorm1d):
                nn.init.normal_(module.weight), nn.init.normal_(module.bias)
        model(3 * torch.randn(256, 5) + 1)
        self.assertEqual(len(self.export(model).layers), 3)

    def test_residuals_before_and_after_activations(self):
        import torch
        import torch.nn.functional as F
        from torch import nn

        class Block(nn.Module):
            def __init__(self, before):
                super().__init__()
                self.norm, self.up, self.down, self.before = nn.LayerNorm(6), nn.Linear(6, 10), nn.Linear(10, 6), before

            def forward(self, x):
                y = self.down(F.gelu(self.up(self.norm(x))))
                return F.relu(x + y) if self.before else x + torch.tanh(y)

        torch.manual_seed(2)
        for before in (True, False):
            found = self.export(nn.Sequential(nn.Linear(4, 6), Block(before), Block(before), nn.Linear(6, 3)))
            self.assertLessEqual(found.difference, TOLERANCE)

    def test_what_dab_has_not_is_named(self):
        import torch
        from torch import nn

        class Branches(nn.Module):
            def __init__(self):
                super().__init__()
                self.a, self.b = nn.Linear(4, 3), nn.Linear(4, 3)

            def forward(self, x):
                return self.a(x) + self.b(x)

        class Hidden(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Linear(4, 3)

            def forward(self, x):
                return 2 * self.a(x)

        cases = {
            "0 (Conv1d)": nn.Sequential(nn.Conv1d(1, 2, 3), nn.Linear(4, 2)),
            "1 (LeakyReLU)": nn.Sequential(nn.Linear(4, 4), nn.LeakyReLU(), nn.Linear(4, 2)),
            "alpha 0.5": nn.Sequential(nn.Linear(4, 4), nn.ELU(0.5), nn.Linear(4, 2)),
            "approximate": nn.Sequential(nn.Linear(4, 4), nn.GELU("tanh"), nn.Linear(4, 2)),
            "(LSTM)": nn.LSTM(4, 4),
            "not the last one": Branches(),
            "mul": Hidden(),
            "2000 values": nn.Sequential(nn.Linear(4, 2000), nn.ReLU(), nn.Linear(2000, 2)),
        }
        for words, model in cases.items():
            with self.assertRaises(dab.Unsupported) as caught:
                self.export(model, **({"rows": np.zeros((1, 4))} if "LSTM" in words or "Conv" in words else {}))
            self.assertIn(words, str(caught.exception))
        with self.assertRaisesRegex(ValueError, "rows have 3 columns"):
            self.export(nn.Linear(4, 2), rows=np.zeros((2, 3)))

    def test_a_file_that_does_not_agree_is_not_written(self):
        import torch
        from torch import nn

        class Other(nn.Linear):
            def forward(self, x):
                return super().forward(x) + 1

        with tempfile.TemporaryDirectory() as folder:
            with self.assertRaises(dab.Unsupported):
                dab.export(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), Other(4, 2)), f"{folder}/w", command=COMMAND)
            self.assertEqual(os.listdir(folder), [])


@unittest.skipUnless(COMMAND and has("onnx"), "onnx is not installed (or there is no dab command)")
class Onnx(unittest.TestCase):
    def test_a_chain_of_nodes_agrees(self):
        import onnx
        from onnx import TensorProto, helper, numpy_helper

        random = np.random.default_rng(0)
        constants = {"w0": (6, 4), "b0": (6,), "g": (6,), "h": (6,), "w1": (6, 6), "b1": (6,), "w2": (3, 6), "b2": (3,)}
        tensors = [numpy_helper.from_array(random.normal(size=shape).astype(np.float32), name) for name, shape in constants.items()]
        nodes = [
            helper.make_node("Gemm", ["x", "w0", "b0"], ["a"], transB=1),
            helper.make_node("Sigmoid", ["a"], ["s"]),
            helper.make_node("Mul", ["a", "s"], ["c"]),
            helper.make_node("LayerNormalization", ["c", "g", "h"], ["d"], epsilon=1e-5),
            helper.make_node("MatMul", ["d", "w1"], ["e"]),
            helper.make_node("Add", ["e", "b1"], ["f"]),
            helper.make_node("Add", ["f", "c"], ["r"]),
            helper.make_node("Tanh", ["r"], ["t"]),
            helper.make_node("Gemm", ["t", "w2", "b2"], ["logits"], transB=1),
            helper.make_node("Softmax", ["logits"], ["p"]),
        ]
        ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", n]) for name, n in (("x", 4), ("p", 3))]
        graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], tensors)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
        with tempfile.TemporaryDirectory() as folder:
            onnx.save(model, f"{folder}/chain.onnx")
            found = dab.export(f"{folder}/chain.onnx", f"{folder}/w.safetensors", command=COMMAND)
            self.assertLessEqual(found.difference, TOLERANCE)
            self.assertEqual(len(found.layers), 4, found)
        nodes[7] = helper.make_node("Softplus", ["r"], ["t"])
        graph = helper.make_graph(nodes, "chain", ends[:1], ends[1:], tensors)
        with self.assertRaisesRegex(dab.Unsupported, "Softplus"):
            dab.export(helper.make_model(graph), "nowhere", command=COMMAND)


@unittest.skipUnless(COMMAND and has("keras"), "Keras is not installed (or there is no dab command)")
class Keras(unittest.TestCase):
    def test_a_sequential_model_agrees(self):
        import keras
        from keras import layers

        keras.utils.set_random_seed(0)
        hidden = [layers.Dense(8, activation="gelu"), layers.BatchNormalization(), layers.Dropout(0.2), layers.LayerNormalization()]
        model = keras.Sequential([keras.Input((5,)), *hidden, layers.Dense(6, "tanh"), layers.Dense(3, "softmax")])
        found = self.export(model)
        self.assertLessEqual(found.difference, TOLERANCE)
        self.assertIn("softmax", found.notes[-1])

    def export(self, model):
        with tempfile.TemporaryDirectory() as folder:
            return dab.export(model, f"{folder}/w.safetensors", command=COMMAND)

    def test_statistics_normalisations_and_residuals_agree(self):
        import keras
        from keras import layers

        keras.utils.set_random_seed(1)
        rows = np.random.default_rng(0).normal(3, 2, (200, 5)).astype(np.float32)
        normal = layers.Normalization()
        normal.adapt(rows)
        start = keras.Input((5,))
        x = layers.Dense(6, "elu")(normal(layers.Rescaling(0.5, 1.0)(start)))
        y = layers.Dense(6, use_bias=False)(layers.ReLU()(layers.Dense(9)(layers.LayerNormalization()(x))))
        y = layers.Dense(6, "silu")(layers.BatchNormalization()(layers.Add()([x, y])))
        model = keras.Model(start, layers.Softmax()(layers.Dense(3)(layers.Activation("tanh")(y))))
        model.compile("sgd", "categorical_crossentropy")
        # Running means and variances are no longer 0 and 1.
        model.fit(rows, np.eye(3)[np.arange(200) % 3], epochs=3, verbose=0)
        self.assertLessEqual(self.export(model).difference, TOLERANCE)

    def test_what_dab_has_not_is_named(self):
        import keras
        from keras import layers

        cases = {
            "(LeakyReLU)": [layers.Dense(4), layers.LeakyReLU(), layers.Dense(2)],
            "sigmoid": [layers.Dense(4, "sigmoid"), layers.Dense(2)],
            "negative_slope": [layers.Dense(4), layers.ReLU(negative_slope=0.1), layers.Dense(2)],
            "reads a softmax": [layers.Dense(4, "softmax"), layers.Dense(2)],
        }
        for words, parts in cases.items():
            with self.assertRaises(dab.Unsupported) as caught:
                self.export(keras.Sequential([keras.Input((4,)), *parts]))
            self.assertIn(words, str(caught.exception))


class Refusals(unittest.TestCase):
    def test_without_a_command_and_for_other_objects(self):
        with self.assertRaisesRegex(dab.Unsupported, "int is neither"):
            dab.export(3, "nowhere", command="dab")
        with self.assertRaisesRegex(ValueError, "task is 'ranking'"):
            dab.export(3, "nowhere", task="ranking", command="dab")


if __name__ == "__main__":
    unittest.main()
