/* The yardstick of the bench: shapes (a) and (c) in plain C, with sizes known to the compiler and weights
 * laid out so that gcc vectorises every long loop (sums run over outputs or codes, never along a
 * reduction, which gcc may not reorder). Same mathematics as dab-core (method.md E1, E2, E4-E6) and the
 * same contract: the time does not depend on the values, so no rotation is skipped. */
#include <float.h>
#include <math.h>
#include <stddef.h>

static float std_from_raw(float r) {
    float x = r - 5.0f;
    return (x > 0.0f ? x : 0.0f) + log1pf(expf(-fabsf(x))) + 1e-5f;
}

static float expected(const float *restrict prior, const float *restrict d, size_t k, float alpha) {
    float nearest = FLT_MAX, total = 0.0f, excess = 0.0f;
    for (size_t i = 0; i < k; i++)
        if (prior[i] > 0.0f && d[i] < nearest) nearest = d[i];
    for (size_t i = 0; i < k; i++) {
        float above = d[i] - nearest;
        float w = prior[i] * expf(-alpha * (above > 0.0f ? above : 0.0f));
        total += w;
        excess += w * above;
    }
    return nearest + excess / total;
}

/* (a) 640 -> 8, k 10, spectral. W is [640][44], V of a code is its R as a full square. */
enum { A_IN = 640, A_D = 8, A_K = 10, A_RAW = A_D + A_D * (A_D + 1) / 2, A_SWEEPS = 7, HALF = A_D / 2 };


/* Diagonalises g; the rows of u become its eigenvectors. Columns of g move around a ring, rows are found by a list:
 * the algorithm of dab-core/src/linalg/jacobi.rs. */
static void jacobi(float (*restrict g)[A_D], float (*restrict u)[A_D], float negligible) {
    unsigned order[A_D];
    for (unsigned i = 0; i < A_D; i++) u[i][order[i] = i] = 1.0f;
    for (int round = 0; round < A_SWEEPS * (A_D - 1); round++) {
        float xx[HALF], yy[HALF], xy[HALF], c[HALF], s[HALF];
        for (size_t k = 0; k < HALF; k++) {
            xx[k] = g[order[k]][k];
            xy[k] = g[order[k]][HALF + k];
            yy[k] = g[order[HALF + k]][HALF + k];
        }
        for (size_t k = 0; k < HALF; k++) {
            float delta = yy[k] - xx[k], p = fabsf(delta), q = 2.0f * fabsf(xy[k]);
            float one = 4.0f * p, two = 3.5f * p + 1.5f * q, three = 2.25f * p + 2.414f * q;
            float most = one > two ? one : two;
            most = most > three ? most : three;
            float t = 2.0f * xy[k] / (delta < 0.0f ? -most : most);
            t = fabsf(xy[k]) > negligible ? t : 0.0f; /* turns by nothing: bounded time */
            s[k] = 2.0f * t / (1.0f + t * t);
            c[k] = 1.0f - t * s[k];
        }
        for (size_t i = 0; i < A_D; i++) {
            float x[HALF], y[HALF];
            for (size_t k = 0; k < HALF; k++) {
                x[k] = c[k] * g[i][k] - s[k] * g[i][HALF + k];
                y[k] = s[k] * g[i][k] + c[k] * g[i][HALF + k];
            }
            float moved[A_D] = {x[0], y[0], x[1], x[2], y[1], y[2], y[3], x[3]};
            for (size_t k = 0; k < A_D; k++) g[i][k] = moved[k];
        }
        for (size_t k = 0; k < HALF; k++) {
            float *restrict gp = g[order[k]], *restrict gq = g[order[HALF + k]];
            float *restrict up = u[order[k]], *restrict uq = u[order[HALF + k]];
            for (size_t i = 0; i < A_D; i++) {
                float p = gp[i], q = gq[i], r = up[i], t = uq[i];
                gp[i] = c[k] * p - s[k] * q;
                gq[i] = s[k] * p + c[k] * q;
                up[i] = c[k] * r - s[k] * t;
                uq[i] = s[k] * r + c[k] * t;
            }
        }
        unsigned o[A_D] = {order[0], order[4], order[1], order[2], order[5], order[6], order[7], order[3]};
        for (size_t k = 0; k < A_D; k++) order[k] = o[k];
    }
}

float plain_a(const float *restrict x, const float (*restrict w)[A_RAW], const float (*restrict mean)[A_D],
              const float (*restrict r)[A_D][A_D], const float *restrict log_det,
              const float *restrict prior, float alpha) {
    float raw[A_RAW] = {0}, g[A_D][A_D], u[A_D][A_D] = {{0}}, v[A_D][A_D], d[A_K], largest = 0.0f;
    for (size_t i = 0; i < A_IN; i++)
        for (size_t j = 0; j < A_RAW; j++) raw[j] += x[i] * w[i][j];
    const float *a = raw + A_D;
    for (size_t i = 0; i < A_D; i++)
        for (size_t j = 0; j <= i; j++, a++) {
            g[i][j] = g[j][i] = i == j ? *a : 0.5f * *a;
            largest = fmaxf(largest, fabsf(g[i][j]));
        }
    jacobi(g, u, 0.5f * FLT_EPSILON * largest);
    float entropy = 0.0f;
    for (size_t i = 0; i < A_D; i++) {
        float l = std_from_raw(fabsf(g[i][i]));
        entropy += 2.0f * logf(l);
        for (size_t j = 0; j < A_D; j++) v[j][i] = l * u[i][j];
    }
    for (size_t k = 0; k < A_K; k++) {
        float energy = 0.0f;
        for (size_t i = 0; i < A_D; i++) {
            float row[A_D] = {0}, offset = 0.0f;
            for (size_t j = 0; j <= i; j++) {
                offset += r[k][i][j] * (raw[j] - mean[k][j]);
                for (size_t c = 0; c < A_D; c++) row[c] += r[k][i][j] * v[j][c];
            }
            for (size_t c = 0; c < A_D; c++) energy += row[c] * row[c];
            energy += offset * offset;
        }
        float kl = 0.5f * (energy + log_det[k] - A_D - entropy);
        d[k] = kl > 0.0f ? kl : 0.0f;
    }
    return expected(prior, d, A_K, alpha);
}

/* (c) 2048 -> 80, k 1000, diagonal. W is [2048][160]; means and precisions are [80][1000]. */
enum { C_IN = 2048, C_D = 80, C_K = 1000, C_RAW = 2 * C_D };

float plain_c(const float *restrict x, const float (*restrict w)[C_RAW], const float (*restrict mean)[C_K],
              const float (*restrict precision)[C_K], const float *restrict log_det,
              const float *restrict prior, float alpha) {
    float raw[C_RAW] = {0}, d[C_K] = {0}, entropy = 0.0f;
    for (size_t i = 0; i < C_IN; i++)
        for (size_t j = 0; j < C_RAW; j++) raw[j] += x[i] * w[i][j];
    for (size_t i = 0; i < C_D; i++) {
        float s = std_from_raw(raw[C_D + i]), variance = s * s, m = raw[i];
        entropy += 2.0f * logf(s);
        for (size_t k = 0; k < C_K; k++) {
            float offset = m - mean[i][k];
            d[k] += (offset * offset + variance) * precision[i][k];
        }
    }
    for (size_t k = 0; k < C_K; k++) {
        float kl = 0.5f * (d[k] + log_det[k] - C_D - entropy);
        d[k] = kl > 0.0f ? kl : 0.0f;
    }
    return expected(prior, d, C_K, alpha);
}
