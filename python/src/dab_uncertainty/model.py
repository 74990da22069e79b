"""A trained model: how far is an input from the training data?"""

from __future__ import annotations

import ctypes as c
import operator
import os
import threading
from typing import Any, Iterable, Mapping, NamedTuple, Optional, Union

import numpy as np

from ._library import ASSESSMENT, Error, MonitorConfig, Shape, check, check_rows, floats, lib, rows_of

#: What the numbers in `verdict` mean.
VERDICTS = {0: "none", 1: "familiar", 2: "ambiguous", 3: "doubtful", 4: "unfamiliar"}


class Explanation(NamedTuple):
    """Why an input is as far as it is."""

    uncertainty: float
    #: Distance to each code, nats.
    distances: np.ndarray
    #: Weight of each code; their sum is 1.
    assignment: np.ndarray
    #: What each latent dimension adds to the uncertainty, nats.
    dimensions: np.ndarray


class Attribution(NamedTuple):
    """Which sensor? What each input, or each group of inputs, adds."""

    #: Names of the inputs or groups, in the order of the numbers; inputs without a name are "input 0", "input 1", …
    names: "tuple[str, ...]"
    #: How much smaller the uncertainty (nats) is with the input or group at its training mean.
    uncertainty: np.ndarray
    #: The same of the score that p-value and verdict judge.
    score: np.ndarray
    #: The assessment of the input as it is.
    assessment: np.record

    @property
    def ranking(self) -> "list[tuple[str, float]]":
        """Name and what it adds to the score, the largest first."""
        order = np.argsort(-self.score, kind="stable")
        return [(self.names[i], float(self.score[i])) for i in order]


#: dab.h's DAB_NONE: an input that belongs to no group.
_NO_GROUP = 0xFFFFFFFF
#: Statuses that say "there is none".
_NO_MEANS, _NO_NAME, _NO_MONITOR, _NO_BANDS, _TOO_SMALL = -22, -23, -24, -25, -4


class Model:
    """A model file (.dab). Any number of threads may use one model."""

    def __init__(self, path: "str | os.PathLike[str]") -> None:
        self._handle: Optional[c.c_void_p] = None
        handle = c.c_void_p()
        check(lib.dab_model_open(os.fsencode(path), c.byref(handle)), os.fspath(path))
        self._handle = handle
        self.shape = Shape(size=c.sizeof(Shape))
        check(lib.dab_model_shape(handle, c.byref(self.shape)))
        self._threads = threading.local()
        check(lib.dab_self_test(handle, *self._scratch()), os.fspath(path))

    @classmethod
    def load(cls, path: "str | os.PathLike[str]") -> "Model":
        """The same as `Model(path)`."""
        return cls(path)

    @property
    def handle(self) -> c.c_void_p:
        """The `dab_model *`, for own calls of the C library."""
        if self._handle is None:
            raise ValueError("the model is closed")
        return self._handle

    def _scratch(self) -> tuple:
        scratch = getattr(self._threads, "scratch", None)
        if scratch is None:
            scratch = self._threads.scratch = np.empty(lib.dab_scratch_bytes(self.handle) // 4, np.float32)
        return scratch.ctypes.data, scratch.nbytes

    def set_rates(self, doubtful: float, unfamiliar: float) -> None:
        """Other false-alarm rates for the verdicts, 0 < unfamiliar <= doubtful < 1, that the model's held-out inputs can reach.
        While no other thread uses the model."""
        check(lib.dab_set_rates(self.handle, doubtful, unfamiliar))

    def threshold(self, rate: float) -> float:
        """The score that at most the share `rate` of familiar inputs exceeds: of `assess(…).score`, for a monitor."""
        score = c.c_float()
        check(lib.dab_threshold(self.handle, rate, c.byref(score)))
        return score.value

    def assess(self, inputs: Any, out: Optional[np.ndarray] = None) -> np.recarray:
        """One assessment a row: `.uncertainty` (nats), `.p_value`, `.verdict` (1 familiar, 2 ambiguous, 3 doubtful, 4 unfamiliar,
        0 none: `VERDICTS`), `.nearest`, `.nearest_distance`, and `.score`, which p-value and verdict judge: with channels the
        `.unfamiliarity`, beside the `.ambiguity` between `.top_class` and `.runner_up`, else the uncertainty. Rows of
        float32 that lie one after the other are read in place. `out` may be what an earlier call gave for as many rows."""
        inputs = rows_of(inputs, self.shape.inputs, "inputs")
        if out is None:
            out = np.zeros(len(inputs), ASSESSMENT).view(np.recarray)
        elif out.shape != (len(inputs),) or out.dtype.fields != ASSESSMENT.fields:
            raise ValueError(f"out is not what `assess` gave for {len(inputs)} inputs: it has shape {out.shape}")
        elif not (out.flags.c_contiguous and out.flags.writeable):
            raise ValueError("the results of `out` do not lie one after the other, or may not be written: it is a part of an array")
        if len(inputs):
            out["size"][0] = ASSESSMENT.itemsize
            data = (inputs.ctypes.data, *inputs.shape, *self._scratch(), out.ctypes.data)
            check_rows(lib.dab_assess_batch(self.handle, *data), inputs)
        return out

    def assess_taught(self, memory: "Any", inputs: Any) -> np.recarray:
        """`assess` where what was taught to `memory` counts as familiar."""
        return self._with(memory, inputs, lib.dab_assess_taught)

    def teach(self, memory: "Any", inputs: Any) -> np.recarray:
        """Teaches `memory` (of `dim=model.shape.dim`) that the inputs are normal; gives their assessments afterwards."""
        return self._with(memory, inputs, lib.dab_teach)

    def _with(self, memory: "Any", inputs: Any, call: Any) -> np.recarray:
        inputs = rows_of(inputs, self.shape.inputs, "inputs")
        out = np.zeros(len(inputs), ASSESSMENT).view(np.recarray)
        out["size"] = ASSESSMENT.itemsize
        for i, x in enumerate(inputs):
            place = out.ctypes.data + i * ASSESSMENT.itemsize
            check(call(self.handle, memory.handle, x.ctypes.data, x.size, *self._scratch(), place))
        return out

    def predict(self, inputs: Any) -> np.ndarray:
        """What the network predicts, [rows, outputs]: means, or logits."""
        inputs = rows_of(inputs, self.shape.inputs, "inputs")
        return self._predicted(inputs)[0]

    def predict_and_assess(self, inputs: Any) -> "tuple[np.ndarray, np.recarray]":
        """`predict` and `assess` of the same rows, in one pass for each."""
        return self._predicted(rows_of(inputs, self.shape.inputs, "inputs"))

    def _predicted(self, inputs: np.ndarray) -> "tuple[np.ndarray, np.recarray]":
        outputs = np.empty((len(inputs), self.shape.outputs), np.float32)
        out = np.zeros(len(inputs), ASSESSMENT).view(np.recarray)
        if len(inputs):
            out["size"][0] = ASSESSMENT.itemsize
            data = (inputs.ctypes.data, *inputs.shape, outputs.ctypes.data, outputs.shape[1])
            check_rows(lib.dab_predict_batch(self.handle, *data, *self._scratch(), out.ctypes.data), inputs)
        return outputs, out

    def _name(self, call: Any, index: int) -> Optional[str]:
        for room in (64, 1024, 1 << 20):
            name = c.create_string_buffer(room)
            status = call(self.handle, index, name, room)
            if status == _NO_NAME:
                return None
            if status != _TOO_SMALL:
                check(status)
                return name.value.decode()
        return None

    @property
    def input_names(self) -> "Optional[list[str]]":
        """Names of the inputs, if the file has them."""
        names = [self._name(lib.dab_input_name, i) for i in range(self.shape.inputs)]
        return None if None in names else names  # type: ignore[return-value]

    @property
    def output_names(self) -> "Optional[list[str]]":
        """Names of the classes or targets, if the file has them."""
        names = [self._name(lib.dab_output_name, i) for i in range(self.shape.outputs)]
        return None if None in names else names  # type: ignore[return-value]

    def _numbers(self, function: Any, count: int, none: int) -> Optional[np.ndarray]:
        """`count` numbers of the file; None where the status says that there are none."""
        found = np.empty(count, np.float32)
        status = function(self.handle, found.ctypes.data, found.size)
        if status == none:
            return None
        check(status)
        return found

    @property
    def means(self) -> Optional[np.ndarray]:
        """What the inputs are on average in the training data, if the file says so."""
        return self._numbers(lib.dab_model_means, self.shape.inputs, _NO_MEANS)

    @property
    def bands(self) -> Optional[np.ndarray]:
        """Of a regression: what each output's band gains with each nat, in the target's unit, if the file says so. 95 % of
        targets like the training data lie within `bands * uncertainty` of the prediction, on average."""
        return self._numbers(lib.dab_model_bands, self.shape.outputs, _NO_BANDS)

    @property
    def monitor_tick(self) -> Optional[float]:
        """Seconds of a tick of the monitor in the file (`Monitor.of(model)`); None if the file has none."""
        config, seconds = MonitorConfig(size=c.sizeof(MonitorConfig)), c.c_float()
        status = lib.dab_model_monitor(self.handle, c.byref(config), c.byref(seconds))
        if status == _NO_MONITOR:
            return None
        check(status)
        return seconds.value

    def attribute(
        self,
        x: Any,
        groups: "Optional[Mapping[str, Iterable[Union[int, str]]]]" = None,
        means: Any = None,
    ) -> Attribution:
        """Which sensor? How much smaller uncertainty and score of one input are when each of its values is set to its training
        mean, or all values of each group: `groups={"imu": ["gyro_x", "gyro_y"], "battery": [7]}`, by name or by number. The
        broken sensor is the first of `.ranking`. `means` are needed where the file has none (`model.means`)."""
        x = floats(x).ravel()
        names: "tuple[str, ...]" = tuple(self.input_names or (f"input {i}" for i in range(self.shape.inputs)))
        numbers: Optional[np.ndarray] = None
        if groups is not None:
            numbers = np.full(self.shape.inputs, _NO_GROUP, np.uint32)
            for number, (group, members) in enumerate(groups.items()):
                for member in [members] if isinstance(members, (str, int)) else members:
                    index = names.index(member) if member in names else member
                    if isinstance(index, str) or not 0 <= operator.index(index) < self.shape.inputs:
                        raise ValueError(f"group {group!r}: the model has no input {member!r}")
                    if numbers[index] != _NO_GROUP:
                        raise ValueError(f"group {group!r}: input {member!r} is in two groups")
                    numbers[index] = number
            names = tuple(groups)
        if means is not None:
            means = floats(means).ravel()
            if means.size != self.shape.inputs:
                raise ValueError(f"there are {means.size} means, the model takes {self.shape.inputs} inputs")
        uncertainty, score = (np.empty(len(names), np.float32) for _ in range(2))
        one = np.zeros(1, ASSESSMENT).view(np.recarray)
        one["size"] = ASSESSMENT.itemsize
        scratch = np.empty(lib.dab_attribution_bytes(self.handle) // 4, np.float32)
        asked = (None if a is None else a.ctypes.data for a in (means, numbers))
        results = (uncertainty.ctypes.data, score.ctypes.data, len(names), scratch.ctypes.data, scratch.nbytes)
        check(lib.dab_attribute(self.handle, x.ctypes.data, x.size, *asked, *results, one.ctypes.data))
        return Attribution(names, uncertainty, score, one[0])

    def explain(self, x: Any) -> Explanation:
        """Why one input is as far as it is."""
        x = floats(x).ravel()
        codes, dim = self.shape.codes, self.shape.dim
        distances, assignment, dimensions = (np.empty(n, np.float32) for n in (codes, codes, dim))
        one = np.zeros(1, ASSESSMENT)
        one["size"] = ASSESSMENT.itemsize
        memory = (distances.ctypes.data, assignment.ctypes.data, codes, dimensions.ctypes.data, dim)
        check(lib.dab_explain(self.handle, x.ctypes.data, x.size, *memory, *self._scratch(), one.ctypes.data))
        return Explanation(float(one["uncertainty"][0]), distances, assignment, dimensions)

    def encode(self, inputs: Any) -> "tuple[np.ndarray, np.ndarray]":
        """The Gaussian of each input in the latent space: means and standard deviations, [rows, dim] each."""
        inputs = rows_of(inputs, self.shape.inputs, "inputs")
        mean, std = (np.empty((len(inputs), self.shape.dim), np.float32) for _ in range(2))
        for x, m, s in zip(inputs, mean, std):
            places = (m.ctypes.data, s.ctypes.data, m.size)
            check(lib.dab_encode(self.handle, x.ctypes.data, x.size, *places, *self._scratch()))
        return mean, std

    def close(self) -> None:
        """Frees the model; later calls raise ValueError."""
        if self._handle is not None:
            lib.dab_model_close(self._handle)
            self._handle = None

    def __enter__(self) -> "Model":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None) is not None:
            self.close()


__all__ = ["VERDICTS", "Attribution", "Error", "Explanation", "Model"]
