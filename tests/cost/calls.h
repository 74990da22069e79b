/* One public function a row, on the model of examples/motor: chosen by -DCALL=..., included by rows.h. */
#include <dab.h>
#include <dab_memory.h>
NUMBERS(artifact, TEXT(FOLDER) "/model.dab");
enum { OUTPUTS = 1, CODES = 4, DIM = 4, PLACES = 8 };
enum {
    INIT, CHECK, SELF_TEST, SHAPE, RATES, THRESHOLD, ASSESS, ASSESS_BATCH, PREDICT, PREDICT_BATCH, EXPLAIN, WITHOUT, ATTRIBUTE,
    MEANS, BANDS, NAME, MONITOR, OBSERVE, EXPLORE, ENCODE, TEACH, TAUGHT
};
static uint64_t storage[DAB_MODEL_BYTES / 8], places[DAB_MEMORY_BYTES(PLACES, DIM) / 8];
static float scratch[SCRATCH + INPUTS];
static dab_model *model;
static dab_memory *memory;
static dab_monitor monitor;
static dab_exploration exploration;

static bool prepare(void) {
    const dab_memory_config config = {.size = sizeof config, .codes = PLACES, .dim = DIM, .std = 1};
    const dab_monitor_config watch = {.size = sizeof watch, .enter = 9, .exit = 5, .window = 32, .enter_votes = 8, .exit_votes = 16};
    const dab_exploration_config bonus = {.size = sizeof bonus, .start = 0.1f, .clip = 5, .warmup = 2, .centered = 1};
    const float seen[] = {1, 2, 3};
    if (dab_model_init(storage, sizeof storage, artifact, BYTES, &model) != DAB_OK) return false;
    if (CALL == OBSERVE) return dab_monitor_init(&monitor, &watch) == DAB_OK;
    if (CALL == EXPLORE)
        return dab_exploration_init(&exploration, &bonus) == DAB_OK && dab_exploration_update(&exploration, seen, 3) == DAB_OK;
    return CALL < TEACH || dab_memory_init(places, sizeof places, &config, &memory) == DAB_OK;
}

__attribute__((noinline)) static void call(const float *x) {
    static float outputs[OUTPUTS], distances[CODES], assignment[CODES], dimensions[DIM], adds[INPUTS];
    static dab_assessment a, rows[1];
    static dab_shape shape;
    static char name[16];
    static dab_monitor_config tuned;
    static uint32_t now;
    dab_status s = DAB_OK;
    a.size = rows[0].size = sizeof a;
    shape.size = sizeof shape;
    tuned.size = sizeof tuned;
    if (CALL == INIT) s = dab_model_init(storage, sizeof storage, artifact, BYTES, &model);
    if (CALL == CHECK) s = dab_model_check(model);
    if (CALL == SELF_TEST) s = dab_self_test(model, scratch, sizeof scratch);
    if (CALL == SHAPE) s = dab_model_shape(model, &shape);
    if (CALL == RATES) s = dab_set_rates(model, 0.05f, 0.01f);
    if (CALL == THRESHOLD) s = dab_threshold(model, 0.01f, outputs);
    if (CALL == ASSESS) s = dab_assess(model, x, INPUTS, scratch, sizeof scratch, &a);
    if (CALL == ASSESS_BATCH) s = dab_assess_batch(model, x, 1, INPUTS, scratch, sizeof scratch, rows);
    if (CALL == PREDICT) s = dab_predict(model, x, INPUTS, outputs, OUTPUTS, scratch, sizeof scratch, &a);
    if (CALL == PREDICT_BATCH)
        s = dab_predict_batch(model, x, 1, INPUTS, outputs, OUTPUTS, scratch, sizeof scratch, rows);
    if (CALL == EXPLAIN)
        s = dab_explain(model, x, INPUTS, distances, assignment, CODES, dimensions, DIM, scratch, sizeof scratch, &a);
    if (CALL == WITHOUT) s = dab_assess_without(model, x, INPUTS, 0, 0, 3, scratch, sizeof scratch, &a);
    if (CALL == ATTRIBUTE) s = dab_attribute(model, x, INPUTS, 0, 0, 0, adds, INPUTS, scratch, sizeof scratch, &a);
    if (CALL == MEANS) s = dab_model_means(model, adds, INPUTS);
    if (CALL == BANDS) s = dab_model_bands(model, outputs, OUTPUTS);
    if (CALL == NAME) s = dab_input_name(model, INPUTS - 1, name, sizeof name);
    if (CALL == MONITOR) s = dab_model_monitor(model, &tuned, adds);
    if (CALL == OBSERVE) s = dab_monitor_observe(&monitor, now++, x[0]);
    if (CALL == EXPLORE) s = dab_exploration_compute(&exploration, x, 1, 7, outputs);
    if (CALL == ENCODE) s = dab_encode(model, x, INPUTS, dimensions, assignment, DIM, scratch, sizeof scratch);
    if (CALL == TEACH) s = dab_teach(model, memory, x, INPUTS, scratch, sizeof scratch, &a);
    if (CALL == TAUGHT) s = dab_assess_taught(model, memory, x, INPUTS, scratch, sizeof scratch, &a);
    sink = (float)s;
}
