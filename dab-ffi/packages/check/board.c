/* Start-up code and semihosting for a Cortex-M or a 32-bit RISC-V under QEMU, without a C library: dab-ffi/dist --check
 * links the sample with it. A board has its own. */
#include <stddef.h>
#include <stdint.h>

#include "board.h"

extern uint32_t data_start, data_end, data_load, bss_start, bss_end, stack_top;
int main(void);
void reset(void);

/* What compilers call by themselves. */
void *memset(void *to, int value, size_t n) {
    for (volatile unsigned char *at = to; n > 0; n--) *at++ = (unsigned char)value;
    return to;
}
void *memcpy(void *to, const void *from, size_t n) {
    const unsigned char *source = from;
    for (volatile unsigned char *at = to; n > 0; n--) *at++ = *source++;
    return to;
}

#if defined(__riscv)
static long call(long operation, const void *argument) {
    register long a0 __asm__("a0") = operation;
    register const void *a1 __asm__("a1") = argument;
    /* The three instructions that QEMU takes for a call must not be compressed. */
    __asm__ volatile(".option push\n.option norvc\nslli zero, zero, 0x1f\nebreak\nsrai zero, zero, 7\n.option pop"
                     : "+r"(a0) : "r"(a1) : "memory");
    return a0;
}
__asm__(".section .vectors,\"ax\"\n.global reset\nreset:\nla sp, stack_top\n"
#if defined(__riscv_flen)
        "li t0, 0x2000\ncsrs mstatus, t0\n" /* mstatus.FS: the FPU is on */
#endif
        "call start\n.text\n");
#else
static int call(int operation, const void *argument) {
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}
#endif

void say(const char *text) {
    call(0x04, text);
    call(0x04, "\n");
}

static _Noreturn void leave(int status) {
    const uintptr_t reason[2] = {0x20026, (uintptr_t)status}; /* application exit */
    call(0x20, reason);
    for (;;) {}
}

_Noreturn void start(void);
_Noreturn void start(void) {
#if defined(__ARM_FP)
    *(volatile uint32_t *)0xe000ed88 |= 0xfu << 20; /* CPACR: the FPU is on before its first instruction */
    __asm__ volatile("dsb\n isb");
#endif
    for (uint32_t *to = &data_start, *from = &data_load; to < &data_end;) *to++ = *from++;
    for (uint32_t *to = &bss_start; to < &bss_end;) *to++ = 0;
    leave(main());
}

#if !defined(__riscv)
static _Noreturn void fault(void) {
    say("fault");
    leave(1);
}

__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    &stack_top, (void *)start, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault,
};
#endif
