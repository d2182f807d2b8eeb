//! iSCSI (RFC 7143) as a transport.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use block::LunMap;
use iscsi::{Access, Limits, Portal, Target, TargetConfig};

use super::{
    Command, CommandBytes, ConnectionId, Ended, Event, Handed, ManagementHandle, ManagementOutcome,
    Meant, Memory, NexusInfo, Opening, PortOptions, SessionId, Slices, SlicesMut, TaskHandle,
    TaskResponse, Transport, Transports,
};

/// The configuration of an iSCSI target.
pub struct Options {
    /// Its iSCSI name.
    pub target_name: String,
    /// Its alias for display; empty for none.
    pub target_alias: String,
    /// The portals. Each is in its own portal group, whose tag is the relative identifier of its
    /// port: the tag is part of the port's name (RFC 7143, 4.4.3), so portals with the same tag
    /// would be one port, and hosts would have fewer paths.
    pub ports: Vec<PortOptions>,
    /// Decides who may log in.
    pub access: Arc<dyn Access>,
    /// Limits on memory and time.
    pub limits: Limits,
}

/// An iSCSI target.
pub struct Iscsi(Arc<Target>);

impl Iscsi {
    /// Creates the target.
    pub fn new(options: Options) -> Self {
        let portals =
            options.ports.iter().map(|port| Portal { address: port.address, tag: port.id });
        Self(Target::new(TargetConfig {
            target_name: options.target_name,
            target_alias: options.target_alias,
            portals: portals.collect(),
            limits: options.limits,
            access: options.access,
            data_out_phase: scsi::data_out_phase,
            data_out_bytes: crate::luns::data_out_bytes,
        }))
    }
}

impl Transports for Iscsi {
    fn open(&self, opening: Opening) -> Box<dyn Transport> {
        let connection = iscsi::Connection::new(self.0.clone(), opening);
        Box::new(IscsiConnection { connection, entered: None })
    }

    fn expect(&self, handed: &[&Handed]) {
        self.0.expect(handed.iter().map(|handed| handed.tsih));
    }

    fn go_on_with(&self, opening: Opening, handed: Handed) -> Option<Box<dyn Transport>> {
        let connection = iscsi::Connection::go_on_with(self.0.clone(), opening, handed)?;
        Some(Box::new(IscsiConnection { connection, entered: None }))
    }

    fn data_out_bytes_max(&self) -> u32 {
        self.0.config().limits.data_out_bytes_per_command
    }

    fn data_timeout(&self) -> Duration {
        self.0.config().limits.data_timeout
    }

    fn data_bytes(&self) -> usize {
        self.0.data_bytes()
    }
}

/// A connection, and the information about its session.
struct IscsiConnection {
    connection: iscsi::Connection,
    entered: Option<Arc<NexusInfo>>,
}

fn nexus_of(info: &iscsi::NexusInfo) -> NexusInfo {
    NexusInfo {
        session: info.session,
        host_name: info.initiator_name.clone(),
        host_port: info.isid,
        target_port: info.portal_tag,
        discovery: info.discovery,
        terms: info.terms,
    }
}

fn command_of(command: iscsi::Command) -> Command {
    let iscsi::Command { task, lun, cdb, attribute, data_out, .. } = command;
    Command {
        task,
        lun,
        bytes: CommandBytes::new(cdb.bytes()),
        is_unsupported: attribute == iscsi::TaskAttribute::Aca,
        data_out,
        expected_out_bytes: command.expected_out_bytes,
        expected_in_bytes: command.expected_in_bytes,
    }
}

impl IscsiConnection {
    fn enter(&mut self, info: &iscsi::NexusInfo, replaces: Option<ConnectionId>) -> Event {
        let nexus = self.entered.get_or_insert_with(|| Arc::new(nexus_of(info)));
        Event::Entered { nexus: nexus.clone(), replaces }
    }
}

impl Transport for IscsiConnection {
    fn id(&self) -> ConnectionId {
        self.connection.id()
    }

    fn peer(&self) -> SocketAddr {
        self.connection.peer()
    }

    fn session(&self) -> Option<SessionId> {
        self.connection.nexus().map(|nexus| nexus.session)
    }

    fn host_name(&self) -> Option<&str> {
        self.connection.nexus().map(|nexus| nexus.initiator_name.as_str())
    }

    fn receive_slices<'a>(&'a mut self, out: &mut SlicesMut<'a>) {
        self.connection.receive_slices(out);
    }

    fn received(&mut self, bytes: usize, now: Duration) {
        self.connection.received(bytes, now);
    }

    fn transmit_slices<'a>(&'a self, out: &mut Slices<'a>, bytes_max: usize) {
        self.connection.transmit_slices(out, bytes_max);
    }

    fn transmitted(&mut self, bytes: usize) {
        self.connection.transmitted(bytes);
    }

    fn has_output(&self) -> bool {
        self.connection.has_output()
    }

    fn is_output_full(&self) -> bool {
        self.connection.is_output_full()
    }

    fn has_input(&self) -> bool {
        self.connection.has_input()
    }

    fn go_on(&mut self) {
        self.connection.go_on();
    }

    fn next_event(&mut self) -> Option<Event> {
        Some(match self.connection.next_event()? {
            // The front end finds the session that it replaces.
            iscsi::Event::SessionStarted { nexus, .. } => self.enter(&nexus, None),
            iscsi::Event::ConnectionAdded { nexus, replaces } => self.enter(&nexus, replaces),
            iscsi::Event::LoginRefused { initiator_name, status } => {
                Event::LoginRefused { host_name: initiator_name, status }
            }
            iscsi::Event::Command(command) => Event::Command(command_of(command)),
            iscsi::Event::TaskManagement(request) => Event::TaskManagement(request),
            iscsi::Event::Acknowledged { name } => Event::Acknowledged { name },
            iscsi::Event::Wake { connection } => Event::Wake { connection },
        })
    }

    fn has_events(&self) -> bool {
        self.connection.has_events()
    }

    fn set_time(&mut self, now: Duration) {
        self.connection.set_time(now);
    }

    fn tick(&mut self, now: Duration) {
        self.connection.tick(now);
    }

    fn deadline(&self) -> Option<Duration> {
        self.connection.deadline()
    }

    fn set_luns(&mut self, luns: Arc<LunMap>) {
        self.connection.set_luns(luns);
    }

    fn outstanding(&self) -> usize {
        self.connection.outstanding()
    }

    fn reserve(&mut self, task: TaskHandle, bytes: usize) -> bool {
        self.connection.reserve(task, bytes)
    }

    fn respond(&mut self, task: TaskHandle, response: TaskResponse) {
        self.connection.respond(task, response);
    }

    fn forget(&mut self, task: TaskHandle) {
        self.connection.forget(task);
    }

    fn abort(&mut self, is_meant: &mut Meant<'_>) -> Vec<TaskHandle> {
        self.connection.abort(is_meant)
    }

    fn abort_before(&mut self, by: ManagementHandle, is_meant: &mut Meant<'_>) -> Vec<TaskHandle> {
        self.connection.abort_before(by, is_meant)
    }

    fn respond_management(&mut self, handle: ManagementHandle, outcome: ManagementOutcome) {
        self.connection.respond_management(handle, outcome);
    }

    fn request_logout(&mut self) {
        self.connection.request_logout(0);
    }

    fn begin_to_hand_over(&mut self) -> bool {
        self.connection.begin_to_hand_over()
    }

    fn is_incomplete(&self) -> bool {
        self.connection.is_incomplete()
    }

    fn is_settled(&self) -> bool {
        self.connection.is_settled()
    }

    fn hand_over(&self) -> Option<Handed> {
        self.connection.hand_over()
    }

    fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }

    fn take_complaint(&mut self) -> Option<&'static str> {
        self.connection.take_complaint()
    }

    fn end(self: Box<Self>) -> Ended {
        let iscsi::Ended { tasks, memory, session, wake } = self.connection.end();
        let session = session.map(|info| info.session);
        Ended { tasks, memory: Memory::new(memory), session, wake }
    }
}
