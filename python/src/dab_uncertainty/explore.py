"""A bonus of steady size, from uncertainties or from a memory's bonuses."""

from __future__ import annotations

import ctypes as c
from typing import Any, Optional

import numpy as np

from ._library import ExplorationConfig, check, floats, lib

SAVED_BYTES = 40
SCHEDULES = {"constant": 0, "linear": 1, "exponential": 2}


class Exploration:
    """bonus = weight(step) * clip((x - mean) / deviation, ±clip), with the running mean and deviation of what `update` was given.

    weight(step): always `start` (schedule "constant"), on a line from `start` to `end` at step `steps` ("linear"), or
    end + (start - end) exp(-step / steps) ("exponential"). clip: largest bonus before the weight. warmup: until `update` was given
    this many values the bonus is 0. centered: whether the mean is subtracted. For Q-learning it must be: a bonus that is always
    positive makes every state look worth staying in. One thread at a time.
    """

    def __init__(
        self,
        start: float = 1.0,
        end: float = 0.0,
        steps: Optional[int] = None,
        schedule: str = "constant",
        *,
        clip: float = 5.0,
        centered: bool = True,
        warmup: int = 2,
    ) -> None:
        if schedule not in SCHEDULES:
            raise ValueError(f"the schedule is {schedule!r}, allowed are {', '.join(SCHEDULES)}")
        if steps is None and schedule != "constant":
            raise ValueError(f"the schedule {schedule!r} needs `steps`: how long does the weight fall?")
        self._state = (c.c_uint64 * 16)()
        size = c.sizeof(ExplorationConfig)
        config = ExplorationConfig(size, SCHEDULES[schedule], start, end, 1 if steps is None else steps, warmup, clip, centered)
        check(lib.dab_exploration_init(self._state, c.byref(config)), "Exploration")

    def update(self, values: Any) -> None:
        """Teaches the normaliser."""
        u = floats(values).ravel()
        check(lib.dab_exploration_update(self._state, u.ctypes.data, u.size))

    def __call__(self, values: Any, step: int) -> np.ndarray:
        """The bonus of each value at a step of the training. The normaliser learns nothing."""
        u = floats(values)
        bonus = np.empty_like(u)
        check(lib.dab_exploration_compute(self._state, u.ctypes.data, u.size, step, bonus.ctypes.data))
        return bonus

    def save(self) -> bytes:
        """The normaliser as bytes, for a checkpoint."""
        data = c.create_string_buffer(SAVED_BYTES)
        check(lib.dab_exploration_save(self._state, data, SAVED_BYTES))
        return data.raw

    def restore(self, saved: bytes) -> None:
        """Continues with a saved normaliser."""
        check(lib.dab_exploration_restore(self._state, saved, len(saved)))
