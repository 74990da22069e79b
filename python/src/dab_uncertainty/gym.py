"""A Gymnasium wrapper that adds an intrinsic reward for novelty."""

from __future__ import annotations

from typing import Any, Callable, Optional

import gymnasium

from ._novelty import Bonus
from .memory import Memory


class NoveltyWrapper(gymnasium.Wrapper):
    """reward + weight(step) * normalised bonus of the observation that the action led to.

    memory: the memory that learns. weight, end, steps, schedule: of the bonus, as `Exploration`. encoder: from an observation
    (a dict, an image) to a vector of `memory.dim` numbers; without it the observation itself, flattened. learning_starts: steps
    before the first bonus; the memory learns from the first. centered: subtract the running mean of the bonus, for Q-learning;
    the intrinsic reward is then below 0 wherever the bonus is below average. It is relative either way, and does not fade by itself:
    `schedule="linear", steps=N` ends it. episodic: forget at each reset. `training = False` gives the environment's own reward, and learns nothing.

    `info` of each step has `extrinsic_reward`, `intrinsic_reward`, `novelty_bonus` and `novelty_visits`. The last observation of
    an episode is scored like every other; the first one, which no action led to, is not. A normalisation of observations that
    goes on learning (VecNormalize) moves the codes: put this wrapper inside it, on the raw observations.
    """

    def __init__(
        self,
        env: gymnasium.Env,
        memory: Memory,
        weight: float = 0.1,
        *,
        end: float = 0.0,
        steps: Optional[int] = None,
        schedule: str = "constant",
        encoder: Optional[Callable[[Any], Any]] = None,
        learning_starts: int = 0,
        centered: bool = True,
        episodic: bool = False,
    ) -> None:
        super().__init__(env)
        self.novelty = Bonus(memory, weight, end, steps, schedule, encoder, learning_starts, centered)
        self.novelty.check_space(env.observation_space)
        self.episodic = episodic
        self._autoreset = False

    @property
    def training(self) -> bool:
        """Whether the memory learns and the bonus is added."""
        return self.novelty.training

    @training.setter
    def training(self, value: bool) -> None:
        self.novelty.training = bool(value)

    def reset(self, **kwargs: Any) -> Any:
        self._autoreset = False
        if self.episodic and self.training:
            self.novelty.memory.clear()
        return self.env.reset(**kwargs)

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, info = self.env.step(action)
        ended = bool(terminated or truncated)
        # Resets in the same step put the last observation there (before Gymnasium 1.0: final_observation).
        final = next((info[key] for key in ("final_obs", "final_observation") if key in info), None) if ended else None
        if self._autoreset:
            # Gymnasium's next-step autoreset: this observation begins an episode, and no action led to it.
            self._autoreset = False
            if self.episodic and self.training:
                self.novelty.memory.clear()
            scored = (0.0, 0.0, 0.0)
        else:
            scored = self.novelty(observation if final is None else final)
            if final is not None and self.episodic and self.training:
                self.novelty.memory.clear()
        intrinsic, bonus, visits = scored
        info = {**info, "extrinsic_reward": float(reward), "intrinsic_reward": intrinsic}
        info.update(novelty_bonus=bonus, novelty_visits=visits)
        self._autoreset = ended and final is None
        return observation, float(reward) + intrinsic, terminated, truncated, info

    def save(self, path: Any) -> None:
        """Memory, normaliser and steps, for a checkpoint."""
        self.novelty.save(path)

    def load(self, path: Any) -> None:
        """Continues with what `save` wrote. Only load files that you trust: they are pickles."""
        self.novelty.load(path)
