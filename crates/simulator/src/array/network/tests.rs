use super::*;

const START: Duration = Duration::from_secs(1);

fn rules() -> Rules {
    Rules { window_bytes: 1000, piece_bytes_max: 200, ..Rules::default() }
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at * 7 + at / 251) as u8).collect()
}

/// Reads all that can be read at `now`; returns whether the end was seen.
fn drain(network: &mut Network, link: Link, side: Side, now: Duration, into: &mut Vec<u8>) -> bool {
    let mut buffer = [0; 150];
    loop {
        match network.receive(link, side, &mut buffer, now) {
            None => return false,
            Some(0) => return true,
            Some(count) => into.extend_from_slice(&buffer[..count]),
        }
    }
}

/// Sends all of it and reads it at the other side. Returns it and the moment of the last byte.
fn transfer(network: &mut Network, link: Link, from: Side, data: &[u8]) -> (Vec<u8>, Duration) {
    let to = if from == Side::Host { Side::Array } else { Side::Host };
    let (mut now, mut sent, mut got) = (START, 0, Vec::new());
    while got.len() < data.len() {
        sent += network.send(link, from, &data[sent..], now);
        assert!(!drain(network, link, to, now, &mut got));
        now = network.next_event_at(now).unwrap_or(now);
    }
    (got, now)
}

#[test]
fn bytes_arrive_in_order_after_a_delay() {
    for seed in 0..20 {
        let mut network = Network::new(seed, rules());
        let link = network.open(START);
        for side in [Side::Host, Side::Array] {
            let data = bytes(10_000);
            let (got, end) = transfer(&mut network, link, side, &data);
            assert_eq!(got, data);
            assert!(end > START);
        }
        assert_eq!(network.next_event_at(START), None);
    }
}

#[test]
fn a_stream_accepts_no_more_than_its_window() {
    let mut network = Network::new(1, rules());
    let link = network.open(START);
    assert_eq!(network.send(link, Side::Host, &bytes(1500), START), 1000);
    assert_eq!(network.send(link, Side::Host, &bytes(1), START), 0);
    assert_eq!(network.send(link, Side::Array, &bytes(7), START), 7);
    let later = START + Duration::from_secs(1);
    let count = network.receive(link, Side::Array, &mut [0; 100], later).unwrap();
    assert_eq!(network.room(link, Side::Host), count);
}

#[test]
fn no_bytes_arrive_before_their_delay() {
    let mut network = Network::new(2, rules());
    let link = network.open(START);
    network.send(link, Side::Host, b"x", START);
    let at = network.next_event_at(START).unwrap();
    assert!(at >= START + rules().delay_min);
    let before = at - Duration::from_nanos(1);
    assert!(!network.is_readable(link, Side::Array, before));
    assert_eq!(network.receive(link, Side::Array, &mut [0; 9], before), None);
    assert!(network.is_readable(link, Side::Array, at));
    assert_eq!(network.receive(link, Side::Array, &mut [0; 9], at), Some(1));
    assert_eq!(network.next_event_at(at), None);
}

#[test]
fn connections_overtake_each_other() {
    let orders: std::collections::BTreeSet<bool> = (0..50)
        .map(|seed| {
            let mut network = Network::new(seed, rules());
            let (one, two) = (network.open(START), network.open(START));
            network.send(one, Side::Host, b"x", START);
            network.send(two, Side::Host, b"x", START);
            let first = network.next_event_at(START).unwrap();
            network.is_readable(one, Side::Array, first)
        })
        .collect();
    assert_eq!(orders.len(), 2);
}

#[test]
fn pieces_are_split_and_merged() {
    let (mut split, mut merged) = (false, false);
    for seed in 0..50 {
        let mut network = Network::new(seed, rules());
        let link = network.open(START);
        network.send(link, Side::Host, &bytes(48), START);
        network.send(link, Side::Host, &bytes(48), START);
        let later = START + Duration::from_secs(1);
        let count = network.receive(link, Side::Array, &mut [0; 100], later).unwrap();
        split |= count < 48;
        merged |= count > 48;
    }
    assert!(split && merged);
}

#[test]
fn an_immediate_cut_loses_unread_bytes() {
    let mut network = Network::new(3, rules());
    let link = network.open(START);
    network.send(link, Side::Host, &bytes(100), START);
    network.stall(link, START + Duration::from_secs(9));
    network.cut(link, Cut::AtOnce, START);
    for side in [Side::Host, Side::Array] {
        assert!(network.is_readable(link, side, START));
        for _ in 0..2 {
            assert_eq!(network.receive(link, side, &mut [0; 9], START), Some(0));
        }
        assert_eq!(network.send(link, side, b"x", START), 0);
    }
    assert_eq!(network.links().count(), 0);
}

#[test]
fn a_cut_delivers_a_prefix_and_both_ends_notice() {
    let mut lengths = std::collections::BTreeSet::new();
    for seed in 0..40 {
        let mut network = Network::new(seed, rules());
        let link = network.open(START);
        let data = bytes(600);
        network.send(link, Side::Host, &data, START);
        network.cut(link, Cut::AfterSome, START);
        // Its sender does not know yet.
        assert_eq!(network.send(link, Side::Host, b"lost", START), 4);
        let mut now = START;
        for side in [Side::Host, Side::Array] {
            let mut got = Vec::new();
            while !drain(&mut network, link, side, now, &mut got) {
                now = network.next_event_at(now).expect("the end comes");
            }
            let expected = if side == Side::Array { &data[..got.len()] } else { b"" };
            assert_eq!(got, expected);
            lengths.insert(got.len());
        }
        assert!(now > START && network.links().count() == 0);
    }
    assert!(lengths.len() > 10);
}

#[test]
fn a_stall_delays_and_loses_nothing() {
    let mut network = Network::new(4, rules());
    let link = network.open(START);
    network.send(link, Side::Host, b"before", START);
    let until = START + Duration::from_secs(5);
    network.stall(link, until);
    network.send(link, Side::Host, b"after", START);
    assert_eq!(network.next_event_at(START), Some(until));
    let mut got = Vec::new();
    drain(&mut network, link, Side::Array, until - Duration::from_nanos(1), &mut got);
    assert_eq!(got, b"");
    assert!(!drain(&mut network, link, Side::Array, until, &mut got));
    assert_eq!(got, b"beforeafter");
}

#[test]
fn bytes_sent_before_a_close_arrive() {
    let mut network = Network::new(5, rules());
    let link = network.open(START);
    network.send(link, Side::Array, b"the last", START);
    network.send(link, Side::Host, b"nobody reads", START);
    network.close(link, Side::Array, START);
    assert_eq!(network.send(link, Side::Array, b"x", START), 0);
    assert_eq!(network.receive(link, Side::Array, &mut [0; 9], START), Some(0));
    assert_eq!(network.send(link, Side::Host, b"nor that", START), 8);
    let later = START + Duration::from_secs(1);
    let mut got = Vec::new();
    assert!(drain(&mut network, link, Side::Host, later, &mut got));
    assert_eq!(got, b"the last");
    assert_eq!(network.links().count(), 0);
}

#[test]
fn a_seed_gives_one_network() {
    let run = |seed| {
        let mut network = Network::new(seed, rules());
        let link = network.open(START);
        transfer(&mut network, link, Side::Host, &bytes(5000)).1
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
