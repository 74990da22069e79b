/* The header from a second unit, and twice. */
#include "dab.h"
#include "dab.h"

#include "cases.h"

int second_unit(void) { return dab_abi_version() == DAB_ABI_VERSION && dab_model_bytes() == DAB_MODEL_BYTES; }
