"""The wrapper for Stable-Baselines3. It needs PyTorch, which is large, so it is a file of its own: tests/python --with-sb3."""

import tempfile
import unittest
from pathlib import Path

import dab_uncertainty as dab
import gymnasium
import numpy as np
from line import Line
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize


class Named(gymnasium.ObservationWrapper):
    """The position in a dict, beside something that is no part of the state."""

    def __init__(self, env):
        super().__init__(env)
        noise = gymnasium.spaces.Box(0, 1, (4,), np.float32)
        self.observation_space = gymnasium.spaces.Dict(place=env.observation_space, noise=noise)

    def observation(self, observation):
        return {"place": observation, "noise": self.observation_space["noise"].sample()}


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

    def test_rewards_are_the_environment_s_own_without_training(self):
        memory = dab.Memory(codes=64, dim=1, std=0.2)
        env = dab.NoveltyVecWrapper(DummyVecEnv([lambda: Line(3)]), memory, weight=1.0, centered=False)
        env.reset()
        _, rewards, _, infos = env.step(np.array([1]))
        self.assertEqual(rewards[0], np.float32(infos[0]["extrinsic_reward"] + infos[0]["intrinsic_reward"]))
        visits, env.training = memory.visits, False
        for _ in range(5):
            _, rewards, _, infos = env.step(np.array([1]))
            self.assertEqual((rewards[0], infos[0]["intrinsic_reward"]), (np.float32(infos[0]["extrinsic_reward"]), 0))
            self.assertGreaterEqual(infos[0]["novelty_bonus"], 0)
        self.assertEqual(memory.visits, visits)

    def test_an_agent_learns_on_dicts_and_goes_on_from_a_checkpoint(self):
        def make():
            venv = DummyVecEnv([lambda: Named(Line(3))] * 2)
            return dab.NoveltyVecWrapper(venv, dab.Memory(codes=64, dim=1, std=0.2), encoder=lambda seen: seen["place"])

        env = make()
        agent = PPO("MultiInputPolicy", VecNormalize(env, norm_obs_keys=["place"]), n_steps=32, batch_size=32, seed=1, device="cpu")
        agent.learn(128)
        self.assertEqual(env.novelty.memory.visits, 128)
        memory = env.novelty.memory
        self.assertTrue(all(memory.code(i)[0][0] % 1 == 0 for i in range(len(memory))), "the noise is no part of a code")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "novelty.pickle"
            env.save(path)
            again = make()
            again.load(path)
        self.assertEqual((again.novelty.steps, again.novelty.memory.save()), (128, memory.save()))
        for one in (env, again):
            one.seed(3)
            one.reset()
        for action in ([1, 0], [1, 1], [0, 1]):
            (_, a, _, _), (_, b, _, _) = (one.step(np.array(action)) for one in (env, again))
            self.assertEqual(a.tolist(), b.tolist())


if __name__ == "__main__":
    unittest.main()
