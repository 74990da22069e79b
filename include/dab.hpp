// dab for C++17: dab.h with types that clean up after themselves. Header only, no exceptions, no RTTI, no heap
// of its own. Everything that dab.h says about memory and threads holds here.
//
//     dab::model<> model;                                   // its storage is inside; do not move it
//     if (auto e = model.init(artifact, sizeof artifact)) return fail(e.what());
//     if (auto e = model.self_test(scratch)) return fail(e.what());
//     dab::result<dab_assessment> a = model.assess(input, scratch);
//     if (!a || a->verdict == DAB_UNFAMILIAR) use_the_safe_controller();
#ifndef DAB_HPP
#define DAB_HPP

#include "dab.h"

#include <cstddef>
#include <cstdint>

namespace dab {

// What went wrong, if anything: true is an error, like std::error_code.
class error {
 public:
  constexpr error(dab_status status = DAB_OK) noexcept : status_(status) {}
  constexpr explicit operator bool() const noexcept { return status_ != DAB_OK; }
  constexpr dab_status status() const noexcept { return status_; }
  const char *what() const noexcept { return dab_status_string(status_); }

 private:
  dab_status status_;
};

// A value or an error: true is a value, like std::optional.
template <class T>
class result {
 public:
  constexpr result(const T &value) noexcept : value_(value) {}
  constexpr result(dab::error error) noexcept : error_(error) {}
  constexpr explicit operator bool() const noexcept { return !error_; }
  constexpr dab::error error() const noexcept { return error_; }
  // The value. Look whether there is one first.
  constexpr const T &operator*() const noexcept { return value_; }
  constexpr const T *operator->() const noexcept { return &value_; }

 private:
  T value_{};
  dab::error error_{};
};

// A view of values that lie one behind the other: made of an array, or of anything with data() and size().
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
  constexpr T *data() const noexcept { return data_; }
  constexpr std::size_t size() const noexcept { return size_; }
  constexpr std::size_t bytes() const noexcept { return size_ * sizeof(T); }

 private:
  T *data_ = nullptr;
  std::size_t size_ = 0;
};

// What every model answers, however it was loaded.
class model_ref {
 public:
  constexpr explicit model_ref(dab_model *handle = nullptr) noexcept : handle_(handle) {}
  constexpr dab_model *handle() const noexcept { return handle_; }

  std::size_t scratch_floats() const noexcept { return dab_scratch_bytes(handle_) / sizeof(float); }

  result<dab_shape> shape() const noexcept {
    auto out = sized<dab_shape>();
    return make(dab_model_shape(handle_, &out), out);
  }
  error self_test(span<float> scratch) const noexcept {
    return dab_self_test(handle_, scratch.data(), scratch.bytes());
  }
  error set_thresholds(float doubtful, float unfamiliar) noexcept {
    return dab_set_thresholds(handle_, doubtful, unfamiliar);
  }
  result<float> threshold(float rate) const noexcept {
    float nats = 0;
    return make(dab_threshold(handle_, rate, &nats), nats);
  }
  result<dab_assessment> assess(span<const float> input, span<float> scratch) const noexcept {
    auto out = sized<dab_assessment>();
    const auto s = dab_assess(handle_, input.data(), input.size(), scratch.data(), scratch.bytes(), &out);
    return make(s, out);
  }
  // As many inputs as there are assessments.
  error assess_batch(span<const float> inputs, span<float> scratch, span<dab_assessment> out) const noexcept {
    if (out.size() == 0) return inputs.size() == 0 ? DAB_OK : DAB_ERR_LENGTH;
    if (inputs.size() % out.size() != 0) return DAB_ERR_LENGTH;
    out.data()->size = sizeof(dab_assessment);
    return dab_assess_batch(handle_, inputs.data(), out.size(), inputs.size() / out.size(), scratch.data(),
                            scratch.bytes(), out.data());
  }
  result<dab_assessment> predict(span<const float> input, span<float> outputs, span<float> scratch) const noexcept {
    auto out = sized<dab_assessment>();
    const auto s = dab_predict(handle_, input.data(), input.size(), outputs.data(), outputs.size(), scratch.data(),
                               scratch.bytes(), &out);
    return make(s, out);
  }
  result<dab_assessment> explain(span<const float> input, span<float> distances, span<float> assignment,
                                 span<float> dimensions, span<float> scratch) const noexcept {
    if (distances.size() != assignment.size()) return error(DAB_ERR_OUTPUT_LENGTH);
    auto out = sized<dab_assessment>();
    const auto s = dab_explain(handle_, input.data(), input.size(), distances.data(), assignment.data(),
                               distances.size(), dimensions.data(), dimensions.size(), scratch.data(),
                               scratch.bytes(), &out);
    return make(s, out);
  }

 protected:
  void reset(dab_model *handle) noexcept { handle_ = handle; }

 private:
  template <class T>
  static T sized() noexcept {
    T out{};
    out.size = sizeof(T);
    return out;
  }
  template <class T>
  static result<T> make(dab_status status, const T &value) noexcept {
    if (status == DAB_OK) return result<T>(value);
    return result<T>(error(status));
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
  dab::error init(const void *artifact, std::size_t bytes) noexcept {
    dab_model *handle = nullptr;
    const auto status = dab_model_init(storage_, sizeof storage_, artifact, bytes, &handle);
    reset(handle);
    return status;
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
  dab::error open(const char *path) noexcept {
    close();
    dab_model *handle = nullptr;
    const auto status = dab_model_open(path, &handle);
    reset(handle);
    return status;
  }
  void close() noexcept {
    dab_model_close(handle());
    reset(nullptr);
  }
};
#endif

// Who may drive: DAB_NOMINAL only if inputs are familiar; anything else is the fallback's turn.
class monitor {
 public:
  error init(dab_monitor_config config) noexcept {
    config.size = sizeof config;
    return dab_monitor_init(&state_, &config);
  }
  std::int32_t observe(std::uint32_t now, float uncertainty) noexcept {
    return dab_monitor_observe(&state_, now, uncertainty);
  }
  std::int32_t poll(std::uint32_t now) noexcept { return dab_monitor_poll(&state_, now); }
  result<dab_monitor_statistics> statistics() const noexcept {
    dab_monitor_statistics out{};
    out.size = sizeof out;
    const auto status = dab_monitor_stats(&state_, &out);
    if (status != DAB_OK) return error(status);
    return out;
  }

 private:
  dab_monitor state_{};
};

// Uncertainty as a reward.
class exploration {
 public:
  error init(dab_exploration_config config) noexcept {
    config.size = sizeof config;
    return dab_exploration_init(&state_, &config);
  }
  error update(span<const float> uncertainties) noexcept {
    return dab_exploration_update(&state_, uncertainties.data(), uncertainties.size());
  }
  error compute(span<const float> uncertainties, std::uint64_t step, span<float> bonuses) const noexcept {
    if (uncertainties.size() != bonuses.size()) return DAB_ERR_OUTPUT_LENGTH;
    return dab_exploration_compute(&state_, uncertainties.data(), uncertainties.size(), step, bonuses.data());
  }
  error save(span<unsigned char> bytes) const noexcept {
    return dab_exploration_save(&state_, bytes.data(), bytes.size());
  }
  error restore(span<const unsigned char> bytes) noexcept {
    return dab_exploration_restore(&state_, bytes.data(), bytes.size());
  }

 private:
  dab_exploration state_{};
};

}  // namespace dab

#endif  // DAB_HPP
