//! What administrators do besides volumes and hosts: users, alerts, settings, tags, reports of the
//! lab.

mod alerts;
mod lab_reports;
mod settings;
mod tags;
mod users;
