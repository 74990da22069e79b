/* What the test driver (tests/c_abi.rs) writes into cases.c: artifacts, and the bits that dab-core gives. */
#ifndef CASES_H
#define CASES_H

#include <stddef.h>
#include <stdint.h>

enum { WORDS = 12 };

typedef struct refused_case {
    const char *name;
    const uint32_t *artifact;
    size_t bytes;
    int32_t status;
} refused_case;

typedef struct model_case {
    const char *name;
    const uint32_t *artifact;
    size_t bytes;
    uint32_t inputs, outputs, codes, dim, rows;
    const float *input;           /* [rows, inputs] */
    const uint32_t *assessment;   /* [rows, WORDS]: uncertainty, p_value, verdict and all other members, in their order */
    const uint32_t *outputs_bits; /* [rows, outputs] */
    const uint32_t *explained;    /* [rows, codes + codes + dim] */
} model_case;

#ifdef __cplusplus
extern "C" {
#endif
extern const refused_case REFUSED[];
extern const size_t REFUSED_COUNT;
extern const model_case MODELS[];
extern const size_t MODEL_COUNT;
/* A sound artifact whose known answers are wrong by one bit: the uncertainty, the digest. */
extern const refused_case WRONG_ANSWERS[2];
/* A sound artifact with a monitor: window 16, enter 5.25, every member set, ticks of 10 ms. */
extern const refused_case TUNED[1];
/* A sound artifact of a regression whose one output has a band of 0.75 for each nat. */
extern const refused_case BANDED[1];
/* Every status number of the library that a call can give. */
extern const int32_t STATUSES[];
extern const size_t STATUS_COUNT;
int second_unit(void);
#ifdef __cplusplus
}
#endif

#endif
