//! The names of presets. The numbers behind them are in `presets`.

/// Which set of rules the tree follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Level sizes that follow the data, smooth slow-down, parallel compaction.
    Modern,
    /// LevelDB's rules to the letter, for comparison with published figures.
    LevelDb,
}
