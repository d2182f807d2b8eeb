/** Servers on the management network: recipients of alerts, and directory services. */
import type { components } from "./openapi";

type Schemas = components["schemas"];

/** The mail relay. There is only one, so its name does not matter. */
export type RestRelay = Omit<Schemas["RestSmtpServer"], "name">;
/** A recipient of mail about alerts. */
export type RestWatcher = Schemas["RestAlertWatcher"];
export type RestSyslogServer = Schemas["RestSyslogServer"];
/** A recipient of alerts by SNMP. */
export type RestSnmpManager = Schemas["RestSnmpManager"];
/** The array as a sender of SNMP notifications. */
export type RestSnmpAgent = Schemas["RestSnmpAgent"];
/** The result of the test of a recipient. */
export type RestTested = Schemas["RestTestResult"];
/** A certificate of the array; its key is never returned. */
export type RestCertificate = Schemas["RestCertificate"];
export type RestSigningRequest = Schemas["RestSigningRequest"];
/** The group that has a role. */
export type DirectoryRole = Schemas["DirectoryRole"];
/** The directory service whose users may log in. */
export type DirectorySettings = Schemas["DirectorySettings"];
/** The results of tests of its servers. */
export type DirectoryServers = Schemas["DirectoryServers"];
