/* dab_memory.h: learning where the program runs. How often was something like this seen before?
 *
 * A memory is a small codebook that starts empty. Each input, a vector with a standard deviation, is compared with the
 * codes and then learned: one that is far from all becomes a new code, any other moves the nearest one. Memory and time
 * are fixed; the bits are the same on every processor. Everything that dab.h says about memory, threads, errors and
 * structs holds here.
 *
 * EXPLORE, in the loop of a learning agent:
 *
 *     static uint64_t storage[DAB_MEMORY_BYTES(256, 4) / 8];
 *     dab_memory_config config = { .size = sizeof config, .codes = 256, .dim = 4, .std = 0.1f };
 *     dab_memory *memory;
 *     if (dab_memory_init(storage, sizeof storage, &config, &memory) != DAB_OK) stop();
 *
 *     dab_novelty n = { .size = sizeof n };
 *     if (dab_memory_observe(memory, state, NULL, 4, &n) == DAB_OK) reward += 0.1f * n.bonus;
 *
 * For Q-learning, centre the bonus: give it to dab_exploration_update and dab_exploration_compute, `centered` 1.
 *
 * TEACH, on a robot: an operator says that what the model calls unfamiliar is normal from now on.
 *
 *     if (button) s = dab_teach(model, memory, input, inputs, scratch, sizeof scratch, &a);
 *     else s = dab_assess_taught(model, memory, input, inputs, scratch, sizeof scratch, &a);
 *     if (s == DAB_OK && a.verdict == DAB_FAMILIAR) act();
 *     else fall_back();
 *
 * dab_guard does not know what was taught. With a monitor: dab_monitor_observe(&monitor, now, s == DAB_OK ? a.score : NAN).
 */

/* This file is generated: edit memory.h and the sources of dab-ffi. */

#ifndef DAB_MEMORY_H
#define DAB_MEMORY_H

#include "dab.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A number as size_t. */
#if defined(__cplusplus)
#define DAB_SIZE(number) static_cast<size_t>(number)
#else
#define DAB_SIZE(number) ((size_t)(number))
#endif

/* Bytes of storage for a memory, a multiple of 8 so that it can be uint64_t storage[DAB_MEMORY_BYTES(codes, dim) / 8]. */
#define DAB_MEMORY_BYTES(codes, dim) \
    ((DAB_MEMORY_HEAD_BYTES + 4 * (DAB_SIZE(codes) * (3 + 2 * DAB_SIZE(dim)) + 2 * DAB_SIZE(dim)) + 7) / 8 * 8)

/* Bytes of a saved memory all of whose codes are used: dab_memory_save never writes more. */
#define DAB_MEMORY_SAVED_BYTES(codes, dim) (DAB_MEMORY_SAVED_HEAD_BYTES + 4 * DAB_SIZE(codes) * (1 + 2 * DAB_SIZE(dim)))

/* ---------------------------------------------------------------------------------------------------------------- *
 * MEMORY
 * ---------------------------------------------------------------------------------------------------------------- */

#define DAB_MEMORY_HEAD_BYTES 96       /* Bytes of a memory besides its codes, see DAB_MEMORY_BYTES. */
#define DAB_MEMORY_SAVED_HEAD_BYTES 40 /* Bytes of a saved memory besides its codes, see DAB_MEMORY_SAVED_BYTES. */

/* A memory, in storage of the caller. Its contents are private. */
typedef struct dab_memory dab_memory;

/* How a memory scores and learns. Set `size`, `codes`, `dim` and `std`; 0 in any other member is its default. */
typedef struct dab_memory_config {
    uint32_t size;    /* sizeof(dab_memory_config), set by the caller. */
    uint32_t codes;   /* Places for codes, 1 to 65536. */
    uint32_t dim;     /* Values of an input, 1 to 1024. */
    /* Standard deviation of an input where a call gives none, in its unit: what is this near is the same. Above 0. */
    float std;
    float spawn;      /* An input farther than this (nats) from all codes becomes a code. Default 1. */
    float alpha;      /* Temperature: larger means that only near codes count. Default 1. */
    float widen;      /* A code's variance is at most so many times an input's, at least 1. Default 4. */
    /* What is left of every count after an observation, up to 1. Default 1: nothing is forgotten. */
    float keep;
    uint32_t horizon; /* Largest count of a code, up to 2^23. Default 2^20. */
} dab_memory_config;
DAB_STATIC_ASSERT(memory_config_size, sizeof(dab_memory_config) == 36);
DAB_STATIC_ASSERT(memory_config_horizon, offsetof(dab_memory_config, horizon) == 32);

/* What a memory says of one input. Set `size` before the call. */
typedef struct dab_novelty {
    uint32_t size;          /* sizeof(dab_novelty), set by the caller. */
    uint32_t spawned;       /* 1 if this call made a new code of the input, else 0. */
    float bonus;            /* 1 / sqrt(1 + visits): 1 for what was never seen, towards 0 for what was seen often. */
    float visits;           /* How often something like this was seen, a soft count. */
    float uncertainty;      /* Expected distance from the codes in nats; FLT_MAX while there are none. */
    uint32_t nearest;       /* The closest code, counting from 0; 0 while there are none. */
    float nearest_distance; /* Its distance, nats. */
} dab_novelty;
DAB_STATIC_ASSERT(novelty_size, sizeof(dab_novelty) == 28);
DAB_STATIC_ASSERT(novelty_nearest_distance, offsetof(dab_novelty, nearest_distance) == 24);

/* How full a memory is. Set `size` before the call. */
typedef struct dab_memory_statistics {
    uint32_t size;        /* sizeof(dab_memory_statistics), set by the caller. */
    uint32_t codes;       /* Places for codes. */
    uint32_t dim;         /* Values of an input. */
    uint32_t used;        /* Codes that there are; the first `taught` of them were taught. */
    uint32_t taught;      /* Taught codes. */
    uint32_t saved_bytes; /* Bytes that dab_memory_save writes now. */
    float visits;         /* Sum of all counts. */
} dab_memory_statistics;
DAB_STATIC_ASSERT(memory_statistics_size, sizeof(dab_memory_statistics) == 28);
DAB_STATIC_ASSERT(memory_statistics_visits, offsetof(dab_memory_statistics, visits) == 24);

/* Bytes of storage for a memory; 0 if a number is out of its range. DAB_MEMORY_BYTES is the same for the compiler. */
DAB_API size_t dab_memory_bytes(uint32_t codes, uint32_t dim);

/* Makes an empty memory in `storage`: dab_memory_bytes bytes at a multiple of 8, which stay where they are while the
 * memory is used. There is nothing to free.
 * Returns DAB_OK, DAB_ERR_CONFIG if a value is out of its range, or -1 to -7 for bad pointers and sizes. After an error *out
 * is NULL, and a memory that was in the storage is as it was. */
DAB_API DAB_WARN_UNUSED dab_status dab_memory_init(void *storage, size_t storage_bytes,
    const dab_memory_config *config, dab_memory **out);

/* How novel an input is. Nothing is learned.
 * mean: `dim` floats. std: their standard deviations, or NULL for the memory's own `std`.
 * Threads: one at a time for each memory, also here, because it has its scratch in it.
 * Returns DAB_OK, DAB_ERR_LENGTH, DAB_ERR_NON_FINITE, DAB_ERR_CONFIG if a deviation is not above 0, or -1 to -7 for bad
 * pointers and sizes. */
DAB_API DAB_WARN_UNUSED dab_status dab_memory_assess(dab_memory *memory, const float *mean, const float *std,
    size_t dim, dab_novelty *out);

/* dab_memory_assess; then the input is learned. The answer is of the memory before.
 * Returns as dab_memory_assess. */
DAB_API DAB_WARN_UNUSED dab_status dab_memory_observe(dab_memory *memory, const float *mean, const float *std,
    size_t dim, dab_novelty *out);

/* dab_memory_observe for `rows` inputs, one after the other, and an array of `rows` results, of which the first one has
 * its `size` set. If one value is refused, nothing is learned.
 * Returns as dab_memory_assess. */
DAB_API DAB_WARN_UNUSED dab_status dab_memory_observe_batch(dab_memory *memory, const float *mean, const float *std,
    size_t rows, size_t dim, dab_novelty *out);

/* "This is normal": makes a code of the input that is never forgotten; or, if a taught code is within `spawn` nats,
 * improves that one. The answer says how far the input was from what was taught before.
 * Returns as dab_memory_assess, DAB_ERR_MEMORY_FULL, or DAB_ERR_SATURATED: a value is 2^50 or more; teaching it would
 * make every broken sensor look normal. After an error nothing changes. */
DAB_API DAB_WARN_UNUSED dab_status dab_memory_teach(dab_memory *memory, const float *mean, const float *std,
    size_t dim, dab_novelty *out);

/* Forgets what was observed, at the end of an episode. What was taught stays.
 * Returns DAB_OK, or -1, -2 or -6 for a bad pointer. */
DAB_API DAB_WARN_UNUSED dab_status dab_memory_clear(dab_memory *memory);

/* Forgets taught code `index`; the last taught code gets its number.
 * Returns DAB_OK, DAB_ERR_CONFIG if there is no such code, or -1, -2 or -6 for a bad pointer. */
DAB_API DAB_WARN_UNUSED dab_status dab_memory_remove(dab_memory *memory, uint32_t index);

/* Code `index`: its mean and standard deviations, `dim` floats each, and how often it was seen.
 * Returns DAB_OK, DAB_ERR_OUTPUT_LENGTH, DAB_ERR_CONFIG if there is no such code, or -1 to -6 for bad pointers. */
DAB_API DAB_WARN_UNUSED dab_status dab_memory_code(dab_memory *memory, uint32_t index, float *mean, float *std,
    size_t dim, float *count);

/* How full the memory is.
 * Returns DAB_OK, or -1 to -7 for bad pointers and sizes. */
DAB_API DAB_WARN_UNUSED dab_status dab_memory_stats(dab_memory *memory, dab_memory_statistics *out);

/* Saves codes and settings (not `std`) into dab_memory_statistics.saved_bytes bytes, the same on every machine.
 * Returns DAB_OK, DAB_ERR_TOO_SMALL, or -1 to -6 for bad pointers. DAB_MEMORY_SAVED_BYTES(codes, dim) are always enough. */
DAB_API DAB_WARN_UNUSED dab_status dab_memory_save(dab_memory *memory, void *bytes, size_t byte_count);

/* Continues with a saved memory and its settings. It may have fewer codes than this one has places. byte_count may be
 * more than was saved, such as a whole page of flash.
 * Returns DAB_OK, DAB_ERR_SAVED_STATE if the bytes are damaged or do not fit, or -1 to -6 for bad pointers; on an error, the
 * memory stays as it was. */
DAB_API DAB_WARN_UNUSED dab_status dab_memory_restore(dab_memory *memory, const void *bytes, size_t byte_count);

/* ---------------------------------------------------------------------------------------------------------------- *
 * STATE IN FLASH: two slots, written in turn. A power cut at any byte leaves the old or the new state.
 *
 *     enum { STATE_BYTES = DAB_MEMORY_SAVED_BYTES(256, 4), SLOT_BYTES = DAB_SLOT_HEAD_BYTES + STATE_BYTES };
 *     static unsigned char ram[SLOT_BYTES];
 *     static uint32_t sequence = 0;      // of the newest slot
 *     static int32_t newest = -1;        // which slot that is, 0 or 1; negative: there is none yet
 *
 *     // At boot. flash[0] and flash[1] are the two places in flash, of SLOT_BYTES bytes each.
 *     dab_status load_state(dab_memory *memory) {
 *         size_t bytes = 0;
 *         newest = dab_slot_newest(flash[0], flash[1], SLOT_BYTES, &sequence, &bytes);
 *         return newest < 0 ? newest : dab_memory_restore(memory, flash[newest] + DAB_SLOT_HEAD_BYTES, bytes);
 *     }
 *
 *     // As often as you like. write_flash is yours, with whatever erasing it needs: 1 if all bytes were written.
 *     int save_state(dab_memory *memory) {                                   // 1 if the state is in flash
 *         const int32_t slot = newest == 0 ? 1 : 0;                          // not the one with the newest state
 *         dab_memory_statistics now = { .size = sizeof now };
 *         dab_status s = dab_memory_stats(memory, &now);
 *         if (s == DAB_OK) s = dab_memory_save(memory, ram + DAB_SLOT_HEAD_BYTES, STATE_BYTES);
 *         if (s == DAB_OK) s = dab_slot_seal(ram, SLOT_BYTES, sequence + 1, now.saved_bytes);
 *         if (s != DAB_OK || !write_flash(slot, ram, DAB_SLOT_HEAD_BYTES + now.saved_bytes)) return 0;
 *         sequence++;
 *         newest = slot;
 *         return 1;
 *     }
 * ---------------------------------------------------------------------------------------------------------------- */

#define DAB_SLOT_HEAD_BYTES 16 /* Bytes of a slot before its state. */

/* Makes a slot of `slot`, in RAM: a state of state_bytes bytes lies behind its first DAB_SLOT_HEAD_BYTES bytes, which are filled
 * in. sequence: the newest slot's sequence plus 1, after UINT32_MAX comes 0; any number for the first. Then write the
 * DAB_SLOT_HEAD_BYTES + state_bytes bytes to flash, over the slot that does not hold the newest state.
 * Returns DAB_OK, DAB_ERR_TOO_SMALL if the slot is shorter than that, or -1 or -5 for a bad pointer or size. */
DAB_API DAB_WARN_UNUSED dab_status dab_slot_seal(void *slot, size_t slot_bytes, uint32_t sequence,
    size_t state_bytes);

/* Which of two slots of slot_bytes bytes each, as they lie in flash, has the newest whole state: 0 or 1. *sequence is its
 * number, and its *state_bytes bytes lie behind the first DAB_SLOT_HEAD_BYTES ones.
 * Returns 0, 1, or an error: DAB_ERR_SAVED_STATE if neither slot is whole, -1 to -5 for bad pointers and sizes. After an error
 * nothing is written. */
DAB_API DAB_WARN_UNUSED dab_status dab_slot_newest(const void *first, const void *second, size_t slot_bytes,
    uint32_t *sequence, size_t *state_bytes);

/* ---------------------------------------------------------------------------------------------------------------- *
 * A MODEL AND A MEMORY: encode an input, teach it, assess with what was taught.
 * ---------------------------------------------------------------------------------------------------------------- */

/* The Gaussian that a model's encoder makes of `input`: mean and standard deviations, `dim` floats each
 * (dab_shape.dim). It is what a memory in the model's latent space observes.
 * Returns as dab_assess, or DAB_ERR_OUTPUT_LENGTH. */
DAB_API DAB_WARN_UNUSED dab_status dab_encode(const dab_model *model, const float *input, size_t inputs, float *mean,
    float *std, size_t dim, void *scratch, size_t scratch_bytes);

/* Teaches `memory`, whose `dim` is dab_shape.dim, that an input of `model` is normal. Its code is at least as wide as the
 * model's codes are on average. The answer is that of dab_assess_taught afterwards.
 * Only the first view can be taught, and only what lies within its axes. Look at the verdict afterwards: the input may still
 * be unfamiliar, although the call returned DAB_OK. `dab inspect` says if the axes of a view leave something out.
 * Returns as dab_assess, DAB_ERR_LENGTH if the memory has another dimension, DAB_ERR_MEMORY_FULL, or DAB_ERR_SATURATED: an
 * input or an encoded value is 2^50 or more; teaching it would make every broken sensor look normal. */
DAB_API DAB_WARN_UNUSED dab_status dab_teach(const dab_model *model, dab_memory *memory, const float *input,
    size_t inputs, void *scratch, size_t scratch_bytes, dab_assessment *out);

/* dab_assess where what was taught counts as familiar: the uncertainty is the smaller one of the model's and of the
 * distance from the taught codes in the first view, so is the unfamiliarity, and p-value and verdict follow. Teaching
 * never makes an input less familiar.
 * Returns as dab_assess, or DAB_ERR_LENGTH if the memory has another dimension. */
DAB_API DAB_WARN_UNUSED dab_status dab_assess_taught(const dab_model *model, dab_memory *memory, const float *input,
    size_t inputs, void *scratch, size_t scratch_bytes, dab_assessment *out);

/* ---------------------------------------------------------------------------------------------------------------- *
 * ELLIPSE: one ellipse around all features that were seen; cheap, for episodes and for features that are spread around
 * 0; and random features where there is no model.
 * ---------------------------------------------------------------------------------------------------------------- */

#define DAB_ELLIPSE_HEAD_BYTES 16 /* Bytes of an ellipse besides its numbers. */

/* An ellipse, in storage of the caller. Its contents are private. */
typedef struct dab_ellipse dab_ellipse;

/* Bytes of storage for an ellipse of dimension 1 to 1024; 0 for any other. */
DAB_API size_t dab_ellipse_bytes(uint32_t dim);

/* Makes an ellipse that has seen nothing in `storage`: dab_ellipse_bytes bytes at a multiple of 8. ridge: its first
 * size, above 0; a feature vector whose squared length equals `ridge` has half its novelty after one observation. Along
 * directions that were not seen, novelty is right to 1 % while the lengths of all learned features add up to at most
 * 2^16 sqrt(ridge).
 * Returns DAB_OK, DAB_ERR_CONFIG, or -1 to -5 for bad pointers and sizes. After an error *out is NULL, and an ellipse that was
 * in the storage is as it was. */
DAB_API DAB_WARN_UNUSED dab_status dab_ellipse_init(void *storage, size_t storage_bytes, uint32_t dim, float ridge,
    dab_ellipse **out);

/* The squared length of `features` in units of what was seen, at least 0: large for directions that are new. With
 * learn 1 they are learned afterwards, with 0 not.
 * Threads: one at a time for each ellipse. Returns DAB_OK, DAB_ERR_LENGTH, DAB_ERR_NON_FINITE,
 * DAB_ERR_CONFIG if `learn` is neither 0 nor 1, or -1 to -6 for bad pointers. */
DAB_API DAB_WARN_UNUSED dab_status dab_ellipse_observe(dab_ellipse *ellipse, const float *features, size_t dim,
    uint32_t learn, float *square);

/* Forgets what was seen.
 * Returns DAB_OK, or -1, -2 or -6 for a bad pointer. */
DAB_API DAB_WARN_UNUSED dab_status dab_ellipse_clear(dab_ellipse *ellipse);

/* Features of an observation where there is no model: tanh of `dim` random sums of its `inputs` values, each feature in
 * (-1, 1). The seed chooses the sums; nothing is stored. With values of about 1, a scale of 1 keeps tanh in its middle.
 * Returns DAB_OK, DAB_ERR_CONFIG unless scale is above 0, DAB_ERR_NON_FINITE, or -1 to -5 for bad pointers. */
DAB_API DAB_WARN_UNUSED dab_status dab_random_features(uint32_t seed, float scale, const float *input, size_t inputs,
    float *features, size_t dim);

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DAB_MEMORY_H */
