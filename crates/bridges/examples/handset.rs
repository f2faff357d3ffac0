//! A simulated phone to pair with by hand, on this machine alone. It prints the address to type on the Phones page,
//! agrees to pairing, and then does what it is told on standard input.
//!
//! ```text
//! cargo run --example handset -- "Lena's phone"
//! sms +15550142 Are you coming?
//! notify Signal Bob Lunch?
//! contact +15550142 Lena
//! pair 127.0.0.1:1716
//! off            the phone leaves the network
//! on             and comes back
//! ```

use std::io::{BufRead, Write};
use std::net::SocketAddr;
use std::sync::Arc;

use kai_assistant::clock::{Clock, SystemClock};
use kai_bridges::kdeconnect::Event;
use kai_bridges::simulated::{Handset, HandsetSetup};

type Outcome = Result<(), Box<dyn std::error::Error>>;

#[tokio::main]
async fn main() -> Outcome {
    let name = std::env::args().nth(1).unwrap_or_else(|| "Simulated phone".to_owned());
    let setup = HandsetSetup::local(&name, Arc::new(SystemClock)).map_err(|error| format!("{error:?}"))?;
    let phone = Arc::new(Handset::start(setup).await.map_err(|error| format!("{error:?}"))?);
    let address = phone.address().map(|address| address.to_string()).unwrap_or_default();
    say(&format!("{name} is at {address}. Type this address on Kai's Phones page."))?;
    let watched = Arc::clone(&phone);
    tokio::spawn(async move { watch(&watched).await });
    let (send, mut typed) = tokio::sync::mpsc::unbounded_channel();
    std::thread::spawn(move || {
        std::io::stdin().lock().lines().map_while(Result::ok).all(|line| send.send(line).is_ok())
    });
    while let Some(line) = typed.recv().await {
        if let Err(error) = obey(&phone, line.trim()).await {
            say(&format!("That did not work: {error}"))?;
        }
    }
    Ok(())
}

/// Says what happens on the phone: keys to compare, and what Kai sends through it.
async fn watch(phone: &Handset) {
    let (mut events, mut sent, mut replies) = (0, 0, 0);
    loop {
        let news = |phone: &Handset| {
            let now = (phone.events().len(), phone.sent().len(), phone.replies().len());
            (now != (events, sent, replies)).then_some(now)
        };
        let now = phone.until(news).await;
        for event in phone.events().iter().skip(events) {
            let told = match event {
                Event::PairingRequested { key, .. } | Event::PairingAsked { key, .. } => {
                    format!("Key: {key}")
                }
                Event::Linked(device) => format!("Connected with {}", device.identity.id.as_str()),
                _ => continue,
            };
            drop(say(&told));
        }
        for message in phone.sent().iter().skip(sent) {
            drop(say(&format!("Sent to {}: {}", message.to.join(", "), message.text)));
        }
        for reply in phone.replies().iter().skip(replies) {
            drop(say(&format!("Answered {}: {}", reply.key, reply.text)));
        }
        (events, sent, replies) = now;
    }
}

async fn obey(phone: &Handset, line: &str) -> Outcome {
    let mut words = line.splitn(3, ' ');
    let (command, first, rest) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    let now = SystemClock.now();
    match command {
        "" => {}
        "sms" => say(&format!("SMS {}", phone.receive(first, rest, now).await))?,
        "notify" => {
            let (title, text) = rest.split_once(' ').unwrap_or(("", rest));
            let package = format!("org.example.{}", first.to_lowercase());
            say(&format!("Notification {}", phone.post(&package, first, title, text).await))?;
        }
        "contact" => {
            let card = format!("BEGIN:VCARD\nVERSION:2.1\nFN:{rest}\nTEL;CELL:{first}\nEND:VCARD\n");
            phone.save_contact(first, now.as_millisecond(), &card);
        }
        "pair" => {
            let device = phone
                .connect(first.parse::<SocketAddr>()?)
                .await
                .map_err(|refused| format!("{refused:?}"))?;
            phone.request_pairing(&device.identity.id).map_err(|error| format!("{error:?}"))?;
        }
        "off" => phone.vanish().await,
        "on" => phone.appear().await.map_err(|error| format!("{error:?}"))?,
        _ => say("It knows: sms, notify, contact, pair, off, on")?,
    }
    Ok(())
}

fn say(line: &str) -> std::io::Result<()> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
