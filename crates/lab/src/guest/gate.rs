//! Many pass, or one is alone. A lock for readers and writers of one thread: those of crates hand a
//! wake-up on from reader to reader while a writer waits, without end where one thread runs all.

use std::cell::Cell;

use event_listener::Event;

/// What requests pass, and what whoever changes things under them closes.
#[derive(Debug, Default)]
pub(super) struct Gate {
    passing: Cell<usize>,
    is_closed: Cell<bool>,
    changed: Event,
}

/// Somebody passes until this is dropped.
#[derive(Debug)]
pub(super) struct Pass<'a>(&'a Gate);

/// It is closed, and nobody passes, until this is dropped.
#[derive(Debug)]
pub(super) struct Alone<'a>(&'a Gate);

impl Gate {
    /// Waits until it is open.
    pub(super) async fn pass(&self) -> Pass<'_> {
        while self.is_closed.get() {
            self.changed.listen().await;
        }
        self.passing.set(self.passing.get() + 1);
        Pass(self)
    }

    /// Closes it, and waits until nobody passes any more.
    pub(super) async fn close(&self) -> Alone<'_> {
        while self.is_closed.get() {
            self.changed.listen().await;
        }
        self.is_closed.set(true);
        let alone = Alone(self);
        while self.passing.get() > 0 {
            self.changed.listen().await;
        }
        alone
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        self.0.passing.set(self.0.passing.get() - 1);
        if self.0.passing.get() == 0 {
            self.0.changed.notify(usize::MAX);
        }
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        self.0.is_closed.set(false);
        self.0.changed.notify(usize::MAX);
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::time::Duration;

    use futures::future::join_all;

    use super::*;
    use crate::engine::Engine;

    #[test]
    fn many_pass_and_one_is_alone() {
        let mut engine = Engine::new();
        let reactor = engine.reactor();
        let done = engine.run(async move {
            let gate = Rc::new(Gate::default());
            let tasks = (0..12).map(|number| {
                let (gate, reactor) = (gate.clone(), reactor.clone());
                async move {
                    for _ in 0..20 {
                        if number % 4 == 0 {
                            let _alone = gate.close().await;
                            assert_eq!(gate.passing.get(), 0);
                            reactor.sleep(Duration::from_micros(50)).await;
                            assert_eq!(gate.passing.get(), 0);
                        } else {
                            let _pass = gate.pass().await;
                            assert!(!gate.is_closed.get() || gate.passing.get() > 0);
                            reactor.sleep(Duration::from_micros(50)).await;
                        }
                    }
                }
            });
            join_all(tasks).await.len()
        });
        assert_eq!(done, Ok(12));
    }
}
