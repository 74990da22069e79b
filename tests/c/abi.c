/* Every call of dab.h: the bits of dab-core, every status number, and after a refusal an answer that trusts nothing. C99. */
#include "dab.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "check.h"

static unsigned char provoked[1000];

/* A call that must give `expected`; remembers that it did. */
static void gives(int32_t found, int32_t expected, const char *what) {
    if (found != expected) {
        printf("%s: %d (%s), expected %d\n", what, (int)found, dab_status_string(found), (int)expected);
        failures++;
    }
    if (found <= 0 && found > -1000) provoked[-found] = 1;
}
#define GIVES(call, expected) gives((call), (expected), #call)

static uint32_t bits(float x) {
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

static dab_assessment sized(void) {
    dab_assessment a;
    memset(&a, 0x55, sizeof a);
    a.size = (uint32_t)sizeof a;
    return a;
}

static void same(const model_case *m, uint32_t row, const dab_assessment *a) {
    const uint32_t *e = m->assessment + WORDS * row;
    CHECK(bits(a->uncertainty) == e[0] && bits(a->p_value) == e[1] && (uint32_t)a->verdict == e[2]);
    CHECK(a->nearest == e[3] && bits(a->nearest_distance) == e[4] && a->size == sizeof *a);
    CHECK(bits(a->score) == e[5] && bits(a->unfamiliarity) == e[6] && bits(a->ambiguity) == e[7]);
    CHECK(bits(a->ambiguity_p) == e[8] && a->top_class == e[9] && a->runner_up == e[10] && a->view == e[11]);
    CHECK(((a->flags & DAB_FLAG_CHANNELS) != 0) == (a->view != DAB_NONE));
    CHECK(((a->flags & DAB_FLAG_AMBIGUITY) != 0) == (a->runner_up != DAB_NONE));
    CHECK(((a->flags & DAB_FLAG_CALIBRATED) != 0) == (a->verdict != DAB_NO_VERDICT));
}

static void answers(const model_case *m) {
    static uint64_t storage[DAB_MODEL_BYTES / 8];
    dab_model *model = NULL;
    dab_shape shape;
    float *scratch, *outputs, *distances, *assignment, *dimensions;
    dab_assessment *batch;
    size_t bytes;
    uint32_t row, i;
    GIVES(dab_model_init(storage, sizeof storage, m->artifact, m->bytes, &model), DAB_OK);
    memset(&shape, 0, sizeof shape);
    shape.size = (uint32_t)sizeof shape;
    GIVES(dab_model_shape(model, &shape), DAB_OK);
    CHECK(shape.inputs == m->inputs && shape.outputs == m->outputs && shape.codes == m->codes);
    CHECK(shape.dim == m->dim && shape.size == sizeof shape);
    bytes = dab_scratch_bytes(model);
    scratch = malloc(bytes);
    outputs = malloc((m->outputs + 1) * sizeof(float));
    distances = malloc(m->codes * sizeof(float));
    assignment = malloc(m->codes * sizeof(float));
    dimensions = malloc(m->dim * sizeof(float));
    batch = calloc(m->rows, sizeof *batch);
    if (!scratch || !outputs || !distances || !assignment || !dimensions || !batch) exit(2);
    GIVES(dab_self_test(model, scratch, bytes), DAB_OK);
    GIVES(dab_model_check(model), DAB_OK);
    GIVES(dab_model_check(NULL), DAB_ERR_NULL);
    for (row = 0; row < m->rows; row++) {
        const float *input = m->input + row * m->inputs;
        dab_assessment a = sized();
        GIVES(dab_assess(model, input, m->inputs, scratch, bytes, &a), DAB_OK);
        same(m, row, &a);
        a = sized();
        GIVES(dab_predict(model, input, m->inputs, outputs, m->outputs, scratch, bytes, &a), DAB_OK);
        same(m, row, &a);
        for (i = 0; i < m->outputs; i++) CHECK(bits(outputs[i]) == m->outputs_bits[row * m->outputs + i]);
        a = sized();
        GIVES(dab_explain(model, input, m->inputs, distances, assignment, m->codes, dimensions, m->dim, scratch, bytes,
                          &a),
              DAB_OK);
        same(m, row, &a);
        for (i = 0; i < m->codes; i++) {
            const uint32_t *e = m->explained + row * (2 * m->codes + m->dim);
            CHECK(bits(distances[i]) == e[i] && bits(assignment[i]) == e[m->codes + i]);
        }
        for (i = 0; i < m->dim; i++)
            CHECK(bits(dimensions[i]) == m->explained[row * (2 * m->codes + m->dim) + 2 * m->codes + i]);
    }
    batch[0].size = (uint32_t)sizeof *batch;
    GIVES(dab_assess_batch(model, m->input, m->rows, m->inputs, scratch, bytes, batch), DAB_OK);
    for (row = 0; row < m->rows; row++) same(m, row, &batch[row]);
    if (m->outputs > 0) {
        float *all = malloc(m->rows * m->outputs * sizeof(float));
        if (!all) exit(2);
        memset(batch, 0, m->rows * sizeof *batch);
        batch[0].size = (uint32_t)sizeof *batch;
        GIVES(dab_predict_batch(model, m->input, m->rows, m->inputs, all, m->outputs, scratch, bytes, batch), DAB_OK);
        for (row = 0; row < m->rows; row++) same(m, row, &batch[row]);
        for (i = 0; i < m->rows * m->outputs; i++) CHECK(bits(all[i]) == m->outputs_bits[i]);
        free(all);
    }
    free(scratch);
    free(outputs);
    free(distances);
    free(assignment);
    free(dimensions);
    free(batch);
}

/* Whether an assessment is the one that trusts nothing: what a caller has who did not look at the status. */
static int distrusts(const dab_assessment *a) {
    return a->size == sizeof *a && a->verdict == DAB_NO_VERDICT && a->flags == 0 && a->uncertainty == FLT_MAX &&
           a->score == FLT_MAX && a->nearest_distance == FLT_MAX && a->unfamiliarity == FLT_MAX && a->p_value == -1 &&
           a->ambiguity == FLT_MAX && a->ambiguity_p == -1 && a->top_class == DAB_NONE && a->view == DAB_NONE;
}

/* After each refusal the assessment trusts nothing. */
#define REFUSES(call, expected)        \
    do {                               \
        a = sized();                   \
        GIVES(call, expected);         \
        CHECK(distrusts(&a));          \
    } while (0)

/* A caller with a larger struct, compiled against a later header. */
typedef struct later {
    dab_assessment now;
    uint32_t then;
} later;

static void refusals(const model_case *m) {
    static uint64_t storage[DAB_MODEL_BYTES / 8 + 1], scratch[4096];
    static float input[64], nan[64], room[99], pair[64];
    dab_model *model = NULL, *other = NULL;
    dab_assessment a = sized(), before;
    dab_shape shape;
    float nats = -7;
    size_t bytes, i;
    later grown[2];
    const float *const odd = (const float *)(const void *)((const char *)input + 1);
    for (i = 0; i < m->inputs; i++) nan[i] = input[i] = m->input[i];
    nan[m->inputs - 1] = NAN;
    for (i = 0; i < m->inputs; i++) pair[i] = input[i], pair[m->inputs + i] = nan[i];

    GIVES(dab_model_init(NULL, sizeof storage, m->artifact, m->bytes, &model), DAB_ERR_NULL);
    GIVES(dab_model_init(storage, sizeof storage, NULL, m->bytes, &model), DAB_ERR_NULL);
    GIVES(dab_model_init(storage, sizeof storage, m->artifact, m->bytes, NULL), DAB_ERR_NULL);
    GIVES(dab_model_init((char *)storage + 4, sizeof storage - 4, m->artifact, m->bytes, &model), DAB_ERR_MISALIGNED);
    GIVES(dab_model_init(storage, DAB_MODEL_BYTES - 1, m->artifact, m->bytes, &model), DAB_ERR_TOO_SMALL);
    GIVES(dab_model_init(storage, sizeof storage, storage, 64, &model), DAB_ERR_OVERLAP);
    GIVES(dab_model_init(storage, sizeof storage, m->artifact, SIZE_MAX, &model), DAB_ERR_TOO_LARGE);
    GIVES(dab_model_init(storage, SIZE_MAX, m->artifact, m->bytes, &model), DAB_ERR_TOO_LARGE);
    GIVES(dab_model_init(storage, sizeof storage, (const char *)m->artifact + 1, m->bytes - 1, &model),
          DAB_ERR_NOT_AN_ARTIFACT);
    CHECK(model == NULL);
    REFUSES(dab_assess((const dab_model *)storage, input, m->inputs, scratch, sizeof scratch, &a), DAB_ERR_NOT_INITIALIZED);
    CHECK(dab_scratch_bytes((const dab_model *)storage) == 0 && dab_scratch_bytes(NULL) == 0);
    GIVES(dab_model_init(storage, sizeof storage, m->artifact, m->bytes, &model), DAB_OK);
    bytes = dab_scratch_bytes(model);
    CHECK(bytes > 0 && bytes <= sizeof scratch);

    REFUSES(dab_assess(NULL, input, m->inputs, scratch, bytes, &a), DAB_ERR_NULL);
    REFUSES(dab_assess(model, NULL, m->inputs, scratch, bytes, &a), DAB_ERR_NULL);
    REFUSES(dab_assess(model, input, m->inputs, NULL, bytes, &a), DAB_ERR_NULL);
    GIVES(dab_assess(model, input, m->inputs, scratch, bytes, NULL), DAB_ERR_NULL);
    REFUSES(dab_assess((const dab_model *)(const void *)((char *)storage + 1), input, m->inputs, scratch, bytes, &a),
          DAB_ERR_MISALIGNED);
    REFUSES(dab_assess(model, odd, m->inputs, scratch, bytes, &a), DAB_ERR_MISALIGNED);
    REFUSES(dab_assess(model, input, m->inputs, (char *)scratch + 2, bytes, &a), DAB_ERR_MISALIGNED);
    REFUSES(dab_assess(model, input, m->inputs - 1, scratch, bytes, &a), DAB_ERR_LENGTH);
    REFUSES(dab_assess(model, input, 0, scratch, bytes, &a), DAB_ERR_LENGTH);
    REFUSES(dab_assess(model, nan, m->inputs, scratch, bytes, &a), DAB_ERR_NON_FINITE);
    REFUSES(dab_assess(model, input, m->inputs, scratch, bytes - 1, &a), DAB_ERR_SCRATCH);
    REFUSES(dab_assess(model, input, m->inputs, scratch, 0, &a), DAB_ERR_SCRATCH);
    REFUSES(dab_assess(model, (const float *)scratch, m->inputs, scratch, bytes, &a), DAB_ERR_OVERLAP);
    REFUSES(dab_assess(model, input, m->inputs, storage, bytes, &a), DAB_ERR_OVERLAP);
    REFUSES(dab_assess(model, input, SIZE_MAX / 2, scratch, bytes, &a), DAB_ERR_TOO_LARGE);
    GIVES(dab_self_test(model, scratch, 4), DAB_ERR_SCRATCH);
    /* Over its own input, its model or its artifact nothing is written. */
    memcpy(room, input, sizeof input);
    ((dab_assessment *)(void *)room)->size = (uint32_t)sizeof a;
    GIVES(dab_assess(model, room, m->inputs, scratch, bytes, (dab_assessment *)(void *)room), DAB_ERR_OVERLAP);
    CHECK(memcmp(room + 1, input + 1, sizeof input - sizeof *input) == 0);
    a = sized();
    a.size = 4;
    before = a;
    GIVES(dab_assess(model, input, m->inputs, scratch, bytes, &a), DAB_ERR_STRUCT_SIZE);
    CHECK(memcmp(&a, &before, sizeof a) == 0);
    memset(grown, 0x33, sizeof grown);
    grown[0].now.size = (uint32_t)sizeof grown[0];
    GIVES(dab_assess_batch(model, m->input, 2, m->inputs, scratch, bytes, &grown[0].now), DAB_OK);
    CHECK(bits(grown[1].now.uncertainty) == m->assessment[WORDS] && grown[1].then != 0x33333333);

    {
        dab_assessment rows[2] = {sized(), sized()};
        GIVES(dab_assess_batch(model, pair, 2, m->inputs, scratch, bytes, rows), DAB_ERR_NON_FINITE);
        CHECK(distrusts(&rows[0]) && distrusts(&rows[1]));
    }
    REFUSES(dab_assess_batch(model, nan, 1, m->inputs, scratch, bytes, &a), DAB_ERR_NON_FINITE);
    REFUSES(dab_assess_batch(model, input, 1, m->inputs + 1, scratch, bytes, &a), DAB_ERR_LENGTH);
    REFUSES(dab_assess_batch(model, input, 1, m->inputs, scratch, bytes - 4, &a), DAB_ERR_SCRATCH);
    GIVES(dab_assess_batch(model, input, SIZE_MAX / 4, m->inputs, scratch, bytes, &a), DAB_ERR_TOO_LARGE);
    REFUSES(dab_assess_batch(model, NULL, 1, m->inputs, scratch, bytes, &a), DAB_ERR_NULL);
    REFUSES(dab_predict(model, input, m->inputs, room, 99, scratch, bytes, &a), DAB_ERR_OUTPUT_LENGTH);
    REFUSES(dab_predict(model, input, m->inputs, NULL, m->outputs, scratch, bytes, &a), DAB_ERR_NULL);
    REFUSES(dab_predict(model, input, m->inputs, input, m->outputs, scratch, bytes, &a), DAB_ERR_OVERLAP);
    REFUSES(dab_predict_batch(model, input, 1, m->inputs, room, 99, scratch, bytes, &a), DAB_ERR_OUTPUT_LENGTH);
    REFUSES(dab_predict_batch(model, input, 1, m->inputs, NULL, m->outputs, scratch, bytes, &a), DAB_ERR_NULL);
    REFUSES(dab_predict_batch(model, input, 1, m->inputs, input, m->outputs, scratch, bytes, &a), DAB_ERR_OVERLAP);
    GIVES(dab_predict_batch(model, input, 1, m->inputs, room, SIZE_MAX / 4, scratch, bytes, &a), DAB_ERR_TOO_LARGE);
    REFUSES(dab_explain(model, input, m->inputs, nan, nan + 16, m->codes + 1, nan + 32, m->dim, scratch, bytes, &a),
          DAB_ERR_OUTPUT_LENGTH);
    REFUSES(dab_explain(model, input, m->inputs, nan, nan + 1, m->codes, nan + 32, m->dim, scratch, bytes, &a),
          DAB_ERR_OVERLAP);
    shape.size = 0;
    GIVES(dab_model_shape(model, &shape), DAB_ERR_STRUCT_SIZE);

    GIVES(dab_set_rates(model, 0.1f, 0.2f), DAB_ERR_RATES);
    GIVES(dab_set_rates(NULL, 0.2f, 0.1f), DAB_ERR_NULL);
    GIVES(dab_set_rates(model, 0.9f, 0.9f), DAB_OK);
    GIVES(dab_set_rates(model, 0.05f, 1e-9f), DAB_ERR_NOT_CALIBRATED);
    GIVES(dab_threshold(model, 2.0f, &nats), DAB_ERR_RATES);
    CHECK(bits(nats) == bits(-FLT_MAX));
    nats = -7;
    GIVES(dab_threshold(model, 1e-6f, &nats), DAB_ERR_NOT_CALIBRATED);
    CHECK(bits(nats) == bits(-FLT_MAX));
    GIVES(dab_threshold(model, 0.5f, &nats), DAB_OK);
    CHECK(nats >= 0);

    for (i = 0; i < REFUSED_COUNT; i++) {
        other = model;
        gives(dab_model_init(storage, sizeof storage, REFUSED[i].artifact, REFUSED[i].bytes, &other), REFUSED[i].status,
              REFUSED[i].name);
        CHECK(other == NULL);
    }
    {
        static uint32_t shifted[4096];
        CHECK(m->bytes + 2 <= sizeof shifted);
        memcpy((char *)shifted + 2, m->artifact, m->bytes);
        GIVES(dab_model_init(storage, sizeof storage, (char *)shifted + 2, m->bytes, &other), DAB_ERR_ARTIFACT_MISALIGNED);
    }
    for (i = 0; i < 2; i++) {
        GIVES(dab_model_init(storage, sizeof storage, WRONG_ANSWERS[i].artifact, WRONG_ANSWERS[i].bytes, &other), DAB_OK);
        gives(dab_self_test(other, scratch, sizeof scratch), WRONG_ANSWERS[i].status, WRONG_ANSWERS[i].name);
    }
}

/* Which sensor: what a group adds is the difference of two assessments, one group at a time or all at once. */
static void attributions(const model_case *m, int has_means, const char *name) {
    static uint64_t storage[DAB_MODEL_BYTES / 8];
    static float means[64], changed[64], u[64], score[64];
    static uint32_t groups[64];
    dab_model *model = NULL;
    dab_assessment a = sized(), without, expected;
    char text[32];
    float *scratch;
    size_t bytes, i, n = m->inputs;
    GIVES(dab_model_init(storage, sizeof storage, m->artifact, m->bytes, &model), DAB_OK);
    bytes = dab_attribution_bytes(model);
    CHECK(bytes == dab_scratch_bytes(model) + n * sizeof(float) && dab_attribution_bytes(NULL) == 0);
    scratch = malloc(bytes);
    if (!scratch || n > 64) exit(2);
    GIVES(dab_model_means(model, means, n), has_means ? DAB_OK : DAB_ERR_NO_MEANS);
    GIVES(dab_model_means(model, means, n - 1), DAB_ERR_OUTPUT_LENGTH);
    GIVES(dab_model_means(model, NULL, n), DAB_ERR_NULL);
    if (!has_means) {
        REFUSES(dab_attribute(model, m->input, n, NULL, NULL, u, score, n, scratch, bytes, &a), DAB_ERR_NO_MEANS);
        REFUSES(dab_assess_without(model, m->input, n, NULL, NULL, 0, scratch, bytes, &a), DAB_ERR_NO_MEANS);
        for (i = 0; i < n; i++) means[i] = 0.25f * (float)i;
    }
    GIVES(dab_attribute(model, m->input, n, has_means ? NULL : means, NULL, u, score, n, scratch, bytes, &a), DAB_OK);
    same(m, 0, &a);
    for (i = 0; i < n; i++) {
        memcpy(changed, m->input, n * sizeof(float));
        changed[i] = means[i];
        expected = sized();
        without = sized();
        GIVES(dab_assess(model, changed, n, scratch, bytes, &expected), DAB_OK);
        memcpy(changed, m->input, n * sizeof(float));
        changed[i] = NAN; /* A sensor that has failed: the others can be judged. */
        GIVES(dab_assess_without(model, changed, n, means, NULL, (uint32_t)i, scratch, bytes, &without), DAB_OK);
        CHECK(memcmp(&expected, &without, sizeof expected) == 0);
        CHECK(bits(u[i]) == bits(a.uncertainty - without.uncertainty));
        CHECK(bits(score[i]) == bits(a.score - without.score));
        groups[i] = i == 0 ? DAB_NONE : 0;
    }
    /* One group of all inputs but the first; the uncertainty is not asked for. */
    memcpy(changed, means, n * sizeof(float));
    changed[0] = m->input[0];
    GIVES(dab_assess(model, changed, n, scratch, bytes, &expected), DAB_OK);
    GIVES(dab_attribute(model, m->input, n, means, groups, NULL, score, 1, scratch, bytes, &a), DAB_OK);
    CHECK(bits(score[0]) == bits(a.score - expected.score));
    REFUSES(dab_attribute(model, m->input, n, means, NULL, NULL, score, n - 1, scratch, bytes, &a), DAB_ERR_OUTPUT_LENGTH);
    REFUSES(dab_attribute(model, m->input, n, means, NULL, NULL, NULL, n, scratch, bytes, &a), DAB_ERR_OUTPUT_LENGTH);
    groups[0] = 3;
    REFUSES(dab_attribute(model, m->input, n, means, groups, NULL, score, 3, scratch, bytes, &a), DAB_ERR_OUTPUT_LENGTH);
    REFUSES(dab_attribute(model, m->input, n, means, NULL, NULL, score, n, scratch, bytes - 4, &a), DAB_ERR_SCRATCH);
    REFUSES(dab_attribute(model, m->input, n - 1, means, NULL, NULL, score, n, scratch, bytes, &a), DAB_ERR_LENGTH);
    REFUSES(dab_attribute(model, m->input, n, means, NULL, means, score, n, scratch, bytes, &a), DAB_ERR_OVERLAP);
    REFUSES(dab_attribute(model, m->input, n, scratch, NULL, NULL, score, n, scratch, bytes, &a), DAB_ERR_OVERLAP);
    REFUSES(dab_attribute(NULL, m->input, n, means, NULL, NULL, score, n, scratch, bytes, &a), DAB_ERR_NULL);
    means[0] = NAN;
    REFUSES(dab_attribute(model, m->input, n, means, NULL, NULL, score, n, scratch, bytes, &a), DAB_ERR_NON_FINITE);
    memset(text, 'x', sizeof text);
    GIVES(dab_input_name(model, 0, text, sizeof text), name ? DAB_OK : DAB_ERR_NO_NAME);
    CHECK(strcmp(text, name ? name : "") == 0);
    if (name) {
        GIVES(dab_input_name(model, 0, text, strlen(name)), DAB_ERR_TOO_SMALL);
        CHECK(text[0] == 0);
        GIVES(dab_input_name(model, 0, text, strlen(name) + 1), DAB_OK);
    }
    GIVES(dab_input_name(model, n, text, sizeof text), DAB_ERR_NO_NAME);
    GIVES(dab_output_name(model, 0, text, sizeof text), DAB_ERR_NO_NAME);
    GIVES(dab_input_name(model, 0, text, 0), DAB_ERR_TOO_SMALL);
    GIVES(dab_input_name(model, 0, NULL, 9), DAB_ERR_NULL);
    GIVES(dab_input_name(model, 0, (char *)storage, 9), DAB_ERR_OVERLAP);
    free(scratch);
}

/* The frozen header has no bands. */
#ifdef DAB_ERR_NO_BANDS
/* The band of a prediction, and models that have none: a classifier, a regression without the key, a model without outputs. */
static void bands(void) {
    static uint64_t storage[DAB_MODEL_BYTES / 8];
    dab_model *model = NULL;
    float band[2] = {-7, -7};
    size_t i;
    GIVES(dab_model_init(storage, sizeof storage, BANDED[0].artifact, BANDED[0].bytes, &model), DAB_OK);
    GIVES(dab_model_bands(model, band, 0), DAB_ERR_OUTPUT_LENGTH);
    GIVES(dab_model_bands(model, band, 2), DAB_ERR_OUTPUT_LENGTH);
    GIVES(dab_model_bands(model, NULL, 1), DAB_ERR_NULL);
    GIVES(dab_model_bands(NULL, band, 1), DAB_ERR_NULL);
    GIVES(dab_model_bands(model, (float *)storage, 1), DAB_ERR_OVERLAP);
    CHECK(bits(band[0]) == bits(-7.0f));
    GIVES(dab_model_bands(model, band, 1), DAB_OK);
    CHECK(bits(band[0]) == bits(0.75f) && bits(band[1]) == bits(-7.0f));
    for (i = 0; i < 3; i++) {
        GIVES(dab_model_init(storage, sizeof storage, MODELS[i].artifact, MODELS[i].bytes, &model), DAB_OK);
        GIVES(dab_model_bands(model, band, MODELS[i].outputs), DAB_ERR_NO_BANDS);
    }
}
#endif

static void monitors(void) {
    dab_monitor_config c = {0, 2, 1, 5, 3, 4, 10, 20, 0, 0, 0, 0, {0}, {0}};
    struct {
        dab_monitor_config now;
        uint32_t then[3];
    } later_config;
    dab_monitor monitor;
    dab_monitor_statistics s;
    uint32_t now;
    memset(&monitor, 0, sizeof monitor);
    c.size = (uint32_t)sizeof c;
    GIVES(dab_monitor_observe(&monitor, 0, 0), DAB_ERR_NOT_INITIALIZED);
    GIVES(dab_monitor_init(&monitor, NULL), DAB_ERR_NULL);
    c.window = 3000000;
    GIVES(dab_monitor_init(&monitor, &c), DAB_ERR_CONFIG);
    c.window = 5;
    c.size = 3;
    GIVES(dab_monitor_init(&monitor, &c), DAB_ERR_STRUCT_SIZE);
    c.size = (uint32_t)sizeof c;
    memset(&later_config, 0, sizeof later_config);
    later_config.now = c;
    later_config.now.size = (uint32_t)sizeof later_config;
    GIVES(dab_monitor_init(&monitor, &later_config.now), DAB_OK);
    later_config.then[2] = 1;
    GIVES(dab_monitor_init(&monitor, &later_config.now), DAB_ERR_UNKNOWN_MEMBER);
    /* An old monitor does not go on after an error that a program overlooks. */
    CHECK(dab_monitor_poll(&monitor, 0) == DAB_ERR_NOT_INITIALIZED);
    GIVES(dab_monitor_init(&monitor, &c), DAB_OK);
    CHECK(dab_monitor_poll(&monitor, UINT32_MAX - 50) == DAB_STALE);
    for (now = UINT32_MAX - 50; now != 50; now++) CHECK(dab_monitor_observe(&monitor, now, 0.5f) >= 0);
    /* One NaN is not driven on, two are an alarm: a quarter of the window. */
    CHECK(dab_monitor_observe(&monitor, 50, NAN) == DAB_FALLBACK && dab_monitor_why(&monitor) == DAB_WHY_REJECTED);
    /* The score of an assessment that failed: a program may have overlooked the error. */
    CHECK(dab_monitor_observe(&monitor, 51, FLT_MAX) == DAB_FALLBACK && dab_monitor_why(&monitor) == DAB_WHY_REJECTED);
    CHECK(dab_monitor_observe(&monitor, 52, 3) == DAB_FALLBACK);
    CHECK(dab_monitor_poll(&monitor, 73) == DAB_STALE && dab_monitor_poll(NULL, 73) == DAB_ERR_NULL);
    memset(&s, 0, sizeof s);
    s.size = (uint32_t)sizeof s;
    GIVES(dab_monitor_stats(&monitor, &s), DAB_OK);
    CHECK(s.alarms == 1 && s.stales == 1 && s.votes == 3 && s.inputs == 104 && s.state == DAB_STALE);
    CHECK(s.rejected == 2 && s.rejections == 1 && s.why == DAB_WHY_STALE && s.events >= 3);
    CHECK(bits(s.max) == bits(3) && bits(s.min) == bits(0.5f));
}

static void explorations(void) {
    dab_exploration_config c = {0, DAB_SCHEDULE_LINEAR, 1, 0, 100, 2, 5, 1};
    dab_exploration e, f;
    float u[4] = {1, 2, 3, 10}, bonus[4] = {9, 9, 9, 9}, again[4], most = FLT_MAX;
    unsigned char saved[DAB_EXPLORATION_SAVED_BYTES];
    c.size = (uint32_t)sizeof c;
    memset(&e, 0, sizeof e);
    GIVES(dab_exploration_update(&e, u, 4), DAB_ERR_NOT_INITIALIZED);
    c.schedule = 7;
    GIVES(dab_exploration_init(&e, &c), DAB_ERR_CONFIG);
    c.schedule = DAB_SCHEDULE_LINEAR;
    GIVES(dab_exploration_init(&e, &c), DAB_OK);
    GIVES(dab_exploration_init(&f, &c), DAB_OK);
    GIVES(dab_exploration_update(&e, u, 3), DAB_OK);
    GIVES(dab_exploration_compute(&e, u, 4, 50, u), DAB_ERR_OVERLAP);
    GIVES(dab_exploration_compute(&e, u, 4, 50, bonus), DAB_OK);
    CHECK(bits(bonus[1]) == 0 && bits(bonus[3]) == bits(2.5f));
    /* The uncertainty of an empty memory, or of a failed assessment, does not drown the others. */
    GIVES(dab_exploration_update(&e, &most, 1), DAB_OK);
    GIVES(dab_exploration_compute(&e, u, 4, 50, again), DAB_OK);
    CHECK(memcmp(bonus, again, sizeof bonus) == 0);
    GIVES(dab_exploration_save(&e, saved, 3), DAB_ERR_TOO_SMALL);
    GIVES(dab_exploration_save(&e, saved, sizeof saved), DAB_OK);
    GIVES(dab_exploration_restore(&f, saved, sizeof saved), DAB_OK);
    GIVES(dab_exploration_compute(&f, u, 4, 50, again), DAB_OK);
    CHECK(memcmp(bonus, again, sizeof bonus) == 0);
    saved[20] ^= 1;
    GIVES(dab_exploration_restore(&f, saved, sizeof saved), DAB_ERR_SAVED_STATE);
    u[0] = NAN;
    GIVES(dab_exploration_update(&e, u, 4), DAB_ERR_NON_FINITE);
    GIVES(dab_exploration_compute(&e, u, 4, 0, bonus), DAB_ERR_NON_FINITE);
}

/* Memory of zeros is never trust. */
static void zeros(void) {
    dab_assessment a;
    dab_monitor_statistics s;
    memset(&a, 0, sizeof a);
    memset(&s, 0, sizeof s);
    CHECK(a.verdict == DAB_NO_VERDICT && a.verdict != DAB_FAMILIAR && s.state == DAB_FALLBACK);
}

int main(void) {
    size_t i;
    CHECK(second_unit());
    zeros();
    CHECK(dab_format_oldest() <= dab_format_newest() && dab_version()[0] == '0' + DAB_VERSION_MAJOR);
    for (i = 0; i < MODEL_COUNT; i++) answers(&MODELS[i]);
    refusals(&MODELS[0]);
    attributions(&MODELS[0], 1, "speed, \"m/s\"");
    attributions(&MODELS[1], 0, NULL);
#ifdef DAB_ERR_NO_BANDS
    bands();
#endif
    monitors();
    explorations();
    for (i = 0; i < STATUS_COUNT; i++) {
        if (!provoked[-STATUSES[i]]) {
            printf("status %d (%s) was not provoked\n", (int)STATUSES[i], dab_status_string(STATUSES[i]));
            failures++;
        }
        CHECK(strcmp(dab_status_string(STATUSES[i]), "unknown status") != 0);
    }
    CHECK(strcmp(dab_status_string(-31), "unknown status") == 0);
    return checked();
}
