/* A learned policy balances a pole on a cart at 1 kHz. Its sensors are noisy and the air moves. After four seconds a gust
 * throws the pole where the policy has never been.
 *
 *     ./controller              the guard hands over to a safe controller, and back when all is calm
 *     ./controller --unwatched  the policy goes on alone: the pole falls
 *     ./controller --hour       an hour without a gust: how often does the guard take the policy away for nothing?
 *
 * Prints a timeline, writes timeline.csv (unwatched.csv); exit code 1 if the pole fell. */
#include <dab.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "model.c"

/* Plant: the equations and constants of learn.py. */
static const float DT = 0.001f, GRAVITY = 9.81f, CART = 1.0f, POLE = 0.1f, HALF = 0.5f;
enum { SECONDS = 12, HOUR = 3600, HZ = 1000, GUST_START = 4000, GUST_END = 4120 };
static const float GUST_TORQUE = 1.1f;    /* N m, on the pole */
static const float FALLEN = 1.0f;         /* rad */
static const float STRONGEST = 60.0f;     /* N, what the motor can do */
/* Noise of the sensors, one standard deviation: m, m/s, rad, rad/s. */
static const float NOISE[DAB_ARTIFACT_INPUTS] = {0.0005f, 0.003f, 0.0005f, 0.005f};
/* The air: a torque on the pole of this standard deviation, N m, that keeps its mind for a second. */
static const float AIR = 0.005f, KEEPS = 0.999f;
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

/* Normal enough: twelve uniform numbers, which every machine adds alike. */
static float noise(void) {
    static uint32_t bits = 0x2545f491u;
    float sum = -6.0f;
    for (int i = 0; i < 12; i++) {
        bits ^= bits << 13;
        bits ^= bits >> 17;
        bits ^= bits << 5;
        sum += (float)(bits >> 8) / 16777216.0f;
    }
    return sum;
}

static float safe_force(const float *s) {
    const float f = -(SAFE_GAIN[0] * s[0] + SAFE_GAIN[1] * s[1] + SAFE_GAIN[2] * s[2] + SAFE_GAIN[3] * s[3]);
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
    const int hour = argc > 1 && strcmp(argv[1], "--hour") == 0;
    const char *const names[] = {"safe", "policy", "safe: no input"};
    const uint32_t ticks = (uint32_t)(hour ? HOUR : SECONDS) * HZ;
    state s = {0.05f, 0, 0.02f, 0};
    static dab_monitor monitor;
    dab_monitor_config config = {.size = sizeof config, .window = 20, .enter_votes = 5, .exit_votes = 20};
    dab_monitor_statistics seen = {.size = sizeof seen};
    dab_model *model;
    dab_status status;
    int32_t driver, last = -1;
    float air = 0;
    FILE *csv = NULL;

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

    printf("distrust above %.3f nats, trust again below %.3f nats; ", (double)config.enter, (double)config.exit);
    if (hour) printf("an hour without a gust\n");
    else printf("gust from %.3f s to %.3f s\n", (double)GUST_START / HZ, (double)GUST_END / HZ);

    if (!hour) {
        csv = fopen(watched ? "timeline.csv" : "unwatched.csv", "w");
        if (csv == NULL) return fail("timeline", DAB_ERR_FILE);
        fprintf(csv, "seconds,angle_rad,position_m,force_n,uncertainty_nats,driver,gust_nm,enter_nats,exit_nats\n");
    }
    for (uint32_t tick = 0; tick < ticks; tick++) {
        const int gust = !hour && tick >= GUST_START && tick < GUST_END;
        /* What the sensors say, and both controllers know. */
        const float input[DAB_ARTIFACT_INPUTS] = {s.x + NOISE[0] * noise(), s.v + NOISE[1] * noise(),
                                                  s.angle + NOISE[2] * noise(), s.rate + NOISE[3] * noise()};
        dab_assessment a = {.size = sizeof a};
        float force = 0;
        driver = dab_guard(model, &monitor, tick, input, DAB_ARTIFACT_INPUTS, &force, 1, scratch, sizeof scratch, &a);
        if (!watched) driver = DAB_NOMINAL;
        if (driver != DAB_NOMINAL) force = safe_force(input);
        if ((driver != last || tick == GUST_START || tick % 2000 == 0) && !hour)
            printf("%6.3f s  %-14s angle %+7.3f rad  force %+7.2f N  uncertainty %9.3f nats%s\n", (double)tick / HZ,
                   names[driver < 0 ? 2 : driver], (double)s.angle, (double)force, (double)a.uncertainty,
                   gust ? "  (gust)" : "");
        if (csv != NULL && (driver != last || tick == GUST_START || tick == GUST_END || tick % 10 == 0))
            fprintf(csv, "%.3f,%.5f,%.5f,%.4f,%.5f,%s,%.2f,%.3f,%.3f\n", (double)tick / HZ, (double)s.angle, (double)s.x,
                    (double)force, (double)a.uncertainty, names[driver < 0 ? 2 : driver],
                    gust ? (double)GUST_TORQUE : 0.0, (double)config.enter, (double)config.exit);
        last = driver;
        air = KEEPS * air + sqrtf(1 - KEEPS * KEEPS) * AIR * noise();
        step(&s, force, air + (gust ? GUST_TORQUE : 0.0f));
        if (fabsf(s.angle) > FALLEN) {
            printf("%6.3f s  the pole fell\n", (double)tick / HZ);
            if (csv != NULL) fclose(csv);
            return 1;
        }
    }
    if (csv != NULL) fclose(csv);
    status = dab_monitor_stats(&monitor, &seen);
    if (status != DAB_OK) return fail("statistics", status);
    printf("balanced to the end; %d %s, policy %.1f %% of the time", (int)seen.alarms, seen.alarms == 1 ? "alarm" : "alarms",
           100.0 * (double)seen.nominal_ticks / (double)(seen.nominal_ticks + seen.fallback_ticks));
    if (hour) printf("; %lu of %lu states were above the threshold", (unsigned long)seen.votes, (unsigned long)seen.inputs);
    printf("\n");
    return 0;
}
