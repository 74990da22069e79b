/* One agent, seven bonuses, five tasks: the inner loop of run.py, in C so that 20 seeds take seconds.
 *
 * Q(lambda) with replacing traces over linear features, epsilon-greedy. The bonus of the state that an action led to is centred
 * and scaled (dab_exploration), weighted, and added to the reward. */
#include "dab_memory.h"

#include <stdlib.h>

#include "tasks.h"

enum { NONE, COUNTS, RND, KNN, ELLIPSE, VISITS, VISITS_EPISODIC, BONUSES };
enum { RANDOM_FEATURES = 32, HIDDEN = 64, CODE = 16, NEIGHBOURS = 10 };

typedef struct settings {
    int32_t task, bonus, steps, codes;
    uint64_t seed;
    float weight, std[MAX_DIM], spawn, alpha, rate; /* rate: RND's step size */
} settings;

typedef struct outcome {
    int32_t first;       /* step of the first success, or -1 */
    float success;       /* share of the episodes that ended in the last fifth of the steps and reached the goal */
    float value;         /* their mean reward */
    int32_t coverage;    /* cells seen */
    int32_t codes;       /* codes used */
    double bonus_seconds; /* time per step of the bonus alone; 0 unless it was measured */
} outcome;

/* A network dim-64-64-16. */
typedef struct net {
    float a[HIDDEN * MAX_DIM], b[HIDDEN * HIDDEN], c[CODE * HIDDEN];
    float x[MAX_DIM], h[HIDDEN], g[HIDDEN], y[CODE];
} net;

static void fill(float *to, int n, float scale, uint64_t *random) {
    int i;
    for (i = 0; i < n; i++) to[i] = scale * (float)(2 * uniform(random) - 1);
}

/* A sigmoid that the compiler can compute eight at a time. */
static float squash(float x) {
    const float y = x > 3 ? 3 : x < -3 ? -3 : x;
    return y * (27 + y * y) / (27 + 9 * y * y);
}

static void forward(net *n, const float *x, int dim) {
    int i, j;
    for (j = 0; j < dim; j++) n->x[j] = 4 * (x[j] - 0.5f);
    for (i = 0; i < HIDDEN; i++) {
        float s = 0;
        for (j = 0; j < dim; j++) s += n->a[i * MAX_DIM + j] * n->x[j];
        n->h[i] = squash(s);
    }
    for (i = 0; i < HIDDEN; i++) {
        float s = 0;
        for (j = 0; j < HIDDEN; j++) s += n->b[i * HIDDEN + j] * n->h[j];
        n->g[i] = squash(s);
    }
    for (i = 0; i < CODE; i++) {
        float s = 0;
        for (j = 0; j < HIDDEN; j++) s += n->c[i * HIDDEN + j] * n->g[j];
        n->y[i] = s;
    }
}

/* The squared error of the predictor, which then takes a step of gradient descent. */
static float rnd(net *target, net *predictor, const float *x, int dim, float rate) {
    float error = 0, e[CODE], dg[HIDDEN], dh[HIDDEN];
    int i, j;
    forward(target, x, dim);
    forward(predictor, x, dim);
    for (i = 0; i < CODE; i++) e[i] = predictor->y[i] - target->y[i], error += e[i] * e[i];
    for (j = 0; j < HIDDEN; j++) {
        float s = 0;
        for (i = 0; i < CODE; i++) s += predictor->c[i * HIDDEN + j] * e[i];
        dg[j] = s * (1 - predictor->g[j] * predictor->g[j]);
    }
    for (j = 0; j < HIDDEN; j++) {
        float s = 0;
        for (i = 0; i < HIDDEN; i++) s += predictor->b[i * HIDDEN + j] * dg[i];
        dh[j] = s * (1 - predictor->h[j] * predictor->h[j]);
    }
    for (i = 0; i < CODE; i++)
        for (j = 0; j < HIDDEN; j++) predictor->c[i * HIDDEN + j] -= rate * e[i] * predictor->g[j];
    for (i = 0; i < HIDDEN; i++)
        for (j = 0; j < HIDDEN; j++) predictor->b[i * HIDDEN + j] -= rate * dg[i] * predictor->h[j];
    for (i = 0; i < HIDDEN; i++)
        for (j = 0; j < dim; j++) predictor->a[i * MAX_DIM + j] -= rate * dh[i] * predictor->x[j];
    return error / CODE;
}

typedef struct bonus {
    int kind, dim, stored;
    dab_memory *memory;
    dab_ellipse *ellipse;
    void *storage, *oval;
    net *target, *predictor;
    float *episode, std[MAX_DIM], rate;
    int32_t *counts;
    uint32_t seed;
} bonus;

static int start(bonus *b, const settings *s, int dim) {
    uint64_t random = s->seed * 31 + 7;
    int i;
    memset(b, 0, sizeof *b);
    b->kind = s->bonus, b->dim = dim, b->rate = s->rate, b->seed = (uint32_t)s->seed;
    memcpy(b->std, s->std, sizeof b->std);
    b->counts = calloc(CELLS, sizeof *b->counts);
    if (b->kind == KNN) b->episode = malloc(sizeof(float) * MAX_DIM * KEY_STEPS);
    if (b->kind == VISITS || b->kind == VISITS_EPISODIC) {
        dab_memory_config c = {0};
        c.size = sizeof c, c.codes = (uint32_t)s->codes, c.dim = (uint32_t)dim, c.std = 1, c.spawn = s->spawn, c.alpha = s->alpha;
        b->storage = calloc(1, DAB_MEMORY_BYTES(s->codes, dim));
        if (dab_memory_init(b->storage, DAB_MEMORY_BYTES(s->codes, dim), &c, &b->memory) != DAB_OK) return 0;
    }
    if (b->kind == ELLIPSE || b->kind == VISITS_EPISODIC) {
        const size_t bytes = dab_ellipse_bytes(RANDOM_FEATURES);
        b->oval = calloc(1, bytes + 8);
        if (dab_ellipse_init(b->oval, bytes + 8, RANDOM_FEATURES, 0.1f, &b->ellipse) != DAB_OK) return 0;
    }
    if (b->kind == RND) {
        b->target = calloc(1, sizeof *b->target), b->predictor = calloc(1, sizeof *b->predictor);
        for (i = 0; i < 2; i++) {
            net *n = i ? b->predictor : b->target;
            const float gain = i ? 1 : 2; /* a target with more to learn */
            fill(n->a, HIDDEN * MAX_DIM, gain * 1.7f / sqrtf((float)dim), &random);
            fill(n->b, HIDDEN * HIDDEN, gain * 1.7f / sqrtf(HIDDEN), &random);
            fill(n->c, CODE * HIDDEN, 1.7f / sqrtf(HIDDEN), &random);
        }
    }
    return b->counts != NULL;
}

static void stop(bonus *b) {
    free(b->counts), free(b->episode), free(b->storage), free(b->oval), free(b->target), free(b->predictor);
}

/* A state that an action led to: how new is it? Then it is learned. */
static float score(bonus *b, const float *x, int where) {
    float random[RANDOM_FEATURES], found = 0, square = 0;
    dab_novelty n = {0};
    int i, j;
    b->counts[where]++;
    n.size = sizeof n;
    if (b->ellipse) {
        float centred[MAX_DIM];
        for (i = 0; i < b->dim; i++) centred[i] = 4 * (x[i] - 0.5f);
        if (dab_random_features(b->seed, 2, centred, (size_t)b->dim, random, RANDOM_FEATURES) != DAB_OK) return 0;
        if (dab_ellipse_observe(b->ellipse, random, RANDOM_FEATURES, 1, &square) != DAB_OK) return 0;
    }
    switch (b->kind) {
        case COUNTS: return 1 / sqrtf((float)b->counts[where]);
        case RND: return rnd(b->target, b->predictor, x, b->dim, b->rate);
        case ELLIPSE: return sqrtf(square);
        case VISITS:
        case VISITS_EPISODIC:
            if (dab_memory_observe(b->memory, x, b->std, (size_t)b->dim, &n) != DAB_OK) return 0;
            return b->kind == VISITS ? n.bonus : n.bonus * sqrtf(square / (1 + square));
        case KNN: {
            /* Never Give Up's episodic bonus: 1 / sqrt(1 + the sum of a kernel over the nearest states of the episode). */
            float near[NEIGHBOURS];
            for (j = 0; j < NEIGHBOURS; j++) near[j] = 1e30f;
            for (i = 0; i < b->stored; i++) {
                float d = 0;
                for (j = 0; j < b->dim; j++) {
                    const float o = (x[j] - b->episode[i * MAX_DIM + j]) / b->std[j];
                    d += o * o;
                }
                for (j = NEIGHBOURS - 1; j >= 0 && d < near[j]; j--) {
                    if (j < NEIGHBOURS - 1) near[j + 1] = near[j];
                    near[j] = d;
                }
            }
            for (j = 0; j < NEIGHBOURS; j++) found += 1 / (1 + near[j]);
            if (b->stored < KEY_STEPS) memcpy(&b->episode[b->stored++ * MAX_DIM], x, sizeof(float) * (size_t)b->dim);
            return 1 / sqrtf(1 + found);
        }
        default: return 0;
    }
}

static void episode_ends(bonus *b) {
    b->stored = 0;
    if (b->kind == VISITS_EPISODIC && dab_ellipse_clear(b->ellipse) != DAB_OK) return;
}

/* Runs one seed. 0 on success. */
DAB_API int run(const settings *s, outcome *out) {
    enum { TRACES = 64 };
    const double gamma = 0.99, lambda = 0.9, epsilon = 0.05;
    static const double RATES[] = {0.5, 0.1 / 8 * 4, 0.1 / 8 * 4, 0.3, 0.2 / 5};
    const double rate = RATES[s->task];
    float x[MAX_DIM];
    double *weights = calloc(5 * WEIGHTS, sizeof *weights);
    uint64_t random = s->seed * 65537 + 99;
    dab_exploration explore;
    dab_exploration_config config = {0};
    /* The traces of the last steps: which weights, and how much of them is left. */
    int traced[TRACES][MAX_FEATURES], now[MAX_FEATURES], next[MAX_FEATURES];
    int length = 0, at, i, j, action, done, episodes = 0, reached = 0;
    double total = 0, gained = 0;
    task e;
    bonus b;
    config.size = sizeof config, config.start = s->weight, config.clip = 5, config.warmup = 2, config.centered = 1;
    make(&e, s->task, s->seed);
    memset(out, 0, sizeof *out);
    out->first = -1;
    if (!weights || dab_exploration_init(&explore, &config) != DAB_OK || !start(&b, s, e.dim)) return 1;
    for (at = 0; at < s->steps; at++) {
        double best = -1e300, ahead_value = -1e300, error, reward, extra = 0;
        int ties = 0, greedy = 0;
        features(&e, now);
        for (i = 0; i < e.actions; i++) {
            double q = 0;
            for (j = 0; j < e.features; j++) q += weights[i * WEIGHTS + now[j]];
            if (q > best) best = q, greedy = i, ties = 1;
            else if (q == best && below(&random, ++ties) == 0) greedy = i;
        }
        action = uniform(&random) < epsilon ? below(&random, e.actions) : greedy;
        best = 0;
        for (j = 0; j < e.features; j++) best += weights[action * WEIGHTS + now[j]];
        reward = step(&e, action, &done);
        gained += reward;
        observe(&e, x);
        if (s->bonus != NONE) {
            float found = score(&b, x, cell(&e)), made = 0;
            if (dab_exploration_update(&explore, &found, 1) != DAB_OK) return 1;
            if (dab_exploration_compute(&explore, &found, 1, (uint64_t)at, &made) != DAB_OK) return 1;
            extra = made;
        } else {
            b.counts[cell(&e)]++;
        }
        if (done == 1) ahead_value = 0;
        else {
            features(&e, next);
            for (i = 0; i < e.actions; i++) {
                double q = 0;
                for (j = 0; j < e.features; j++) q += weights[i * WEIGHTS + next[j]];
                if (q > ahead_value) ahead_value = q;
            }
        }
        error = reward + extra + gamma * ahead_value - best;
        /* Replacing traces: the newest first, the oldest falls out. */
        if (action != greedy) length = 0;
        memmove(traced[1], traced[0], sizeof traced[0] * (TRACES - 1));
        for (j = 0; j < e.features; j++) traced[0][j] = action * WEIGHTS + now[j];
        if (length < TRACES) length++;
        {
            double left = 1;
            for (i = 0; i < length; i++, left *= gamma * lambda) {
                for (j = 0; j < e.features; j++) {
                    int k, seen = 0;
                    /* Later visits replace earlier ones; looking back a few is enough. */
                    for (k = i > 3 ? i - 3 : 0; k < i && !seen; k++) seen = traced[k][j] == traced[i][j];
                    if (!seen) weights[traced[i][j]] += rate * left * error;
                }
            }
        }
        if (done) {
            if (done == 1 && out->first < 0) out->first = at + 1;
            if (at >= s->steps - s->steps / 5) episodes++, reached += done == 1, total += gained;
            gained = 0, length = 0;
            episode_ends(&b);
            reset(&e);
        }
    }
    out->success = episodes ? (float)reached / (float)episodes : 0;
    out->value = episodes ? (float)(total / episodes) : 0;
    for (i = 0; i < CELLS; i++) out->coverage += b.counts[i] > 0;
    if (b.memory) {
        dab_memory_statistics m = {0};
        m.size = sizeof m;
        if (dab_memory_stats(b.memory, &m) == DAB_OK) out->codes = (int32_t)m.used;
    }
    stop(&b);
    free(weights);
    return 0;
}

/* What a random agent sees in its first `rows` steps, [rows, dim]. Gives the dimension. */
DAB_API int sample(int kind, uint64_t seed, int rows, float *out) {
    uint64_t random = seed;
    task e;
    int i, done;
    make(&e, kind, seed);
    for (i = 0; i < rows; i++) {
        step(&e, below(&random, e.actions), &done);
        observe(&e, out + i * e.dim);
        if (done) reset(&e);
    }
    return e.dim;
}
