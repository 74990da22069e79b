"""How do I know that the bonus is computed correctly? `check` runs a memory through what must hold."""

from __future__ import annotations

from typing import Any, Callable, Optional

import numpy as np

from .memory import Memory


def check(observations: Any, memory: Optional[Callable[[], Memory]] = None, *, std: Any = None, codes: int = 256) -> "list[str]":
    """Says what is wrong with a bonus for these observations (rows of a random agent, encoded as the memory sees them). An empty
    list: visits rise, the bonus falls, a new state is above a seen one, the codes suffice, and they tell states apart.

    memory: a function that makes the memory that you use, as in `lambda: Memory(…)`; without it one of `codes` codes and `std`.
    Only rows and memory are looked at: give rows that went through your encoder. What an environment or wrapper does is not seen.
    """
    if memory is not None and not callable(memory):
        raise TypeError("memory is not a function: give one that makes a new memory, as in memory=lambda: Memory(…)")
    rows = np.asarray(observations, np.float32)
    if rows.ndim != 2:
        raise ValueError(f"observations are {rows.shape}, wanted is [rows, values]: encode or flatten each one first")
    if len(rows) < 20:
        return [f"there are {len(rows)} observations: give at least 20, of a random agent"]
    if not np.isfinite(rows).all():
        return ["an observation has a value that is not finite: encode or clip it first"]
    make = memory if memory is not None else (lambda: Memory(codes=codes, dim=rows.shape[1], std=0.1 if std is None else std))
    wrong = []
    one = make()
    seen = [one.observe(rows[0]) for _ in range(50)]
    if any(b.visits < a.visits for a, b in zip(seen, seen[1:])):
        wrong.append("visits of a repeated observation do not rise: is `keep` below 1, or the observation noisy?")
    if any(b.bonus > a.bonus for a, b in zip(seen, seen[1:])):
        wrong.append("the bonus of a repeated observation does not fall")
    spread = rows.std(axis=0)
    far = rows[0] + 10 * np.where(spread > 0, spread, 1)
    if one.assess(far).bonus <= one.assess(rows[0]).bonus:
        wrong.append("an observation ten deviations away has no larger bonus than one that was seen 50 times: `std` is too large")
    all_ = make()
    half = len(rows) // 2
    found = [all_.observe(x) for x in rows]
    spawned = sum(n.spawned for n in found)
    if spawned <= 1:
        wrong.append("all observations are one code: `std` or `spawn` is too large, or the encoder gives a constant")
    if sum(n.spawned for n in found[half:]) > 0.9 * (len(rows) - half):
        wrong.append("nearly every observation is a new code: `std` is too small (or a value is noise); nothing is ever seen twice")
    if len(all_) >= all_.codes and spawned >= all_.codes:
        wrong.append(f"all {all_.codes} codes are used after {len(rows)} steps: take more codes or a larger `std`")
    return wrong
