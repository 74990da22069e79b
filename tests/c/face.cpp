// dab.hpp: the same bits as dab.h, without exceptions or RTTI.
#include "dab.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <utility>
#include <vector>

#include "cases.h"

namespace {
int failures = 0;

void check(bool holds, const char *what) {
  if (!holds) {
    std::printf("does not hold: %s\n", what);
    ++failures;
  }
}

std::uint32_t bits(float x) {
  std::uint32_t u;
  std::memcpy(&u, &x, sizeof u);
  return u;
}

float uncertainty(const model_case &m) {
  float u;
  std::memcpy(&u, &m.assessment[0], sizeof u);
  return u;
}

void answers(const model_case &m) {
  dab::model<> model;
  check(model.init(m.artifact, m.bytes - 1).number() == DAB_ERR_TRUNCATED, "a cut artifact");
  check(model.init(m.artifact, m.bytes).ok(), "init");
  std::vector<float> scratch(model.scratch_floats()), outputs(m.outputs), distances(m.codes), weights(m.codes);
  std::vector<float> dimensions(m.dim);
  std::vector<dab::assessment> batch(m.rows);
  check(batch[0].verdict() == dab::verdict::none, "no verdict before a call");
  check(model.self_test(scratch).ok(), "self-test");
  const auto shape = model.shape();
  check(shape.ok() && shape->inputs == m.inputs, "shape");
  for (std::uint32_t row = 0; row < m.rows; ++row) {
    const dab::span<const float> input(m.input + row * m.inputs, m.inputs);
    const auto a = model.assess(input, scratch);
    check(a.ok() && a->verdict() == static_cast<dab::verdict>(m.assessment[WORDS * row + 2]), "verdict");
    check(a.ok() && bits(a->uncertainty) == m.assessment[WORDS * row], "assess");
    const auto p = model.predict(input, outputs, scratch);
    check(p.ok() && bits(p->uncertainty) == m.assessment[WORDS * row], "predict");
    const auto e = model.explain(input, distances, weights, dimensions, scratch);
    check(e.ok() && bits(e->uncertainty) == m.assessment[WORDS * row], "explain");
  }
  check(model.assess_batch({m.input, m.rows * m.inputs}, scratch, batch).ok(), "batch");
  check(bits(batch.back().uncertainty) == m.assessment[WORDS * (m.rows - 1)], "the last of the batch");
  std::vector<float> every(m.rows * m.outputs), adds(m.inputs), wide(model.attribution_floats()), means(m.inputs);
  check(model.predict_batch({m.input, m.rows * m.inputs}, every, scratch, batch).ok(), "predict a batch");
  check(bits(batch.back().uncertainty) == m.assessment[WORDS * (m.rows - 1)], "the last of the predicted");
  // A refusal that C never sees: one number is missing.
  if (m.rows * m.inputs % batch.size() == 0 && batch.size() > 1) {
    check(!model.assess_batch({m.input, m.rows * m.inputs - 1}, scratch, batch).ok(), "a number is missing");
    check(batch.back().verdict() == dab::verdict::none && batch.front().score > 1e38f, "no verdict stays behind");
  }
  const dab::span<const float> first(m.input, m.inputs);
  const auto attributed = model.attribute(first, adds, wide, {}, means);
  const auto without = model.assess_without(first, 0, wide, {}, means);
  check(attributed.ok() && without.ok() && bits(attributed->score - without->score) == bits(adds[0]), "which sensor");
  check(model.attribute(first, adds, wide, {}, {means.data(), 1}).status().number() ==
            (m.inputs == 1 ? DAB_OK : DAB_ERR_LENGTH), "too few means");
  dab::model<> banded;
  std::array<float, 1> band{};
  check(banded.init(BANDED[0].artifact, BANDED[0].bytes).ok() && banded.bands(band).ok() && band[0] == 0.75f, "a band");
  check(model.bands(every).number() == (every.size() == m.outputs ? DAB_ERR_NO_BANDS : DAB_ERR_OUTPUT_LENGTH), "no band");
  std::array<char, 40> name{};
  const bool named = model.input_name(0, name).ok();
  check(named == (name[0] != 0) && !model.output_name(99, name).ok(), "names");
  if (m.dim == 3) {
    dab::memory<4, 3> beside;
    std::array<float, 3> mean{}, std{};
    check(model.encode(first, mean, std, scratch).ok() && std[0] > 0, "encode");
    check(model.encode(first, mean, {std.data(), 2}, scratch).number() == DAB_ERR_OUTPUT_LENGTH, "too few deviations");
    check(beside.init(1).ok() && model.assess_taught(beside, first, scratch)->uncertainty == uncertainty(m), "not taught");
    check(model.teach(beside, first, scratch).ok() && beside.statistics()->taught == 1, "teach");
    check(model.assess_taught(beside, first, scratch)->uncertainty <= uncertainty(m), "taught");
    std::vector<float> broken(m.input, m.input + m.inputs);
    broken[0] = 1e30f;
    const auto no = model.teach(beside, broken, scratch);
    check(no.status().number() == DAB_ERR_SATURATED && no->verdict() == dab::verdict::none, "a broken sensor");
  }
  const auto refused = model.assess({m.input, m.inputs + 1}, scratch);
  check(!refused.ok() && refused.status().number() == DAB_ERR_LENGTH && refused.what()[0] != 0, "a refusal");
  check(refused->verdict() == dab::verdict::none && refused->score > 1e38f, "a refusal trusts nothing");
  dab_monitor_config config{};
  config.enter = config.exit = 3e38f;
  config.window = config.enter_votes = config.exit_votes = 1;
  dab::guard guard(model);
  check(guard.assess(0, {m.input, m.inputs}, scratch).state == dab::state::not_initialized, "a guard before its start");
  check(guard.init().number() == DAB_ERR_NO_MONITOR && !model.monitor_tick().ok(), "a model without a monitor");
  check(guard.init(config).ok(), "a guard");
  dab::model<> tuned;
  check(tuned.init(TUNED[0].artifact, TUNED[0].bytes).ok() && tuned.monitor_config()->window == 16, "a model with a monitor");
  check(*tuned.monitor_tick() == 0.01f && dab::guard(tuned).init().ok(), "its guard");
  const auto d = guard.predict(1, {m.input, m.inputs}, outputs, scratch);
  check(d.nominal() && bits(d.assessment.uncertainty) == m.assessment[0], "who drives");
  const auto r = guard.assess(2, {m.input, m.inputs + 1}, scratch);
  check(!r.nominal() && r.assessment.verdict() == dab::verdict::none, "a refusal is not driven on");
  check(guard.monitor().why() == DAB_WHY_REJECTED && guard.monitor().event(0)->why == DAB_WHY_REJECTED, "why");
  std::array<unsigned char, DAB_MONITOR_SAVED_BYTES> saved{};
  check(guard.monitor().save(saved).ok() && guard.monitor().reset().ok() && guard.monitor().restore(saved).ok(), "save");
  check(guard.monitor().statistics()->rejected == 1 && guard.poll(3) == dab::state::fallback, "restored");
#if defined(__cpp_lib_span)
  const std::span<const float> view(m.input, m.inputs);
  check(model.assess(view, std::span<float>(scratch)).ok(), "std::span");
#endif
}
}  // namespace

int main() {
  for (std::size_t i = 0; i < MODEL_COUNT; ++i) answers(MODELS[i]);
  dab_monitor_config config{};
  config.enter = 2;
  config.exit = 1;
  config.window = config.enter_votes = config.exit_votes = 1;
  dab::monitor monitor;
  check(monitor.observe(0, 0) == dab::state::not_initialized, "a monitor before its start");
  check(!monitor.statistics().ok() && monitor.statistics()->state() == dab::state::stale, "no statistics, no trust");
  check(monitor.init(config).ok(), "a monitor");
  check(monitor.observe(1, 0.5f) == dab::state::nominal && monitor.observe(2, NAN) == dab::state::fallback, "who drives");
  check(monitor.poll(3) == dab::state::fallback, "who drives without an input");
  check(monitor.statistics()->inputs == 2 && monitor.statistics()->state() == dab::state::fallback, "statistics");
  dab_exploration_config bonus{};
  bonus.start = 1;
  bonus.clip = 5;
  bonus.warmup = 2;
  dab::exploration exploration;
  const std::array<float, 3> seen{1, 2, 3};
  std::array<float, 3> out{};
  std::array<unsigned char, DAB_EXPLORATION_SAVED_BYTES> saved{};
  check(exploration.init(bonus).ok() && exploration.update(seen).ok() && exploration.compute(seen, 0, out).ok(), "a bonus");
  check(out[2] > out[0] && exploration.save(saved).ok() && exploration.restore(saved).ok(), "save and restore");
  dab::memory<8, 2> memory;
  const std::array<float, 2> here{1, 2}, there{5, 2};
  check(memory.observe(here).status().number() == DAB_ERR_NULL, "a memory before its start");
  check(memory.init(0.1f).ok() && memory.observe(here).ok() && memory.observe(here)->bonus < 1, "a memory");
  check(memory.assess(there)->bonus == 1 && memory.teach(there)->spawned == 1, "somewhere else, taught");
  check(memory.clear().ok() && memory.statistics()->used == 1 && memory.assess(here)->bonus == 1, "what is taught stays");
  std::array<unsigned char, 256> state{};
  check(memory.save(state).ok() && memory.restore(state).ok(), "save and restore a memory");
  std::printf(failures ? "%d failures\n" : "all checks hold\n", failures);
  return failures != 0;
}
