"""`dab_uncertainty.arrow.score` alone, and inside the engines that docs/at-scale.md names. An engine that is not installed is
skipped by name. DAB_TEST_MODEL names a model file, DAB_TEST_CHANNELS one with channels; tests/python sets them."""

import os
import tempfile
import unittest
from functools import partial
from pathlib import Path

import numpy as np

import dab_uncertainty as dab

from test_package import with_bands

try:
    import pyarrow as pa
    import pyarrow.dataset
    import pyarrow.parquet
except ImportError as error:  # pragma: no cover
    raise unittest.SkipTest("pyarrow is not installed") from error

ROOT = Path(__file__).resolve().parents[2]
MODEL = os.environ.get("DAB_TEST_MODEL", str(ROOT / "examples/motor/model.dab"))
CHANNELS = os.environ.get("DAB_TEST_CHANNELS", str(ROOT / "tests/same-bits/models/views.dab"))


def engine(name):
    try:
        return __import__(name)
    except ImportError:
        raise unittest.SkipTest(f"{name} is not installed") from None


class Arrow(unittest.TestCase):
    def setUp(self):
        self.model = dab.Model(MODEL)
        self.width = self.model.shape.inputs
        self.rows = np.random.default_rng(2).normal(size=(1000, self.width)).astype(np.float32)
        self.names = [f"x{i}" for i in range(self.width)]
        # Not in the model's order, and not alone.
        columns = {name: self.rows[:, i] for i, name in reversed(list(enumerate(self.names)))}
        self.table = pa.table({"machine": [f"m{i}" for i in range(1000)], **columns})
        self.found = self.model.assess(self.rows)
        self.score = partial(dab.arrow.score, model=MODEL, columns=self.names)

    def same(self, table):
        self.assertTrue((np.asarray(table["uncertainty"]) == self.found.uncertainty).all())
        self.assertTrue((np.asarray(table["p_value"]) == self.found.p_value).all())
        words = [dab.model.VERDICTS[v] for v in self.found.verdict]
        self.assertEqual(list(table["verdict"].to_pylist()), words)

    def test_columns_are_appended(self):
        scored = self.score(self.table)
        self.assertEqual(scored.schema.names[: self.width + 1], self.table.schema.names)
        self.same(scored)
        alone = self.score(self.table.to_batches()[0], append=False, outputs=True, prefix="dab_")
        self.assertIsInstance(alone, pa.RecordBatch)
        self.assertEqual(alone.schema.names[:4], ["dab_uncertainty", "dab_p_value", "dab_verdict", "dab_nearest"])
        self.assertEqual(alone.num_columns, 4 + self.model.shape.outputs)
        with self.assertRaisesRegex(ValueError, "already"):
            self.score(scored)
        self.assertEqual(self.score(self.table.slice(0, 0)).schema, scored.schema)

    def test_outputs_of_a_regression_have_bands_behind_them(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "banded.dab")
            path.write_bytes(with_bands(Path(MODEL).read_bytes(), [0.75]))
            rows = self.table.set_column(1, self.names[-1], pa.array([None, *self.rows[1:, -1]], pa.float32()))
            scored = dab.arrow.score(rows, path, self.names, append=False, outputs=True, skip_bad=True)
        self.assertEqual(scored.schema.names[-2:], ["speed", "speed_band"])
        expected = np.float32(0.75) * self.found.uncertainty[1:]
        self.assertTrue((scored["speed_band"].combine_chunks()[1:].to_numpy() == expected).all())
        self.assertEqual([scored[name][0].as_py() for name in ("speed", "speed_band")], [None, None])

    def test_a_batch_without_rows_has_the_columns_of_all_others(self):
        # Spark and Polars ask it for the columns before they run.
        for model, last in ((self.model, "nearest"), (dab.Model(CHANNELS), "runner_up")):
            rows = self.rows[:, : model.shape.inputs]
            columns = {f"x{i}": rows[:, i] for i in range(model.shape.inputs)}
            lists = {"all": pa.array(list(rows), pa.list_(pa.float32()))}
            for table, names in ((pa.table(columns), list(columns)), (pa.table(lists), ["all"])):
                scored = dab.arrow.score(table, model, names)
                self.assertEqual(scored.schema.names[-1], last)
                empty = dab.arrow.score(table.schema.empty_table(), model, names)
                self.assertEqual((empty.schema, empty.num_rows), (scored.schema, 0))
                batch = pa.RecordBatch.from_pylist([], schema=table.schema)
                self.assertEqual(dab.arrow.score(batch, model, names).schema, scored.schema)

    def test_other_numbers_and_lists_are_inputs(self):
        wide = self.table.cast(pa.schema([("machine", pa.string()), *((n, pa.float64()) for n in self.table.schema.names[1:])]))
        self.same(self.score(wide))
        flat = pa.array(self.rows.ravel())
        for lists in (
            pa.FixedSizeListArray.from_arrays(flat, self.width),
            pa.array(list(self.rows), pa.list_(pa.float32())),
            pa.array(list(self.rows), pa.large_list(pa.float64())),
        ):
            table = pa.table({"machine": self.table["machine"], "features": lists})
            self.same(dab.arrow.score(table, self.model, ["features"]))
            self.same(dab.arrow.score(pa.concat_tables([table[:300], table[300:]]), self.model, ["features"]))
        with self.assertRaisesRegex(ValueError, "no column is called 'y'"):
            self.score(self.table, columns=["y"] * self.width)
        with self.assertRaisesRegex(TypeError, "'machine' holds string"):
            self.score(self.table, columns=["machine", *self.names[1:]])
        with self.assertRaisesRegex(ValueError, "by name|no column is called"):
            dab.arrow.score(self.table.select(["machine"]), self.model)

    def test_bad_rows_are_named_or_marked(self):
        values = self.table["x3"].to_pylist()
        values[7], values[9] = None, float("inf")
        at = self.table.schema.names.index("x3")
        table = self.table.set_column(at, "x3", pa.array(values, pa.float32()))
        with self.assertRaisesRegex(ValueError, "row 8, column 'x3'.*skip_bad"):
            self.score(table)
        scored = self.score(table, skip_bad=True)
        self.assertEqual([i for i, v in enumerate(scored["verdict"].to_pylist()) if v == "invalid"], [7, 9])
        self.assertEqual([i for i, u in enumerate(scored["uncertainty"].to_pylist()) if u is None], [7, 9])

    def test_inside_pyarrow_datasets(self):
        with tempfile.TemporaryDirectory() as folder:
            for part in range(4):
                pa.parquet.write_table(self.table[250 * part : 250 * (part + 1)], f"{folder}/part-{part}.parquet")
            batches = pa.dataset.dataset(folder).scanner(batch_size=100).to_batches()
            self.same(pa.Table.from_batches([self.score(batch) for batch in batches]))

    def test_inside_polars(self):
        pl = engine("polars")
        fleet = pl.from_arrow(self.table).lazy()

        def score(frame):
            return pl.from_arrow(self.score(frame))

        columns = score(fleet.head(0).collect()).schema
        self.same(fleet.map_batches(score, schema=columns).collect().to_arrow())

    def test_inside_duckdb(self):
        duckdb = engine("duckdb")
        names = self.names

        def uncertainty(*columns):
            batch = pa.table(dict(zip(names, columns)))
            return self.score(batch, append=False)["uncertainty"]

        with duckdb.connect() as db:
            db.create_function("uncertainty", uncertainty, None, "FLOAT", type="arrow")
            db.register("fleet", self.table)
            rows = db.sql(f"SELECT uncertainty({', '.join(names)}) AS u FROM fleet").fetchnumpy()["u"]
        self.assertTrue((np.asarray(rows) == self.found.uncertainty).all())


if __name__ == "__main__":
    unittest.main()
