/* Reset, vectors and semihosting of any Cortex-M with flash at 0. */
#include "board.h"

extern uint32_t data_start, data_end, data_load, bss_start, bss_end, stack_top;
int main(void);

static int call(int operation, const void *argument) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}

void print(const char *text) { call(0x04, text); }

void print_number(uint32_t number, int decimals) {
    char digits[13];
    int at = sizeof digits - 1;
    digits[at] = '\0';
    for (int place = 0; place <= decimals || number > 0; place++, number /= 10) {
        if (place == decimals && decimals > 0) digits[--at] = '.';
        digits[--at] = (char)('0' + number % 10);
    }
    print(digits + at);
}

_Noreturn void leave(int status) {
    const uint32_t reason[2] = {0x20026, (uint32_t)status}; /* application exit */
    call(0x20, reason);
    for (;;) {}
}

static _Noreturn void fault(void) {
    print("fault\n");
    leave(1);
}

_Noreturn void reset(void) {
#if defined(__ARM_FP)
    *(volatile uint32_t *)0xe000ed88 |= 0xfu << 20; /* CPACR: the FPU is on before its first instruction */
    __asm__ volatile("dsb\n isb");
#endif
    for (uint32_t *to = &data_start, *from = &data_load; to < &data_end;) *to++ = *from++;
    for (uint32_t *to = &bss_start; to < &bss_end;) *to++ = 0;
    leave(main());
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &stack_top, (void *)reset, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault,
};
