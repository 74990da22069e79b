"""Does a bonus help a deep agent? PPO of Stable-Baselines3 on a MiniGrid task whose layout is drawn anew in every episode.

    python/benchmarks/ppo.py                              every bonus, 3 seeds; writes ppo.json beside this file
    python/benchmarks/ppo.py --write docs/exploration.md  puts the table of ppo.json into the page

Options: --task ID, --steps N, --seeds N, --weight W, --only "none;visits", --out FOLDER. Needs dab_uncertainty, stable-baselines3
and minigrid; runs on one core without a GPU. Nothing was tuned: one weight for both bonuses, the agent's settings from practice.

The agent, its budget and its observation (the 7 x 7 x 3 numbers that the agent sees, flattened) are the same for every bonus. So is
what happens to a bonus: centred, divided by its running deviation, weighted, added to the reward (`dab.Exploration`). "visits" is
`NoveltyVecWrapper` with a memory of a random projection of the observation, whose deviation `suggest_std` gives; "RND" is a network
that learns to predict a random one.
"""

import json
import sys
import time
from pathlib import Path

import dab_uncertainty as dab
import gymnasium
import minigrid  # noqa: F401  (registers the tasks)
import numpy as np
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnvWrapper

HERE = Path(__file__).resolve().parent
TASK, STEPS, ENVS, ROLLOUT = "MiniGrid-DoorKey-6x6-v0", 60_000, 16, 128
BONUSES = ["none", "RND", "visits"]
#: Codes of the memory, numbers of the projection, dimensions that the views are taken to have, and steps of the random agent.
CODES, DIM, DIMS, SAMPLES = 1024, 16, 4, 2000
MARKS = ("<!-- ppo: python/benchmarks/ppo.py --write docs/exploration.md -->", "<!-- end of ppo -->")


class View(gymnasium.ObservationWrapper):
    """What the agent sees, as numbers of about 0 to 1."""

    def __init__(self, env):
        super().__init__(env)
        self.observation_space = gymnasium.spaces.Box(0, 1, (7 * 7 * 3,), np.float32)

    def observation(self, observation):
        return observation["image"].astype(np.float32).ravel() / 10


class Record(VecEnvWrapper):
    """The environment's own rewards: when each episode ended, and whether it reached the goal."""

    def __init__(self, venv):
        super().__init__(venv)
        self.steps, self.episodes, self.gained = 0, [], np.zeros(venv.num_envs)

    def reset(self):
        return self.venv.reset()

    def step_wait(self):
        observations, rewards, dones, infos = self.venv.step_wait()
        self.steps += self.num_envs
        self.gained += rewards
        for i in np.flatnonzero(dones):
            self.episodes.append((self.steps, float(self.gained[i])))
            self.gained[i] = 0
        return observations, rewards, dones, infos


class Rnd(VecEnvWrapper):
    """The error of a network that learns to predict a random network's output, as a bonus."""

    def __init__(self, venv, weight, seed):
        super().__init__(venv)
        torch.manual_seed(seed)
        inputs = venv.observation_space.shape[0]

        def network():
            layers = [torch.nn.Linear(inputs, 64), torch.nn.ReLU(), torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 32)]
            return torch.nn.Sequential(*layers)

        self.target, self.predictor = network(), network()
        self.optimizer = torch.optim.Adam(self.predictor.parameters(), 1e-4)
        self.exploration, self.seen = dab.Exploration(weight, 0.0, 1, "constant", centered=True), []

    def reset(self):
        return self.venv.reset()

    def step_wait(self):
        observations, rewards, dones, infos = self.venv.step_wait()
        led_to = np.array([info["terminal_observation"] if done else o for o, done, info in zip(observations, dones, infos)])
        with torch.no_grad():
            x = torch.from_numpy(led_to)
            error = ((self.predictor(x) - self.target(x)) ** 2).mean(1).numpy()
        self.exploration.update(error)
        self.seen.append(led_to)
        if len(self.seen) == ROLLOUT:
            self.learn()
        return observations, (rewards + self.exploration(error, 0)).astype(np.float32), dones, infos

    def learn(self):
        """One pass over what was seen since the last one."""
        rows = torch.from_numpy(np.concatenate(self.seen))[torch.randperm(ROLLOUT * self.num_envs)]
        for x in rows.split(512):
            loss = ((self.predictor(x) - self.target(x).detach()) ** 2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        self.seen = []


def projection(inputs):
    """The same random directions for every run."""
    return np.random.default_rng(0).normal(0, 1 / np.sqrt(inputs), (DIM, inputs)).astype(np.float32)


def visits(venv, weight, seed):
    """A memory of projected observations; what is the same is told by what a random agent sees in its first steps."""
    directions = projection(venv.observation_space.shape[0])
    random = np.random.default_rng(seed)
    rows, observations = [], venv.reset()
    for _ in range(SAMPLES // venv.num_envs):
        rows.extend(observations @ directions.T)
        observations, *_ = venv.step(random.integers(0, venv.action_space.n, venv.num_envs))
    std = dab.suggest_std(np.array(rows), CODES, DIMS)
    memory = dab.Memory(codes=CODES, dim=DIM, std=std)
    return dab.NoveltyVecWrapper(venv, memory, weight=weight, encoder=lambda x: directions @ x)


def one(task, bonus, seed, steps, weight):
    """One run: what its episodes gained, and how much processor time a step took."""
    torch.set_num_threads(1)

    def make(i):
        def env():
            env = View(gymnasium.make(task))
            env.reset(seed=seed * 1000 + i)
            return env

        return env

    record = Record(DummyVecEnv([make(i) for i in range(ENVS)]))
    start = time.process_time()
    env = {"none": lambda: record, "RND": lambda: Rnd(record, weight, seed), "visits": lambda: visits(record, weight, seed)}[bonus]()
    # The steps of the random agent, from which `visits` takes its deviation, count.
    agent = PPO("MlpPolicy", env, n_steps=ROLLOUT, batch_size=512, n_epochs=4, ent_coef=0.01, gae_lambda=0.95, learning_rate=1e-3,
                seed=seed, device="cpu")
    agent.learn(steps - record.steps)
    seconds = time.process_time() - start
    goals = [(at, gained > 0) for at, gained in record.episodes]
    first = next((at for at, reached in goals if reached), None)
    recent = [np.mean([g for _, g in goals[max(0, i - 99): i + 1]]) for i in range(len(goals))]
    half = next((goals[i][0] for i in range(99, len(goals)) if recent[i] >= 0.5), None)
    last = [g for at, g in goals if at > 0.8 * steps]
    found = dict(task=task, bonus=bonus, seed=seed, steps=steps, weight=weight, first=first, half=half, episodes=len(goals))
    return {**found, "last": float(np.mean(last)) if last else 0.0, "us_per_step": round(1e6 * seconds / steps, 1)}


def table(results):
    """Markdown: of every seed the share of the last fifth's episodes that reach the goal, and the steps until half of them do."""
    lines = ["| bonus | goals in the last fifth, each seed | steps until half of 100 episodes reach the goal | µs a step |"]
    lines.append("|---|---|---|---|")
    for bonus in dict.fromkeys(r["bonus"] for r in results):
        rows = [r for r in results if r["bonus"] == bonus]
        last = ", ".join(f"{r['last']:.2f}" for r in rows)
        half = ", ".join("never" if r["half"] is None else f"{r['half'] / 1000:.0f}k" for r in rows)
        lines.append(f"| {bonus} | {last} | {half} | {np.median([r['us_per_step'] for r in rows]):.0f} |")
    return "\n".join(lines) + "\n"


def main():
    arguments = sys.argv[1:]
    option = lambda name, default: arguments[arguments.index(name) + 1] if name in arguments else default  # noqa: E731
    out = Path(option("--out", HERE)) / "ppo.json"
    if "--write" in arguments:
        page = Path(option("--write", ""))
        before, rest = page.read_text(encoding="utf-8").split(MARKS[0])
        text = table(json.loads(out.read_text()))
        return page.write_text(f"{before}{MARKS[0]}\n{text}{MARKS[1]}{rest.split(MARKS[1])[1]}", encoding="utf-8")
    task, steps, weight = option("--task", TASK), int(option("--steps", STEPS)), float(option("--weight", 0.01))
    only = option("--only", ";".join(BONUSES)).split(";")
    results = json.loads(out.read_text()) if out.exists() else []
    results = [r for r in results if (r["task"], r["steps"], r["weight"]) == (task, steps, weight)]
    for seed in range(int(option("--seeds", 3))):
        for bonus in only:
            # A run that was stopped goes on where it was.
            if any((r["bonus"], r["seed"]) == (bonus, seed) for r in results):
                continue
            results.append(one(task, bonus, seed, steps, weight))
            print(results[-1], flush=True)
            results.sort(key=lambda r: (BONUSES.index(r["bonus"]), r["seed"]))
            out.write_text(json.dumps(results, indent=1) + "\n")
    print(table(results))


if __name__ == "__main__":
    main()
