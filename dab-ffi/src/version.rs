//! Versions: of the library, of its binary interface, and of the artifacts that it reads.

use core::ffi::{CStr, c_char};

use dab_core::artifact::schema;

/// Version of this header.
pub const DAB_VERSION_MAJOR: u32 = 0;
/// Minor part of it.
pub const DAB_VERSION_MINOR: u32 = 1;
/// Patch part of it.
pub const DAB_VERSION_PATCH: u32 = 0;
/// Binary interface; rises when a compiled program could break.
pub const DAB_ABI_VERSION: u32 = 3;

/// The library's version as text.
const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(text) => text,
    Err(_) => c"",
};

/// Version of the linked library, such as "0.1.0". The text is static: never free it.
#[unsafe(no_mangle)]
pub extern "C" fn dab_version() -> *const c_char {
    VERSION.as_ptr()
}

/// Binary interface of the linked library. Use the library only if this is DAB_ABI_VERSION.
#[unsafe(no_mangle)]
pub extern "C" fn dab_abi_version() -> u32 {
    DAB_ABI_VERSION
}

/// Oldest artifact format that the linked library reads: major version * 65536 + minor version.
#[unsafe(no_mangle)]
pub extern "C" fn dab_format_oldest() -> u32 {
    u32::from(schema::MAJOR) << 16
}

/// Newest artifact format that the linked library knows in full. It also reads later minor versions, unless they need
/// features that it does not have (DAB_ERR_FEATURES).
#[unsafe(no_mangle)]
pub extern "C" fn dab_format_newest() -> u32 {
    u32::from(schema::MAJOR) << 16 | u32::from(schema::MINOR)
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;

    #[test]
    fn macros_and_package_agree() {
        let macros = std::format!("{DAB_VERSION_MAJOR}.{DAB_VERSION_MINOR}.{DAB_VERSION_PATCH}");
        assert_eq!(VERSION.to_str(), Ok(&*macros));
        assert_eq!(dab_version(), VERSION.as_ptr());
        assert_eq!(dab_abi_version(), DAB_ABI_VERSION);
    }

    #[test]
    fn formats_have_the_major_version_in_the_upper_half() {
        assert_eq!(dab_format_oldest(), 0x1_0000);
        assert_eq!(dab_format_newest(), 0x1_0004);
    }
}
