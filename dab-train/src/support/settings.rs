//! What serde asks about a setting: its default, and whether a file need not have it.

pub fn tenth() -> f64 {
    0.1
}

/// 1, of any type.
pub fn one<T: From<u8>>() -> T {
    1.into()
}

pub fn is_one<T: From<u8> + PartialEq>(setting: &T) -> bool {
    *setting == one()
}

pub fn is_default<T: Default + PartialEq>(setting: &T) -> bool {
    *setting == T::default()
}
