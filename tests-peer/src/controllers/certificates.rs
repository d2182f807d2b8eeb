//! The certificate of management and the login banner belong to the pool: after a takeover, the
//! other controller shows the same ones.

use std::fs;

use anyhow::{Context, Result, ensure};
use serde_json::json;

use crate::Arguments;
use crate::array::{Array, Controllers, Shape};
use crate::command;
use crate::pair::owner;
use crate::report::Report;

use super::signal;

const BANNER: &str = "For members of staff only.";

/// Runs it on a separate array.
pub fn run(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let name = "an imported certificate and a banner are shown by either controller";
    if !command::exists("openssl") {
        report.skip(name, "openssl is not installed");
        return Ok(());
    }
    let shape = Shape { controllers: Controllers::Two, encrypted: true, ..Shape::default() };
    let mut array = crate::array(arguments, shape)?;
    report.check(name, || {
        let first = owner(&array)?;
        let of_files = served(&array)?;
        let pem = import(&array)?;
        array.verb(&["array", "set", "--banner", BANNER])?;
        ensure!(pem != of_files, "openssl made the certificate of files");
        shows(&array, &pem).context("after the import")?;
        array.verb(&["controller", "switch"])?;
        let second = owner(&array)?;
        ensure!(second.name != first.name, "{} still has the pool", first.name);
        shows(&array, &pem).context("after a switch")?;
        signal(second.pid, "KILL")?;
        let third = owner(&array)?;
        ensure!(third.name != second.name, "{} has the pool again", second.name);
        shows(&array, &pem).context("after a kill of the owner")?;
        // Without it, the controller that took over has the certificate of files.
        array.verb(&["api", "DELETE", "/api/2.26/certificates?names=management"])?;
        shows(&array, &of_files).context("after its removal")?;
        Ok(String::new())
    });
    array.stop()
}

/// Imports a certificate that openssl makes. Returns it.
fn import(array: &Array) -> Result<String> {
    let path = |name: &str| array.scratch().join(name).display().to_string();
    let (pem, key) = (path("imported.pem"), path("imported.key"));
    let curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"];
    let subject = ["-subj", "/CN=array", "-addext", "subjectAltName=IP:127.0.0.1"];
    let files = ["-out", &pem, "-keyout", &key];
    let made = [&["req", "-x509", "-nodes", "-days", "9"][..], &curve, &subject, &files].concat();
    command::run(20, "openssl", &made)?.good()?;
    let (pem, key) = (fs::read_to_string(pem)?, fs::read_to_string(key)?);
    let body = json!({"status": "imported", "certificate": pem, "key": key}).to_string();
    let change = ["api", "PATCH", "/api/2.26/certificates?names=management", "--data", &body];
    array.verb(&change)?;
    Ok(pem.trim().to_owned())
}

/// Returns the certificate with which the management address answers, as openssl sees it.
fn served(array: &Array) -> Result<String> {
    let told = command::run(20, "openssl", &["s_client", "-connect", &array.api])?.text;
    let begin = told.find("-----BEGIN CERTIFICATE-----").with_context(|| told.clone())?;
    let end = told.find("-----END CERTIFICATE-----").with_context(|| told.clone())?;
    Ok(format!("{}-----END CERTIFICATE-----", &told[begin..end]))
}

/// Checks that the management address has this certificate, that local verbs accept it, and that
/// the banner of the import is set.
fn shows(array: &Array, pem: &str) -> Result<()> {
    let found = served(array)?;
    ensure!(found == pem, "another certificate is served:\n{found}");
    let banner = array.verb(&["array", "show"])?["banner"].clone();
    ensure!(banner == BANNER, "the banner is {banner}");
    Ok(())
}
