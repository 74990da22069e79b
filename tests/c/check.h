/* What a test program counts: conditions that do not hold, each with its place. C99. */
#include <stdio.h>

static int failures;

#define CHECK(condition)                                                             \
    do {                                                                             \
        if (!(condition)) {                                                          \
            printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);                   \
            failures++;                                                              \
        }                                                                            \
    } while (0)

/* The last line of the program, and its exit code. */
static int checked(void) {
    printf(failures ? "%d failures\n" : "all checks hold\n", failures);
    return failures != 0;
}
