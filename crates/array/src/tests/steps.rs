//! The steps of tests with an array.

use proptest::prelude::*;

#[derive(Clone, Debug)]
pub(super) enum Step {
    Create(String, u64),
    Resize(String, u64, bool),
    Rename(String, String),
    Destroy(String),
    AddHost(String, Vec<u8>),
    SetInitiators(String, Vec<u8>),
    DeleteHost(String),
    Connect(String, String, Option<u16>),
    Disconnect(String, String),
    Reload,
    Refuse(bool),
}

pub(super) fn steps() -> impl Strategy<Value = Step> {
    let name = || prop::sample::select(vec!["a", "A", "b", "c", "d"]).prop_map(str::to_owned);
    let pages = || 1..4u64;
    let iqns = || prop::collection::vec(0..4u8, 0..3);
    let lun = || prop::option::of(prop::sample::select(vec![0, 1, 2, 3, 5, 16_383, 16_384]));
    prop_oneof![
        4 => (name(), pages()).prop_map(|(n, p)| Step::Create(n, p * 4096)),
        1 => name().prop_map(|n| Step::Create(n, 4095)),
        2 => (name(), pages(), any::<bool>()).prop_map(|(n, p, t)| Step::Resize(n, p * 4096, t)),
        2 => (name(), name()).prop_map(|(a, b)| Step::Rename(a, b)),
        2 => name().prop_map(Step::Destroy),
        4 => (name(), iqns()).prop_map(|(n, i)| Step::AddHost(n, i)),
        2 => (name(), iqns()).prop_map(|(n, i)| Step::SetInitiators(n, i)),
        1 => name().prop_map(Step::DeleteHost),
        6 => (name(), name(), lun()).prop_map(|(v, h, l)| Step::Connect(v, h, l)),
        3 => (name(), name()).prop_map(|(v, h)| Step::Disconnect(v, h)),
        1 => Just(Step::Reload),
        1 => any::<bool>().prop_map(Step::Refuse),
    ]
}
