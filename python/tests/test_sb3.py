"""The wrapper for Stable-Baselines3. It needs PyTorch, which is large, so it is a file of its own: tests/python --with-sb3."""

import unittest

import dab_uncertainty as dab
import numpy as np
from line import Line
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize


class VectorWrapper(unittest.TestCase):
    def test_terminal_observations_count_and_resets_do_not(self):
        memory = dab.Memory(codes=64, dim=1, std=0.2)
        inner = dab.NoveltyVecWrapper(DummyVecEnv([lambda: Line(3)] * 2), memory, centered=False)
        env = VecNormalize(inner)
        env.reset()
        for _ in range(3):
            _, _, dones, infos = env.step(np.array([1, 1]))
        self.assertTrue(dones.all() and all("intrinsic_reward" in info for info in infos))
        # Positions 1, 2 and the terminal 3, each twice; the reset to 0 is not seen.
        self.assertEqual(memory.visits, 6)
        self.assertEqual(sorted(memory.code(i)[0][0] for i in range(len(memory))), [1, 2, 3])


if __name__ == "__main__":
    unittest.main()
