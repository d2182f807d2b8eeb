//! A session for futures.

use std::cell::Cell;
use std::pin::pin;
use std::time::Duration;

use futures::channel::oneshot;
use futures::future::select;
use libiscsi::{Cdb, Completion, Config, Data, Error, Login, Session, Status, WireBytes};

use super::Reactor;

/// A session of a host, through one portal, to all units of a target. Closed when dropped.
#[derive(Debug)]
pub struct Link {
    reactor: Reactor,
    /// Its index among the sessions; none once it is closed, because another one may reuse it.
    index: Cell<Option<usize>>,
}

impl Reactor {
    /// Logs in. Everything else waits meanwhile: for the start, when there is nothing else.
    ///
    /// # Errors
    /// Those of the connection and the login.
    pub fn open(&self, config: &Config) -> Result<Link, Error> {
        Session::connect(config).map(|session| self.link(session))
    }

    /// Logs in asynchronously, with a time limit.
    ///
    /// # Errors
    /// Those of the connection and the login; [`Error::Lost`] if it takes longer.
    pub async fn log_in(&self, config: &Config, patience: Duration) -> Result<Link, Error> {
        let link = self.link(Session::begin(config)?);
        let (waiter, end) = oneshot::channel();
        if let Some(index) = link.index.get() {
            self.core.inner.borrow_mut().logins.insert(index, waiter);
        }
        let too_late = pin!(self.sleep(patience));
        select(end, too_late).await;
        match link.of_session(|session| (session.login(), session.login_error())) {
            Some((Login::Done, _)) => Ok(link),
            Some((Login::Failed, error)) => Err(error),
            _ => Err(Error::Lost),
        }
    }

    fn link(&self, session: Session) -> Link {
        let sessions = &mut self.core.inner.borrow_mut().sessions;
        let index = sessions.iter().position(Option::is_none).unwrap_or(sessions.len());
        match sessions.get_mut(index) {
            Some(free) => *free = Some(session),
            None => sessions.push(Some(session)),
        }
        Link { reactor: self.clone(), index: Cell::new(Some(index)) }
    }
}

impl Link {
    /// Sends a command to a logical unit, and waits for its completion. If the connection is lost
    /// before that, the status is [`Status::Cancelled`].
    pub async fn execute(&self, lun: u16, cdb: Cdb, data: Data) -> Completion {
        match self.submit(lun, cdb, data) {
            Ok(end) => end.await.unwrap_or_else(|_| cancelled()),
            Err(_) => cancelled(),
        }
    }

    fn submit(
        &self,
        lun: u16,
        cdb: Cdb,
        data: Data,
    ) -> Result<oneshot::Receiver<Completion>, Error> {
        let index = self.index.get().ok_or(Error::Lost)?;
        let inner = &mut *self.reactor.core.inner.borrow_mut();
        inner.next_token += 1;
        let token = inner.next_token;
        let session = inner.sessions.get_mut(index).and_then(Option::as_mut);
        session.ok_or(Error::Lost)?.submit_to_lun(lun, cdb, data, token)?;
        let (waiter, end) = oneshot::channel();
        inner.waiting.insert(token, (index, waiter));
        Ok(end)
    }

    /// Returns whether the connection is lost.
    pub fn is_lost(&self) -> bool {
        self.of_session(Session::is_lost).unwrap_or(true)
    }

    /// Returns the number of commands in flight.
    pub fn in_flight(&self) -> usize {
        self.of_session(Session::in_flight).unwrap_or(0)
    }

    /// Returns the kernel's counters of the socket; zeros if the connection is lost.
    pub fn wire_bytes(&self) -> WireBytes {
        self.of_session(Session::wire_bytes).unwrap_or_default()
    }

    /// Closes the connection; commands in flight on it are lost.
    pub fn close(&self) {
        let Some(index) = self.index.take() else { return };
        let inner = &mut *self.reactor.core.inner.borrow_mut();
        inner.sessions[index] = None;
        inner.waiting.retain(|_, (of, _)| *of != index);
        inner.logins.remove(&index);
    }

    fn of_session<T>(&self, look: impl FnOnce(&Session) -> T) -> Option<T> {
        let inner = self.reactor.core.inner.borrow();
        inner.sessions.get(self.index.get()?)?.as_ref().map(look)
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.close();
    }
}

fn cancelled() -> Completion {
    Completion { token: 0, status: Status::Cancelled, buffer: Vec::new(), residual: 0 }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::time::Instant;

    use super::*;
    use crate::engine::Engine;

    #[test]
    fn an_unanswered_login_delays_no_other() {
        let silent = TcpListener::bind("127.0.0.1:0").unwrap();
        let config = Config {
            portal: silent.local_addr().unwrap().to_string(),
            target: String::from("iqn.2025-01.example:none"),
            initiator: String::from("iqn.2025-01.example:test"),
            ..Config::default()
        };
        let mut engine = Engine::new();
        let reactor = engine.reactor();
        let patience = Duration::from_millis(300);
        let ticks = engine.run(async move {
            let (begun, ended) = (Instant::now(), Cell::new(false));
            let login = async {
                let end = reactor.log_in(&config, patience).await;
                ended.set(true);
                assert!(end.is_err() && begun.elapsed() >= patience);
            };
            let others = async {
                let mut ticks = 0;
                while !ended.get() {
                    reactor.sleep(Duration::from_millis(10)).await;
                    ticks += 1;
                }
                ticks
            };
            let (_, ticks) = futures::join!(login, others);
            // A refused login is over at once, and its index may be reused.
            drop(silent);
            let begun = Instant::now();
            assert!(reactor.log_in(&config, Duration::from_secs(60)).await.is_err());
            assert!(begun.elapsed() < Duration::from_secs(30));
            assert!(reactor.core.inner.borrow().sessions.iter().all(Option::is_none));
            assert!(reactor.core.inner.borrow().logins.is_empty());
            ticks
        });
        assert!(ticks.unwrap() > 3);
    }
}
