"""From a stream of scores to one decision: may the learned controller drive?"""

from __future__ import annotations

import ctypes as c

from ._library import Error, MonitorConfig, check, lib

STATES = {0: "fallback", 1: "nominal", 2: "stale"}


class Monitor:
    """Distrusts when `enter_votes` of the last `window` inputs are above `enter`, and trusts again when `exit_votes` of them
    are at or below `exit`, not before `min_dwell` ticks. Without an input for `timeout` ticks (0: never) it is stale."""

    def __init__(
        self,
        enter: float,
        exit: "float | None" = None,
        *,
        window: int = 1,
        enter_votes: int = 1,
        exit_votes: "int | None" = None,
        min_dwell: int = 0,
        timeout: int = 0,
    ) -> None:
        self._state = (c.c_uint64 * 24)()
        low, votes = enter if exit is None else exit, window if exit_votes is None else exit_votes
        size = c.sizeof(MonitorConfig)
        config = MonitorConfig(size, enter, low, window, enter_votes, votes, min_dwell, timeout)
        check(lib.dab_monitor_init(self._state, c.byref(config)), "Monitor")

    def observe(self, now: int, score: float) -> str:
        """Takes in a score (`assess(…).score`) of tick `now`; "nominal", "fallback" or "stale". Act only if it is "nominal"."""
        return self._name(lib.dab_monitor_observe(self._state, now & 0xFFFFFFFF, score))

    def poll(self, now: int) -> str:
        """The state at tick `now` without a new input."""
        return self._name(lib.dab_monitor_poll(self._state, now & 0xFFFFFFFF))

    @staticmethod
    def _name(number: int) -> str:
        if number not in STATES:
            raise Error(number)
        return STATES[number]
