"""The C library through ctypes: where it is, what its functions take, and its errors. dab.h and dab_memory.h are the manual."""

from __future__ import annotations

import ctypes as c
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np

#: The binary interface that this package is written for (DAB_ABI_VERSION).
ABI = 3

#: DAB_ERR_NON_FINITE.
NON_FINITE = -11

ASSESSMENT = np.dtype(
    [
        ("size", "u4"),
        ("flags", "u4"),
        ("uncertainty", "f4"),
        ("p_value", "f4"),
        ("verdict", "i4"),
        ("nearest", "u4"),
        ("nearest_distance", "f4"),
        ("score", "f4"),
        ("unfamiliarity", "f4"),
        ("ambiguity", "f4"),
        ("ambiguity_p", "f4"),
        ("top_class", "u4"),
        ("runner_up", "u4"),
        ("view", "u4"),
    ]
)

NOVELTY = np.dtype(
    [
        ("size", "u4"),
        ("spawned", "u4"),
        ("bonus", "f4"),
        ("visits", "f4"),
        ("uncertainty", "f4"),
        ("nearest", "u4"),
        ("nearest_distance", "f4"),
    ]
)


class Shape(c.Structure):
    """dab_shape: the sizes of a model."""

    _names = "size inputs outputs codes dim layers features covariance task calibration views"
    _fields_ = [(name, c.c_uint32) for name in _names.split()]


class ExplorationConfig(c.Structure):
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


class MonitorConfig(c.Structure):
    _fields_ = [
        ("size", c.c_uint32),
        ("enter", c.c_float),
        ("exit", c.c_float),
        ("window", c.c_uint32),
        ("enter_votes", c.c_uint32),
        ("exit_votes", c.c_uint32),
        ("min_dwell", c.c_uint32),
        ("timeout", c.c_uint32),
        ("reject_votes", c.c_uint32),
        ("drift_block", c.c_uint32),
        ("drift_alarm", c.c_float),
        ("drift_keeps", c.c_uint32),
        ("drift_levels", c.c_float * 7),
        ("drift_p", c.c_float * 7),
    ]


class MonitorStatistics(c.Structure):
    """dab_monitor_statistics: what a monitor saw so far."""

    _counts = "inputs votes alarms stales nominal_ticks fallback_ticks rejected spikes drifts rejections events"
    _fields_ = (
        [("size", c.c_uint32), ("state", c.c_int32)]
        + [(name, c.c_uint64) for name in _counts.split()]
        + [(name, c.c_float) for name in "mean std min max".split()]
        + [("why", c.c_uint32), ("last_rejection", c.c_int32), ("drift_capital", c.c_float), ("drift_p", c.c_float)]
    )


class MonitorEvent(c.Structure):
    _fields_ = [(name, c.c_uint32) for name in "size number tick why".split()] + [("score", c.c_float), ("nearest", c.c_uint32)]


class MemoryConfig(c.Structure):
    _fields_ = [
        ("size", c.c_uint32),
        ("codes", c.c_uint32),
        ("dim", c.c_uint32),
        ("std", c.c_float),
        ("spawn", c.c_float),
        ("alpha", c.c_float),
        ("widen", c.c_float),
        ("keep", c.c_float),
        ("horizon", c.c_uint32),
    ]


class MemoryStatistics(c.Structure):
    _fields_ = [(name, c.c_uint32) for name in "size codes dim used taught saved_bytes".split()] + [("visits", c.c_float)]


class Error(Exception):
    """A call that the library refused. `status` is its number in dab.h."""

    def __init__(self, status: int, context: str = "") -> None:
        words = lib.dab_status_string(status).decode()
        super().__init__(f"{context}: {words}" if context else words)
        self.status = status


def check(status: int, context: str = "") -> None:
    """Raises `Error` unless the status is DAB_OK."""
    if status != 0:
        raise Error(status, context)


def check_rows(status: int, rows: np.ndarray) -> None:
    """`check` for a batch: an error about a value that is not finite says where the first one is."""
    context = ""
    if status == NON_FINITE:
        bad = np.argwhere(~np.isfinite(rows))
        if len(bad):
            context = f"row {bad[0, 0]}, column {bad[0, 1]} (counted from 0)"
    check(status, context)


def library_path() -> str:
    """The library that is used: $DAB_LIBRARY, the one in this package, or what the loader finds."""
    if "DAB_LIBRARY" in os.environ:
        return os.environ["DAB_LIBRARY"]
    name = {"darwin": "libdab.dylib", "win32": "dab.dll"}.get(sys.platform, "libdab.so")
    own = Path(__file__).with_name(name)
    return str(own) if own.exists() else name


def _load() -> Any:
    found = c.CDLL(library_path())
    p, n, i, u, f = c.c_void_p, c.c_size_t, c.c_int32, c.c_uint32, c.c_float
    for name, result, arguments in [
        ("dab_status_string", c.c_char_p, [i]),
        ("dab_abi_version", u, []),
        ("dab_version", c.c_char_p, []),
        ("dab_model_open", i, [c.c_char_p, c.POINTER(p)]),
        ("dab_model_close", None, [p]),
        ("dab_model_shape", i, [p, p]),
        ("dab_scratch_bytes", n, [p]),
        ("dab_set_rates", i, [p, f, f]),
        ("dab_threshold", i, [p, f, p]),
        ("dab_self_test", i, [p, p, n]),
        ("dab_assess_batch", i, [p, p, n, n, p, n, p]),
        ("dab_predict", i, [p, p, n, p, n, p, n, p]),
        ("dab_predict_batch", i, [p, p, n, n, p, n, p, n, p]),
        ("dab_attribution_bytes", n, [p]),
        ("dab_attribute", i, [p, p, n, p, p, p, p, n, p, n, p]),
        ("dab_model_means", i, [p, p, n]),
        ("dab_model_bands", i, [p, p, n]),
        ("dab_input_name", i, [p, n, p, n]),
        ("dab_output_name", i, [p, n, p, n]),
        ("dab_explain", i, [p, p, n, p, p, n, p, n, p, n, p]),
        ("dab_encode", i, [p, p, n, p, p, n, p, n]),
        ("dab_exploration_init", i, [p, p]),
        ("dab_exploration_update", i, [p, p, n]),
        ("dab_exploration_compute", i, [p, p, n, c.c_uint64, p]),
        ("dab_exploration_save", i, [p, p, n]),
        ("dab_exploration_restore", i, [p, p, n]),
        ("dab_model_monitor", i, [p, p, c.POINTER(f)]),
        ("dab_monitor_init", i, [p, p]),
        ("dab_monitor_observe", i, [p, u, f]),
        ("dab_monitor_poll", i, [p, u]),
        ("dab_monitor_why", u, [p]),
        ("dab_monitor_stats", i, [p, p]),
        ("dab_monitor_event", i, [p, u, p]),
        ("dab_monitor_reset", i, [p]),
        ("dab_monitor_save", i, [p, p, n]),
        ("dab_monitor_restore", i, [p, p, n]),
        ("dab_guard", i, [p, p, u, p, n, p, n, p, n, p]),
        ("dab_memory_bytes", n, [u, u]),
        ("dab_memory_init", i, [p, n, p, c.POINTER(p)]),
        ("dab_memory_assess", i, [p, p, p, n, p]),
        ("dab_memory_observe", i, [p, p, p, n, p]),
        ("dab_memory_observe_batch", i, [p, p, p, n, n, p]),
        ("dab_memory_teach", i, [p, p, p, n, p]),
        ("dab_memory_clear", i, [p]),
        ("dab_memory_remove", i, [p, u]),
        ("dab_memory_code", i, [p, u, p, p, n, p]),
        ("dab_memory_stats", i, [p, p]),
        ("dab_memory_save", i, [p, p, n]),
        ("dab_memory_restore", i, [p, p, n]),
        ("dab_teach", i, [p, p, p, n, p, n, p]),
        ("dab_assess_taught", i, [p, p, p, n, p, n, p]),
        ("dab_ellipse_bytes", n, [u]),
        ("dab_ellipse_init", i, [p, n, u, f, c.POINTER(p)]),
        ("dab_ellipse_observe", i, [p, p, n, u, p]),
        ("dab_ellipse_clear", i, [p]),
        ("dab_random_features", i, [u, f, p, n, p, n]),
    ]:
        function = getattr(found, name)
        function.restype, function.argtypes = result, arguments
    if found.dab_abi_version() != ABI:
        raise ImportError(
            f"{library_path()} has the binary interface {found.dab_abi_version()}, this package needs {ABI}: install both of one version"
        )
    return found


lib = _load()


def floats(values: Any) -> np.ndarray:
    """The values as C has them: float32, one after the other. Not copied if they are so already."""
    return np.ascontiguousarray(values, dtype=np.float32)


def rows_of(values: Any, width: int, what: str) -> np.ndarray:
    """`values` as [rows, width]."""
    found = np.atleast_2d(floats(values))
    if found.ndim != 2 or found.shape[1] != width:
        raise ValueError(f"{what} are {np.shape(values)}, wanted is [rows, {width}] or [{width}]")
    return found
