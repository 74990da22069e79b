/* Eight threads share one model and give identical bits. */
#include "dab.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"

enum { THREADS = 8 };
#ifndef ROUNDS
#define ROUNDS 200
#endif
static uint64_t storage[DAB_MODEL_BYTES / 8];
static dab_model *model;

static void *work(void *argument) {
    const model_case *m = argument;
    const size_t bytes = dab_scratch_bytes(model);
    float *scratch = malloc(bytes);
    size_t wrong = 0;
    int round;
    for (round = 0; scratch && round < ROUNDS; round++) {
        uint32_t row;
        for (row = 0; row < m->rows; row++) {
            dab_assessment a;
            uint32_t u;
            memset(&a, 0, sizeof a);
            a.size = (uint32_t)sizeof a;
            wrong += dab_assess(model, m->input + row * m->inputs, m->inputs, scratch, bytes, &a) != DAB_OK;
            memcpy(&u, &a.uncertainty, sizeof u);
            wrong += u != m->assessment[WORDS * row];
        }
    }
    wrong += scratch == NULL;
    free(scratch);
    return (void *)(uintptr_t)wrong;
}

int main(void) {
    size_t i, wrong = 0;
    for (i = 0; i < MODEL_COUNT; i++) {
        pthread_t threads[THREADS];
        model_case m = MODELS[i];
        int t;
        if (dab_model_init(storage, sizeof storage, m.artifact, m.bytes, &model) != DAB_OK) return 2;
        for (t = 0; t < THREADS; t++)
            if (pthread_create(&threads[t], NULL, work, &m) != 0) return 2;
        for (t = 0; t < THREADS; t++) {
            void *found;
            if (pthread_join(threads[t], &found) != 0) return 2;
            wrong += (size_t)(uintptr_t)found;
        }
    }
    printf("%zu wrong results\n", wrong);
    return wrong != 0;
}
