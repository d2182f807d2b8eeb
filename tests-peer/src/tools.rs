//! libiscsi's small tools, and sg3_utils as an independent decoder of the array's pages.

use anyhow::{Context, Result, bail, ensure};
use libiscsi::Session;

use crate::command::{self, run};
use crate::report::Report;
use crate::target::Target;

/// The pages that libiscsi 1.19 can decode.
const DECODED: [u8; 6] = [0x00, 0x80, 0x83, 0xB0, 0xB1, 0xB2];

/// Lists, queries and reads as an administrator does by hand.
pub fn tools(report: &mut Report, target: &Target, size_bytes: u64) {
    report.check("iscsi-ls finds target and logical unit", || {
        let portal = target.portal_url();
        let arguments = ["--initiator-name", &target.initiator, "--show-luns", &portal];
        let text = run(20, "iscsi-ls", &arguments)?.good()?;
        ensure!(text.contains(&target.name), "the target is not listed:\n{text}");
        let lun = format!("Lun:{} ", target.lun);
        ensure!(text.lines().any(|line| line.starts_with(&lun)), "no {lun}in:\n{text}");
        Ok(target.name.clone())
    });
    report.check("iscsi-inq reads INQUIRY and the VPD pages it knows", || {
        let text = inquire(target, &[])?;
        ensure!(text.contains("DIRECT_ACCESS"), "not a disk:\n{text}");
        let pages = vpd_pages(target)?;
        // The others are decoded by sg_vpd, below.
        let known: Vec<&u8> = pages.iter().filter(|page| DECODED.contains(page)).collect();
        ensure!(known.len() == DECODED.len(), "only {known:02X?} of {DECODED:02X?} are supported");
        for page in &known {
            inquire(target, &["--evpd", "1", "--pagecode", &page.to_string()])
                .with_context(|| format!("VPD page {page:02X}h"))?;
        }
        Ok(format!("{} pages", known.len()))
    });
    report.check("iscsi-readcapacity16 reports the size", || {
        let arguments = ["--initiator-name", &target.initiator, "--size", &target.url()];
        let text = run(20, "iscsi-readcapacity16", &arguments)?.good()?;
        ensure!(text.trim() == size_bytes.to_string(), "it reports {text}, not {size_bytes}");
        Ok(text.trim().to_owned())
    });
    report.check("iscsi-swp reads the software write protection", || {
        let arguments = ["--initiator-name", &target.initiator, &target.url()];
        let text = run(20, "iscsi-swp", &arguments)?.good()?;
        ensure!(text.contains("SWP:0"), "it reports {text}");
        Ok(String::new())
    });
    for (name, random) in [("sequential", None), ("random", Some("-r"))] {
        report.check(&format!("iscsi-perf reads, {name}"), || {
            let url = target.url();
            let mut arguments = vec!["-i", &target.initiator, "-m", "16", "-b", "8", "-t", "2"];
            arguments.extend(random);
            arguments.push(&url);
            let text = run(20, "iscsi-perf", &arguments)?.good()?;
            let average = text.rsplit("iops average ").next().unwrap_or_default();
            let iops: u64 = average
                .split_whitespace()
                .next()
                .and_then(|word| word.parse().ok())
                .with_context(|| format!("no rate in: {}", command::tail(&text, 2)))?;
            ensure!(iops > 0 && text.contains("finished"), "it read nothing");
            Ok(format!("{iops} reads/s"))
        });
    }
}

/// Another decoder understands the array's pages.
pub fn pages(report: &mut Report, target: &Target) {
    if !command::exists("sg_vpd") {
        report.skip("sg_vpd decodes every VPD page", "sg3-utils is not installed");
        return;
    }
    report.check("sg_vpd and sg_inq decode every page", || {
        let directory = tempfile::tempdir()?;
        let mut session = Session::connect(&target.config())?;
        let inquiry = directory.path().join("inquiry");
        std::fs::write(&inquiry, session.inquiry(None)?)?;
        let file = format!("--inhex={}", inquiry.display());
        clean(&run(10, "sg_inq", &["--raw", &file])?.good()?)?;
        let pages = vpd_pages(target)?;
        for page in &pages {
            let bytes = session.inquiry(Some(*page))?;
            let length = bytes.get(2..4).map_or(0, |b| usize::from(b[0]) << 8 | usize::from(b[1]));
            ensure!(
                bytes.get(1) == Some(page),
                "page {page:02X}h has another page code in its header"
            );
            ensure!(bytes.len() == length + 4, "page {page:02X}h: page length {length} is wrong");
            let path = directory.path().join(format!("{page:02x}"));
            std::fs::write(&path, bytes)?;
            let file = format!("--inhex={}", path.display());
            let number = format!("--page=0x{page:02x}");
            let text = run(10, "sg_vpd", &["--raw", &file, &number])?.good()?;
            clean(&text).with_context(|| format!("VPD page {page:02X}h"))?;
        }
        Ok(format!("{} pages", pages.len()))
    });
}

/// Rejects the messages of sg3_utils for data that it can't decode.
fn clean(text: &str) -> Result<()> {
    for word in ["malformed", "truncated", "badly", "unexpected", "too short", "short for"] {
        if text.to_lowercase().contains(word) {
            bail!("the decoder reports `{word}`:\n{text}");
        }
    }
    Ok(())
}

/// Returns the pages that VPD page 00h lists.
fn vpd_pages(target: &Target) -> Result<Vec<u8>> {
    let page = Session::connect(&target.config())?.inquiry(Some(0))?;
    let pages = page.get(4..).unwrap_or_default().to_vec();
    ensure!(pages.contains(&0x83), "no device identification page in {pages:02X?}");
    ensure!(pages.is_sorted(), "the pages are not in ascending order: {pages:02X?}");
    Ok(pages)
}

fn inquire(target: &Target, more: &[&str]) -> Result<String> {
    let url = target.url();
    let mut arguments = vec!["--initiator-name", &target.initiator];
    arguments.extend(more);
    arguments.push(&url);
    run(20, "iscsi-inq", &arguments)?.good()
}
