//! What a drive counts, from the JSON of `smartctl --json` and of `nvme ocp smart-add-log`.
//!
//! ATA drives have no standard for attributes: smartctl knows drives by their models and names an
//! attribute with its unit, as `Host_Writes_32MiB`, so names decide and not numbers alone. Where
//! the drive keeps the standard's device statistics these are preferred.

use serde_json::Value;

/// A counter of bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counter {
    /// Since the drive was made.
    pub bytes: u64,
    /// What one step of the counter stands for.
    pub unit_bytes: u64,
    /// Where it stands, as `241 Total_LBAs_Written`.
    pub source: String,
}

/// What the drive wrote to its flash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MediaCounter {
    /// As bytes.
    Bytes(Counter),
    /// As pages, of a size that is not told: for the host, and by the drive for itself.
    Pages {
        /// Programmed because the host wrote.
        host: u64,
        /// Programmed beside that.
        background: u64,
        /// Where they stand.
        source: String,
    },
}

/// The counters of a drive at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Model and serial number: the same drive, or another one.
    pub drive: String,
    /// Bytes that hosts wrote.
    pub host: Option<Counter>,
    /// Bytes that the medium wrote.
    pub media: Option<MediaCounter>,
    /// The meaning of attributes is a guess: smartctl does not know this drive.
    pub is_guess: bool,
}

/// Reads what `smartctl --json -x` says. The error is for people: why there is nothing to read.
pub fn smartctl(json: &Value) -> Result<Counters, String> {
    // The two lowest bits: a wrong command line, a drive that did not open.
    let status = json["smartctl"]["exit_status"].as_u64().unwrap_or(0);
    let nvme = &json["nvme_smart_health_information_log"];
    let attributes = attributes(json);
    let block_bytes = json["logical_block_size"].as_u64().unwrap_or(512);
    let statistics = sectors_written(json, block_bytes);
    let has_counters = nvme.is_object() || !attributes.is_empty() || statistics.is_some();
    if status & 3 != 0 || !has_counters {
        return Err(messages(json).unwrap_or_else(|| "it told no SMART data".into()));
    }
    let text = |name: &str| json[name].as_str().unwrap_or("?").to_string();
    let mut counters = Counters {
        drive: format!("{}, serial {}", text("model_name"), text("serial_number")),
        ..Counters::default()
    };
    if let Some(units) = nvme["data_units_written"].as_u64() {
        counters.host = Some(counter(units, 512_000, "data_units_written".into()));
        return Ok(counters);
    }
    let host = attributes.iter().find_map(|each| each.host(block_bytes));
    counters.is_guess = statistics.is_none() && json["in_smartctl_database"] == Value::Bool(false);
    counters.host = statistics.or(host);
    counters.media = media(&attributes);
    Ok(counters)
}

/// Reads the extended log of the Open Compute Project: bytes that the medium wrote.
pub fn ocp(json: &Value) -> Option<Counter> {
    let names = ["Physical media units written", "physical_media_units_written"];
    let units = names.iter().map(|name| &json[*name]).find(|value| !value.is_null())?;
    let bytes = match units {
        Value::Object(halves) if halves.get("hi")?.as_u64()? == 0 => halves.get("lo")?.as_u64()?,
        value => value.as_u64()?,
    };
    Some(counter(bytes, 1, "OCP log, physical media units written".into()))
}

fn counter(count: u64, unit_bytes: u64, source: String) -> Counter {
    Counter { bytes: count.saturating_mul(unit_bytes), unit_bytes, source }
}

fn messages(json: &Value) -> Option<String> {
    let messages = json["smartctl"]["messages"].as_array()?;
    let texts: Vec<&str> = messages.iter().filter_map(|each| each["string"].as_str()).collect();
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// The standard's own counter, in logical sectors.
fn sectors_written(json: &Value, block_bytes: u64) -> Option<Counter> {
    let pages = json["ata_device_statistics"]["pages"].as_array()?;
    let entries = pages.iter().filter_map(|page| page["table"].as_array()).flatten();
    let is_sought = |each: &&Value| {
        each["name"] == "Logical Sectors Written" && each["flags"]["valid"] != Value::Bool(false)
    };
    let sectors = entries.into_iter().find(is_sought)?["value"].as_u64()?;
    Some(counter(sectors, block_bytes, "device statistics, Logical Sectors Written".into()))
}

/// One row of the table of attributes.
struct Attribute {
    id: u64,
    name: String,
    raw: u64,
}

fn attributes(json: &Value) -> Vec<Attribute> {
    let rows = json["ata_smart_attributes"]["table"].as_array();
    let attribute = |row: &Value| {
        Some(Attribute {
            id: row["id"].as_u64()?,
            name: row["name"].as_str()?.to_string(),
            raw: row["raw"]["value"].as_u64()?,
        })
    };
    rows.into_iter().flatten().filter_map(attribute).collect()
}

impl Attribute {
    fn source(&self) -> String {
        format!("{} {}", self.id, self.name)
    }

    fn says(&self, words: &[&str]) -> bool {
        let name = self.name.to_ascii_lowercase();
        words.iter().any(|word| name.contains(word))
    }

    /// Written bytes of whatever kind, and not wear of writing.
    fn is_written(&self) -> bool {
        self.says(&["writ"]) && !self.says(&["err", "count", "cycle", "head", "wear"])
    }

    fn is_of_media(&self) -> bool {
        self.says(&["nand", "flash", "tlc", "slc", "mlc", "qlc"])
    }

    /// The unit in the name: sectors, or as `32MiB` and `GiB`. Drives that say GB count in GiB.
    fn unit_bytes(&self, block_bytes: u64) -> Option<u64> {
        let name = self.name.to_ascii_lowercase();
        if self.says(&["lba", "sector"]) {
            return Some(block_bytes);
        }
        let units = [("mib", 20), ("mb", 20), ("gib", 30), ("gb", 30), ("tib", 40), ("tb", 40)];
        let (at, shift) =
            units.iter().find_map(|(unit, shift)| Some((name.find(unit)?, *shift)))?;
        let digits = name[..at].trim_end_matches(|c: char| c.is_ascii_digit()).len();
        let times: u64 = if digits == at { 1 } else { name[digits..at].parse().ok()? };
        times.checked_mul(1 << shift)
    }

    fn host(&self, block_bytes: u64) -> Option<Counter> {
        let is_host = self.is_written()
            && !self.is_of_media()
            && self.says(&["lba", "host", "total", "lifetime"]);
        let unit_bytes = self.unit_bytes(block_bytes).filter(|_| is_host)?;
        Some(counter(self.raw, unit_bytes, self.source()))
    }

    fn media(&self) -> Option<Counter> {
        let is_media = self.is_written() && self.is_of_media() && !self.says(&["host"]);
        let unit_bytes = self.unit_bytes(512).filter(|_| is_media)?;
        Some(counter(self.raw, unit_bytes, self.source()))
    }
}

/// A counter of all flash where there is one, else the sum over kinds of cells; else pages.
fn media(attributes: &[Attribute]) -> Option<MediaCounter> {
    let kinds: Vec<Counter> = attributes.iter().filter_map(Attribute::media).collect();
    let cells = ["tlc", "slc", "mlc", "qlc"];
    let is_part =
        |each: &&Counter| cells.iter().any(|kind| each.source.to_ascii_lowercase().contains(kind));
    if let Some(all) = kinds.iter().find(|each| !is_part(each)) {
        return Some(MediaCounter::Bytes(all.clone()));
    }
    if !kinds.is_empty() {
        let sources: Vec<&str> = kinds.iter().map(|each| each.source.as_str()).collect();
        return Some(MediaCounter::Bytes(Counter {
            bytes: kinds.iter().map(|each| each.bytes).fold(0, u64::saturating_add),
            unit_bytes: kinds.iter().map(|each| each.unit_bytes).fold(0, u64::saturating_add),
            source: sources.join(" + "),
        }));
    }
    let pages = |id: u64, word: &str| {
        attributes.iter().find(|each| each.id == id && each.says(&[word]) && each.says(&["page"]))
    };
    let (host, background) = (pages(247, "program")?, pages(248, "program")?);
    Some(MediaCounter::Pages {
        host: host.raw,
        background: background.raw,
        source: format!("{}, {}", host.source(), background.source()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const GIB: u64 = 1 << 30;

    fn sample(text: &str) -> Counters {
        smartctl(&serde_json::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn a_sata_drive_that_counts_blocks_alone() {
        let counters = sample(include_str!("../../../tests/smart/sata-241-lbas.json"));
        let host = counters.host.unwrap();
        assert_eq!((host.bytes, host.unit_bytes), (61_503_210_496 * 512, 512));
        assert_eq!(host.source, "241 Total_LBAs_Written");
        assert_eq!((counters.media, counters.is_guess), (None, false));
    }

    #[test]
    fn a_sata_drive_that_counts_pages() {
        let counters = sample(include_str!("../../../tests/smart/sata-246-247-248-pages.json"));
        assert_eq!(counters.host.unwrap().bytes, 8_410_030_120 * 512);
        let Some(MediaCounter::Pages { host, background, .. }) = counters.media else {
            panic!("no pages")
        };
        assert_eq!((host, background), (285_113_042, 641_900_233));
    }

    #[test]
    fn a_sata_drive_that_counts_flash() {
        let counters = sample(include_str!("../../../tests/smart/sata-233-nand.json"));
        // The drive's 241 is in GiB, and the standard's own counter is finer than that.
        let host = counters.host.unwrap();
        assert_eq!((host.bytes, host.unit_bytes), (26_004_521_984 * 512, 512));
        let Some(MediaCounter::Bytes(media)) = counters.media else { panic!("no bytes") };
        // Each of the two is cut to whole GiB.
        assert_eq!((media.bytes, media.unit_bytes), (19_807 * GIB, 2 * GIB));
        assert_eq!(media.source, "233 NAND_GB_Written_TLC + 244 NAND_GB_Written_SLC");
    }

    #[test]
    fn an_nvme_drive_and_its_ocp_log() {
        let counters = sample(include_str!("../../../tests/smart/nvme.json"));
        let host = counters.host.unwrap();
        assert_eq!((host.bytes, host.unit_bytes), (123_456_789 * 512_000, 512_000));
        assert_eq!(counters.media, None);
        let log = include_str!("../../../tests/smart/ocp.json");
        let media = ocp(&serde_json::from_str(log).unwrap()).unwrap();
        assert_eq!((media.bytes, media.unit_bytes), (79_012_345_678_901, 1));
        assert_eq!(ocp(&json!({ "physical_media_units_written": 7 })).unwrap().bytes, 7);
        assert_eq!(ocp(&json!({})), None);
        assert_eq!(ocp(&json!({ "Physical media units written": { "hi": 1, "lo": 2 } })), None);
    }

    #[test]
    fn units_stand_in_names() {
        let attribute = |name: &str| Attribute { id: 1, name: name.into(), raw: 3 };
        for (name, unit, is_media) in [
            ("Total_LBAs_Written", 4096, false),
            ("Host_Writes_32MiB", 32 << 20, false),
            ("Lifetime_Writes_GiB", GIB, false),
            ("Total_Host_Sector_Write", 4096, false),
            ("Total_Writes_GB", GIB, false),
            ("Host_Writes_MiB", 1 << 20, false),
            ("NAND_Writes_1GiB", GIB, true),
            ("Flash_Writes_GiB", GIB, true),
            ("TLC_Writes_32MiB", 32 << 20, true),
            ("Total_NAND_Writes_GiB", GIB, true),
        ] {
            let attribute = attribute(name);
            let (host, media) = (attribute.host(4096), attribute.media());
            assert_eq!(host.is_some(), !is_media, "{name}");
            assert_eq!(media.is_some(), is_media, "{name}");
            let found = host.or(media).unwrap();
            assert_eq!((found.unit_bytes, found.bytes), (unit, 3 * unit), "{name}");
        }
        for name in [
            "Total_LBAs_Read",
            "Media_Wearout_Indicator",
            "Write_Error_Rate",
            "Unknown_Attribute",
            "Head_Flying_Hours",
            "Host_Writes",
            "Multi_Zone_Error_Rate",
            "NAND_Writes_Count",
        ] {
            let attribute = attribute(name);
            assert_eq!((attribute.host(512), attribute.media()), (None, None), "{name}");
        }
    }

    #[test]
    fn a_drive_that_smartctl_does_not_know_is_a_guess() {
        let mut json: Value =
            serde_json::from_str(include_str!("../../../tests/smart/sata-241-lbas.json")).unwrap();
        json["in_smartctl_database"] = Value::Bool(false);
        assert!(smartctl(&json).unwrap().is_guess);
    }

    #[test]
    fn what_cannot_be_read_says_why() {
        let denied: Value =
            serde_json::from_str(include_str!("../../../tests/smart/denied.json")).unwrap();
        assert!(smartctl(&denied).unwrap_err().contains("Permission denied"));
        assert!(smartctl(&json!({})).unwrap_err().contains("no SMART data"));
        // Other bits of the status tell of the drive's health.
        let mut failing: Value =
            serde_json::from_str(include_str!("../../../tests/smart/nvme.json")).unwrap();
        failing["smartctl"]["exit_status"] = json!(8 | 64);
        assert!(smartctl(&failing).is_ok());
    }
}
