//! The drive in the registry: [`SsdOptions`] from a text.

use super::super::Descriptor;
use super::super::parameter::{Kind, Parameter, Settings};
use super::{Figures, PAGE_BYTES, Ssd, SsdOptions, Timing, Victim, Wear};

const SWITCH: Kind = Kind::Choice(&["off", "on"]);
const RATE: Kind = Kind::Bytes("1MB", "100GB");
const IOPS: Kind = Kind::Count("1", "100000000");
const TIME: Kind = Kind::Time("0ns", "1s");

/// The model in the registry.
pub const DESCRIPTOR: Descriptor = Descriptor {
    name: "ssd",
    summary: "solid-state drive: page mapping, superblocks, garbage collection, TRIM, SLC cache",
    help: "A page-mapped translation layer over superblocks that are erased whole. `op` is flash \
           beyond the capacity; `victim` chooses what is emptied (`choice`: the best of `draws` \
           drawn at random); `wear` is what was done to the drive before: nothing, filled in \
           order, or also overwritten twice at random. With `slc`, writes go to a cache of this \
           size first, and are folded into the main flash later. `compression` is bytes on flash \
           for a byte of the host. Writes are answered from a buffer; garbage collection is paid \
           for by the writes that use the space it gave back. Rates and IOPS are one request at a \
           time on a fresh drive (1 MiB and 4 KiB); the defaults are those of the drive that the \
           LWC-tree and SEALDB papers measured, whose inside they do not describe.",
    parameters: &[
        of("capacity", Kind::Bytes("1MiB", "10TB"), "100GB", "bytes that the host sees"),
        of("op", Kind::Share("0%", "1000%"), "7%", "flash beyond the capacity, a share of it"),
        of("superblock", Kind::Bytes("8K", "4GiB"), "64MiB", "the unit of erasure"),
        of("victim", VICTIMS, "greedy", "which superblock is emptied next"),
        of("draws", Kind::Count("1", "1000"), "10", "superblocks that `choice` looks at"),
        of("gc-stream", SWITCH, "off", "moved pages have superblocks of their own"),
        of("trim", SWITCH, "on", "discarded pages are forgotten"),
        of("slc", Kind::Bytes("0", "1TB"), "0", "bytes of the SLC cache"),
        of("compression", Kind::Share("1%", "100%"), "100%", "bytes on flash for one of the host"),
        of("wear", Kind::Choice(&["fresh", "filled", "steady"]), "fresh", "what was done before"),
        of("endurance", Kind::Count("1", "1000000"), "3000", "erases that flash endures"),
        of("read-rate", RATE, "1200MB", "bytes/s read in order"),
        of("write-rate", RATE, "901MB", "bytes/s written in order"),
        of("read-iops", IOPS, "8647", "random reads in a second"),
        of("write-iops", IOPS, "19712", "random writes in a second"),
        of("erase", TIME, "3ms", "erasing a superblock"),
        of("read-delay", TIME, "200us", "longest wait of a read for programs in progress"),
        of("flush", TIME, "20us", "a flush, after the buffer was programmed"),
        of("discard", TIME, "20us", "a discard"),
        of("buffer", Kind::Bytes("0", "16GiB"), "32MiB", "bytes answered before programmed"),
        of("seed", Kind::Count("0", "1000000000"), "0", "of random draws, and of the wear"),
    ],
    make: |settings| Ok(Box::new(Ssd::new(&options(settings))?)),
};

const VICTIMS: Kind = Kind::Choice(&["greedy", "cost-benefit", "fifo", "choice"]);

const fn of(
    name: &'static str,
    kind: Kind,
    default: &'static str,
    help: &'static str,
) -> Parameter {
    Parameter { name, kind, default, help }
}

fn options(settings: &Settings) -> SsdOptions {
    let is_on = |name| settings.text(name) == "on";
    SsdOptions {
        capacity_bytes: settings.number("capacity") / PAGE_BYTES * PAGE_BYTES,
        superblock_bytes: settings.number("superblock"),
        over_provisioning: settings.share("op"),
        victim: match settings.text("victim") {
            "cost-benefit" => Victim::CostBenefit,
            "fifo" => Victim::Fifo,
            "choice" => Victim::Choice(settings.number("draws") as u32),
            _ => Victim::Greedy,
        },
        gc_stream: is_on("gc-stream"),
        trim: is_on("trim"),
        slc_bytes: settings.number("slc"),
        compression: settings.share("compression"),
        wear: match settings.text("wear") {
            "filled" => Wear::Filled,
            "steady" => Wear::Steady,
            _ => Wear::Fresh,
        },
        endurance: settings.number("endurance") as u32,
        timing: timing(settings),
        seed: settings.number("seed"),
    }
}

fn timing(settings: &Settings) -> Timing {
    Timing {
        figures: Figures {
            sequential_read_mbps: settings.share("read-rate") / 1e6,
            sequential_write_mbps: settings.share("write-rate") / 1e6,
            random_read_iops: settings.share("read-iops"),
            random_write_iops: settings.share("write-iops"),
        },
        erase_ns: settings.number("erase"),
        read_delay_ns_max: settings.number("read-delay"),
        flush_ns: settings.number("flush"),
        discard_ns: settings.number("discard"),
        buffer_bytes: settings.number("buffer"),
        ..Timing::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_parameters_it_is_the_default_drive() {
        let settings = Settings::parse(DESCRIPTOR.parameters, "").unwrap();
        assert_eq!(options(&settings), SsdOptions::new(100_000_000_000 / 4096 * 4096));
    }

    #[test]
    fn every_parameter_arrives() {
        let text = "capacity=1GiB,op=28%,superblock=1MiB,victim=choice,draws=3,gc-stream=on,\
                    trim=off,slc=64MiB,compression=50%,wear=steady,endurance=100,read-rate=500MB,\
                    write-rate=400MB,read-iops=1000,write-iops=2000,erase=1ms,read-delay=1us,\
                    flush=2us,discard=3us,buffer=1MiB,seed=5";
        let settings = Settings::parse(DESCRIPTOR.parameters, text).unwrap();
        let found = options(&settings);
        let figures = Figures {
            sequential_read_mbps: 500.0,
            sequential_write_mbps: 400.0,
            random_read_iops: 1000.0,
            random_write_iops: 2000.0,
        };
        let expected = SsdOptions {
            capacity_bytes: 1 << 30,
            superblock_bytes: 1 << 20,
            over_provisioning: 0.28,
            victim: Victim::Choice(3),
            gc_stream: true,
            trim: false,
            slc_bytes: 64 << 20,
            compression: 0.5,
            wear: Wear::Steady,
            endurance: 100,
            timing: Timing {
                figures,
                erase_ns: 1_000_000,
                read_delay_ns_max: 1000,
                flush_ns: 2000,
                discard_ns: 3000,
                buffer_bytes: 1 << 20,
                ..Timing::default()
            },
            seed: 5,
        };
        assert_eq!(found, SsdOptions { over_provisioning: found.over_provisioning, ..expected });
        assert!((found.over_provisioning - 0.28).abs() < 1e-12);
    }
}
