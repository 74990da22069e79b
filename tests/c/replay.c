/* Replays the cases of a file through every call of dab.h and writes what they give, bit for bit:
 *     replay CASES RESULTS
 * Every buffer is a heap block of exactly its size, so that valgrind sees each byte too far. C99. */
#include "dab.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static FILE *cases, *results;

static void *block(size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (p == NULL) exit(2);
    return p;
}

static void *read_block(size_t bytes) {
    void *p = block(bytes);
    if (fread(p, 1, bytes, cases) != bytes) exit(3);
    return p;
}

static uint32_t read_word(void) {
    uint32_t *p = read_block(sizeof *p), word = *p;
    free(p);
    return word;
}

static void put(const void *from, size_t bytes) {
    if (fwrite(from, 1, bytes, results) != bytes) exit(4);
}

static void put_status(int32_t status) { put(&status, sizeof status); }

static dab_assessment *assessments(size_t count) {
    dab_assessment *a = block(count * sizeof *a);
    memset(a, 0, count * sizeof *a);
    if (count) a->size = (uint32_t)sizeof *a;
    return a;
}

/* Who drives, for a clock that wraps around, stumbles and falls silent. */
static void monitor(const float *u, size_t count, float enter, float exit_) {
    dab_monitor *m = block(sizeof *m);
    dab_monitor_statistics *s = block(sizeof *s);
    dab_monitor_config c = {0, 0, 0, 5, 3, 4, 7, 20, 0, 6, 0.5f, 0, {0}, {0.5f, 0.4f, 0.3f, 0.2f, 0.1f, 0.05f, 0.02f}};
    uint32_t now = UINT32_MAX - 100;
    size_t i;
    c.size = (uint32_t)sizeof c;
    c.enter = enter;
    c.exit = exit_;
    for (i = 0; i < DAB_DRIFT_LEVELS; i++) c.drift_levels[i] = i < 4 ? exit_ : enter;
    put_status(dab_monitor_init(m, &c));
    for (i = 0; i < count; i++) {
        now += i % 17 == 16 ? 30 : 3;
        put_status(dab_monitor_observe(m, now, u[i]));
        put_status(dab_monitor_poll(m, now + 2));
    }
    memset(s, 0, sizeof *s);
    s->size = (uint32_t)sizeof *s;
    put_status(dab_monitor_stats(m, s));
    put(s, sizeof *s);
    free(m);
    free(s);
}

static void exploration(const float *u, size_t count, uint32_t schedule, uint32_t centered) {
    dab_exploration *e = block(sizeof *e), *f = block(sizeof *f);
    dab_exploration_config c = {0, 0, 1.5f, -0.25f, 40, 5, 2.5f, 0};
    unsigned char *saved = block(DAB_EXPLORATION_SAVED_BYTES);
    float *bonus = block(count * sizeof *bonus);
    c.size = (uint32_t)sizeof c;
    c.schedule = schedule;
    c.centered = centered;
    put_status(dab_exploration_init(e, &c));
    put_status(dab_exploration_init(f, &c));
    put_status(dab_exploration_update(e, u, count / 2));
    put_status(dab_exploration_compute(e, u, count, 17, bonus));
    put(bonus, count * sizeof *bonus);
    put_status(dab_exploration_save(e, saved, DAB_EXPLORATION_SAVED_BYTES));
    put(saved, DAB_EXPLORATION_SAVED_BYTES);
    put_status(dab_exploration_restore(f, saved, DAB_EXPLORATION_SAVED_BYTES));
    put_status(dab_exploration_update(f, u + count / 2, count - count / 2));
    put_status(dab_exploration_compute(f, u, count, 90, bonus));
    put(bonus, count * sizeof *bonus);
    free(e);
    free(f);
    free(saved);
    free(bonus);
}

static void replay(size_t bytes) {
    const uint32_t rows = read_word();
    float *enter = read_block(sizeof *enter), *exit_ = read_block(sizeof *exit_);
    void *artifact = read_block(bytes), *storage = block(dab_model_bytes()), *scratch;
    dab_model *model = NULL;
    dab_shape *shape = block(sizeof *shape);
    dab_assessment *one = assessments(1), *all = assessments(rows);
    float *input, *outputs, *distances, *assignment, *dimensions, *u = block(rows * sizeof *u), nats = 0;
    size_t scratch_bytes;
    uint32_t row, i;
    put_status(dab_model_init(storage, dab_model_bytes(), artifact, bytes, &model));
    memset(shape, 0, sizeof *shape);
    shape->size = (uint32_t)sizeof *shape;
    put_status(dab_model_shape(model, shape));
    put(shape, sizeof *shape);
    scratch_bytes = dab_scratch_bytes(model);
    scratch = block(scratch_bytes);
    input = read_block(rows * shape->inputs * sizeof *input);
    outputs = block(shape->outputs * sizeof *outputs);
    distances = block(shape->codes * sizeof *distances);
    assignment = block(shape->codes * sizeof *assignment);
    dimensions = block(shape->dim * sizeof *dimensions);
    put_status(dab_self_test(model, scratch, scratch_bytes));
    put_status(dab_threshold(model, 0.25f, &nats));
    put(&nats, sizeof nats);
    for (row = 0; row < rows; row++) {
        float *x = block(shape->inputs * sizeof *x);
        memcpy(x, input + row * shape->inputs, shape->inputs * sizeof *x);
        put_status(dab_assess(model, x, shape->inputs, scratch, scratch_bytes, one));
        put(one, sizeof *one);
        u[row] = one->uncertainty;
        put_status(dab_predict(model, x, shape->inputs, outputs, shape->outputs, scratch, scratch_bytes, one));
        put(one, sizeof *one);
        put(outputs, shape->outputs * sizeof *outputs);
        put_status(dab_explain(model, x, shape->inputs, distances, assignment, shape->codes, dimensions, shape->dim,
                               scratch, scratch_bytes, one));
        put(one, sizeof *one);
        put(distances, shape->codes * sizeof *distances);
        put(assignment, shape->codes * sizeof *assignment);
        put(dimensions, shape->dim * sizeof *dimensions);
        free(x);
    }
    put_status(dab_set_rates(model, 0.75f, 0.5f));
    put_status(dab_assess_batch(model, input, rows, shape->inputs, scratch, scratch_bytes, all));
    put(all, rows * sizeof *all);
    monitor(u, rows, *enter, *exit_);
    for (i = 0; i < 6; i++) exploration(u, rows, i / 2, i % 2);
    free(enter);
    free(exit_);
    free(artifact);
    free(storage);
    free(scratch);
    free(shape);
    free(one);
    free(all);
    free(input);
    free(outputs);
    free(distances);
    free(assignment);
    free(dimensions);
    free(u);
}

int main(int count, char **arguments) {
    uint32_t bytes;
    if (count != 3) return 1;
    cases = fopen(arguments[1], "rb");
    results = fopen(arguments[2], "wb");
    if (cases == NULL || results == NULL) return 1;
    /* A case of no bytes is the end. */
    while ((bytes = read_word()) != 0) replay(bytes);
    if (fclose(cases) != 0 || fclose(results) != 0) return 1;
    return 0;
}
