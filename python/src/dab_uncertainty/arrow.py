"""Scores as columns of Arrow tables: one function for every engine that moves Arrow batches.

    from dab_uncertainty import arrow

    scored = arrow.score(batch, "model.dab")      # the columns of the batch, and the scores behind them

DuckDB, Polars, pyarrow datasets, Spark (`mapInArrow`) and Ray Data can call it on each batch, on as many cores or machines as they
have: docs/at-scale.md has a program for each. The columns are those of `dab score`. Needs pyarrow.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Optional, Sequence, Union

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from .model import VERDICTS, Model

#: What takes the place of a verdict in a row that cannot be read.
INVALID = "invalid"
#: Bits of `flags` (dab.h): what of an assessment is set.
_CALIBRATED, _CHANNELS, _AMBIGUITY = 1, 4, 8

_lock = threading.Lock()
_models: "dict[tuple[str, int, int], Model]" = {}


def _model(model: "Union[Model, str, os.PathLike[str]]") -> Model:
    """The model of a file, read once in each process while the file stays the same."""
    if isinstance(model, Model):
        return model
    path = os.path.abspath(os.fspath(model))
    with _lock:
        try:
            found = os.stat(path)
            key = (path, found.st_mtime_ns, found.st_size)
        except OSError:
            return Model(path)  # says that there is no such file
        if key not in _models:
            for old in [known for known in _models if known[0] == path]:
                del _models[old]
            _models[key] = Model(path)
        return _models[key]


def _table(batch: Any) -> "Union[pa.RecordBatch, pa.Table]":
    if isinstance(batch, (pa.RecordBatch, pa.Table)):
        return batch
    if hasattr(batch, "__arrow_c_stream__"):
        return pa.table(batch)
    if hasattr(batch, "__arrow_c_array__"):
        return pa.record_batch(batch)
    raise TypeError(f"batch is a {type(batch).__name__}, wanted is an Arrow batch or table, or what gives one (a Polars DataFrame)")


def _numbers(column: Any, name: str) -> np.ndarray:
    """A column as float32; what is absent is NaN."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # an older pyarrow
            column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.dictionary_decode(), kind.value_type
    known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean, pa.types.is_decimal)
    if not any(is_known(kind) for is_known in known):
        raise TypeError(f"column {name!r} holds {kind}, which is no number: convert it, or leave it out")
    if pa.types.is_boolean(kind) or pa.types.is_decimal(kind):
        column = pc.cast(column, pa.float64())
    with np.errstate(over="ignore"):
        return column.to_numpy(zero_copy_only=False).astype(np.float32, copy=False)


def _lists(column: Any, name: str, width: int) -> np.ndarray:
    """A column of lists of `width` numbers as [rows, width]; a list that is absent or of another length is NaN."""
    if isinstance(column, pa.ChunkedArray):
        parts = [_lists(chunk, name, width) for chunk in column.chunks]
        return np.concatenate(parts) if parts else np.empty((0, width), np.float32)
    rows = np.full((len(column), width), np.nan, np.float32)
    lengths = pc.fill_null(pc.list_value_length(column), -1).to_numpy(zero_copy_only=False)
    right = lengths == width
    if right.any():
        rows[right] = _numbers(pc.list_flatten(column.filter(pa.array(right))), name).reshape(-1, width)
    return rows


def _inputs(table: Any, model: Model, columns: "Optional[Sequence[str]]") -> "tuple[np.ndarray, list[str]]":
    """The model's inputs, [rows, inputs], and what their columns are called."""
    width = model.shape.inputs
    names = list(columns) if columns is not None else model.input_names
    if names is None:
        raise ValueError(f"the model does not know its inputs by name: give columns=[…], {width} of them in its order, or one of lists")
    for name in names:
        if table.schema.names.count(name) != 1:
            how = "no column is" if name not in table.schema.names else "two columns are"
            raise ValueError(f"{how} called {name!r}; there are {', '.join(table.schema.names)}")
    if len(names) == 1 and width != 1:
        kind = table.schema.field(names[0]).type
        if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            return _lists(table.column(names[0]), names[0], width), names * width
    if len(names) != width:
        raise ValueError(f"columns has {len(names)} names, the model takes {width} inputs")
    rows = np.empty((table.num_rows, width), np.float32)
    for at, name in enumerate(names):
        rows[:, at] = _numbers(table.column(name), name)
    return rows, names


def _has_channels(model: Model) -> bool:
    """Whether the model tells unfamiliar from ambiguous: asked of an input of zeros, so that a batch without rows has the same
    columns as all others."""
    return bool(model.assess(np.zeros(model.shape.inputs, np.float32))["flags"][0] & _CHANNELS)


def _coded(words: "Sequence[str]", which: np.ndarray, absent: np.ndarray) -> pa.Array:
    """A text for each row, of a few."""
    which = np.where(absent, 0, which).astype(np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(which, mask=absent), pa.array(words, pa.string())).dictionary_decode()


def score(
    batch: Any,
    model: "Union[Model, str, os.PathLike[str]]",
    columns: "Optional[Sequence[str]]" = None,
    *,
    append: bool = True,
    outputs: bool = False,
    prefix: str = "",
    skip_bad: bool = False,
) -> "Union[pa.RecordBatch, pa.Table]":
    """The batch (or table) with columns for what the model says of each row.

    model: a file, read once in each process, or a `Model`.
    columns: the columns that hold the inputs, in the model's order; without it, those that the model knows by name. One column of
        lists will do.
    append: False for the new columns alone.
    outputs: also what the network predicts, one column for each output; of a regression with bands also NAME_band, half the width
        of the band of the output NAME.
    prefix: stands before the names of the new columns.
    skip_bad: rows with an input that is absent or not finite get the verdict "invalid" and nothing else, instead of a ValueError.
    """
    model, table = _model(model), _table(batch)
    rows, names = _inputs(table, model, columns)
    bad = ~np.isfinite(rows).all(axis=1)
    if bad.any():
        if not skip_bad:
            at = int(bad.argmax())
            name = names[int((~np.isfinite(rows[at])).argmax())]
            words = f"row {at + 1}, column {name!r}: the value is absent or not a finite 32-bit number"
            raise ValueError(f"{words}: correct it, or give skip_bad=True to mark such rows")
        rows[bad] = 0
    predicted: Optional[np.ndarray] = None
    if outputs and model.shape.outputs:
        predicted, found = model.predict_and_assess(rows)
    else:
        found = model.assess(rows)
    none = np.zeros(len(bad), bool)

    def floats(values: np.ndarray, absent: np.ndarray = none) -> pa.Array:
        mask = bad | absent
        values = np.ascontiguousarray(values)
        return pa.array(values, pa.float32(), mask=mask) if mask.any() else pa.array(values, pa.float32())

    uncalibrated = (found["flags"] & _CALIBRATED) == 0
    verdicts = [*VERDICTS.values(), INVALID]
    new = {
        "uncertainty": floats(found.uncertainty),
        "p_value": floats(found.p_value, uncalibrated),
        "verdict": _coded(verdicts, np.where(bad, len(VERDICTS), found.verdict), uncalibrated & ~bad),
        "nearest": pa.array(found.nearest.astype(np.int32), mask=bad),
    }
    output_names = model.output_names
    if _has_channels(model):
        classes = output_names or [str(i) for i in range(model.shape.outputs)]
        new["unfamiliarity"] = floats(found.unfamiliarity)
        new["ambiguity"] = floats(found.ambiguity, (found["flags"] & _AMBIGUITY) == 0)
        new["ambiguity_p"] = floats(found.ambiguity_p, found.ambiguity_p < 0)
        for name, which in (("class", found.top_class), ("runner_up", found.runner_up)):
            new[name] = _coded(classes or [""], which, bad | (which >= len(classes)))
    if predicted is not None:
        output_names = output_names or [f"output_{i}" for i in range(model.shape.outputs)]
        new.update((name, floats(predicted[:, i])) for i, name in enumerate(output_names))
        widths = model.bands
        if widths is not None:
            # As `dab score`: at most the largest finite number.
            with np.errstate(over="ignore"):
                bands = np.minimum(found.uncertainty[:, None] * widths, np.finfo(np.float32).max)
            new.update((f"{name}_band", floats(bands[:, i])) for i, name in enumerate(output_names))
    made = {prefix + name: column for name, column in new.items()}
    if not append:
        return type(table).from_arrays(list(made.values()), names=list(made))
    for name, column in made.items():
        if name in table.schema.names:
            raise ValueError(f"the batch has a column {name!r} already: give a prefix, as in prefix='dab_'")
        table = table.append_column(name, column)
    return table


__all__ = ["INVALID", "score"]
