/* A learned policy balances a pole on a cart at 1 kHz. After four seconds a gust throws the pole where the policy
 * has never been.
 *
 *     ./controller              the monitor hands over to a safe controller, and back when all is calm
 *     ./controller --unwatched  the policy goes on alone: the pole falls
 *
 * Prints a timeline, writes timeline.csv (unwatched.csv); exit code 1 if the pole fell. */
#include <dab.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model.c"

/* Plant: the equations and constants of learn.py. */
static const float DT = 0.001f, GRAVITY = 9.81f, CART = 1.0f, POLE = 0.1f, HALF = 0.5f;
enum { SECONDS = 12, HZ = 1000, GUST_START = 4000, GUST_END = 4120 };
static const float GUST_TORQUE = 1.1f;    /* N m, on the pole */
static const float FALLEN = 1.0f;         /* rad */
static const float STRONGEST = 60.0f;     /* N, what the motor can do */
/* The safe controller: strong, and ugly to ride on. */
static const float SAFE_GAIN[4] = {-3.0f, -6.5f, -75.0f, -18.0f};

typedef struct state {
    float x, v, angle, rate;
} state;

static void step(state *s, float force, float torque) {
    const float total = CART + POLE, sine = sinf(s->angle), cosine = cosf(s->angle);
    const float push = (force + POLE * HALF * s->rate * s->rate * sine) / total;
    const float inertia = HALF * (4.0f / 3.0f - POLE * cosine * cosine / total);
    const float spin = (GRAVITY * sine - cosine * push + torque / (POLE * HALF)) / inertia;
    s->v += DT * (push - POLE * HALF * spin * cosine / total);
    s->rate += DT * spin;
    s->x += DT * s->v;
    s->angle += DT * s->rate;
}

static float safe_force(const state *s) {
    const float f = -(SAFE_GAIN[0] * s->x + SAFE_GAIN[1] * s->v + SAFE_GAIN[2] * s->angle + SAFE_GAIN[3] * s->rate);
    return f > STRONGEST ? STRONGEST : f < -STRONGEST ? -STRONGEST : f;
}

static int fail(const char *what, dab_status status) {
    fprintf(stderr, "%s: %s\n", what, dab_status_string(status));
    return 2;
}

int main(int argc, char **argv) {
    static uint64_t storage[DAB_MODEL_BYTES / 8];
    static float scratch[DAB_ARTIFACT_SCRATCH_FLOATS];
    const int watched = !(argc > 1 && strcmp(argv[1], "--unwatched") == 0);
    const char *const names[] = {"safe", "policy", "safe: no input"};
    state s = {0.05f, 0, 0.02f, 0};
    dab_monitor monitor;
    dab_monitor_config config = {.size = sizeof config, .window = 20, .enter_votes = 5, .exit_votes = 20};
    dab_monitor_statistics seen = {.size = sizeof seen};
    dab_model *model;
    dab_status status;
    int32_t driver, last = -1;
    uint32_t tick;
    FILE *csv;

    status = dab_model_init(storage, sizeof storage, dab_artifact, DAB_ARTIFACT_BYTES, &model);
    if (status != DAB_OK) return fail("model", status);
    status = dab_self_test(model, scratch, sizeof scratch);
    if (status != DAB_OK) return fail("self-test", status);

    /* Distrust what at most one familiar state in a thousand exceeds; trust again below one in ten. */
    status = dab_threshold(model, 0.001f, &config.enter);
    if (status == DAB_OK) status = dab_threshold(model, 0.1f, &config.exit);
    config.min_dwell = 500; /* ticks of 1 ms */
    config.timeout = 5;
    if (status == DAB_OK) status = dab_monitor_init(&monitor, &config);
    if (status != DAB_OK) return fail("monitor", status);

    printf("distrust above %.3f nats, trust again below %.3f nats; gust from %.3f s to %.3f s\n", (double)config.enter,
           (double)config.exit, (double)GUST_START / HZ, (double)GUST_END / HZ);

    csv = fopen(watched ? "timeline.csv" : "unwatched.csv", "w");
    if (csv == NULL) return fail("timeline", DAB_ERR_FILE);
    fprintf(csv, "seconds,angle_rad,position_m,force_n,uncertainty_nats,driver,gust_nm,enter_nats,exit_nats\n");
    for (tick = 0; tick < SECONDS * HZ; tick++) {
        const int gust = tick >= GUST_START && tick < GUST_END;
        const float input[DAB_ARTIFACT_INPUTS] = {s.x, s.v, s.angle, s.rate};
        dab_assessment a = {.size = sizeof a};
        float force = 0.0f;
        driver = dab_guard(model, &monitor, tick, input, DAB_ARTIFACT_INPUTS, &force, 1, scratch, sizeof scratch, &a);
        if (!watched) driver = DAB_NOMINAL;
        if (driver != DAB_NOMINAL) force = safe_force(&s);
        if (driver != last || tick == GUST_START || tick % 2000 == 0)
            printf("%6.3f s  %-14s angle %+7.3f rad  force %+7.2f N  uncertainty %9.3f nats%s\n", (double)tick / HZ,
                   names[driver < 0 ? 2 : driver], (double)s.angle, (double)force, (double)a.uncertainty,
                   gust ? "  (gust)" : "");
        if (driver != last || tick == GUST_START || tick == GUST_END || tick % 10 == 0)
            fprintf(csv, "%.3f,%.5f,%.5f,%.4f,%.5f,%s,%.2f,%.3f,%.3f\n", (double)tick / HZ, (double)s.angle, (double)s.x,
                    (double)force, (double)a.uncertainty, names[driver < 0 ? 2 : driver],
                    gust ? (double)GUST_TORQUE : 0.0, (double)config.enter, (double)config.exit);
        last = driver;
        step(&s, force, gust ? GUST_TORQUE : 0.0f);
        if (fabsf(s.angle) > FALLEN) {
            printf("%6.3f s  the pole fell\n", (double)tick / HZ);
            fclose(csv);
            return 1;
        }
    }
    fclose(csv);
    status = dab_monitor_stats(&monitor, &seen);
    if (status != DAB_OK) return fail("statistics", status);
    printf("balanced to the end; %d alarms, policy %.1f %% of the time\n", (int)seen.alarms,
           100.0 * (double)seen.nominal_ticks / (double)(seen.nominal_ticks + seen.fallback_ticks));
    return 0;
}
