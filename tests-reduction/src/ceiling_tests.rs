use super::*;

/// Returns an incompressible block, unique to its number.
fn noise(number: u64) -> Vec<u8> {
    let mut block = vec![0; BLOCK_BYTES];
    blake3::Hasher::new().update(&number.to_le_bytes()).finalize_xof().fill(&mut block);
    block
}

/// Returns a block that compresses well with others of its kind.
fn text(number: u64) -> Vec<u8> {
    format!("line {number} of a text that goes on. ").into_bytes().repeat(200)[..BLOCK_BYTES]
        .to_vec()
}

fn part(directory: &Path, name: &str, blocks: &[Vec<u8>]) -> Part {
    let path = directory.join(name);
    std::fs::write(&path, blocks.concat()).unwrap();
    Part { set: String::from("set"), name: name.to_owned(), path }
}

#[test]
fn blocks_count_where_they_occur_first() {
    let directory = tempfile::tempdir().unwrap();
    let zeros = vec![0; BLOCK_BYTES];
    let first = part(directory.path(), "a", &[noise(1), zeros, noise(1), noise(2)]);
    let second = part(directory.path(), "b", &[noise(2), noise(3), noise(2)]);
    let mut known = HashSet::new();
    let first = examine(&first, &mut known).unwrap();
    let second = examine(&second, &mut known).unwrap();
    let blocks = |found: &Found| {
        [found.bytes, found.data_bytes, found.distinct_bytes, found.new_bytes].map(|b| b / 4096)
    };
    assert_eq!(blocks(&first), [4, 3, 2, 2]);
    assert_eq!(blocks(&second), [3, 3, 2, 1]);
    for scheme in SCHEMES {
        assert_eq!(second.stored_bytes[scheme.name], 4096, "noise by {}", scheme.name);
    }
}

#[test]
fn the_same_bytes_elsewhere_in_a_block_are_not_found() {
    let directory = tempfile::tempdir().unwrap();
    let shifted = [&[7], &noise(1)[..], &[0; 4095]].concat();
    let part = part(directory.path(), "a", &[noise(1), shifted]);
    let found = examine(&part, &mut HashSet::new()).unwrap();
    assert_eq!(found.new_bytes, 3 * 4096);
}

#[test]
fn larger_groups_compress_better_and_end_with_the_write() {
    let directory = tempfile::tempdir().unwrap();
    let blocks: Vec<Vec<u8>> = (0..64).map(text).collect();
    let found =
        examine(&part(directory.path(), "a", &blocks), &mut HashSet::new()).unwrap().stored_bytes;
    assert!(found["lz4 packed"] < found["lz4 alone"]);
    assert!(found["zstd-9 packed"] < found["zstd-9 alone"]);
    assert_eq!(found["lz4 in 32K writes"], found["lz4 packed"], "all blocks are new");
    assert_eq!(found["lz4 in 256K writes"], found["lz4 packed"], "all blocks are new");
}

#[test]
fn a_write_with_few_new_blocks_makes_a_small_group() {
    let directory = tempfile::tempdir().unwrap();
    // Two new and six known blocks in each 32 KiB.
    let mut blocks = vec![noise(1)];
    for write in 0..64 {
        blocks.resize(write * 8 + 6, noise(1));
        blocks.extend([text(write as u64 * 2), text(write as u64 * 2 + 1)]);
    }
    let found =
        examine(&part(directory.path(), "a", &blocks), &mut HashSet::new()).unwrap().stored_bytes;
    assert!(found["lz4 in 256K writes"] < found["lz4 in 32K writes"]);
    assert!(found["lz4 in 32K writes"] < found["lz4 alone"]);
}
