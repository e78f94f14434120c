//! The fuzzing corpus, through the same targets, on the stable toolchain; and noise.

use crate::targets::TARGETS;
use base::random::Random;
use std::path::Path;

#[test]
fn the_corpus_of_every_target_passes() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    for (name, target) in TARGETS {
        let Ok(files) = std::fs::read_dir(corpus.join(name)) else { continue };
        let mut inputs: Vec<_> = files.map(|file| file.unwrap().path()).collect();
        inputs.sort();
        println!("{name}: {} inputs", inputs.len());
        for input in inputs {
            target(&std::fs::read(input).unwrap());
        }
    }
}

#[test]
fn noise_never_panics_in_any_target() {
    let mut random = Random::new(11);
    for (_, target) in TARGETS {
        for _ in 0..150 * crate::scale() {
            let length = random.below(200);
            let noise: Vec<u8> = (0..length).map(|_| random.next_u64() as u8).collect();
            target(&noise);
        }
    }
}
