//! `cargo xtask java`: builds the native library, runs the tests of the Java classes and makes their
//! jars.

use crate::c_library::build;
use crate::repository::Repository;
use std::env::consts;
use std::path::Path;
use std::process::Command;

const LIBRARY: &str = "libshingle_jni.so";

/// The folder of each Java project, and the name of its jar.
const JARS: [(&str, &str); 2] =
    [("shingle", "shingle-java"), ("shingle-kafka-streams", "shingle-kafka-streams")];

/// Builds `java/shingle/target/shingle-java-VERSION.jar` and
/// `java/shingle-kafka-streams/target/shingle-kafka-streams-VERSION.jar`.
pub fn package(repository: &Repository) -> Result<(), String> {
    let root = repository.root.as_deref().ok_or("the repository is in no folder")?;
    let java = root.join("java");
    let native = java.join("shingle/target/native");
    std::fs::create_dir_all(&native).map_err(|error| format!("{}: {error}", native.display()))?;
    strip(&build(root, "shingle-jni")?.join(LIBRARY), &native.join(LIBRARY))?;
    let mut maven = Command::new("mvn");
    maven.args(["--batch-mode", "--quiet", "package"]).current_dir(&java);
    maven.arg(format!("-Dshingle.native={}", native.display()));
    // The library is built for the machine that builds.
    maven.arg(format!("-Dshingle.platform={}-{}", consts::OS, consts::ARCH));
    succeeds(&mut maven, "mvn", "install a JDK from 17 on and Maven")?;
    for (project, name) in JARS {
        let jar = format!("{name}-{}.jar", env!("CARGO_PKG_VERSION"));
        let jar = java.join(project).join("target").join(jar);
        let size =
            std::fs::metadata(&jar).map_err(|error| format!("{}: {error}", jar.display()))?;
        println!("{}: {:.1} MB", jar.display(), size.len() as f64 / 1e6);
    }
    Ok(())
}

/// Copies a library without its symbols and lines: programs do not need them.
fn strip(from: &Path, to: &Path) -> Result<(), String> {
    let mut strip = Command::new("strip");
    strip.arg("--strip-unneeded").arg("-o").arg(to).arg(from);
    succeeds(&mut strip, "strip", "install binutils")
}

fn succeeds(command: &mut Command, name: &str, remedy: &str) -> Result<(), String> {
    let status = command.status().map_err(|error| format!("{name}: {error}: {remedy}"))?;
    if status.success() { Ok(()) } else { Err(format!("{name} failed: {status}")) }
}
