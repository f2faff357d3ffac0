//! Looks up names as a static build in Termux does: `lookup PREFIX NAME…`. To try it against a real name server, give it
//! a folder with `etc/resolv.conf`, on a system whose own `/etc/resolv.conf` names no server.
#![expect(clippy::print_stdout, reason = "a program to look at")]

use kai_llm::names::{self, Own};

#[tokio::main]
async fn main() {
    let mut words = std::env::args().skip(1);
    names::look_up_by(Own::below(words.next().unwrap_or_default().as_ref()));
    for name in words {
        match names::lookup(&name, 443).await {
            Ok(found) => println!("{name}: {found:?}"),
            Err(error) => println!("{name}: {error}"),
        }
    }
}
