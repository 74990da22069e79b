/* A first program with dab: a model that watches a motor by its current (model.c, model.h) judges two recorded windows, one
 * of a healthy motor and one of a motor with an open winding. It prints
 *
 *     self-test passed
 *     healthy motor: act
 *     open winding: fall back
 *
 * Your own model: dab export model.dab --c model.c --header model.h */
#include <dab.h>

#include "model.h"

#ifndef SAY /* where text goes */
#include <stdio.h>
#define SAY(text) ((void)puts(text))
#endif

static uint64_t storage[DAB_MODEL_BYTES / 8];
static float scratch[DAB_ARTIFACT_SCRATCH_FLOATS];

/* 24 samples of the current about their mean, the mean, the voltage; all in counts of the converter. */
static const float healthy[DAB_ARTIFACT_INPUTS] = {
    140, 127, 121, 115, 111, 103, 94, 79, 60, 33, 5, -23, -50, -71, -83, -85, -78, -72, -65, -59, -64, -81, -108, -141,
    1312, 2272};
static const float broken[DAB_ARTIFACT_INPUTS] = {
    -17, 18, 17, 27, 30, 43, 59, 75, 86, -188, -189, 18, 72, 69, 52, 42, 31, 28, 31, 39, -190, -188, -34, 83,
    1256, 2774};

/* Whether to trust the network with this input. Everything but "familiar" means no: doubt, an error, no calibration. */
static int trusted(const dab_model *model, const float *input) {
    dab_assessment a = {.size = sizeof a};
    return dab_assess(model, input, DAB_ARTIFACT_INPUTS, scratch, sizeof scratch, &a) == DAB_OK &&
           a.verdict == DAB_FAMILIAR;
}

int main(void) {
    dab_model *model;
    if (dab_abi_version() != DAB_ABI_VERSION) {
        SAY("dab.h and libdab.a are of different versions");
        return 1;
    }
    if (dab_model_init(storage, sizeof storage, dab_artifact, DAB_ARTIFACT_BYTES, &model) != DAB_OK ||
        dab_self_test(model, scratch, sizeof scratch) != DAB_OK) {
        SAY("the self-test failed: do not trust this build");
        return 1;
    }
    SAY("self-test passed");
    int first = trusted(model, healthy), second = trusted(model, broken);
    SAY(first ? "healthy motor: act" : "healthy motor: fall back");
    SAY(second ? "open winding: act" : "open winding: fall back");
    return !first || second;
}
