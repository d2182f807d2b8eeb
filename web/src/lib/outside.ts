/** Whom the array tells, and whom it asks, on its management network. */
import type { components } from "./openapi";

type Schemas = components["schemas"];

/** The server that mail is sent by; there is one, so its name does not matter. */
export type RestRelay = Omit<Schemas["RestSmtpServer"], "name">;
/** Somebody who gets mail about alerts. */
export type RestWatcher = Schemas["RestAlertWatcher"];
export type RestSyslogServer = Schemas["RestSyslogServer"];
/** A recipient of alerts by SNMP. */
export type RestSnmpManager = Schemas["RestSnmpManager"];
/** The array as a sender of SNMP notifications. */
export type RestSnmpAgent = Schemas["RestSnmpAgent"];
/** What a test of one came to. */
export type RestTested = Schemas["RestTestResult"];
/** Which group has a role. */
export type DirectoryRole = Schemas["DirectoryRole"];
/** The directory service whose users may log in. */
export type DirectorySettings = Schemas["DirectorySettings"];
/** What tests of its servers came to. */
export type DirectoryServers = Schemas["DirectoryServers"];
