/* dab: how far is an input from what a neural network was trained on?
 *
 * A model is one file (.dab, made by `dab train`, `dab fit` or `dab pack`; `dab export` makes a C array of it). This
 * library reads it where it lies, in flash or RAM, and answers for each input: an uncertainty in nats, a p-value and a
 * verdict. It also gives the network's prediction, explains an uncertainty, watches a stream of inputs and rewards
 * exploration. The same bits come out on every processor.
 *
 * Words: the network encodes an input as a Gaussian in a latent space of `dim` dimensions. The model keeps a few
 * Gaussians, its codes, that summarise the training data there. The uncertainty is the expected distance of the
 * input's Gaussian from the codes (Kullback-Leibler divergence, in nats). The p-value is (1 + held-out inputs with at least
 * this score) / (1 + held-out inputs), rounded up if anything. The verdict compares it with two false-alarm rates.
 * A model with channels has up to four views of an input. Its score is the unfamiliarity, what all views and the
 * network's own logits say together; and it tells inputs that lie between two classes: those are ambiguous. Its
 * uncertainty, codes and distances are those of the first view.
 *
 * USAGE. C99 and later, or C++ (dab.hpp is a C++17 face). The names in capitals are in model.h, which
 * `dab export model.dab --c model.c --header model.h` makes; without it, ask dab_scratch_bytes() and dab_model_shape().
 *
 *     static uint64_t storage[DAB_MODEL_BYTES / 8];
 *     static float scratch[DAB_ARTIFACT_SCRATCH_FLOATS];
 *     dab_model *model;
 *
 *     if (dab_model_init(storage, sizeof storage, dab_artifact, DAB_ARTIFACT_BYTES, &model) != DAB_OK) stop();
 *     if (dab_self_test(model, scratch, sizeof scratch) != DAB_OK) stop();       // once, at boot
 *
 *     dab_assessment a = { .size = sizeof a };
 *     dab_status s = dab_assess(model, input, DAB_ARTIFACT_INPUTS, scratch, sizeof scratch, &a);
 *     if (s == DAB_OK && a.verdict == DAB_FAMILIAR) act();
 *     else fall_back();
 *
 * C++ before C++20 writes: dab_assessment a = {}; a.size = sizeof a;
 *
 * In a control loop, call dab_guard (WATCH) instead: it also counts what is strange or refused over time.
 *
 * Keep this form: act only if the status is DAB_OK and the verdict is one that the program names; fall back in every
 * other case. "Fall back if DAB_UNFAMILIAR" would act without a verdict. Zero is never trust: a dab_assessment that
 * nobody filled has no verdict, and state 0 of a monitor is DAB_FALLBACK.
 *
 * LINKING. Link with -ldab, or with libdab.a by its path. The static library needs nothing but memcpy and memset; for a
 * target without an operating system it brings its own. dab-ffi/install prints what it found.
 *
 * MEMORY. All of it is the caller's: nothing is allocated, nothing must be freed, and the only pointer that is kept is
 * the model's to its artifact. Storage and artifact stay where they are, unchanged, while the model is used.
 * Alignment: storage 8 bytes, artifact and scratch 4 bytes, everything else as its type. A call refuses NULL or
 * misaligned pointers, sizes that are too small, and output memory that overlaps its other arguments, a model or an
 * artifact. The caller promises what a library cannot see: that memory exists for the length given, that a struct has the
 * size that its first member says, that nobody else writes to a model, a monitor, an exploration or a memory, and that
 * nobody writes what a call reads.
 *
 * THREADS. Any number of threads and interrupt handlers may use a `const dab_model *` at the same time. Scratch,
 * monitors, explorations, memories and results have one user at a time. There are no locks, no thread-local data, and
 * no globals (except one atomic word in libdab.so, which remembers the processor's instructions). No call blocks, prints
 * or calls back. The time of a call depends on the shape of the model alone, except dab_attribute (on the number of groups),
 * batches (on the rows) and memories (on the codes in use).
 *
 * ERRORS. A dab_status is DAB_OK (0) or negative; the numbers are at the end of this file. Any call
 * may return -1 to -7, for bad pointers, sizes and objects. After an error a valid dab_assessment (its place and `size`
 * are right) holds the answer that trusts nothing; other results are written only on DAB_OK. Inputs must be finite: a NaN
 * is refused with DAB_ERR_NON_FINITE, never assessed. Finite inputs beyond 2^50 saturate: they count as 2^50.
 *
 * STRUCTS that a call fills or reads begin with `size`: set it to sizeof the struct. That is how a program and a library
 * of different age understand each other. Later versions may add members at the end; DAB_ABI_VERSION stays.
 *   Older program, newer library: the library writes only what fits into the program's struct. Configuration members
 *   that the program does not have count as 0, and 0 always means: as before this member existed.
 *   Newer program, older library: result members that the library does not know are set to 0. Configuration members
 *   that it does not know must be 0; otherwise the call returns DAB_ERR_UNKNOWN_MEMBER.
 * Any other size, and every size above 512, is refused with DAB_ERR_STRUCT_SIZE.
 *
 * This file has a section for each task: LOAD, ASSESS, EXPLAIN, WATCH, EXPLORE; then STATUS NUMBERS. */

/* This file is generated: edit manual.h and the sources of dab-ffi. */

#ifndef DAB_H
#define DAB_H

#include <stddef.h>
#include <stdint.h>

/* Prefix of every function. Define it yourself if your platform needs something else. */
#ifndef DAB_API
#if defined(__GNUC__)
#define DAB_API __attribute__((visibility("default")))
#else
#define DAB_API
#endif
#endif

/* Marks functions whose result must not be ignored. */
#if defined(__GNUC__)
#define DAB_WARN_UNUSED __attribute__((warn_unused_result))
#elif defined(__cplusplus) && __cplusplus >= 201703L
#define DAB_WARN_UNUSED [[nodiscard]]
#else
#define DAB_WARN_UNUSED
#endif

/* Stops the compilation if `condition` is false. Here: if compiler and library disagree about a struct. */
#if defined(__cplusplus)
#define DAB_STATIC_ASSERT(name, condition) static_assert(condition, #name)
#elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define DAB_STATIC_ASSERT(name, condition) _Static_assert(condition, #name)
#else
#define DAB_STATIC_ASSERT(name, condition) typedef char dab_assert_##name[(condition) ? 1 : -1]
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Result of a call: DAB_OK or a negative number of the last section. */
typedef int32_t dab_status;

/* ---------------------------------------------------------------------------------------------------------------- *
 * LOAD: from bytes to a checked model, once, at boot.
 * ---------------------------------------------------------------------------------------------------------------- */

@version model@

#if defined(DAB_HOST)
/* For hosts: these two read files and use the heap. Define DAB_HOST before you include this header; they are in the
 * shared library only. */

@host@
#endif

/* ---------------------------------------------------------------------------------------------------------------- *
 * ASSESS: how far is this input from the training data, and what does the network predict?
 * ---------------------------------------------------------------------------------------------------------------- */

@assess band@

/* ---------------------------------------------------------------------------------------------------------------- *
 * EXPLAIN: why is it that far, and which sensor makes it so?
 *
 *     static float scratch[DAB_ARTIFACT_ATTRIBUTION_FLOATS];             // more than dab_assess needs
 *     float adds[DAB_ARTIFACT_INPUTS];
 *     char name[64];                                                    // or as long as your longest name needs
 *     size_t worst = 0, n = DAB_ARTIFACT_INPUTS;
 *     if (dab_attribute(model, input, n, NULL, NULL, NULL, adds, n, scratch, sizeof scratch, &a) == DAB_OK) {
 *         for (size_t i = 1; i < n; i++) if (adds[i] > adds[worst]) worst = i;
 *         if (dab_input_name(model, worst, name, sizeof name) == DAB_OK) show(name, adds[worst]);
 *     }
 * ---------------------------------------------------------------------------------------------------------------- */

@explain attribute@

/* ---------------------------------------------------------------------------------------------------------------- *
 * WATCH: may the learned controller drive? dab_guard is the whole of a control loop in one call; monitors, their
 * configurations and their reasons are in dab_monitor.h, which is included here.
 *
 *     int32_t who = dab_guard(model, &monitor, now, input, inputs, outputs, n, scratch, sizeof scratch, &a);
 *     if (who == DAB_NOMINAL) act(outputs);
 *     else fall_back();
 * ---------------------------------------------------------------------------------------------------------------- */

#include "dab_monitor.h"

/* ---------------------------------------------------------------------------------------------------------------- *
 * EXPLORE: uncertainty as a reward, for reinforcement learning. A model's codebook is frozen, so its bonus does not fade
 * while an agent learns: take the bonus of a memory that learns (dab_memory.h).
 * ---------------------------------------------------------------------------------------------------------------- */

@explore@

/* ---------------------------------------------------------------------------------------------------------------- *
 * STATUS NUMBERS
 *
 * -1 to -19: the call is refused. These are mistakes in the program, except DAB_ERR_NON_FINITE and DAB_ERR_SATURATED (a
 * broken sensor, say), DAB_ERR_NOT_CALIBRATED, DAB_ERR_SAVED_STATE, DAB_ERR_MEMORY_FULL and DAB_ERR_UNKNOWN_MEMBER (the
 * library is too old).
 * -20, -21: never use this model on this machine. -22 to -24: the artifact does not have what was asked for. -30: files.
 * -100 and below: the artifact is damaged, of another version, or breaks a rule of the format. A number never gets
 * another meaning.
 * ---------------------------------------------------------------------------------------------------------------- */

@status@

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DAB_H */
