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

#define DAB_VERSION_MAJOR 0       /* Version of this header. */
#define DAB_VERSION_MINOR 1       /* Minor part of it. */
#define DAB_VERSION_PATCH 0       /* Patch part of it. */
#define DAB_ABI_VERSION 3         /* Binary interface; rises when a compiled program could break. */
#define DAB_MODEL_BYTES 896       /* Bytes of storage for a model: uint64_t storage[DAB_MODEL_BYTES / 8]. */
#define DAB_COVARIANCE_DIAGONAL 0 /* covariance: independent latent dimensions. */
#define DAB_COVARIANCE_SPECTRAL 1 /* covariance: full, by eigen-decomposition. */
#define DAB_COVARIANCE_CHOLESKY 2 /* covariance: full, by triangular factor. */
#define DAB_COVARIANCE_CONSTANT 3 /* covariance: the identity for every input and code. */
#define DAB_TASK_NONE 0           /* task: the model has no decoder. */
#define DAB_TASK_REGRESSION 1     /* task: outputs are means. */
#define DAB_TASK_CLASSIFICATION 2 /* task: outputs are logits, one per class. */

/* A loaded model, in storage of the caller. Its contents are private. */
typedef struct dab_model dab_model;

/* Sizes of a model. Set `size` before the call. */
typedef struct dab_shape {
    uint32_t size;        /* sizeof(dab_shape), set by the caller. */
    uint32_t inputs;      /* Values per input. */
    uint32_t outputs;     /* Values that the decoder gives; 0 without one. */
    uint32_t codes;       /* Number of codes, in the first view. */
    uint32_t dim;         /* Latent dimension. */
    uint32_t layers;      /* Dense layers before the head. */
    uint32_t features;    /* Values that enter the head. */
    uint32_t covariance;  /* One of DAB_COVARIANCE_. */
    uint32_t task;        /* One of DAB_TASK_. */
    uint32_t calibration; /* Held-out inputs behind p-values and verdicts; 0: not calibrated. */
    uint32_t views;       /* Views of an input, 1 to 4. */
} dab_shape;
DAB_STATIC_ASSERT(shape_size, sizeof(dab_shape) == 44);
DAB_STATIC_ASSERT(shape_views, offsetof(dab_shape, views) == 40);

/* Version of the linked library, such as "0.1.0". The text is static: never free it. */
DAB_API const char *dab_version(void);

/* Binary interface of the linked library. Use the library only if this is DAB_ABI_VERSION. */
DAB_API uint32_t dab_abi_version(void);

/* Oldest artifact format that the linked library reads: major version * 65536 + minor version. */
DAB_API uint32_t dab_format_oldest(void);

/* Newest artifact format that the linked library knows in full. It also reads later minor versions, unless they need
 * features that it does not have (DAB_ERR_FEATURES). */
DAB_API uint32_t dab_format_newest(void);

/* DAB_MODEL_BYTES of the linked library. If it is larger than the program's, dab_model_init refuses the program's
 * storage (DAB_ERR_TOO_SMALL). */
DAB_API size_t dab_model_bytes(void);

/* Checks all of an artifact and makes a model of it in `storage`.
 * storage: DAB_MODEL_BYTES bytes at a multiple of 8. artifact: the bytes of a .dab file at a multiple of 4, in flash
 * or RAM. It is read in place: both must stay, unchanged, as long as the model is used. There is nothing to free.
 * Returns DAB_OK, what is wrong with the arguments (-1 to -5, DAB_ERR_ARTIFACT_MISALIGNED), or what is wrong with the
 * artifact (-100 and below). Checksums find damage, not forgery (SECURITY.md). After an error *out is NULL. */
DAB_API DAB_WARN_UNUSED dab_status dab_model_init(void *storage, size_t storage_bytes, const void *artifact,
    size_t artifact_bytes, dab_model **out);

/* Sizes of the model.
 * Returns DAB_OK, or -1 to -7 for bad pointers and sizes. */
DAB_API DAB_WARN_UNUSED dab_status dab_model_shape(const dab_model *model, dab_shape *out);

/* Bytes of scratch that a call on this model needs, a multiple of 4; 0 if `model` is not a model. Only dab_attribute and
 * dab_assess_without need more: dab_attribution_bytes(). */
DAB_API size_t dab_scratch_bytes(const dab_model *model);

/* Checks that file, library and floating-point unit agree: the known answers inside the artifact must come out bit for
 * bit. Call it once, at boot. If it fails, do not use the model.
 * Returns DAB_OK, DAB_ERR_SELF_TEST, DAB_ERR_SELF_TEST_DIGEST, DAB_ERR_SCRATCH, or -1 to -6 for bad pointers. */
DAB_API DAB_WARN_UNUSED dab_status dab_self_test(const dab_model *model, void *scratch, size_t scratch_bytes);

/* Checks that the artifact of a model is still what it was when it was loaded, by its checksums: flash can lose bits. It
 * needs no floating point and no scratch: repeat it while the program runs, as often as its time allows.
 * Returns DAB_OK, what is wrong with the artifact (-100 and below): do not use the model any more; or -1, -2 or -6. */
DAB_API DAB_WARN_UNUSED dab_status dab_model_check(const dab_model *model);

/* Sets other false-alarm rates for the verdicts than the artifact's: at most the share `doubtful` of familiar inputs is
 * called doubtful or unfamiliar, at most the share `unfamiliar` is called unfamiliar.
 * Threads: this is the only call that changes a model. Make it before others use the model.
 * Returns DAB_OK, DAB_ERR_RATES unless 0 < unfamiliar <= doubtful < 1, or DAB_ERR_NOT_CALIBRATED if the model has fewer
 * than 1/unfamiliar - 1 held-out inputs (dab_shape.calibration): it would never call anything unfamiliar; or -1, -2 or -6. */
DAB_API DAB_WARN_UNUSED dab_status dab_set_rates(dab_model *model, float doubtful, float unfamiliar);

/* The score (dab_assessment.score) that at most the share `rate` of familiar inputs exceeds: a threshold for a monitor.
 * Ask it at boot for the rate that you use: an artifact with too few held-out inputs never calls anything unfamiliar.
 * Returns DAB_OK, DAB_ERR_RATES unless 0 < rate < 1, DAB_ERR_NOT_CALIBRATED, or -1 to -6 for bad pointers. After an error
 * the threshold is -FLT_MAX: every input exceeds it. */
DAB_API DAB_WARN_UNUSED dab_status dab_threshold(const dab_model *model, float rate, float *score);

#if defined(DAB_HOST)
/* For hosts: these two read files and use the heap. Define DAB_HOST before you include this header; they are in the
 * shared library only. */

/* Reads a file, checks all of it (also the names and notes that dab_model_init skips), and makes a model of it in
 * memory of its own. Close it with dab_model_close. path: UTF-8, with a NUL at the end.
 * Returns DAB_OK, DAB_ERR_FILE, DAB_ERR_INFO, or as dab_model_init. After an error *out is NULL. */
DAB_API DAB_WARN_UNUSED dab_status dab_model_open(const char *path, dab_model **out);

/* Frees a model that dab_model_open made. NULL is allowed. Never use it for a model of dab_model_init. */
DAB_API void dab_model_close(dab_model *model);
#endif

/* ---------------------------------------------------------------------------------------------------------------- *
 * ASSESS: how far is this input from the training data, and what does the network predict?
 * ---------------------------------------------------------------------------------------------------------------- */

#define DAB_NO_VERDICT 0      /* verdict: none. The model has no calibration table, or the call failed. */
#define DAB_FAMILIAR 1        /* verdict: like the training data. */
#define DAB_AMBIGUOUS 2       /* verdict: like the training data, but between two classes. */
#define DAB_DOUBTFUL 3        /* verdict: rare among the training data. */
#define DAB_UNFAMILIAR 4      /* verdict: unlike the training data. */
#define DAB_FLAG_CALIBRATED 1 /* flags: p_value and verdict are set. */
#define DAB_FLAG_SATURATED 2  /* flags: the uncertainty overflowed and is the largest finite number. */
#define DAB_FLAG_CHANNELS 4   /* flags: the model has channels; unfamiliarity and view are set. */
#define DAB_FLAG_AMBIGUITY 8  /* flags: ambiguity, top_class and runner_up are set. */
#define DAB_NONE UINT32_MAX   /* top_class, runner_up, view: there is none. */

/* What a model says of one input. Set `size` before the call. After an error it is the answer that trusts nothing: no
 * verdict, no flags, distances and scores of FLT_MAX, and a `nearest` of 0 that means nothing. DAB_DOUBTFUL and
 * DAB_UNFAMILIAR hide DAB_AMBIGUOUS: look at ambiguity_p. */
typedef struct dab_assessment {
    uint32_t size;          /* sizeof(dab_assessment), set by the caller. */
    uint32_t flags;         /* Bits of DAB_FLAG_. */
    float uncertainty;      /* Distance from the training data in nats, in the first view; always finite. */
    /* (1 + held-out inputs that score at least this) / (1 + held-out inputs); -1: unknown. */
    float p_value;
    int32_t verdict;        /* One of the verdicts above. */
    uint32_t nearest;       /* The closest code of the first view, counting from 0. */
    float nearest_distance; /* Its distance, nats. */
    /* What p_value, verdict, dab_threshold and a monitor go by: unfamiliarity if there are channels, else uncertainty. */
    float score;
    float unfamiliarity;    /* Surprise of all views, at least 0; -1 without channels; FLT_MAX after an error. */
    float ambiguity;        /* ln of the odds against top_class, any sign; 0 without one; FLT_MAX after an error. */
    float ambiguity_p;      /* Share of familiar inputs that are at least this ambiguous, as p_value; -1: unknown. */
    uint32_t top_class;     /* The likeliest class, or DAB_NONE. */
    uint32_t runner_up;     /* The second likeliest class, or DAB_NONE. */
    uint32_t view;          /* The view that is surprised most, 0 is the base; DAB_NONE without channels. */
} dab_assessment;
DAB_STATIC_ASSERT(assessment_size, sizeof(dab_assessment) == 56);
DAB_STATIC_ASSERT(assessment_view, offsetof(dab_assessment, view) == 52);

/* How far `input` lies from the training data. Act only if the status is DAB_OK and the verdict is one that you name.
 * input: `inputs` floats, as many as dab_shape.inputs. scratch: `scratch_bytes` bytes at a multiple of 4, at least
 * dab_scratch_bytes(model); its contents mean nothing before and after the call.
 * Threads: `model` may be shared, `scratch` and `out` may not.
 * Returns DAB_OK, DAB_ERR_LENGTH, DAB_ERR_NON_FINITE, DAB_ERR_SCRATCH, or -1 to -7 for bad pointers and sizes. */
DAB_API DAB_WARN_UNUSED dab_status dab_assess(const dab_model *model, const float *input, size_t inputs,
    void *scratch, size_t scratch_bytes, dab_assessment *out);

/* dab_assess for many inputs: `rows` inputs of `inputs` floats, one after the other, and an array of `rows`
 * assessments, of which the first one has its `size` set.
 * Returns as dab_assess. If one value of one row is not finite, no row is assessed, and none is trusted. */
DAB_API DAB_WARN_UNUSED dab_status dab_assess_batch(const dab_model *model, const float *input, size_t rows,
    size_t inputs, void *scratch, size_t scratch_bytes, dab_assessment *out);

/* The assessment of `input`, and what the model predicts: means (regression) or logits (classification).
 * outputs: `output_count` floats, as many as dab_shape.outputs.
 * Returns as dab_assess, or DAB_ERR_OUTPUT_LENGTH. */
DAB_API DAB_WARN_UNUSED dab_status dab_predict(const dab_model *model, const float *input, size_t inputs,
    float *outputs, size_t output_count, void *scratch, size_t scratch_bytes, dab_assessment *out);

/* dab_predict for many inputs: as dab_assess_batch, with `rows` times `output_count` floats of outputs, those of one input
 * after those of another. `output_count` is dab_shape.outputs.
 * Returns as dab_assess_batch, or DAB_ERR_OUTPUT_LENGTH. */
DAB_API DAB_WARN_UNUSED dab_status dab_predict_batch(const dab_model *model, const float *input, size_t rows,
    size_t inputs, float *outputs, size_t output_count, void *scratch, size_t scratch_bytes, dab_assessment *out);

/* The bands of a regression's outputs: for 95 % of inputs like the training data the truth lies within output +- band *
 * a.uncertainty, on average. bands: `outputs` floats, in the target's unit per nat. Ask once, at boot.
 * Returns DAB_OK, DAB_ERR_NO_BANDS (no regression, or made without held-out targets), DAB_ERR_OUTPUT_LENGTH, or -1 to -6
 * for bad pointers. */
DAB_API DAB_WARN_UNUSED dab_status dab_model_bands(const dab_model *model, float *bands, size_t outputs);

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

/* Assesses `input`, and tells why it is as far as it is in the first view; nothing of it is about other views.
 * distances: the distance to each of `codes` codes in nats. assignment: the weight of each code; their sum is 1.
 * dimensions: what each of `dim` latent dimensions adds to the uncertainty in nats; their sum is the uncertainty, and
 * a negative one makes the input more familiar. `codes` and `dim` are those of dab_shape.
 * Returns as dab_assess, or DAB_ERR_OUTPUT_LENGTH. */
DAB_API DAB_WARN_UNUSED dab_status dab_explain(const dab_model *model, const float *input, size_t inputs,
    float *distances, float *assignment, size_t codes, float *dimensions, size_t dim, void *scratch,
    size_t scratch_bytes, dab_assessment *out);

/* Bytes of scratch that dab_attribute and dab_assess_without need: one input more than dab_scratch_bytes(); 0 if `model`
 * is not a model. */
DAB_API size_t dab_attribution_bytes(const dab_model *model);

/* Which sensor? What each input, or each group of inputs, adds to the uncertainty and to the score: how much smaller they
 * are when the group is set to its mean in the training data. The broken sensor is the largest number. A negative one
 * speaks for a familiar input; the numbers do not add up to the score. Takes as long as groups + 1 calls of dab_assess.
 * means: `inputs` floats, or NULL for the model's own. groups: the group of each of `inputs` inputs, counting from 0, or
 * DAB_NONE for one that stays as it is; NULL if every input is a group of its own. uncertainty, score: `group_count`
 * floats each, or NULL. scratch: dab_attribution_bytes(model).
 * Returns as dab_assess, DAB_ERR_NO_MEANS if `means` is NULL and the model has none, or DAB_ERR_OUTPUT_LENGTH if
 * group_count is not above the number of every group or, without groups, not `inputs`, or if there is no result to write. */
DAB_API DAB_WARN_UNUSED dab_status dab_attribute(const dab_model *model, const float *input, size_t inputs,
    const float *means, const uint32_t *groups, float *uncertainty, float *score, size_t group_count, void *scratch,
    size_t scratch_bytes, dab_assessment *out);

/* dab_attribute one group at a time, for a loop that has time for one pass only: the assessment of `input` with the inputs
 * of `group` at their means. What the group adds is the score of dab_assess minus the score of this. Inputs of the group
 * may be NaN: this is also how a model judges the other sensors when one has failed.
 * means, groups, scratch: as dab_attribute; without groups, `group` is the number of an input. A group that no input has
 * leaves the input as it is.
 * Returns as dab_assess, or DAB_ERR_NO_MEANS. */
DAB_API DAB_WARN_UNUSED dab_status dab_assess_without(const dab_model *model, const float *input, size_t inputs,
    const float *means, const uint32_t *groups, uint32_t group, void *scratch, size_t scratch_bytes,
    dab_assessment *out);

/* The training means of the inputs, that dab_attribute goes by unless it is given others: `inputs` floats.
 * Returns DAB_OK, DAB_ERR_NO_MEANS, DAB_ERR_OUTPUT_LENGTH, or -1 to -6 for bad pointers. */
DAB_API DAB_WARN_UNUSED dab_status dab_model_means(const dab_model *model, float *means, size_t inputs);

/* The name of an input, counting from 0, as UTF-8 with a NUL at the end, into `bytes` bytes at `name`.
 * Returns DAB_OK, DAB_ERR_NO_NAME if the artifact does not name its inputs or has fewer, DAB_ERR_TOO_SMALL, or -1 to -6
 * for bad pointers. After an error `name` is empty, if it has room for a NUL. */
DAB_API DAB_WARN_UNUSED dab_status dab_input_name(const dab_model *model, size_t input, char *name, size_t bytes);

/* dab_input_name of an output: of a class, or of a regression's target. A model whose labels were 0, 1, 2 ... has no
 * names: then the class is its number. Returns as dab_input_name. */
DAB_API DAB_WARN_UNUSED dab_status dab_output_name(const dab_model *model, size_t output, char *name, size_t bytes);

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

#define DAB_EXPLORATION_SAVED_BYTES 40 /* Bytes of a saved exploration state. */
#define DAB_SCHEDULE_CONSTANT 0        /* schedule: always `start`. */
#define DAB_SCHEDULE_LINEAR 1          /* schedule: a line from `start` to `end` in `steps` steps, then `end`. */
#define DAB_SCHEDULE_EXPONENTIAL 2     /* schedule: end + (start - end) * exp(-step / steps). */

/* An exploration bonus, in memory of the caller. Its words are private; copying the struct copies the bonus. */
typedef struct dab_exploration {
    uint64_t words[16]; /* Private. */
} dab_exploration;
DAB_STATIC_ASSERT(exploration_size, sizeof(dab_exploration) == 128);
DAB_STATIC_ASSERT(exploration_words, offsetof(dab_exploration, words) == 0);

/* How an uncertainty becomes a reward:
 *
 *   bonus = weight(step) * clip((u - mean) / std, +-clip)
 *
 * with the running mean and standard deviation of the uncertainties given to dab_exploration_update. Set `size`. */
typedef struct dab_exploration_config {
    uint32_t size;     /* sizeof(dab_exploration_config), set by the caller. */
    uint32_t schedule; /* One of DAB_SCHEDULE_. */
    float start;       /* Weight at step 0. */
    float end;         /* Weight at the end; unused by DAB_SCHEDULE_CONSTANT. */
    uint64_t steps;    /* Length of the schedule, above 0; unused by DAB_SCHEDULE_CONSTANT. */
    uint64_t warmup;   /* Updates before the first bonus, at least 2; until then the bonus is 0. */
    float clip;        /* Largest magnitude of a normalised uncertainty, above 0. */
    uint32_t centered; /* 1: subtract the running mean, so that typical inputs give 0; 0: do not. */
} dab_exploration_config;
DAB_STATIC_ASSERT(exploration_config_size, sizeof(dab_exploration_config) == 40);
DAB_STATIC_ASSERT(exploration_config_centered, offsetof(dab_exploration_config, centered) == 36);

/* Starts a bonus that has seen nothing.
 * Returns DAB_OK, DAB_ERR_CONFIG if a value is out of its range, or -1 to -7 for bad pointers and sizes. */
DAB_API DAB_WARN_UNUSED dab_status dab_exploration_init(dab_exploration *exploration,
    const dab_exploration_config *config);

/* Updates the running mean and deviation with `count` uncertainties, in their order.
 * Returns DAB_OK, DAB_ERR_NON_FINITE if one is not finite (then none of them counts), or -1 to -6 for bad pointers. */
DAB_API DAB_WARN_UNUSED dab_status dab_exploration_update(dab_exploration *exploration, const float *uncertainties,
    size_t count);

/* The bonus of each of `count` uncertainties at `step` of the training. Mean and deviation stay as they are.
 * Threads: `exploration` may be shared while nobody updates it.
 * Returns DAB_OK, DAB_ERR_NON_FINITE, or -1 to -6 for bad pointers. */
DAB_API DAB_WARN_UNUSED dab_status dab_exploration_compute(const dab_exploration *exploration,
    const float *uncertainties, size_t count, uint64_t step, float *bonuses);

/* Saves mean and deviation (not the configuration) into DAB_EXPLORATION_SAVED_BYTES bytes, the same on every machine.
 * Returns DAB_OK, DAB_ERR_TOO_SMALL, or -1 to -6 for bad pointers. */
DAB_API DAB_WARN_UNUSED dab_status dab_exploration_save(const dab_exploration *exploration, void *bytes,
    size_t byte_count);

/* Continues with a saved mean and deviation.
 * Returns DAB_OK, DAB_ERR_SAVED_STATE, or -1 to -6 for bad pointers and sizes; on an error, the exploration stays as it was. */
DAB_API DAB_WARN_UNUSED dab_status dab_exploration_restore(dab_exploration *exploration, const void *bytes,
    size_t byte_count);

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

#define DAB_OK 0                             /* Success. */
#define DAB_ERR_NULL (-1)                    /* A pointer is NULL. */
#define DAB_ERR_MISALIGNED (-2)              /* A pointer is not aligned for what it points to. */
#define DAB_ERR_OVERLAP (-3)                 /* Memory that is written overlaps other memory of the call. */
#define DAB_ERR_TOO_SMALL (-4)               /* Memory is smaller than its macro or function says. */
#define DAB_ERR_TOO_LARGE (-5)               /* A size is larger than the address space. */
#define DAB_ERR_NOT_INITIALIZED (-6)         /* Not a model, monitor, exploration or memory, or not initialized. */
#define DAB_ERR_STRUCT_SIZE (-7)             /* The size member of a struct is not set, or not a size of it. */
#define DAB_ERR_CONFIG (-8)                  /* A configuration value is out of its range. */
#define DAB_ERR_NOT_CALIBRATED (-9)          /* No calibration table, or too few held-out inputs for the rate. */
#define DAB_ERR_LENGTH (-10)                 /* The input does not have as many values as the model takes. */
#define DAB_ERR_NON_FINITE (-11)             /* A value is NaN or infinite. */
#define DAB_ERR_SCRATCH (-12)                /* Scratch is smaller than dab_scratch_bytes() says. */
#define DAB_ERR_OUTPUT_LENGTH (-13)          /* Memory for results does not have the length of the model's. */
#define DAB_ERR_SAVED_STATE (-14)            /* The saved state is absent, damaged or of another configuration. */
#define DAB_ERR_UNKNOWN_MEMBER (-15)         /* A configuration sets a member that the library does not know. */
#define DAB_ERR_RATES (-16)                  /* A rate is not between 0 and 1, or unfamiliar is above doubtful. */
#define DAB_ERR_ARTIFACT_MISALIGNED (-17)    /* The artifact does not start at a multiple of 4 bytes. */
#define DAB_ERR_MEMORY_FULL (-18)            /* There is no place for another taught code. */
#define DAB_ERR_SATURATED (-19)              /* An input or an encoded value is 2^50 or more: it cannot be taught. */
#define DAB_ERR_SELF_TEST (-20)              /* A known answer came out differently: do not use the model here. */
#define DAB_ERR_SELF_TEST_DIGEST (-21)       /* Known answers agree, but not all bits behind them. */
#define DAB_ERR_NO_MEANS (-22)               /* The artifact has no training means, and none were given. */
#define DAB_ERR_NO_NAME (-23)                /* The artifact does not have this name. */
#define DAB_ERR_NO_MONITOR (-24)             /* The artifact has no monitor. */
#define DAB_ERR_NO_BANDS (-25)               /* The artifact has no bands of its predictions. */
#define DAB_ERR_FILE (-30)                   /* The file cannot be read. */
#define DAB_ERR_NOT_AN_ARTIFACT (-100)       /* The bytes do not begin like an artifact. */
#define DAB_ERR_TRUNCATED (-101)             /* The artifact ends too early. */
#define DAB_ERR_TRAILING_BYTES (-102)        /* Bytes follow after the end of the artifact. */
#define DAB_ERR_HEADER_CHECKSUM (-103)       /* The header is damaged. */
#define DAB_ERR_VERSION (-104)               /* A format version that this library does not know. */
#define DAB_ERR_FEATURES (-105)              /* The artifact needs features that this library does not have. */
#define DAB_ERR_SCHEMA (-106)                /* The artifact follows another schema. */
#define DAB_ERR_BODY_CHECKSUM (-107)         /* The artifact is damaged. */
#define DAB_ERR_SECTION_LAYOUT (-108)        /* A section does not lie where the format has it. */
#define DAB_ERR_META_ENCODING (-109)         /* The meta section cannot be decoded. */
#define DAB_ERR_META_TRAILING_BYTES (-110)   /* Bytes are left over in the meta section. */
#define DAB_ERR_META_NOT_CANONICAL (-111)    /* The meta section is not in its shortest encoding. */
#define DAB_ERR_LIMIT (-112)                 /* A size in the artifact is zero or beyond the format's limits. */
#define DAB_ERR_RESIDUAL (-113)              /* A residual connection does not fit. */
#define DAB_ERR_PARAM_COUNT (-114)           /* The artifact does not have as many parameters as it says. */
#define DAB_ERR_PADDING (-115)               /* A padding byte of the artifact is not zero. */
#define DAB_ERR_PARAM_NON_FINITE (-117)      /* A parameter of the artifact is NaN or infinite. */
#define DAB_ERR_PARAM_RANGE (-118)           /* A parameter of the artifact is out of range. */
#define DAB_ERR_NOT_POSITIVE_DEFINITE (-119) /* A code of the artifact has no positive-definite covariance. */
#define DAB_ERR_PRIOR_SUM (-120)             /* The priors of the artifact do not sum to 1. */
#define DAB_ERR_ALPHA (-121)                 /* The temperature of the artifact is negative or out of range. */
#define DAB_ERR_CALIBRATION (-122)           /* The calibration table of the artifact is wrong. */
#define DAB_ERR_ARTIFACT_RATES (-123)        /* The false-alarm rates of the artifact are wrong. */
#define DAB_ERR_INFO (-124)                  /* The info section cannot be decoded (dab_model_open only). */
#define DAB_ERR_CHANNELS (-125)              /* A channel of the artifact needs a decoder that it does not have. */
#define DAB_ERR_MONITOR (-126)               /* A number of the monitor in the artifact is out of range. */

/* The words of a status, in English; "unknown status" for any other number. The text is static: never free it. */
DAB_API const char *dab_status_string(dab_status status);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DAB_H */
