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

@memory saved@

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

@slots@

/* ---------------------------------------------------------------------------------------------------------------- *
 * A MODEL AND A MEMORY: encode an input, teach it, assess with what was taught.
 * ---------------------------------------------------------------------------------------------------------------- */

@taught@

/* ---------------------------------------------------------------------------------------------------------------- *
 * ELLIPSE: one ellipse around all features that were seen; cheap, for episodes and for features that are spread around
 * 0; and random features where there is no model.
 * ---------------------------------------------------------------------------------------------------------------- */

@ellipse@

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* DAB_MEMORY_H */
