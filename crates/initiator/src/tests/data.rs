//! Data in both directions with every combination of parameters.

use super::wire::*;
use super::*;

fn exchange(options: Options, seed: u64) {
    let label = format!("{options:?} {seed}");
    let mut wire = Wire::logged_in(options.clone(), seed);
    let terms = *wire.host.terms();
    assert_eq!(terms.immediate_data, options.immediate_data);
    assert_eq!(terms.initial_r2t, options.initial_r2t);
    assert_eq!(
        (terms.header_digest, terms.data_digest),
        (options.header_digest, options.data_digest)
    );
    for (lba, blocks) in [(0, 1), (1, 9), (100, 64), (300, 700)] {
        let data = pattern(blocks * BLOCK_BYTES, lba);
        let written = wire.write(lba as u16, &data);
        let answer = only_answer(wire.pump());
        assert_eq!(
            (answer.itt, answer.status, answer.residual),
            (written, 0, Residual::None),
            "{label}"
        );
        wire.read(lba as u16, data.len());
        assert!(only_answer(wire.pump()).data_in == data, "{label}");
    }
    assert_eq!(wire.host.outstanding().count(), 0);
    assert!(wire.host.output().is_empty());
}

#[test]
fn written_data_is_read_with_all_combinations_of_parameters() {
    let mut seed = 1;
    for initial_r2t in [false, true] {
        for immediate_data in [false, true] {
            for digests in 0..4 {
                for (first, burst, segment) in [
                    (512, 512, 512),
                    (4096, 16_384, 4096),
                    (65_536, 262_144, 8192),
                    (8192, 8192, 700),
                ] {
                    exchange(
                        Options {
                            initial_r2t,
                            immediate_data,
                            header_digest: digests & 1 != 0,
                            data_digest: digests & 2 != 0,
                            first_burst_bytes: first,
                            max_burst_bytes: burst,
                            max_recv_data_segment_bytes: segment,
                            ..options()
                        },
                        seed,
                    );
                    seed += 1;
                }
            }
        }
    }
}

#[test]
fn less_immediate_data_than_negotiated_is_valid() {
    for initial_r2t in [false, true] {
        let immediate_bytes_max = 1000;
        exchange(Options { immediate_bytes_max, initial_r2t, ..options() }, 3);
    }
}

#[test]
fn the_target_may_have_smaller_segments() {
    let limits = iscsi::Limits {
        receive_segment_bytes: 8192,
        burst_bytes: 20_000,
        first_burst_bytes: 9000,
        ..iscsi::Limits::default()
    };
    let mut wire = Wire::new(&target_with(limits), Initiator::new(options()), 9);
    wire.log_in();
    let terms = wire.host.terms();
    assert_eq!((terms.send_segment_bytes, terms.burst_bytes), (8192, 20_000));
    assert_eq!(terms.first_burst_bytes, 9000);
    let data = pattern(100 * BLOCK_BYTES, 7);
    wire.write(5, &data);
    assert_eq!(only_answer(wire.pump()).status, 0);
    assert!(wire.disk[5 * BLOCK_BYTES..][..data.len()] == data);
}

#[test]
fn many_commands_are_answered_in_any_order() {
    let mut wire = Wire::logged_in(Options { header_digest: true, ..options() }, 5);
    wire.piece_max = 100_000;
    for round in 0..40 {
        let mut asked: Vec<Itt> = Vec::new();
        for at in 0..8 {
            asked.push(wire.write(at * 8, &pattern(2048, round + usize::from(at))));
        }
        assert!(wire.host.outstanding().eq(asked.iter().copied()));
        let mut answered: Vec<Itt> = wire
            .pump()
            .into_iter()
            .map(|event| match event {
                Event::Answered(answer) => answer.itt,
                other => panic!("{other:?}"),
            })
            .collect();
        answered.sort();
        assert_eq!(answered, asked);
    }
}

#[test]
fn errors_have_sense_data_and_short_reads_a_residual() {
    let mut wire = Wire::logged_in(options(), 6);
    wire.simple(FAILS);
    let answer = only_answer(wire.pump());
    assert_eq!((answer.status, answer.sense[2], answer.sense.len()), (2, 5, 18));
    wire.host.command(LUN, &cdb(0x28, 0, 2), Attribute::Simple, None, 4096).unwrap();
    let answer = only_answer(wire.pump());
    assert_eq!((answer.data_in.len(), answer.residual), (1024, Residual::Underflow(3072)));
    wire.host.command(LUN, &cdb(0x28, 0, 2), Attribute::Simple, None, 512).unwrap();
    let answer = only_answer(wire.pump());
    assert_eq!((answer.data_in.len(), answer.residual), (512, Residual::Overflow(512)));
    wire.host.command(LUN, &cdb(0x2a, 0, 2), Attribute::Simple, Some(vec![1; 2048]), 0).unwrap();
    assert_eq!(only_answer(wire.pump()).residual, Residual::Underflow(1024));
}

#[test]
fn a_long_cdb_goes_into_an_additional_segment() {
    let mut wire = Wire::logged_in(Options { header_digest: true, ..options() }, 7);
    let mut cdb = [7; 34];
    cdb[0] = NEVER_ANSWERED;
    wire.host.command(LUN, &cdb, Attribute::Simple, None, 0).unwrap();
    assert_eq!(wire.pump(), []);
    assert_eq!(wire.stuck.len(), 1);
}
