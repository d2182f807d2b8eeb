//! Concurrent futures that all run to completion.
//!
//! A future that is dropped early may leave a reservation on a unit or a lock on disk. So if one of
//! many fails the others continue, and the first error is returned when all have ended.

use std::future::Future;

use futures::StreamExt;
use futures::future::join_all;
use futures::stream::FuturesUnordered;

/// Runs all of them concurrently; returns their results, in order.
///
/// # Errors
/// The first one in their order, when all have ended.
pub async fn all<T, E>(
    futures: impl IntoIterator<Item = impl Future<Output = Result<T, E>>>,
) -> Result<Vec<T>, E> {
    join_all(futures).await.into_iter().collect()
}

/// Runs them, `most` at a time. After an error no more are begun.
///
/// # Errors
/// The first one that occurred, when all that were begun have ended.
pub async fn some_at_a_time<E>(
    most: usize,
    futures: impl IntoIterator<Item = impl Future<Output = Result<(), E>>>,
) -> Result<(), E> {
    let mut waiting = futures.into_iter();
    let mut running = FuturesUnordered::new();
    let mut end = Ok(());
    loop {
        while end.is_ok() && running.len() < most.max(1) {
            match waiting.next() {
                Some(next) => running.push(next),
                None => break,
            }
        }
        match running.next().await {
            Some(result) => end = end.and(result),
            None => return end,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::engine::Engine;

    /// Runs five of them, of which the second fails, before the others end; returns how many have
    /// begun, how many have ended, and the maximum at a time.
    fn run_five(most: Option<usize>) -> (Result<(), u32>, [u32; 3]) {
        let mut engine = Engine::new();
        let reactor = engine.reactor();
        engine
            .run(async move {
                let counts: [Cell<u32>; 3] = Default::default();
                let [begun, ended, peak] = &counts;
                let jobs = (1..=5).map(|number| {
                    let reactor = &reactor;
                    async move {
                        begun.set(begun.get() + 1);
                        peak.set(peak.get().max(begun.get() - ended.get()));
                        reactor.step_back().await;
                        if number != 2 {
                            reactor.step_back().await;
                        }
                        ended.set(ended.get() + 1);
                        if number == 2 { Err(number) } else { Ok(()) }
                    }
                });
                let end = match most {
                    Some(most) => some_at_a_time(most, jobs).await,
                    None => all(jobs).await.map(drop),
                };
                (end, counts.map(Cell::into_inner))
            })
            .unwrap()
    }

    #[test]
    fn started_work_runs_to_its_end() {
        assert_eq!(run_five(None), (Err(2), [5, 5, 5]));
        assert_eq!(run_five(Some(3)), (Err(2), [3, 3, 3]));
        assert_eq!(run_five(Some(0)), (Err(2), [2, 2, 1]));
    }

    #[test]
    fn results_are_in_the_order_of_the_futures() {
        let jobs = (1..=4).map(|number| async move { Ok::<_, ()>(number) });
        assert_eq!(Engine::new().run(all(jobs)), Ok(Ok(vec![1, 2, 3, 4])));
    }
}
