//! Random histories: actions of a few nexuses on one volume, failing saves, takeovers and power
//! losses, compared with a model that knows what was acknowledged.

use proptest::prelude::*;

use super::{VOLUME, nexus, of_volume, target};
use crate::*;

#[derive(Clone, Debug)]
enum Step {
    Act {
        who: u8,
        action: Action,
        kind: Option<Kind>,
        key: u64,
        action_key: u64,
        aptpl: bool,
    },
    Reserve(u8),
    Release(u8),
    SetAccess(u8, u16, AccessState),
    Loss(u8),
    Reset,
    /// Takes the unsaved state to save it; later changes happen meanwhile.
    Take,
    Saved(Result<(), SaveError>),
    Takeover,
    PowerLoss,
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => Just(Action::Register),
        3 => Just(Action::RegisterAndIgnore),
        3 => Just(Action::Reserve),
        1 => Just(Action::Release),
        1 => Just(Action::Clear),
        1 => Just(Action::Preempt),
        1 => Just(Action::PreemptAndAbort),
        1 => Just(Action::Move),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let kind = (0_u8..10).prop_map(Kind::from_code);
    let act = (1_u8..4, action(), kind, 0_u64..3, 0_u64..3, any::<bool>());
    let act = act.prop_map(|(who, action, kind, key, action_key, aptpl)| Step::Act {
        who,
        action,
        kind,
        key,
        action_key,
        aptpl,
    });
    let state = (0_u8..4).prop_map(|code| AccessState::from_code(code).unwrap_or_default());
    prop_oneof![
        12 => act,
        2 => (1_u8..4).prop_map(Step::Reserve),
        1 => (1_u8..4).prop_map(Step::Release),
        1 => (1_u8..4, 1_u16..3, state).prop_map(|(who, at, to)| Step::SetAccess(who, at, to)),
        1 => (1_u8..4).prop_map(Step::Loss),
        1 => Just(Step::Reset),
        6 => Just(Step::Take),
        5 => Just(Step::Saved(Ok(()))),
        1 => Just(Step::Saved(Err(SaveError::Failed))),
        1 => Just(Step::Takeover),
        1 => Just(Step::PowerLoss),
    ]
}

/// The durable state, and the state being saved.
struct World {
    target: Target,
    durable: Kept,
    taken: Option<Unsaved>,
}

impl World {
    fn now(&self) -> Kept {
        self.target.volumes().look(VOLUME, |state| state.kept().clone())
    }

    fn take(&mut self) {
        if self.taken.is_none() {
            self.taken = self.target.unsaved(VOLUME);
        }
    }

    fn saved(&mut self, result: Result<(), SaveError>) {
        let Some(taken) = self.taken.take() else { return };
        if result.is_ok() {
            self.durable = taken.record().cloned().unwrap_or_default();
        }
        self.target.saved(taken, result);
    }

    fn start(&mut self, start: Start, kept: Kept) {
        self.taken = None;
        self.target = target();
        assert_eq!(self.target.restore(start, of_volume(kept.clone())), Ok(()));
        assert_eq!(self.now(), kept);
        self.durable = kept;
    }

    fn run(&mut self, step: Step) {
        match step {
            Step::Act { who, action, kind, key, action_key, aptpl } => {
                let nexus = nexus(who, 1);
                let (ports, whole_unit) = (vec![1], true);
                let (listed, moved_to) = (None, Some(Ok(super::nexus(who % 3 + 1, 1))));
                let unregisters = aptpl;
                let asked = Asked {
                    nexus: &nexus,
                    action,
                    whole_unit,
                    kind,
                    key,
                    action_key,
                    aptpl,
                    ports,
                    listed,
                    moved_to,
                    unregisters,
                };
                let before = self.now();
                if self.target.act(VOLUME, &asked).is_err() {
                    assert_eq!(self.now(), before, "a refusal changes nothing");
                }
            }
            Step::Reserve(who) => {
                let _ = self.target.reserve(VOLUME, &nexus(who, 1));
            }
            Step::Release(who) => {
                self.target.release(VOLUME, &nexus(who, 1));
            }
            Step::SetAccess(who, group, state) => {
                self.target.set_access(VOLUME, &nexus(who, 1), &[(group, state)]);
            }
            Step::Loss(who) => {
                let luns = std::sync::Arc::default();
                let lost = self.target.new_nexus(nexus(who, 1).host, 1, &luns);
                drop(self.target.nexus_loss(&lost));
                assert_ne!(self.now().exclusive, Some(nexus(who, 1)));
            }
            Step::Reset => {
                drop(self.target.reset(&[VOLUME], Attention::UnitReset));
                assert_eq!(self.now().exclusive, None);
            }
            Step::Take => self.take(),
            Step::Saved(result) => self.saved(result),
            Step::Takeover => self.start(Start::Takeover, self.durable.clone()),
            Step::PowerLoss => {
                self.start(Start::PowerOn, self.durable.clone().after_power_on());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// The invariants hold at each step (assertions), refusals change nothing, and once everything
    /// is saved, the durable state equals the state in force.
    #[test]
    fn the_durable_state_follows_the_state_in_force(
        steps in proptest::collection::vec(step(), 1..60),
    ) {
        let mut world = World { target: target(), durable: Kept::default(), taken: None };
        for step in steps {
            world.run(step);
            let now = world.now();
            prop_assert_eq!(now.flaw(), None);
            prop_assert_eq!(world.durable.flaw(), None);
            let barred = |who| {
                world.target.volumes().conflict(VOLUME, &nexus(who, 1), Access::Write)
            };
            // The holder's commands don't conflict, and without a holder no command does.
            for who in 1..4 {
                let own = nexus(who, 1);
                if now.exclusive.as_ref() == Some(&own) || now.holds(&own) {
                    prop_assert!(!barred(who));
                }
                if now.exclusive.is_none() && now.reservation.is_none() {
                    prop_assert!(!barred(who));
                }
            }
        }
        world.saved(Ok(()));
        world.take();
        world.saved(Ok(()));
        prop_assert!(world.target.unsaved(VOLUME).is_none());
        let now = world.now();
        // Only the generation may be ahead: of changes that were rolled back.
        prop_assert_eq!(Kept { generation: 0, ..world.durable }, Kept { generation: 0, ..now });
    }
}
