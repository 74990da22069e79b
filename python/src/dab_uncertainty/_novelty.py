"""What both wrappers share: encoder, memory, normaliser, schedule, and what is saved."""

from __future__ import annotations

import pickle
from typing import Any, Callable, Optional

import numpy as np

from .explore import Exploration
from .memory import Memory


class Bonus:
    """From an observation to an intrinsic reward."""

    def __init__(
        self,
        memory: Memory,
        weight: float,
        end: float,
        steps: Optional[int],
        schedule: str,
        encoder: Optional[Callable[[Any], Any]],
        learning_starts: int,
        centered: bool,
    ) -> None:
        if not isinstance(memory, Memory):
            raise TypeError(f"the memory is a {type(memory).__name__}, wanted is a dab_uncertainty.Memory")
        self.memory, self.encoder = memory, encoder
        self.learning_starts, self.steps = learning_starts, 0
        self.exploration = Exploration(weight, end, steps, schedule, centered=centered)
        self.training = True

    def check_space(self, space: Any) -> None:
        """Refuses an environment whose observations the memory cannot take as they are."""
        shape = getattr(space, "shape", None)
        if self.encoder is None and shape is not None and int(np.prod(shape)) != self.memory.dim:
            raise ValueError(
                f"the observations have {int(np.prod(shape))} values, the memory takes {self.memory.dim}: make it with that `dim`, "
                "or give an `encoder`"
            )

    def encode(self, observation: Any) -> np.ndarray:
        found = self.encoder(observation) if self.encoder else observation
        if isinstance(found, (dict, tuple)):
            raise TypeError("the observation is not an array: give an `encoder` that makes a vector of it")
        return np.asarray(found, np.float32).ravel()

    def __call__(self, observation: Any) -> "tuple[float, float, float]":
        """The intrinsic reward, the raw bonus and the visits of one observation that an action led to."""
        x = self.encode(observation)
        if not self.training:
            found = self.memory.assess(x)
            return 0.0, found.bonus, found.visits
        found = self.memory.observe(x)
        self.exploration.update([found.bonus])
        self.steps += 1
        reward = float(self.exploration([found.bonus], self.steps)[0]) if self.steps > self.learning_starts else 0.0
        return reward, found.bonus, found.visits

    def save(self, path: Any) -> None:
        with open(path, "wb") as file:
            pickle.dump({"memory": self.memory, "exploration": self.exploration.save(), "steps": self.steps}, file)

    def load(self, path: Any) -> None:
        with open(path, "rb") as file:
            state = pickle.load(file)
        saved, own = (memory.__getstate__()["std"] for memory in (state["memory"], self.memory))
        if not np.array_equal(np.float32(saved), np.float32(own)):
            raise ValueError(f"the saved memory has std {saved}, this one {own}: make it with the same, or everything looks new")
        self.memory.restore(state["memory"].save())
        self.exploration.restore(state["exploration"])
        self.steps = state["steps"]
