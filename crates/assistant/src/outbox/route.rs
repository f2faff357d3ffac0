//! Decides by which phone a new message leaves. Pure.

use crate::source::SourceId;

/// A phone that messages can leave by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Exit {
    pub source: SourceId,
    /// Its name; that of the phone that Kai runs on is [`HERE`].
    pub name: String,
    /// The user chose it for messages that name no phone.
    pub by_default: bool,
}

/// What the phone that Kai runs on is called where there are others.
pub const HERE: &str = "this phone";

/// The phone for a new message: the one that is named, otherwise the user's choice, the phone that Kai runs on, or the
/// only one. The error is a sentence for a model.
pub(crate) fn choose<'a>(exits: &'a [Exit], named: Option<&str>) -> Result<&'a Exit, String> {
    let named = named.map(str::trim).filter(|name| !name.is_empty());
    match (exits, named) {
        ([], _) => {
            Err("No phone is allowed to send SMS. The user can change that in Settings, under Phones."
                .to_owned())
        }
        (_, Some(name)) => by_name(exits, name),
        ([only], None) => Ok(only),
        (_, None) => {
            let chosen = exits.iter().find(|exit| exit.by_default);
            let chosen = chosen.or_else(|| exits.iter().find(|exit| exit.source.is_here()));
            chosen.ok_or_else(|| {
                format!("There are several phones. Say which one in \"phone\": {}.", listed(exits))
            })
        }
    }
}

fn by_name<'a>(exits: &'a [Exit], name: &str) -> Result<&'a Exit, String> {
    let same = |exit: &&Exit| exit.name.to_lowercase() == name.to_lowercase();
    let found: Vec<&Exit> = exits.iter().filter(same).collect();
    let numbered = || exits.iter().find(|exit| exit.source.0.to_string() == name);
    match (found.as_slice(), numbered()) {
        ([only], _) => Ok(only),
        ([], Some(exit)) => Ok(exit),
        ([], None) => Err(format!("No phone with that name can send SMS. These can: {}.", listed(exits))),
        (several, _) => {
            let numbers: Vec<String> = several.iter().map(|exit| exit.source.0.to_string()).collect();
            Err(format!("Several phones have that name. Use a number instead: {}.", numbers.join(", ")))
        }
    }
}

fn listed(exits: &[Exit]) -> String {
    exits.iter().map(|exit| exit.name.as_str()).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exit(source: i64, name: &str, by_default: bool) -> Exit {
        Exit { source: SourceId(source), name: name.to_owned(), by_default }
    }

    #[test]
    fn a_message_leaves_by_the_phone_that_is_meant() {
        let here = exit(1, HERE, false);
        let (pixel, work, chosen) = (exit(2, "Pixel", false), exit(3, "Work", false), exit(3, "Work", true));
        let twin = exit(4, "pixel", false);
        for (name, exits, named, expected) in [
            ("nothing", vec![], None, None),
            ("nothing, though named", vec![], Some("Pixel"), None),
            ("the only one", vec![pixel.clone()], None, Some(2)),
            ("here before others", vec![here.clone(), pixel.clone()], None, Some(1)),
            ("the chosen one", vec![here.clone(), pixel.clone(), chosen], None, Some(3)),
            ("nobody chose", vec![pixel.clone(), work.clone()], None, None),
            ("a blank name", vec![here.clone(), pixel.clone()], Some(" "), Some(1)),
            ("by name", vec![here.clone(), pixel.clone(), work.clone()], Some(" WORK "), Some(3)),
            ("here by name", vec![here.clone(), pixel.clone()], Some("this phone"), Some(1)),
            ("by number", vec![here.clone(), pixel.clone()], Some("2"), Some(2)),
            ("another name", vec![here.clone(), pixel.clone()], Some("Nokia"), None),
            ("the only one is not the named one", vec![pixel.clone()], Some("Nokia"), None),
            ("two of that name", vec![here.clone(), pixel.clone(), twin.clone()], Some("Pixel"), None),
            ("two of that name, by number", vec![pixel, twin], Some("4"), Some(4)),
        ] {
            let chosen = choose(&exits, named).map(|exit| exit.source.0);
            assert_eq!(chosen.as_ref().ok(), expected.as_ref(), "{name}: {chosen:?}");
        }
    }
}
