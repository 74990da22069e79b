"""Runs of the contest as Markdown: one main table a set, sentences that name every loss, false alarms.

U is the unfamiliarity (the score that the verdict uses), u the distance alone, A the ambiguity. "best baseline" is the
baseline with the best mean on that very row, so it has had a choice that dab has not. The difference is paired, split by
split; its 95 % interval is Student's. Where it contains 0 the two tie.
"""

import json
import re

import numpy as np
from scipy import stats

# Differences of AUROC that are named one by one where a table has many lines.
NEAR = 0.005
# With more lines than this, a table shows their mean and the worst of them.
MANY = 3


class Results:
    """The runs of one table: lists of (what is known about the run, its metrics.json) by line of the table."""

    def __init__(self, folder, seeds, wanted):
        self.runs = {}
        for path in sorted(folder.glob(f"*/*-of-{seeds}/contest.json")):
            about = json.loads(path.read_text())
            if wanted(about["row"], about["seed"]):
                metrics = json.loads(path.with_name("metrics.json").read_text())
                self.runs.setdefault(about["row"], []).append((about, metrics))

    def every(self):
        return [run for runs in self.runs.values() for run in runs]


def methods(metrics):
    """Scores by name: dab's channels, and the baselines."""
    own = metrics["dab"].get("scores") or [{**metrics["dab"]["report"], "name": "uncertainty"}]
    return {score["name"]: score for score in own}, {score["name"]: score for score in metrics["baselines"]["scores"]}


def collect(runs, pick):
    """One value a run for each method, dab's and the baselines'. NaN where a run has none (no errors)."""
    own, baselines = {}, {}
    for place, (_, metrics) in enumerate(runs):
        for values, found in zip((own, baselines), methods(metrics)):
            for name, score in found.items():
                value = pick(score)
                if value is not None:
                    values.setdefault(name, np.full(len(runs), np.nan))[place] = value
    return own, baselines


def number(value, digits=3):
    """.961 rather than 0.961."""
    text = f"{value:.{digits}f}"
    return text.replace("0.", ".", 1) if text.startswith(("0.", "-0.")) else text


def signed(value):
    return ("−" if value < 0 else "+") + number(abs(value))


def spread(values):
    values = values[~np.isnan(values)]
    return number(values.mean()) + (f" ± {number(values.std(ddof=1))}" if len(values) > 1 else "")


class Difference:
    """A paired difference: larger is better unless it says otherwise."""

    def __init__(self, own, baseline):
        paired = (own - baseline)[~np.isnan(own - baseline)]
        self.count = len(paired)
        self.mean = paired.mean() if self.count else np.nan
        spread = paired.std(ddof=1) if self.count > 1 else np.nan
        self.half = stats.t.ppf(0.975, self.count - 1) * spread / np.sqrt(self.count) if self.count > 1 else np.nan

    @property
    def word(self):
        if self.count < 2:
            return ""
        return "ties" if abs(self.mean) <= self.half else "wins" if self.mean > 0 else "loses"

    def __str__(self):
        if not self.count:
            return "–"
        if self.count < 2:
            return f"{signed(self.mean)} (one split)"
        return f"{signed(self.mean)} [{signed(self.mean - self.half)}, {signed(self.mean + self.half)}] {self.word}"


def best(baselines, larger=True):
    return (max if larger else min)(baselines, key=lambda name: np.nanmean(baselines[name]))


def judged(own):
    return "unfamiliarity" if "unfamiliarity" in own else "uncertainty"


class Line:
    """One line of the main table: a job, dab's score for it, and the best baseline."""

    def __init__(self, name, runs, pick, channel=None):
        self.name = name
        own, baselines = collect(runs, lambda score: pick(score, "auroc"))
        self.known = bool(own) and bool(baselines)
        if not self.known:
            return
        self.channel = channel or judged(own)
        self.known = self.channel in own
        if not self.known:
            return
        self.baseline = best(baselines)
        self.own, self.other = own[self.channel], baselines[self.baseline]
        self.distance = own["uncertainty"]
        self.difference = Difference(self.own, self.other)
        rates = collect(runs, lambda score: pick(score, "fpr95"))
        self.fpr = [np.nanmean(values[who]) for values, who in zip(rates, (self.channel, self.baseline))]
        self.risk = None
        if channel:
            areas = collect(runs, lambda score: (score["selective"] or {}).get("aurc"))
            self.least = best(areas[1], larger=False)
            self.risk = np.nanmean(areas[0][self.channel]), np.nanmean(areas[1][self.least])
        self.all = {**own, **baselines}

    def cells(self):
        risk = "–" if self.risk is None else f"{number(self.risk[0], 4)} / {number(self.risk[1], 4)} {self.least}"
        rates = " / ".join(map(number, self.fpr))
        best_one = f"{spread(self.other)} {self.baseline}"
        return [self.name, spread(self.own), spread(self.distance), best_one, str(self.difference), rates, risk]


def strangers(name, runs, key):
    return Line(name, runs, lambda score, metric: score["ood"][key][metric])


def errors(name, runs):
    """Each score is judged on the errors of the classifier whose it is, so AURC, which counts the errors too, is fairer."""
    return Line(name, runs, lambda score, metric: (score["misclassification"] or {}).get(metric), channel="ambiguity")


def table(head, rows):
    return ["| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows]]


def main_lines(results):
    """The lines of a set's main table, and sentences about those that it leaves out."""
    kinds = results.runs.items()
    if len(kinds) <= MANY:
        sets = lambda runs: list(runs[0][1]["dab"]["report"]["ood"])
        named = lambda row, key: row if key == "strangers" else f"{row}: {key}"
        lines = [strangers(named(row, key), runs, key) for row, runs in kinds for key in sets(runs)]
        lines += [errors(f"{row}: errors, by A", runs) for row, runs in kinds]
        return [line for line in lines if line.known], []
    every = results.every()

    def below(runs):
        own, baselines = collect(runs, lambda score: score["ood"]["strangers"]["auroc"])
        return np.nanmean(own[judged(own)] - baselines["1-NN"])

    apart = {row: below(runs) for row, runs in kinds}
    worst = min(apart, key=apart.get)
    lines = [strangers(f"all {len(kinds)}", every, "strangers"), errors("all: errors, by A", every)]
    lines.append(strangers(f"worst against 1-NN: {worst}", results.runs[worst], "strangers"))
    far = [f"{row} ({signed(value)})" for row, value in sorted(apart.items(), key=lambda item: item[1]) if value < -NEAR]
    near = f"More than {number(NEAR)} below 1-NN, mean of the splits: {len(far)} of {len(apart)} lines"
    return [line for line in lines if line.known], [f"{near} ({', '.join(far)})." if far else f"{near}."]


def wrapped(text, width=120):
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > width:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return lines + [line]


def losses(lines):
    """Every line on which dab loses, in a sentence."""
    judged_lines = [line for line in lines if line.difference.word]
    lost = [line for line in judged_lines if line.difference.word == "loses"]
    if not judged_lines:
        # One split has no interval: what is behind is named all the same.
        lost = [line for line in lines if line.difference.mean < 0]
        opening = f"One split: no interval says what is chance. dab is behind on {len(lost)} of {len(lines)} lines"
    else:
        opening = f"dab loses {len(lost)} of {len(judged_lines)} lines"
    each = (f"{line.name} ({signed(line.difference.mean)} against {line.baseline})" for line in lost)
    return f"{opening}: {'; '.join(each)}." if lost else f"{opening}."


def alarms(results):
    kinds = results.runs.items() if len(results.runs) <= MANY else [("all", results.every())]
    rows = []
    for name, runs in kinds:
        every = [alarm for _, metrics in runs for alarm in metrics["dab"].get("alarms", [])]
        share = lambda verdict, key: 100 * np.mean([alarm[key] for alarm in every if alarm["verdict"] == verdict])
        shown = lambda verdict: f"{share(verdict, 'actual'):.1f} % ({share(verdict, 'nominal'):.3g} %)"
        size = np.mean([about["bytes"] for about, _ in runs]) / 1024
        present = {alarm["verdict"] for alarm in every}
        cells = [shown(verdict) if verdict in present else "–" for verdict in ("doubtful", "unfamiliar", "ambiguous")]
        rows.append([name, *cells, f"{size:.0f}"])
    return table(["test rows called (promised)", "doubtful", "unfamiliar", "ambiguous", "model, KB"], rows)


def splits(results):
    """How many splits there are, in a sentence."""
    counts = sorted({len(runs) for runs in results.runs.values()})
    lines = f" of each of {len(results.runs)} lines" if len(results.runs) > 1 else ""
    if counts == [1]:
        return f"One split{lines}."
    each = f"{counts[0]}" if len(counts) == 1 else f"{counts[0]} to {counts[-1]}"
    return f"Mean ± sd of {each} splits{lines}."


def section(results, details=False):
    """The Markdown of one set."""
    lines, sentences = main_lines(results)
    head = ["AUROC", "U or A", "u alone", "best baseline", "difference, 95 %", "FPR95 dab / it", "AURC A / best"]
    text = [splits(results), "", *table(head, [line.cells() for line in lines]), ""]
    for sentence in [*sentences, losses(lines)]:
        text += wrapped(sentence)
    text += ["", *alarms(results)]
    if details:
        for line in lines:
            for name, values in sorted(line.all.items(), key=lambda item: -np.nanmean(item[1])):
                text.append(f"<!-- {line.name}: {name} {spread(values)} -->")
    return "\n".join(text) + "\n"


# Baselines that somebody might take for everything.
FIXED = ["1-NN", "10-NN", "cosine 1-NN", "cosine 10-NN", "Mahalanobis", "relative Mahalanobis", "ViM", "energy", "MSP"]


def against_fixed(results):
    """Every line against each of some baselines, and how far dab is before or behind each of them over all lines."""
    rows, apart = [], {name: [] for name in FIXED}
    for row, key, found, means in each_line(results):
        for name, mean in means.items():
            apart[name].append(found - mean)
        rows.append(fixed_row(row if key == "strangers" else f"{row}: {key}", found, means))
    return fixed_table(results, rows, apart)


def by_strangers(results):
    """Kinds of strangers, each the mean over all lines that have it, and how far dab is before or behind over the lines' means."""
    kinds, lines = {}, {}
    for row, key, found, means in each_line(results):
        for groups, name in ((kinds, key), (lines, row)):
            groups.setdefault(name, []).append({"dab": found, **means})
    mean = lambda group: {name: np.mean([line[name] for line in group]) for name in group[0]}
    rows = [fixed_row(key, (of := mean(group))["dab"], of) for key, group in sorted(kinds.items())]
    every = [mean(group) for group in lines.values()]
    rows.append(fixed_row("mean", (of := mean(every))["dab"], of))
    return fixed_table(results, rows, {name: [line["dab"] - line[name] for line in every] for name in FIXED})


def each_line(results):
    """(line, strangers, mean AUROC of dab, that of each of the fixed baselines)."""
    for row, runs in sorted(results.runs.items()):
        for key in runs[0][1]["dab"]["report"]["ood"]:
            own, baselines = collect(runs, lambda score: score["ood"][key]["auroc"])
            means = {name: np.nanmean(baselines[name]) for name in FIXED if name in baselines}
            yield row, key, np.nanmean(own[judged(own)]), means


def fixed_row(name, found, means):
    return [name, number(found), *(number(means[name]) if name in means else "–" for name in FIXED)]


def fixed_table(results, rows, apart):
    for title, of in {"dab less it, mean": np.mean, "dab less it, worst": min}.items():
        rows.append([title, "", *(signed(of(apart[name])) if apart[name] else "–" for name in FIXED)])
    return "\n".join([splits(results), "", *table(["AUROC", "dab", *FIXED], rows)]) + "\n"


def overall(sets):
    """Each method's mean AUROC for strangers in every set, and how far it is behind the best one, dab or baseline: on average over
    the sets that it can judge (a regression has no logits), and on the line where it is behind most."""
    found, behind = {}, {}
    for place, results in enumerate(sets.values()):
        for runs in results.runs.values():
            for key in runs[0][1]["dab"]["report"]["ood"]:
                own, baselines = collect(runs, lambda score: score["ood"][key]["auroc"])
                means = {name: np.nanmean(values) for name, values in {"dab": own[judged(own)], **baselines}.items()}
                for name, mean in means.items():
                    for kept, value in ((found, mean), (behind, mean - max(means.values()))):
                        kept.setdefault(name, [[] for _ in sets])[place].append(value)
    averages = lambda places: [np.mean(lines) for lines in places if lines]
    average = {name: np.mean(averages(places)) for name, places in behind.items()}
    rows = []
    for name in sorted(average, key=lambda name: -average[name]):
        # Baselines that judge regressions alone are not comparable.
        if 2 * len(averages(found[name])) <= len(sets):
            continue
        every = sum(behind[name], [])
        near = f"{sum(loss >= -NEAR for loss in every)} of {len(every)}"
        each = [number(np.mean(lines)) if lines else "–" for lines in found[name]]
        rows.append([name, *each, signed(average[name]), signed(min(every)), near])
    head = ["mean AUROC of strangers", *sets, "behind the best, mean", "worst", f"lines within {number(NEAR)}"]
    return "\n".join(table(head, rows)) + "\n"


def short(title, rows, results, keys):
    """A line of the README's table: means alone."""
    runs = results.every()
    found = [strangers(key, runs, key) for key in keys]
    means = lambda pick: " / ".join(number(np.nanmean(pick(line))) for line in found)
    return [title, rows, means(lambda line: line.own), means(lambda line: line.other)]


def fill(path, name, text):
    """Puts text between `<!-- contest NAME -->` and `<!-- end of NAME -->` of a page."""
    page = path.read_text()
    pattern = re.compile(rf"(<!-- contest {re.escape(name)} -->\n).*?(<!-- end of {re.escape(name)} -->)", re.DOTALL)
    changed, count = pattern.subn(lambda found: f"{found[1]}{text}{found[2]}", page)
    if count != 1:
        raise SystemExit(f"{path} has {count} sections `<!-- contest {name} -->` … `<!-- end of {name} -->`, not one")
    path.write_text(changed)
