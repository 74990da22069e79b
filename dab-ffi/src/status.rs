//! Status numbers: every error of `dab-core` has one, none is ever reused.

use core::ffi::{CStr, c_char};

use dab_core::{ArtifactError, InputError, SelfTestError};

/// Result of a call: DAB_OK or a negative number.
pub type Status = i32;

/// What a refused call gives inside this crate.
pub type Result<T> = core::result::Result<T, Status>;

/// Success.
pub const DAB_OK: i32 = 0;
/// A pointer is NULL.
pub const DAB_ERR_NULL: i32 = -1;
/// A pointer is not aligned for what it points to.
pub const DAB_ERR_MISALIGNED: i32 = -2;
/// Memory that is written overlaps other memory of the call.
pub const DAB_ERR_OVERLAP: i32 = -3;
/// Memory is smaller than its macro or function says.
pub const DAB_ERR_TOO_SMALL: i32 = -4;
/// A size is larger than the address space.
pub const DAB_ERR_TOO_LARGE: i32 = -5;
/// Not a model, monitor, exploration or memory, or not initialized.
pub const DAB_ERR_NOT_INITIALIZED: i32 = -6;
/// The size member of a struct is not set, or not a size of it.
pub const DAB_ERR_STRUCT_SIZE: i32 = -7;
/// A configuration value is out of its range.
pub const DAB_ERR_CONFIG: i32 = -8;
/// No calibration table, or too few held-out inputs for the rate.
pub const DAB_ERR_NOT_CALIBRATED: i32 = -9;
/// The input does not have as many values as the model takes.
pub const DAB_ERR_LENGTH: i32 = -10;
/// A value is NaN or infinite.
pub const DAB_ERR_NON_FINITE: i32 = -11;
/// Scratch is smaller than dab_scratch_bytes() says.
pub const DAB_ERR_SCRATCH: i32 = -12;
/// Memory for results does not have the length of the model's.
pub const DAB_ERR_OUTPUT_LENGTH: i32 = -13;
/// The saved state is absent, damaged or of another configuration.
pub const DAB_ERR_SAVED_STATE: i32 = -14;
/// A configuration sets a member that the library does not know.
pub const DAB_ERR_UNKNOWN_MEMBER: i32 = -15;
/// A rate is not between 0 and 1, or unfamiliar is above doubtful.
pub const DAB_ERR_RATES: i32 = -16;
/// The artifact does not start at a multiple of 4 bytes.
pub const DAB_ERR_ARTIFACT_MISALIGNED: i32 = -17;
/// There is no place for another taught code.
pub const DAB_ERR_MEMORY_FULL: i32 = -18;
/// An input or an encoded value is 2^50 or more: it cannot be taught.
pub const DAB_ERR_SATURATED: i32 = -19;
/// A known answer came out differently: do not use the model here.
pub const DAB_ERR_SELF_TEST: i32 = -20;
/// Known answers agree, but not all bits behind them.
pub const DAB_ERR_SELF_TEST_DIGEST: i32 = -21;
/// The artifact has no training means, and none were given.
pub const DAB_ERR_NO_MEANS: i32 = -22;
/// The artifact does not have this name.
pub const DAB_ERR_NO_NAME: i32 = -23;
/// The artifact has no monitor.
pub const DAB_ERR_NO_MONITOR: i32 = -24;
/// The artifact has no bands of its predictions.
pub const DAB_ERR_NO_BANDS: i32 = -25;
/// The file cannot be read.
pub const DAB_ERR_FILE: i32 = -30;
/// The bytes do not begin like an artifact.
pub const DAB_ERR_NOT_AN_ARTIFACT: i32 = -100;
/// The artifact ends too early.
pub const DAB_ERR_TRUNCATED: i32 = -101;
/// Bytes follow after the end of the artifact.
pub const DAB_ERR_TRAILING_BYTES: i32 = -102;
/// The header is damaged.
pub const DAB_ERR_HEADER_CHECKSUM: i32 = -103;
/// A format version that this library does not know.
pub const DAB_ERR_VERSION: i32 = -104;
/// The artifact needs features that this library does not have.
pub const DAB_ERR_FEATURES: i32 = -105;
/// The artifact follows another schema.
pub const DAB_ERR_SCHEMA: i32 = -106;
/// The artifact is damaged.
pub const DAB_ERR_BODY_CHECKSUM: i32 = -107;
/// A section does not lie where the format has it.
pub const DAB_ERR_SECTION_LAYOUT: i32 = -108;
/// The meta section cannot be decoded.
pub const DAB_ERR_META_ENCODING: i32 = -109;
/// Bytes are left over in the meta section.
pub const DAB_ERR_META_TRAILING_BYTES: i32 = -110;
/// The meta section is not in its shortest encoding.
pub const DAB_ERR_META_NOT_CANONICAL: i32 = -111;
/// A size in the artifact is zero or beyond the format's limits.
pub const DAB_ERR_LIMIT: i32 = -112;
/// A residual connection does not fit.
pub const DAB_ERR_RESIDUAL: i32 = -113;
/// The artifact does not have as many parameters as it says.
pub const DAB_ERR_PARAM_COUNT: i32 = -114;
/// A padding byte of the artifact is not zero.
pub const DAB_ERR_PADDING: i32 = -115;
/// A parameter of the artifact is NaN or infinite.
pub const DAB_ERR_PARAM_NON_FINITE: i32 = -117;
/// A parameter of the artifact is out of range.
pub const DAB_ERR_PARAM_RANGE: i32 = -118;
/// A code of the artifact has no positive-definite covariance.
pub const DAB_ERR_NOT_POSITIVE_DEFINITE: i32 = -119;
/// The priors of the artifact do not sum to 1.
pub const DAB_ERR_PRIOR_SUM: i32 = -120;
/// The temperature of the artifact is negative or out of range.
pub const DAB_ERR_ALPHA: i32 = -121;
/// The calibration table of the artifact is wrong.
pub const DAB_ERR_CALIBRATION: i32 = -122;
/// The false-alarm rates of the artifact are wrong.
pub const DAB_ERR_ARTIFACT_RATES: i32 = -123;
/// The info section cannot be decoded (dab_model_open only).
pub const DAB_ERR_INFO: i32 = -124;
/// A channel of the artifact needs a decoder that it does not have.
pub const DAB_ERR_CHANNELS: i32 = -125;
/// A number of the monitor in the artifact is out of range.
pub const DAB_ERR_MONITOR: i32 = -126;

/// Every status with its words.
pub const ALL: &[(Status, &CStr)] = &[
    (DAB_OK, c"success"),
    (DAB_ERR_NULL, c"a pointer is NULL"),
    (DAB_ERR_MISALIGNED, c"a pointer is misaligned"),
    (DAB_ERR_OVERLAP, c"memory that is written overlaps other memory of the call"),
    (DAB_ERR_TOO_SMALL, c"memory is too small"),
    (DAB_ERR_TOO_LARGE, c"a size is larger than the address space"),
    (DAB_ERR_NOT_INITIALIZED, c"the object is not initialized"),
    (DAB_ERR_STRUCT_SIZE, c"the size member of a struct is wrong"),
    (DAB_ERR_CONFIG, c"a configuration value is out of range"),
    (DAB_ERR_NOT_CALIBRATED, c"the model is not calibrated for this"),
    (DAB_ERR_LENGTH, c"the input has the wrong number of values"),
    (DAB_ERR_NON_FINITE, c"a value is not a finite number"),
    (DAB_ERR_SCRATCH, c"scratch memory is too small"),
    (DAB_ERR_OUTPUT_LENGTH, c"memory for results has the wrong number of values"),
    (DAB_ERR_SAVED_STATE, c"the saved state is absent, damaged or of another configuration"),
    (DAB_ERR_UNKNOWN_MEMBER, c"a configuration sets a member that this library does not know"),
    (DAB_ERR_RATES, c"a false-alarm rate is not between 0 and 1, or unfamiliar is above doubtful"),
    (DAB_ERR_ARTIFACT_MISALIGNED, c"the artifact does not start at a multiple of 4 bytes"),
    (DAB_ERR_MEMORY_FULL, c"every place of the memory is taken"),
    (DAB_ERR_SATURATED, c"a value is too large to be taught"),
    (DAB_ERR_SELF_TEST, c"self-test failed: a known answer differs"),
    (DAB_ERR_SELF_TEST_DIGEST, c"self-test failed: bits of distances or outputs differ"),
    (DAB_ERR_NO_MEANS, c"the artifact has no training means, and none were given"),
    (DAB_ERR_NO_NAME, c"the artifact does not have this name"),
    (DAB_ERR_NO_MONITOR, c"the artifact has no monitor"),
    (DAB_ERR_NO_BANDS, c"the artifact has no bands of its predictions"),
    (DAB_ERR_FILE, c"the file cannot be read"),
    (DAB_ERR_NOT_AN_ARTIFACT, c"these bytes are not a dab artifact"),
    (DAB_ERR_TRUNCATED, c"the artifact is truncated"),
    (DAB_ERR_TRAILING_BYTES, c"bytes follow after the artifact"),
    (DAB_ERR_HEADER_CHECKSUM, c"the artifact's header is damaged"),
    (DAB_ERR_VERSION, c"the artifact has another format version"),
    (DAB_ERR_FEATURES, c"the artifact needs unknown features"),
    (DAB_ERR_SCHEMA, c"the artifact follows another schema"),
    (DAB_ERR_BODY_CHECKSUM, c"the artifact is damaged"),
    (DAB_ERR_SECTION_LAYOUT, c"a section does not lie where the format has it"),
    (DAB_ERR_META_ENCODING, c"the meta section cannot be decoded"),
    (DAB_ERR_META_TRAILING_BYTES, c"bytes are left over in the meta section"),
    (DAB_ERR_META_NOT_CANONICAL, c"the meta section is not in its shortest encoding"),
    (DAB_ERR_LIMIT, c"a size in the artifact is beyond the limits"),
    (DAB_ERR_RESIDUAL, c"a residual connection does not fit"),
    (DAB_ERR_PARAM_COUNT, c"the artifact has the wrong number of parameters"),
    (DAB_ERR_PADDING, c"a padding byte is not zero"),
    (DAB_ERR_PARAM_NON_FINITE, c"a parameter is not a finite number"),
    (DAB_ERR_PARAM_RANGE, c"a parameter is out of range"),
    (DAB_ERR_NOT_POSITIVE_DEFINITE, c"a covariance is not positive definite"),
    (DAB_ERR_PRIOR_SUM, c"the priors do not sum to 1"),
    (DAB_ERR_ALPHA, c"alpha is negative or out of range"),
    (DAB_ERR_CALIBRATION, c"the calibration table is wrong"),
    (DAB_ERR_ARTIFACT_RATES, c"the artifact's false-alarm rates are not 0 < unfamiliar <= doubtful < 1"),
    (DAB_ERR_INFO, c"the info section cannot be decoded"),
    (DAB_ERR_CHANNELS, c"a channel needs a decoder that the artifact does not have"),
    (DAB_ERR_MONITOR, c"a number of the artifact's monitor is out of range"),
];

/// The words of a status, in English; "unknown status" for any other number. The text is static: never free it.
#[unsafe(no_mangle)]
pub extern "C" fn dab_status_string(status: Status) -> *const c_char {
    let found = ALL.iter().find(|(number, _)| *number == status);
    found.map_or(c"unknown status", |(_, words)| words).as_ptr()
}

/// DAB_OK or the error.
pub(crate) fn of(result: Result<()>) -> Status {
    match result {
        Ok(()) => DAB_OK,
        Err(status) => status,
    }
}

/// The number of a refused artifact.
#[must_use]
pub const fn of_artifact(error: &ArtifactError) -> Status {
    match error {
        ArtifactError::NotAnArtifact => DAB_ERR_NOT_AN_ARTIFACT,
        ArtifactError::Truncated { .. } => DAB_ERR_TRUNCATED,
        ArtifactError::TrailingBytes { .. } => DAB_ERR_TRAILING_BYTES,
        ArtifactError::HeaderChecksum { .. } => DAB_ERR_HEADER_CHECKSUM,
        ArtifactError::Version { .. } => DAB_ERR_VERSION,
        ArtifactError::IncompatibleFeatures { .. } => DAB_ERR_FEATURES,
        ArtifactError::LeftOut { .. } => DAB_ERR_FEATURES,
        ArtifactError::Schema { .. } => DAB_ERR_SCHEMA,
        ArtifactError::BodyChecksum { .. } => DAB_ERR_BODY_CHECKSUM,
        ArtifactError::SectionLayout => DAB_ERR_SECTION_LAYOUT,
        ArtifactError::MetaEncoding => DAB_ERR_META_ENCODING,
        ArtifactError::MetaTrailingBytes { .. } => DAB_ERR_META_TRAILING_BYTES,
        ArtifactError::MetaNotCanonical => DAB_ERR_META_NOT_CANONICAL,
        ArtifactError::Limit { .. } => DAB_ERR_LIMIT,
        ArtifactError::Norm { .. } => DAB_ERR_LIMIT,
        ArtifactError::Residual { .. } => DAB_ERR_RESIDUAL,
        ArtifactError::Channels { .. } => DAB_ERR_CHANNELS,
        ArtifactError::ParamCount { .. } => DAB_ERR_PARAM_COUNT,
        ArtifactError::Monitor { .. } => DAB_ERR_MONITOR,
        ArtifactError::Padding { .. } => DAB_ERR_PADDING,
        ArtifactError::Misaligned => DAB_ERR_ARTIFACT_MISALIGNED,
        ArtifactError::NonFinite { .. } => DAB_ERR_PARAM_NON_FINITE,
        ArtifactError::OutOfRange { .. } => DAB_ERR_PARAM_RANGE,
        ArtifactError::NotPositiveDefinite { .. } => DAB_ERR_NOT_POSITIVE_DEFINITE,
        ArtifactError::PriorSum => DAB_ERR_PRIOR_SUM,
        ArtifactError::Alpha => DAB_ERR_ALPHA,
        ArtifactError::CalibrationOrder { .. } => DAB_ERR_CALIBRATION,
        ArtifactError::Rates => DAB_ERR_ARTIFACT_RATES,
        ArtifactError::Info => DAB_ERR_INFO,
        // There is none at present: tests/format.rs finds every refusal of dab-core above.
        _ => DAB_ERR_NOT_AN_ARTIFACT,
    }
}

/// The number of a refused input.
#[must_use]
pub const fn of_input(error: &InputError) -> Status {
    match error {
        InputError::Length { .. } => DAB_ERR_LENGTH,
        InputError::NonFinite { .. } => DAB_ERR_NON_FINITE,
        InputError::Scratch { .. } => DAB_ERR_SCRATCH,
        InputError::OutputLength { .. } => DAB_ERR_OUTPUT_LENGTH,
    }
}

/// The number of a failed self-test.
#[must_use]
pub const fn of_self_test(error: &SelfTestError) -> Status {
    match error {
        SelfTestError::Uncertainty { .. } => DAB_ERR_SELF_TEST,
        SelfTestError::Digest { .. } => DAB_ERR_SELF_TEST_DIGEST,
        SelfTestError::Input(error) => of_input(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dab_core::artifact::Part;

    #[test]
    fn every_refusal_of_a_file_has_its_number() {
        use ArtifactError as E;
        let part = Part::Layers;
        for (error, number) in [
            (E::NotAnArtifact, DAB_ERR_NOT_AN_ARTIFACT),
            (E::Truncated { expected: 2, found: 1 }, DAB_ERR_TRUNCATED),
            (E::TrailingBytes { expected: 1, found: 2 }, DAB_ERR_TRAILING_BYTES),
            (E::HeaderChecksum { stored: 0, computed: 1 }, DAB_ERR_HEADER_CHECKSUM),
            (E::Version { major: 2, minor: 0 }, DAB_ERR_VERSION),
            (E::IncompatibleFeatures { bits: 64 }, DAB_ERR_FEATURES),
            (E::LeftOut { feature: "int8" }, DAB_ERR_FEATURES),
            (E::Schema { found: 0 }, DAB_ERR_SCHEMA),
            (E::BodyChecksum { stored: 0, computed: 1 }, DAB_ERR_BODY_CHECKSUM),
            (E::SectionLayout, DAB_ERR_SECTION_LAYOUT),
            (E::MetaEncoding, DAB_ERR_META_ENCODING),
            (E::MetaTrailingBytes { left: 1 }, DAB_ERR_META_TRAILING_BYTES),
            (E::MetaNotCanonical, DAB_ERR_META_NOT_CANONICAL),
            (E::Limit { field: "dim", value: 0, max: 1 }, DAB_ERR_LIMIT),
            (E::Norm { layer: 0 }, DAB_ERR_LIMIT),
            (E::Residual { layer: 0 }, DAB_ERR_RESIDUAL),
            (E::Channels { field: "views" }, DAB_ERR_CHANNELS),
            (E::ParamCount { expected: 1, found: 2 }, DAB_ERR_PARAM_COUNT),
            (E::Monitor { field: "window" }, DAB_ERR_MONITOR),
            (E::Padding { offset: 0 }, DAB_ERR_PADDING),
            (E::Misaligned, DAB_ERR_ARTIFACT_MISALIGNED),
            (E::NonFinite { part, index: 0 }, DAB_ERR_PARAM_NON_FINITE),
            (E::OutOfRange { part, index: 0 }, DAB_ERR_PARAM_RANGE),
            (E::NotPositiveDefinite { code: 0 }, DAB_ERR_NOT_POSITIVE_DEFINITE),
            (E::PriorSum, DAB_ERR_PRIOR_SUM),
            (E::Alpha, DAB_ERR_ALPHA),
            (E::CalibrationOrder { index: 0 }, DAB_ERR_CALIBRATION),
            (E::Rates, DAB_ERR_ARTIFACT_RATES),
            (E::Info, DAB_ERR_INFO),
        ] {
            assert_eq!(of_artifact(&error), number, "{error:?}");
        }
    }

    #[test]
    fn numbers_and_words_are_distinct() {
        for (i, (number, words)) in ALL.iter().enumerate() {
            assert!(*number <= 0 && (*number == 0) == (i == 0));
            assert!(ALL.iter().skip(i + 1).all(|(n, w)| n != number && w != words), "{number}");
        }
    }
}
