// A model that watches a motor judges two recorded windows: one of a healthy motor, one of a motor with an open winding.
// Your own model: dab export model.dab --c model.c --header model.h
#include <dab.h>

#include "model.h"

static uint64_t storage[DAB_MODEL_BYTES / 8];
static float scratch[DAB_ARTIFACT_SCRATCH_FLOATS];
static dab_model *model;

static const float healthy[DAB_ARTIFACT_INPUTS] = {
    140, 127, 121, 115, 111, 103, 94, 79, 60, 33, 5, -23, -50, -71, -83, -85, -78, -72, -65, -59, -64, -81, -108, -141,
    1312, 2272};
static const float broken[DAB_ARTIFACT_INPUTS] = {
    -17, 18, 17, 27, 30, 43, 59, 75, 86, -188, -189, 18, 72, 69, 52, 42, 31, 28, 31, 39, -190, -188, -34, 83,
    1256, 2774};

// Everything but "familiar" means no: doubt, an error, no calibration.
static bool trusted(const float *input) {
    dab_assessment a = {};
    a.size = sizeof a;
    return dab_assess(model, input, DAB_ARTIFACT_INPUTS, scratch, sizeof scratch, &a) == DAB_OK && a.verdict == DAB_FAMILIAR;
}

void setup() {
    Serial.begin(115200);
    while (!Serial) {}
    if (dab_model_init(storage, sizeof storage, dab_artifact, DAB_ARTIFACT_BYTES, &model) != DAB_OK ||
        dab_self_test(model, scratch, sizeof scratch) != DAB_OK) {
        Serial.println("the self-test failed: do not trust this build");
        for (;;) {}
    }
    Serial.println("self-test passed");
    Serial.println(trusted(healthy) ? "healthy motor: act" : "healthy motor: fall back");
    Serial.println(trusted(broken) ? "open winding: act" : "open winding: fall back");
}

void loop() {}
