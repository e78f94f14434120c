//! The options of a database that a command did not set itself. The database keeps those of its
//! last opening for writing as a note: commands that write open with them, and commands that read
//! compute scores and compaction debt with them.

use crate::open::Place;
use serde_json::{Value, json};
use shingle::Options;
use shingle::options::OptionEntry;

/// Where the options of an opening came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionsOrigin {
    /// The note of the last opening for writing.
    LastOpening,
    /// There is no such note, or this version cannot read it.
    Defaults,
    /// The shell opened the database.
    Shell,
}

/// The options that a command works with.
pub struct Assumed {
    pub options: Options,
    pub origin: OptionsOrigin,
}

/// A reader of statistics needs no cache as large as the writer's.
const CACHE_BYTES: u64 = 1 << 20;

impl Assumed {
    /// For a reader: the options of the last opening for writing, or the default.
    pub fn of_last_opening(place: &Place) -> Assumed {
        match last_opening(place) {
            Some(options) => Assumed {
                options: options.cache_bytes(CACHE_BYTES),
                origin: OptionsOrigin::LastOpening,
            },
            None => Assumed { options: Options::new(), origin: OptionsOrigin::Defaults },
        }
    }

    /// A sentence for people: what the options decide, and where they came from.
    pub fn line(&self, has_flags: bool) -> String {
        let origin = match self.origin {
            OptionsOrigin::LastOpening => "the options of the last opening for writing",
            OptionsOrigin::Defaults => "default options, because the database has none to read",
            OptionsOrigin::Shell => "the options of this shell",
        };
        let flags = match has_flags && self.origin != OptionsOrigin::Shell {
            true => ", and --option",
            false => "",
        };
        let [scheme, values] = self.names();
        format!(
            "Scores and pending compaction are computed with scheme={scheme}, values={values}: \
             {origin}{flags}."
        )
    }

    /// The same for programs.
    pub fn json(&self) -> Value {
        let origin = match self.origin {
            OptionsOrigin::LastOpening => "last opening",
            OptionsOrigin::Defaults => "defaults",
            OptionsOrigin::Shell => "shell",
        };
        let [scheme, values] = self.names();
        json!({ "from": origin, "scheme": scheme, "values": values })
    }

    fn names(&self) -> [String; 2] {
        ["scheme", "values"].map(|name| self.options.value(name).unwrap_or_default())
    }
}

/// The options of the last opening for writing. `None`: there is no database yet, it has no such
/// note, or this version cannot read it.
pub fn last_opening(place: &Place) -> Option<Options> {
    let text = place.files().ok()?.notes()?.read_note("OPTIONS").ok()??;
    parse(std::str::from_utf8(&text).ok()?)
}

/// The options in a text of [`Options::to_ini`].
fn parse(text: &str) -> Option<Options> {
    let (_, body) = text.split_once("[DBOptions]")?;
    let mut options = Options::new();
    for (name, value) in body.lines().filter_map(|line| line.trim().split_once('=')) {
        if value == "auto" {
            continue;
        }
        options = match OptionEntry::called(name).is_some() {
            true => options.set(name, value).ok()?,
            // Without effect, and no error, where `--option` names another scheme or layout.
            false => options.expert(|expert| drop(expert.set_parameter(name, value))),
        };
    }
    Some(options)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_that_options_write_is_read() {
        let options = Options::new().scheme("ldc").values("log").write_buffer_bytes(1 << 20);
        let options = options.set("fan_out", "7").unwrap();
        let text = options.to_ini();
        assert_eq!(parse(&text).unwrap().to_ini(), text);
        let unknown = text.replace("  fan_out=", "  from_a_later_version=");
        assert_eq!(parse(&unknown).unwrap().value("scheme").as_deref(), Some("ldc"));
        assert!(parse(&text.replace("scheme=ldc", "scheme=later")).is_none());
        assert!(parse("").is_none());
    }
}
