//! `get_location_from_ip`: the approximate location of this machine, estimated by a service from its public IP address.

use std::borrow::Cow;

use reqwest::Url;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::client::Web;
use super::readable::one_line;
use super::sentence;
use crate::db::Db;
use crate::settings::{self, LOCATION_SERVICE};
use crate::tool::{Run, Tool, ToolError, ToolOutput};

/// Get the estimated location of the user (city, region, country, coordinates, time zone) from the public IP address.
/// It is only as good as such estimates are, and wrong behind a VPN.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct LocationInput {}

#[derive(Debug, Default, Serialize, PartialEq)]
pub struct LocationOutput {
    city: Option<String>,
    region: Option<String>,
    country: Option<String>,
    country_code: Option<String>,
    latitude: Option<f64>,
    longitude: Option<f64>,
    timezone: Option<String>,
    ip: Option<String>,
}

/// The addresses of the location services, which tests replace.
#[derive(Debug, Clone)]
pub struct LocationServices {
    pub ipwho: Cow<'static, str>,
    pub ipapi: Cow<'static, str>,
}

impl Default for LocationServices {
    fn default() -> Self {
        Self { ipwho: "https://ipwho.is/".into(), ipapi: "https://ipapi.co/json/".into() }
    }
}

pub struct LocationFromIp {
    pub db: Db,
    pub web: Web,
    pub services: LocationServices,
}

impl Tool for LocationFromIp {
    const NAME: &'static str = "get_location_from_ip";
    type Input = LocationInput;
    type Output = LocationOutput;

    async fn run(&self, _: LocationInput, _: &Run) -> Result<ToolOutput<LocationOutput>, ToolError> {
        let address = match self.db.read(settings::load).await?.of(&LOCATION_SERVICE).as_str() {
            "ipapi.co" => &self.services.ipapi,
            _ => &self.services.ipwho,
        };
        let url = Url::parse(address).map_err(sentence)?;
        let page = self.web.ask(self.web.service()?.get(url.clone()), &url).await?;
        match page.status {
            // Not marked as untrusted: the fields are short place names from a service that the user chose.
            200 => read(&page.text()?).map(ToolOutput::own).map_err(ToolError),
            429 => Err(sentence(
                "The location service has reached its limit. Try again later, or let the user choose \
                 another one: kai settings set location_service",
            )),
            status => Err(ToolError(format!("The location service answered with the error {status}."))),
        }
    }
}

/// Reads a response from either service, or from another one that uses the same field names.
fn read(body: &str) -> Result<LocationOutput, String> {
    let unknown = || "Kai does not understand the location service's answer.".to_owned();
    let answer: Value = serde_json::from_str(body).map_err(|_| unknown())?;
    let word = |path: &str| {
        let text = answer.pointer(path).and_then(Value::as_str).map(|text| one_line(text, 100));
        text.filter(|text| !text.is_empty())
    };
    if answer.get("success") == Some(&Value::Bool(false)) || answer.get("error") == Some(&Value::Bool(true)) {
        let why =
            word("/message").or_else(|| word("/reason")).unwrap_or_else(|| "it did not say why".to_owned());
        return Err(format!("The location service gave no location: {why}."));
    }
    let country = word("/country");
    let code = |text: &String| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_uppercase());
    let location = LocationOutput {
        city: word("/city"),
        region: word("/region"),
        country_code: word("/country_code").or_else(|| country.clone().filter(code)),
        country: word("/country_name").or(country),
        latitude: degrees(answer.get("latitude"), 90.0),
        longitude: degrees(answer.get("longitude"), 180.0),
        timezone: word("/timezone/id").or_else(|| word("/timezone")),
        ip: word("/ip"),
    };
    let somewhere = location.city.is_some() || location.country.is_some() || location.latitude.is_some();
    if somewhere { Ok(location) } else { Err(unknown()) }
}

/// Reads a coordinate, given as a number or as a string. Returns `None` if its absolute value exceeds `most`.
fn degrees(value: Option<&Value>, most: f64) -> Option<f64> {
    let number = value.and_then(|value| value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()));
    number.filter(|degrees| degrees.abs() <= most)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_services_are_understood() {
        let berlin = || LocationOutput {
            city: Some("Berlin".to_owned()),
            region: Some("Land Berlin".to_owned()),
            country: Some("Germany".to_owned()),
            country_code: Some("DE".to_owned()),
            latitude: Some(52.52),
            longitude: Some(13.405),
            timezone: Some("Europe/Berlin".to_owned()),
            ip: Some("8.8.8.8".to_owned()),
        };
        let ipwho = r#"{"ip":"8.8.8.8","success":true,"type":"IPv4","country":"Germany","country_code":"DE",
            "region":"Land Berlin","city":"Berlin","latitude":52.52,"longitude":13.405,
            "timezone":{"id":"Europe/Berlin","utc":"+01:00"}}"#;
        let ipapi = r#"{"ip":"8.8.8.8","city":"Berlin","region":"Land Berlin","country":"DE",
            "country_name":"Germany","country_code":"DE","latitude":"52.52","longitude":13.405,
            "timezone":"Europe/Berlin","in_eu":true}"#;
        assert_eq!(read(ipwho), Ok(berlin()));
        assert_eq!(read(ipapi), Ok(berlin()));
    }

    #[test]
    fn little_is_enough_and_nothing_is_an_error() {
        let little = read(r#"{"country":"DE","city":null,"latitude":"north","longitude":999}"#).unwrap();
        assert_eq!(
            (little.country_code.as_deref(), little.latitude, little.longitude),
            (Some("DE"), None, None)
        );
        for (body, word) in [
            (r#"{"success":false,"message":"Reserved range"}"#, "Reserved range"),
            (r#"{"error":true,"reason":"RateLimited"}"#, "RateLimited"),
            (r#"{"ip":"8.8.8.8"}"#, "does not understand"),
            ("<html>", "does not understand"),
            ("[]", "does not understand"),
        ] {
            assert!(read(body).unwrap_err().contains(word), "{body}");
        }
    }
}
