//! A session that futures use.

use std::cell::Cell;

use futures::channel::oneshot;
use libiscsi::{Cdb, Completion, Config, Data, Error, Session, Status, WireBytes};

use super::Reactor;

/// A session of a host's, through one portal, to all units of a target. Closed when dropped.
#[derive(Debug)]
pub struct Link {
    reactor: Reactor,
    /// Its place among the sessions; none once it is closed, as another may have the place then.
    index: Cell<Option<usize>>,
}

impl Reactor {
    /// Logs in. Everything else waits meanwhile, so callers that retry should leave some time in
    /// between.
    ///
    /// # Errors
    /// Those of the connection and the login.
    pub fn open(&self, config: &Config) -> Result<Link, Error> {
        let session = Session::connect(config)?;
        let sessions = &mut self.core.inner.borrow_mut().sessions;
        let index = sessions.iter().position(Option::is_none).unwrap_or(sessions.len());
        match sessions.get_mut(index) {
            Some(free) => *free = Some(session),
            None => sessions.push(Some(session)),
        }
        Ok(Link { reactor: self.clone(), index: Cell::new(Some(index)) })
    }
}

impl Link {
    /// Sends a command to a logical unit, and waits for its end. Where the connection is lost
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

    /// Whether the connection is gone.
    pub fn is_lost(&self) -> bool {
        self.of_session(Session::is_lost).unwrap_or(true)
    }

    /// Commands without an end yet.
    pub fn in_flight(&self) -> usize {
        self.of_session(Session::in_flight).unwrap_or(0)
    }

    /// What the kernel counted on the socket; zeros when the connection is gone.
    pub fn wire_bytes(&self) -> WireBytes {
        self.of_session(Session::wire_bytes).unwrap_or_default()
    }

    /// Closes the connection; commands in flight on it are lost.
    pub fn close(&self) {
        let Some(index) = self.index.take() else { return };
        let inner = &mut *self.reactor.core.inner.borrow_mut();
        inner.sessions[index] = None;
        inner.waiting.retain(|_, (of, _)| *of != index);
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
