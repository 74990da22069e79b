"""Memories that learn: how often was something like this seen before?"""

from __future__ import annotations

import ctypes as c
import threading
import warnings
from typing import Any, NamedTuple, Optional, Union

import numpy as np

from ._library import NOVELTY, MemoryConfig, MemoryStatistics, check, check_rows, floats, lib, rows_of


class Novelty(NamedTuple):
    """What a memory says of one input."""

    #: 1 / sqrt(1 + visits): 1 for what was never seen, towards 0 for what was seen often.
    bonus: float
    #: How often something like this was seen, a soft count.
    visits: float
    #: Expected distance from the codes in nats; the largest float while there are none.
    uncertainty: float
    #: The closest code, counting from 0.
    nearest: int
    #: Its distance, nats.
    nearest_distance: float
    #: Whether this call made a new code of the input.
    spawned: bool


class Memory:
    """A small codebook that starts empty and learns from every input. Fixed memory, fixed time.

    codes: how many places there are. dim: values of an input. std: what lies within this distance is the same; one number, or
    one for each value. spawn: an input farther than this (nats) from all codes becomes a code. alpha: larger means that only
    near codes count. widen: how much wider than an input a code may become. keep: what is left of every count after an
    observation, 1 forgets nothing. horizon: largest count of a code. Threads may share a memory: one call waits for the other.
    """

    def __init__(
        self,
        codes: int,
        dim: int,
        std: "Union[float, Any]",
        *,
        spawn: float = 1.0,
        alpha: float = 1.0,
        widen: float = 4.0,
        keep: float = 1.0,
        horizon: int = 1 << 20,
    ) -> None:
        self.codes, self.dim = int(codes), int(dim)
        every = np.broadcast_to(np.asarray(std, np.float32), (self.dim,)) if self.dim > 0 else np.zeros(0, np.float32)
        # One number is the C memory's own; several are given with each call.
        self._std = None if np.ndim(std) == 0 else floats(every)
        self._every_std = None if np.ndim(std) != 0 else float(std)
        size = c.sizeof(MemoryConfig)
        first = float(every[0]) if self.dim > 0 else 0.0
        config = MemoryConfig(size, self.codes, self.dim, first, spawn, alpha, widen, keep, horizon)
        needed = lib.dab_memory_bytes(self.codes, self.dim)
        self._storage = np.zeros(max(needed, 8) // 8 + 1, np.uint64)
        handle = c.c_void_p()
        status = lib.dab_memory_init(self._storage.ctypes.data, self._storage.nbytes, c.byref(config), c.byref(handle))
        check(status, "Memory")
        self._handle = handle
        # Calls release the GIL, and share the places below.
        self._lock = threading.RLock()
        # For single inputs: memory whose place is known, so that a call is one call.
        self._x = np.zeros(self.dim, np.float32)
        self._one = np.zeros(1, NOVELTY)
        self._one["size"] = NOVELTY.itemsize
        std_place = None if self._std is None else self._std.ctypes.data
        self._call = (handle, self._x.ctypes.data, std_place, self.dim, self._one.ctypes.data)

    @property
    def handle(self) -> c.c_void_p:
        """The `dab_memory *`, for own calls of the C library."""
        return self._handle

    def _single(self, function: Any, x: Any, std: Any) -> Novelty:
        x = np.asarray(x, np.float32)
        if x.shape != (self.dim,):
            raise ValueError(f"the input is {x.shape}, wanted is [{self.dim}]")
        with self._lock:
            self._x[:] = x
            if std is None:
                check(function(*self._call))
            else:
                handle, place, _, dim, out = self._call
                std = floats(np.broadcast_to(np.asarray(std, np.float32), (self.dim,)))
                check(function(handle, place, std.ctypes.data, dim, out))
            _, spawned, bonus, visits, uncertainty, nearest, distance = self._one[0].item()
        return Novelty(bonus, visits, uncertainty, nearest, distance, bool(spawned))

    def assess(self, x: Any, std: Any = None) -> "Union[Novelty, np.recarray]":
        """How novel `x` is. Nothing is learned. [dim] gives a `Novelty`; [rows, dim] a record array with the same names."""
        if np.ndim(x) == 1:
            return self._single(lib.dab_memory_assess, x, std)
        rows = rows_of(x, self.dim, "inputs")
        stds = [None] * len(rows) if std is None else np.broadcast_to(np.asarray(std, np.float32), rows.shape)
        out = np.zeros(len(rows), NOVELTY).view(np.recarray)
        with self._lock:
            for place, (row, own) in enumerate(zip(rows, stds)):
                self._single(lib.dab_memory_assess, row, own)
                out[place] = self._one[0]
        return out

    def observe(self, x: Any, std: Any = None) -> "Union[Novelty, np.recarray]":
        """How novel `x` is; then it is learned. [dim] gives a `Novelty`; [rows, dim] a record array with the same names, rows
        one after the other. std: the input's own standard deviations, else the memory's."""
        if np.ndim(x) == 1:
            return self._single(lib.dab_memory_observe, x, std)
        rows = rows_of(x, self.dim, "inputs")
        if std is None:
            std = self._std
        place = None
        if std is not None:
            std = floats(np.broadcast_to(np.asarray(std, np.float32), rows.shape))
            place = std.ctypes.data
        out = np.zeros(len(rows), NOVELTY).view(np.recarray)
        if len(rows):
            out["size"][0] = NOVELTY.itemsize
            with self._lock:
                status = lib.dab_memory_observe_batch(self._handle, rows.ctypes.data, place, *rows.shape, out.ctypes.data)
            check_rows(status, rows)
        return out

    def teach(self, x: Any, std: Any = None) -> Novelty:
        """"This is normal": a code that is never forgotten."""
        return self._single(lib.dab_memory_teach, x, std)

    def remove(self, index: int) -> None:
        """Forgets taught code `index`; the last taught code gets its number."""
        with self._lock:
            check(lib.dab_memory_remove(self._handle, index))

    def clear(self) -> None:
        """Forgets what was observed; what was taught stays."""
        with self._lock:
            check(lib.dab_memory_clear(self._handle))

    def _stats(self) -> MemoryStatistics:
        out = MemoryStatistics(size=c.sizeof(MemoryStatistics))
        with self._lock:
            check(lib.dab_memory_stats(self._handle, c.byref(out)))
        return out

    def __len__(self) -> int:
        return int(self._stats().used)

    @property
    def taught(self) -> int:
        """How many of the codes, the first ones, were taught."""
        return int(self._stats().taught)

    @property
    def visits(self) -> float:
        """The sum of all counts."""
        return float(self._stats().visits)

    def code(self, index: int) -> "tuple[np.ndarray, np.ndarray, float]":
        """Mean, standard deviations and count of a code."""
        mean, std, count = np.empty(self.dim, np.float32), np.empty(self.dim, np.float32), c.c_float()
        place = (mean.ctypes.data, std.ctypes.data, self.dim, c.byref(count))
        with self._lock:
            check(lib.dab_memory_code(self._handle, index, *place), f"code {index}")
        return mean, std, count.value

    def save(self) -> bytes:
        """Codes and settings as bytes, the same on every machine (not `std`)."""
        with self._lock:
            data = c.create_string_buffer(int(self._stats().saved_bytes))
            check(lib.dab_memory_save(self._handle, data, len(data)))
        return data.raw

    def restore(self, saved: bytes) -> None:
        """Continues with a saved memory of the same dimension and at most as many codes as this one has places. `std` is not
        among what was saved: give this memory the same one, or everything looks new."""
        saved = bytes(saved)
        with self._lock:
            check(lib.dab_memory_restore(self._handle, saved, len(saved)))

    def __getstate__(self) -> dict:
        std = self._every_std if self._std is None else self._std
        return {"codes": self.codes, "dim": self.dim, "std": std, "saved": self.save()}

    def __setstate__(self, state: dict) -> None:
        Memory.__init__(self, state["codes"], state["dim"], state["std"])
        self.restore(state["saved"])


class Ellipse:
    """One ellipse around all features that were seen: `observe(x)` is large for directions that are new. One thread at a time."""

    def __init__(self, dim: int, ridge: float = 1.0) -> None:
        self.dim = int(dim)
        bytes_ = lib.dab_ellipse_bytes(self.dim)
        self._storage = np.zeros(max(bytes_, 8) // 8 + 1, np.uint64)
        handle = c.c_void_p()
        check(lib.dab_ellipse_init(self._storage.ctypes.data, self._storage.nbytes, self.dim, ridge, c.byref(handle)), "Ellipse")
        self._handle = handle
        self._x = np.zeros(self.dim, np.float32)
        self._square = c.c_float()

    def observe(self, x: Any, learn: bool = True) -> float:
        """The squared length of `x` in units of what was seen, at least 0; then it is learned, unless `learn` is False."""
        x = np.asarray(x, np.float32)
        if x.shape != (self.dim,):
            raise ValueError(f"the input is {x.shape}, wanted is [{self.dim}]")
        self._x[:] = x
        check(lib.dab_ellipse_observe(self._handle, self._x.ctypes.data, self.dim, int(learn), c.byref(self._square)))
        return self._square.value

    def clear(self) -> None:
        """Forgets everything."""
        check(lib.dab_ellipse_clear(self._handle))


def random_features(x: Any, dim: int, seed: int = 0, scale: float = 1.0) -> np.ndarray:
    """Features of an observation where there is no model: `dim` numbers in (-1, 1), the same for the same seed everywhere."""
    x = floats(x).ravel()
    out = np.empty(dim, np.float32)
    check(lib.dab_random_features(seed, scale, x.ctypes.data, x.size, out.ctypes.data, dim))
    return out


def suggest_std(observations: Any, codes: int, dims: Optional[int] = None) -> np.ndarray:
    """A standard deviation for each value, from observations of a random agent and the number of codes.

    A rate budget: with K codes in d dimensions there are about K^(1/d) codes along each. A code reaches 2 deviations to either
    side before another one is made (`spawn` 1), so the range of each value is divided by 2 K^(1/d). dims: how many dimensions
    the states really have, if that is fewer than the observation's. Warns of values that do not change in the observations: nobody
    can tell how far apart states lie along them.
    """
    rows = np.asarray(observations, np.float64)
    if rows.ndim != 2 or not rows.size:
        raise ValueError(f"the observations are {rows.shape}, wanted are [rows, values]")
    if not np.isfinite(rows).all():
        raise ValueError("an observation is not a finite number")
    if codes < 1:
        raise ValueError(f"codes is {codes}, wanted is a number from 1 on")
    d = dims or rows.shape[1]
    low, high = np.quantile(rows, [0.01, 0.99], axis=0)
    spread = high - low
    constant = np.flatnonzero(spread <= 1e-6 * (1 + np.abs(rows).max(axis=0)))
    if constant.size:
        warnings.warn(
            f"the values {constant.tolist()}, counting from 0, hardly change in these observations, so that any change makes a new code: "
            "give observations in which they do, leave them out, or write their std yourself",
            stacklevel=2,
        )
    spread = np.maximum(spread, 1e-6 * (1 + np.abs(rows).max(axis=0)))
    return (spread / (2.0 * codes ** (1.0 / d))).astype(np.float32)
