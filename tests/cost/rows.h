/* What a row of the table runs: chosen by -DROW_..., with the numbers of -DFOLDER. */
#ifndef ROWS_H
#define ROWS_H
#include <stdbool.h>
#include <stdint.h>

#define QUOTE(x) #x
#define TEXT(x) QUOTE(x)
/* A file of numbers in flash, in a section of its own so that it does not count as code. */
#define NUMBERS(name, file)                                                                          \
    __asm__(".section .weights,\"a\"\n .balign 16\n .global " #name "\n" #name ": .incbin \"" file "\"\n .text\n"); \
    extern const float name[]

static volatile float sink;

#if defined(ROW_EMPTY)
enum { INPUTS = 1 };
static bool prepare(void) { return true; }
__attribute__((noinline)) static void call(const float *x) { sink = *x; }

#elif defined(ROW_DAB)
#include <dab.h>
NUMBERS(artifact, TEXT(FOLDER) "/model.dab");
static uint64_t storage[DAB_MODEL_BYTES / 8];
static float scratch[SCRATCH];
static dab_model *model;
static bool prepare(void) {
    return dab_model_init(storage, sizeof storage, artifact, BYTES, &model) == DAB_OK &&
           dab_self_test(model, scratch, sizeof scratch) == DAB_OK;
}
__attribute__((noinline)) static void call(const float *x) {
    dab_assessment a = {.size = sizeof a};
    dab_assess(model, x, INPUTS, scratch, sizeof scratch, &a);
    sink = a.uncertainty;
}

#elif defined(ROW_GUARD)
#include <dab.h>
NUMBERS(artifact, TEXT(FOLDER) "/model.dab");
static uint64_t storage[DAB_MODEL_BYTES / 8];
static float scratch[SCRATCH];
static dab_model *model;
static dab_monitor monitor;
static uint32_t now;
/* Every input ends a block of the drift channel: the longest of all calls. */
static bool prepare(void) {
    const dab_monitor_config config = {.size = sizeof config, .enter = 2, .exit = 1, .window = 100, .enter_votes = 50,
                                       .exit_votes = 50, .timeout = 5, .drift_block = 1, .drift_alarm = 9,
                                       .drift_levels = {0, 1, 2, 3, 4, 5, 6},
                                       .drift_p = {0.5f, 0.25f, 0.12f, 0.06f, 0.03f, 0.01f, 0.005f}};
    return dab_model_init(storage, sizeof storage, artifact, BYTES, &model) == DAB_OK &&
           dab_self_test(model, scratch, sizeof scratch) == DAB_OK && dab_monitor_init(&monitor, &config) == DAB_OK;
}
__attribute__((noinline)) static void call(const float *x) {
    dab_assessment a = {.size = sizeof a};
    sink = (float)dab_guard(model, &monitor, now++, x, INPUTS, 0, 0, scratch, sizeof scratch, &a);
}

#elif defined(ROW_CALL)
#include "calls.h"

#elif defined(ROW_MEMORY)
#include <dab_memory.h>
static uint64_t storage[DAB_MEMORY_BYTES(CODES, INPUTS) / 8];
static dab_memory *memory;
/* A full memory: every code costs the same, wherever the input is. */
static bool prepare(void) {
    const dab_memory_config config = {.size = sizeof config, .codes = CODES, .dim = INPUTS, .std = 0.1f};
    float x[INPUTS] = {0};
    if (dab_memory_init(storage, sizeof storage, &config, &memory) != DAB_OK) return false;
    for (int i = 0; i < CODES; i++) {
        dab_novelty n = {.size = sizeof n};
        x[i % INPUTS] += 1;
        if (dab_memory_observe(memory, x, 0, INPUTS, &n) != DAB_OK || !n.spawned) return false;
    }
    return true;
}
__attribute__((noinline)) static void call(const float *x) {
    dab_novelty n = {.size = sizeof n};
    if (dab_memory_observe(memory, x, 0, INPUTS, &n) == DAB_OK) sink = n.bonus;
}

#elif defined(ROW_PLAIN_A) || defined(ROW_PLAIN_C)
#include "../../dab-core/benches/assess/plain.c"
NUMBERS(weight, TEXT(FOLDER) "/weight.f32");
NUMBERS(mean, TEXT(FOLDER) "/mean.f32");
NUMBERS(precision, TEXT(FOLDER) "/precision.f32");
NUMBERS(log_det, TEXT(FOLDER) "/log_det.f32");
NUMBERS(prior, TEXT(FOLDER) "/prior.f32");
static bool prepare(void) { return true; }
#if defined(ROW_PLAIN_A)
enum { INPUTS = A_IN };
__attribute__((noinline)) static void call(const float *x) {
    sink = plain_a(x, (const void *)weight, (const void *)mean, (const void *)precision, log_det, prior, 1.0f);
}
#else
enum { INPUTS = C_IN };
__attribute__((noinline)) static void call(const float *x) {
    sink = plain_c(x, (const void *)weight, (const void *)mean, (const void *)precision, log_det, prior, 1.0f);
}
#endif

#elif defined(ROW_EMLEARN)
#include "emlearn.h"
static bool prepare(void) { return true; }
__attribute__((noinline)) static void call(const float *x) {
    float probabilities[CODES], score;
    gmm_score(x, INPUTS, probabilities, &score);
    sink = score;
}
#endif
#endif
