//! What ends a launch or the loading of a module, and that its message says why.

use super::*;

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
fn a_vector_is_aligned_to_all_of_it() {
    let at = |instruction: &str, offset: usize| {
        let body = format!("add.s64 %rd7, %rd1, {offset}; {instruction}");
        launch(&body, 1, &[0; 32], 4).map(|_| ())
    };
    for (instruction, bytes) in [
        ("ld.global.v2.b32 {%x, %y}, [%rd7];", 8),
        ("ld.global.v4.b16 {%x, %y, %z, %w}, [%rd7];", 8),
        ("ld.global.v4.b32 {%x, %y, %z, %w}, [%rd7];", 16),
        ("ld.global.v2.b64 {%x, %y}, [%rd7];", 16),
        ("st.global.v4.b32 [%rd7], {0, 0, 0, 0};", 16),
    ] {
        assert_eq!(at(instruction, bytes), Ok(()), "{instruction}");
        let crooked = at(instruction, bytes / 2).unwrap_err();
        assert!(crooked.contains(&format!("reaches {bytes} bytes")), "{crooked}");
        assert!(crooked.contains("not aligned"), "{crooked}");
    }
    let row = "mul.wide.u32 %rd3, %r1, 8; add.s64 %rd7, %rd1, %rd3; ldmatrix.sync.aligned.m8n8.x1.b16 {%d}, [%rd7];";
    let crooked = launch(row, 32, &[0; 512], 4).unwrap_err();
    assert!(crooked.contains("reaches 16 bytes") && crooked.contains("not aligned"), "{crooked}");
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

#[test]
fn what_is_not_known_is_a_fault() {
    let mma = |types: &str| {
        format!(
            "mma.sync.aligned.{types} {{%d, %x, %y, %z}}, {{%a, %a, %a, %a}}, {{%b, %b}}, {{%c, %c, %c, %c}};"
        )
    };
    let wmma = |types: &str| {
        let registers = "{%d, %a1, %a2, %a3, %a4, %a5, %a6, %a7}";
        format!("wmma.mma.sync.aligned.row.col.{types} {registers}, {registers}, {registers}, {registers};")
    };
    let loading = [
        ("min.NaN.xorsign.abs.f32 %d, %a, %b;", "`.xorsign` is not known"),
        ("cvt.rn.satfinite.tf32.f32 %d, %a;", "`.satfinite` is not known"),
        ("add.cc.u32 %d, %a, %b;", "`.cc` is not known"),
        ("bar.red.popc.u32 0;", "`.red` is not known"),
        ("bar.arrive 0, 64;", "barrier for some threads of a block is not known"),
        ("bar.sync 0, 64;", "barrier for some threads of a block is not known"),
        ("bar.arrive 0;", "`.arrive` is not known"),
        ("lop3.or.b32 %d|%p1, %a, %b, %c, 0xe8, %p2;", "`.or` is not known"),
        ("prmt.b32.f4e %d, %a, %b, %c;", "`.f4e` is not known"),
        ("add.s16x2 %d, %a, %b;", "`.s16x2` is not known"),
        ("ld.global.b128 %d, [%rd1];", "`.b128` is not known"),
        ("ld.shared::cluster.b32 %d, [%rd1];", "`.shared::cluster` is not known"),
        ("testp.subnormal.f32 %p1, %a;", "`.subnormal` is not known"),
        ("setp.eq.not.f32 %p1, %a, %b;", "`.not` is not known"),
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%d, %x}, [%rd1];", "`.m16n16` is not known"),
    ];
    for (body, why) in loading {
        let error = launch(body, 32, &[0; 4], 4).unwrap_err();
        assert!(error.contains(why) && error.contains(body.trim_end_matches(';')), "{error}");
    }
    let running = [
        ("setp.lt.f16x2 %p1|%p2, %a, %b;".to_owned(), "compares pairs"),
        ("set.lt.u32.f16x2 %d, %a, %b;".to_owned(), "compares pairs"),
        ("set.lt.f16.f16 %d, %a, %b;".to_owned(), "sets a type"),
        ("set.lt.f16x2.f16x2 %d, %a, %b;".to_owned(), "compares pairs"),
        ("set.lt.and.u32.f32 %d, %a, %b, %p1;".to_owned(), "combines its result"),
        ("setp.lt.u32 %p1, %a, %b, %p2;".to_owned(), "third predicate"),
        ("cvt.s32.f32 %d, %a;".to_owned(), "does not say how it rounds"),
        ("min.relu.s32 %d, %a, %b;".to_owned(), "`.relu` is not known"),
        ("mad.hi.sat.s32 %d, %a, %b, %c;".to_owned(), "modifier that is not known for this type"),
        ("add.rm.f64 %d, %a, %b;".to_owned(), "rounds f64 in a direction"),
        ("atom.global.min.f32 %d, [%rd1], %b;".to_owned(), "atomic that is not known for this type"),
        ("redux.sync.min.f32 %d, %a, 0xffffffff;".to_owned(), "reduction that is not known for this type"),
        (
            "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%d}, [%rd1];".to_owned(),
            "not one register for each matrix",
        ),
        (mma("m16n8k16.row.col.s32.s8.s8.s32"), "shape or type"),
        (mma("m16n8k16.col.col.f32.f16.f16.f32"), "shape or type"),
        (mma("m16n8k32.row.col.f32.f16.f16.f32"), "shape or type"),
        (mma("m8n8k4.row.col.f32.f16.f16.f32"), "shape or type"),
        (wmma("m16n16k16.s32.s8.s8.s32"), "shape or type"),
        (wmma("m16n16k16.f32.tf32.tf32.f32"), "shape or type"),
        (wmma("m8n8k4.f64.f64.f64.f64"), "shape or type"),
    ];
    for (body, why) in running {
        let error = launch(&body, 32, &[0; 4], 4).unwrap_err();
        assert!(error.contains(why), "`{body}`: {error}");
    }
    // What changes nothing here is let through.
    let harmless = "ld.relaxed.gpu.global.L1::evict_last.b32 %d, [%rd1]; fence.acq_rel.gpu; bar.warp.sync 0xffffffff;
        cvta.to.global.u64 %rd7, %rd1; st.volatile.global.b32 [%rd2], %d; bra.uni $end; $end: barrier.cta.sync.aligned 0;";
    assert_eq!(launch(harmless, 32, &[1, 2, 3, 4], 4), Ok(vec![1, 2, 3, 4]));
}
