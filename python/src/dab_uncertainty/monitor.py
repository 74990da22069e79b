"""From a stream of inputs to one decision: may the learned controller drive?"""

from __future__ import annotations

import ctypes as c
import os
import re
from typing import Any, NamedTuple, Optional

import numpy as np

from ._library import ASSESSMENT, Error, MonitorConfig, MonitorEvent, MonitorStatistics, check, floats, lib

STATES = {0: "fallback", 1: "nominal", 2: "stale"}
#: Bits of `why`.
REASONS = {1: "spike", 2: "drift", 4: "stale", 8: "rejected", 16: "starting"}
SAVED_BYTES = 496
_WORDS = 88


def _reasons(bits: int) -> "tuple[str, ...]":
    return tuple(name for bit, name in REASONS.items() if bits & bit)


class Event(NamedTuple):
    """Trust was lost (`why` has the new reasons) or came back (`why` is empty)."""

    number: int
    tick: int
    why: "tuple[str, ...]"
    score: float
    nearest: "int | None"


class Decision(NamedTuple):
    """Who may drive, why not the learned controller, and what the model said of the input."""

    state: str
    why: "tuple[str, ...]"
    #: None if the input was refused.
    assessment: "Optional[np.record]"
    #: What the network predicts; None if the input was refused or the model has no decoder.
    outputs: "Optional[np.ndarray]"

    @property
    def nominal(self) -> bool:
        """Whether the learned controller may drive."""
        return self.state == "nominal"


class Monitor:
    """Distrusts when `enter_votes` of the last `window` inputs are above `enter` (spike), when blocks of inputs are stranger than
    recorded ones for too long (drift), or when inputs are rejected; trusts again when `exit_votes` of the window are at or below
    `exit`, not before `min_dwell` ticks. Without an input for `timeout` ticks (0: never) it is stale. `Monitor.load` reads what
    `dab monitor tune` wrote."""

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
        reject_votes: int = 0,
        drift_block: int = 0,
        drift_alarm: float = 0.0,
        drift_keeps: bool = False,
        drift_levels: Any = (0.0,) * 7,
        drift_p: Any = (1.0,) * 7,
    ) -> None:
        low, votes = enter if exit is None else exit, window if exit_votes is None else exit_votes
        size = c.sizeof(MonitorConfig)
        config = MonitorConfig(size, enter, low, window, enter_votes, votes, min_dwell, timeout, reject_votes, drift_block)
        config.drift_alarm, config.drift_keeps = drift_alarm, int(drift_keeps)
        config.drift_levels, config.drift_p = tuple(drift_levels), tuple(drift_p)
        self._start(config)

    def _start(self, config: MonitorConfig) -> None:
        self._state = (c.c_uint64 * _WORDS)()
        check(lib.dab_monitor_init(self._state, c.byref(config)), "Monitor")

    @classmethod
    def of(cls, model: Any) -> "Monitor":
        """The monitor that was tuned for a model and lies in its file (`dab monitor tune --into`); `model.monitor_tick` has the
        length of its ticks."""
        config = MonitorConfig(size=c.sizeof(MonitorConfig))
        check(lib.dab_model_monitor(model.handle, c.byref(config), None), "the model")
        monitor = cls.__new__(cls)
        monitor._start(config)
        return monitor

    @classmethod
    def load(cls, path: "str | os.PathLike[str]") -> "Monitor":
        """A monitor of a file that `dab monitor tune` wrote (monitor.toml)."""
        with open(path, encoding="utf-8") as file:
            text = file.read()
        section, values = "", {}
        for line in text.splitlines():
            line = line.split("#", 1)[0].strip()
            if line.startswith("["):
                section = line.strip("[] ")
            elif "=" in line:
                key, value = (part.strip() for part in line.split("=", 1))
                numbers = [float(x) for x in re.findall(r"[-+]?[0-9][-+0-9.eE]*", value)]
                values[f"{section}.{key}"] = numbers if value.startswith("[") else (numbers[0] if numbers else value)
        get = lambda key: values[f"monitor.{key}"]
        whole = "window enter_votes exit_votes min_dwell timeout reject_votes drift_block".split()
        try:
            options = {key: int(get(key)) for key in whole}
            options.update({key: get(key) for key in ("drift_alarm", "drift_levels", "drift_p")})
            return cls(get("enter"), get("exit"), drift_keeps=get("drift_keeps") == "true", **options)
        except KeyError as missing:
            raise ValueError(f"{os.fspath(path)} is not a file of `dab monitor tune`: it has no {missing}") from None

    def observe(self, now: int, score: float) -> str:
        """Takes in a score (`assess(…).score`) of tick `now`; "nominal", "fallback" or "stale". Act only if it is "nominal"."""
        return self._name(lib.dab_monitor_observe(self._state, now & 0xFFFFFFFF, score))

    def poll(self, now: int) -> str:
        """The state at tick `now` without a new input."""
        return self._name(lib.dab_monitor_poll(self._state, now & 0xFFFFFFFF))

    @property
    def why(self) -> "tuple[str, ...]":
        """Why the fallback drives; empty while the state is nominal."""
        return _reasons(lib.dab_monitor_why(self._state))

    @property
    def statistics(self) -> MonitorStatistics:
        """What the monitor saw so far: `.inputs`, `.alarms`, `.rejected`, `.nominal_ticks` …"""
        found = MonitorStatistics(size=c.sizeof(MonitorStatistics))
        check(lib.dab_monitor_stats(self._state, c.byref(found)))
        return found

    @property
    def events(self) -> "list[Event]":
        """The last events, the latest first."""
        found = []
        for back in range(8):
            event = MonitorEvent(size=c.sizeof(MonitorEvent))
            check(lib.dab_monitor_event(self._state, back, c.byref(event)))
            if event.number == 0:
                break
            nearest = None if event.nearest == 0xFFFFFFFF else event.nearest
            found.append(Event(event.number, event.tick, _reasons(event.why), event.score, nearest))
        return found

    def reset(self) -> None:
        """Forgets everything but the configuration."""
        check(lib.dab_monitor_reset(self._state))

    def save(self) -> bytes:
        """Everything but the configuration, the same bytes on every machine."""
        saved = c.create_string_buffer(SAVED_BYTES)
        check(lib.dab_monitor_save(self._state, saved, SAVED_BYTES))
        return saved.raw

    def restore(self, saved: bytes) -> None:
        """Continues with what `save` gave for the same configuration."""
        check(lib.dab_monitor_restore(self._state, saved, len(saved)))

    @staticmethod
    def _name(number: int) -> str:
        if number not in STATES:
            raise Error(number)
        return STATES[number]


class Guard:
    """A model and a monitor in one call: what a control loop needs. A refused input (a NaN, a wrong length) is counted, votes for
    the fallback and is never driven on. Without a monitor, the one in the model's file."""

    def __init__(self, model: Any, monitor: "Optional[Monitor]" = None) -> None:
        self.model, self.monitor = model, monitor if monitor is not None else Monitor.of(model)

    def __call__(self, now: int, x: Any) -> Decision:
        """Assesses the input of tick `now`, predicts, and says who may drive. Act only if `.nominal`."""
        x = floats(x).ravel()
        outputs = np.empty(self.model.shape.outputs, np.float32)
        one = np.zeros(1, ASSESSMENT).view(np.recarray)
        one["size"] = ASSESSMENT.itemsize
        places = (x.ctypes.data, x.size, outputs.ctypes.data if outputs.size else None, outputs.size, *self.model._scratch())
        before = self.monitor.statistics.rejected
        call = (self.model.handle, self.monitor._state, now & 0xFFFFFFFF, *places, one.ctypes.data)
        state = Monitor._name(lib.dab_guard(*call))
        if self.monitor.statistics.rejected != before:
            return Decision(state, self.monitor.why, None, None)
        return Decision(state, self.monitor.why, one[0], outputs if outputs.size else None)
