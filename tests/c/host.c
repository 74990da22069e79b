/* A model from a file, through the shared library. */
#define DAB_HOST
#include <dab.h>
#include <stdio.h>
#include <stdlib.h>

int main(void) {
    dab_model *model = NULL;
    float *scratch;
    dab_status status;
    if (dab_model_open("no such file", &model) != DAB_ERR_FILE || model != NULL) return 1;
    if (dab_model_open("host.c", &model) != DAB_ERR_NOT_AN_ARTIFACT || model != NULL) return 2;
    if (dab_model_open(NULL, &model) != DAB_ERR_NULL) return 3;
    /* A device that never ends is not read to its end. */
    if (dab_model_open("/dev/zero", &model) != DAB_ERR_NOT_AN_ARTIFACT || model != NULL) return 6;
    dab_model_close(NULL);
    if (dab_model_open("info.dab", &model) != DAB_ERR_INFO || model != NULL) return 5;
    if (dab_model_open("model.dab", &model) != DAB_OK) return 4;
    scratch = malloc(dab_scratch_bytes(model));
    status = scratch ? dab_self_test(model, scratch, dab_scratch_bytes(model)) : DAB_ERR_NULL;
    printf("dab %s: %s\n", dab_version(), dab_status_string(status));
    free(scratch);
    dab_model_close(model);
    return status != DAB_OK;
}
