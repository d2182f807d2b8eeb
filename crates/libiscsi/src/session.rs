//! One connection to one logical unit, with any number of commands in flight.

use std::cell::Cell;
use std::ffi::c_int;
use std::ptr::NonNull;
use std::rc::Rc;

use crate::cdb::{Cdb, Direction};
use crate::context::{Context, c_string, library_error};
use crate::ffi;
use crate::in_flight::{InFlight, Queue, on_command_end};
use crate::types::{Completion, Config, Data, Error, Login, Status};
use crate::wire::{WireBytes, tcp_info};

/// A session of one connection: to one logical unit, or to any unit of its target.
///
/// Not [`Send`]: it must stay on one thread, as libiscsi requires. Dropping it closes the
/// connection and cancels commands in flight.
pub struct Session {
    pub(crate) context: NonNull<ffi::Context>,
    /// The state of the login; libiscsi holds its address.
    pub(crate) login: Rc<Cell<Login>>,
    lun: c_int,
    completed: Queue,
    in_flight: usize,
    commands: u64,
    lost: bool,
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session")
            .field("lun", &self.lun)
            .field("in_flight", &self.in_flight)
            .field("lost", &self.lost)
            .finish_non_exhaustive()
    }
}

impl Session {
    /// Connects, logs in, and waits until the logical unit is ready.
    pub fn connect(config: &Config) -> Result<Self, Error> {
        let context = Context::new(config, ffi::SESSION_NORMAL)?;
        let portal = c_string(&config.portal)?;
        let lun = c_int::from(config.lun);
        // SAFETY: the context is live, and the string outlives the call, which copies it.
        let result =
            unsafe { ffi::iscsi_full_connect_sync(context.0.as_ptr(), portal.as_ptr(), lun) };
        if result != 0 {
            return Err(context.error("connect"));
        }
        Ok(Self::of(context, Rc::new(Cell::new(Login::Done)), config.lun))
    }

    pub(crate) fn of(context: Context, login: Rc<Cell<Login>>, lun: u16) -> Self {
        Self {
            context: context.release(),
            login,
            lun: c_int::from(lun),
            completed: Queue::default(),
            in_flight: 0,
            commands: 0,
            lost: false,
        }
    }

    /// Puts a command in flight. It is sent by the next [`Session::flush`], [`crate::Poller`] or
    /// [`Session::execute`]; [`Session::next_completion`] returns its completion.
    pub fn submit(&mut self, cdb: Cdb, data: Data, token: u64) -> Result<(), Error> {
        self.submit_to_lun(self.lun as u16, cdb, data, token)
    }

    /// Like [`Session::submit`], to another logical unit of the target, 0 to 16383.
    pub fn submit_to_lun(
        &mut self,
        lun: u16,
        cdb: Cdb,
        data: Data,
        token: u64,
    ) -> Result<(), Error> {
        let queue = Rc::clone(&self.completed);
        self.submit_to(c_int::from(lun), cdb, data, token, queue)?;
        self.in_flight += 1;
        Ok(())
    }

    /// Sends a command and waits for its completion. Other commands in flight continue meanwhile.
    pub fn execute(&mut self, cdb: Cdb, data: Data) -> Result<Completion, Error> {
        let queue = Queue::default();
        self.submit_to(self.lun, cdb, data, 0, Rc::clone(&queue))?;
        loop {
            if let Some(completion) = queue.borrow_mut().pop_front() {
                self.lost |= completion.status == Status::Cancelled;
                return Ok(completion);
            }
            if self.lost {
                return Err(Error::Lost);
            }
            self.wait(1000);
        }
    }

    /// Takes a completion, if there is one.
    pub fn next_completion(&mut self) -> Option<Completion> {
        let completion = self.completed.borrow_mut().pop_front()?;
        self.in_flight -= 1;
        self.lost |= completion.status == Status::Cancelled;
        Some(completion)
    }

    /// Returns the number of submitted commands whose completion has not been taken.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Returns the number of commands sent since the session was created, except those of the
    /// login.
    pub fn commands(&self) -> u64 {
        self.commands
    }

    /// Returns whether the connection is lost. Completions may remain to be taken, as
    /// [`Status::Cancelled`]; nothing more can be submitted.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Sends what is queued, as far as the socket accepts it.
    pub fn flush(&mut self) {
        if !self.lost && self.wanted_events() & c_int::from(libc::POLLOUT) != 0 {
            self.service(libc::POLLOUT);
        }
    }

    /// Returns the kernel's counts for the socket so far; zeros once the connection is lost.
    pub fn wire_bytes(&self) -> WireBytes {
        tcp_info(self.descriptor()).unwrap_or_default()
    }

    /// Returns the socket.
    pub(crate) fn descriptor(&self) -> c_int {
        // SAFETY: the context is live.
        unsafe { ffi::iscsi_get_fd(self.context.as_ptr()) }
    }

    /// Returns the events of poll(2) that libiscsi waits for.
    pub(crate) fn wanted_events(&self) -> c_int {
        // SAFETY: the context is live.
        unsafe { ffi::iscsi_which_events(self.context.as_ptr()) }
    }

    /// Lets libiscsi read, write and call back for these events.
    pub(crate) fn service(&mut self, events: libc::c_short) {
        // SAFETY: the context is live; the callbacks that run here touch only boxes that
        // `submit_to` made, and queues, never this session.
        let result = unsafe { ffi::iscsi_service(self.context.as_ptr(), c_int::from(events)) };
        if result != 0 || self.hung_up(events) {
            self.lost = true;
        }
    }

    /// Returns whether the peer has hung up. libiscsi, which does not reconnect here, then cancels
    /// everything and reports nothing else; so its events are checked here too.
    fn hung_up(&self, events: libc::c_short) -> bool {
        let gone = events & (libc::POLLERR | libc::POLLHUP | libc::POLLNVAL) != 0;
        gone || self.completed.borrow().back().is_some_and(|c| c.status == Status::Cancelled)
    }

    fn submit_to(
        &mut self,
        lun: c_int,
        cdb: Cdb,
        data: Data,
        token: u64,
        queue: Queue,
    ) -> Result<(), Error> {
        if self.lost {
            return Err(Error::Lost);
        }
        if self.login.get() != Login::Done {
            return Err(Error::Argument("the session is not logged in"));
        }
        let (direction, buffer) = match (data, cdb.direction()) {
            (Data::None, _) => (ffi::XFER_NONE, Vec::new()),
            (Data::In(buffer), Direction::In) => (ffi::XFER_READ, buffer),
            (Data::Out(buffer), Direction::Out) => (ffi::XFER_WRITE, buffer),
            _ => return Err(Error::Argument("the data goes the other way than the CDB says")),
        };
        let length = c_int::try_from(buffer.len())
            .map_err(|_| Error::Argument("a command carries less than 2 GiB"))?;
        let task = create_task(&cdb, direction, length)?;
        let mut command = Box::new(InFlight {
            token,
            task,
            buffer,
            iov: ffi::IoVec { base: std::ptr::null_mut(), len: 0 },
            queue,
        });
        command.iov.base = command.buffer.as_mut_ptr().cast();
        command.iov.len = command.buffer.len();
        self.hand_over(lun, command, direction)
    }

    fn hand_over(
        &mut self,
        lun: c_int,
        command: Box<InFlight>,
        direction: c_int,
    ) -> Result<(), Error> {
        let task = command.task;
        let command = Box::into_raw(command);
        // SAFETY: `command` and the buffer that its iov refers to do not move until the callback,
        // which libiscsi calls exactly once, takes them back; or until the error below, after which
        // libiscsi holds neither.
        unsafe {
            let iov = &raw mut (*command).iov;
            match direction {
                ffi::XFER_READ => ffi::scsi_task_set_iov_in(task, iov, 1),
                ffi::XFER_WRITE => ffi::scsi_task_set_iov_out(task, iov, 1),
                _ => {}
            }
            let result = ffi::iscsi_scsi_command_async(
                self.context.as_ptr(),
                lun,
                task,
                on_command_end,
                std::ptr::null_mut(),
                command.cast(),
            );
            if result != 0 {
                drop(Box::from_raw(command));
                ffi::scsi_free_scsi_task(task);
                return Err(library_error(self.context, "send a command"));
            }
        }
        self.commands += 1;
        Ok(())
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // SAFETY: the context is live and is not used again. It calls back commands in flight as
        // cancelled, which frees their memory.
        unsafe { ffi::iscsi_destroy_context(self.context.as_ptr()) };
    }
}

fn create_task(cdb: &Cdb, direction: c_int, length: c_int) -> Result<*mut ffi::Task, Error> {
    let mut bytes = [0_u8; 16];
    let len = cdb.bytes().len();
    bytes[..len].copy_from_slice(cdb.bytes());
    // SAFETY: the CDB's bytes outlive the call, which copies them.
    let task =
        unsafe { ffi::scsi_create_task(len as c_int, bytes.as_mut_ptr(), direction, length) };
    if task.is_null() { Err(Error::Argument("libiscsi is out of memory")) } else { Ok(task) }
}
