//! Runs a post office with the accounts that are named, until Enter is pressed: real mail servers on this machine, to try
//! Kai with.
//!
//! ```sh
//! cargo run -p kai-stand-ins --example post_office -- alice bob
//! ```

#![expect(clippy::print_stdout, clippy::unwrap_used, reason = "an example talks to whoever runs it")]

use kai_stand_ins::mail::PostOffice;

fn main() {
    let names: Vec<String> = std::env::args().skip(1).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let office = PostOffice::open(&names);
    println!("{:?}", office.ports);
    println!("SSL_CERT_FILE={}", office.authority().display());
    for name in names {
        let (address, folder) = (office.address(name), office.maildir(name, "INBOX"));
        println!("{address}, password \"{}\", mails in {}", office.password(name), folder.display());
    }
    std::io::stdin().read_line(&mut String::new()).unwrap();
}
