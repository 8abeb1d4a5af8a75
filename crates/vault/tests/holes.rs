//! Holes: what is stored depends on the bytes alone, and holes cost nothing.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

use avfs_store::Store;
use avfs_vault::{Content, ContentWriter, Error, Piece, Trees};
use proptest::prelude::*;

const BLOCK: u64 = 64 << 10;
const TERABYTE: u64 = 1 << 40;

fn trees() -> (tempfile::TempDir, Trees) {
    let home = tempfile::tempdir().unwrap();
    let trees = Trees::new(Store::open(home.path()).unwrap());
    (home, trees)
}

fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new()
        .update(&seed.to_le_bytes())
        .finalize_xof()
        .fill(&mut bytes);
    bytes
}

fn go_on(_: u64) -> Result<(), Error> {
    Ok(())
}

fn sparse_file(size: u64, data: &[(u64, Vec<u8>)]) -> File {
    let file = tempfile::tempfile().unwrap();
    file.set_len(size).unwrap();
    for (offset, bytes) in data {
        file.write_all_at(bytes, *offset).unwrap();
    }
    file
}

#[test]
fn a_file_of_terabytes_is_stored_shown_and_written_out_at_once() {
    let (_home, trees) = trees();
    let size = 4 * TERABYTE + 77;
    let end = size - 3;
    let file = sparse_file(
        size,
        &[(TERABYTE + 5, b"middle".to_vec()), (end, b"end".to_vec())],
    );
    let mut asked = 0;
    let mut count = |bytes| {
        asked += bytes;
        go_on(bytes)
    };
    let (content, stored) = trees.write_file(&file, &mut count).unwrap();
    assert_eq!(stored, size);
    assert!((9..1 << 20).contains(&asked), "{asked} bytes were read");
    let data = trees.data_size(content, size).unwrap();
    assert!((9..=4 * BLOCK).contains(&data), "{data}");

    assert_eq!(trees.read(content, end - 2, 10).unwrap(), b"\0\0end");
    assert_eq!(trees.read(content, TERABYTE + 4, 8).unwrap(), b"\0middle\0");
    assert_eq!(trees.read(content, 7, 3).unwrap(), [0; 3]);
    assert_eq!(trees.read(content, size, 3).unwrap(), b"");
    assert_eq!(trees.read(content, u64::MAX, 3).unwrap(), b"");

    // The block of the data is data; what is before and behind it is not.
    let block = (TERABYTE + 5) / BLOCK * BLOCK;
    assert_eq!(trees.next_data(content, size, 0).unwrap(), Some(block));
    assert_eq!(trees.next_hole(content, size, 0).unwrap(), 0);
    assert_eq!(
        trees.next_hole(content, size, block).unwrap(),
        block + BLOCK
    );
    let last = end / BLOCK * BLOCK;
    assert_eq!(
        trees.next_data(content, size, block + BLOCK).unwrap(),
        Some(last)
    );
    assert_eq!(trees.next_hole(content, size, last).unwrap(), size);

    let copy = tempfile::tempfile().unwrap();
    trees.write_to(&copy, content, size).unwrap();
    let stat = copy.metadata().unwrap();
    assert_eq!(stat.len(), size);
    assert!(stat.blocks() * 512 <= 8 * BLOCK, "{} blocks", stat.blocks());
    assert!(trees.is_in_file(&copy, content, size).unwrap());
    assert_eq!(
        trees.write_file(&copy, &mut go_on).unwrap(),
        (content, size)
    );
    copy.write_all_at(b"x", 3 * TERABYTE).unwrap();
    assert!(!trees.is_in_file(&copy, content, size).unwrap());
}

#[test]
fn nothing_but_a_hole_is_stored_as_one_however_long() {
    let (_home, trees) = trees();
    for size in [(1 << 20) + 1, 2 << 20, 5 << 40, i64::MAX as u64] {
        let mut writer = ContentWriter::new(&trees);
        writer.zeros(size).unwrap();
        let (content, stored) = writer.finish().unwrap();
        assert_eq!((stored, trees.data_size(content, size).unwrap()), (size, 0));
        assert_eq!(trees.next_data(content, size, 0).unwrap(), None);
        assert_eq!(trees.read(content, size - 2, 9).unwrap(), [0, 0]);
        if size > 4 << 30 {
            let error = trees.read(content, 0, size as usize).unwrap_err();
            assert!(matches!(error, Error::TooMuchAtOnce { .. }), "{error}");
        }
        let pieces: Vec<Piece> = trees.pieces(content, size).map(Result::unwrap).collect();
        assert_eq!(pieces, [Piece::Hole(size)]);
    }
    let mut writer = ContentWriter::new(&trees);
    writer.zeros(i64::MAX as u64).unwrap();
    assert!(matches!(writer.write(b"x"), Err(Error::Read(_))));
    let mut writer = ContentWriter::new(&trees);
    assert!(matches!(writer.zeros(u64::MAX), Err(Error::Read(_))));
}

#[test]
fn small_files_stay_one_object() {
    let (_home, trees) = trees();
    let file = sparse_file(1 << 20, &[]);
    let (content, size) = trees.write_file(&file, &mut go_on).unwrap();
    assert_eq!(size, 1 << 20);
    assert!(matches!(content, Content::Object(_)));
    assert_eq!(trees.write_bytes(&vec![0; 1 << 20]).unwrap().0, content);
}

#[test]
fn reading_ends_when_it_is_told_to() {
    let (_home, trees) = trees();
    let file = sparse_file(
        TERABYTE,
        &[(0, vec![1; 5 << 20]), (TERABYTE / 2, vec![1; 9 << 20])],
    );
    for budget in [0, 3 << 20, 8 << 20] {
        let mut left: u64 = budget;
        let mut check = |bytes: u64| {
            assert!(bytes <= 1 << 20, "a step has no end: {bytes}");
            left = left.checked_sub(bytes).ok_or(Error::Corrupt {
                what: "enough".into(),
            })?;
            Ok(())
        };
        let error = trees.write_file(&file, &mut check).unwrap_err();
        assert!(matches!(error, Error::Corrupt { what } if what == "enough"));
    }
}

/// More parts than one list holds, and memory that does not grow with them.
#[test]
fn a_hostile_number_of_extents_needs_lists_of_lists_and_no_memory() {
    let (_home, trees) = trees();
    let stride = 2 * BLOCK;
    let count = 20_000;
    let mut writer = ContentWriter::new(&trees);
    for n in 0..count {
        writer.write(&[1 + (n % 7) as u8]).unwrap();
        writer.zeros(stride - 1).unwrap();
    }
    let (content, size) = writer.finish().unwrap();
    assert_eq!(size, count * stride);
    assert_eq!(trees.data_size(content, size).unwrap(), count * BLOCK);
    for n in [0, 1, 2047, 2048, 2049, 4095, 4096, 4097, 12_345, count - 1] {
        let at = n * stride;
        let byte = 1 + (n % 7) as u8;
        assert_eq!(trees.read(content, at, 2).unwrap(), [byte, 0]);
        assert_eq!(trees.next_data(content, size, at).unwrap(), Some(at));
        assert_eq!(trees.next_hole(content, size, at).unwrap(), at + BLOCK);
        let next = (n + 1 < count).then_some(at + stride);
        assert_eq!(trees.next_data(content, size, at + BLOCK).unwrap(), next);
    }
    let mut total = 0;
    for piece in trees.pieces(content, size) {
        total += piece.unwrap().length();
    }
    assert_eq!(total, size);
    // Seven different chunks, and lists; each is named.
    let objects = trees.content_objects(content).unwrap();
    assert!(objects.len() >= 7 + 2, "{}", objects.len());
    for object in objects {
        assert!(trees.store().contains(object).unwrap());
        assert!(trees.store().get(object).unwrap().len() <= 4096 * 40 + 16);
    }
}

#[test]
fn files_without_holes_are_stored_as_ever() {
    let (_home, trees) = trees();
    let bytes = noise(3, 5 << 20);
    let (content, _) = trees.write_bytes(&bytes).unwrap();
    let Content::Chunks(list) = content else {
        panic!("it is large")
    };
    assert_eq!(trees.store().get(list).unwrap()[..2], *b"c\x01");
    let chunks: Vec<usize> = fastcdc::v2020::FastCDC::new(&bytes, 64 << 10, 256 << 10, 1 << 20)
        .map(|chunk| chunk.length)
        .collect();
    let pieces = trees.pieces(content, bytes.len() as u64);
    let pieces: Vec<usize> = pieces.map(|it| it.unwrap().length() as usize).collect();
    assert_eq!(pieces, chunks);
}

/// Stretches of data and of zeros, of lengths around every boundary there is.
fn layout() -> impl Strategy<Value = Vec<(bool, usize, u8)>> {
    let length = prop_oneof![
        1..5_usize,
        4090..4100_usize,
        (BLOCK as usize - 3)..(BLOCK as usize + 3),
        (2 * BLOCK as usize - 3)..(2 * BLOCK as usize + 3),
        100_000..700_000_usize,
        (1_usize << 20) - 2..(1 << 20) + 2,
    ];
    prop::collection::vec((any::<bool>(), length, any::<u8>()), 1..9)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn sparse_or_written_out_it_is_the_same(layout in layout(), step in 1..200_000_usize) {
        let (_home, trees) = trees();
        let mut bytes = Vec::new();
        let sparse = tempfile::tempfile().unwrap();
        let mut writer = ContentWriter::new(&trees);
        for (is_data, length, seed) in &layout {
            let at = bytes.len() as u64;
            if *is_data {
                let mut data = noise((*seed).into(), *length);
                // Zeros inside of data count as much as those of a hole.
                if seed % 3 == 0 {
                    let half = data.len() / 2;
                    data[half..].fill(0);
                }
                sparse.write_all_at(&data, at).unwrap();
                data.chunks(step).for_each(|part| writer.write(part).unwrap());
                bytes.extend(data);
            } else {
                writer.zeros(*length as u64).unwrap();
                bytes.resize(bytes.len() + length, 0);
            }
        }
        let size = bytes.len() as u64;
        sparse.set_len(size).unwrap();
        let dense = tempfile::tempfile().unwrap();
        dense.write_all_at(&bytes, 0).unwrap();

        let expected = trees.write_bytes(&bytes).unwrap();
        prop_assert_eq!(writer.finish().unwrap(), expected);
        prop_assert_eq!(trees.write_content(&mut &bytes[..]).unwrap(), expected);
        prop_assert_eq!(trees.write_file(&sparse, &mut go_on).unwrap(), expected);
        prop_assert_eq!(trees.write_file(&dense, &mut go_on).unwrap(), expected);
        let again = trees.write_pieces(trees.pieces(expected.0, size)).unwrap();
        prop_assert_eq!(again, expected);

        let (content, _) = expected;
        prop_assert_eq!(&trees.read(content, 0, bytes.len() + 1).unwrap(), &bytes);
        let mut read = Vec::new();
        std::io::Read::read_to_end(&mut trees.reader(content, size), &mut read).unwrap();
        prop_assert_eq!(&read, &bytes);
        prop_assert!(trees.is_in_file(&sparse, content, size).unwrap());
        let copy = tempfile::tempfile().unwrap();
        trees.write_to(&copy, content, size).unwrap();
        prop_assert!(trees.is_in_file(&copy, content, size).unwrap());
        let at = size / 2;
        let other = [bytes[at as usize] ^ 1];
        copy.write_all_at(&other, at).unwrap();
        prop_assert!(!trees.is_in_file(&copy, content, size).unwrap());

        // Holes are where the whole block is zeros, and nowhere else.
        let mut at = 0;
        while size > 1 << 20 && at < size {
            let end = (at + BLOCK).min(size);
            let zeros = bytes[at as usize..end as usize].iter().all(|&byte| byte == 0);
            let hole = trees.next_hole(content, size, at).unwrap() == at;
            prop_assert_eq!(hole, zeros, "block at {}", at);
            let data = trees.next_data(content, size, at).unwrap() == Some(at);
            prop_assert_eq!(data, !zeros, "block at {}", at);
            at = end;
        }
    }
}
