//! What serde asks about a setting: its default, and whether a file need not have it.

/// 1, of any type.
pub fn one<T: From<u8>>() -> T {
    1.into()
}

/// Whether a setting is 1.
pub fn is_one<T: From<u8> + PartialEq>(setting: &T) -> bool {
    *setting == one()
}

/// Whether a setting has its default.
pub fn is_default<T: Default + PartialEq>(setting: &T) -> bool {
    *setting == T::default()
}
