//! Matrix units, with matrices that an exchange of rows and columns changes. Where a fragment's element is, the tests compute from
//! the formulas of the manual's section on matrix fragments (`groupID`, `threadID_in_group`), case by case as printed there.

use half::{bf16, f16};

use super::*;

const LANES: usize = 32;

/// Row by row, whole numbers from −3 to 3. Every type holds them, and all sums of their products exactly.
#[derive(Clone)]
struct Matrix {
    columns: usize,
    numbers: Vec<f32>,
}

impl Matrix {
    fn new(rows: usize, columns: usize, seed: usize) -> Self {
        let one = |at: usize| (((at + 997 * seed) * 2_654_435_761) >> 20) % 7;
        Self { columns, numbers: (0..rows * columns).map(|at| one(at) as f32 - 3.0).collect() }
    }

    fn at(&self, (row, column): (usize, usize)) -> f32 {
        self.numbers[row * self.columns + column]
    }

    /// `self · b + c`.
    fn times(&self, b: &Self, c: &Self) -> Self {
        let mut sum = c.clone();
        for (at, number) in sum.numbers.iter_mut().enumerate() {
            let (row, column) = (at / b.columns, at % b.columns);
            *number += (0..self.columns).map(|k| self.at((row, k)) * b.at((k, column))).sum::<f32>();
        }
        sum
    }
}

fn bits(x: f32, ty: &str) -> Vec<u8> {
    match ty {
        "f16" => f16::from_f32(x).to_le_bytes().to_vec(),
        "bf16" => bf16::from_f32(x).to_le_bytes().to_vec(),
        _ => x.to_le_bytes().to_vec(),
    }
}

/// `{%x0, %x1, …}`.
fn registers(name: &str, count: usize) -> String {
    let list: Vec<String> = (0..count).map(|index| format!("%{name}{index}")).collect();
    format!("{{{}}}", list.join(", "))
}

/// Row and column of element `i` of A, which has `k` columns.
fn place_in_a(ty: &str, k: usize, lane: usize, i: usize) -> (usize, usize) {
    let (group, member) = (lane >> 2, lane % 4);
    match (ty, k) {
        ("tf32", 4) => (if i == 0 { group } else { group + 8 }, member),
        ("tf32", 8) => {
            (if i == 0 || i == 2 { group } else { group + 8 }, if i < 2 { member } else { member + 4 })
        }
        (_, 8) => (if i < 2 { group } else { group + 8 }, 2 * member + (i & 1)),
        _ => {
            let row = if i < 2 || (4..6).contains(&i) { group } else { group + 8 };
            (row, 2 * member + (i & 1) + if i < 4 { 0 } else { 8 })
        }
    }
}

/// Row and column of element `i` of B, which has `k` rows.
fn place_in_b(ty: &str, k: usize, lane: usize, i: usize) -> (usize, usize) {
    let (group, member) = (lane >> 2, lane % 4);
    let row = match (ty, k) {
        ("tf32", _) => member + 4 * i,
        (_, 8) => 2 * member + i,
        _ => 2 * member + (i & 1) + if i < 2 { 0 } else { 8 },
    };
    (row, group)
}

/// Row and column of element `i` of C and D.
fn place_in_c(lane: usize, i: usize) -> (usize, usize) {
    let (group, member) = (lane >> 2, lane % 4);
    (if i < 2 { group } else { group + 8 }, 2 * member + (i & 1))
}

#[test]
fn matrix_units_multiply_with_the_layout_of_the_manual() {
    let cases = [
        (4, "tf32", "f32"),
        (8, "tf32", "f32"),
        (8, "f16", "f32"),
        (8, "f16", "f16"),
        (16, "f16", "f32"),
        (16, "f16", "f16"),
        (8, "bf16", "f32"),
        (16, "bf16", "f32"),
    ];
    for (k, factors, sums) in cases {
        let (a, b, c) = (Matrix::new(16, k, 1), Matrix::new(k, 8, 2), Matrix::new(16, 8, 3));
        let mut input = Vec::new();
        for lane in 0..LANES {
            // 32 lanes share 16 · k elements of A, 8 · k of B and 128 of C.
            (0..k / 2).for_each(|i| input.extend(bits(a.at(place_in_a(factors, k, lane, i)), factors)));
            (0..k / 4).for_each(|i| input.extend(bits(b.at(place_in_b(factors, k, lane, i)), factors)));
            (0..4).for_each(|i| input.extend(bits(c.at(place_in_c(lane, i)), sums)));
        }
        let width = if factors == "tf32" { 4 } else { 2 };
        let (of_a, of_b, of_d) = (k / 2 * width / 4, k / 4 * width / 4, if sums == "f16" { 2 } else { 4 });
        let words = of_a + of_b + of_d;
        let load = |name: &str, first: usize, count: usize| -> String {
            let one = |index| format!("ld.global.b32 %{name}{index}, [%rd4+{}];", 4 * (first + index));
            (0..count).map(one).collect()
        };
        let store: String =
            (0..of_d).map(|index| format!("st.global.b32 [%rd6+{}], %d{index};", 4 * index)).collect();
        let body = format!(
            "mul.wide.u32 %rd3, %r1, {}; add.s64 %rd4, %rd1, %rd3; {} {} {}
            mma.sync.aligned.m16n8k{k}.row.col.{sums}.{factors}.{factors}.{sums} {}, {}, {}, {};
            mul.wide.u32 %rd5, %r1, {}; add.s64 %rd6, %rd2, %rd5; {store}",
            4 * words,
            load("a", 0, of_a),
            load("b", of_a, of_b),
            load("c", of_a + of_b, of_d),
            registers("d", of_d),
            registers("a", of_a),
            registers("b", of_b),
            registers("c", of_d),
            4 * of_d
        );
        let product = a.times(&b, &c);
        let expected: Vec<u8> = (0..LANES)
            .flat_map(|lane| (0..4).map(move |i| place_in_c(lane, i)))
            .flat_map(|place| bits(product.at(place), sums))
            .collect();
        let found = launch(&body, LANES, &input, LANES * 4 * of_d).unwrap();
        assert!(found == expected, "m16n8k{k}, {factors} to {sums}: {found:?} instead of {expected:?}");
    }
}

#[test]
fn a_tf32_unit_does_not_see_the_low_bits() {
    // 1 + 2⁻¹² is 1.
    let body = "
        mov.b32 %f1, 0x3f800800; mov.b32 %zero, 0; mov.b32 %big, 0x3f800000;
        mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%d, %e1, %e2, %e3}, {%f1, %f1}, {%big}, {%zero, %zero, %zero, %zero};";
    assert_eq!(f32::from_bits(run(body, &[[0; 3]; 32])[0]), 4.0);
}

/// A matrix in memory, by rows or by columns, with this many elements from one to the next; what is between is [`UNWRITTEN`].
fn stored(matrix: &Matrix, layout: &str, stride: usize, ty: &str) -> Vec<u8> {
    let (rows, columns) = (matrix.numbers.len() / matrix.columns, matrix.columns);
    let (lines, width) = (if layout == "row" { rows } else { columns }, bits(0.0, ty).len());
    let mut bytes = vec![memory::UNWRITTEN; lines * stride * width];
    for place @ (row, column) in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
        let at = if layout == "row" { row * stride + column } else { column * stride + row };
        bytes[width * at..width * (at + 1)].copy_from_slice(&bits(matrix.at(place), ty));
    }
    bytes
}

#[test]
fn fragments_go_through_memory_and_multiply() {
    let mut cases: Vec<([usize; 3], &str, &str)> = vec![([16, 16, 8], "tf32", "f32")];
    for shape in [[16, 16, 16], [32, 8, 16], [8, 32, 16]] {
        cases.extend([(shape, "f16", "f32"), (shape, "f16", "f16"), (shape, "bf16", "f32")]);
    }
    let layouts = ["row", "col"].iter().flat_map(|a| ["row", "col"].map(|b| (*a, b)));
    for (([m, n, k], factors, sums), (in_a, in_b)) in
        cases.iter().flat_map(|case| layouts.clone().map(move |layouts| (*case, layouts)))
    {
        let (a, b, c) = (Matrix::new(m, k, 4), Matrix::new(k, n, 5), Matrix::new(m, n, 6));
        // C is by rows, D by columns; no stride is that of dense rows.
        let dense = |layout: &str, rows: usize, columns: usize| if layout == "row" { columns } else { rows };
        let strides = [dense(in_a, m, k) + 8, dense(in_b, k, n) + 16, n + 24, m + 8];
        let parts = [
            stored(&a, in_a, strides[0], factors),
            stored(&b, in_b, strides[1], factors),
            stored(&c, "row", strides[2], sums),
        ];
        // Registers of a lane, from the manual's table: f16 has eight for every shape.
        let factor_registers = |elements: usize| match factors {
            "f16" => 8,
            "bf16" => elements / LANES / 2,
            _ => elements / LANES,
        };
        let (ra, rb) = (registers("a", factor_registers(m * k)), registers("b", factor_registers(k * n)));
        let [rc, rd] = ["c", "d"].map(|name| registers(name, if sums == "f16" { 4 } else { 8 }));
        let types = if factors == "f16" {
            format!("{sums}.{sums}")
        } else {
            format!("{sums}.{factors}.{factors}.{sums}")
        };
        let (shape, [sa, sb, sc, sd]) = (format!("m{m}n{n}k{k}"), strides);
        let body = format!(
            "add.s64 %rd3, %rd1, {}; add.s64 %rd4, %rd3, {};
            wmma.load.a.sync.aligned.{in_a}.{shape}.global.{factors} {ra}, [%rd1], {sa};
            wmma.load.b.sync.aligned.{in_b}.{shape}.global.{factors} {rb}, [%rd3], {sb};
            wmma.load.c.sync.aligned.row.{shape}.global.{sums} {rc}, [%rd4], {sc};
            wmma.mma.sync.aligned.{in_a}.{in_b}.{shape}.{types} {rd}, {ra}, {rb}, {rc};
            wmma.store.d.sync.aligned.col.{shape}.global.{sums} [%rd2], {rd}, {sd};",
            parts[0].len(),
            parts[1].len()
        );
        let expected = stored(&a.times(&b, &c), "col", sd, sums);
        let found = launch(&body, LANES, &parts.concat(), expected.len()).unwrap();
        assert!(found == expected, "{shape}, {in_a} {in_b}, {types}: {found:?} instead of {expected:?}");
    }
}

/// Rows of 8×8 matrices are here in shared memory, 48 bytes apart and out of order.
fn place_of_row(row: usize) -> usize {
    48 * ((5 * row + 3) % 32)
}

/// `%r2` is where this lane's row is, `%rd4` its 16 bytes of input, and `%rd6` its 16 bytes of results.
const ROWS: &str = "
    .shared .align 16 .b8 rows[1536];
    mad.lo.u32 %r2, %r1, 5, 3; and.b32 %r2, %r2, 31; mul.lo.u32 %r2, %r2, 48; mov.u32 %r3, rows; add.u32 %r2, %r2, %r3;
    mul.wide.u32 %rd3, %r1, 16; add.s64 %rd4, %rd1, %rd3; add.s64 %rd6, %rd2, %rd3;
    ld.global.v4.b32 {%w0, %w1, %w2, %w3}, [%rd4];";

/// The word that a lane has of matrix `k`: elements 2 (lane % 4) and the next of row lane / 4, or of that column.
fn word_of_lane(number: impl Fn(usize, usize, usize) -> u32, k: usize, lane: usize, transposed: bool) -> u32 {
    let one = |column: usize| match transposed {
        false => number(k, lane / 4, column),
        true => number(k, column, lane / 4),
    };
    one(2 * (lane % 4)) | one(2 * (lane % 4) + 1) << 16
}

/// Each element has its own number.
fn number(k: usize, row: usize, column: usize) -> u32 {
    (1 + 64 * k + 8 * row + column) as u32
}

fn cases_of_rows() -> impl Iterator<Item = (usize, bool)> {
    [1, 2, 4].into_iter().flat_map(|count| [(count, false), (count, true)])
}

#[test]
fn ldmatrix_gives_each_lane_two_numbers_of_each_matrix() {
    assert_eq!(place_of_row(7), 48 * 6, "what the kernel computes");
    let input = bytes_of((0..32).flat_map(|row| {
        (0..4).map(move |w| number(row / 8, row % 8, 2 * w) | number(row / 8, row % 8, 2 * w + 1) << 16)
    }));
    for (count, transposed) in cases_of_rows() {
        let trans = if transposed { ".trans" } else { "" };
        let body = format!(
            "{ROWS} st.shared.v4.b32 [%r2], {{%w0, %w1, %w2, %w3}}; bar.sync 0;
            mov.b32 %d1, 0; mov.b32 %d2, 0; mov.b32 %d3, 0;
            ldmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 {}, [%r2];
            st.global.v4.b32 [%rd6], {{%d0, %d1, %d2, %d3}};",
            registers("d", count)
        );
        let found = words_of(&launch(&body, LANES, &input, 16 * LANES).unwrap());
        for (at, word) in found.into_iter().enumerate() {
            let (lane, k) = (at / 4, at % 4);
            let expected = if k < count { word_of_lane(number, k, lane, transposed) } else { 0 };
            assert_eq!(word, expected, "x{count}{trans}, lane {lane}, matrix {k}");
        }
    }
}

#[test]
fn stmatrix_writes_what_ldmatrix_reads() {
    for (count, transposed) in cases_of_rows() {
        let trans = if transposed { ".trans" } else { "" };
        let input = bytes_of((0..128).map(|at| word_of_lane(number, at % 4, at / 4, transposed)));
        let body = format!(
            "{ROWS} st.shared.v4.b32 [%r2], {{0, 0, 0, 0}}; bar.sync 0;
            stmatrix.sync.aligned.m8n8.x{count}{trans}.shared.b16 [%r2], {}; bar.sync 0;
            ld.shared.v4.b32 {{%d0, %d1, %d2, %d3}}, [%r2]; st.global.v4.b32 [%rd6], {{%d0, %d1, %d2, %d3}};",
            registers("w", count)
        );
        let found = words_of(&launch(&body, LANES, &input, 16 * LANES).unwrap());
        for (at, word) in found.into_iter().enumerate() {
            let (row, w) = (at / 4, at % 4);
            let (k, row) = (row / 8, row % 8);
            let expected = number(k, row, 2 * w) | number(k, row, 2 * w + 1) << 16;
            assert_eq!(word, if k < count { expected } else { 0 }, "x{count}{trans}, matrix {k}, row {row}");
        }
    }
}
