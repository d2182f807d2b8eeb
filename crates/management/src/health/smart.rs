//! Parses `smartctl --json` reports of ATA, NVMe and SCSI devices.
//!
//! Nothing in them is trusted: any field may be missing or wrong.

use api::DeviceHealth;
use serde::Deserialize;

/// ATA attributes that count down from 100 to 0 with wear: `Wear_Leveling_Count`, `SSD_Life_Left`,
/// `Media_Wearout_Indicator`.
const ATA_LIFE_LEFT: [u64; 3] = [231, 233, 177];
/// ATA attributes that count unreadable data: `Reported_Uncorrect`, or `Offline_Uncorrectable` for
/// devices without it.
const ATA_UNCORRECTABLE: [u64; 2] = [187, 198];
/// The page of ATA statistics about solid-state devices, and the offset of the wear in it.
const ATA_SSD_PAGE: u64 = 7;
const ATA_WEAR_OFFSET: u64 = 8;
/// The longest message, in characters; longer ones are truncated.
const MESSAGE_MAX: usize = 200;

#[derive(Default, Deserialize)]
#[serde(default)]
struct Report {
    smartctl: Smartctl,
    smart_status: Option<SmartStatus>,
    temperature: Temperature,
    power_on_time: PowerOnTime,
    /// From smartctl 7.4 on, for all kinds of devices.
    endurance_used: EnduranceUsed,
    nvme_smart_health_information_log: NvmeLog,
    ata_smart_attributes: AtaTable,
    ata_device_statistics: AtaStatistics,
    scsi_error_counter_log: Option<ScsiErrors>,
    scsi_percentage_used_endurance_indicator: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Smartctl {
    messages: Vec<Message>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Message {
    string: String,
    severity: String,
}

#[derive(Deserialize)]
struct SmartStatus {
    passed: Option<bool>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Temperature {
    current: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct PowerOnTime {
    hours: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EnduranceUsed {
    current_percent: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct NvmeLog {
    percentage_used: Option<u64>,
    media_errors: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AtaTable {
    table: Vec<AtaAttribute>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AtaAttribute {
    id: u64,
    value: u64,
    raw: Raw,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Raw {
    value: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AtaStatistics {
    pages: Vec<AtaPage>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AtaPage {
    number: u64,
    table: Vec<AtaStatistic>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct AtaStatistic {
    offset: u64,
    value: Option<u64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ScsiErrors {
    read: ScsiCounters,
    write: ScsiCounters,
    verify: ScsiCounters,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct ScsiCounters {
    total_uncorrected_errors: u64,
}

/// Parses a report.
///
/// # Errors
/// In one sentence, if it is invalid, or contains no health.
pub(super) fn parse(said: &[u8]) -> Result<DeviceHealth, String> {
    let report: Report = serde_json::from_slice(said)
        .map_err(|error| format!("the output of smartctl can't be parsed: {error}"))?;
    let health = DeviceHealth {
        passed: report.smart_status.as_ref().and_then(|status| status.passed),
        wear_percent: report.wear_percent(),
        temperature_c: report.temperature.current,
        media_errors: report.media_errors(),
        power_on_hours: report.power_on_time.hours,
        ..DeviceHealth::default()
    };
    if health == DeviceHealth::default() {
        let messages = &report.smartctl.messages;
        let error = messages.iter().find(|message| message.severity == "error");
        let why = error.or(messages.first()).map(|message| one_line(&message.string));
        return Err(why.unwrap_or_else(|| "smartctl reports no health".into()));
    }
    Ok(health)
}

/// Sanitizes a message of a device or tool for display.
fn one_line(text: &str) -> String {
    let shown = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter });
    shown.take(MESSAGE_MAX).collect()
}

impl Report {
    fn attribute(&self, id: u64) -> Option<&AtaAttribute> {
        self.ata_smart_attributes.table.iter().find(|attribute| attribute.id == id)
    }

    fn wear_percent(&self) -> Option<u64> {
        let page = self.ata_device_statistics.pages.iter().find(|page| page.number == ATA_SSD_PAGE);
        let statistic = page.and_then(|page| {
            page.table.iter().find(|statistic| statistic.offset == ATA_WEAR_OFFSET)?.value
        });
        self.endurance_used
            .current_percent
            .or(self.nvme_smart_health_information_log.percentage_used)
            .or(self.scsi_percentage_used_endurance_indicator)
            .or(statistic)
            .or_else(|| {
                let left = ATA_LIFE_LEFT.into_iter().find_map(|id| self.attribute(id))?;
                Some(100_u64.saturating_sub(left.value))
            })
    }

    fn media_errors(&self) -> Option<u64> {
        let of_ata = || ATA_UNCORRECTABLE.into_iter().find_map(|id| self.attribute(id));
        let of_scsi = self.scsi_error_counter_log.as_ref().map(|log| {
            let counters = [&log.read, &log.write, &log.verify].into_iter();
            counters.fold(0, |sum: u64, of| sum.saturating_add(of.total_uncorrected_errors))
        });
        let of_nvme = self.nvme_smart_health_information_log.media_errors;
        of_nvme.or(of_scsi).or_else(|| Some(of_ata()?.raw.value))
    }
}

#[cfg(test)]
#[path = "smart_tests.rs"]
mod tests;
