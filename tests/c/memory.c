/* dab_memory.h from C: a memory that learns, saved and restored, refusals, a model that is taught. */
#include "dab_memory.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cases.h"

static int failures;

#define CHECK(condition)                                                    \
    do {                                                                    \
        if (!(condition)) {                                                 \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);          \
            failures++;                                                     \
        }                                                                   \
    } while (0)
#define GIVES(call, status) CHECK((call) == (status))

enum { CODES = 5, DIM = 2 };

static void memory_learns(void) {
    static uint64_t storage[DAB_MEMORY_BYTES(CODES, DIM) / 8], other[DAB_MEMORY_BYTES(CODES + 3, DIM) / 8];
    static unsigned char saved[DAB_MEMORY_SAVED_BYTES(CODES, DIM)];
    const float here[DIM] = {0.3f, 0.5f}, there[DIM] = {0.9f, 0.5f}, std[DIM] = {0.1f, 0.1f};
    const float broken[DIM] = {0.3f, -2e15f};
    float mean[DIM], width[DIM], count = 0;
    dab_memory_config config = {0};
    dab_memory *memory = NULL, *again = NULL;
    dab_novelty n = {0}, rows[3] = {{0}};
    dab_memory_statistics s = {0};
    int i;
    config.size = sizeof config;
    config.codes = CODES;
    config.dim = DIM;
    config.std = 0.1f;
    n.size = sizeof n;
    s.size = sizeof s;
    CHECK(sizeof storage >= dab_memory_bytes(CODES, DIM) && sizeof storage < dab_memory_bytes(CODES, DIM) + 8);
    GIVES(dab_memory_init(storage, sizeof storage, &config, &memory), DAB_OK);
    GIVES(dab_memory_assess(memory, here, NULL, DIM, &n), DAB_OK);
    CHECK(n.bonus == 1 && n.visits == 0 && n.uncertainty == FLT_MAX && !n.spawned);
    for (i = 0; i < 100; i++) {
        const float before = n.bonus;
        GIVES(dab_memory_observe(memory, here, i % 2 ? NULL : std, DIM, &n), DAB_OK);
        CHECK(n.bonus <= before && n.spawned == (i == 0));
    }
    CHECK(n.visits > 98 && n.bonus < 0.11f && n.nearest == 0 && n.uncertainty < 1e-3f);
    GIVES(dab_memory_assess(memory, there, NULL, DIM, &n), DAB_OK);
    CHECK(n.bonus > 0.99f && n.uncertainty > 10);

    /* A batch is one after the other. */
    {
        const float batch[3 * DIM] = {5, 5, 5, 5, 7, 7};
        rows[0].size = sizeof rows[0];
        GIVES(dab_memory_observe_batch(memory, batch, NULL, 3, DIM, rows), DAB_OK);
        CHECK(rows[0].spawned && !rows[1].spawned && rows[2].spawned && rows[1].visits == 1 && rows[2].size == sizeof n);
    }
    GIVES(dab_memory_stats(memory, &s), DAB_OK);
    CHECK(s.codes == CODES && s.dim == DIM && s.used == 3 && s.taught == 0 && s.visits == 103);

    /* Saved and restored, the two go on alike. */
    GIVES(dab_memory_save(memory, saved, s.saved_bytes - 1), DAB_ERR_TOO_SMALL);
    GIVES(dab_memory_save(memory, saved, sizeof saved), DAB_OK);
    config.codes = CODES + 3;
    GIVES(dab_memory_init(other, sizeof other, &config, &again), DAB_OK);
    GIVES(dab_memory_restore(again, saved, s.saved_bytes), DAB_OK);
    GIVES(dab_memory_observe(memory, there, NULL, DIM, &n), DAB_OK);
    GIVES(dab_memory_observe(again, there, NULL, DIM, &rows[0]), DAB_OK);
    CHECK(memcmp(&n, &rows[0], sizeof n) == 0);
    saved[60] ^= 1;
    GIVES(dab_memory_restore(again, saved, s.saved_bytes), DAB_ERR_SAVED_STATE);

    /* Taught codes outlive an episode. */
    GIVES(dab_memory_teach(memory, there, NULL, DIM, &n), DAB_OK);
    GIVES(dab_memory_clear(memory), DAB_OK);
    GIVES(dab_memory_stats(memory, &s), DAB_OK);
    CHECK(s.used == 1 && s.taught == 1);
    GIVES(dab_memory_code(memory, 0, mean, width, DIM, &count), DAB_OK);
    CHECK(mean[0] == there[0] && fabsf(width[1] - 0.1f) < 1e-6f && count == 1);
    GIVES(dab_memory_code(memory, 1, mean, width, DIM, &count), DAB_ERR_CONFIG);
    GIVES(dab_memory_code(memory, 0, mean, width, DIM - 1, &count), DAB_ERR_OUTPUT_LENGTH);
    GIVES(dab_memory_remove(memory, 1), DAB_ERR_CONFIG);
    GIVES(dab_memory_remove(memory, 0), DAB_OK);
    GIVES(dab_memory_teach(memory, broken, NULL, DIM, &n), DAB_ERR_SATURATED);
    GIVES(dab_memory_stats(memory, &s), DAB_OK);
    CHECK(s.taught == 0);
    for (i = 0; i < CODES; i++) {
        const float place[DIM] = {(float)(10 * i), 0};
        GIVES(dab_memory_teach(memory, place, NULL, DIM, &n), DAB_OK);
    }
    GIVES(dab_memory_teach(memory, there, NULL, DIM, &n), DAB_ERR_MEMORY_FULL);
    GIVES(dab_memory_stats(memory, &s), DAB_OK);
    CHECK(s.used == CODES && s.saved_bytes == DAB_MEMORY_SAVED_BYTES(CODES, DIM) && s.saved_bytes == sizeof saved);
    GIVES(dab_memory_save(memory, saved, sizeof saved), DAB_OK);
}

static void refusals(void) {
    static uint64_t storage[DAB_MEMORY_BYTES(CODES, DIM) / 8];
    const float here[DIM] = {0.3f, 0.5f}, nan[DIM] = {0, NAN}, none[DIM] = {0.1f, 0};
    dab_memory_config config = {0};
    dab_memory *memory = NULL;
    dab_novelty n = {0};
    float *inside = (float *)(void *)storage;
    config.size = sizeof config;
    config.codes = CODES;
    config.dim = DIM;
    n.size = sizeof n;
    memory = (dab_memory *)(void *)storage;
    GIVES(dab_memory_init(storage, sizeof storage, &config, &memory), DAB_ERR_CONFIG); /* no std */
    CHECK(memory == NULL); /* no old handle to go on with */
    config.std = 1;
    config.keep = 1.5f;
    GIVES(dab_memory_init(storage, sizeof storage, &config, &memory), DAB_ERR_CONFIG);
    config.keep = 0;
    config.dim = 1025;
    GIVES(dab_memory_init(storage, sizeof storage, &config, &memory), DAB_ERR_CONFIG);
    config.dim = DIM;
    GIVES(dab_memory_init(storage, sizeof storage - 8, &config, &memory), DAB_ERR_TOO_SMALL);
    GIVES(dab_memory_init(NULL, sizeof storage, &config, &memory), DAB_ERR_NULL);
    GIVES(dab_memory_init((char *)storage + 4, sizeof storage, &config, &memory), DAB_ERR_MISALIGNED);
    GIVES(dab_memory_init(storage, sizeof storage, &config, NULL), DAB_ERR_NULL);
    GIVES(dab_memory_observe((dab_memory *)(void *)storage, here, NULL, DIM, &n), DAB_ERR_NOT_INITIALIZED);
    GIVES(dab_memory_init(storage, sizeof storage, &config, &memory), DAB_OK);
    GIVES(dab_memory_observe(memory, here, NULL, DIM - 1, &n), DAB_ERR_LENGTH);
    GIVES(dab_memory_observe(memory, nan, NULL, DIM, &n), DAB_ERR_NON_FINITE);
    GIVES(dab_memory_observe(memory, here, none, DIM, &n), DAB_ERR_CONFIG);
    GIVES(dab_memory_observe(memory, NULL, NULL, DIM, &n), DAB_ERR_NULL);
    GIVES(dab_memory_observe(memory, inside, NULL, DIM, &n), DAB_ERR_OVERLAP);
    GIVES(dab_memory_observe(memory, here, NULL, DIM, (dab_novelty *)(void *)inside), DAB_ERR_STRUCT_SIZE);
    GIVES(dab_memory_observe(NULL, here, NULL, DIM, &n), DAB_ERR_NULL);
    CHECK(dab_memory_bytes(0, 1) == 0 && dab_memory_bytes(1, 1025) == 0 && dab_memory_bytes(65537, 1) == 0);
}

/* A state in two slots of flash: a write that is cut off at any byte leaves the old or the new one. */
static void slots(void) {
    enum { SLOT = 64, STATE = 9 };
    static const char *const states[3] = {"the first", "one later", "the third"};
    static uint32_t words[SLOT / 4];
    unsigned char flash[2][SLOT], *const ram = (unsigned char *)words;
    uint32_t sequence = 7, write;
    size_t bytes = 99, cut;
    int newest;
    memset(flash, 0xff, sizeof flash);
    GIVES(dab_slot_newest(flash[0], flash[1], SLOT, &sequence, &bytes), DAB_ERR_SAVED_STATE);
    CHECK(sequence == 7 && bytes == 99);
    GIVES(dab_slot_seal(ram, DAB_SLOT_HEAD_BYTES + STATE - 1, 0, STATE), DAB_ERR_TOO_SMALL);
    GIVES(dab_slot_seal(ram, SLOT, 0, (size_t)-1), DAB_ERR_TOO_SMALL);
    GIVES(dab_slot_seal(NULL, SLOT, 0, STATE), DAB_ERR_NULL);
    newest = -1;
    sequence = UINT32_MAX - 1; /* so that it goes around */
    for (write = 0; write < 3; write++) {
        for (cut = 0; cut <= DAB_SLOT_HEAD_BYTES + STATE; cut++) {
            memset(ram, 0, SLOT);
            memcpy(ram + DAB_SLOT_HEAD_BYTES, states[write], STATE);
            GIVES(dab_slot_seal(ram, SLOT, sequence + write, STATE), DAB_OK);
            memcpy(flash[newest == 0 ? 1 : 0], ram, cut);
            {
                uint32_t number = 0;
                const int found = dab_slot_newest(flash[0], flash[1], SLOT, &number, &bytes);
                if (cut < DAB_SLOT_HEAD_BYTES + STATE) {
                    CHECK(found == (newest < 0 ? DAB_ERR_SAVED_STATE : newest));
                } else {
                    CHECK(found == (newest == 0 ? 1 : 0) && number == sequence + write && bytes == STATE);
                    CHECK(found >= 0 && memcmp(flash[found] + DAB_SLOT_HEAD_BYTES, states[write], STATE) == 0);
                }
            }
        }
        newest = newest == 0 ? 1 : 0;
    }
    GIVES(dab_slot_newest(flash[0], NULL, SLOT, &sequence, &bytes), DAB_ERR_NULL);
    GIVES(dab_slot_newest(flash[0], flash[1], SLOT, NULL, &bytes), DAB_ERR_NULL);
    GIVES(dab_slot_newest(flash[0], flash[1], SLOT, &sequence, NULL), DAB_ERR_NULL);
    GIVES(dab_slot_newest(ram, ram, SLOT, words, &bytes), DAB_ERR_OVERLAP);
}

static void ellipses(void) {
    static uint64_t storage[64];
    const float one[3] = {3, 0, 0}, two[3] = {0, 3, 0}, bad[3] = {INFINITY, 0, 0};
    float features[8], again[8], square = 0;
    dab_ellipse *ellipse = NULL;
    GIVES(dab_ellipse_init(storage, 8, 3, 1, &ellipse), DAB_ERR_TOO_SMALL);
    GIVES(dab_ellipse_init(storage, sizeof storage, 3, 0, &ellipse), DAB_ERR_CONFIG);
    GIVES(dab_ellipse_init(storage, sizeof storage, 3, 1, &ellipse), DAB_OK);
    GIVES(dab_ellipse_observe(ellipse, one, 3, 1, &square), DAB_OK);
    CHECK(square == 9);
    GIVES(dab_ellipse_observe(ellipse, one, 3, 0, &square), DAB_OK);
    CHECK(square < 1);
    GIVES(dab_ellipse_observe(ellipse, two, 3, 0, &square), DAB_OK);
    CHECK(square == 9);
    GIVES(dab_ellipse_observe(ellipse, bad, 3, 0, &square), DAB_ERR_NON_FINITE);
    GIVES(dab_ellipse_observe(ellipse, one, 2, 0, &square), DAB_ERR_LENGTH);
    GIVES(dab_ellipse_observe(ellipse, one, 3, 2, &square), DAB_ERR_CONFIG);
    GIVES(dab_ellipse_clear(ellipse), DAB_OK);
    GIVES(dab_ellipse_observe(ellipse, one, 3, 0, &square), DAB_OK);
    CHECK(square == 9 && dab_ellipse_bytes(0) == 0 && dab_ellipse_bytes(3) <= sizeof storage);
    GIVES(dab_random_features(7, 1, one, 3, features, 8), DAB_OK);
    GIVES(dab_random_features(7, 1, one, 3, again, 8), DAB_OK);
    CHECK(memcmp(features, again, sizeof again) == 0 && fabsf(features[0]) < 1);
    GIVES(dab_random_features(8, 1, one, 3, again, 8), DAB_OK);
    CHECK(memcmp(features, again, sizeof again) != 0);
    GIVES(dab_random_features(7, 0, one, 3, features, 8), DAB_ERR_CONFIG);
}

static void taught(const model_case *m) {
    static uint64_t storage[DAB_MODEL_BYTES / 8], room[DAB_MEMORY_BYTES(4, 64) / 8];
    static float scratch[16384], mean[64], std[64], broken[4096];
    dab_memory_config config = {0};
    dab_memory *memory = NULL;
    dab_model *model = NULL;
    dab_assessment plain = {0}, before = {0}, after = {0};
    dab_memory_statistics s = {0};
    s.size = sizeof s;
    plain.size = before.size = after.size = sizeof plain;
    config.size = sizeof config;
    config.codes = 4;
    config.dim = m->dim;
    config.std = 1;
    config.spawn = 50;
    GIVES(dab_model_init(storage, sizeof storage, m->artifact, m->bytes, &model), DAB_OK);
    CHECK(dab_scratch_bytes(model) <= sizeof scratch);
    GIVES(dab_memory_init(room, sizeof room, &config, &memory), DAB_OK);
    GIVES(dab_encode(model, m->input, m->inputs, mean, std, m->dim, scratch, sizeof scratch), DAB_OK);
    CHECK(std[0] > 0 && mean[0] == mean[0]);
    GIVES(dab_encode(model, m->input, m->inputs, mean, std, m->dim + 1, scratch, sizeof scratch), DAB_ERR_OUTPUT_LENGTH);
    GIVES(dab_assess(model, m->input, m->inputs, scratch, sizeof scratch, &plain), DAB_OK);
    GIVES(dab_assess_taught(model, memory, m->input, m->inputs, scratch, sizeof scratch, &before), DAB_OK);
    CHECK(memcmp(&plain, &before, sizeof plain) == 0);
    GIVES(dab_teach(model, memory, m->input, m->inputs, scratch, sizeof scratch, &after), DAB_OK);
    CHECK(after.uncertainty <= before.uncertainty && after.p_value >= before.p_value);
    GIVES(dab_teach(model, memory, m->input, m->inputs, room, sizeof room, &after), DAB_ERR_OVERLAP);
    /* A broken sensor is not taught, and what was taught stays. */
    CHECK(m->inputs <= 4096);
    memcpy(broken, m->input, m->inputs * sizeof broken[0]);
    broken[m->inputs - 1] = 1e30f;
    GIVES(dab_teach(model, memory, broken, m->inputs, scratch, sizeof scratch, &before), DAB_ERR_SATURATED);
    CHECK(before.verdict == DAB_NO_VERDICT && before.uncertainty == FLT_MAX);
    GIVES(dab_memory_stats(memory, &s), DAB_OK);
    CHECK(s.taught == 1);
    GIVES(dab_teach(model, NULL, m->input, m->inputs, scratch, sizeof scratch, &after), DAB_ERR_NULL);
}

int main(void) {
    size_t i;
    memory_learns();
    refusals();
    slots();
    ellipses();
    for (i = 0; i < MODEL_COUNT; i++) {
        if (MODELS[i].dim <= 64) taught(&MODELS[i]);
    }
    if (failures) printf("%d checks failed\n", failures);
    return failures != 0;
}
