/* What the examples in C need of a board: text to the debugger (semihosting) and an exit. */
#ifndef BOARD_H
#define BOARD_H
#include <stdint.h>

void print(const char *text);
/* number / 10^decimals, without a C library. */
void print_number(uint32_t number, int decimals);
/* Ends the program; QEMU's exit status is `status`. */
_Noreturn void leave(int status);

#endif
