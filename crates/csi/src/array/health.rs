//! Problems of the whole array.

use serde::Deserialize;

use super::{Array, Refusal};

/// The alerts that affect reads and writes of volumes: `pool-full`, `damage` and `store-failed`
/// (docs/alerts.md).
const HARMFUL: [u32; 3] = [102, 201, 203];

/// An alert.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
struct Alert {
    code: u32,
    summary: String,
}

impl Array {
    /// Returns a problem of the pool that affects volumes; `None` if there is none.
    ///
    /// # Errors
    /// Why the array did not respond.
    pub async fn trouble(&self) -> Result<Option<String>, Refusal> {
        let filter = "state='open' and severity='critical'";
        let open: Vec<Alert> = self.all("alerts", &[("filter", filter)]).await?;
        Ok(reported(&open))
    }
}

fn reported(open: &[Alert]) -> Option<String> {
    let harmful = open.iter().filter(|alert| HARMFUL.contains(&alert.code));
    let texts: Vec<&str> = harmful.map(|alert| alert.summary.as_str()).collect();
    (!texts.is_empty()).then(|| texts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_alerts_about_data_concern_volumes() {
        let alert = |code, summary: &str| Alert { code, summary: summary.into() };
        assert_eq!(reported(&[alert(402, "Host a no longer has a session.")]), None);
        let both = [alert(102, "The pool is full."), alert(209, "Out."), alert(201, "Damage.")];
        assert_eq!(reported(&both).as_deref(), Some("The pool is full. Damage."));
    }
}
