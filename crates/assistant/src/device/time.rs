//! `get_local_time`: returns the current time in the user's time zone.

use std::sync::Arc;

use jiff::Zoned;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::clock::Clock;
use crate::moment;
use crate::tool::{Run, Tool, ToolError, ToolOutput};

/// Get the current local date, time and time zone.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct LocalTimeInput {}

#[derive(Debug, Serialize, PartialEq, Eq)]
pub struct LocalTimeOutput {
    iso_datetime: String,
    display_datetime: String,
    timezone: String,
    day_of_week: String,
}

pub struct LocalTime {
    pub clock: Arc<dyn Clock>,
}

impl Tool for LocalTime {
    const NAME: &'static str = "get_local_time";
    type Input = LocalTimeInput;
    type Output = LocalTimeOutput;

    async fn run(&self, _: LocalTimeInput, _: &Run) -> Result<ToolOutput<LocalTimeOutput>, ToolError> {
        Ok(ToolOutput::own(tell(&self.clock.now().to_zoned(self.clock.zone()))))
    }
}

fn tell(now: &Zoned) -> LocalTimeOutput {
    LocalTimeOutput {
        iso_datetime: moment::stamp(now),
        display_datetime: now.strftime("%A, %B %-d, %Y at %-I:%M %p").to_string(),
        timezone: now.time_zone().iana_name().map_or_else(|| now.offset().to_string(), str::to_owned),
        day_of_week: now.strftime("%A").to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tells_the_time_as_the_contract_shows_it() {
        let now: Zoned = "2026-03-09T15:05:00+01:00[Europe/Berlin]".parse().unwrap();
        let told = tell(&now);
        assert_eq!(told.iso_datetime, "2026-03-09T15:05:00+01:00");
        assert_eq!(told.display_datetime, "Monday, March 9, 2026 at 3:05 PM");
        assert_eq!(told.timezone, "Europe/Berlin");
        assert_eq!(told.day_of_week, "Monday");
    }
}
