//! The models that Kai can download by name: where each lies, how large it is, and what it needs.

use crate::machine::Machine;

/// One downloadable model. Length and hash are fixed here, so nothing else is ever installed under this name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    pub name: &'static str,
    /// Owner and name of the repository on the hub.
    pub repository: &'static str,
    /// The commit, so that the file cannot change under us. `main` where only the hash is known.
    pub revision: &'static str,
    pub file: &'static str,
    pub bytes: u64,
    /// In lower-case hexadecimal.
    pub sha256: &'static str,
    pub licence: &'static str,
    /// Estimated memory while it answers, with a context of 8,192 tokens: weights, context and working space.
    pub memory: u64,
    pub strength: Strength,
    /// Whether Kai was tried with it.
    pub tried: bool,
}

/// What a model is good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strength {
    /// Short answers and simple tools, on almost any computer.
    Everyday,
    /// Better sentences than the smallest, still quick.
    Quick,
    /// Longer answers and several steps; slow without a fast processor.
    Thorough,
    /// Follows instructions and calls tools carefully; slow without a fast processor.
    Careful,
    /// Programs and commands.
    Code,
}

const MB: u64 = 1_000_000;

/// Everything that can be downloaded by name. The default comes first.
pub const CATALOGUE: [Entry; 5] = [
    Entry {
        name: "qwen2.5-1.5b",
        repository: "Qwen/Qwen2.5-1.5B-Instruct-GGUF",
        revision: "91cad51170dc346986eccefdc2dd33a9da36ead9",
        file: "qwen2.5-1.5b-instruct-q4_k_m.gguf",
        bytes: 1_117_320_736,
        sha256: "6a1a2eb6d15622bf3c96857206351ba97e1af16c30d7a74ee38970e434e9407e",
        licence: "Apache-2.0",
        memory: 1_700 * MB,
        strength: Strength::Everyday,
        tried: false,
    },
    Entry {
        name: "qwen3-1.7b",
        repository: "Qwen/Qwen3-1.7B-GGUF",
        revision: "90862c4b9d2787eaed51d12237eafdfe7c5f6077",
        file: "Qwen3-1.7B-Q8_0.gguf",
        bytes: 1_834_426_016,
        sha256: "061b54daade076b5d3362dac252678d17da8c68f07560be70818cace6590cb1a",
        licence: "Apache-2.0",
        memory: 3_100 * MB,
        strength: Strength::Quick,
        tried: false,
    },
    Entry {
        name: "qwen3-4b",
        repository: "Qwen/Qwen3-4B-GGUF",
        revision: "bc640142c66e1fdd12af0bd68f40445458f3869b",
        file: "Qwen3-4B-Q4_K_M.gguf",
        bytes: 2_497_280_256,
        sha256: "7485fe6f11af29433bc51cab58009521f205840f5b4ae3a32fa7f92e8534fdf5",
        licence: "Apache-2.0",
        memory: 4_000 * MB,
        strength: Strength::Thorough,
        tried: false,
    },
    Entry {
        name: "granite-4-micro",
        repository: "ibm-granite/granite-4.0-micro-GGUF",
        revision: "ec48475f0c811d812fbfb61975717a9c36eeb652",
        file: "granite-4.0-micro-Q4_K_M.gguf",
        bytes: 2_099_502_528,
        sha256: "97c417dcc0534b0737c74016fb2af083cb17c3b51eaac621192d23961b7024eb",
        licence: "Apache-2.0",
        memory: 3_100 * MB,
        strength: Strength::Careful,
        tried: false,
    },
    Entry {
        name: "qwen2.5-coder-1.5b",
        repository: "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF",
        revision: "main",
        file: "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
        bytes: 1_117_320_768,
        sha256: "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence: "Apache-2.0",
        memory: 1_700 * MB,
        strength: Strength::Code,
        tried: true,
    },
];

impl Entry {
    /// The path of the file on the hub, to be joined with its address.
    pub fn path(&self) -> String {
        format!("{}/resolve/{}/{}", self.repository, self.revision, self.file)
    }
}

/// The entry of this name.
pub fn named(name: &str) -> Option<&'static Entry> {
    CATALOGUE.iter().find(|entry| entry.name == name)
}

/// Why a model does not fit on this machine. Figures are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Misfit {
    /// The engine needs instructions that this processor lacks.
    Processor,
    Memory {
        needs: u64,
        has: u64,
    },
    Disk {
        needs: u64,
        free: u64,
    },
}

/// What has to stay free beside a model: memory for everything else that runs.
const MEMORY_FOR_OTHERS: u64 = 700 * MB;
/// What has to stay free on the disk after a download.
pub const DISK_FOR_OTHERS: u64 = 64 << 20;

/// Whether this machine can hold and run the model. `installed`: its file is here already and needs no more disk.
pub fn fits(entry: &Entry, machine: &Machine, installed: Installed) -> Result<(), Misfit> {
    if !machine.has_vectors {
        return Err(Misfit::Processor);
    }
    let needs = entry.memory + MEMORY_FOR_OTHERS;
    if machine.memory < needs {
        return Err(Misfit::Memory { needs, has: machine.memory });
    }
    let needs = entry.bytes + DISK_FOR_OTHERS;
    match (machine.disk, installed) {
        (Some(free), Installed::No) if free < needs => Err(Misfit::Disk { needs, free }),
        _ => Ok(()),
    }
}

/// Whether a model's file is on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Installed {
    Yes,
    No,
}

/// The model to take unless the user chooses another. It is the smallest one; a larger one is slow on most machines,
/// so Kai never takes one by itself.
pub fn recommended(machine: &Machine) -> Result<&'static Entry, Misfit> {
    let [default, ..] = &CATALOGUE;
    fits(default, machine, Installed::No).map(|()| default)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    const GB: u64 = 1_000 * MB;

    #[test]
    fn every_entry_can_be_fetched_and_checked() {
        let names: HashSet<&str> = CATALOGUE.iter().map(|entry| entry.name).collect();
        let files: HashSet<&str> = CATALOGUE.iter().map(|entry| entry.file).collect();
        assert_eq!((names.len(), files.len()), (CATALOGUE.len(), CATALOGUE.len()));
        for entry in &CATALOGUE {
            let hex = |text: &str| text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
            assert!(entry.sha256.len() == 64 && hex(entry.sha256), "{}", entry.name);
            let pinned = entry.revision.len() == 40 && hex(entry.revision);
            assert!(pinned || entry.name == "qwen2.5-coder-1.5b", "{}", entry.name);
            let file = std::path::Path::new(entry.file);
            assert!(file.extension().is_some_and(|end| end == "gguf"), "{}", entry.name);
            assert_eq!(file.file_name(), Some(file.as_os_str()), "{}", entry.name);
            assert!(entry.memory > entry.bytes, "{}", entry.name);
            assert_eq!(named(entry.name), Some(entry));
        }
        assert_eq!(CATALOGUE.iter().filter(|entry| entry.tried).count(), 1, "only one was tried");
        assert_eq!(
            CATALOGUE[4].path(),
            "Qwen/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"
        );
    }

    #[test]
    fn the_smallest_is_recommended_or_a_reason_is_given() {
        let roomy = Machine {
            memory: 64 * GB,
            available: 60 * GB,
            cores: 16,
            disk: Some(500 * GB),
            has_vectors: true,
        };
        let needs = CATALOGUE[0].bytes + DISK_FOR_OTHERS;
        for (name, machine, expected) in [
            ("a large machine gets no larger model", roomy, Ok("qwen2.5-1.5b")),
            ("4 GB are enough", Machine { memory: 4 * GB, ..roomy }, Ok("qwen2.5-1.5b")),
            ("a disk that nobody can measure", Machine { disk: None, ..roomy }, Ok("qwen2.5-1.5b")),
            (
                "little memory",
                Machine { memory: 2 * GB, ..roomy },
                Err(Misfit::Memory { needs: 2_400 * MB, has: 2 * GB }),
            ),
            ("a full disk", Machine { disk: Some(GB), ..roomy }, Err(Misfit::Disk { needs, free: GB })),
            ("an old processor", Machine { has_vectors: false, ..roomy }, Err(Misfit::Processor)),
        ] {
            assert_eq!(recommended(&machine).map(|entry| entry.name), expected, "{name}");
        }
        let full = Machine { disk: Some(0), ..roomy };
        assert_eq!(fits(&CATALOGUE[0], &full, Installed::Yes), Ok(()), "it is there already");
    }
}
