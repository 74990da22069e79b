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
enum { A_IN = 640, A_D = 8, A_K = 10, A_RAW = A_D + A_D * (A_D + 1) / 2, A_SWEEPS = 7 };

float plain_a(const float *restrict x, const float (*restrict w)[A_RAW], const float (*restrict mean)[A_D],
              const float (*restrict r)[A_D][A_D], const float *restrict log_det,
              const float *restrict prior, float alpha) {
    float raw[A_RAW] = {0}, g[A_D][A_D], u[A_D][A_D] = {{0}}, v[A_D][A_D], d[A_K];
    for (size_t i = 0; i < A_IN; i++)
        for (size_t j = 0; j < A_RAW; j++) raw[j] += x[i] * w[i][j];
    const float *a = raw + A_D;
    for (size_t i = 0; i < A_D; i++)
        for (size_t j = 0; j <= i; j++, a++) g[i][j] = g[j][i] = i == j ? *a : 0.5f * *a;
    for (size_t i = 0; i < A_D; i++) u[i][i] = 1.0f;
    for (int sweep = 0; sweep < A_SWEEPS; sweep++)
        for (size_t p = 0; p < A_D; p++)
            for (size_t q = p + 1; q < A_D; q++) {
                float aa = 0.0f, bb = 0.0f, ab = 0.0f;
                for (size_t i = 0; i < A_D; i++) {
                    aa += g[p][i] * g[p][i];
                    bb += g[q][i] * g[q][i];
                    ab += g[p][i] * g[q][i];
                }
                float delta = bb - aa, root = sqrtf(delta * delta + 4.0f * ab * ab);
                float t = 2.0f * ab / (delta < 0.0f ? delta - root : delta + root);
                if (ab * ab <= 5.7e-14f * aa * bb) t = 0.0f; /* turns by nothing: bounded time */
                float c = 1.0f / sqrtf(1.0f + t * t), s = c * t;
                for (size_t i = 0; i < A_D; i++) {
                    float gp = g[p][i], gq = g[q][i], up = u[p][i], uq = u[q][i];
                    g[p][i] = c * gp - s * gq;
                    g[q][i] = s * gp + c * gq;
                    u[p][i] = c * up - s * uq;
                    u[q][i] = s * up + c * uq;
                }
            }
    float entropy = 0.0f;
    for (size_t i = 0; i < A_D; i++) {
        float square = 0.0f;
        for (size_t j = 0; j < A_D; j++) square += g[i][j] * g[i][j];
        float l = std_from_raw(sqrtf(square));
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
