//! Types and functions that a 32-bit kernel of `tests.rs` cannot show: f64, approximated functions, whole numbers of 64 bits, and
//! what modifiers do to 16 bits.

use super::*;

/// `%w`, an f64, for f64 `%x`, `%y` and `%z`.
fn try_f64(body: &str, inputs: [f64; 3]) -> Result<f64, String> {
    let body = format!(
        "ld.global.f64 %x, [%rd1]; ld.global.f64 %y, [%rd1+8]; ld.global.f64 %z, [%rd1+16];
        {body} st.global.f64 [%rd2], %w;"
    );
    let input: Vec<u8> = inputs.iter().flat_map(|x| x.to_le_bytes()).collect();
    Ok(f64::from_le_bytes(launch(&body, 1, &input, 8)?.try_into().unwrap()))
}

fn of_f64(body: &str, inputs: [f64; 3]) -> f64 {
    try_f64(body, inputs).unwrap()
}

#[test]
fn f64_is_the_processors() {
    let (x, y, z) = (0.1, -0.7, 1e-17);
    let found = |body: &str| of_f64(body, [x, y, z]);
    assert_eq!(found("add.rn.f64 %w, %x, %y;"), x + y);
    assert_eq!(found("sub.f64 %w, %x, %y;"), x - y);
    assert_eq!(found("mul.rn.f64 %w, %x, %y;"), x * y);
    assert_eq!(found("div.rn.f64 %w, %x, %y;"), x / y);
    assert_ne!(x.mul_add(y, z), x * y + z, "the sum shows whether the product was rounded");
    assert_eq!(found("fma.rn.f64 %w, %x, %y, %z;"), x.mul_add(y, z));
    assert_eq!(found("sqrt.rn.f64 %w, %x;"), x.sqrt());
    assert_eq!(found("rcp.rn.f64 %w, %y;"), 1.0 / y);
    assert_eq!(found("neg.f64 %w, %y;"), 0.7);
    assert_eq!(found("abs.f64 %w, %y;"), 0.7);
    assert_eq!(found("min.f64 %w, %x, %y;"), y);
    assert_eq!(found("max.f64 %w, %x, %y;"), x);
    assert_eq!(found("copysign.f64 %w, %y, %x;"), -0.1);
    let less = "selp.f64 %w, 0d3FF0000000000000, 0d0000000000000000, %p1;";
    assert_eq!(found(&format!("setp.lt.f64 %p1, %y, %x; {less}")), 1.0);
    assert_eq!(found(&format!("setp.lt.f64 %p1, %x, %y; {less}")), 0.0);
    // f32 is 1 for both 1 and 1 + 2⁻³⁰; the direction decides.
    let narrow = |mode: &str| {
        of_f64(&format!("cvt.{mode}.f32.f64 %s, %x; cvt.f64.f32 %w, %s;"), [1.0 + 2_f64.powi(-30), 0.0, 0.0])
    };
    assert_eq!([narrow("rn"), narrow("rp")], [1.0, f64::from(1_f32.next_up())]);
    let directed = try_f64("add.rz.f64 %w, %x, %y;", [1.0, 2.0, 0.0]).unwrap_err();
    assert!(directed.contains("rounds f64 in a direction"), "{directed}");
}

#[test]
fn approximated_functions_are_the_nearest_f32() {
    for x in [0.3_f32, -2.5, 7.0] {
        let found = |body: &str| floats(body, [x, 0.0, 0.0]);
        let wide = f64::from(x);
        assert_eq!(found("sin.approx.f32 %d, %a;"), wide.sin() as f32);
        assert_eq!(found("cos.approx.ftz.f32 %d, %a;"), wide.cos() as f32);
        assert_eq!(found("tanh.approx.f32 %d, %a;"), wide.tanh() as f32);
    }
    // The hyperbolic tangents of 0.5, 0.46212 (the nearest f16 is 0.46216), and of −1, −0.76159 (−0.76172).
    assert_eq!(one("tanh.approx.f16x2 %d, %a;", [0x3800_bc00, 0, 0]), 0x3765_ba18);
}

#[test]
fn testp_tells_kinds_of_numbers() {
    let kinds = |x: f32| {
        ["finite", "infinite", "number", "notanumber"].map(|kind| {
            one(&format!("testp.{kind}.f32 %p1, %a; selp.u32 %d, 1, 0, %p1;"), [x.to_bits(), 0, 0]) == 1
        })
    };
    assert_eq!(kinds(1.0), [true, false, true, false]);
    assert_eq!(kinds(f32::NEG_INFINITY), [false, true, true, false]);
    assert_eq!(kinds(f32::NAN), [false, false, false, true]);
}

/// A 64-bit `%x` made of two words, converted to f64, f32 or 16 bits in each direction: the bits.
fn of_long(convert: &str, x: i64) -> [u64; 4] {
    let ty = convert.split('.').next().unwrap();
    ["rn", "rz", "rm", "rp"].map(|mode| {
        let store = match ty {
            "f64" => "st.global.f64 [%rd2], %w;",
            _ => "st.global.b32 [%rd2], %w; st.global.b32 [%rd2+4], 0;",
        };
        let body = format!("ld.global.b64 %x, [%rd1]; cvt.{mode}.{convert} %w, %x; {store}");
        u64::from_le_bytes(launch(&body, 1, &x.to_le_bytes(), 8).unwrap().try_into().unwrap())
    })
}

#[test]
fn whole_numbers_are_rounded_once_and_in_the_direction_asked_for() {
    // 2⁵³ + 1 is between two f64: the nearest with an even mantissa is below, and of the negative number above.
    let (low, high) = ((1_i64 << 53) as f64, ((1_i64 << 53) + 2) as f64);
    let bits = |values: [f64; 4]| values.map(f64::to_bits);
    assert_eq!(of_long("f64.s64", (1 << 53) + 1), bits([low, low, low, high]));
    assert_eq!(of_long("f64.s64", -(1 << 53) - 1), bits([-low, -low, -high, -low]));
    assert_eq!(of_long("f64.s64", (1 << 53) + 3), bits([high + 2.0, high, high, high + 2.0]));
    // The largest unsigned number: below 2⁶⁴, which is the nearest.
    let two_to_64 = 18_446_744_073_709_551_616_f64;
    let below = two_to_64.next_down();
    assert_eq!(of_long("f64.u64", -1), bits([two_to_64, below, below, two_to_64]));
    // A hair above the middle of 2⁶⁰ and the next f32 (f64 drops the hair).
    let (low, high) = (1_152_921_504_606_846_976_f32, 1_152_921_504_606_846_976_f32.next_up());
    let bits = |values: [f32; 4]| values.map(|x| u64::from(x.to_bits()));
    assert_eq!(of_long("f32.s64", (1 << 60) + (1 << 36) + 1), bits([high, low, low, high]));
    assert_eq!(of_long("f32.s64", (1 << 60) + (1 << 36)), bits([low, low, low, high]));
    assert_eq!(of_long("f32.s64", -(1 << 60) - 1), bits([-low, -low, -high, -low]));
    // bf16 has 8 bits: the nearest f32 of this number is exactly between two bf16, and the number itself is above.
    let between = (1_i64 << 60) + (1 << 52) + 1;
    assert_eq!(of_long("bf16.s64", between), [0x5d81, 0x5d80, 0x5d80, 0x5d81]);
    assert_eq!(of_long("f16.s64", 70_000), [0x7c00, 0x7bff, 0x7bff, 0x7c00], "beyond the largest");
    assert_eq!(of_long("sat.f32.s64", 7), bits([1.0; 4]));
}

#[test]
fn sixteen_bits_flush_where_asked() {
    // 2⁻¹⁵, a subnormal f16, plus itself is normal; flushed before the sum it is nothing.
    assert_eq!(one("add.f16 %d, %a, %a;", [0x0200, 0, 0]), 0x0400);
    assert_eq!(one("add.ftz.f16 %d, %a, %a;", [0x0200, 0, 0]), 0);
    assert_eq!(one("mul.ftz.f16x2 %d, %a, %b;", [0x0400_3c00, 0x3800_3c00, 0]), 0x0000_3c00, "a result");
    let less =
        |ftz: &str| one(&format!("setp.gt{ftz}.f16 %p1, %a, %b; selp.u32 %d, 1, 0, %p1;"), [0x0200, 0, 0]);
    assert_eq!([less(""), less(".ftz")], [1, 0]);
}
