//! Each family of instructions against the PTX manual, by kernels of a few lines.

use crate::{
    machine::Launch,
    memory,
    ptx::{Module, parse},
};

mod faults;
mod matrices;
mod types;

/// Runs a kernel of `threads` threads, in which `%r1` is the thread, `%rd1` the address of `input`, and `%rd2` that of `bytes` bytes
/// of results.
fn launch(body: &str, threads: usize, input: &[u8], bytes: usize) -> Result<Vec<u8>, String> {
    let text = format!(
        ".version 8.8\n.target sm_80\n.address_size 64\n
        .visible .entry k(.param .u64 k_in, .param .u64 .ptr .align 16 k_out) {{
        .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; // comments end
        ld.param.u64 %rd1, [k_in]; ld.param.u64 %rd2, [k_out]; mov.u32 %r1, %tid.x;
        {body}
        ret; }}"
    );
    let module: Module = parse::module(&text)?;
    let [from, to] = [input.len(), bytes].map(memory::allocate);
    // SAFETY: the allocation has as many bytes as are copied.
    unsafe { std::ptr::copy_nonoverlapping(input.as_ptr(), from as *mut u8, input.len()) };
    let parameters = [from.to_le_bytes(), to.to_le_bytes()].concat();
    let outcome = Launch::new([1; 3], [threads as u32, 1, 1], 256, parameters).run(&module.entries["k"], 1);
    // SAFETY: the allocation has so many bytes, and nobody else has its address.
    let found = unsafe { std::slice::from_raw_parts(to as *const u8, bytes) }.to_vec();
    [from, to].into_iter().for_each(memory::release);
    outcome.map(|()| found)
}

fn bytes_of(words: impl IntoIterator<Item = u32>) -> Vec<u8> {
    words.into_iter().flat_map(u32::to_le_bytes).collect()
}

fn words_of(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

/// `%d` of each thread, for `[%a, %b, %c]` of each thread.
fn try_run(body: &str, inputs: &[[u32; 3]]) -> Result<Vec<u32>, String> {
    let body = format!(
        "mul.wide.u32 %rd3, %r1, 12; add.s64 %rd4, %rd1, %rd3;
        ld.global.b32 %a, [%rd4]; ld.global.b32 %b, [%rd4+4]; ld.global.b32 %c, [%rd4+8];
        {body}
        mul.wide.u32 %rd5, %r1, 4; add.s64 %rd6, %rd2, %rd5; st.global.b32 [%rd6], %d;"
    );
    let input = bytes_of(inputs.iter().flatten().copied());
    Ok(words_of(&launch(&body, inputs.len(), &input, 4 * inputs.len())?))
}

fn run(body: &str, inputs: &[[u32; 3]]) -> Vec<u32> {
    try_run(body, inputs).unwrap()
}

/// One thread.
fn one(body: &str, inputs: [u32; 3]) -> u32 {
    run(body, &[inputs])[0]
}

fn floats(body: &str, inputs: [f32; 3]) -> f32 {
    f32::from_bits(one(body, inputs.map(f32::to_bits)))
}

#[test]
fn integers_wrap_and_divide_as_the_manual_says() {
    assert_eq!(one("add.s32 %d, %a, %b;", [u32::MAX, 2, 0]), 1);
    assert_eq!(one("add.sat.s32 %d, %a, %b;", [i32::MAX as u32, 2, 0]), i32::MAX as u32);
    assert_eq!(one("mul.hi.s32 %d, %a, %b;", [-3_i32 as u32, 5, 0]), u32::MAX);
    assert_eq!(one("mul.hi.u32 %d, %a, %b;", [u32::MAX, u32::MAX, 0]), u32::MAX - 1);
    assert_eq!(one("mad.lo.s32 %d, %a, %b, %c;", [7, 6, 5]), 47);
    assert_eq!(
        one(
            "mad.wide.u32 %rd7, %a, %b, %rd1; sub.s64 %rd7, %rd7, %rd1; shr.u64 %rd7, %rd7, 32; cvt.u32.u64 %d, %rd7;",
            [1 << 31, 6, 0]
        ),
        3
    );
    assert_eq!(one("div.s32 %d, %a, %b;", [i32::MIN as u32, u32::MAX, 0]), i32::MIN as u32);
    assert_eq!(one("div.u32 %d, %a, 0;", [5, 0, 0]), u32::MAX);
    assert_eq!(one("rem.s32 %d, %a, %b;", [-7_i32 as u32, 3, 0]), -1_i32 as u32);
    assert_eq!(one("min.s32 %d, %a, %b;", [-1_i32 as u32, 1, 0]), -1_i32 as u32);
    assert_eq!(one("max.u32 %d, %a, %b;", [-1_i32 as u32, 1, 0]), u32::MAX);
}

#[test]
fn bits_move_as_the_manual_says() {
    assert_eq!(one("shl.b32 %d, %a, %b;", [1, 40, 0]), 0, "shifts beyond the width empty the register");
    assert_eq!(one("shr.s32 %d, %a, %b;", [i32::MIN as u32, 99, 0]), u32::MAX);
    assert_eq!(one("shf.l.wrap.b32 %d, %a, %b, %c;", [0x8000_0000, 1, 33]), 3);
    assert_eq!(one("shf.r.clamp.b32 %d, %a, %b, %c;", [7, 9, 40]), 9);
    assert_eq!(one("bfe.s32 %d, %a, 4, 4;", [0x80, 0, 0]), -8_i32 as u32);
    assert_eq!(one("bfe.u32 %d, %a, 28, 9;", [0xf000_0000, 0, 0]), 15);
    assert_eq!(one("bfi.b32 %d, %a, %b, 8, 4;", [0xf5, 0xffff_ffff, 0]), 0xffff_f5ff);
    assert_eq!(one("prmt.b32 %d, %a, %b, %c;", [0x0302_0180, 0x0706_0504, 0x8470]), 0xff_04_07_80);
    assert_eq!(one("lop3.b32 %d, %a, %b, %c, 0xe8;", [0b1100, 0b1010, 0b0110]), 0b1110, "majority");
    assert_eq!(one("popc.b32 %d, %a;", [0xf0f0, 0, 0]), 8);
    assert_eq!(one("clz.b32 %d, %a;", [0x00ff, 0, 0]), 24);
    assert_eq!(one("brev.b32 %d, %a;", [1, 0, 0]), 1 << 31);
    assert_eq!(one("bfind.s32 %d, %a;", [-2_i32 as u32, 0, 0]), 0);
    assert_eq!(one("bfind.shiftamt.u32 %d, %a;", [1, 0, 0]), 31);
    assert_eq!(one("mov.b32 {%x, %y}, %a; mov.b32 %d, {%y, %x};", [0x1234_5678, 0, 0]), 0x5678_1234);
}

#[test]
fn addresses_have_offsets_of_both_signs() {
    assert_eq!(one("add.s64 %rd7, %rd4, 8; ld.global.b32 %d, [%rd7+-8];", [7, 8, 9]), 7);
    assert_eq!(one("add.s64 %rd7, %rd4, 8; ld.global.b32 %d, [%rd7-4];", [7, 8, 9]), 8);
    assert_eq!(one("ld.global.v2.b32 {%r2, %d}, [%rd4];", [7, 8, 9]), 8);
}

#[test]
fn f32_rounds_flushes_and_saturates_as_asked() {
    let third = |mode: &str| floats(&format!("div.{mode}.f32 %d, %a, %b;"), [1.0, 3.0, 0.0]);
    assert!(third("rz") < third("rp") && third("rm") == third("rz") && third("rn") == 1.0 / 3.0);
    let sum = |mode: &str| floats(&format!("add.{mode}.f32 %d, %a, %b;"), [1.0, 1e-30, 0.0]);
    assert_eq!([sum("rn"), sum("rm"), sum("rp")], [1.0, 1.0, 1.0_f32.next_up()]);
    assert_eq!(floats("fma.rn.f32 %d, %a, %b, %c;", [0.1, 0.3, -0.03]), 0.1_f32.mul_add(0.3, -0.03));
    assert_eq!(floats("fma.rn.sat.f32 %d, %a, %b, %c;", [2.0, 3.0, 1.0]), 1.0);
    assert_eq!(floats("mul.ftz.f32 %d, %a, %b;", [1e-30, 1e-10, 0.0]), 0.0);
    assert!(floats("mul.f32 %d, %a, %b;", [1e-30, 1e-10, 0.0]) > 0.0);
    assert_eq!(floats("add.ftz.f32 %d, %a, %b;", [1e-40, -0.0, 0.0]), 0.0);
    assert_eq!(floats("min.f32 %d, %a, %b;", [f32::NAN, 2.0, 0.0]), 2.0);
    assert!(floats("min.NaN.f32 %d, %a, %b;", [f32::NAN, 2.0, 0.0]).is_nan());
    assert_eq!(floats("max.f32 %d, %a, %b;", [-0.0, 0.0, 0.0]).to_bits(), 0);
    assert_eq!(floats("ex2.approx.ftz.f32 %d, %a;", [3.0, 0.0, 0.0]), 8.0);
    assert_eq!(floats("lg2.approx.f32 %d, %a;", [8.0, 0.0, 0.0]), 3.0);
    assert_eq!(floats("rsqrt.approx.f32 %d, %a;", [4.0, 0.0, 0.0]), 0.5);
    assert_eq!(floats("neg.f32 %d, %a;", [1.5, 0.0, 0.0]), -1.5);
    assert_eq!(floats("copysign.f32 %d, %a, %b;", [-1.0, 7.0, 0.0]), -7.0, "the first gives the sign");
}

#[test]
fn sixteen_bits_are_rounded_once() {
    // 2049 is no f16: halfway between 2048 and 2050, so it goes to the even one.
    assert_eq!(one("cvt.rn.f16.f32 %d, %a;", [2049_f32.to_bits(), 0, 0]), 0x6800);
    assert_eq!(one("cvt.rn.bf16.f32 %d, %a;", [1.01_f32.to_bits(), 0, 0]), 0x3f81);
    assert_eq!(one("cvt.rz.f16.f32 %d, %a;", [1e9_f32.to_bits(), 0, 0]), 0x7bff);
    let packed = one("cvt.rn.f16x2.f32 %d, %a, %b;", [1_f32.to_bits(), 2_f32.to_bits(), 0]);
    assert_eq!(packed, 0x3c00_4000, "the first operand is the upper half");
    assert_eq!(one("add.f16x2 %d, %a, %b;", [0x3c00_4000, 0x3c00_3c00, 0]), 0x4000_4200);
    assert_eq!(one("fma.rn.bf16x2 %d, %a, %b, %c;", [0x3f80_4000, 0x4000_4000, 0x3f80_0000]), 0x4040_4080);
    assert_eq!(one("mul.f16 %d, %a, %b;", [0x4000, 0x4200, 0]), 0x4600);
    assert_eq!(floats("cvt.f32.bf16 %d, %a;", [f32::from_bits(0x4040), 0.0, 0.0]), 3.0);
    let tf32 = |mode: &str| one(&format!("cvt.{mode}.tf32.f32 %d, %a;"), [0x3f80_1000, 0, 0]);
    assert_eq!([tf32("rna"), tf32("rn")], [0x3f80_2000, 0x3f80_0000], "a tie");
}

#[test]
fn conversions_saturate_and_name_nan() {
    let whole = |text: &str, x: f32| one(text, [x.to_bits(), 0, 0]) as i32;
    assert_eq!(whole("cvt.rni.s32.f32 %d, %a;", 2.5), 2);
    assert_eq!(whole("cvt.rzi.s32.f32 %d, %a;", -2.9), -2);
    assert_eq!(whole("cvt.rmi.s32.f32 %d, %a;", -2.1), -3);
    assert_eq!(whole("cvt.rpi.s32.f32 %d, %a;", 2.1), 3);
    assert_eq!(whole("cvt.rzi.s32.f32 %d, %a;", 1e20), i32::MAX);
    assert_eq!(whole("cvt.rzi.u32.f32 %d, %a;", -5.0), 0);
    assert_eq!(whole("cvt.rzi.s32.f32 %d, %a;", f32::NAN), 0);
    assert_eq!(one("cvt.sat.u8.s32 %d, %a;", [-4_i32 as u32, 0, 0]), 0);
    assert_eq!(one("cvt.s32.s8 %d, %a;", [0x80, 0, 0]), -128_i32 as u32);
    assert_eq!(floats("cvt.rn.f32.u32 %d, %a;", [f32::from_bits(0xffff_ffff), 0.0, 0.0]), 4_294_967_296.0);
    assert_eq!(floats("cvt.rz.f32.u32 %d, %a;", [f32::from_bits(0xffff_ffff), 0.0, 0.0]), 4_294_967_040.0);
    assert_eq!(floats("cvt.sat.f32.f32 %d, %a;", [7.0, 0.0, 0.0]), 1.0);
    assert_eq!(floats("cvt.rni.f32.f32 %d, %a;", [3.5, 0.0, 0.0]), 4.0);
}

#[test]
fn comparisons_know_nan_and_combine() {
    let holds = |text: &str, a: f32, b: f32| {
        one(&format!("{text} selp.u32 %d, 1, 0, %p1;"), [a.to_bits(), b.to_bits(), 0]) == 1
    };
    assert!(holds("setp.lt.f32 %p1, %a, %b;", 1.0, 2.0));
    assert!(!holds("setp.ne.f32 %p1, %a, %b;", f32::NAN, 2.0));
    assert!(holds("setp.neu.f32 %p1, %a, %b;", f32::NAN, 2.0));
    assert!(holds("setp.nan.f32 %p1, %a, %b;", f32::NAN, 2.0));
    assert!(holds("setp.gt.s32 %p2, 1, 0; setp.lt.and.f32 %p1, %a, %b, %p2;", 1.0, 2.0));
    assert!(!holds("setp.gt.s32 %p2, 1, 0; setp.lt.and.f32 %p1, %a, %b, !%p2;", 1.0, 2.0));
    assert!(holds("setp.lt.f32 %p2|%p1, %a, %b;", 3.0, 2.0), "the second is the opposite");
    assert!(holds("setp.lo.u32 %p1, %a, %b;", 1.0, -1.0), "bits, without a sign");
    assert_eq!(one("set.lt.f32.s32 %d, %a, %b;", [1, 2, 0]), 1_f32.to_bits());
}

#[test]
fn branches_part_and_meet_again_and_barriers_hold() {
    // Even threads run a loop, odd ones do not; afterwards all add a number that thread 0 left in shared memory.
    let body = "
        .shared .align 4 .b8 box[4];
        mov.u32 %d, 0; and.b32 %r2, %r1, 1; setp.eq.s32 %p1, %r2, 1; @%p1 bra $after;
        $again: add.s32 %d, %d, 1; setp.lt.s32 %p2, %d, %a; @%p2 bra $again;
        $after: setp.ne.s32 %p3, %r1, 0; @%p3 bra $meet;
        mov.u32 %r3, box; st.shared.u32 [%r3], 100;
        $meet: bar.sync 0; ld.shared.u32 %r4, [box]; add.s32 %d, %d, %r4;";
    let inputs: Vec<[u32; 3]> = (0..64).map(|thread| [thread + 1, 0, 0]).collect();
    let expected: Vec<u32> = (0..64).map(|t| 100 + if t % 2 == 0 { t + 1 } else { 0 }).collect();
    assert_eq!(run(body, &inputs), expected);
}

#[test]
fn lanes_shuffle_vote_and_reduce() {
    let inputs: Vec<[u32; 3]> = (0..32).map(|lane| [lane, lane / 16, 0]).collect();
    let all = |body: &str| run(body, &inputs);
    let mask = "0xffffffff";
    assert_eq!(all(&format!("shfl.sync.bfly.b32 %d, %a, 1, 31, {mask};"))[4], 5);
    assert_eq!(
        all(&format!("shfl.sync.down.b32 %d|%p1, %a, 8, 31, {mask};"))[30],
        30,
        "beyond the end: its own"
    );
    assert_eq!(all(&format!("shfl.sync.up.b32 %d, %a, 2, 0, {mask};"))[1..4], [1, 0, 1]);
    assert_eq!(all(&format!("shfl.sync.idx.b32 %d, %a, 3, 0x181f, {mask};"))[9], 11, "segments of eight");
    let vote = "setp.eq.u32 %p1, %b, 1;";
    assert_eq!(all(&format!("{vote} vote.sync.ballot.b32 %d, %p1, {mask};"))[0], 0xffff_0000);
    assert_eq!(all(&format!("{vote} vote.sync.any.pred %p2, %p1, {mask}; selp.u32 %d, 1, 0, %p2;"))[0], 1);
    assert_eq!(all(&format!("{vote} vote.sync.all.pred %p2, %p1, {mask}; selp.u32 %d, 1, 0, %p2;"))[0], 0);
    let uni = |operand: &str| {
        let vote = format!("vote.sync.uni.pred %p2, {operand}, {mask}; selp.u32 %d, 1, 0, %p2;");
        all(&format!("setp.eq.u32 %p1, %b, 1; setp.lt.u32 %p3, %a, 32; {vote}"))[0]
    };
    assert_eq!([uni("%p1"), uni("%p3"), uni("!%p3")], [0, 1, 1], "half of the lanes, all, none");
    let redux = |what: &str, values: fn(u32) -> u32| {
        let inputs: Vec<[u32; 3]> = (0..32).map(|lane| [values(lane), 0, 0]).collect();
        run(&format!("redux.sync.{what} %d, %a, {mask};"), &inputs)[7]
    };
    assert_eq!(redux("add.u32", |lane| lane), 496);
    assert_eq!(redux("add.s32", |lane| lane.wrapping_sub(17)), -48_i32 as u32);
    assert_eq!(redux("min.s32", |lane| lane.wrapping_sub(17)), -17_i32 as u32);
    assert_eq!(redux("max.s32", |lane| lane.wrapping_sub(17)), 14);
    assert_eq!(redux("min.u32", |lane| lane.wrapping_sub(17)), 0);
    assert_eq!(redux("max.u32", |lane| lane.wrapping_sub(17)), u32::MAX);
    assert_eq!(redux("and.b32", |lane| !(1 << (lane / 2))), 0xffff_0000);
    assert_eq!(redux("or.b32", |lane| 1 << (lane / 2)), 0xffff);
    assert_eq!(
        redux("xor.b32", |lane| 1 << (lane / 3)),
        0x3ff,
        "the last bit has two lanes, the others three"
    );
    assert_eq!(all("activemask.b32 %d;")[0], u32::MAX);
}

#[test]
fn atomics_return_what_was_there() {
    for (what, before, by, after) in [
        ("add.u32", 5, 3, 8),
        ("min.s32", 5, -3_i32 as u32, -3_i32 as u32),
        ("max.s32", 5, -3_i32 as u32, 5),
        ("min.u32", 5, -3_i32 as u32, 5),
        ("max.u32", 5, -3_i32 as u32, -3_i32 as u32),
        ("exch.b32", 5, 3, 3),
        ("and.b32", 5, 3, 1),
        ("or.b32", 5, 3, 7),
        ("xor.b32", 5, 3, 6),
        ("inc.u32", 5, 6, 6),
        ("inc.u32", 6, 6, 0),
        ("dec.u32", 5, 6, 4),
        ("dec.u32", 0, 6, 6),
        ("dec.u32", 9, 6, 6),
    ] {
        let box_of = ".shared .align 4 .b8 box[4]; st.shared.u32 [box], %a;";
        let atom = format!("{box_of} atom.shared.{what} %d, [box], %b;");
        assert_eq!(one(&atom, [before, by, 0]), before, "{what}");
        assert_eq!(one(&format!("{atom} ld.shared.u32 %d, [box];"), [before, by, 0]), after, "{what}");
    }
    let body = "
        .shared .align 4 .b8 sum[4]; st.shared.u32 [sum], 0; bar.sync 0;
        atom.shared.add.u32 %d, [sum], %a; bar.sync 0;
        atom.shared.cas.b32 %r2, [sum], 528, 7; red.shared.max.u32 [sum], 9; bar.sync 0; ld.shared.u32 %r3, [sum];
        mov.u32 %d, %r3;";
    let inputs: Vec<[u32; 3]> = (0..32).map(|lane| [lane + 1, 0, 0]).collect();
    assert_eq!(run(body, &inputs)[3], 9);
    let body = "
        .shared .align 4 .b8 sum[4]; st.shared.u32 [sum], 0; bar.sync 0;
        atom.shared.add.f32 %r2, [sum], %a; bar.sync 0; ld.shared.f32 %d, [sum];";
    let inputs: Vec<[u32; 3]> = (0..32).map(|_| [0.5_f32.to_bits(), 0, 0]).collect();
    assert_eq!(f32::from_bits(run(body, &inputs)[0]), 16.0);
}
