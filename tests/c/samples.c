/* The programs that the headers print, as tests/c_abi.rs takes them from there: a state in flash, and which sensor it is. */
#include <dab.h>
#include <dab_memory.h>

#include <math.h>
#include <string.h>

#include "check.h"
#include "model.c"

/* STATE IN FLASH: the program needs two slots, and something that writes one. */
static const unsigned char *flash[2];
static int write_flash(int32_t slot, const unsigned char *bytes, size_t count);

#include "flash.inc"

enum { SAVES = 5 };

static unsigned char cells[2][SLOT_BYTES];
static size_t power; /* bytes that are written before the power is cut */

static int write_flash(int32_t slot, const unsigned char *bytes, size_t count) {
    const size_t written = count < power ? count : power;
    memset(cells[slot], 0xff, SLOT_BYTES);
    memcpy(cells[slot], bytes, written);
    return written == count;
}

static dab_memory *fresh(uint64_t *storage, size_t bytes) {
    dab_memory_config config = {.size = sizeof config, .codes = 256, .dim = 4, .std = 0.1f};
    dab_memory *memory = NULL;
    CHECK(dab_memory_init(storage, bytes, &config, &memory) == DAB_OK);
    return memory;
}

static void observe(dab_memory *memory, int i) {
    const float place[4] = {(float)i, 0, 0, 0};
    dab_novelty n = {.size = sizeof n};
    CHECK(dab_memory_observe(memory, place, NULL, 4, &n) == DAB_OK && n.spawned == 1);
}

/* How many inputs the state knows that comes back when the program starts anew. */
static int after_a_restart(void) {
    static uint64_t storage[DAB_MEMORY_BYTES(256, 4) / 8];
    dab_memory *memory = fresh(storage, sizeof storage);
    dab_memory_statistics s = {.size = sizeof s};
    sequence = 0;
    newest = -1;
    if (load_state(memory) != DAB_OK) return 0;
    CHECK(dab_memory_stats(memory, &s) == DAB_OK);
    return (int)s.used;
}

/* While a program runs on, every save is the one that comes back; a save that is cut off leaves the one before. */
static void the_newest_state_comes_back(void) {
    static uint64_t storage[DAB_MEMORY_BYTES(256, 4) / 8];
    dab_memory *memory = fresh(storage, sizeof storage);
    int i;
    flash[0] = cells[0];
    flash[1] = cells[1];
    memset(cells, 0xff, sizeof cells);
    CHECK(after_a_restart() == 0);
    for (i = 0; i < SAVES; i++) {
        const size_t bytes = DAB_SLOT_HEAD_BYTES + DAB_MEMORY_SAVED_BYTES(i + 1, 4);
        unsigned char before[2][SLOT_BYTES];
        const uint32_t number = sequence;
        const int32_t slot = newest;
        size_t cut;
        observe(memory, i);
        memcpy(before, cells, sizeof cells);
        for (cut = 0; cut < bytes; cut++) {
            power = cut;
            CHECK(!save_state(memory));
            CHECK(after_a_restart() == i);
            power = SLOT_BYTES;
            CHECK(save_state(memory)); /* the program that was started anew saves, too */
            CHECK(after_a_restart() == i + 1);
            memcpy(cells, before, sizeof cells);
            sequence = number;
            newest = slot;
        }
        power = cut;
        CHECK(save_state(memory));
        {
            const uint32_t now = sequence;
            const int32_t there = newest;
            CHECK(after_a_restart() == i + 1);
            sequence = now; /* it was only a look: the program runs on */
            newest = there;
        }
    }
}

/* EXPLAIN: the program needs a model, an input, and somebody who is told. */
static char told[64];
static float shown;

static void show(const char *name, float adds) {
    strcpy(told, name);
    shown = adds;
}

static void explain(const dab_model *model, const float *input) {
    dab_assessment a = {.size = sizeof a};
#include "explain.inc"
}

static void the_far_sensor_is_named(void) {
    static uint64_t storage[DAB_MODEL_BYTES / 8];
    const float slipped[DAB_ARTIFACT_INPUTS] = {0.02f, 0.05f, -0.7f, 0.1f}, broken[DAB_ARTIFACT_INPUTS] = {0, 0, NAN, 0};
    dab_model *model = NULL;
    CHECK(dab_model_init(storage, sizeof storage, dab_artifact, DAB_ARTIFACT_BYTES, &model) == DAB_OK);
    CHECK(DAB_ARTIFACT_ATTRIBUTION_FLOATS * sizeof(float) == dab_attribution_bytes(model));
    explain(model, slipped);
    CHECK(strcmp(told, "angle_rad") == 0 && shown > 0);
    told[0] = 0;
    explain(model, broken);
    CHECK(told[0] == 0); /* a refused input has no sensor to blame */
}

int main(void) {
    the_newest_state_comes_back();
    the_far_sensor_is_named();
    return checked();
}
