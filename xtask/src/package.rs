//! A package: a folder with a manifest.

/// A package of the repository: a folder with a `Cargo.toml` that has a `[package]`.
pub struct Package {
    /// The folder, from the root.
    pub folder: String,
    /// The parsed manifest.
    pub manifest: toml::Table,
}

impl Package {
    /// The package whose manifest is the file `path` with this `text`; `None` if it is none.
    pub fn parse(path: &str, text: &str) -> Option<Package> {
        let folder = path.strip_suffix("/Cargo.toml")?.to_string();
        let manifest: toml::Table = text.parse().ok()?;
        manifest.contains_key("package").then_some(Package { folder, manifest })
    }

    /// What the project calls it: the last part of its folder.
    pub fn name(&self) -> &str {
        self.folder.rsplit('/').next().unwrap_or(&self.folder)
    }

    /// What Cargo calls it.
    pub fn cargo_name(&self) -> &str {
        let name = self.manifest.get("package").and_then(|package| package.get("name"));
        name.and_then(toml::Value::as_str).unwrap_or_default()
    }

    /// The path of its manifest.
    pub fn manifest_path(&self) -> String {
        format!("{}/Cargo.toml", self.folder)
    }

    /// It goes to the registry, unless its manifest says otherwise.
    pub fn is_published(&self) -> bool {
        let package = self.manifest.get("package").and_then(|package| package.get("publish"));
        package.and_then(toml::Value::as_bool) != Some(false)
    }

    /// It is part of the workspace; peers and fuzz targets have lock files of their own.
    pub fn is_member(&self) -> bool {
        self.folder.starts_with("crates/") || ["python", "xtask"].contains(&&*self.folder)
    }
}
