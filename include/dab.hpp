// dab for C++17 and later: dab.h with types that clean up after themselves. Header only, no exceptions, no RTTI, no heap
// of its own. Everything that dab.h says about memory and threads holds here.
//
//     dab::model<> model;                                   // its storage is inside; do not move it
//     if (auto s = model.init(dab_artifact, DAB_ARTIFACT_BYTES); !s.ok()) return fail(s.what());   // never sizeof
//     if (auto s = model.self_test(scratch); !s.ok()) return fail(s.what());       // once, at boot
//
//     auto a = model.assess(input, scratch);
//     if (a.ok() && a->verdict() == dab::verdict::familiar) act();
//     else fall_back();
//
// ok() is the one test of success, of a status and of a result. Act only if it is true and the verdict is one that the
// program names; fall back in every other case.
#ifndef DAB_HPP
#define DAB_HPP

#if __cplusplus < 201703L && (!defined(_MSVC_LANG) || _MSVC_LANG < 201703L)
#error "dab.hpp needs C++17 or later (-std=c++17); dab.h serves C99 and every C++"
#endif

#include "dab.h"
#include "dab_memory.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#if __cplusplus >= 202002L
#include <span>
#endif

namespace dab {

// What a model says of an input. A number that a later library adds compares unequal to all of these.
enum class verdict : std::int32_t {
  none = DAB_NO_VERDICT,
  familiar = DAB_FAMILIAR,
  ambiguous = DAB_AMBIGUOUS,
  doubtful = DAB_DOUBTFUL,
  unfamiliar = DAB_UNFAMILIAR
};

// Who may drive: the learned controller in `nominal` only, the fallback in every other state.
enum class state : std::int32_t {
  not_initialized = DAB_ERR_NOT_INITIALIZED,
  nominal = DAB_NOMINAL,
  fallback = DAB_FALLBACK,
  stale = DAB_STALE
};

// How a call ended.
class [[nodiscard]] status {
 public:
  constexpr status(dab_status number) noexcept : number_(number) {}
  [[nodiscard]] constexpr bool ok() const noexcept { return number_ == DAB_OK; }
  [[nodiscard]] constexpr dab_status number() const noexcept { return number_; }
  [[nodiscard]] const char *what() const noexcept { return dab_status_string(number_); }

 private:
  dab_status number_;
};

// A value, or why there is none. Without one, the value is T(), and an assessment is the one that trusts nothing.
template <class T>
class [[nodiscard]] result {
 public:
  constexpr result(const T &value) noexcept : value_(value), status_(DAB_OK) {}
  constexpr result(dab::status status) noexcept : value_(), status_(status) {}
  constexpr result(const T &value, dab::status status) noexcept : value_(value), status_(status) {}
  [[nodiscard]] constexpr bool ok() const noexcept { return status_.ok(); }
  [[nodiscard]] constexpr dab::status status() const noexcept { return status_; }
  [[nodiscard]] const char *what() const noexcept { return status_.what(); }
  [[nodiscard]] constexpr const T &operator*() const noexcept { return value_; }
  [[nodiscard]] constexpr const T *operator->() const noexcept { return &value_; }

 private:
  T value_;
  dab::status status_;
};

// What a call filled in, if it succeeded.
template <class T>
result<T> make(dab_status number, const T &value) noexcept {
  if (number == DAB_OK) return result<T>(value);
  return result<T>(dab::status(number));
}

// dab_assessment, with `size` set and no verdict until a call gives one.
struct assessment : dab_assessment {
  // As after an error: the answer that trusts nothing.
  constexpr assessment() noexcept : dab_assessment() {
    size = sizeof(dab_assessment);
    uncertainty = nearest_distance = score = unfamiliarity = ambiguity = std::numeric_limits<float>::max();
    p_value = ambiguity_p = -1;
    top_class = runner_up = view = DAB_NONE;
  }
  [[nodiscard]] constexpr dab::verdict verdict() const noexcept {
    return static_cast<dab::verdict>(dab_assessment::verdict);
  }
};
static_assert(sizeof(assessment) == sizeof(dab_assessment), "a batch is an array of dab_assessment");

// dab_monitor_statistics, with `size` set.
struct monitor_statistics : dab_monitor_statistics {
  constexpr monitor_statistics() noexcept : dab_monitor_statistics() {
    size = sizeof(dab_monitor_statistics);
    dab_monitor_statistics::state = DAB_STALE;
  }
  [[nodiscard]] constexpr dab::state state() const noexcept {
    return static_cast<dab::state>(dab_monitor_statistics::state);
  }
};

#if defined(__cpp_lib_span)
template <class T>
using span = std::span<T>;
#else
// What std::span is from C++20 on: a view of an array, or of anything with data() and size().
template <class T>
class span {
 public:
  constexpr span() noexcept = default;
  constexpr span(T *data, std::size_t size) noexcept : data_(data), size_(size) {}
  template <std::size_t N>
  constexpr span(T (&array)[N]) noexcept : data_(array), size_(N) {}
  template <class C, class = decltype(static_cast<T *>(static_cast<C *>(nullptr)->data()))>
  constexpr span(C &container) noexcept : data_(container.data()), size_(container.size()) {}
  template <class C, class = decltype(static_cast<T *>(static_cast<const C *>(nullptr)->data()))>
  constexpr span(const C &container) noexcept : data_(container.data()), size_(container.size()) {}
  [[nodiscard]] constexpr T *data() const noexcept { return data_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return size_; }
  [[nodiscard]] constexpr std::size_t size_bytes() const noexcept { return size_ * sizeof(T); }

 private:
  T *data_ = nullptr;
  std::size_t size_ = 0;
};
#endif

// What every model answers, however it was loaded.
class model_ref {
 public:
  constexpr explicit model_ref(dab_model *handle = nullptr) noexcept : handle_(handle) {}
  [[nodiscard]] constexpr dab_model *handle() const noexcept { return handle_; }

  [[nodiscard]] std::size_t scratch_floats() const noexcept { return dab_scratch_bytes(handle_) / sizeof(float); }

  [[nodiscard]] result<dab_shape> shape() const noexcept {
    dab_shape out{};
    out.size = sizeof out;
    return make(dab_model_shape(handle_, &out), out);
  }
  [[nodiscard]] status check() const noexcept { return dab_model_check(handle_); }
  [[nodiscard]] status self_test(span<float> scratch) const noexcept {
    return dab_self_test(handle_, scratch.data(), scratch.size_bytes());
  }
  [[nodiscard]] status set_rates(float doubtful, float unfamiliar) noexcept {
    return dab_set_rates(handle_, doubtful, unfamiliar);
  }
  // The score that at most this share of familiar inputs exceeds; after an error, one that every input exceeds.
  [[nodiscard]] result<float> threshold(float rate) const noexcept {
    float score = 0;
    const auto s = dab_threshold(handle_, rate, &score);
    return {score, s};
  }
  // The monitor that was tuned for the model and lies in its artifact; after an error, one that no monitor takes.
  [[nodiscard]] result<dab_monitor_config> monitor_config() const noexcept {
    dab_monitor_config out{};
    out.size = sizeof out;
    return make(dab_model_monitor(handle_, &out, nullptr), out);
  }
  // Seconds of a tick for which that monitor was tuned.
  [[nodiscard]] result<float> monitor_tick() const noexcept {
    dab_monitor_config config{};
    config.size = sizeof config;
    float seconds = 0;
    const auto s = dab_model_monitor(handle_, &config, &seconds);
    return {seconds, s};
  }
  [[nodiscard]] result<assessment> assess(span<const float> input, span<float> scratch) const noexcept {
    return answer(dab_assess, handle_, input.data(), input.size(), scratch.data(), scratch.size_bytes());
  }
  // As many inputs as there are assessments.
  [[nodiscard]] status assess_batch(span<const float> inputs, span<float> scratch,
                                    span<assessment> out) const noexcept {
    if (out.size() == 0) return inputs.size() == 0 ? DAB_OK : DAB_ERR_LENGTH;
    if (inputs.size() % out.size() != 0) return refuse(out, DAB_ERR_LENGTH);
    out.data()->size = sizeof(dab_assessment);
    return dab_assess_batch(handle_, inputs.data(), out.size(), inputs.size() / out.size(), scratch.data(),
                            scratch.size_bytes(), out.data());
  }
  [[nodiscard]] result<assessment> predict(span<const float> input, span<float> outputs,
                                           span<float> scratch) const noexcept {
    return answer(dab_predict, handle_, input.data(), input.size(), outputs.data(), outputs.size(), scratch.data(),
                  scratch.size_bytes());
  }
  // As many inputs as there are assessments, and as many outputs for each as the model has.
  [[nodiscard]] status predict_batch(span<const float> inputs, span<float> outputs, span<float> scratch,
                                     span<assessment> out) const noexcept {
    if (out.size() == 0) return inputs.size() == 0 && outputs.size() == 0 ? DAB_OK : DAB_ERR_LENGTH;
    if (inputs.size() % out.size() != 0) return refuse(out, DAB_ERR_LENGTH);
    if (outputs.size() % out.size() != 0) return refuse(out, DAB_ERR_OUTPUT_LENGTH);
    out.data()->size = sizeof(dab_assessment);
    return dab_predict_batch(handle_, inputs.data(), out.size(), inputs.size() / out.size(), outputs.data(),
                             outputs.size() / out.size(), scratch.data(), scratch.size_bytes(), out.data());
  }
  [[nodiscard]] result<assessment> explain(span<const float> input, span<float> distances, span<float> assignment,
                                           span<float> dimensions, span<float> scratch) const noexcept {
    if (distances.size() != assignment.size()) return status(DAB_ERR_OUTPUT_LENGTH);
    return answer(dab_explain, handle_, input.data(), input.size(), distances.data(), assignment.data(),
                  distances.size(), dimensions.data(), dimensions.size(), scratch.data(), scratch.size_bytes());
  }

  // What the encoder makes of an input: as many means and standard deviations as dab_shape.dim. A memory observes them.
  [[nodiscard]] status encode(span<const float> input, span<float> mean, span<float> std, span<float> scratch) const noexcept {
    if (mean.size() != std.size()) return DAB_ERR_OUTPUT_LENGTH;
    return dab_encode(handle_, input.data(), input.size(), mean.data(), std.data(), mean.size(), scratch.data(),
                      scratch.size_bytes());
  }
  // "This is normal now": teaches a dab::memory of dimension dab_shape.dim, and assesses with it. See dab_teach.
  template <class Memory>
  [[nodiscard]] result<assessment> teach(Memory &memory, span<const float> input, span<float> scratch) const noexcept {
    return answer(dab_teach, handle_, memory.handle(), input.data(), input.size(), scratch.data(), scratch.size_bytes());
  }
  template <class Memory>
  [[nodiscard]] result<assessment> assess_taught(Memory &memory, span<const float> input, span<float> scratch) const noexcept {
    return answer(dab_assess_taught, handle_, memory.handle(), input.data(), input.size(), scratch.data(), scratch.size_bytes());
  }

  // Floats of scratch for attribute and assess_without.
  [[nodiscard]] std::size_t attribution_floats() const noexcept {
    return dab_attribution_bytes(handle_) / sizeof(float);
  }
  // Which sensor? What each input adds to the score, or each group if there are `groups`, one number for each input.
  // Without `means`, the model's own.
  [[nodiscard]] result<assessment> attribute(span<const float> input, span<float> score, span<float> scratch,
                                             span<const std::uint32_t> groups = {},
                                             span<const float> means = {}) const noexcept {
    if (wrong(groups.size(), input.size()) || wrong(means.size(), input.size())) return status(DAB_ERR_LENGTH);
    return answer(dab_attribute, handle_, input.data(), input.size(), given(means), given(groups), nullptr,
                  score.data(), score.size(), scratch.data(), scratch.size_bytes());
  }
  // The assessment with one input, or one group, at its mean.
  [[nodiscard]] result<assessment> assess_without(span<const float> input, std::uint32_t group, span<float> scratch,
                                                  span<const std::uint32_t> groups = {},
                                                  span<const float> means = {}) const noexcept {
    if (wrong(groups.size(), input.size()) || wrong(means.size(), input.size())) return status(DAB_ERR_LENGTH);
    return answer(dab_assess_without, handle_, input.data(), input.size(), given(means), given(groups), group,
                  scratch.data(), scratch.size_bytes());
  }
  [[nodiscard]] status means(span<float> out) const noexcept {
    return dab_model_means(handle_, out.data(), out.size());
  }
  [[nodiscard]] status bands(span<float> out) const noexcept {
    return dab_model_bands(handle_, out.data(), out.size());
  }
  [[nodiscard]] status input_name(std::size_t input, span<char> name) const noexcept {
    return dab_input_name(handle_, input, name.data(), name.size());
  }
  [[nodiscard]] status output_name(std::size_t output, span<char> name) const noexcept {
    return dab_output_name(handle_, output, name.data(), name.size());
  }

 protected:
  void reset(dab_model *handle) noexcept { handle_ = handle; }

 private:
  // No verdict of an older call stays behind.
  static dab_status refuse(span<assessment> out, dab_status status) noexcept {
    for (std::size_t i = 0; i < out.size(); i++) out.data()[i] = assessment();
    return status;
  }
  static constexpr bool wrong(std::size_t found, std::size_t wanted) noexcept { return found != 0 && found != wanted; }
  template <class T>
  static constexpr const T *given(span<const T> values) noexcept {
    return values.size() == 0 ? nullptr : values.data();
  }
  // A call whose last argument is an assessment.
  template <class F, class... A>
  static result<assessment> answer(F function, A... arguments) noexcept {
    assessment out;
    const auto s = function(arguments..., &out);
    return {out, s};
  }

  dab_model *handle_;
};

// A model with its storage inside. Neither copied nor moved: its address is the handle.
template <std::size_t Bytes = DAB_MODEL_BYTES>
class model : public model_ref {
 public:
  model() noexcept = default;
  model(const model &) = delete;
  model &operator=(const model &) = delete;
  // The artifact stays where it is, unchanged, while the model is used.
  [[nodiscard]] status init(const void *artifact, std::size_t bytes) noexcept {
    dab_model *handle = nullptr;
    const auto number = dab_model_init(storage_, sizeof storage_, artifact, bytes, &handle);
    reset(handle);
    return number;
  }

 private:
  std::uint64_t storage_[Bytes / 8] = {};
};

#ifdef DAB_HOST
// A model from a file; closed at the end of its scope. Moved, not copied. Needs the shared library.
class file_model : public model_ref {
 public:
  file_model() noexcept = default;
  file_model(file_model &&other) noexcept : model_ref(other.handle()) { other.reset(nullptr); }
  file_model &operator=(file_model &&other) noexcept {
    if (this != &other) {
      close();
      reset(other.handle());
      other.reset(nullptr);
    }
    return *this;
  }
  ~file_model() { close(); }
  [[nodiscard]] status open(const char *path) noexcept {
    close();
    dab_model *handle = nullptr;
    const auto number = dab_model_open(path, &handle);
    reset(handle);
    return number;
  }
  void close() noexcept {
    dab_model_close(handle());
    reset(nullptr);
  }
};
#endif

// Watches a stream of scores. In a control loop, use a guard (below).
class monitor {
 public:
  [[nodiscard]] status init(dab_monitor_config config) noexcept {
    config.size = sizeof config;
    return dab_monitor_init(&words_, &config);
  }
  [[nodiscard]] dab::state observe(std::uint32_t now, float score) noexcept {
    return static_cast<dab::state>(dab_monitor_observe(&words_, now, score));
  }
  [[nodiscard]] dab::state poll(std::uint32_t now) noexcept {
    return static_cast<dab::state>(dab_monitor_poll(&words_, now));
  }
  [[nodiscard]] result<monitor_statistics> statistics() const noexcept {
    monitor_statistics out;
    return make(dab_monitor_stats(&words_, &out), out);
  }
  // Bits of DAB_WHY_; 0 while the state is nominal.
  [[nodiscard]] std::uint32_t why() const noexcept { return dab_monitor_why(&words_); }
  // The event before the last `back` ones; its number is 0 where there is none.
  [[nodiscard]] result<dab_event> event(std::uint32_t back) const noexcept {
    dab_event out{};
    out.size = sizeof out;
    return make(dab_monitor_event(&words_, back, &out), out);
  }
  [[nodiscard]] status reset() noexcept { return dab_monitor_reset(&words_); }
  [[nodiscard]] status save(span<unsigned char> bytes) const noexcept {
    return dab_monitor_save(&words_, bytes.data(), bytes.size());
  }
  [[nodiscard]] status restore(span<const unsigned char> bytes) noexcept {
    return dab_monitor_restore(&words_, bytes.data(), bytes.size());
  }
  [[nodiscard]] dab_monitor *handle() noexcept { return &words_; }

 private:
  dab_monitor words_{};
};

// Who may drive, and what the model said of the input.
struct [[nodiscard]] decision {
  dab::state state = dab::state::fallback;
  dab::assessment assessment;
  [[nodiscard]] constexpr bool nominal() const noexcept { return state == dab::state::nominal; }
};

// A model and a monitor in one call: what a control loop needs. A refused input (a NaN, a wrong length) is counted, votes
// for the fallback and is never driven on.
//
//     dab::guard guard(model);
//     if (auto s = guard.init(config); !s.ok()) return fail(s.what());
//     if (guard.predict(now, input, outputs, scratch).nominal()) act(outputs);
//     else fall_back();
class guard {
 public:
  // The model must outlive the guard.
  explicit guard(const model_ref &model) noexcept : model_(&model) {}
  [[nodiscard]] status init(dab_monitor_config config) noexcept { return monitor_.init(config); }
  // Starts the monitor that lies in the model's artifact.
  [[nodiscard]] status init() noexcept {
    const auto config = model_->monitor_config();
    return config.ok() ? monitor_.init(*config) : config.status();
  }
  [[nodiscard]] decision assess(std::uint32_t now, span<const float> input, span<float> scratch) noexcept {
    return predict(now, input, {}, scratch);
  }
  [[nodiscard]] decision predict(std::uint32_t now, span<const float> input, span<float> outputs,
                                 span<float> scratch) noexcept {
    decision d;
    d.state = static_cast<dab::state>(dab_guard(
        model_->handle(), monitor_.handle(), now, input.data(), input.size(), outputs.size() == 0 ? nullptr : outputs.data(),
        outputs.size(), scratch.data(), scratch.size() * sizeof(float), &d.assessment));
    return d;
  }
  [[nodiscard]] dab::state poll(std::uint32_t now) noexcept { return monitor_.poll(now); }
  [[nodiscard]] dab::monitor &monitor() noexcept { return monitor_; }

 private:
  const model_ref *model_;
  dab::monitor monitor_;
};

// Uncertainty as a reward.
class exploration {
 public:
  [[nodiscard]] status init(dab_exploration_config config) noexcept {
    config.size = sizeof config;
    return dab_exploration_init(&words_, &config);
  }
  [[nodiscard]] status update(span<const float> uncertainties) noexcept {
    return dab_exploration_update(&words_, uncertainties.data(), uncertainties.size());
  }
  [[nodiscard]] status compute(span<const float> uncertainties, std::uint64_t step,
                               span<float> bonuses) const noexcept {
    if (uncertainties.size() != bonuses.size()) return DAB_ERR_OUTPUT_LENGTH;
    return dab_exploration_compute(&words_, uncertainties.data(), uncertainties.size(), step, bonuses.data());
  }
  [[nodiscard]] status save(span<unsigned char> bytes) const noexcept {
    return dab_exploration_save(&words_, bytes.data(), bytes.size());
  }
  [[nodiscard]] status restore(span<const unsigned char> bytes) noexcept {
    return dab_exploration_restore(&words_, bytes.data(), bytes.size());
  }

 private:
  dab_exploration words_{};
};

// How often was something like this seen? A memory of up to Codes codes of dimension Dim, its storage inside. Neither
// copied nor moved: its address is the handle.
//
//     dab::memory<256, 4> memory;
//     if (auto s = memory.init(0.1f); !s.ok()) return fail(s.what());
//     if (auto n = memory.observe(state); n.ok()) reward += 0.1f * n->bonus;
template <std::uint32_t Codes, std::uint32_t Dim>
class memory {
 public:
  memory() noexcept = default;
  memory(const memory &) = delete;
  memory &operator=(const memory &) = delete;
  // What lies within a distance of `std` is the same. `config`: 0 in a member is its default.
  [[nodiscard]] status init(float std, dab_memory_config config = {}) noexcept {
    config.size = sizeof config;
    config.codes = Codes;
    config.dim = Dim;
    config.std = std;
    return dab_memory_init(storage_, sizeof storage_, &config, &handle_);
  }
  [[nodiscard]] dab_memory *handle() noexcept { return handle_; }
  // Without `std`, the memory's own.
  [[nodiscard]] result<dab_novelty> assess(span<const float> mean, span<const float> std = {}) noexcept {
    return call(dab_memory_assess, mean, std);
  }
  [[nodiscard]] result<dab_novelty> observe(span<const float> mean, span<const float> std = {}) noexcept {
    return call(dab_memory_observe, mean, std);
  }
  [[nodiscard]] result<dab_novelty> teach(span<const float> mean, span<const float> std = {}) noexcept {
    return call(dab_memory_teach, mean, std);
  }
  [[nodiscard]] status clear() noexcept { return dab_memory_clear(handle_); }
  [[nodiscard]] result<dab_memory_statistics> statistics() noexcept {
    dab_memory_statistics out{};
    out.size = sizeof out;
    return make(dab_memory_stats(handle_, &out), out);
  }
  [[nodiscard]] status save(span<unsigned char> bytes) noexcept {
    return dab_memory_save(handle_, bytes.data(), bytes.size());
  }
  [[nodiscard]] status restore(span<const unsigned char> bytes) noexcept {
    return dab_memory_restore(handle_, bytes.data(), bytes.size());
  }

 private:
  template <class F>
  result<dab_novelty> call(F function, span<const float> mean, span<const float> std) noexcept {
    if (std.size() != 0 && std.size() != mean.size()) return status(DAB_ERR_LENGTH);
    dab_novelty out{};
    out.size = sizeof out;
    return make(function(handle_, mean.data(), std.size() == 0 ? nullptr : std.data(), mean.size(), &out), out);
  }

  std::uint64_t storage_[DAB_MEMORY_BYTES(Codes, Dim) / 8] = {};
  dab_memory *handle_ = nullptr;
};

}  // namespace dab

#endif  // DAB_HPP
