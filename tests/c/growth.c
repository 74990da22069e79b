/* A program of one age and a library of another: structs on the heap, of exactly the size that the program knows, so that
 * valgrind sees every byte too far. It is compiled with the frozen header. KNOWN is the number of members that the library
 * has more than that header (its feature `grown` adds one to each struct). */
#include "dab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "check.h"

enum { GROWN = 0x600d };

/* `count` structs of `bytes` bytes each, of noise but for the first one's size. */
static void *noise(size_t bytes, size_t count) {
    const uint32_t size = (uint32_t)bytes;
    unsigned char *block = malloc(bytes * count);
    if (!block) exit(2);
    memset(block, 0xa5, bytes * count);
    memcpy(block, &size, sizeof size);
    return block;
}

/* Whether what lies behind the first `bytes` of a result is right: the library's own members, then zeros. */
static int tail_is_right(const void *result, size_t bytes, size_t extra, size_t member) {
    const unsigned char *tail = (const unsigned char *)result + bytes;
    size_t i;
    for (i = 0; i < extra; i++) {
        const uint64_t value = i < KNOWN * member ? GROWN : 0;
        /* Little-endian, as every machine that runs this test. */
        if (tail[i] != (unsigned char)(value >> 8 * (i % member))) return 0;
    }
    return 1;
}

/* A configuration of `bytes` bytes, with `extra` bytes behind it, the last of which is `last`. */
static void *grown_config(const void *config, size_t bytes, size_t extra, unsigned char last) {
    unsigned char *block = noise(bytes + extra, 1);
    memcpy(block + sizeof(uint32_t), (const unsigned char *)config + sizeof(uint32_t), bytes - sizeof(uint32_t));
    memset(block + bytes, 0, extra);
    if (extra) block[bytes + extra - 1] = last;
    return block;
}

static void results(const model_case *m) {
    static uint64_t storage[DAB_MODEL_BYTES / 8];
    dab_model *model = NULL;
    float *scratch, *room;
    size_t bytes, members, row;
    CHECK(dab_model_init(storage, sizeof storage, m->artifact, m->bytes, &model) == DAB_OK);
    bytes = dab_scratch_bytes(model);
    scratch = malloc(bytes);
    room = malloc((m->outputs + 2 * m->codes + m->dim) * sizeof *room);
    if (!scratch || !room) exit(2);
    for (members = 0; members < 4; members++) {
        const size_t extra = 4 * members, size = sizeof(dab_assessment) + extra;
        unsigned char *all = noise(size, m->rows);
        dab_assessment *one = noise(size, 1);
        dab_shape *shape = noise(sizeof *shape + extra, 1);
        float *const weights = room + m->outputs, *const dimensions = weights + 2 * m->codes;
        CHECK(dab_model_shape(model, shape) == DAB_OK && shape->inputs == m->inputs && shape->dim == m->dim);
        CHECK(shape->size == sizeof *shape + extra && tail_is_right(shape, sizeof *shape, extra, 4));
        CHECK(dab_assess_batch(model, m->input, m->rows, m->inputs, scratch, bytes, (dab_assessment *)(void *)all) == DAB_OK);
        for (row = 0; row < m->rows; row++) {
            dab_assessment a;
            memcpy(&a, all + row * size, sizeof a);
            CHECK(a.size == size && memcmp(&a.uncertainty, &m->assessment[WORDS * row], 4) == 0);
            CHECK(memcmp(&a.nearest_distance, &m->assessment[WORDS * row + 4], 4) == 0);
            CHECK(tail_is_right(all + row * size, sizeof a, extra, 4));
        }
        CHECK(dab_assess(model, m->input, m->inputs, scratch, bytes, one) == DAB_OK);
        CHECK(memcmp(one, all, size) == 0);
        memset((char *)one + 4, 0xa5, size - 4);
        CHECK(dab_predict(model, m->input, m->inputs, room, m->outputs, scratch, bytes, one) == DAB_OK);
        CHECK(memcmp(one, all, size) == 0);
        memset((char *)one + 4, 0xa5, size - 4);
        CHECK(dab_explain(model, m->input, m->inputs, weights, weights + m->codes, m->codes, dimensions, m->dim, scratch,
                          bytes, one) == DAB_OK);
        CHECK(memcmp(one, all, size) == 0);
        /* Refused: what is smaller than the first layout, a part of a member, and a size that was never set. */
        one->size = (uint32_t)sizeof *one - 4;
        CHECK(dab_assess(model, m->input, m->inputs, scratch, bytes, one) == DAB_ERR_STRUCT_SIZE);
        one->size = (uint32_t)sizeof *one + 2;
        CHECK(dab_assess(model, m->input, m->inputs, scratch, bytes, one) == DAB_ERR_STRUCT_SIZE);
        one->size = 516;
        CHECK(dab_assess(model, m->input, m->inputs, scratch, bytes, one) == DAB_ERR_STRUCT_SIZE);
        free(one);
        free(all);
        free(shape);
    }
    free(room);
    free(scratch);
}

static void configurations(void) {
    const dab_monitor_config watch = {0, 2, 1, 5, 3, 4, 10, 20, 0, 0, 0, 0, {0}, {0}};
    const dab_exploration_config explore = {0, DAB_SCHEDULE_LINEAR, 1, 0, 100, 2, 5, 1};
    size_t members, value;
    for (members = 0; members < 4; members++)
        for (value = 0; value < 2; value++) {
            /* A member that the library knows is read; one that it does not know must be 0. */
            const dab_status expected = members == 0 || value == 0 ? DAB_OK
                                        : members <= KNOWN         ? DAB_ERR_CONFIG
                                                                   : DAB_ERR_UNKNOWN_MEMBER;
            dab_monitor_config *w = grown_config(&watch, sizeof watch, 4 * members, (unsigned char)value);
            dab_exploration_config *x = grown_config(&explore, sizeof explore, 8 * members, (unsigned char)value);
            dab_monitor_statistics *seen = noise(sizeof *seen + 8 * members, 1);
            dab_monitor *monitor = malloc(sizeof *monitor);
            dab_exploration *exploration = malloc(sizeof *exploration);
            if (!monitor || !exploration) exit(2);
            CHECK(dab_monitor_init(monitor, w) == expected);
            CHECK(dab_exploration_init(exploration, x) == expected);
            if (expected == DAB_OK) {
                const float u[3] = {1, 2, 3};
                float bonus[3];
                CHECK(dab_monitor_observe(monitor, 1, 0.5f) == DAB_FALLBACK);
                CHECK(dab_monitor_stats(monitor, seen) == DAB_OK && seen->inputs == 1 && seen->state == DAB_FALLBACK);
                CHECK(seen->size == sizeof *seen + 8 * members);
                CHECK(tail_is_right(seen, sizeof *seen, 8 * members, 8));
                CHECK(dab_exploration_update(exploration, u, 3) == DAB_OK);
                CHECK(dab_exploration_compute(exploration, u, 3, 0, bonus) == DAB_OK && bonus[2] > bonus[0]);
            }
            w->size -= 4;
            x->size = 3;
            CHECK(dab_monitor_init(monitor, w) == (members == 0 ? DAB_ERR_STRUCT_SIZE : DAB_OK));
            CHECK(dab_exploration_init(exploration, x) == DAB_ERR_STRUCT_SIZE);
            free(w);
            free(x);
            free(seen);
            free(monitor);
            free(exploration);
        }
}

int main(void) {
    size_t i;
    for (i = 0; i < MODEL_COUNT; i++) results(&MODELS[i]);
    configurations();
    return checked();
}
