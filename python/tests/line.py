"""A walk on a line: one step left or right, done at its end."""

import gymnasium
import numpy as np


class Line(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 100, (1,))
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, length=20):
        self.length = length

    def reset(self, seed=None, options=None):
        self.x = 0
        return np.array([self.x], np.float32), {}

    def step(self, action):
        self.x += 1 if action else -1
        return np.array([self.x], np.float32), 1.0, self.x >= self.length, False, {}
