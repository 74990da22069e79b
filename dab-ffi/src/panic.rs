//! What a panic would do, in a library without `std`. None is reachable; feature `prove-no-panic` proves it by
//! referring to a symbol that nobody defines.

#[cfg(feature = "prove-no-panic")]
unsafe extern "C" {
    /// Defined nowhere: a linker that asks for it has found a way to a panic.
    safe fn dab_a_panic_is_reachable() -> !;
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    #[cfg(feature = "prove-no-panic")]
    dab_a_panic_is_reachable();
    #[cfg(not(feature = "prove-no-panic"))]
    loop {
        core::hint::spin_loop();
    }
}
