/* dab: how far is an input from what a neural network was trained on?
 *
 * A model is one file (.dab, made by `dab train` or `dab pack`; `dab export` makes a C array of it). This library
 * reads it where it lies, flash or RAM, and answers for each input: an uncertainty in nats, a p-value, a
 * verdict. It also predicts what the network predicts, explains, watches a stream of inputs (dab_monitor) and
 * rewards exploration (dab_exploration). The same bits come out on every processor.
 *
 * Words: the network encodes an input as a Gaussian in a latent space of `dim` dimensions. The model keeps a few
 * Gaussians, its codes, that summarise the training data there. The uncertainty is the expected distance of the
 * one from the others (Kullback-Leibler divergence, in nats); the p-value is the share of held-out training inputs
 * that were at least as uncertain; the verdict compares it with two false-alarm rates.
 *
 * USAGE. C99 and later, C++. Link with -ldab, or with libdab.a by its path, which needs nothing but memcpy, memmove,
 * memset and memcmp. The names in capitals are in model.c, made by `dab export model.dab --c model.c`; without it,
 * ask dab_scratch_bytes() and dab_model_shape().
 *
 *     static uint64_t storage[DAB_MODEL_BYTES / 8];
 *     static float scratch[DAB_ARTIFACT_SCRATCH_FLOATS];
 *
 *     dab_model *model;
 *     if (dab_model_init(storage, sizeof storage, dab_artifact, DAB_ARTIFACT_BYTES, &model) != DAB_OK) stop();
 *     if (dab_self_test(model, scratch, sizeof scratch) != DAB_OK) stop();       // once, at boot
 *
 *     dab_assessment a = { .size = sizeof a };
 *     dab_status s = dab_assess(model, input, DAB_ARTIFACT_INPUTS, scratch, sizeof scratch, &a);
 *     if (s != DAB_OK || a.verdict == DAB_UNFAMILIAR) {
 *         use_the_safe_controller();
 *     }
 *
 * MEMORY. All of it is the caller's: nothing is allocated, nothing must be freed, no pointer is kept but the
 * model's to its artifact. Storage and artifact stay where they are, unchanged, while the model is used.
 * Alignment: storage 8 bytes, artifact and scratch 4, everything else as its type. Pointers that are NULL or
 * misaligned, sizes that are too small, and memory that is written and overlaps other memory of the same call
 * (or a model, or its artifact) are refused with a code. What a library cannot see the caller must promise: that
 * memory exists for the length given, that a struct has the size that its first member says, that objects
 * are not written to by others, and that nobody writes what a call reads.
 *
 * THREADS. A `const dab_model *` may be used by any number of threads and interrupt handlers at once. Scratch,
 * monitors, explorations and results may not: one user at a time. There are no locks, no globals (but one atomic word
 * of libdab.so, which remembers the processor's instructions), no thread-local data. No call blocks, prints or calls
 * back; time depends on the model's shape alone.
 *
 * ERRORS. A dab_status is 0 or negative; dab_status_string() has the words. Results are written only on DAB_OK.
 * Numbers are never reused: a program may keep them. Inputs must be finite: a NaN is refused with
 * DAB_ERR_NON_FINITE, never assessed. dab_monitor_observe and dab_monitor_poll return a state instead: every
 * value other than DAB_NOMINAL means "use the fallback".
 *
 * STRUCTS that a call fills or reads begin with `size`: set it to sizeof the struct. That is how a program and a
 * library of different age understand each other. Later versions may add members, at the end, without a new
 * DAB_ABI_VERSION. An older program with a newer library: a result is written as far as the program knows it;
 * configuration members that the program does not have are taken as 0, which always means the behaviour before they
 * came. A newer program with an older library: members of a result that the library does not know are set to 0;
 * members of a configuration that it does not know must be 0, else the call returns DAB_ERR_UNKNOWN_MEMBER. A size
 * that is none of the struct's, or above 512, is refused (DAB_ERR_STRUCT_SIZE).
 *
 * VERSIONS. DAB_VERSION_ is this header's, dab_version() the library's. Both fit if dab_abi_version() is
 * DAB_ABI_VERSION. Artifacts have a format version of their own: dab_format_oldest(), dab_format_newest().
 *
 * HOSTS. Define DAB_HOST before including this header for dab_model_open and dab_model_close, which read
 * files and use the heap. They are in the shared library only.
 *
 * Below: numbers, structs, then functions in the order in which a program calls them.
 * Generated from dab-ffi; edit it there. */
