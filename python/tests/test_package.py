"""The installed package, against a model whose bits the C tests know. DAB_TEST_MODEL names a model file with a calibration table
and a decoder; tests/python sets it."""

import math
import os
import pickle
import struct
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import dab_uncertainty as dab
import numpy as np

MODEL = os.environ.get("DAB_TEST_MODEL", str(Path(__file__).resolve().parents[2] / "examples/motor/model.dab"))


def crc32c(data):
    """CRC-32C, bit by bit."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


def with_monitor(model, floats, numbers):
    """The file of a model with the words of a monitor in it, as docs/format.md has it."""
    words = struct.pack("<18f8I", *floats, *numbers)
    text = " monitor:(enter exit tick alarm levels p:f32 enter_votes exit_votes window reject_votes min_dwell timeout block keeps:u32le)"
    head = list(struct.unpack_from("<8sHH9IQ", model))
    info = head[10]
    head[2], head[3], head[4] = 2, head[3] + len(words), head[4] | 8
    head[9], head[10] = head[9] + len(words), info + len(words)
    for byte in text.encode():
        head[12] = (head[12] ^ byte) * 0x100000001B3 % 2**64
    body = model[64:info] + words + model[info:]
    header = struct.pack("<8sHH9IQ", *head) + struct.pack("<I", crc32c(body))
    return header + struct.pack("<I", crc32c(header)) + body


def with_bands(model, widths):
    """The file of a regression with these widths of its outputs' bands, as docs/format.md has them in the info section."""
    text = " ".join(f"{struct.unpack('<I', struct.pack('<f', width))[0]:08x}" for width in widths)
    # Numbers of entries and of bytes below 128 take one byte each.
    entry = b"".join(bytes([len(string)]) + string.encode() for string in ("output_bands", text))
    head = list(struct.unpack_from("<8sHH9IQ", model))
    info = head[10]
    head[3], head[11] = head[3] + len(entry), head[11] + len(entry)
    body = model[64:info] + bytes([model[info] + 1]) + model[info + 1 :] + entry
    header = struct.pack("<8sHH9IQ", *head) + struct.pack("<I", crc32c(body))
    return header + struct.pack("<I", crc32c(header)) + body


def refused(test, status, words, call, *args, **kwargs):
    """The call raises an Error with this number and these words."""
    with test.assertRaises(dab.Error) as caught:
        call(*args, **kwargs)
    test.assertEqual(caught.exception.status, status)
    test.assertIn(words, str(caught.exception))


class Models(unittest.TestCase):
    def setUp(self):
        self.model = dab.Model(MODEL)
        self.rows = np.random.default_rng(1).normal(size=(64, self.model.shape.inputs)).astype(np.float32)

    def test_a_batch_is_its_rows(self):
        a = self.model.assess(self.rows)
        one = np.concatenate([self.model.assess(row) for row in self.rows])
        self.assertTrue((a.uncertainty == one["uncertainty"]).all() and (a.verdict == one["verdict"]).all())
        self.assertEqual(self.model.predict(self.rows).shape, (64, self.model.shape.outputs))
        self.assertEqual(len(self.model.assess(self.rows[:0])), 0)
        again = self.model.assess(self.rows, out=a)
        self.assertIs(again, a)

    def test_rows_are_read_in_place(self):
        from dab_uncertainty._library import rows_of

        self.assertTrue(np.shares_memory(rows_of(self.rows, self.rows.shape[1], "rows"), self.rows))

    def test_a_batch_is_one_call_and_no_copy(self):
        import tracemalloc
        from unittest import mock

        from dab_uncertainty import model as module

        rows = np.repeat(self.rows, 64, axis=0)
        out = self.model.assess(rows)
        real, calls = module.lib.dab_assess_batch, []
        stand_in = mock.Mock(wraps=module.lib)
        stand_in.dab_assess_batch = lambda *all: calls.append(all) or real(*all)
        tracemalloc.start()
        with mock.patch.object(module, "lib", stand_in):
            self.model.assess(rows, out=out)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        self.assertEqual(len(calls), 1)
        self.assertEqual(calls[0][1:4], (rows.ctypes.data, *rows.shape))
        self.assertLess(peak, rows.nbytes / 8)

    def test_explanations_add_up(self):
        why = self.model.explain(self.rows[0])
        u = self.model.assess(self.rows[0]).uncertainty[0]
        self.assertAlmostEqual(why.dimensions.sum() / u, 1, places=3)
        self.assertAlmostEqual(why.assignment.sum(), 1, places=5)
        mean, std = self.model.encode(self.rows)
        self.assertTrue(mean.shape == std.shape == (64, self.model.shape.dim) and (std > 0).all())

    def test_a_broken_sensor_is_named(self):
        means = self.model.means
        x = means.copy()
        x[7] += 900
        found = self.model.attribute(x)
        self.assertEqual(found.ranking[0][0], self.model.input_names[7])
        changed = x.copy()
        changed[7] = means[7]
        both = self.model.assess(np.stack([x, changed]))
        self.assertEqual(found.score[7], both.score[0] - both.score[1])
        self.assertEqual(found.uncertainty[7], both.uncertainty[0] - both.uncertainty[1])
        groups = {"rest": ["i0", 1], "seven": [7]}
        grouped = self.model.attribute(x, groups=groups, means=means)
        self.assertEqual((grouped.names, grouped.score[1]), (("rest", "seven"), found.score[7]))
        for bad in [{"a": ["none"]}, {"a": [99]}, {"a": [1], "b": ["i1"]}]:
            with self.assertRaises(ValueError):
                self.model.attribute(x, groups=bad)
        with self.assertRaises(ValueError):
            self.model.attribute(x, means=means[1:])

    def test_bands_are_those_of_the_file(self):
        self.assertIsNone(self.model.bands, "the motor's model is older than bands")
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "banded.dab")
            path.write_bytes(with_bands(Path(MODEL).read_bytes(), [0.75]))
            banded = dab.Model(path)
            self.assertEqual(banded.bands.tolist(), [0.75])
            self.assertTrue((banded.assess(self.rows).uncertainty == self.model.assess(self.rows).uncertainty).all())

    def test_a_batch_predicts_and_assesses_in_one_pass(self):
        outputs, a = self.model.predict_and_assess(self.rows)
        self.assertTrue((outputs == self.model.predict(self.rows)).all())
        self.assertTrue((outputs == np.concatenate([self.model.predict(row) for row in self.rows])).all())
        self.assertTrue((a.uncertainty == self.model.assess(self.rows).uncertainty).all())
        self.assertEqual(self.model.output_names, ["speed"])

    def test_threads_share_a_model(self):
        expected = self.model.assess(self.rows).uncertainty
        found = [None] * 8

        def work(i):
            for _ in range(20):
                found[i] = self.model.assess(self.rows).uncertainty

        threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        self.assertTrue(all((f == expected).all() for f in found))

    def test_refusals_have_the_words_of_c(self):
        for bad in [self.rows[:, :-1], self.rows.reshape(2, 32, -1)]:
            with self.assertRaises(ValueError):
                self.model.assess(bad)
        refused(self, -16, "false-alarm rate", self.model.set_rates, 0.1, 0.2)
        broken = self.rows.copy()
        broken[3, 1] = math.nan
        refused(self, -11, "not a finite number", self.model.assess, broken)
        refused(self, -30, "no such file: the file cannot be read", dab.Model, "no such file")
        self.assertGreater(self.model.threshold(0.05), 0)
        self.model.close()
        with self.assertRaises(ValueError):
            self.model.assess(self.rows)

    def test_results_are_written_only_where_there_is_room_for_them(self):
        first = self.model.assess(self.rows)
        room = np.zeros(2 * len(self.rows), first.dtype).view(np.recarray)
        # Behind the pointer of a reversed array there is no room for the other rows; in every second one the rows would be mixed.
        for bad in (room[len(self.rows) - 1 :: -1], room[::2], room[: len(self.rows) - 1], np.zeros(len(self.rows), "V56")):
            with self.assertRaisesRegex(ValueError, "out"):
                self.model.assess(self.rows, out=bad)
        again = self.model.assess(self.rows, out=room[: len(self.rows)])
        self.assertTrue((again == first).all())

    def test_an_error_says_which_row_is_not_finite(self):
        broken = self.rows.copy()
        broken[3, 1] = broken[9, 0] = math.nan
        for call in (self.model.assess, self.model.predict, dab.Memory(codes=4, dim=broken.shape[1], std=1.0).observe):
            refused(self, -11, "row 3, column 1 (counted from 0): a value is not a finite number", call, broken)

    def test_verdicts_have_names(self):
        a = self.model.assess(self.rows)
        strange = a[a.p_value <= 0.01]
        self.assertEqual({dab.VERDICTS[v] for v in strange.verdict}, {"unfamiliar"})

    def test_what_is_taught_is_familiar(self):
        memory = dab.Memory(codes=8, dim=self.model.shape.dim, std=1.0, spawn=5.0)
        far = self.rows[:10] * 50
        before = self.model.assess_taught(memory, far)
        self.assertTrue((before.uncertainty == self.model.assess(far).uncertainty).all())
        self.model.teach(memory, far[:1])
        after = self.model.assess_taught(memory, far)
        self.assertLess(after.uncertainty[0], before.uncertainty[0])
        self.assertTrue((after.uncertainty <= before.uncertainty).all())


class Memories(unittest.TestCase):
    def test_visits_rise_and_the_bonus_falls(self):
        memory = dab.Memory(codes=16, dim=2, std=0.1)
        first = memory.observe([0.3, 0.5])
        self.assertEqual((first.bonus, first.visits, first.spawned), (1.0, 0.0, True))
        for _ in range(99):
            last = memory.observe([0.3, 0.5])
        self.assertTrue(last.bonus < 0.11 and last.visits > 98 and last.nearest == 0 and last.uncertainty < 1e-3)
        self.assertGreater(memory.assess([0.9, 0.5]).bonus, 0.99)
        self.assertEqual((len(memory), memory.visits), (1, 100.0))

    def test_a_batch_is_one_after_the_other(self):
        rows = np.random.default_rng(2).normal(size=(200, 3)).astype(np.float32)
        for std in (0.3, [0.3, 0.2, 0.4]):
            a, b = (dab.Memory(codes=32, dim=3, std=std) for _ in range(2))
            found = a.observe(rows)
            one = [b.observe(x) for x in rows]
            self.assertTrue((found.bonus == np.array([n.bonus for n in one], np.float32)).all())
            self.assertEqual(a.save(), b.save())

    def test_saved_and_pickled_memories_go_on_alike(self):
        a = dab.Memory(codes=32, dim=2, std=[0.1, 0.2], spawn=2.0, keep=0.99)
        a.observe(np.random.default_rng(3).normal(size=(100, 2)))
        b = pickle.loads(pickle.dumps(a))
        self.assertEqual(a.observe([0.1, 0.2]), b.observe([0.1, 0.2]))
        refused(self, -14, "the saved state is absent, damaged or of another configuration", a.restore, b"nothing")

    def test_taught_codes_stay(self):
        memory = dab.Memory(codes=2, dim=1, std=0.1)
        memory.teach([1.0])
        memory.observe([5.0])
        memory.clear()
        self.assertEqual((len(memory), memory.taught), (1, 1))
        mean, std, count = memory.code(0)
        self.assertTrue(mean[0] == 1 and abs(std[0] - 0.1) < 1e-6 and count == 1)
        memory.teach([9.0])
        refused(self, -18, "every place of the memory is taken", memory.teach, [20.0])
        memory.remove(0)
        self.assertEqual(memory.taught, 1)
        refused(self, -8, "out of range", dab.Memory, codes=0, dim=1, std=0.1)
        refused(self, -11, "not a finite number", memory.observe, [math.inf])

    def test_many_are_assessed_as_one_by_one(self):
        rows = np.random.default_rng(5).uniform(size=(50, 2)).astype(np.float32)
        memory = dab.Memory(codes=16, dim=2, std=0.2)
        memory.observe(rows[:25])
        before = memory.save()
        found = memory.assess(rows)
        self.assertEqual([tuple(memory.assess(row))[:5] for row in rows],
                         [(f.bonus, f.visits, f.uncertainty, f.nearest, f.nearest_distance) for f in found])
        self.assertEqual(memory.save(), before)
        wide = memory.assess(rows, std=1.0)
        self.assertEqual([memory.assess(row, std=1.0).visits for row in rows], list(wide.visits))
        self.assertEqual(len(memory.assess(np.zeros((0, 2)))), 0)

    def test_threads_may_share_a_memory(self):
        memory = dab.Memory(codes=2, dim=2, std=0.1)
        memory.observe([[0.0, 0.0], [10.0, 10.0]])
        wrong, interval = [], sys.getswitchinterval()

        def ask(value, code):
            wrong.extend(1 for _ in range(30_000) if memory.assess([value, value]).nearest != code)

        sys.setswitchinterval(1e-6)
        try:
            threads = [threading.Thread(target=ask, args=given) for given in ((0.0, 0), (10.0, 1))]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            sys.setswitchinterval(interval)
        self.assertEqual(len(wrong), 0)

    def test_a_std_is_not_suggested_without_a_word_for_what_never_changes(self):
        rows = np.random.default_rng(6).uniform(size=(500, 3))
        rows[:, 1] = 1.0
        with self.assertWarnsRegex(UserWarning, r"the values \[1\], counting from 0, hardly change"):
            dab.suggest_std(rows, 256)
        for bad in (rows[0], np.zeros((0, 3)), np.full((5, 3), np.nan)):
            with self.assertRaises(ValueError):
                dab.suggest_std(bad, 256)
        with self.assertRaises(ValueError):
            dab.suggest_std(rows[:, [0, 2]], 0)

    def test_ellipse_and_random_features(self):
        ellipse = dab.Ellipse(3)
        self.assertEqual(ellipse.observe([3, 0, 0]), 9)
        self.assertLess(ellipse.observe([3, 0, 0], learn=False), 1)
        ellipse.clear()
        self.assertEqual(ellipse.observe([3, 0, 0]), 9)
        a = dab.random_features(np.ones(10), 8, seed=1)
        self.assertTrue((a == dab.random_features(np.ones(10), 8, seed=1)).all() and (abs(a) < 1).all())

    def test_check_finds_what_is_wrong(self):
        rows = np.random.default_rng(4).uniform(size=(500, 2))
        self.assertEqual(dab.check(rows, std=dab.suggest_std(rows, 256), codes=256), [])
        self.assertIn("one code", " ".join(dab.check(rows, std=100.0)))
        self.assertIn("std` is too small", " ".join(dab.check(rows, std=1e-5, codes=1000)))
        self.assertIn("codes are used", " ".join(dab.check(rows, std=0.01, codes=16)))


    def test_check_refuses_what_it_cannot_check(self):
        rows = np.random.default_rng(4).uniform(size=(500, 2))
        # An empty memory is false in Python: it must not be taken for none.
        with self.assertRaisesRegex(TypeError, "memory is not a function"):
            dab.check(rows, dab.Memory(codes=4, dim=2, std=0.1))
        with self.assertRaisesRegex(ValueError, "wanted is \\[rows, values\\]"):
            dab.check(rows.reshape(-1, 2, 2), std=0.1)

    def test_an_ellipse_takes_whole_inputs(self):
        for bad in ([3.0], 3.0, [[3, 0, 0]]):
            with self.assertRaisesRegex(ValueError, "wanted is \\[3\\]"):
                dab.Ellipse(3).observe(bad)


class Bonuses(unittest.TestCase):
    def test_exploration_centres_and_fades(self):
        values = np.arange(10, dtype=np.float32)
        bonus = dab.Exploration(start=1.0, end=0.0, steps=100, schedule="linear")
        bonus.update(values)
        first, last = bonus(values, 0), bonus(values, 100)
        self.assertTrue(first[0] < 0 < first[-1] and abs(first.mean()) < 1e-6 and (last == 0).all())
        again = dab.Exploration(start=1.0, end=0.0, steps=100, schedule="linear")
        again.restore(bonus.save())
        self.assertTrue((again(values, 0) == first).all())

    def test_a_falling_weight_needs_its_steps(self):
        for schedule in ("linear", "exponential"):
            with self.assertRaisesRegex(ValueError, "needs `steps`"):
                dab.Exploration(1.0, 0.0, schedule=schedule)
        fading = dab.Exploration(1.0, 0.1, 10, "exponential", centered=False)
        fading.update([1, 2, 3])
        self.assertAlmostEqual(float(fading([3], 5)[0] / fading([3], 0)[0]), 0.1 + 0.9 * math.exp(-0.5), places=6)

    def test_a_monitor_earns_trust(self):
        monitor = dab.Monitor(2.0, 1.0, window=3, enter_votes=2, exit_votes=3, timeout=10)
        self.assertEqual([monitor.observe(t, 0.5) for t in range(3)], ["fallback", "fallback", "nominal"])
        self.assertEqual([monitor.observe(t, 9.0) for t in (3, 4)], ["nominal", "fallback"])
        self.assertEqual(monitor.poll(30), "stale")
        refused(self, -8, "Monitor: a configuration value", dab.Monitor, 1.0, 2.0)
        self.assertEqual((monitor.why, monitor.statistics.alarms, monitor.events[0].why), (("stale",), 1, ("stale",)))
        saved = monitor.save()
        monitor.reset()
        self.assertEqual((monitor.why, monitor.statistics.alarms), (("starting",), 0))
        monitor.restore(saved)
        self.assertEqual(monitor.statistics.alarms, 1)

    def test_a_monitor_is_loaded_from_its_file(self):
        text = """[stream]\ntick_seconds = 0.01\n[monitor]\nenter = 5.5  # votes\nexit = 3.6\nwindow = 16\nenter_votes = 1
exit_votes = 8\nmin_dwell = 2\ntimeout = 10\nreject_votes = 0\ndrift_block = 20\ndrift_alarm = 4.0\ndrift_keeps = false
drift_levels = [2.9, 3.0, 3.1, 3.2, 3.3, 3.4, 3.5]\ndrift_p = [0.5, 0.25, 0.1, 0.05, 0.02, 1e-2, 5e-3]\n"""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "monitor.toml"
            path.write_text(text)
            monitor = dab.Monitor.load(path)
            path.write_text("[monitor]\nenter = 1.0\n")
            with self.assertRaisesRegex(ValueError, "is not a file of `dab monitor tune`"):
                dab.Monitor.load(path)
        self.assertEqual([monitor.observe(t, 2.5) for t in range(100)][-1], "nominal")
        self.assertEqual([monitor.observe(t, 4.5) for t in range(100, 200)][-1], "fallback")
        self.assertEqual(monitor.why, ("drift",))

    def test_a_guard_takes_the_monitor_in_the_model_s_file(self):
        self.assertIsNone(dab.Model(MODEL).monitor_tick)
        refused(self, -24, "the model: the artifact has no monitor", dab.Guard, dab.Model(MODEL))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "tuned.dab"
            # enter, exit, tick, alarm, levels, p; votes, window and the rest: one vote of 16, no drift channel.
            floats = (1e15, 1e15, 0.01, 0.0, *[0.0] * 7, *[1.0] * 7)
            path.write_bytes(with_monitor(Path(MODEL).read_bytes(), floats, (16, 1, 16, 0, 0, 10, 0, 0)))
            model = dab.Model(path)
            guard = dab.Guard(model)
            x = np.zeros(model.shape.inputs, np.float32)
            self.assertTrue(guard(0, x).nominal)
            self.assertEqual((guard.monitor.poll(10), guard.monitor.poll(11)), ("nominal", "stale"))
            self.assertAlmostEqual(model.monitor_tick, 0.01, 9)
            path.write_bytes(with_monitor(Path(MODEL).read_bytes(), floats, (17, 1, 16, 0, 0, 10, 0, 0)))
            refused(self, -126, "a number of the artifact's monitor is out of range", dab.Model, path)

    def test_a_guard_never_drives_on_a_refused_input(self):
        model = dab.Model(MODEL)
        guard = dab.Guard(model, dab.Monitor(1e30, window=16, enter_votes=16, exit_votes=1))
        x = np.zeros(model.shape.inputs, np.float32)
        self.assertTrue(guard(0, x).nominal)
        bad = x.copy()
        bad[0] = np.nan
        refusal = guard(1, bad)
        self.assertEqual((refusal.state, refusal.why, refusal.assessment), ("fallback", ("rejected",), None))
        self.assertFalse(guard(2, x[:-1]).nominal)
        nominal = sum(guard(t, bad if t % 2 else x).nominal for t in range(3, 1003))
        self.assertLessEqual(nominal, 4)
        self.assertEqual((guard.monitor.statistics.rejected, guard.monitor.statistics.alarms), (502, 1))


class Fits(unittest.TestCase):
    """`fit` with a command that only says what `dab fit` would say."""

    def fit(self, script, **given):
        with tempfile.TemporaryDirectory() as folder:
            command = Path(folder) / "dab"
            command.write_text("#!/bin/sh\n" + script)
            command.chmod(0o755)
            out = Path(folder) / "out"
            out.mkdir()
            (out / "model.dab").write_bytes(Path(MODEL).read_bytes())
            with dab.fit(np.zeros((4, 2)), command=str(command), out=out, **given) as model:
                return model.shape.inputs

    @unittest.skipIf(os.name == "nt", "the command is a shell script")
    def test_warnings_of_the_command_are_warnings(self):
        with self.assertWarnsRegex(UserWarning, "THE MODEL PREDICTS NOTHING"):
            self.fit("echo 'dab: THE MODEL PREDICTS NOTHING' >&2", labels=[0, 1, 0, 1])
        with self.assertRaisesRegex(RuntimeError, "one class only"):
            self.fit("echo 'dab: one class only' >&2; exit 1", labels=[0, 0, 0, 0])

    @unittest.skipIf(os.name == "nt", "the command is a shell script")
    def test_words_that_are_objects_are_labels(self):
        words = np.array(["cat", "dog", "cat", "dog"], object)
        # The header of labels.npy names the type of the values.
        script = 'while [ "$1" != --labels ]; do shift; done; head -c 80 "$2" | grep -q "<U3" || { echo "not text" >&2; exit 1; }'
        self.assertGreater(self.fit(script, labels=words), 0)


class Wheels(unittest.TestCase):
    def test_the_extras_of_pyproject_can_be_installed(self):
        try:
            found = __import__("importlib.metadata").metadata.metadata("dab-uncertainty")
        except Exception:
            self.skipTest("the package is not installed from a wheel")
        self.assertEqual(set(found.get_all("Provides-Extra")), {"arrow", "gym", "sb3"})


@unittest.skipUnless(__import__("importlib").util.find_spec("gymnasium"), "gymnasium is not installed")
class Wrappers(unittest.TestCase):
    def env(self):
        from line import Line

        return Line()

    def test_rewards_are_in_info(self):
        memory = dab.Memory(codes=64, dim=1, std=0.2)
        env = dab.NoveltyWrapper(self.env(), memory, weight=0.5, learning_starts=3, centered=False)
        env.reset()
        rewards = [env.step(1) for _ in range(20)]
        for i, (_, reward, ended, _, info) in enumerate(rewards):
            self.assertAlmostEqual(reward, info["extrinsic_reward"] + info["intrinsic_reward"], places=6)
            self.assertEqual(info["intrinsic_reward"] == 0, i < 3, i)
            self.assertEqual(ended, i == 19)
        env.step(1)  # next-step autoreset: neither scored nor learned
        self.assertEqual(memory.visits, 20)
        env.reset()
        env.training = False
        _, reward, *_ = env.step(1)
        self.assertEqual((reward, memory.visits), (1.0, 20))
        path = os.path.join(__import__("tempfile").mkdtemp(), "novelty")
        env.save(path)
        other = dab.NoveltyWrapper(self.env(), dab.Memory(codes=64, dim=1, std=0.2))
        other.load(path)
        self.assertEqual((other.novelty.memory.visits, other.novelty.steps), (20, 20))
        wider = dab.NoveltyWrapper(self.env(), dab.Memory(codes=64, dim=1, std=3.0))
        with self.assertRaisesRegex(ValueError, "the saved memory has std 0.2, this one 3.0"):
            wider.load(path)

    def test_an_environment_that_does_not_fit_is_refused_at_once(self):
        with self.assertRaisesRegex(ValueError, "the observations have 1 values, the memory takes 2"):
            dab.NoveltyWrapper(self.env(), dab.Memory(codes=4, dim=2, std=0.2))
        with self.assertRaisesRegex(TypeError, "the memory is a NoneType"):
            dab.NoveltyWrapper(self.env(), None)
        dab.NoveltyWrapper(self.env(), dab.Memory(codes=4, dim=2, std=0.2), encoder=lambda seen: [seen[0], 0.0])

    def test_a_reset_in_the_same_step_is_not_scored(self):
        import gymnasium

        class SameStep(gymnasium.Wrapper):
            """Resets in the step that ends an episode, as Gymnasium's AutoResetWrapper did before 1.0."""

            key = "final_observation"

            def step(self, action):
                observation, reward, terminated, truncated, info = self.env.step(action)
                if terminated or truncated:
                    info = {**info, self.key: observation}
                    observation, _ = self.env.reset()
                return observation, reward, terminated, truncated, info

        for key in ("final_observation", "final_obs"):
            memory = dab.Memory(codes=64, dim=1, std=0.2)
            inner = SameStep(type(self.env())(3))
            inner.key = key
            env = dab.NoveltyWrapper(inner, memory, centered=False)
            env.reset()
            for _ in range(6):
                env.step(1)
            # Two episodes over 1, 2 and the terminal 3; the reset to 0 is not seen.
            self.assertEqual(memory.visits, 6)
            self.assertEqual(sorted(memory.code(i)[0][0] for i in range(len(memory))), [1, 2, 3])

    def test_other_observations_need_an_encoder(self):
        memory = dab.Memory(codes=4, dim=1, std=0.2)
        env = dab.NoveltyWrapper(self.env(), memory, encoder=lambda o: {"x": o})
        env.reset()
        with self.assertRaisesRegex(TypeError, "give an `encoder`"):
            env.step(1)


if __name__ == "__main__":
    unittest.main()
