"""examples/python-ctypes/dab.py against the bits in the environment's model: batches, refusals, the bonus."""

import math
import sys

import dab
import numpy as np

model = dab.Model(sys.argv[1])
rows = np.random.default_rng(1).normal(size=(64, model.shape.inputs))
a = model.assess(rows)
one = np.concatenate([model.assess(row) for row in rows])
assert (a["uncertainty"] == one["uncertainty"]).all() and (a["verdict"] == one["verdict"]).all()
assert model.predict(rows).shape == (64, model.shape.outputs)
assert len(model.assess(rows[:0])) == 0
for bad in [rows[:, :-1], rows.reshape(2, 32, -1)]:
    try:
        model.assess(bad)
        raise AssertionError("a wrong shape was taken")
    except ValueError:
        pass
model.set_rates(0.5, 0.25)
strict = model.assess(rows)
assert (strict["verdict"] == np.where(a["p_value"] <= 0.25, 2, np.where(a["p_value"] <= 0.5, 1, 0))).all()
try:
    model.set_rates(0.1, 0.2)
    raise AssertionError("rates in the wrong order were taken")
except dab.Error as error:
    assert error.status == -16, error
rows[3, 1] = math.nan
try:
    model.assess(rows)
    raise AssertionError("a NaN was taken")
except dab.Error as error:
    assert error.status == -11, error

bonus = dab.Exploration(start=1.0, end=0.0, steps=100, schedule="linear")
bonus.update(a["uncertainty"])
first, last = bonus(a["uncertainty"], 0), bonus(a["uncertainty"], 100)
assert first.max() > 0 and (last == 0).all()
again = dab.Exploration(start=1.0, end=0.0, steps=100, schedule="linear")
again.restore(bonus.save())
assert (again(a["uncertainty"], 0) == first).all()
try:
    dab.Model("no such file")
    raise AssertionError("a model from nothing")
except dab.Error as error:
    assert error.status == -30, error
print("all checks hold")
