/* The motor watch of ../cortex-m in C: the same model, the same stream, the same text. The compiler of this firmware
 * knows no Rust: it needs dab.h, libdab.a and model.c (dab export). */
#include <dab.h>

#include "board.h"
#include "model.c"

enum { WINDOW = 24, COUNTS = WINDOW + 1 };

/* A recorded stream instead of an ADC: windows of 24 counts of the current and one of the voltage. */
__asm__(".section .rodata\n .balign 4\n .global stream, stream_end\n"
        "stream: .incbin \"../motor/stream.bin\"\nstream_end:\n .text\n");
extern const uint16_t stream[], stream_end[];

static uint64_t storage[DAB_MODEL_BYTES / 8];
static float scratch[DAB_ARTIFACT_SCRATCH_FLOATS];

/* How the samples differ from their mean, the mean, the voltage. */
static void inputs_of(const uint16_t *counts, float *inputs) {
    int32_t sum = 0;
    for (int n = 0; n < WINDOW; n++) sum += counts[n];
    int32_t mean = sum / WINDOW;
    for (int n = 0; n < WINDOW; n++) inputs[n] = (float)(counts[n] - mean);
    inputs[WINDOW] = (float)mean;
    inputs[WINDOW + 1] = counts[WINDOW];
}

static const char *meaning(int32_t state) {
    return state == DAB_NOMINAL ? ": trusted, speed " : state == DAB_FALLBACK ? ": fallback, speed " : ": no data, speed ";
}

int main(void) {
    dab_model *model;
    dab_monitor monitor;
    dab_monitor_config config = {
        .size = sizeof config, .window = 8, .enter_votes = 4, .exit_votes = 8, .reject_votes = 2,
        .min_dwell = 10, .timeout = 3,
    };
    if (dab_model_init(storage, sizeof storage, dab_artifact, DAB_ARTIFACT_BYTES, &model) != DAB_OK) {
        print("the model is damaged\n");
        return 1;
    }
    if (dab_self_test(model, scratch, sizeof scratch) != DAB_OK) {
        print("self-test failed: do not trust this build\n");
        return 1;
    }
    if (dab_threshold(model, 0.01f, &config.enter) != DAB_OK || dab_threshold(model, 0.05f, &config.exit) != DAB_OK ||
        dab_monitor_init(&monitor, &config) != DAB_OK)
        return 1;
    print("self-test passed\n");
    int32_t before = DAB_STALE;
    uint32_t now = 0;
    for (const uint16_t *counts = stream; counts < stream_end; counts += COUNTS, now++) {
        float inputs[DAB_ARTIFACT_INPUTS], speed = 0;
        dab_assessment a = {.size = sizeof a};
        inputs_of(counts, inputs);
        int32_t state = dab_guard(model, &monitor, now, inputs, DAB_ARTIFACT_INPUTS, &speed, 1, scratch, sizeof scratch, &a);
        if (state != before) {
            print("window ");
            print_number(now, 0);
            print(meaning(state));
            print_number((uint32_t)speed, 0);
            print(" rad/s, u ");
            print_number((uint32_t)(a.uncertainty * 100.0f), 2);
            print(" nats\n");
            before = state;
        }
    }
    dab_monitor_statistics statistics = {.size = sizeof statistics};
    if (dab_monitor_stats(&monitor, &statistics) != DAB_OK) return 1;
    print_number((uint32_t)statistics.inputs, 0);
    print(" windows, ");
    print_number((uint32_t)statistics.alarms, 0);
    print(" alarms\n");
    return 0;
}
