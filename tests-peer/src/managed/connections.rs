//! Connections: of one host with many volumes, of many hosts with one, and of groups of many.

use serde_json::json;

use super::World;
use super::hosts::SINGLE;
use super::http::Request;
use super::names::{BATCH, batch, listed, name};
use super::volumes::BATCHES;
use crate::report::Report;

/// The number of connections in a response for a group of 500 hosts.
const SHOWN: usize = 5000;
/// Hosts that leave the first group before lists are read: a list has at most 200,000 connections.
const LEAVING: usize = 150;
/// Volumes whose connections with a group stay.
const STAYING: usize = 4;

fn rest(method: &'static str, parameters: &str) -> Request {
    Request::new(method, format!("/api/2.26/connections?{parameters}"))
}

/// Returns one host and the volumes of a batch.
fn of_host(n: usize) -> String {
    format!("host_names={}&volume_names={}", name("one", n), listed("v", n % BATCHES))
}

/// Returns one host and one volume, at a unique LUN.
fn of_two(n: usize) -> String {
    format!("host_names={}&volume_names={}", name("one", n), name("x", 0))
}

/// Returns one volume and the hosts of a batch.
fn of_volume(n: usize) -> String {
    format!("host_names={}&volume_names={}", listed("host", n), name("w", n))
}

/// Returns a host group of 500 hosts and the volumes of a batch.
fn of_group(n: usize) -> String {
    format!("host_group_names={}&volume_names={}", name("hg", n), listed("v", n))
}

/// Returns a host group of 500 hosts and some volumes.
fn of_some() -> String {
    let volumes: Vec<String> = (0..STAYING).map(|n| name("x", n + 2)).collect();
    format!("host_group_names={}&volume_names={}", name("hg", 3), volumes.join(","))
}

/// Returns as many host groups as possible and one volume.
fn of_groups() -> String {
    format!("host_group_names={}&volume_names={}", listed("hg", 0), name("x", 1))
}

/// Returns the working host, and the volumes of a batch.
fn of_worker() -> String {
    format!("host_names=peer&volume_names={}", listed("v", 0))
}

pub fn made(report: &mut Report, world: &World) {
    let make = |n| rest("POST", &of_host(n)).gives(BATCH);
    let requests: Vec<_> = (0..2 * BATCHES).map(make).collect();
    world.row(report, "POST connections of one host", &requests);
    let make = rest("POST", &of_worker()).gives(BATCH);
    world.row(report, "POST connections of the host that works", &[make]);
    let make = |n| rest("POST", &of_volume(n)).gives(BATCH);
    let requests: Vec<_> = (0..BATCHES).map(make).collect();
    world.row(report, "POST connections of one volume", &requests);
    let make = |n| rest("POST", &of_group(n)).gives(SHOWN);
    let requests: Vec<_> = (0..BATCHES).map(make).collect();
    world.row(report, "POST connections of a group of 500", &requests);
    let end = |n| rest("DELETE", &of_group(n));
    let requests: Vec<_> = (1..BATCHES).map(end).collect();
    world.row(report, "DELETE connections of a group of 500", &requests);
    let leaving = batch("host", 0).split_off(BATCH - LEAVING).join(",");
    let leaving = format!("group_names={}&member_names={leaving}", name("hg", 0));
    let leave = Request::new("DELETE", format!("/api/2.26/host-groups/hosts?{leaving}"));
    world.row(report, "DELETE host-groups/hosts with 500 volumes", &[leave]);
    let make = rest("POST", &of_groups());
    world.row(report, "POST connections of 500 groups", &[make]);
    let make = |n| rest("POST", &of_two(n)).json(&json!({"lun": 16_383})).gives(1);
    world.row(report, "POST connections of two", &(0..SINGLE).map(make).collect::<Vec<_>>());
}

/// Ends all but the first of each.
pub fn ended(report: &mut Report, world: &World) {
    let requests: Vec<_> = (1..SINGLE).map(|n| rest("DELETE", &of_two(n))).collect();
    world.row(report, "DELETE connections of two", &requests);
    let end = |n| rest("DELETE", &of_host(n));
    let requests: Vec<_> = (1..2 * BATCHES).map(end).collect();
    world.row(report, "DELETE connections of one host", &requests);
    world.row(report, "DELETE connections of the host that works", &[rest("DELETE", &of_worker())]);
    let end = |n| rest("DELETE", &of_volume(n));
    let requests: Vec<_> = (0..BATCHES).map(end).collect();
    world.row(report, "DELETE connections of one volume", &requests);
    let end = rest("DELETE", &of_group(0));
    world.row(report, "DELETE connections of a group of 350", &[end]);
    world.row(report, "DELETE connections of 500 groups", &[rest("DELETE", &of_groups())]);
    let stay = rest("POST", &of_some()).gives(STAYING * BATCH);
    world.row(report, "POST connections that stay", &[stay]);
}
