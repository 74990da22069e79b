//! npy, npz and csv files written here and read back.

use super::*;
use npyz::WriterBuilder;
use std::io::Write;

fn scratch(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("dab-files-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir.join(name)
}

fn write_npy<T: npyz::AutoSerialize + Copy>(path: &Path, shape: &[u64], order: Order, values: &[T]) {
    let file = File::create(path).unwrap();
    let mut writer =
        npyz::WriteOptions::new().default_dtype().order(order).shape(shape).writer(file).begin_nd().unwrap();
    writer.extend(values.iter().copied()).unwrap();
    writer.finish().unwrap();
}

/// An archive of arrays: name, shape and values of each.
pub(crate) fn write_npz(path: &Path, arrays: &[(&str, &[u64], &[f32])]) {
    let mut archive = zip::ZipWriter::new(File::create(path).unwrap());
    for (name, shape, values) in arrays {
        archive.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
        let options = npyz::WriteOptions::new().default_dtype().shape(shape);
        let mut array = options.writer(&mut archive).begin_nd().unwrap();
        array.extend(values.iter().copied()).unwrap();
        array.finish().unwrap();
    }
    archive.finish().unwrap();
}

#[test]
fn half_precision_and_fortran_order_read_as_numpy_means_them() {
    let path = scratch("half.npy");
    let values = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    write_npy(&path, &[2, 3], Order::C, &values.map(half::f16::from_f32));
    let source = FilePart::parse(path.to_str().unwrap());
    assert_eq!(table(&source, &[]).unwrap().0.values, values);
    write_npy(&path, &[2, 3], Order::Fortran, &[1.0f64, 4.0, 2.0, 5.0, 3.0, 6.0]);
    let read = table(&source, &[]).unwrap().0;
    assert_eq!((read.rows, read.cols, read.values.as_slice()), (2, 3, values.as_slice()));
}

#[test]
fn three_dimensions_and_nan_are_refused() {
    let path = scratch("cube.npy");
    write_npy(&path, &[1, 2, 2], Order::C, &[0.0f32; 4]);
    let source = FilePart::parse(path.to_str().unwrap());
    assert!(format!("{:#}", table(&source, &[]).unwrap_err()).contains("[1, 2, 2]"));
    write_npy(&path, &[2, 1], Order::C, &[0.0f32, f32::NAN]);
    assert!(table(&source, &[]).unwrap_err().to_string().contains("row 2, column 1"));
}

#[test]
fn labels_are_whole_numbers_or_words() {
    let path = scratch("labels.npy");
    let source = FilePart::parse(path.to_str().unwrap());
    write_npy(&path, &[3], Order::C, &[2u8, 0, 1]);
    assert_eq!(labels(&source).unwrap(), Labels::Numbers(vec![2, 0, 1]));
    write_npy(&path, &[2], Order::C, &[1.0f64, 3.0]);
    assert_eq!(labels(&source).unwrap(), Labels::Numbers(vec![1, 3]));
    write_npy(&path, &[1], Order::C, &[0.5f32]);
    assert!(format!("{:#}", labels(&source).unwrap_err()).contains("0.5"));
    let words = [Labels::Words(vec!["b".into(), "a".into()]), Labels::Words(vec!["c".into()])];
    let (numbered, names) = number_classes(&words).unwrap();
    assert_eq!((numbered, names.concat().as_str()), (vec![vec![1, 0], vec![2]], "abc"));
    let gaps = [Labels::Numbers(vec![7, -1, 7]), Labels::Numbers(vec![3])];
    let (numbered, names) = number_classes(&gaps).unwrap();
    assert_eq!((numbered, names.join(" ").as_str()), (vec![vec![2, 0, 2], vec![1]], "-1 3 7"));
    assert!(number_classes(&[gaps[0].clone(), words[1].clone()]).unwrap_err().to_string().contains("mix"));
}

#[test]
fn csv_files_keep_names_and_give_up_their_label_column() {
    let path = scratch("iris.csv");
    std::fs::write(&path, "w, h, species\n1,2,oak\n3,4,elm\n").unwrap();
    let text = path.to_str().unwrap();
    let (numbers, names) = table(&FilePart::parse(text), &["species"]).unwrap();
    assert_eq!((numbers.values.as_slice(), names.join(" ")), ([1.0, 2.0, 3.0, 4.0].as_slice(), "w h".into()));
    let read = labels(&FilePart::parse(&format!("{text}:species"))).unwrap();
    assert_eq!(read, Labels::Words(vec!["oak".into(), "elm".into()]));
    let message = format!("{:#}", table(&FilePart::parse(text), &[]).unwrap_err());
    assert!(message.contains("row 1 (line 2), column 3 `species`: `oak` is not a number"), "{message}");
    let message = labels(&FilePart::parse(&format!("{text}:kind"))).unwrap_err().to_string();
    assert!(message.contains("no column `kind`") && message.contains("species"), "{message}");
}

#[test]
fn npz_asks_for_the_array_when_there_are_several() {
    let path = scratch("two.npz");
    write_npz(&path, &[("x", &[2], &[1.0, 2.0]), ("y", &[2], &[1.0, 2.0])]);
    let text = path.to_str().unwrap();
    let message = table(&FilePart::parse(text), &[]).unwrap_err().to_string();
    assert!(message.contains("x, y") || message.contains("y, x"), "{message}");
    assert_eq!(table(&FilePart::parse(&format!("{text}:y")), &[]).unwrap().0.values, [1.0, 2.0]);
    let message = table(&FilePart::parse(&format!("{text}:z")), &[]).unwrap_err().to_string();
    assert!(message.contains("no such array"), "{message}");
}

#[test]
fn a_missing_file_is_named() {
    let message = format!("{:#}", table(&FilePart::parse("nowhere.npy"), &[]).unwrap_err());
    assert!(message.contains("nowhere.npy"), "{message}");
    assert!(table(&FilePart::parse("x.feather"), &[]).unwrap_err().to_string().contains(".npy"));
    assert_eq!(FilePart::parse("C:\\x.npy").part, None);
}

#[test]
fn a_list_of_words_needs_no_header() {
    let path = scratch("words.csv");
    let source = FilePart::parse(path.to_str().unwrap());
    let words = |w: &[&str]| Labels::Words(w.iter().map(ToString::to_string).collect());
    std::fs::write(&path, "oak\nelm\noak\n").unwrap();
    assert_eq!(labels(&source).unwrap(), words(&["oak", "elm", "oak"]));
    std::fs::write(&path, "species\noak\nelm\n").unwrap();
    assert_eq!(labels(&source).unwrap(), words(&["oak", "elm"]));
}

#[test]
fn a_first_row_of_names_and_numbers_is_the_users_to_tell() {
    let path = scratch("mixed.csv");
    std::fs::write(&path, "w,2020\n1,2\n3,4\n").unwrap();
    let told = |header| {
        let format = TextFormat { header, ..TextFormat::default() };
        table(&FilePart::parse(path.to_str().unwrap()).written(format), &[])
    };
    let message = format!("{:#}", told(Header::Auto).unwrap_err());
    assert!(message.contains("mixed.csv") && message.contains("--header yes"), "{message}");
    let (numbers, names) = told(Header::Yes).unwrap();
    assert_eq!(
        (numbers.values.as_slice(), names.join(" ")),
        ([1.0, 2.0, 3.0, 4.0].as_slice(), "w 2020".into())
    );
    let message = format!("{:#}", told(Header::No).unwrap_err());
    assert!(message.contains("row 1, column 1: `w` is not a number"), "{message}");
}

#[test]
fn ragged_rows_and_other_separators_are_said() {
    let path = scratch("ragged.csv");
    let source = FilePart::parse(path.to_str().unwrap());
    std::fs::write(&path, "a,b\n1,2\n3\n").unwrap();
    let message = table(&source, &[]).unwrap_err().to_string();
    assert!(message.contains("row 2 (line 3)"), "{message}");
    std::fs::write(&path, "1;2\n3;4\n").unwrap();
    let message = table(&source, &[]).unwrap_err().to_string();
    assert!(message.contains("--delimiter"), "{message}");
    let written = TextFormat { delimiter: b';', ..TextFormat::default() };
    assert_eq!(table(&source.written(written), &[]).unwrap().0.values, [1.0, 2.0, 3.0, 4.0]);
}

/// An array file of that header and those bytes behind it, of format version 1.
fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), data].concat()
}

#[test]
fn sizes_that_a_header_states_are_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let words = |bytes: &[u8], labels: bool| {
        std::fs::write(&path, bytes).unwrap();
        let source = FilePart::parse(path.to_str().unwrap());
        let found = if labels { super::labels(&source).map(|_| ()) } else { table(&source, &[]).map(|_| ()) };
        format!("{:#}", found.unwrap_err())
    };
    let shaped = |kind: &str, shape: &str| {
        npy(&format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': ({shape}), }}\n"), b"1234")
    };
    // A header that says that it has 4 GB.
    let long = [b"\x93NUMPY\x02\x00", &u32::MAX.to_le_bytes()[..], b"{'descr'"].concat();
    assert!(words(&long, false).contains("the header says that it has 4294967295 bytes, allowed are 65536"));
    let huge = "1099511627776, 1099511627776";
    assert!(words(&shaped("<f4", huge), false).contains("no file has room for an array of shape"));
    assert!(words(&shaped("<f4", "1099511627776, 2"), false).contains("its numbers end too early"));
    assert!(words(&shaped("<f4", "1099511627776, 0"), false).contains("its rows are empty"));
    assert!(words(&shaped("<U0", "1099511627776,"), true).contains("its words end too early, or are empty"));
    assert!(words(&shaped("<U9", "1099511627776,"), true).contains("its words end too early, or are empty"));
}

#[test]
fn brackets_within_brackets_do_not_keep_the_reader_busy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npy");
    let source = FilePart::parse(path.to_str().unwrap());
    for bracket in ["{", "(", "["] {
        std::fs::write(&path, npy(&format!("{{'descr': {}", bracket.repeat(60)), b"")).unwrap();
        let error = format!("{:#}", table(&source, &[]).unwrap_err());
        assert!(error.contains("the header opens 61 brackets, allowed are 8"), "{error}");
    }
}

#[test]
fn one_layer_of_gzip_is_unpacked() {
    let pack = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.csv.gz");
    let source = FilePart::parse(path.to_str().unwrap());
    std::fs::write(&path, pack(b"1,2\n3,4\n")).unwrap();
    let (numbers, names) = table(&source, &[]).unwrap();
    assert_eq!(
        (numbers.cols, numbers.values.as_slice(), names.len()),
        (2, [1.0, 2.0, 3.0, 4.0].as_slice(), 0)
    );
    std::fs::write(&path, pack(&pack(b"1,2\n3,4\n"))).unwrap();
    let error = format!("{:#}", table(&source, &[]).unwrap_err());
    assert!(error.contains("it was compressed twice: gunzip it once"), "{error}");
    // 100 KB that unpack to 100 MB of one line.
    std::fs::write(&path, pack(&vec![b'1'; 100 << 20])).unwrap();
    let error = format!("{:#}", table(&source, &[]).unwrap_err());
    assert!(error.contains("a line has more than 67108864 bytes: is it text?"), "{error}");
}

#[test]
fn bytes_behind_an_array_of_images_are_no_image() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    let save = |array: &[u8]| {
        let mut zip = zip::ZipWriter::new(File::create(&path).unwrap());
        zip.start_file("x.npy", zip::write::SimpleFileOptions::default()).unwrap();
        zip.write_all(array).unwrap();
        zip.finish().unwrap();
        Npz::open(&path).unwrap()
    };
    let header = "{'descr': '|u1', 'fortran_order': False, 'shape': (1, 2, 2, 3), }\n";
    let (shape, bytes) = save(&npy(header, &[7; 24])).bytes("x").unwrap();
    assert_eq!((shape, bytes), (vec![1, 2, 2, 3], vec![7; 12]));
    // A header that says that it has 4 GB is not believed either, when somebody only asks what the array holds.
    let long = [b"\x93NUMPY\x02\x00", &u32::MAX.to_le_bytes()[..], b"{'descr'"].concat();
    let error = format!("{:#}", save(&long).has_images(None).unwrap_err());
    assert!(error.contains("the header says that it has 4294967295 bytes"), "{error}");
}
