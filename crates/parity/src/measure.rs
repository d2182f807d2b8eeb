//! Measurement of the cost: `cargo test --release -p parity measure_ -- --ignored --nocapture`.

use block::{FRAME_BYTES, Frame, FrameMut};

use crate::{Code, Stripe, code};

/// Bytes of data that are used in turn: more than the caches hold.
const DATA_BYTES: usize = 64 << 20;
/// Bytes of data in a run.
const RUN_BYTES: usize = 256 << 20;

/// Returns the processor time of this thread, in seconds.
fn cpu_s() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    text.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}

/// Returns the median of five runs, in processor seconds for 10^9 bytes of data.
fn cpu_s_per_gb(data_bytes: usize, mut call: impl FnMut(usize)) -> f64 {
    let count = RUN_BYTES / data_bytes;
    let mut run = || {
        let start = cpu_s();
        (0..count).for_each(&mut call);
        (cpu_s() - start) / (count * data_bytes) as f64 * 1e9
    };
    let mut found: [f64; 5] = std::array::from_fn(|_| run());
    found.sort_by(f64::total_cmp);
    found[2]
}

fn frames(count: usize, seed: usize) -> Vec<Frame> {
    let frame = |index: usize| {
        let mut frame = FrameMut::stale();
        for (at, byte) in frame.iter_mut().enumerate() {
            *byte = (at * 31 + index * 17 + seed) as u8;
        }
        frame.freeze()
    };
    (0..count).map(frame).collect()
}

fn measure(code: &dyn Code, frames_each: usize) -> [f64; 4] {
    let stripe = code.stripe();
    let data_bytes = stripe.data() * frames_each * FRAME_BYTES;
    let whole = |set: usize| {
        let mut shards: Vec<Vec<Frame>> =
            (0..stripe.data()).map(|shard| frames(frames_each, set + shard)).collect();
        let data: Vec<&[Frame]> = shards.iter().map(Vec::as_slice).collect();
        let parity = code.encode(&data).unwrap();
        shards.extend(parity);
        shards
    };
    let sets: Vec<_> = (0..DATA_BYTES.div_ceil(data_bytes)).map(whole).collect();
    let all = |set: usize| -> Vec<&[Frame]> {
        sets[set % sets.len()].iter().map(Vec::as_slice).collect()
    };
    let reconstruct = |lost: &[usize]| {
        cpu_s_per_gb(data_bytes, |set| {
            let mut left: Vec<Option<&[Frame]>> = all(set).into_iter().map(Some).collect();
            lost.iter().for_each(|number| left[*number] = None);
            drop(code.reconstruct(&left, lost).unwrap());
        })
    };
    [
        cpu_s_per_gb(data_bytes, |set| drop(code.encode(&all(set)[..stripe.data()]).unwrap())),
        cpu_s_per_gb(data_bytes, |set| assert!(code.verify(&all(set)).unwrap())),
        reconstruct(&[1]),
        reconstruct(&[0, 2]),
    ]
}

/// Not a test of behavior: prints the cost of parity, and the additional cost of short shards.
#[test]
#[ignore = "a measurement"]
fn measure_parity() {
    println!("CPU s for 10^9 bytes of data");
    println!("stripe  shard, KiB  encode  verify  one lost  two lost");
    for data in [4, 8, 16] {
        for frames_each in [1, 2, 4, 16, 256] {
            let code = code(Stripe::new(data, 2).unwrap()).unwrap();
            let [encode, verify, one, two] = measure(&*code, frames_each);
            println!(
                "{data:>2} + 2  {:>10}  {encode:>6.3}  {verify:>6.3}  {one:>8.3}  {two:>8.3}",
                frames_each * 4
            );
        }
    }
}
