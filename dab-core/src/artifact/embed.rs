//! An artifact inside of a program: [`aligned_artifact!`](crate::aligned_artifact).

/// Bytes of a file in the program, at a multiple of 16 bytes: a `&'static [u8]` for
/// [`Model::from_bytes`](crate::Model::from_bytes).
///
/// Parameters are read in place as `f32`, so an artifact must begin at a multiple of four bytes, which
/// `include_bytes!` alone does not promise. A multiple of 16 also suits wide loads. The path is relative to the
/// file that calls the macro, as with `include_bytes!`.
///
/// ```
/// static MODEL: &[u8] = dab_core::aligned_artifact!("../../examples/motor.dab");
///
/// let model = dab_core::Model::from_bytes(MODEL)?;
/// assert_eq!(model.shape().inputs, 26);
/// # Ok::<(), dab_core::ArtifactError>(())
/// ```
#[macro_export]
macro_rules! aligned_artifact {
    ($path:expr $(,)?) => {{
        const FILE: &$crate::parts::Aligned<[u8]> = &$crate::parts::Aligned(*include_bytes!($path));
        &FILE.0
    }};
}

/// What [`aligned_artifact!`](crate::aligned_artifact) puts the bytes in.
#[repr(align(16))]
#[derive(Debug)]
pub struct Aligned<T: ?Sized>(
    /// The bytes.
    pub T,
);

#[cfg(test)]
mod tests {
    static MODEL: &[u8] = crate::aligned_artifact!("../../examples/motor.dab");
    static ODD: [&[u8]; 2] =
        [crate::aligned_artifact!("../../Cargo.toml"), crate::aligned_artifact!("../../README.md",)];

    #[test]
    fn embedded_files_begin_at_a_multiple_of_16() {
        for file in [MODEL, ODD[0], ODD[1]] {
            assert!(file.as_ptr().addr().is_multiple_of(16));
        }
        assert_eq!(ODD[1], include_bytes!("../../README.md"));
        assert!(crate::Model::from_bytes(MODEL).is_ok());
    }
}
