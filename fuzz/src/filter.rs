//! Filters of lists: any text, applied to items that look like answers.

use api::rest::{Filter, filter};
use serde_json::{Value, json};

fn items() -> [Value; 3] {
    let host = json!({
        "name": "esx", "is_local": true, "iqns": ["iqn.2026-01.example:a", "b"], "wwns": [],
        "host_group": {}, "space": {"unique": null, "total_physical": u64::MAX, "ratio": 1.5},
    });
    [host, json!({"name": [{"name": "a"}, 1, null]}), json!(7)]
}

/// Runs the target.
pub fn run(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let items = items();
    match Filter::parse(&text) {
        Ok(parsed) => {
            assert!(text.len() <= filter::FILTER_BYTES_MAX);
            let not = Filter::Not(Box::new(parsed.clone()));
            for item in &items {
                assert_ne!(parsed.matches(item), not.matches(item));
            }
        }
        Err(error) => assert!(!error.to_string().contains('\n')),
    }
}

/// Returns a filter for each kind of condition.
pub fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "name='esx*' and not(is_local)",
        "iqns[all]=\"iqn.*\" or contains(host_group.name, 'x')",
        "space.total_physical>=18446744073709551615",
        "name=('a','b',1,true,null) and ((wwns))",
        "name!='it\\'s' or space.ratio<-1.5e3",
    ];
    texts.map(|text| text.as_bytes().to_vec()).to_vec()
}
