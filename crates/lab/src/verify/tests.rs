//! The oracle against an in-memory span: it must accept what may be, and refuse what may not.

use super::journal::{Journal, replay};
use super::model::{Content, Model, Outcome};
use super::operation::{Action, BLOCK_BYTES, Operation, ZeroBy};

const SPAN: u64 = 8 << 20;

fn operation(id: u64, action: Action) -> Operation {
    Operation { id, action }
}

/// Returns the bytes of blocks according to a model.
fn bytes(model: &Model, contents: &[Content]) -> Vec<u8> {
    let mut all = Vec::new();
    for content in contents {
        let mut block = vec![0; BLOCK_BYTES as usize];
        model.render(*content, &mut block);
        all.extend(block);
    }
    all
}

#[test]
fn a_write_may_be_partial_but_no_block_torn() {
    let mut model = Model::new(7, SPAN);
    let write = operation(1, Action::Write { first: 3, count: 3 });
    model.start(write);
    let new = |block| Content { operation: 1, block };
    let zero = Content::default();
    let part = bytes(&model, &[new(3), zero, new(5)]);
    assert_eq!(model.settle(&write, &part), Ok(Outcome::Part(vec![true, false, true])));
    let none = bytes(&model, &[zero; 3]);
    assert_eq!(model.settle(&write, &none), Ok(Outcome::NotDone));
    let mut torn = bytes(&model, &[new(3), new(4), new(5)]);
    assert_eq!(model.settle(&write, &torn), Ok(Outcome::Done));
    torn[5000..6000].fill(0);
    assert!(model.settle(&write, &torn).is_err(), "a torn block was accepted");
    let misplaced = bytes(&model, &[new(4), new(3), new(5)]);
    assert!(model.settle(&write, &misplaced).is_err(), "swapped blocks were accepted");
}

#[test]
fn a_partial_offload_is_refused() {
    let mut model = Model::new(7, SPAN);
    let write = operation(1, Action::Write { first: 0, count: 2 });
    model.start(write);
    model.finish(1, &Outcome::Done).unwrap();
    let copy = operation(2, Action::Copy { source: 0, destination: 256, count: 2 });
    model.start(copy);
    let source = |block| Content { operation: 1, block };
    let half = bytes(&model, &[source(0), Content::default()]);
    assert!(model.settle(&copy, &half).is_err(), "half a copy was accepted");
    let whole = bytes(&model, &[source(0), source(1)]);
    assert_eq!(model.settle(&copy, &whole), Ok(Outcome::Done));
    model.finish(2, &Outcome::Done).unwrap();
    assert_eq!(model.content(257), source(1));
    assert!(model.check(256, &whole).is_ok());
    assert!(model.check(256, &half).is_err());
    let zero = operation(3, Action::Zero { first: 256, count: 2, by: ZeroBy::Unmap });
    model.start(zero);
    assert!(model.settle(&zero, &half).is_err(), "half an unmap was accepted");
}

#[test]
fn regions_are_locked_while_something_is_in_flight() {
    let mut model = Model::new(7, SPAN);
    let copy = operation(1, Action::Copy { source: 0, destination: 600, count: 20 });
    model.start(copy);
    assert!(!model.are_free(&[0]));
    assert!(!model.are_free(&[2]));
    assert!(model.are_free(&[1, 3]));
    assert!(!model.are_free(&[8]), "a region outside the span was free");
    model.finish(1, &Outcome::NotDone).unwrap();
    assert!(model.are_free(&[0, 1, 2]));
    assert!(model.finish(1, &Outcome::Done).is_err());
}

#[test]
fn actions_round_trip_as_text() {
    let actions = [
        Action::Write { first: 1, count: 2 },
        Action::Compare { block: 3 },
        Action::Zero { first: 4, count: 5, by: ZeroBy::WriteSame },
        Action::Zero { first: 4, count: 5, by: ZeroBy::Unmap },
        Action::Copy { source: 6, destination: 7, count: 1 },
    ];
    for action in actions {
        assert_eq!(Action::parse(&action.to_string()), Some(action));
    }
    assert_eq!(Action::parse("write 1"), None);
    assert_eq!(Action::parse("write 1 2 3"), None);
    assert!(!Action::Copy { source: 0, destination: 1, count: 2 }.fits(100));
    assert!(!Action::Write { first: u64::MAX, count: 2 }.fits(100));
}

#[test]
fn replaying_a_journal_gives_the_same_model() {
    let text = "span 8388608 seed 9\nstart 1 write 0 2\nstart 2 write 300 3\ndone 1\n\
                part 2 101\nstart 3 copy 0 512 2\n";
    let (model, next) = replay(text).unwrap();
    assert_eq!(next, 4);
    assert_eq!(model.content(1), Content { operation: 1, block: 1 });
    assert_eq!(model.content(301), Content::default());
    assert_eq!(model.content(302), Content { operation: 2, block: 302 });
    assert_eq!(
        model.pending(),
        [operation(3, Action::Copy { source: 0, destination: 512, count: 2 })]
    );
    for wrong in [
        "",
        "span 1\n",
        "span 4096 seed 1\nstart 1 write 0 2\n",
        "span 4096 seed 1\ndone 1\n",
        "span 4096 seed 1\nfrob 1\n",
    ] {
        assert!(replay(wrong).is_err(), "{wrong:?}");
    }
}

#[test]
fn a_journal_continues_after_its_last_complete_line() {
    let path = std::env::temp_dir().join(format!("lab-journal-{}", std::process::id()));
    let _ = std::fs::remove_file(&path);
    let (mut journal, mut model, next) = Journal::open(&path, SPAN, 5).unwrap();
    let write = operation(next, Action::Write { first: 9, count: 1 });
    model.start(write);
    journal.start(&write).unwrap();
    journal.finish(next, &Outcome::Done).unwrap();
    journal.flush().unwrap();
    drop(journal);
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str("start 2 wri");
    std::fs::write(&path, text).unwrap();
    let (_, model, next) = Journal::open(&path, 1 << 30, 6).unwrap();
    assert_eq!((next, model.block_count()), (2, SPAN / BLOCK_BYTES));
    assert_eq!(model.content(9), Content { operation: 1, block: 9 });
    std::fs::remove_file(&path).unwrap();
}
