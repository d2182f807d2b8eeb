//! Hosts that race for locks, and writers that race for sectors.

use simulator::contended::contend;
use store::Durability;

#[test]
fn every_value_of_a_lock_has_one_winner_and_no_read_is_out_of_order() {
    for durability in [Durability::Commit, Durability::Flush] {
        let (mut won, mut lost, mut crashes) = (0, 0, 0);
        for seed in 0..80 {
            match contend(seed, durability, 600) {
                Ok(contest) => {
                    won += contest.won;
                    lost += contest.lost;
                    crashes += contest.crashes;
                    if seed < 5 {
                        assert_eq!(contend(seed, durability, 600), Ok(contest));
                    }
                }
                Err(reason) => panic!("{durability:?}, seed {seed}: {reason}"),
            }
        }
        assert!(won > 500 && lost > 500, "{won} won, {lost} lost: no contest");
        assert!(crashes > 200, "{crashes} crashes");
    }
}
