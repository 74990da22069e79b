/* Instructions and stack of one call, on a Cortex-M under QEMU: SysTick counts virtual time, of which -icount gives
 * every instruction the same amount. Prints: least and most instructions over the inputs, bytes of stack. */
#include <string.h>

#include "board.h"
#include "rows.h"

#define SYST ((volatile uint32_t *)0xe000e010)
/* Nanoseconds per instruction (-icount shift) and per tick of SysTick. */
#ifndef TICK_NS
#define TICK_NS 40
#endif
enum { SHIFT = 6, CALLS = 40, PAINT = 12288 / 4, SPARE = 64 / 4 };

static uint32_t state = 0x9e3779b9u;

/* Uniform in [-4, 4). */
static float number(void) {
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return (float)((int32_t)state >> 8) / (float)(1 << 21);
}

/* A counter of 24 bits that counts down. */
static uint32_t ticks(void) { return SYST[2]; }
static uint32_t since(uint32_t start, uint32_t end) { return (start - end) & 0xffffff; }

/* Words of stack below this frame that a call changes. */
__attribute__((noinline)) static uint32_t stack_of(void (*call)(const float *), const float *input) {
    uint32_t *top, *low;
    __asm__ volatile("mov %0, sp" : "=r"(top));
    low = top - SPARE - PAINT;
    for (volatile uint32_t *at = low; at < top - SPARE; at++) *at = 0xc0dec0de;
    call(input);
    for (volatile uint32_t *at = low; at < top; at++)
        if (*at != 0xc0dec0de) return (uint32_t)(top - at);
    return 0;
}

int main(void) {
    static float input[INPUTS];
    uint32_t least = UINT32_MAX, most = 0, empty = UINT32_MAX;
    if (!prepare()) return 1;
    SYST[1] = 0xffffff;
    SYST[2] = 0;
    SYST[0] = 5;
    for (int n = 0; n < CALLS; n++) {
        for (int i = 0; i < INPUTS; i++) input[i] = number();
        uint32_t start = ticks(), between = ticks();
        call(input);
        uint32_t cost = since(between, ticks());
        if (since(start, between) < empty) empty = since(start, between);
        if (cost < least) least = cost;
        if (cost > most) most = cost;
    }
    uint32_t stack = 4 * stack_of(call, input);
    print_number((uint32_t)((uint64_t)(least - empty) * TICK_NS >> SHIFT), 0);
    print(" ");
    print_number((uint32_t)((uint64_t)(most - empty) * TICK_NS >> SHIFT), 0);
    print(" ");
    print_number(stack, 0);
    print("\n");
    return 0;
}
