"""dab from Python: libdab.so through ctypes, batches as NumPy arrays.

    model = Model("model.dab")
    a = model.assess(states)                    # states: [rows, inputs], anything NumPy makes float32 of
    a["uncertainty"], a["p_value"], a["verdict"]

    bonus = Exploration(start=0.1, end=0.0, steps=100_000, schedule="linear")
    bonus.update(a["uncertainty"])              # the normaliser learns, once per collected batch
    rewards += bonus(a["uncertainty"], step)    # and is then applied; it learns nothing here

The library is found as libdab.so by the loader, or where $DAB_LIBRARY says.
"""

import ctypes as c
import os

import numpy as np

VERDICTS = {-1: None, 0: "familiar", 1: "doubtful", 2: "unfamiliar"}
SAVED_BYTES = 40

ASSESSMENT = np.dtype(
    [
        ("size", "u4"),
        ("flags", "u4"),
        ("uncertainty", "f4"),
        ("p_value", "f4"),
        ("verdict", "i4"),
        ("nearest", "u4"),
        ("nearest_distance", "f4"),
    ]
)


class _Shape(c.Structure):
    _names = "size inputs outputs codes dim layers features covariance task calibration"
    _fields_ = [(name, c.c_uint32) for name in _names.split()]


class _ExplorationConfig(c.Structure):
    _fields_ = [
        ("size", c.c_uint32),
        ("schedule", c.c_uint32),
        ("start", c.c_float),
        ("end", c.c_float),
        ("steps", c.c_uint64),
        ("warmup", c.c_uint64),
        ("clip", c.c_float),
        ("centered", c.c_uint32),
    ]


class Error(Exception):
    """A refused call; `status` is its number in dab.h."""

    def __init__(self, status):
        super().__init__(_lib.dab_status_string(status).decode())
        self.status = status


def _check(status):
    if status != 0:
        raise Error(status)


def _load():
    lib = c.CDLL(os.environ.get("DAB_LIBRARY", "libdab.so"))
    p, n = c.c_void_p, c.c_size_t
    for name, result, arguments in [
        ("dab_status_string", c.c_char_p, [c.c_int32]),
        ("dab_abi_version", c.c_uint32, []),
        ("dab_model_open", c.c_int32, [c.c_char_p, c.POINTER(p)]),
        ("dab_model_close", None, [p]),
        ("dab_model_shape", c.c_int32, [p, c.POINTER(_Shape)]),
        ("dab_scratch_bytes", n, [p]),
        ("dab_set_rates", c.c_int32, [p, c.c_float, c.c_float]),
        ("dab_self_test", c.c_int32, [p, p, n]),
        ("dab_assess_batch", c.c_int32, [p, p, n, n, p, n, p]),
        ("dab_predict", c.c_int32, [p, p, n, p, n, p, n, p]),
        ("dab_exploration_init", c.c_int32, [p, c.POINTER(_ExplorationConfig)]),
        ("dab_exploration_update", c.c_int32, [p, p, n]),
        ("dab_exploration_compute", c.c_int32, [p, p, n, c.c_uint64, p]),
        ("dab_exploration_save", c.c_int32, [p, p, n]),
        ("dab_exploration_restore", c.c_int32, [p, p, n]),
    ]:
        function = getattr(lib, name)
        function.restype, function.argtypes = result, arguments
    if lib.dab_abi_version() != 2:
        raise ImportError("libdab.so has another binary interface than this file")
    return lib


_lib = _load()


def _floats(values):
    return np.ascontiguousarray(values, dtype=np.float32)


class Model:
    """A model file. Not for two threads at once: it has one scratch memory."""

    def __init__(self, path):
        self._handle, handle = None, c.c_void_p()
        _check(_lib.dab_model_open(os.fsencode(path), c.byref(handle)))
        self._handle = handle
        self.shape = _Shape(size=c.sizeof(_Shape))
        _check(_lib.dab_model_shape(handle, c.byref(self.shape)))
        self._scratch = np.empty(_lib.dab_scratch_bytes(handle) // 4, np.float32)
        _check(_lib.dab_self_test(handle, self._scratch.ctypes.data, self._scratch.nbytes))

    def set_rates(self, doubtful, unfamiliar):
        """Other false-alarm rates than the model's own, 0 < unfamiliar <= doubtful < 1."""
        _check(_lib.dab_set_rates(self._handle, doubtful, unfamiliar))

    def _rows(self, inputs):
        inputs = np.atleast_2d(_floats(inputs))
        if inputs.ndim != 2 or inputs.shape[1] != self.shape.inputs:
            raise ValueError(f"inputs are {inputs.shape}, the model takes [rows, {self.shape.inputs}]")
        return inputs

    def assess(self, inputs):
        """A record array with one assessment per row: uncertainty, p_value, verdict, nearest, …"""
        inputs = self._rows(inputs)
        out = np.zeros(len(inputs), ASSESSMENT)
        if len(out):
            out["size"][0] = ASSESSMENT.itemsize
            scratch = self._scratch
            data = (inputs.ctypes.data, *inputs.shape, scratch.ctypes.data, scratch.nbytes, out.ctypes.data)
            _check(_lib.dab_assess_batch(self._handle, *data))
        return out

    def predict(self, inputs):
        """What the network predicts, [rows, outputs]: means, or logits."""
        inputs = self._rows(inputs)
        outputs = np.empty((len(inputs), self.shape.outputs), np.float32)
        one, scratch = np.zeros(1, ASSESSMENT), self._scratch
        one["size"] = ASSESSMENT.itemsize
        for x, y in zip(inputs, outputs):
            data = (x.ctypes.data, x.size, y.ctypes.data, y.size, scratch.ctypes.data, scratch.nbytes)
            _check(_lib.dab_predict(self._handle, *data, one.ctypes.data))
        return outputs

    def close(self):
        if self._handle:
            _lib.dab_model_close(self._handle)
            self._handle = None

    __del__ = close


class Exploration:
    """An exploration bonus with its running normaliser."""

    SCHEDULES = {"constant": 0, "linear": 1, "exponential": 2}

    def __init__(self, start=1.0, end=0.0, steps=1, schedule="constant", clip=5.0, centered=False, warmup=2):
        self._state = (c.c_uint64 * 16)()
        kind = self.SCHEDULES[schedule]
        size = c.sizeof(_ExplorationConfig)
        config = _ExplorationConfig(size, kind, start, end, steps, warmup, clip, centered)
        _check(_lib.dab_exploration_init(self._state, c.byref(config)))

    def update(self, uncertainties):
        u = _floats(uncertainties).ravel()
        _check(_lib.dab_exploration_update(self._state, u.ctypes.data, u.size))

    def __call__(self, uncertainties, step):
        u = _floats(uncertainties)
        bonus = np.empty_like(u)
        _check(_lib.dab_exploration_compute(self._state, u.ctypes.data, u.size, step, bonus.ctypes.data))
        return bonus

    def save(self):
        """The normaliser as bytes, for a checkpoint."""
        data = c.create_string_buffer(SAVED_BYTES)
        _check(_lib.dab_exploration_save(self._state, data, SAVED_BYTES))
        return data.raw

    def restore(self, saved):
        _check(_lib.dab_exploration_restore(self._state, saved, len(saved)))
