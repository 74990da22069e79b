/* dab: how far is an input from what a neural network was trained on?
 *
 * A model is one file (.dab, made by `dab train` or `dab pack`; `dab export` makes a C array of it). This library
 * reads it where it lies, flash or RAM, and answers for each input: an uncertainty in nats, a p-value, a
 * verdict. It also predicts what the network predicts, explains, watches a stream of inputs (dab_monitor) and
 * rewards exploration (dab_exploration). The same bits come out on every processor.
 *
 * Words: the network encodes an input as a Gaussian in a latent space of `dim` dimensions. The model keeps a few
 * Gaussians, its codes, that summarise the training data there. The uncertainty is the expected distance of the
 * one from the others (Kullback-Leibler divergence, in nats); the p-value is the share of held-out training inputs
 * that were at least as uncertain; the verdict compares it with two false-alarm rates.
 *
 * USAGE. C99 and later, C++. Link with -ldab, or with libdab.a by its path, which needs nothing but memcpy, memmove,
 * memset and memcmp. The names in capitals are in model.c, made by `dab export model.dab --c model.c`; without it,
 * ask dab_scratch_bytes() and dab_model_shape().
 *
 *     static uint64_t storage[DAB_MODEL_BYTES / 8];
 *     static float scratch[DAB_ARTIFACT_SCRATCH_FLOATS];
 *
 *     dab_model *model;
 *     if (dab_model_init(storage, sizeof storage, dab_artifact, DAB_ARTIFACT_BYTES, &model) != DAB_OK) stop();
 *     if (dab_self_test(model, scratch, sizeof scratch) != DAB_OK) stop();       // once, at boot
 *
 *     dab_assessment a = { .size = sizeof a };
 *     dab_status s = dab_assess(model, input, DAB_ARTIFACT_INPUTS, scratch, sizeof scratch, &a);
 *     if (s != DAB_OK || a.verdict == DAB_UNFAMILIAR) {
 *         use_the_safe_controller();
 *     }
 *
 * MEMORY. All of it is the caller's: nothing is allocated, nothing must be freed, no pointer is kept but the
 * model's to its artifact. Storage and artifact stay where they are, unchanged, while the model is used.
 * Alignment: storage 8 bytes, artifact and scratch 4, everything else as its type. Pointers that are NULL or
 * misaligned, sizes that are too small, and memory that is written and overlaps other memory of the same call
 * (or a model, or its artifact) are refused with a code. What a library cannot see the caller must promise: that
 * memory exists for the length given, that a struct has the size that its first member says, that objects
 * are not written to by others, and that nobody writes what a call reads.
 *
 * THREADS. A `const dab_model *` may be used by any number of threads and interrupt handlers at once. Scratch,
 * monitors, explorations and results may not: one user at a time. There are no locks, no globals (but one atomic word
 * of libdab.so, which remembers the processor's instructions), no thread-local data. No call blocks, prints or calls
 * back; time depends on the model's shape alone.
 *
 * ERRORS. A dab_status is 0 or negative; dab_status_string() has the words. Results are written only on DAB_OK.
 * Numbers are never reused: a program may keep them. Inputs must be finite: a NaN is refused with
 * DAB_ERR_NON_FINITE, never assessed. dab_monitor_observe and dab_monitor_poll return a state instead: every
 * value other than DAB_NOMINAL means "use the fallback".
 *
 * STRUCTS that a call fills or reads begin with `size`: set it to sizeof the struct. That is how a program and a
 * library of different age understand each other. Later versions may add members, at the end, without a new
 * DAB_ABI_VERSION. An older program with a newer library: a result is written as far as the program knows it;
 * configuration members that the program does not have are taken as 0, which always means the behaviour before they
 * came. A newer program with an older library: members of a result that the library does not know are set to 0;
 * members of a configuration that it does not know must be 0, else the call returns DAB_ERR_UNKNOWN_MEMBER. A size
 * that is none of the struct's, or above 512, is refused (DAB_ERR_STRUCT_SIZE).
 *
 * VERSIONS. DAB_VERSION_ is this header's, dab_version() the library's. Both fit if dab_abi_version() is
 * DAB_ABI_VERSION. Artifacts have a format version of their own: dab_format_oldest(), dab_format_newest().
 *
 * HOSTS. Define DAB_HOST before including this header for dab_model_open and dab_model_close, which read
 * files and use the heap. They are in the shared library only.
 *
 * Below: numbers, structs, then functions in the order in which a program calls them.
 * Generated from dab-ffi; edit it there. */

#ifndef DAB_H
#define DAB_H

#include <stddef.h>
#include <stdint.h>

/* Success. */
#define DAB_OK 0
/* A pointer is NULL. */
#define DAB_ERR_NULL (-1)
/* A pointer is not aligned for what it points to. */
#define DAB_ERR_MISALIGNED (-2)
/* Memory that is written overlaps other memory of the call. */
#define DAB_ERR_OVERLAP (-3)
/* Memory is smaller than its macro or function says. */
#define DAB_ERR_TOO_SMALL (-4)
/* A size is larger than the address space. */
#define DAB_ERR_TOO_LARGE (-5)
/* This is not a model, monitor or exploration, or was not initialized. */
#define DAB_ERR_NOT_INITIALIZED (-6)
/* The size member of a struct is not set, or not a size of it. */
#define DAB_ERR_STRUCT_SIZE (-7)
/* A configuration value is out of its range. */
#define DAB_ERR_CONFIG (-8)
/* The model has no calibration table, or one of too few held-out inputs for the rate. */
#define DAB_ERR_NOT_CALIBRATED (-9)
/* The input has not as many values as the model takes. */
#define DAB_ERR_LENGTH (-10)
/* A value is NaN or infinite. */
#define DAB_ERR_NON_FINITE (-11)
/* Scratch is smaller than dab_scratch_bytes() says. */
#define DAB_ERR_SCRATCH (-12)
/* Memory for results has not as many values as the model gives. */
#define DAB_ERR_OUTPUT_LENGTH (-13)
/* The bytes are not a saved state, or are damaged. */
#define DAB_ERR_SAVED_STATE (-14)
/* A configuration sets a member that this library, older than the program, does not know. */
#define DAB_ERR_UNKNOWN_MEMBER (-15)
/* A known answer came out differently: do not use the model here. */
#define DAB_ERR_SELF_TEST (-20)
/* Known answers agree, the bits of their distances or outputs do not. */
#define DAB_ERR_SELF_TEST_DIGEST (-21)
/* The file cannot be read. */
#define DAB_ERR_FILE (-30)
/* The bytes do not begin like an artifact. */
#define DAB_ERR_NOT_AN_ARTIFACT (-100)
/* The artifact ends too early. */
#define DAB_ERR_TRUNCATED (-101)
/* Bytes follow after the end of the artifact. */
#define DAB_ERR_TRAILING_BYTES (-102)
/* The header is damaged. */
#define DAB_ERR_HEADER_CHECKSUM (-103)
/* A format version that this library does not know. */
#define DAB_ERR_VERSION (-104)
/* The artifact needs features that this library lacks. */
#define DAB_ERR_FEATURES (-105)
/* The artifact follows another schema. */
#define DAB_ERR_SCHEMA (-106)
/* The artifact is damaged. */
#define DAB_ERR_BODY_CHECKSUM (-107)
/* A section does not lie where the format has it. */
#define DAB_ERR_SECTION_LAYOUT (-108)
/* The meta section cannot be decoded. */
#define DAB_ERR_META_ENCODING (-109)
/* Bytes are left over in the meta section. */
#define DAB_ERR_META_TRAILING_BYTES (-110)
/* The meta section is not in its shortest encoding. */
#define DAB_ERR_META_NOT_CANONICAL (-111)
/* A size in the artifact is zero or beyond the format's limits. */
#define DAB_ERR_LIMIT (-112)
/* A residual connection does not fit. */
#define DAB_ERR_RESIDUAL (-113)
/* The artifact has not as many parameters as it says. */
#define DAB_ERR_PARAM_COUNT (-114)
/* A padding byte of the artifact is not zero. */
#define DAB_ERR_PADDING (-115)
/* The artifact does not start at a multiple of 4 bytes. */
#define DAB_ERR_ARTIFACT_MISALIGNED (-116)
/* A parameter of the artifact is NaN or infinite. */
#define DAB_ERR_PARAM_NON_FINITE (-117)
/* A parameter of the artifact is out of range. */
#define DAB_ERR_PARAM_RANGE (-118)
/* A code of the artifact has no positive-definite covariance. */
#define DAB_ERR_NOT_POSITIVE_DEFINITE (-119)
/* The priors of the artifact do not sum to 1. */
#define DAB_ERR_PRIOR_SUM (-120)
/* The temperature of the artifact is negative or out of range. */
#define DAB_ERR_ALPHA (-121)
/* The calibration table of the artifact is wrong. */
#define DAB_ERR_CALIBRATION (-122)
/* The false-alarm rates are not 0 < unfamiliar <= doubtful < 1. */
#define DAB_ERR_RATES (-123)
/* The info section of the file cannot be decoded (only dab_model_open reads it). */
#define DAB_ERR_INFO (-124)
/* Version of this header, major part. */
#define DAB_VERSION_MAJOR 0
/* Version of this header, minor part. */
#define DAB_VERSION_MINOR 1
/* Version of this header, patch part. */
#define DAB_VERSION_PATCH 0
/* Binary interface of this header. Functions and struct members may be added to it; a change that could break
 * a compiled program gets a new number. */
#define DAB_ABI_VERSION 1
/* Bytes of storage for a model, on every target. Declare it as uint64_t storage[DAB_MODEL_BYTES / 8]: it
 * must start at a multiple of 8. */
#define DAB_MODEL_BYTES 640
/* dab_shape.covariance: independent latent dimensions. */
#define DAB_COVARIANCE_DIAGONAL 0
/* dab_shape.covariance: full, by eigen-decomposition. */
#define DAB_COVARIANCE_SPECTRAL 1
/* dab_shape.covariance: full, by triangular factor. */
#define DAB_COVARIANCE_CHOLESKY 2
/* dab_shape.task: the model has no decoder. */
#define DAB_TASK_NONE 0
/* dab_shape.task: outputs are means. */
#define DAB_TASK_REGRESSION 1
/* dab_shape.task: outputs are logits, one per class. */
#define DAB_TASK_CLASSIFICATION 2
/* dab_assessment.verdict: the model has no calibration table. */
#define DAB_NO_VERDICT (-1)
/* dab_assessment.verdict: like the training data. */
#define DAB_FAMILIAR 0
/* dab_assessment.verdict: rare among the training data. */
#define DAB_DOUBTFUL 1
/* dab_assessment.verdict: unlike the training data. */
#define DAB_UNFAMILIAR 2
/* dab_assessment.flags: p_value and verdict are there. */
#define DAB_FLAG_CALIBRATED 1
/* dab_assessment.flags: the uncertainty overflowed and is the largest finite number. */
#define DAB_FLAG_SATURATED 2
/* dab_monitor_observe: the learned controller may drive, its inputs are familiar. */
#define DAB_NOMINAL 0
/* dab_monitor_observe: use the fallback; inputs are unfamiliar, or have not been familiar for long enough. */
#define DAB_FALLBACK 1
/* dab_monitor_observe: use the fallback; there is no recent input. */
#define DAB_STALE 2
/* Bytes of a saved exploration state. */
#define DAB_EXPLORATION_SAVED_BYTES 40
/* dab_exploration_config.schedule: always `start`. */
#define DAB_SCHEDULE_CONSTANT 0
/* dab_exploration_config.schedule: a line from `start` to `end` in `steps` steps, then `end`. */
#define DAB_SCHEDULE_LINEAR 1
/* dab_exploration_config.schedule: end + (start - end) * exp(-step / steps). */
#define DAB_SCHEDULE_EXPONENTIAL 2

/* A loaded model. Opaque: it lies in storage of the caller. */
typedef struct dab_model dab_model;

/* Result of a call: DAB_OK, or one of the negative numbers above. */
typedef int32_t dab_status;

/* Sizes of a model. Set `size` to sizeof(dab_shape) before the call. */
typedef struct dab_shape {
  /* sizeof(dab_shape), set by the caller. */
  uint32_t size;
  /* Values per input. */
  uint32_t inputs;
  /* Values that the decoder gives; 0 without one. */
  uint32_t outputs;
  /* Number of codes. */
  uint32_t codes;
  /* Latent dimension. */
  uint32_t dim;
  /* Dense layers before the head. */
  uint32_t layers;
  /* Values that enter the head. */
  uint32_t features;
  /* One of DAB_COVARIANCE_. */
  uint32_t covariance;
  /* One of DAB_TASK_. */
  uint32_t task;
  /* Held-out inputs behind p-values and verdicts; 0: the model has no calibration table. */
  uint32_t calibration;
} dab_shape;

/* What a model says of one input. Set `size` to sizeof(dab_assessment) before the call. */
typedef struct dab_assessment {
  /* sizeof(dab_assessment), set by the caller and kept. */
  uint32_t size;
  /* Bits of DAB_FLAG_. */
  uint32_t flags;
  /* Expected distance from the training data, nats; larger is farther. Always finite. */
  float uncertainty;
  /* Share of familiar inputs that are at least this uncertain, in (0, 1]; -1 without a calibration table. */
  float p_value;
  /* DAB_FAMILIAR, DAB_DOUBTFUL, DAB_UNFAMILIAR or DAB_NO_VERDICT. */
  int32_t verdict;
  /* The closest code, counting from 0. */
  uint32_t nearest;
  /* Its distance, nats. */
  float nearest_distance;
} dab_assessment;

/* A monitor, in memory of the caller. Its words are private; copying the struct copies the monitor. */
typedef struct dab_monitor {
  /* Private. */
  uint64_t words[24];
} dab_monitor;

/* When to distrust a stream of inputs, and when to trust it again. Set `size` to sizeof(dab_monitor_config). */
typedef struct dab_monitor_config {
  /* sizeof(dab_monitor_config). */
  uint32_t size;
  /* An uncertainty above this, in nats, is a vote for the alarm (see dab_threshold). */
  float enter;
  /* An uncertainty at or below this is a vote for recovery; at most `enter`. */
  float exit;
  /* How many of the last inputs vote, 1 to 32. */
  uint32_t window;
  /* Votes that raise the alarm, 1 to window. */
  uint32_t enter_votes;
  /* Votes that end it, 1 to window. */
  uint32_t exit_votes;
  /* Ticks that an alarm lasts at least. It never delays one. */
  uint32_t min_dwell;
  /* Ticks without an input after which the last one is too old; 0: never; less than 2^31. */
  uint32_t timeout;
} dab_monitor_config;

/* What a monitor saw so far. Set `size` to sizeof(dab_monitor_statistics) before the call. */
typedef struct dab_monitor_statistics {
  /* sizeof(dab_monitor_statistics), set by the caller. */
  uint32_t size;
  /* DAB_NOMINAL, DAB_FALLBACK or DAB_STALE. */
  int32_t state;
  /* Inputs, with those that were not finite. */
  uint64_t inputs;
  /* Inputs that voted for the alarm. */
  uint64_t votes;
  /* How often trust was lost to unfamiliar inputs. */
  uint64_t alarms;
  /* How often the input went silent, or the clock jumped back. */
  uint64_t stales;
  /* Ticks in DAB_NOMINAL. */
  uint64_t nominal_ticks;
  /* Ticks in the other states. */
  uint64_t fallback_ticks;
  /* Mean of the finite uncertainties, nats. */
  float mean;
  /* Their standard deviation. */
  float std;
  /* The smallest. */
  float min;
  /* The largest. */
  float max;
} dab_monitor_statistics;

/* An exploration bonus, in memory of the caller. Its words are private; copying the struct copies the bonus. */
typedef struct dab_exploration {
  /* Private. */
  uint64_t words[16];
} dab_exploration;

/* How an uncertainty becomes a reward:
 *
 *   bonus = weight(step) * clip((u - mean) / std, +-clip)
 *
 * with the running mean and standard deviation of the uncertainties given to dab_exploration_update.
 * Set `size` to sizeof(dab_exploration_config). */
typedef struct dab_exploration_config {
  /* sizeof(dab_exploration_config). */
  uint32_t size;
  /* One of DAB_SCHEDULE_. */
  uint32_t schedule;
  /* Weight at step 0. */
  float start;
  /* Weight in the end; unused by DAB_SCHEDULE_CONSTANT. */
  float end;
  /* Length of the schedule, above 0; unused by DAB_SCHEDULE_CONSTANT. */
  uint64_t steps;
  /* Updates before the first bonus, at least 2; until then it is 0. */
  uint64_t warmup;
  /* Largest magnitude of a normalised uncertainty, above 0. */
  float clip;
  /* 1: subtract the running mean, so that typical inputs give 0. 0: do not. */
  uint32_t centered;
} dab_exploration_config;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/* The words of a status, in English, without a full stop. For a number that is none: "unknown status".
 * The text is static: never free it. */
const char *dab_status_string(dab_status status);

/* Version of the linked library, such as "0.1.0". The text is static. */
const char *dab_version(void);

/* Binary interface of the linked library. Use it only if it equals DAB_ABI_VERSION. */
uint32_t dab_abi_version(void);

/* Oldest artifact format that the linked library reads: major version * 65536 + minor version. */
uint32_t dab_format_oldest(void);

/* Newest artifact format that the linked library knows in full. It also reads later minor versions, unless
 * they need features that it lacks (DAB_ERR_FEATURES). */
uint32_t dab_format_newest(void);

/* DAB_MODEL_BYTES of the linked library. If it is larger than the macro that a program was compiled with,
 * storage of the macro's size is refused (DAB_ERR_TOO_SMALL), never overrun. */
size_t dab_model_bytes(void);

/* Checks an artifact, all of it, and makes a model of it in `storage`.
 * storage: DAB_MODEL_BYTES bytes at a multiple of 8. artifact: the bytes of a .dab file at a multiple of 4, in
 * flash or RAM; read in place, so both must stay, unchanged, as long as the model is used. There is nothing to
 * free.
 * Returns DAB_OK, or what is wrong with the arguments (-1 to -5) or the artifact (-100 and below). *out is
 * written only on DAB_OK. */
dab_status dab_model_init(void *storage,
                          size_t storage_bytes,
                          const void *artifact,
                          size_t artifact_bytes,
                          dab_model **out);

/* Sizes of the model. *out is written only on DAB_OK. */
dab_status dab_model_shape(const dab_model *model, dab_shape *out);

/* Bytes of scratch that every call on this model needs, a multiple of 4; 0 when `model` is none. */
size_t dab_scratch_bytes(const dab_model *model);

/* Proves that file, library and floating-point environment agree: the known answers inside the artifact must
 * come out bit for bit. Call it once, at boot; if it fails, do not use the model.
 * Returns DAB_OK, DAB_ERR_SELF_TEST, DAB_ERR_SELF_TEST_DIGEST or DAB_ERR_SCRATCH. */
dab_status dab_self_test(const dab_model *model, void *scratch, size_t scratch_bytes);

/* Gives verdicts at other false-alarm rates than the artifact's: of familiar inputs, the share `doubtful` may
 * be called doubtful or worse, the share `unfamiliar` unfamiliar.
 * Threads: the one call that changes a model. Make it before others use the model.
 * Returns DAB_OK, or DAB_ERR_RATES unless 0 < unfamiliar <= doubtful < 1. */
dab_status dab_set_thresholds(dab_model *model, float doubtful, float unfamiliar);

/* The uncertainty, in nats, that at most the share `rate` of familiar inputs exceeds: a threshold for a
 * monitor.
 * Returns DAB_OK, DAB_ERR_RATES unless 0 < rate < 1, or DAB_ERR_NOT_CALIBRATED. *nats is written only on DAB_OK. */
dab_status dab_threshold(const dab_model *model,
                         float rate,
                         float *nats);

/* How far `input` lies from the training data.
 * input: `inputs` floats, as many as dab_shape.inputs. scratch: `scratch_bytes` bytes at a multiple of 4, at
 * least dab_scratch_bytes(model); contents ignored before and after.
 * Threads: `model` may be shared, `scratch` may not.
 * Returns DAB_OK, DAB_ERR_LENGTH, DAB_ERR_NON_FINITE, DAB_ERR_SCRATCH, or -1 to -7 for bad pointers; *out is
 * written only on DAB_OK. */
dab_status dab_assess(const dab_model *model,
                      const float *input,
                      size_t inputs,
                      void *scratch,
                      size_t scratch_bytes,
                      dab_assessment *out);

/* dab_assess for many inputs: `rows` inputs of `inputs` floats, one behind the other, and `rows` assessments. Set
 * the size of the first assessment: it is the distance from one to the next.
 * Returns as dab_assess. Either all rows are assessed or, if one has a value that is not finite, none: *out is
 * written only on DAB_OK. */
dab_status dab_assess_batch(const dab_model *model,
                            const float *input,
                            size_t rows,
                            size_t inputs,
                            void *scratch,
                            size_t scratch_bytes,
                            dab_assessment *out);

/* The assessment of `input`, and what the model predicts: means (regression) or logits (classification).
 * outputs: `output_count` floats, as many as dab_shape.outputs.
 * Returns as dab_assess, and DAB_ERR_OUTPUT_LENGTH; results are written only on DAB_OK. */
dab_status dab_predict(const dab_model *model,
                       const float *input,
                       size_t inputs,
                       float *outputs,
                       size_t output_count,
                       void *scratch,
                       size_t scratch_bytes,
                       dab_assessment *out);

/* Why the input is as far as it is.
 * distances: nats to each of `codes` codes. assignment: the weight of each, sum 1. dimensions: what each of `dim`
 * latent dimensions contributes to the uncertainty, nats, sum dab_assessment.uncertainty; negative ones make the
 * input more familiar. `codes` and `dim` are those of dab_shape.
 * Returns as dab_assess, and DAB_ERR_OUTPUT_LENGTH; results are written only on DAB_OK. */
dab_status dab_explain(const dab_model *model,
                       const float *input,
                       size_t inputs,
                       float *distances,
                       float *assignment,
                       size_t codes,
                       float *dimensions,
                       size_t dim,
                       void *scratch,
                       size_t scratch_bytes,
                       dab_assessment *out);

/* Starts a monitor. It has seen nothing and trusts nothing: it is DAB_STALE, and DAB_FALLBACK from the first input
 * until enough of them were familiar.
 * Returns DAB_OK, or DAB_ERR_CONFIG for a value out of its range. *monitor is written only on DAB_OK. */
dab_status dab_monitor_init(dab_monitor *monitor,
                            const dab_monitor_config *config);

/* Takes in an uncertainty (dab_assessment.uncertainty) that was measured at tick `now`, and says who may drive.
 * now: any counter that goes up and wraps around at 2^32; its unit is the configuration's. A step back is
 * DAB_STALE. An uncertainty that is not finite is a vote for the alarm.
 * Threads: one at a time per monitor. The cost is constant.
 * Returns DAB_NOMINAL, DAB_FALLBACK, DAB_STALE or a negative DAB_ERR_ number: "if not DAB_NOMINAL, use the
 * fallback" is right for all of them. */
int32_t dab_monitor_observe(dab_monitor *monitor, uint32_t now, float uncertainty);

/* Says who may drive at tick `now` when there is no new input, so that silence is noticed.
 * Returns as dab_monitor_observe. */
int32_t dab_monitor_poll(dab_monitor *monitor, uint32_t now);

/* What the monitor saw so far. *out is written only on DAB_OK. */
dab_status dab_monitor_stats(const dab_monitor *monitor, dab_monitor_statistics *out);

/* Starts a bonus that has seen nothing.
 * Returns DAB_OK, or DAB_ERR_CONFIG for a value out of its range. *exploration is written only on DAB_OK. */
dab_status dab_exploration_init(dab_exploration *exploration,
                                const dab_exploration_config *config);

/* Teaches the normaliser `count` uncertainties, in their order.
 * Returns DAB_OK, or DAB_ERR_NON_FINITE if one is not finite: then none was taken. */
dab_status dab_exploration_update(dab_exploration *exploration,
                                  const float *uncertainties,
                                  size_t count);

/* The bonus of each of `count` uncertainties at `step` of the training. Teaches nothing.
 * Threads: `exploration` may be shared while nobody updates it.
 * Returns DAB_OK or DAB_ERR_NON_FINITE; bonuses are written only on DAB_OK. */
dab_status dab_exploration_compute(const dab_exploration *exploration,
                                   const float *uncertainties,
                                   size_t count,
                                   uint64_t step,
                                   float *bonuses);

/* Saves the normaliser (not the configuration) into DAB_EXPLORATION_SAVED_BYTES bytes, the same on every machine.
 * Returns DAB_OK or DAB_ERR_TOO_SMALL; *bytes is written only on DAB_OK. */
dab_status dab_exploration_save(const dab_exploration *exploration,
                                void *bytes,
                                size_t byte_count);

/* Continues with a saved normaliser.
 * Returns DAB_OK, DAB_ERR_TOO_SMALL or DAB_ERR_SAVED_STATE; *exploration is changed only on DAB_OK. */
dab_status dab_exploration_restore(dab_exploration *exploration, const void *bytes, size_t byte_count);

#if defined(DAB_HOST)
/* Reads a file, checks all of it, also the names and notes that dab_model_init skips, and makes a model of it, in
 * memory of its own. Close it with dab_model_close.
 * Declared only if DAB_HOST is defined before the header is included; in the shared library only.
 * path: UTF-8, NUL at the end.
 * Returns DAB_OK, DAB_ERR_FILE, DAB_ERR_INFO, or as dab_model_init. *out is written only on DAB_OK. */
dab_status dab_model_open(const char *path,
                          dab_model **out);
#endif

#if defined(DAB_HOST)
/* Frees a model that dab_model_open gave. NULL is allowed. Never use it for a model of dab_model_init. */
dab_status dab_model_close(dab_model *model);
#endif

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DAB_H */
