/* dab_guard and the monitor behind it: who drives, why, what is kept, and that nothing refused is ever driven on. C99. */
#include "dab.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "check.h"

static uint64_t storage[DAB_MODEL_BYTES / 8];
static dab_model *model;
static float *scratch, *outputs;
static size_t bytes;

/* One vote, trust at once; every input of the case is below the threshold. */
static dab_monitor_config trusting(void) {
    dab_monitor_config c;
    memset(&c, 0, sizeof c);
    c.size = (uint32_t)sizeof c;
    c.enter = c.exit = FLT_MAX;
    c.window = 16;
    c.enter_votes = 16;
    c.exit_votes = 1;
    c.timeout = 10;
    return c;
}

static int32_t guard(const model_case *m, dab_monitor *w, uint32_t now, const float *input, size_t count, dab_assessment *a) {
    memset(a, 0x55, sizeof *a);
    a->size = (uint32_t)sizeof *a;
    return dab_guard(model, w, now, input, count, m->outputs ? outputs : NULL, m->outputs, scratch, bytes, a);
}

static dab_monitor_statistics seen(const dab_monitor *w) {
    dab_monitor_statistics s;
    memset(&s, 0, sizeof s);
    s.size = (uint32_t)sizeof s;
    CHECK(dab_monitor_stats(w, &s) == DAB_OK);
    return s;
}

static void decisions(const model_case *m) {
    dab_monitor_config c = trusting();
    dab_monitor w;
    dab_assessment a;
    dab_monitor_statistics s;
    float *broken = malloc(m->inputs * sizeof *broken);
    uint32_t now, nominal = 0;
    if (!broken) exit(2);
    memcpy(broken, m->input, m->inputs * sizeof *broken);
    broken[m->inputs - 1] = NAN;
    memset(&w, 0, sizeof w);
    CHECK(guard(m, &w, 0, m->input, m->inputs, &a) == DAB_ERR_NOT_INITIALIZED);
    CHECK(guard(m, NULL, 0, m->input, m->inputs, &a) == DAB_ERR_NULL);
    CHECK(dab_monitor_why(&w) == DAB_WHY_STARTING && dab_monitor_why(NULL) == DAB_WHY_STARTING);
    CHECK(dab_monitor_init(&w, &c) == DAB_OK && dab_monitor_why(&w) == DAB_WHY_STARTING);
    CHECK(guard(m, &w, 1, m->input, m->inputs, &a) == DAB_NOMINAL && dab_monitor_why(&w) == 0);
    CHECK(a.uncertainty < FLT_MAX && (m->outputs == 0 || memcmp(outputs, m->outputs_bits, 4 * m->outputs) == 0));
    /* One refusal is not driven on, and is no alarm. */
    CHECK(guard(m, &w, 2, broken, m->inputs, &a) == DAB_FALLBACK && dab_monitor_why(&w) == DAB_WHY_REJECTED);
    CHECK(a.verdict == DAB_NO_VERDICT && a.score > 1e38f);
    CHECK(guard(m, &w, 3, m->input, m->inputs, &a) == DAB_NOMINAL);
    s = seen(&w);
    CHECK(s.rejected == 1 && s.alarms == 0 && s.last_rejection == DAB_ERR_NON_FINITE);
    CHECK(guard(m, &w, 4, m->input, m->inputs + 1, &a) == DAB_FALLBACK && seen(&w).last_rejection == DAB_ERR_LENGTH);
    CHECK(guard(m, &w, 5, NULL, m->inputs, &a) == DAB_FALLBACK && seen(&w).last_rejection == DAB_ERR_NULL);
    CHECK(dab_monitor_reset(&w) == DAB_OK && seen(&w).inputs == 0 && seen(&w).last_rejection == DAB_OK);
    /* A sensor that fails every second tick: a quarter of the window is enough. */
    for (now = 10; now < 1010; now++)
        nominal += guard(m, &w, now, now % 2 ? broken : m->input, m->inputs, &a) == DAB_NOMINAL;
    s = seen(&w);
    CHECK(nominal <= 4 && s.rejected == 500 && s.alarms == 1 && s.rejections == 1 && s.why == DAB_WHY_REJECTED);
    /* Silence. */
    CHECK(dab_monitor_poll(&w, 1030) == DAB_STALE && dab_monitor_why(&w) == DAB_WHY_STALE);
    /* Memory that overlaps the monitor is refused and left alone. */
    CHECK(dab_monitor_init(&w, &c) == DAB_OK);
    CHECK(dab_guard(model, &w, 1, m->input, m->inputs, NULL, 0, scratch, bytes, &a) == DAB_NOMINAL);
    CHECK(dab_guard(model, &w, 2, m->input, m->inputs, NULL, 0, &w, sizeof w, &a) == DAB_FALLBACK);
    CHECK(seen(&w).last_rejection == DAB_ERR_OVERLAP && seen(&w).rejected == 1);
    {
        dab_assessment *inside = (dab_assessment *)(void *)(w.words + 40);
        const uint32_t size = inside->size;
        inside->size = (uint32_t)sizeof *inside;
        CHECK(dab_guard(model, &w, 3, m->input, m->inputs, NULL, 0, scratch, bytes, inside) != DAB_NOMINAL);
        inside->size = size;
    }
    free(broken);
}

static void memory(const model_case *m) {
    dab_monitor_config c = trusting();
    dab_monitor w, again;
    dab_assessment a;
    dab_event e;
    unsigned char saved[DAB_MONITOR_SAVED_BYTES];
    uint32_t i;
    CHECK(dab_monitor_init(&w, &c) == DAB_OK && dab_monitor_init(&again, &c) == DAB_OK);
    CHECK(guard(m, &w, 5, m->input, m->inputs, &a) == DAB_NOMINAL);
    memset(&e, 0, sizeof e);
    CHECK(dab_monitor_event(&w, 0, &e) == DAB_ERR_STRUCT_SIZE);
    e.size = (uint32_t)sizeof e;
    CHECK(dab_monitor_event(&w, 0, &e) == DAB_OK && e.number == 1 && e.tick == 5 && e.why == 0);
    CHECK(e.nearest == a.nearest && memcmp(&e.score, &a.score, 4) == 0);
    CHECK(dab_monitor_event(&w, 1, &e) == DAB_OK && e.number == 0 && e.nearest == DAB_NONE);
    CHECK(dab_monitor_save(&w, saved, sizeof saved - 1) == DAB_ERR_TOO_SMALL);
    CHECK(dab_monitor_save(&w, saved, sizeof saved) == DAB_OK);
    saved[100] ^= 1;
    CHECK(dab_monitor_restore(&again, saved, sizeof saved) == DAB_ERR_SAVED_STATE && seen(&again).inputs == 0);
    saved[100] ^= 1;
    CHECK(dab_monitor_restore(&again, saved, sizeof saved) == DAB_OK && seen(&again).inputs == 1);
    for (i = 6; i < 60; i++)
        CHECK(dab_monitor_observe(&w, i, i % 3 ? 1.0f : NAN) == dab_monitor_observe(&again, i, i % 3 ? 1.0f : NAN));
    /* After a restart the clock begins anew: trust has to be earned again. */
    CHECK(dab_monitor_restore(&again, saved, sizeof saved) == DAB_OK && dab_monitor_poll(&again, 0) == DAB_STALE);
    c.window = 17;
    CHECK(dab_monitor_init(&again, &c) == DAB_OK);
    CHECK(dab_monitor_restore(&again, saved, sizeof saved) == DAB_ERR_SAVED_STATE);
}

/* Thirty minutes at 90 % of the way to the threshold. */
static void drift(void) {
    dab_monitor_config c = trusting();
    dab_monitor w;
    uint32_t now, i;
    c.enter = 10;
    c.exit = 5;
    c.drift_block = 1000;
    c.drift_alarm = 6;
    for (i = 0; i < DAB_DRIFT_LEVELS; i++) {
        c.drift_levels[i] = 0.9f + 0.05f * (float)i;
        c.drift_p[i] = 0.5f / (float)(1u << i);
    }
    CHECK(dab_monitor_init(&w, &c) == DAB_OK);
    for (now = 0; now < 600000; now++) CHECK(dab_monitor_observe(&w, now, now % 2 ? 0.5f : 1.2f) >= 0);
    CHECK(seen(&w).alarms == 0 && seen(&w).state == DAB_NOMINAL);
    for (; now < 630000; now++) CHECK(dab_monitor_observe(&w, now, 9.0f) >= 0);
    CHECK(seen(&w).alarms == 1 && seen(&w).drifts == 1 && dab_monitor_why(&w) == DAB_WHY_DRIFT);
    CHECK(seen(&w).drift_p < 0.01f && seen(&w).drift_capital >= 6);
    c.drift_p[3] = 0.9f;
    CHECK(dab_monitor_init(&w, &c) == DAB_ERR_CONFIG);
    c.drift_block = 0;
    c.drift_keeps = 2;
    CHECK(dab_monitor_init(&w, &c) == DAB_ERR_CONFIG);
}

/* The monitor that lies in the artifact, and what a caller has who did not look at the status. */
static void tuned(const model_case *without) {
    dab_monitor_config c;
    dab_monitor w;
    float tick = -1;
    uint32_t i;
    memset(&c, 0x55, sizeof c);
    CHECK(dab_model_init(storage, sizeof storage, TUNED[0].artifact, TUNED[0].bytes, &model) == DAB_OK);
    CHECK(dab_model_monitor(model, &c, &tick) == DAB_ERR_STRUCT_SIZE);
    c.size = (uint32_t)sizeof c;
    CHECK(dab_model_monitor(model, &c, &tick) == DAB_OK && tick == 0.01f && c.size == sizeof c);
    CHECK(c.enter == 5.25f && c.exit == 3.5f && c.window == 16 && c.enter_votes == 12 && c.exit_votes == 8);
    CHECK(c.reject_votes == 3 && c.min_dwell == 1u << 31 && c.timeout == 10);
    CHECK(c.drift_block == 1000 && c.drift_alarm == 7.25f && c.drift_keeps == 1);
    for (i = 1; i < DAB_DRIFT_LEVELS; i++)
        CHECK(c.drift_levels[i - 1] < c.drift_levels[i] && c.drift_p[i - 1] > c.drift_p[i]);
    CHECK(dab_monitor_init(&w, &c) == DAB_OK && dab_model_monitor(model, &c, NULL) == DAB_OK);
    CHECK(dab_model_monitor(model, NULL, &tick) == DAB_ERR_NULL);
    CHECK(dab_model_monitor(model, &c, &c.enter) == DAB_ERR_OVERLAP);
    CHECK(dab_model_monitor(model, (dab_monitor_config *)(void *)storage, NULL) < 0);
    CHECK(dab_model_init(storage, sizeof storage, without->artifact, without->bytes, &model) == DAB_OK);
    CHECK(dab_model_monitor(model, &c, &tick) == DAB_ERR_NO_MONITOR && tick == 0 && c.size == sizeof c);
    CHECK(dab_monitor_init(&w, &c) == DAB_ERR_CONFIG);
    c.window = 1;
    CHECK(dab_model_monitor(NULL, &c, NULL) == DAB_ERR_NULL && c.window == 0);
    CHECK(strcmp(dab_status_string(DAB_ERR_NO_MONITOR), "the artifact has no monitor") == 0);
}

int main(void) {
    size_t i;
    for (i = 0; i < MODEL_COUNT; i++) {
        const model_case *m = &MODELS[i];
        CHECK(dab_model_init(storage, sizeof storage, m->artifact, m->bytes, &model) == DAB_OK);
        bytes = dab_scratch_bytes(model);
        scratch = malloc(bytes);
        outputs = malloc((m->outputs + 1) * sizeof(float));
        if (!scratch || !outputs) exit(2);
        decisions(m);
        memory(m);
        free(scratch);
        free(outputs);
    }
    drift();
    tuned(&MODELS[0]);
    return checked();
}
