"""The same for the vectorised environments of Stable-Baselines3."""

from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, VecEnvWrapper

from ._novelty import Bonus
from .memory import Memory


class NoveltyVecWrapper(VecEnvWrapper):
    """`NoveltyWrapper` for a VecEnv: one memory for all environments. At the end of an episode the observation that is scored is
    `infos[i]["terminal_observation"]`, and the first one of the next episode is not. Put it inside VecNormalize.

    VecNormalize has a `training` of its own: `training = False` there does not reach this wrapper. Set it here, too, before you
    evaluate; otherwise the memory learns from the evaluation. `evaluate_policy` counts the rewards of a Monitor inside, which are
    the environment's own; a VecMonitor outside counts the bonus."""

    def __init__(
        self,
        venv: VecEnv,
        memory: Memory,
        weight: float = 0.1,
        *,
        end: float = 0.0,
        steps: Optional[int] = None,
        schedule: str = "constant",
        encoder: Optional[Callable[[Any], Any]] = None,
        learning_starts: int = 0,
        centered: bool = True,
    ) -> None:
        super().__init__(venv)
        self.novelty = Bonus(memory, weight, end, steps, schedule, encoder, learning_starts, centered)
        self.novelty.check_space(venv.observation_space)

    @property
    def training(self) -> bool:
        """Whether the memory learns and the bonus is added."""
        return self.novelty.training

    @training.setter
    def training(self, value: bool) -> None:
        self.novelty.training = bool(value)

    def reset(self) -> Any:
        return self.venv.reset()

    def step_wait(self) -> Any:
        observations, rewards, dones, infos = self.venv.step_wait()
        total = np.array(rewards, np.float32)
        for i, info in enumerate(infos):
            if isinstance(observations, dict):
                observation = {key: value[i] for key, value in observations.items()}
            else:
                observation = observations[i]
            if dones[i] and "terminal_observation" in info:
                observation = info["terminal_observation"]
            intrinsic, bonus, visits = self.novelty(observation)
            info.update(extrinsic_reward=float(rewards[i]), intrinsic_reward=intrinsic, novelty_bonus=bonus, novelty_visits=visits)
            total[i] += intrinsic
        return observations, total, dones, infos

    def save(self, path: Any) -> None:
        """Memory, normaliser and steps, for a checkpoint."""
        self.novelty.save(path)

    def load(self, path: Any) -> None:
        """Continues with what `save` wrote. Only load files that you trust: they are pickles."""
        self.novelty.load(path)
