/** Whom the array tells, and whom it asks, on its management network. */

/** The server that mail is sent by. */
export interface RestRelay {
  relay_host: string;
  sender_domain: string;
  sender_username: string;
  encryption_mode: string;
  user_name: string;
  subject_prefix: string;
  body_prefix: string;
}

/** Somebody who gets mail about alerts. */
export interface RestWatcher {
  name: string;
  enabled: boolean;
}

export interface RestSyslogServer {
  name: string;
  uri: string;
}

/** What a test of one came to. */
export interface RestTested {
  destination: string;
  success: boolean;
  result_details: string;
}

/** Which group has a role. */
export interface DirectoryRole {
  role: string;
  group: string;
  group_base: string;
}

/** The directory service whose users may log in. */
export interface DirectorySettings {
  enabled: boolean;
  uris: string[];
  base_dn: string;
  bind_user: string;
  has_bind_password: boolean;
  ca_certificate: string;
  user_login: string;
  user_class: string;
  roles: DirectoryRole[];
}

/** What tests of its servers came to. */
export interface DirectoryServers {
  servers: { uri: string; found: string | null; error: string | null }[];
}
