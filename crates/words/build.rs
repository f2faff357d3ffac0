//! Turns the language files into functions: one per key, with a parameter per placeholder.

#[path = "build/catalogue.rs"]
mod catalogue;
#[path = "build/emit.rs"]
mod emit;

use std::error::Error;
use std::path::Path;
use std::{env, fs};

use catalogue::Catalogue;

#[expect(
    clippy::disallowed_methods,
    reason = "cargo names the folder for a build script's output this way only"
)]
fn main() -> Result<(), Box<dyn Error>> {
    let mut languages = read(Path::new("lang"))?;
    let english =
        languages.iter().position(|language| language.code == "en").ok_or("lang/en.txt is missing")?;
    languages.swap(0, english);
    languages[1..].sort_by(|a, b| a.code.cmp(&b.code));
    let wrong: Vec<String> = languages
        .iter()
        .flat_map(|language| catalogue::mistakes(&languages[0], language))
        .map(|mistake| mistake.to_string())
        .collect();
    if !wrong.is_empty() {
        return Err(wrong.join("\n").into());
    }
    for language in &mut languages {
        language.entries.retain(|_, entry| cfg!(feature = "foss") || !entry.foss);
    }
    let out = env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?;
    fs::write(Path::new(&out).join("words.rs"), emit::source(&languages))?;
    Ok(())
}

fn read(folder: &Path) -> Result<Vec<Catalogue>, Box<dyn Error>> {
    let mut languages = vec![];
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let code = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default().to_owned();
        let text = fs::read_to_string(&path)?;
        languages.push(catalogue::parse(&code, &text).map_err(|mistake| mistake.to_string())?);
    }
    Ok(languages)
}
