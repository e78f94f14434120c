//! `device`: stores directly on files and disks, and the models of devices.

mod bench;
pub mod map;
mod recorded;
pub mod smart;

use crate::args::device::{DeviceAction, DeviceArgs, FormatArgs, InfoArgs, MapArgs};
use crate::context::Context;
use crate::failure::{Failure, Outcome};
use crate::text::{COLUMNS, fold};
use crate::{open, units};
use devices::models::{self, Parameter};
use direct::{FormatOptions, Layout, placement};
use media::block::{BlockDevice, Overwrite};
use media::os::{FileDevice, FileDeviceOptions};
use media::{FileKind, Geometry};
use serde_json::{Value, json};
use shingle::{Ledger, Options};
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

/// `shingle device`.
pub fn device(context: &mut Context, args: DeviceArgs) -> Outcome {
    match args.action {
        DeviceAction::List => list(context),
        DeviceAction::Format(args) => format(context, &args),
        DeviceAction::Info(args) => info(context, &args),
        DeviceAction::Check { path } => check(context, &path),
        DeviceAction::Bench(args) => bench::bench(context, &args),
        DeviceAction::Map(args) => draw(context, &args),
    }
}

/// `text` names a model, with or without parameters.
pub fn is_model(text: &str) -> bool {
    models::by_name(text.split(':').next().unwrap_or_default()).is_ok()
}

fn list(context: &mut Context) -> Outcome {
    let models =
        models::registry().iter().map(|model| ("model", model.name, model.summary, model.help));
    let placements = placement::registry();
    let placements =
        placements.iter().map(|each| ("placement", each.name, each.summary, each.help));
    for (kind, name, summary, help) in models.chain(placements) {
        if context.global.json {
            context
                .json(&json!({ "kind": kind, "name": name, "summary": summary, "help": help }))?;
        } else {
            let summary = format!("{kind} {name}: {summary}");
            writeln!(context.out, "{}", fold(&summary, COLUMNS))?;
            writeln!(context.out, "  {}", fold(help, COLUMNS - 2))?;
        }
    }
    context.remark("`shingle device info MODEL` lists the parameters of a model");
    Ok(())
}

fn format(context: &mut Context, args: &FormatArgs) -> Outcome {
    let path = &args.path;
    let device = match (path.exists(), args.size) {
        (true, None) => open::device(path, false)?,
        (true, Some(_)) => {
            return Err(Failure::said(
                format!("{} exists and has its size", path.display()),
                "leave --size out, or name a new file",
            ));
        }
        (false, Some(bytes)) => {
            Arc::new(FileDevice::create(path, bytes, FileDeviceOptions::default())?)
        }
        (false, None) => {
            return Err(Failure::said(
                format!("{} does not exist", path.display()),
                "give --size BYTES to make a file",
            ));
        }
    };
    if !args.force && !is_blank(&device)? {
        return Err(Failure::said(
            format!("{} is not empty: formatting it loses what is on it", path.display()),
            "look at `shingle device info`; --force formats it nevertheless",
        ));
    }
    let suited = placement::suited(&device.geometry());
    let placement = args.placement.clone().unwrap_or_else(|| suited.to_string());
    let store = RandomState::new().hash_one(path);
    let unit_bytes = args.unit.unwrap_or(0);
    let options = FormatOptions { placement, unit_bytes, store, force: args.force };
    direct::format(device, Arc::new(Ledger::default()), &options)?;
    info_device(context, path, None)
}

/// The first MiB is zeros: no format's data begins there.
fn is_blank(device: &FileDevice) -> Outcome<bool> {
    let capacity_bytes = device.geometry().capacity_bytes;
    let mut bytes = vec![0; capacity_bytes.min(1 << 20) as usize];
    device.read(0, &mut bytes, shingle::Cause::Check)?;
    Ok(bytes.iter().all(|byte| *byte == 0))
}

fn info(context: &mut Context, args: &InfoArgs) -> Outcome {
    if is_model(&args.device) {
        return info_model(context, &args.device);
    }
    let path = Path::new(&args.device);
    let is_disk = path.metadata().is_ok_and(|found| found.file_type().is_block_device());
    let counters = match &args.smart.smart {
        Some(drive) => Some(smart::read(&args.smart, drive)?),
        // The user did not ask for counters, so that a drive without counters is no failure.
        None if is_disk => match smart::read(&args.smart, &args.device) {
            Ok(counters) => Some(counters),
            Err(failure) => {
                context.remark(&failure.message());
                None
            }
        },
        None => None,
    };
    info_device(context, path, counters.as_ref())
}

fn info_device(context: &mut Context, path: &Path, drive: Option<&smart::Counters>) -> Outcome {
    let (geometry, store) = open::look(path)?;
    let layout = store.map(|store| store.layout());
    if context.global.json {
        let mut facts = geometry_json(&geometry);
        facts["store"] = layout.as_ref().map_or(Value::Null, layout_json);
        facts["smart"] = drive.map_or(Value::Null, smart::facts);
        return context.json(&facts);
    }
    writeln!(context.out, "{}: {}", path.display(), geometry_text(&geometry))?;
    if let Some(counters) = drive {
        write!(context.out, "{}", smart::text(counters))?;
    }
    let Some(layout) = layout else {
        writeln!(context.out, "no store is on it; `shingle device format` makes one")?;
        return Ok(());
    };
    let free: u64 = layout.free.iter().map(|extent| extent.bytes).sum();
    let (free, data) = (units::bytes(free), units::bytes(layout.data.bytes));
    writeln!(context.out, "placement {}, {free} of {data} free", layout.placement)?;
    for (kind, files, bytes) in kinds(&layout) {
        writeln!(context.out, "{files} {kind} files, {}", units::bytes(bytes))?;
    }
    Ok(())
}

/// Files and bytes by kind; those of which there are none are left out.
fn kinds(layout: &Layout) -> Vec<(&'static str, usize, u64)> {
    let kinds =
        [("table", FileKind::Table), ("log", FileKind::Wal), ("manifest", FileKind::Manifest)];
    let of = |kind: &FileKind| {
        let files: Vec<_> = layout.files.iter().filter(|file| file.name.kind == *kind).collect();
        (files.len(), files.iter().map(|file| file.bytes).sum())
    };
    let counted = kinds.iter().map(|(name, kind)| (*name, of(kind).0, of(kind).1));
    counted.filter(|counted| counted.1 > 0).collect()
}

fn layout_json(layout: &Layout) -> Value {
    let used: u64 = layout.files.iter().flat_map(|file| &file.extents).map(|e| e.bytes).sum();
    json!({
        "placement": layout.placement,
        "data_bytes": layout.data.bytes,
        "free_bytes": layout.free.iter().map(|extent| extent.bytes).sum::<u64>(),
        "free_extents": layout.free.len(),
        "files": layout.files.len(),
        "file_bytes": used,
    })
}

fn geometry_json(geometry: &Geometry) -> Value {
    json!({
        "sector_bytes": geometry.sector_bytes,
        "capacity_bytes": geometry.capacity_bytes,
        "band_bytes": geometry.band_bytes,
        "zone_bytes": geometry.zones.map(|zones| zones.zone_bytes),
        "overwrite": overwrite_text(geometry.overwrite),
    })
}

fn overwrite_text(overwrite: Overwrite) -> String {
    match overwrite {
        Overwrite::InPlace => "in place".into(),
        Overwrite::DestroysDownstream { damage_bytes } => {
            format!("destroys the {} that follow", units::bytes(damage_bytes))
        }
        Overwrite::AtWritePointer => "at the write pointer of a zone alone".into(),
    }
}

fn geometry_text(geometry: &Geometry) -> String {
    let (capacity, sector) = (units::bytes(geometry.capacity_bytes), geometry.sector_bytes);
    let mut text = format!("{capacity} in sectors of {sector} B, ");
    text += &format!("overwriting {}", overwrite_text(geometry.overwrite));
    if geometry.band_bytes > 0 {
        text += &format!(", bands of {}", units::bytes(geometry.band_bytes));
    }
    if let Some(zones) = geometry.zones {
        text += &format!(", zones of {}", units::bytes(zones.zone_bytes));
    }
    text
}

fn info_model(context: &mut Context, text: &str) -> Outcome {
    let model = models::make(text).map_err(Failure::of_value)?;
    let descriptor = models::by_name(model.name())?;
    let geometry = model.geometry();
    let suited = placement::suited(&geometry);
    if context.global.json {
        let mut facts = geometry_json(&geometry);
        facts["model"] = descriptor.name.into();
        facts["placement"] = suited.into();
        facts["parameters"] =
            descriptor.parameters.iter().map(|each| (each.name, each.default)).collect();
        return context.json(&facts);
    }
    let summary = format!("{text}: {}", descriptor.summary);
    writeln!(context.out, "{}", fold(&summary, COLUMNS))?;
    writeln!(context.out, "{}\n", fold(descriptor.help, COLUMNS))?;
    writeln!(context.out, "{}; placement {suited}", geometry_text(&geometry))?;
    let mut table = crate::commands::ledger::plain_table(&["parameter", "default", "is"]);
    for Parameter { name, kind, default, help } in descriptor.parameters {
        table.add_row([(*name).to_string(), (*default).to_string(), format!("{help}; {kind}")]);
    }
    writeln!(context.out, "{table}")?;
    Ok(())
}

fn check(context: &mut Context, path: &Path) -> Outcome {
    let store = open::store(path, true)?;
    let bar = context.bar("check", 1);
    let mut done_bytes = 0;
    let report = store.check(&mut |progress| {
        bar.add(progress.done_bytes - done_bytes);
        done_bytes = progress.done_bytes;
    })?;
    drop(bar);
    let is_clean = report.problems.is_empty();
    if context.global.json {
        let (files, bytes, problems) = (report.files, report.bytes, &report.problems);
        let facts = json!({ "ok": is_clean, "files": files, "bytes": bytes, "problems": problems });
        context.json(&facts)?;
    } else {
        let bytes = units::bytes(report.bytes);
        writeln!(context.out, "read {} files, {bytes} of the device", report.files)?;
        for problem in &report.problems {
            writeln!(context.out, "damage: {problem}")?;
        }
    }
    if is_clean {
        return Ok(());
    }
    Err(Failure::said(
        format!("{} is damaged, in {} places", path.display(), report.problems.len()),
        "`shingle --db PATH check` says what of the database is hurt, `salvage` saves the rest",
    ))
}

fn draw(context: &mut Context, args: &MapArgs) -> Outcome {
    let store = open::store(&args.path, true)?;
    let layout = store.layout();
    let writes = recorded::writes(&store)?;
    let has_database = !layout.files.is_empty();
    let files = if has_database {
        Options::new().read_only(true).open_store(Arc::new(store))?.files()
    } else {
        Vec::new()
    };
    let picture = map::Picture { title: args.path.display().to_string(), layout, files };
    picture.write(&args.svg, &writes)?;
    context.remark(&format!("picture: {}", args.svg.display()));
    Ok(())
}
