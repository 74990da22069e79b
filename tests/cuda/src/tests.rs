//! Each family of instructions against the PTX manual, by kernels of a few lines.

use crate::{
    machine::Launch,
    memory,
    ptx::{Module, parse},
};

/// A kernel `k` whose threads read 32-bit `%a`, `%b`, `%c` of their own and write `%d`.
fn kernel(body: &str) -> Module {
    let text = format!(
        ".version 8.8\n.target sm_80\n.address_size 64\n
        .visible .entry k(.param .u64 k_in, .param .u64 .ptr .align 16 k_out) {{
        .reg .pred %p<4>; .reg .b32 %r<9>; .reg .b64 %rd<9>; // comments end
        ld.param.u64 %rd1, [k_in]; ld.param.u64 %rd2, [k_out];
        mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 12; add.s64 %rd4, %rd1, %rd3;
        ld.global.b32 %a, [%rd4]; ld.global.b32 %b, [%rd4+4]; ld.global.b32 %c, [%rd4+8];
        {body}
        mul.wide.u32 %rd5, %r1, 4; add.s64 %rd6, %rd2, %rd5;
        st.global.b32 [%rd6], %d;
        ret; }}"
    );
    parse::module(&text).unwrap()
}

/// `%d` of each thread, for `[%a, %b, %c]` of each thread.
fn try_run(body: &str, inputs: &[[u32; 3]]) -> Result<Vec<u32>, String> {
    let threads = inputs.len();
    let [from, to] = [12 * threads, 4 * threads].map(memory::allocate);
    let bytes: Vec<u8> = inputs.iter().flatten().flat_map(|word| word.to_le_bytes()).collect();
    // SAFETY: the allocation has 12 bytes for each thread, as many as are copied.
    unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), from as *mut u8, bytes.len()) };
    let parameters = [from.to_le_bytes(), to.to_le_bytes()].concat();
    let module = kernel(body);
    let outcome = Launch::new([1; 3], [threads as u32, 1, 1], 256, parameters).run(&module.entries["k"], 1);
    // SAFETY: the allocation has one word for each thread.
    let found = (0..threads).map(|at| unsafe { (to as *const u32).add(at).read() }).collect();
    [from, to].into_iter().for_each(memory::release);
    outcome.map(|()| found)
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
    assert_eq!(all(&format!("redux.sync.add.u32 %d, %a, {mask};"))[7], 496);
    assert_eq!(all("activemask.b32 %d;")[0], u32::MAX);
}

#[test]
fn atomics_return_what_was_there() {
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

#[test]
fn matrix_units_multiply_with_the_layout_of_the_manual() {
    // TF32, m16n8k8: A's element (row, column) is row + 1 where column = 0, B's is column + 1 where row = 0; C is 100.
    let body = "
        shr.u32 %r2, %r1, 2; and.b32 %r3, %r1, 3; setp.eq.u32 %p1, %r3, 0;
        add.u32 %r4, %r2, 1; cvt.rn.f32.u32 %f1, %r4; add.f32 %f2, %f1, 0f41000000;
        selp.f32 %f1, %f1, 0f00000000, %p1; selp.f32 %f2, %f2, 0f00000000, %p1;
        mov.f32 %zero, 0f00000000; mov.f32 %c0, 0f42C80000;
        mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%e0, %e1, %e2, %e3}, {%f1, %f2, %zero, %zero}, {%f1, %zero},
            {%c0, %c0, %c0, %c0};
        cvt.rzi.u32.f32 %g0, %e0; cvt.rzi.u32.f32 %g3, %e3; shl.b32 %g3, %g3, 16; or.b32 %d, %g0, %g3;";
    let found = run(body, &[[0; 3]; 32]);
    for (lane, word) in found.into_iter().enumerate() {
        let (row, column) = (lane / 4, lane % 4 * 2);
        assert_eq!(word & 0xffff, (100 + (row + 1) * (column + 1)) as u32, "lane {lane}");
        assert_eq!(word >> 16, (100 + (row + 9) * (column + 2)) as u32, "lane {lane}, register 3");
    }
    // A TF32 unit does not see the low bits: 1 + 2⁻¹² is 1.
    let body = "
        mov.b32 %f1, 0x3f800800; mov.b32 %zero, 0; mov.b32 %big, 0x3f800000;
        mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%d, %e1, %e2, %e3}, {%f1, %f1}, {%big}, {%zero, %zero, %zero, %zero};";
    assert_eq!(f32::from_bits(run(body, &[[0; 3]; 32])[0]), 4.0);
}

#[test]
fn fragments_go_through_memory_and_multiply() {
    // A 16×16 matrix of f16 in shared memory: twice the identity. Its square is four times the identity.
    let body = "
        .shared .align 16 .b8 a[512]; .shared .align 16 .b8 d[1024];
        mov.u32 %r2, a; shl.b32 %r3, %r1, 4; add.u32 %r4, %r2, %r3; mov.u32 %z, 0;
        st.shared.v4.b32 [%r4], {%z, %z, %z, %z};
        bar.sync 0; setp.gt.u32 %p1, %r1, 15;
        mul.lo.u32 %r5, %r1, 34; add.u32 %r5, %r5, %r2; mov.b32 %two, 0x4000;
        @!%p1 st.shared.b16 [%r5], %two;
        bar.sync 0;
        wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, [%r2], 16;
        wmma.load.b.sync.aligned.col.m16n16k16.shared.f16 {%b0, %b1, %b2, %b3, %b4, %b5, %b6, %b7}, [%r2], 16;
        wmma.mma.sync.aligned.row.col.m16n16k16.f32.f32 {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7},
            {%a0, %a1, %a2, %a3, %a4, %a5, %a6, %a7}, {%b0, %b1, %b2, %b3, %b4, %b5, %b6, %b7},
            {%z, %z, %z, %z, %z, %z, %z, %z};
        mov.u32 %r6, d;
        wmma.store.d.sync.aligned.row.m16n16k16.shared.f32 [%r6], {%c0, %c1, %c2, %c3, %c4, %c5, %c6, %c7}, 16;
        bar.sync 0; and.b32 %r7, %r1, 15; mul.lo.u32 %r7, %r7, 68; add.u32 %r7, %r7, %r6; ld.shared.f32 %d, [%r7];";
    let found = run(body, &[[0; 3]; 32]);
    assert!(found.iter().all(|&word| f32::from_bits(word) == 4.0), "{found:?}");
    // Rows of a matrix by `ldmatrix`: lane l holds numbers 2 (l % 4) and the next of row l / 4.
    let body = "
        .shared .align 16 .b8 m[128];
        mov.u32 %r2, m; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3; shl.b32 %r5, %r1, 1; add.u32 %r6, %r5, 1;
        mov.b32 {%lo, %x1}, %r5; mov.b32 {%hi, %x2}, %r6; mov.b32 %r7, {%lo, %hi}; st.shared.b32 [%r4], %r7; bar.sync 0;
        and.b32 %r5, %r1, 7; shl.b32 %r5, %r5, 4; add.u32 %r5, %r5, %r2;
        ldmatrix.sync.aligned.m8n8.x1TRANS.shared.b16 {%d}, [%r5];";
    let plain = run(&body.replace("TRANS", ""), &[[0; 3]; 32]);
    assert!((0..32).all(|lane| plain[lane] == ((2 * lane) | ((2 * lane + 1) << 16)) as u32), "{plain:?}");
    let turned = run(&body.replace("TRANS", ".trans"), &[[0; 3]; 32]);
    assert_eq!((turned[0], turned[5]), (8 << 16, (2 * 8 + 1) | (3 * 8 + 1) << 16));
}

#[test]
fn faults_name_the_kernel_the_instruction_and_the_address() {
    let outside = try_run("mov.u64 %rd7, 0x7000000000; ld.global.u32 %d, [%rd7];", &[[0; 3]]).unwrap_err();
    assert!(outside.contains("kernel k") && outside.contains("ld.global.u32"), "{outside}");
    assert!(outside.contains("0x7000000000") && outside.contains("nobody allocated"), "{outside}");
    let crooked = try_run("add.s64 %rd7, %rd1, 2; ld.global.u32 %d, [%rd7];", &[[0; 3]]).unwrap_err();
    assert!(crooked.contains("not aligned"), "{crooked}");
    let unknown = parse::module(".entry k() { frobnicate.u32 %r1, %r2; }").unwrap_err();
    assert!(unknown.contains("frobnicate"), "{unknown}");
    let part = "setp.eq.u32 %p1, %r1, 0; mov.b32 %z, 0; @%p1 mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 \
                {%d, %x, %y, %w}, {%z, %z}, {%z}, {%z, %z, %z, %z};";
    assert!(try_run(part, &[[0; 3]; 32]).unwrap_err().contains("part of a warp"));
}

#[test]
fn memory_that_nobody_wrote_is_not_zero() {
    let unwritten = u32::from_ne_bytes([memory::UNWRITTEN; 4]);
    assert!(f32::from_bits(unwritten).is_nan());
    assert!(
        half::f16::from_bits(unwritten as u16).is_nan() && half::bf16::from_bits(unwritten as u16).is_nan()
    );
    assert_eq!(one("ld.global.b32 %d, [%rd2];", [0; 3]), unwritten, "of the device");
    assert_eq!(
        one(".shared .align 4 .b8 box[4]; ld.shared.b32 %d, [box];", [0; 3]),
        unwritten,
        "of the block"
    );
    assert_eq!(
        one(".local .align 4 .b8 box[4]; ld.local.b32 %d, [box];", [0; 3]),
        unwritten,
        "of the thread"
    );
    assert_eq!(one("mov.b32 %d, %nobody;", [0; 3]), unwritten, "a register");
    // Variables of a module start as zero, or with what the text says.
    let module = parse::module(
        ".global .align 4 .u32 box[2] = {7};
        .entry k(.param .u64 out) { ld.param.u64 %rd1, [out]; mov.u64 %rd2, box;
        ld.global.v2.u32 {%r1, %r2}, [%rd2]; st.global.v2.u32 [%rd1], {%r1, %r2}; ret; }",
    );
    let to = memory::allocate(8);
    Launch::new([1; 3], [1; 3], 0, to.to_le_bytes().to_vec()).run(&module.unwrap().entries["k"], 1).unwrap();
    // SAFETY: the allocation has eight bytes.
    assert_eq!(unsafe { (to as *const [u32; 2]).read() }, [7, 0]);
    memory::release(to);
}

#[test]
fn a_block_does_not_see_what_the_last_one_left() {
    let module = parse::module(
        ".entry k(.param .u64 out) { .shared .align 4 .b8 box[4]; ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x;
        mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2; ld.shared.u32 %r2, [box]; st.global.u32 [%rd1], %r2;
        st.shared.u32 [box], 1; ret; }",
    );
    let to = memory::allocate(8);
    let launch = Launch::new([2, 1, 1], [1; 3], 0, to.to_le_bytes().to_vec());
    launch.run(&module.unwrap().entries["k"], 1).unwrap();
    // SAFETY: the allocation has eight bytes.
    assert_eq!(unsafe { (to as *const [u8; 8]).read() }, [memory::UNWRITTEN; 8]);
    memory::release(to);
}
