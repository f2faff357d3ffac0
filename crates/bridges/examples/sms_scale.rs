//! Prints what SMS cost with 100,000 messages on the phone, and that a burst is accounted for. Run it with `--release`.
#![expect(clippy::print_stdout, reason = "a program to look at")]
#![expect(clippy::disallowed_methods, reason = "a stopwatch")]

use std::error::Error;
use std::sync::Arc;
use std::time::Instant;

use jiff::{SignedDuration, Timestamp};
use kai_assistant::MIGRATIONS;
use kai_assistant::clock::{Clock, ManualClock};
use kai_assistant::db::{Db, DbError};
use kai_assistant::pending;
use kai_assistant::settings::Values;
use kai_assistant::sms::queue::{QUEUE, Queued};
use kai_assistant::sms::{Inbox, Poller, Received, SearchSms};
use kai_assistant::tool::{Run, execute};
use kai_bridges::simulated::Phone;

const MESSAGES: usize = 100_000;
const BURST: usize = 5_000;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let clock = Arc::new(ManualClock::at(Timestamp::from_second(1_700_000_000)?));
    let phone = Arc::new(Phone::new(clock.clone()));
    for n in 0..MESSAGES {
        clock.advance(SignedDuration::from_secs(60));
        let text = format!(
            "Message number {n}: see you at the usual place, or call me when the train is late again."
        );
        phone.receive(&format!("+1555{:07}", n % 900), &text, clock.now());
    }
    let db = Db::in_memory(MIGRATIONS)?;
    let inbox = Arc::new(Inbox::new(phone.clone(), clock.clone()));
    let poller = Poller { db: db.clone(), clock: clock.clone(), inbox: inbox.clone() };
    print("seed", poller.turn_on()).await?;
    print("poll_nothing_new", poller.poll()).await?;
    let search = SearchSms { received: Received::new(db.clone(), Some(inbox)), clock: clock.clone() };
    for (name, query) in
        [("search_newest", "usual place"), ("search_oldest", "number 17:"), ("search_nothing", "heron")]
    {
        let arguments = format!("{{\"query\": \"{query}\"}}");
        let values = Values::default();
        let found = async {
            let result = execute(Ok(&search), &values, &arguments, &Run::BY_HAND).await;
            if result.success { Ok(()) } else { Err(result.text) }
        };
        print(name, found).await?;
    }
    for n in 0..BURST {
        phone.receive("+15550100", &format!("Burst {n}"), clock.now());
    }
    let (began, mut polls) = (Instant::now(), 1);
    while poller.poll().await?.more {
        polls += 1;
    }
    println!("burst_ms {:.1}", began.elapsed().as_secs_f64() * 1000.0);
    let accounts = db.read(|tx| {
        let dropped: u32 = pending::dropped(tx, QUEUE)?.iter().map(|(_, n)| n).sum();
        Ok::<_, DbError>((pending::waiting::<Queued>(tx, QUEUE)?.len(), dropped))
    });
    let (waiting, dropped) = accounts.await?;
    println!("burst_polls {polls}\nburst_arrived {BURST}\nburst_waiting {waiting}\nburst_dropped {dropped}");
    Ok(())
}

async fn print<T, E: Into<Box<dyn Error>>>(
    name: &str,
    work: impl Future<Output = Result<T, E>>,
) -> Result<(), Box<dyn Error>> {
    let began = Instant::now();
    work.await.map_err(Into::into)?;
    println!("{name}_ms {:.1}", began.elapsed().as_secs_f64() * 1000.0);
    Ok(())
}
