//! qemu's own iscsi driver writes, reads, compares and copies a volume.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::command::{exists, run};
use crate::report::Report;
use crate::target::Target;

/// The size of the image that is copied in and out, in bytes.
const IMAGE_BYTES: usize = 64 << 20;

/// Runs qemu's operations on a volume, which must have at least 64 MiB.
pub fn qemu(report: &mut Report, title: &str, target: &Target, scratch: &Path) {
    if !exists("qemu-io") {
        report.skip("qemu's iscsi driver", "qemu-utils is not installed");
        return;
    }
    let image = target.qemu();
    report.check(&format!("qemu-io {title}: patterns, zeros and discards read back"), || {
        io(&image, &["write -P 0xa5 0 1M", "write -P 0x5a 1M 3M", "flush"])?;
        io(&image, &["read -P 0xa5 0 1M", "read -P 0x5a 1M 3M"])?;
        io(&image, &["write -z 512k 1M", "discard 2M 1M", "write -P 0x11 1234432 4608"])?;
        io(&image, &["read -P 0xa5 0 512k", "read -P 0 512k 710144", "read -P 0x11 1234432 4608"])?;
        io(
            &image,
            &[
                "read -P 0 1239040 333824",
                "read -P 0 2M 1M",
                "read -P 0x5a 1536k 512k",
                "read -P 0x5a 3M 1M",
            ],
        )?;
        Ok(String::new())
    });
    report.check(&format!("qemu-io {title}: a wrong pattern is detected"), || {
        // The canary: if this passes, the check above proves nothing.
        let finished = run(30, "qemu-io", &["-c", "read -P 0x77 0 4k", &image])?;
        ensure!(finished.code != 0, "qemu-io accepted other data as 77h");
        Ok(String::new())
    });
    report.check(&format!("qemu-io {title}: 64 writes in flight"), || {
        let mut commands: Vec<String> = Vec::new();
        for index in 0..64u32 {
            let at = 4096 * (index * 7 % 64);
            commands.push(format!("aio_write -P {} {at} 4096", index + 1));
        }
        commands.push("aio_flush".to_owned());
        for index in 0..64u32 {
            let at = 4096 * (index * 7 % 64);
            commands.push(format!("read -P {} {at} 4096", index + 1));
        }
        let commands: Vec<&str> = commands.iter().map(String::as_str).collect();
        io(&image, &commands)?;
        Ok(String::new())
    });
    report.check(&format!("qemu-img {title}: converts in, compares, converts out"), || {
        convert(&image, scratch)
    });
}

/// Copies an image of known bytes to the volume and back.
fn convert(image: &str, scratch: &Path) -> Result<String> {
    let original = scratch.join("qemu-original.raw");
    let copy = scratch.join("qemu-copy.raw");
    std::fs::write(&original, sample())?;
    let original_name = original.display().to_string();
    let copy_name = copy.display().to_string();
    let into = ["convert", "-n", "-f", "raw", "-O", "raw", &original_name, image];
    run(120, "qemu-img", &into)?.good()?;
    run(120, "qemu-img", &["compare", "-f", "raw", &original_name, image])?.good()?;
    let out = ["convert", "-O", "raw", image, &copy_name];
    run(120, "qemu-img", &out)?.good()?;
    let bytes = std::fs::read(&copy).context("the copy")?;
    let same = bytes.get(..IMAGE_BYTES) == Some(sample().as_slice());
    std::fs::remove_file(&original)?;
    std::fs::remove_file(&copy)?;
    ensure!(same, "the data read back differs from the data written");
    Ok(format!("{} MiB", IMAGE_BYTES >> 20))
}

/// Runs commands of qemu-io in one process.
fn io(image: &str, commands: &[&str]) -> Result<()> {
    let mut arguments = Vec::new();
    for command in commands {
        arguments.extend(["-c", command]);
    }
    arguments.push(image);
    let text = run(60, "qemu-io", &arguments)?.good()?;
    ensure!(!text.contains("verification failed"), "{text}");
    ensure!(!text.to_lowercase().contains("error"), "{text}");
    Ok(())
}

/// Returns data, holes and repeated patterns in turn, the same at every call.
fn sample() -> Vec<u8> {
    let mut bytes = vec![0; IMAGE_BYTES];
    let mut state = 0x9E37_79B9_7F4A_7C15u64;
    for (index, piece) in bytes.chunks_mut(256 << 10).enumerate() {
        match index % 4 {
            0 => {}
            1 => piece.fill(0xEE),
            _ => {
                for word in piece.chunks_mut(8) {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    word.copy_from_slice(&state.to_le_bytes()[..word.len()]);
                }
            }
        }
    }
    bytes
}
