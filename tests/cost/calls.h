/* One public function a row, on the model of examples/motor: chosen by -DCALL=..., included by rows.h. */
#include <dab.h>
#include <dab_memory.h>
NUMBERS(artifact, TEXT(FOLDER) "/model.dab");
enum { OUTPUTS = 1, CODES = 4, DIM = 4, PLACES = 8 };
enum { INIT, SELF_TEST, SHAPE, THRESHOLD, ASSESS, ASSESS_BATCH, PREDICT, EXPLAIN, WITHOUT, ATTRIBUTE, NAME, ENCODE, TEACH, TAUGHT };
static uint64_t storage[DAB_MODEL_BYTES / 8], places[DAB_MEMORY_BYTES(PLACES, DIM) / 8];
static float scratch[SCRATCH + INPUTS];
static dab_model *model;
static dab_memory *memory;

static bool prepare(void) {
    const dab_memory_config config = {.size = sizeof config, .codes = PLACES, .dim = DIM, .std = 1};
    if (dab_model_init(storage, sizeof storage, artifact, BYTES, &model) != DAB_OK) return false;
    return CALL < TEACH || dab_memory_init(places, sizeof places, &config, &memory) == DAB_OK;
}

__attribute__((noinline)) static void call(const float *x) {
    static float outputs[OUTPUTS], distances[CODES], assignment[CODES], dimensions[DIM], adds[INPUTS];
    static dab_assessment a, rows[1];
    static dab_shape shape;
    static char name[16];
    dab_status s = DAB_OK;
    a.size = rows[0].size = sizeof a;
    shape.size = sizeof shape;
    if (CALL == INIT) s = dab_model_init(storage, sizeof storage, artifact, BYTES, &model);
    if (CALL == SELF_TEST) s = dab_self_test(model, scratch, sizeof scratch);
    if (CALL == SHAPE) s = dab_model_shape(model, &shape);
    if (CALL == THRESHOLD) s = dab_threshold(model, 0.01f, outputs);
    if (CALL == ASSESS) s = dab_assess(model, x, INPUTS, scratch, sizeof scratch, &a);
    if (CALL == ASSESS_BATCH) s = dab_assess_batch(model, x, 1, INPUTS, scratch, sizeof scratch, rows);
    if (CALL == PREDICT) s = dab_predict(model, x, INPUTS, outputs, OUTPUTS, scratch, sizeof scratch, &a);
    if (CALL == EXPLAIN)
        s = dab_explain(model, x, INPUTS, distances, assignment, CODES, dimensions, DIM, scratch, sizeof scratch, &a);
    if (CALL == WITHOUT) s = dab_assess_without(model, x, INPUTS, 0, 0, 3, scratch, sizeof scratch, &a);
    if (CALL == ATTRIBUTE) s = dab_attribute(model, x, INPUTS, 0, 0, 0, adds, INPUTS, scratch, sizeof scratch, &a);
    if (CALL == NAME) s = dab_input_name(model, INPUTS - 1, name, sizeof name);
    if (CALL == ENCODE) s = dab_encode(model, x, INPUTS, dimensions, assignment, DIM, scratch, sizeof scratch);
    if (CALL == TEACH) s = dab_teach(model, memory, x, INPUTS, scratch, sizeof scratch, &a);
    if (CALL == TAUGHT) s = dab_assess_taught(model, memory, x, INPUTS, scratch, sizeof scratch, &a);
    sink = (float)s;
}
