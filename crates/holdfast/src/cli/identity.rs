//! The identity of a running array in management: its certificate, and where that is stored.

use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use array::{Array, MANAGEMENT_CERTIFICATE};
use management::certificate::{self, ServerIdentity};
use management::private;

use super::config::Config;
use super::discover;
use super::failure::Failure;
use super::place::Place;

/// Returns the identity of an array, which uses the certificate in the pool whenever there is one.
pub fn in_force(
    config: &Config,
    place: &Place,
    array: &Arc<Array>,
    api: IpAddr,
) -> Result<ServerIdentity, Failure> {
    let identity = of_array(config, place, array.pool().pool_id, api)?;
    let array = array.clone();
    identity.credentials.follow(move || array.certificate(MANAGEMENT_CERTIFICATE));
    Ok(identity)
}

/// Returns the identity of an array in files: from the configuration, from the files beside the
/// pool, or a new one. `api` is the address of management.
fn of_array(
    config: &Config,
    place: &Place,
    pool_id: [u8; 16],
    api: IpAddr,
) -> Result<ServerIdentity, Failure> {
    if let (Some(certificate), Some(key)) = (&config.certificate, &config.private_key) {
        return Ok(certificate::load(certificate, key)?);
    }
    let directory = directory(config, place, pool_id);
    let directory = directory.as_deref().map_err(|failure| {
        // The kind of failure does not matter: there is another directory to try.
        management::Error::Machine(failure.to_string())
    });
    let otherwise = discover::user_directory().join(name_of(pool_id));
    Ok(certificate::kept(directory, &otherwise, api)?)
}

/// Returns the directory of an array's files beside its pool: the pool's directory, or for a device
/// one named after the pool.
pub fn directory(config: &Config, place: &Place, pool_id: [u8; 16]) -> Result<PathBuf, Failure> {
    if !place.is_device() {
        return Ok(place.pool.clone());
    }
    let directory = config.state_directory.join(name_of(pool_id));
    private::make_directory(&directory).map_err(|error| {
        let failure = Failure::of_file("use", &directory, &error);
        Failure::Machine(format!("{failure}; state_directory in the configuration names another"))
    })?;
    Ok(directory)
}

fn name_of(pool_id: [u8; 16]) -> String {
    pool_id.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_certificate_is_kept_beside_the_pool_unless_one_is_configured() {
        let directory = tempfile::tempdir().unwrap();
        let pool = directory.path().join("pool");
        fs::create_dir(&pool).unwrap();
        let place = Place { data: pool.join("pool.data"), pool: pool.clone() };
        let mut config = Config::default();
        let of = |config: &Config| of_array(config, &place, [7; 16], IpAddr::from([127, 0, 0, 1]));
        let own = of(&config).unwrap().credentials;
        assert_eq!(own.path().parent(), Some(pool.as_path()));
        let path = |name: &str| Some(directory.path().join(name));
        (config.certificate, config.private_key) = (path("a.pem"), path("a.key"));
        // A configured certificate is not generated.
        assert!(matches!(of(&config), Err(Failure::Machine(_))));
        let (certificate, key) = (directory.path().join("a.pem"), directory.path().join("a.key"));
        certificate::make(&certificate, &key, [127, 0, 0, 1].into()).unwrap();
        let configured = of(&config).unwrap().credentials;
        assert_ne!(configured.fingerprint(), own.fingerprint());
    }
}
